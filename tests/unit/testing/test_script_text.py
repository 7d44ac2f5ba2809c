"""How scripts write things."""

import math

import pytest

from hustings.core.choice import candidate
from hustings.core.context import TimerKey
from hustings.core.messages import Message
from hustings.core.outcome import Elected, GaveUp, NoLeader, Outcome
from hustings.testing import (
    Acquire,
    CancelTimer,
    Declare,
    Effect,
    Multicast,
    Release,
    Send,
    SetTimer,
    persist,
)
from hustings.testing.script_text import (
    effect_text,
    message_text,
    outcome_text,
    timer_text,
    value_text,
)
from tests.unit.testing.toys import HailMsg, HereMsg


class BoxMsg(Message, frozen=True, tag="BOX"):
    """A message with everything in it."""

    what: object
    inner: Message | None = None


@pytest.mark.parametrize(
    "value, text",
    [
        (3, "3"),
        (0.1 + 0.2, "0.3"),
        (2.0, "2"),
        (math.inf, "inf"),
        (True, "True"),
        (None, "None"),
        ("word", "word"),
        ((1, 2), "(1, 2)"),
        ([1, (2.5,)], "(1, (2.5))"),
        ({1: 2.0, "a": (3,)}, "{1: 2, a: (3)}"),
        (candidate(3), "3"),
        (candidate(3, load=0.5, cpu=8), "3[cpu=8, load=0.5]"),
        (HereMsg(4), "HERE(count=4)"),
    ],
)
def test_values(value: object, text: str) -> None:
    assert value_text(value) == text


def test_messages() -> None:
    assert message_text(HailMsg()) == "HAIL"
    assert message_text(BoxMsg((1, 2), HailMsg())) == "BOX(what=(1, 2), inner=HAIL)"
    assert message_text(BoxMsg(None)) == "BOX(what=None)"  # the inner one is None by default


@pytest.mark.parametrize("key, text", [("T1", "T1"), (("probe", 3), "probe/3")])
def test_timers(key: TimerKey, text: str) -> None:
    assert timer_text(key) == text


@pytest.mark.parametrize(
    "outcome, text",
    [
        (Elected(3, 2), "leader 3, term 2"),
        (NoLeader(), "no leader"),
        (NoLeader("all are gone"), "no leader: all are gone"),
        (GaveUp("too often"), "giving up: too often"),
    ],
)
def test_outcomes(outcome: Outcome, text: str) -> None:
    assert outcome_text(outcome) == text


@pytest.mark.parametrize(
    "effect, text",
    [
        (Send(2, HereMsg(1)), "7->2 HERE(count=1)"),
        (Multicast(HailMsg()), "7->* HAIL"),
        (SetTimer("T1", 2.5), "7 sets T1 to 2.5"),
        (SetTimer(("T1", 4), 2, eager=True), "7 sets T1/4 to 2 (eager)"),
        (CancelTimer("T1"), "7 cancels T1"),
        (persist(vote=3, term=1), "7 stores term=1, vote=3"),
        (Declare(Elected(3, 2)), "7 declares leader 3, term 2"),
        (Acquire(12.5, 4), "7 acquires the lease for 12.5 (request 4)"),
        (Release(5), "7 releases the lease (request 5)"),
    ],
)
def test_effects(effect: Effect, text: str) -> None:
    assert effect_text(7, effect) == text
