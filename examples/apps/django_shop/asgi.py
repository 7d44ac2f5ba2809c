"""One of the workers sends the invoices: uvicorn django_shop.asgi:application --workers 4"""

import os

from django.core.asgi import get_asgi_application

import hustings.django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "django_shop.settings")
application = hustings.django.with_jobs(get_asgi_application())
