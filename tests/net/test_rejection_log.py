"""Notes about what others send: the first of a kind at once, and how many more there were later."""

from __future__ import annotations

import pytest

from hustings.net.limits import Reason, RejectionLog, WireVersions

THERE = ("192.0.2.1", 7400)


def notes() -> tuple[list[str], RejectionLog]:
    said: list[str] = []
    return said, RejectionLog(said.append, WireVersions(2, 2, 2))


def test_a_kind_is_said_once_a_minute_and_what_was_left_out_is_counted() -> None:
    said, unreadable = notes()
    for now in (100.0, 100.0, 130.0, 159.9, 160.0, 161.0, 220.0):
        unreadable.saw(Reason.RATE, THERE, now)
    assert len(said) == 3
    assert said[0].startswith("refused a message from 192.0.2.1:7400: its sender says more")
    assert said[0].endswith("(rate)")
    assert said[1].endswith("(rate; 3 more since)")
    assert said[2].endswith("(rate; 1 more since)")


def test_each_kind_is_counted_by_itself() -> None:
    said, unreadable = notes()
    unreadable.saw(Reason.RATE, THERE, 0.0)
    unreadable.saw(Reason.BAD_SEAL, THERE, 0.0)
    unreadable.say("another", "it happened", 0.0)
    assert len(said) == 3
    assert said[1].startswith("somebody at 192.0.2.1:7400 is seen but not understood: it cannot be")
    assert said[2] == "it happened"


def test_several_of_a_kind_may_be_said_at_once_and_one_a_minute_after_that() -> None:
    said, unreadable = notes()
    for _ in range(50):
        unreadable.say("many", "it happened", 0.0, at_once=3)
    assert said == ["it happened"] * 3
    for minute in range(1, 11):
        unreadable.say("many", "it happened", 60.0 * minute, at_once=3)
        unreadable.say("many", "it happened", 60.0 * minute, at_once=3)
    assert len(said) == 3 + 10
    assert said[3] == "it happened (47 more since)"
    for _ in range(50):
        unreadable.say("many", "it happened", 10_000.0, at_once=3)
    assert len(said) == 3 + 10 + 3, "never more than that at once"


@pytest.mark.parametrize("reason", [Reason.OUTBOX, Reason.UNSENT, Reason.SENDERS_FORGOTTEN])
def test_what_nobody_else_has_done_is_only_counted(reason: Reason) -> None:
    said, unreadable = notes()
    unreadable.saw(reason, THERE, 0.0)
    assert said == []
