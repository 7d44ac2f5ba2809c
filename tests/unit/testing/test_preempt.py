"""Whether a better member displaces the leader, in all elections that one joins."""

from __future__ import annotations

from typing import Any

import pytest

from hustings.core.errors import BadInput
from hustings.protocols.register import REGISTER, Use, find
from hustings.testing import Group

JOINED = [name for name, (_, _, use) in REGISTER.items() if use is Use.JOIN]
by_name = pytest.mark.parametrize("protocol", JOINED)
LONG = 30.0  # seconds: many times what an election takes


def group(protocol: str, first: str, **options: Any) -> Group:
    """Members of which a later letter is the better one; `first` comes first, so it leads."""
    made = Group(protocol=protocol, choice="highest:rank", **options)
    for name in first:
        add(made, name)
        assert led_by(made) == first[0]
    return made


def add(made: Group, name: str) -> None:
    made.join(name, attributes={"rank": ord(name)})


def led_by(made: Group) -> str:
    """Who leads when all have agreed, and long after that."""
    made.settle()
    made.advance(LONG)
    return made.settle()


def test_there_are_twelve() -> None:
    assert len(JOINED) == 12


@by_name
@pytest.mark.parametrize("preempt", [False, True])
def test_a_better_joiner(protocol: str, preempt: bool) -> None:
    """It takes over where the paper has it so and the word is said, and nowhere else."""
    with group(protocol, "ba", preempt=preempt) as made:
        add(made, "c")
        taken = preempt and find(protocol).assumptions.displaces
        assert led_by(made) == ("c" if taken else "b")


@by_name
@pytest.mark.parametrize("preempt", [False, True])
def test_a_leader_that_returns(protocol: str, preempt: bool) -> None:
    """c led, crashed, and is back: it leads again, or follows whoever succeeded it."""
    with group(protocol, "cab", preempt=preempt) as made:
        made.kill("c")
        successor = led_by(made)
        made.restart("c")
        taken = preempt and find(protocol).assumptions.displaces
        assert led_by(made) == ("c" if taken else successor)


@by_name
def test_after_a_while_a_leader_hands_over_in_every_election(protocol: str) -> None:
    with group(protocol, "ba", preempt_after="10s") as made:
        add(made, "c")
        assert led_by(made) == "c"


def test_at_once_and_after_a_while_cannot_both_be_wanted() -> None:
    made = Group(preempt=True, preempt_after="10s")
    with made, pytest.raises(BadInput, match="give one of them"):
        made.join("a")
