"""Metrics and events of OpenTelemetry, through its API alone.

A program that uses OpenTelemetry has imported it. In any other program nothing here runs, and
nothing is imported: a member at rest carries no telemetry.

Counters    hustings.leader.elected, hustings.leader.lost
Events      the same names, as log records with `event_name` where the API has them

Law: telemetry never harms a member. An error in an exporter goes no further than here.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from hustings._version import __version__

if TYPE_CHECKING:
    from hustings.net.loss_reason import LossReason
    from hustings.net.member_state import Leadership

ELECTED = "hustings.leader.elected"
LOST = "hustings.leader.lost"

_MEANS = {
    ELECTED: "How often this member began to lead.",
    LOST: "How often this member ceased to lead, by reason.",
}


def elected(member: str, state: Leadership) -> None:
    """A member begins to lead."""
    if "opentelemetry" in sys.modules:
        _emit(ELECTED, _labels(member, state), state, f"{member} leads in term {state.term}")


def lost(member: str, before: Leadership, reason: LossReason) -> None:
    """A member leads no longer."""
    if "opentelemetry" in sys.modules:
        labels = {**_labels(member, before), "hustings.reason": reason.kind}
        _emit(LOST, labels, before, f"{member} leads no longer: {reason}")


def _labels(member: str, state: Leadership) -> dict[str, str]:
    return {"hustings.group": state.group, "hustings.member": member}


def _emit(name: str, labels: dict[str, str], state: Leadership, said: str) -> None:
    with suppress(Exception):
        _counter(name).add(1, labels)
    with suppress(Exception):  # the API of older releases has no events
        fields: dict[str, str | int] = {**labels, "hustings.term": state.term}
        if state.token is not None:
            fields["hustings.token"] = state.token
        from opentelemetry._logs import SeverityNumber  # noqa: PLC0415 (imported by the program)

        _logger().emit(
            event_name=name, body=said, attributes=fields, severity_number=SeverityNumber.INFO
        )


@cache
def _counter(name: str) -> Any:
    from opentelemetry.metrics import get_meter  # noqa: PLC0415 (imported by the program)

    return get_meter("hustings", __version__).create_counter(name, "1", _MEANS[name])


@cache
def _logger() -> Any:
    from opentelemetry._logs import get_logger  # noqa: PLC0415 (imported by the program)

    return get_logger("hustings", __version__)
