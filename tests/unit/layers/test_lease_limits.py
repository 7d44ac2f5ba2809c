"""A member that must not lead, and one that has just started: when the guard is not asked."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from hustings.core.guard import Freed
from hustings.core.outcome import Elected, NoLeader
from hustings.layers.lease import ASK, AWAITING, END, LeaseLayer
from hustings.testing import Acquire, Declare, Effect, RecordedMember, Release, SetTimer, view_of
from tests.unit.layers.puppets import GROUP, LEASE, ME, Driven, Puppet, granted_at_102

WHY = "two groups"


def barred(driven: Driven, reason: str | None) -> list[Effect]:
    return driven.member._run(lambda ctx: driven.election.bar(ctx, reason))


def test_who_is_barred_steps_down_and_gives_back() -> None:
    driven = granted_at_102()
    effects = barred(driven, WHY)
    assert effects.index(Declare(NoLeader(WHY))) < effects.index(Release(2))
    assert driven.election.until is None
    assert END not in driven.member.timers


@pytest.mark.parametrize(
    "happens",
    [
        lambda driven: driven.nominate(),
        lambda driven: driven.member.answer(Freed(7)),
        lambda driven: driven.grant(token=9, request=1),
        lambda driven: driven.member.alive(1),
        lambda driven: driven.say(NoLeader("x")) + driven.nominate(),
    ],
)
def test_who_is_barred_does_not_ask(happens: Callable[[Driven], list[Effect]]) -> None:
    driven = granted_at_102()
    barred(driven, WHY)
    assert not [each for each in happens(driven) if isinstance(each, Acquire)]
    assert driven.election.until is None
    assert ASK not in driven.member.timers


def test_nor_does_one_whose_work_ends_meanwhile() -> None:
    driven = granted_at_102()
    driven.election.engaged = 1
    barred(driven, WHY)
    assert driven.election.owed
    driven.election.engaged = 0
    assert driven.member.alive(1) == [Release(2)]


def test_who_is_barred_no_more_asks_if_it_is_nominated_still() -> None:
    driven = granted_at_102()
    barred(driven, WHY)
    effects = barred(driven, None)
    assert [each for each in effects if isinstance(each, Acquire)]
    assert Declare(NoLeader(AWAITING)) in effects
    idle = Driven().at(100.0)
    barred(idle, WHY)
    assert barred(idle, None) == []


def test_who_is_barred_still_follows() -> None:
    driven = granted_at_102()
    barred(driven, WHY)
    driven.say(Elected(3, 2))
    driven.hear(3, 9)
    assert driven.outcome == Elected(3, 9)


def test_who_wanted_nothing_goes_on_following_when_it_is_barred() -> None:
    driven = Driven().at(100.0)
    driven.hear(3, 9)
    assert barred(driven, WHY) == []
    assert driven.outcome == Elected(3, 9)


# The first question


def early() -> Driven:
    driven = Driven()
    lease = msgspec.structs.replace(LEASE, first_wait=5.0)
    driven.member = RecordedMember(lambda: LeaseLayer(Puppet(), lease), ME, view_of(GROUP))
    driven.member.start()
    return driven


def test_the_first_question_waits_once() -> None:
    driven = early().at(100.0)
    assert driven.nominate() == [Declare(NoLeader(AWAITING)), SetTimer(ASK, 5.0)]
    assert driven.at(101.0).nominate() == [], "and is not put off by saying it again"
    asked = driven.at(105.0).member.fire(ASK)
    assert [each for each in asked if isinstance(each, Acquire)]
    driven.say(Elected(3, 2))
    assert [each for each in driven.nominate() if isinstance(each, Acquire)], "only the first"


def test_a_short_first_wait_is_one_too() -> None:
    lease = msgspec.structs.replace(LEASE, first_wait=0.25)
    driven = Driven()
    driven.member = RecordedMember(lambda: LeaseLayer(Puppet(), lease), ME, view_of(GROUP))
    driven.member.start()
    assert driven.nominate() == [Declare(NoLeader(AWAITING)), SetTimer(ASK, 0.25)]


def test_who_thinks_better_of_it_meanwhile_never_asks() -> None:
    driven = early().at(100.0)
    driven.nominate()
    driven.at(101.0).say(Elected(3, 2))
    assert ASK not in driven.member.timers
    assert driven.election.request <= 1


def test_who_has_seen_a_leader_does_not_wait() -> None:
    driven = early().at(100.0)
    driven.hear(3, 6)
    assert [each for each in driven.nominate() if isinstance(each, Acquire)]
