"""One page: who leads."""

from django.http import HttpRequest, HttpResponse
from django.urls import path

from django_shop.jobs import send_invoices


def leader(request: HttpRequest) -> HttpResponse:
    state = send_invoices.state
    return HttpResponse(state.leader.name if state and state.leader else "nobody")


urlpatterns = [path("leader", leader)]
