"""Whether a better member displaces the leader, in all elections that one joins."""

from __future__ import annotations

from typing import Any

import pytest

from hustings.core.errors import BadInput
from hustings.protocols.registry import JOINED, find
from hustings.testing import Group

by_name = pytest.mark.parametrize("protocol", JOINED)
LONG = 10.0  # seconds: ten times what a group without a leader waits before it elects
MEETING = 3.0  # seconds in which two sides of a cut that has healed agree
ANEW = ("broadcast", "ring")  # here all elect anew, and nobody leads meanwhile
LOOK = 0.02  # seconds between two looks


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
@pytest.mark.parametrize(
    "sides, seed",
    [("d|abc", 0), ("da|bc", 0), ("eab|dcf", 0), pytest.param("da|bc", 1, marks=pytest.mark.soak)],
)
def test_two_leaders_that_meet(protocol: str, sides: str, seed: int) -> None:
    """A cut heals: the better leader leads on and the other ends, which is the only change.

    The other side has held an election, so its leader has the later term. Where the paper does not
    displace a leader, the later term decides, or what the protocol has for it.
    """
    names = sorted(sides.replace("|", ""), reverse=True)
    with group(protocol, names[0], preempt=True, seed=seed) as made:
        for name in names[1:]:
            add(made, name)
        before = led_by(made)
        made.partition(*sides.split("|"))
        made.advance(LONG)
        worse = next(name for name in leading(made) if name != before)
        made.heal()
        seen = terms_of_office(made, MEETING)
        after = made.settle()
        if find(protocol).assumptions.displaces:
            assert (before, after) == (names[0], names[0])
            assert sorted(seen) == sorted([before, worse])
            assert seen[worse] == 1
            assert seen[before] == 1 or protocol in ANEW
        assert led_by(made) == after


def leading(made: Group) -> list[str]:
    return [name for name in made.up if made.member(name).is_leader]


def terms_of_office(made: Group, seconds: float) -> dict[str, int]:
    """How many times each member led in this time, without interruption."""
    times, last = dict[str, int](), list[str]()
    for _ in range(round(seconds / LOOK)):
        now = leading(made)
        for name in now:
            if name not in last:
                times[name] = times.get(name, 0) + 1
        last = now
        made.advance(LOOK)
    return times


@by_name
def test_after_a_while_a_leader_hands_over_in_every_election(protocol: str) -> None:
    with group(protocol, "ba", preempt_after="6s") as made:
        add(made, "c")
        assert led_by(made) == "c"


def test_at_once_and_after_a_while_cannot_both_be_wanted() -> None:
    made = Group(preempt=True, preempt_after="10s")
    with made, pytest.raises(BadInput, match="give one of them"):
        made.join("a")
