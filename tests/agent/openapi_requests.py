"""Drawn requests get answers of the shapes that the OpenAPI document promises.

`test_openapi.py` runs these tests in a process of their own: to collect them takes a second, which
each worker would take.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error

from hustings.agent.access import Token
from hustings.agent.events import Broadcast, Listener
from hustings.agent.http import Api
from tests.unit.agent.fake import TOKEN, FakeMember, publish, quiet

EXAMPLES = 10  # of requests for each operation, and group
Test = TypeVar("Test", bound=Callable[..., None])
AUTHORISED = {"Authorization": f"Bearer {TOKEN}"}


class Short(Broadcast):
    """Streams that tell the present state and end, so that a test of them ends too."""

    def join(self, listener: Listener) -> None:
        super().join(listener)
        listener.end()


class Steady(FakeMember):
    """A member that still leads after every order."""

    def lead(self, name: str | None, term: int = 1, reason: str = "") -> None:
        super().lead("web-1", term, reason)


def api_with(member: FakeMember) -> Api:
    broadcast = Short(1_000)
    publish(broadcast, member)
    return Api({"billing": member}, broadcast, quiet(), Token(TOKEN), lambda: {"echo": 1})


def leading() -> FakeMember:
    member = Steady()
    member.lead("web-1", 3)
    return member


def document_of(api: Api) -> Any:
    schema = schemathesis.openapi.from_asgi("/openapi.json", api.app())
    schema.config.generation.update(max_examples=EXAMPLES)
    return schema


LEADING = document_of(api_with(leading()))
LEADERLESS = document_of(api_with(FakeMember(others=())))

bounded = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def requests_of(schema: Any) -> Callable[[Test], Test]:
    """A test for every operation, with a bounded number of drawn requests."""
    parametrized: Callable[[Test], Test] = schema.parametrize()
    return parametrized


@requests_of(LEADING)
@bounded
def test_an_agent_that_leads(case: Any) -> None:
    case.call_and_validate(headers=AUTHORISED)


@requests_of(LEADERLESS)
@bounded
def test_an_agent_without_a_leader(case: Any) -> None:
    case.call_and_validate(headers=AUTHORISED, excluded_checks=[not_a_server_error])
