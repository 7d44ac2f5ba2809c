"""Votes of a voter that has lost its disk, and what else a vote must not be taken for."""

from __future__ import annotations

from hustings.layers.lease import ASK
from hustings.quorum.configurations import Configurations
from hustings.quorum.epochs import EPOCH_BITS, EpochCheck
from hustings.quorum.messages import (
    AcceptedMsg,
    AcceptMsg,
    Change,
    ConfInstallMsg,
    ConfQueryMsg,
    Lease,
    NackMsg,
    PrepareMsg,
    PromiseMsg,
    Sealed,
)
from hustings.quorum.recovery import ENROLL
from tests.unit.quorum.quorum_kit import FIVE, THREE, Booth, Hall


def epoch(life: int, bits: int = 1) -> int:
    return life << EPOCH_BITS | bits


A, B, C = epoch(1, 10), epoch(1, 20), epoch(1, 30)


def test_a_later_life_that_another_knows_of_voids_what_was_counted() -> None:
    lives = EpochCheck()
    assert lives.admit(THREE, 1, (A, B, C)) == []
    assert lives.admit(THREE, 2, (epoch(2), B, C)) == [1]
    assert lives.admit(THREE, 1, (A, B, C)) is None, "nor is it counted when it comes late"
    assert lives.admit(THREE, 1, (epoch(2), B, C)) == []


def test_two_births_in_one_life_are_not_counted_together_whoever_tells_of_them() -> None:
    other = epoch(1, 99)
    for told, first in (((A, other, C), (A, B, C)), ((A, B, C), (A, other, C))):
        lives = EpochCheck()
        assert lives.admit(THREE, 1, first) == []
        assert lives.admit(THREE, 2, told) == [1], "1 has another epoch of 2 on its roster"


def test_a_voter_that_begins_anew_replaces_its_own_vote() -> None:
    lives = EpochCheck()
    lives.admit(THREE, 1, (A, B, C))
    assert lives.admit(THREE, 1, (epoch(2), B, C)) == [1]
    assert lives.admit(THREE, 1, (epoch(2), B, C)) == []


def test_strangers_and_other_rosters_are_not_counted() -> None:
    lives = EpochCheck()
    assert lives.admit(THREE, 9, (A, B, C)) is None
    assert lives.admit(THREE, 1, (A, B)) is None
    assert lives.epochs == {}


def test_an_acceptance_is_void_when_its_voter_turns_out_to_have_forgotten() -> None:
    """Of five: 2 accepts, forgets, and is known by 3 to have; 2's vote must not count with 3's."""
    hall = Hall(6, voters=FIVE.voters)
    hall.call(6)
    hall.deliver(PrepareMsg)
    for each in hall.sent(PromiseMsg):  # the round does not rest on 2
        (hall.group.drop if each.sender in (2, 5) else hall.group.deliver)(each)
    for voter in (4, 5):
        hall.drop(AcceptMsg, voter)
    hall.deliver(AcceptMsg, 2)
    hall.deliver(AcceptMsg, 1)
    hall.deliver(AcceptedMsg)  # of two: a third is missing
    assert hall.leads(6) == 0
    roster = hall.of(3).acceptor.epochs
    roster[2] = epoch(2, 7)
    hall.deliver(AcceptMsg, 3)
    hall.quiet()
    assert hall.leads(6) == 0
    assert sorted(hall.of(6).proposer.accepts) == [1, 3]


# Voters


def test_the_next_configuration_begins_above_the_rounds_of_the_last() -> None:
    booth = Booth()
    change = Change((1, 2, 4), 4, epoch(1))
    booth.run(lambda ctx: booth.acceptor.install(ctx, ConfInstallMsg(1, change, 9, None)))
    low = booth.run(lambda ctx: booth.acceptor.prepare(ctx, 2, PrepareMsg(1, 9, 1)))
    assert isinstance(low, NackMsg)
    high = booth.run(lambda ctx: booth.acceptor.prepare(ctx, 2, PrepareMsg(1, 10, 1)))
    assert isinstance(high, PromiseMsg)
    booth.run(lambda ctx: booth.acceptor.install(ctx, ConfInstallMsg(2, change, 3, None)))
    assert booth.acceptor.promised.round == 10, "and never below its own"


def test_a_lease_that_is_over_is_told_as_over_when_voters_are_changed() -> None:
    booth = Booth()
    booth.run(lambda ctx: booth.acceptor.propose(ctx, 2, AcceptMsg(0, 5, 1, 5, 10.0, 1)))
    change = Change((1, 2, 4), 4, epoch(1))
    known = Configurations(THREE, 30.0, THREE)
    booth.acceptor.sealed = Sealed(6, change)
    for now, ttl in ((9.0, 10.0), (10.0, 0.0)):
        booth.now = now
        answer = booth.run(lambda ctx: known.answer(ctx, booth.acceptor, ConfQueryMsg(0, 77)))
        assert answer.step is not None
        assert answer.step.lease == Lease(2, 1, 5, ttl)


def test_a_voters_own_first_incarnation_counts_too() -> None:
    date = 1_700_000_000_000
    hall = Hall(start=False)
    hall.group.member(1).incarnation = date
    hall.group.start([1, 2, 3])
    hall.quiet()
    hall.group.fire(1, ENROLL)
    hall.quiet()
    assert hall.of(1).recovery.founded
    assert hall.of(1).acceptor.promised.round >= date


def test_who_asked_before_voters_vote_is_told_and_asks_again() -> None:
    hall = Hall(4, start=False)
    hall.group.start([1, 2, 3, 4])
    hall.quiet()
    hall.call(4)
    hall.quiet()
    assert hall.leads(4) == 0
    asked = hall.group.member(4).timers[ASK]
    hall.enroll()
    assert hall.group.now >= 30.0
    hall.quiet()
    assert hall.leads(4) > 0, "without waiting for its next question"
    assert asked.deadline <= 30.0
