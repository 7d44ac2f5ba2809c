"""What voters keep, take over and hand on; and a group that begins with a leader."""

from __future__ import annotations

import msgspec
import pytest

from hustings.core.choice import Candidate, HighestId, MemberId
from hustings.core.context import Context
from hustings.quorum.config import Electorate
from hustings.quorum.election import STAND, Quorum, QuorumElectionConfig
from hustings.quorum.epochs import EPOCH_BITS, EpochCheck, epoch_number
from hustings.quorum.messages import (
    Ballot,
    Change,
    ConfAcceptedMsg,
    ConfAcceptMsg,
    ConfInfoMsg,
    ConfInstalledMsg,
    ConfPrepareMsg,
    ConfPromiseMsg,
    InvitedMsg,
    InviteMsg,
    Lease,
    NackMsg,
    PrepareMsg,
    PromiseMsg,
    RecoveryMsg,
    RecoveryStateMsg,
    ReleaseMsg,
    Sealed,
)
from hustings.quorum.proposer import AGAIN
from hustings.quorum.reconfiguration import IDLE, INSTALLING, MAX_TRIES, SEAL, Reconfiguration
from hustings.quorum.recovery import ENROLL
from hustings.testing.scripted_group import ScriptedGroup
from tests.unit.quorum.quorum_kit import THREE, Hall, act, kinds, replace


def born(number: int, bits: int = 1) -> int:
    return number << EPOCH_BITS | bits


FOUR = Change((1, 2, 4), 4, born(1))
OTHER = Change((1, 2, 5), 5, born(1))


# A group that begins with a leader


def led_by(leader: MemberId) -> ScriptedGroup:
    config = QuorumElectionConfig(voters=3, ttl=30.0)
    group = ScriptedGroup(
        lambda: Quorum(config, HighestId()),
        [Candidate(each) for each in range(1, 5)],
        leader=leader,
    )
    group.start([1, 2, 3, 4])
    return group


def of(group: ScriptedGroup, member: MemberId) -> Quorum:
    election = group.member(member).election
    assert isinstance(election, Quorum)
    return election


@pytest.mark.parametrize("leader", [1, 4])
def test_voters_have_leased_the_lead_to_whom_the_group_begins_with(leader: MemberId) -> None:
    group = led_by(leader)
    group.flight.clear()
    for voter in (2, 3):
        it = of(group, voter).acceptor
        assert it.votes
        assert it.promised == Ballot(1, leader, 1)
        assert it.lease == Lease(leader, 1, 1, 30.0)
        assert it.until == 30.0
    for member in (1, 2, 3, 4):
        assert of(group, member).leader == (leader if member != leader else None), "it asks first"
        assert (STAND in group.member(member).timers) == (member != leader)
        assert of(group, member).proposer.highest == 1 + (member == leader)
    group.crash(2)
    group.restart(2)
    it = of(group, 2).acceptor
    assert it.votes, "and they have stored it"
    assert (it.promised, it.lease) == (Ballot(1, leader, 1), Lease(leader, 1, 1, 30.0))


@pytest.mark.parametrize("leader", [1, 4])
def test_whom_a_group_begins_with_leads_on_with_its_token(leader: MemberId) -> None:
    group = led_by(leader)
    for _ in range(200):
        if not group.flight:
            break
        group.deliver(group.flight[0])
    assert of(group, leader).inner.until is not None
    for member in (1, 2, 3, 4):
        assert (of(group, member).leader, of(group, member).term) == (leader, 1)


# What is stored


def test_what_was_found_when_all_began_survives_a_restart() -> None:
    hall = Hall(4)
    epochs = dict(hall.of(1).acceptor.epochs)
    founders = {each: hall.of(each).recovery.epoch for each in (1, 2, 3)}
    assert epochs == founders
    hall.group.crash(1)
    hall.group.restart(1)
    assert hall.of(1).acceptor.epochs == epochs
    founder = next(each for each in (1, 2, 3) if hall.of(each).recovery.founders)
    hall.group.crash(founder)
    hall.group.restart(founder)
    assert hall.of(founder).recovery.founders == founders


def resumed(answers: dict[MemberId, RecoveryStateMsg]) -> Hall:
    """Voter 3 of five has lost its disk, and hears these from others about itself."""
    hall = Hall(8, voters=(1, 2, 3, 4, 5))
    hall.wipe(3)
    hall.quiet()
    asked = hall.of(3).recovery
    asked.known = {}
    for voter, answer in answers.items():
        said = msgspec.structs.replace(
            answer, epoch=asked.epoch, nonce=asked.nonce, listed=asked.epoch
        )
        hall.forge(voter, 3, said)
    return hall


def known(
    epochs: tuple[int, ...], promised: int, lease: Lease | None, sealed: Sealed | None
) -> RecoveryStateMsg:
    return RecoveryStateMsg(0, 0, 0, 0, promised, lease, epochs, sealed, counted=False)


def test_who_has_forgotten_takes_over_the_latest_that_others_tell() -> None:
    one, other = (born(1),) * 5, (born(1), born(1), born(1), born(1), born(3))
    hall = resumed(
        {
            1: known(one, 4, Lease(6, 1, 4, 9.0), Sealed(4, FOUR)),
            2: known(other, 9, Lease(7, 2, 9, 8.0), Sealed(9, OTHER)),
            4: known(one, 6, None, None),
        }
    )
    hall.group.fire(3, ENROLL)
    for _ in range(2):
        voter = hall.of(3).acceptor
        assert voter.votes
        assert voter.promised == Ballot(9, 0, 0)
        assert voter.lease == Lease(7, 2, 9, 0.0)
        assert voter.sealed == Sealed(9, OTHER, told=True)
        assert epoch_number(voter.epochs[5]) == 3
        assert epoch_number(voter.epochs[3]) == 2
        hall.group.crash(3)
        hall.group.restart(3)


def test_answers_about_other_voters_than_these_do_not_count() -> None:
    short = (born(1),) * 4
    hall = resumed({each: known(short, 1, None, None) for each in (1, 2, 4)})
    assert hall.of(3).recovery.known == {}


def test_who_does_not_vote_knows_nothing() -> None:
    epochs = (born(1),) * 5
    hall = resumed({each: known(epochs, 1, None, None) for each in (6, 7, 8)})
    assert hall.of(3).recovery.known == {}


def test_another_life_asks_as_soon_as_the_first_one() -> None:
    hall = Hall(3)
    hall.wipe(3)
    for _ in range(4):  # nobody hears it
        hall.drop(RecoveryMsg)
        hall.group.fire(3, ENROLL)
    timer = hall.group.member(3).timers[ENROLL]
    patience = hall.of(3).recovery.patience
    assert timer.deadline - timer.since == 16 * patience
    hall.deliver(RecoveryMsg, 1)
    hall.deliver(RecoveryStateMsg)
    timer = hall.group.member(3).timers[ENROLL]
    assert epoch_number(hall.of(3).recovery.epoch) == 2
    assert timer.deadline - timer.since == patience


def test_a_life_that_others_know_to_be_over_is_over_whatever_its_number() -> None:
    """2 has a life of the same number on its roster: another one must follow."""
    hall = Hall(3)
    hall.wipe(3)
    hall.quiet()
    asked = hall.of(3).recovery
    assert epoch_number(asked.epoch) == 2
    epochs = hall.of(1).acceptor.known_epochs()
    lie = RecoveryStateMsg(
        0, asked.epoch, asked.nonce, born(2, 99), 1, None, epochs, None, counted=False
    )
    hall.forge(1, 3, lie)
    assert epoch_number(asked.epoch) == 3


def test_every_number_that_is_sent_can_be_read() -> None:
    hall = Hall(5)
    replace(hall, 1, 3, 4)
    seen = set()
    for step in range(400):
        if not hall.group.flight and step > 300:
            break
        if not hall.group.flight:
            hall.wipe(2)
            hall.call(5)
        first = hall.group.flight[0]
        data = msgspec.msgpack.encode(first.message)
        assert msgspec.msgpack.decode(data, type=type(first.message)) == first.message
        seen.add(type(first.message))
        hall.group.deliver(first)
    assert {
        RecoveryMsg,
        RecoveryStateMsg,
        InviteMsg,
        ConfPromiseMsg,
        ConfAcceptMsg,
        ConfInfoMsg,
    } <= seen


def test_who_is_replaced_has_no_excuse_for_not_voting() -> None:
    hall = Hall(4)
    replace(hall, 1, 3, 4)
    hall.quiet()
    assert hall.of(3).recovery.state() == "does not vote"
    assert hall.of(3).recovery.excuse(0.0) == "does not vote"
    hall.group.crash(3)
    hall.group.restart(3)
    assert not hall.of(3).acceptor.votes


def test_a_vote_of_another_life_takes_the_place_of_the_first() -> None:
    lives = EpochCheck()
    assert lives.admit(THREE, 1, (born(1), 0, 0)) == []
    assert lives.admit(THREE, 1, (born(1), 0, 0)) == []
    assert lives.admit(THREE, 1, (born(2), 0, 0)) == [1]
    assert lives.admit(THREE, 1, (born(1), 0, 0)) is None


# Who is behind


@pytest.mark.parametrize(
    "question",
    [
        PrepareMsg(0, 9, 1),
        ReleaseMsg(0, 9, 1, 9, None),
        RecoveryMsg(0, born(1), 7),
        InviteMsg(0, 7),
        ConfPrepareMsg(0, 9, 1),
        ConfAcceptMsg(0, 9, 1, FOUR, 7),
        ConfInfoMsg(0, (1, 2, 3)),
    ],
    ids=lambda question: type(question).__name__,
)
def test_who_is_behind_is_told(question: ConfInfoMsg) -> None:
    hall = Hall(5)
    replace(hall, 1, 3, 4)
    hall.quiet()
    hall.forge(5, 1, question)
    assert [each.message for each in hall.group.flight] == [ConfInfoMsg(1, (1, 2, 4))]
    assert hall.of(1).acceptor.waiting == {}, "who asks in vain for that reason asks anew"


def test_who_votes_is_not_invited() -> None:
    hall = Hall(5)
    hall.forge(5, 1, InviteMsg(0, 7))
    assert hall.group.flight == []
    hall.forge(5, 4, InviteMsg(0, 7))
    epoch = hall.of(4).recovery.epoch
    assert [each.message for each in hall.group.flight] == [InvitedMsg(0, epoch, 7)]
    bare = Hall(5, durable=False)
    bare.forge(5, 4, InviteMsg(0, 7))
    assert bare.group.flight == []


def test_who_consults_the_guard_is_heard() -> None:
    hall = Hall(3)
    seen: list[Context] = []
    act(hall, 1, lambda ctx: hall.of(1).run_at(ctx, hall.of(1).inner.inner, seen.append))
    assert len(seen) == 1


# A change under way


def test_a_change_that_nobody_answers_is_left_after_some_tries() -> None:
    hall = Hall(4)
    patience = hall.of(1).inner.lease.patience
    replace(hall, 1, 3, 4)
    for tries in range(MAX_TRIES):
        assert hall.drop(InviteMsg) == 1
        timer = hall.group.member(1).timers[SEAL]
        pause = timer.deadline - timer.since
        doubled = patience * 2 ** min(tries, 5)
        assert doubled <= pause <= 2 * doubled
        assert hall.of(1).reconfiguration.phase != IDLE
        hall.group.fire(1, SEAL)
    assert hall.of(1).reconfiguration.phase == IDLE
    assert hall.group.flight == []
    assert SEAL not in hall.group.member(1).timers


def test_a_change_that_others_have_brought_to_an_end_is_over() -> None:
    hall = Hall(6)
    replace(hall, 1, 3, 4)
    hall.drop(InviteMsg)
    replace(hall, 2, 3, 5)
    hall.quiet()
    assert hall.of(1).electorate == Electorate(1, (1, 2, 5))
    assert hall.of(1).reconfiguration.phase == IDLE
    assert SEAL not in hall.group.member(1).timers


def surveying(hall: Hall) -> Reconfiguration:
    replace(hall, 1, 3, 6)
    hall.deliver(InviteMsg)
    hall.deliver(InvitedMsg)
    hall.group.flight.clear()
    return hall.of(1).reconfiguration


def test_what_was_sealed_in_the_highest_round_is_sealed_again() -> None:
    hall = Hall(6, voters=(1, 2, 3, 4, 5))
    asked = surveying(hall)
    epochs = hall.of(1).acceptor.known_epochs()
    low, high = Change((1, 2, 3, 4, 7), 7, 5), Change((1, 2, 3, 4, 8), 8, 5)
    said = {2: Sealed(1, low), 3: Sealed(2, high)}
    for voter, sealed in said.items():
        hall.forge(voter, 1, ConfPromiseMsg(0, asked.round, 1, epochs, sealed, voter))
    assert {each.to: each.message for each in hall.sent(ConfAcceptMsg)} == {
        voter: ConfAcceptMsg(0, asked.round, 1, high, voter) for voter in said
    }, "and its own voter has sealed it already"
    hall.forge(4, 1, ConfPromiseMsg(0, asked.round, 1, epochs, None, 44))
    assert hall.sent(ConfAcceptMsg, 4)[0].message == ConfAcceptMsg(0, asked.round, 1, high, 44)


def test_answers_of_lives_that_are_over_change_no_voters() -> None:
    hall = Hall(6, voters=(1, 2, 3, 4, 5))
    asked = surveying(hall)
    epochs = hall.of(1).acceptor.known_epochs()
    later = (epochs[0], born(2), *epochs[2:])
    hall.forge(2, 1, ConfPromiseMsg(0, asked.round, 1, epochs, None, 1))
    hall.forge(3, 1, ConfPromiseMsg(0, asked.round, 1, later, None, 1))
    assert sorted(asked.surveys) == [1, 3], "3 knows that 2 had lost its disk"
    hall.forge(2, 1, ConfPromiseMsg(0, asked.round, 1, epochs, None, 1))
    assert sorted(asked.surveys) == [1, 3]
    hall.forge(4, 1, ConfPromiseMsg(0, asked.round, 1, later, None, 1))
    assert asked.phase == "sealing"
    hall.forge(3, 1, ConfAcceptedMsg(0, asked.round, 1, later))
    hall.forge(2, 1, ConfAcceptedMsg(0, asked.round, 1, epochs))
    assert sorted(asked.seals) == [1, 3]
    assert asked.phase == "sealing"
    hall.forge(4, 1, ConfAcceptedMsg(0, asked.round, 1, later))
    assert asked.phase == INSTALLING
    assert asked.tries == 1


def test_who_knows_of_an_older_change_has_yet_to_hear_of_this_one() -> None:
    hall = Hall(6)
    replace(hall, 1, 3, 4)
    hall.quiet(but=(2,))
    asked = hall.of(1).reconfiguration
    assert asked.phase == INSTALLING
    hall.forge(2, 1, ConfInstalledMsg(0))
    assert 2 not in asked.installed
    hall.forge(2, 1, ConfInstalledMsg(2))
    assert asked.phase == IDLE
    assert SEAL not in hall.group.member(1).timers


def test_a_seal_that_comes_twice_is_stored_once() -> None:
    hall = Hall(5)
    hall.forge(5, 2, ConfPrepareMsg(0, 9, 1))
    given = hall.sent(ConfPromiseMsg, 5)[0].message
    assert isinstance(given, ConfPromiseMsg)
    seal = ConfAcceptMsg(0, 9, 1, FOUR, given.ticket)
    member = hall.group.member(2)
    stores = ["quorum-sealed" in str(member.deliver(5, seal)) for _ in range(2)]
    assert stores == [True, False]
    assert kinds(member.deliver(5, seal)) == ["Q-CONF-ACCEPTED"]


def test_a_voter_of_the_next_configuration_knows_all_births_of_it() -> None:
    hall = Hall(5)
    replace(hall, 1, 3, 4)
    hall.quiet()
    epochs = {each: hall.of(each).recovery.epoch for each in (1, 2, 4)}
    assert hall.of(1).acceptor.epochs == epochs
    hall.forge(5, 4, PrepareMsg(1, 99, 1))
    promise = hall.sent(PromiseMsg, 5)[0].message
    assert isinstance(promise, PromiseMsg)
    assert promise.epochs == (0, 0, epochs[4]), "and the newcomer knows its own"


# Times


def test_who_was_outdone_lets_the_other_come_to_its_end() -> None:
    hall = Hall(5)
    hall.call(5)
    hall.group.flight.clear()
    for longest in (2.0, 8.0, 32.0):
        for voter in (1, 2):
            taken = hall.of(5).proposer.round
            hall.forge(voter, 5, NackMsg(0, taken, 1, taken, None, 0.0))
        timer = hall.group.member(5).timers[AGAIN]
        assert 2.0 <= timer.deadline - timer.since <= 2.0 + longest
        assert hall.of(5).proposer.resting
        hall.group.fire(5, AGAIN)
        assert hall.sent(PrepareMsg) != [], "and asks again"
        hall.group.flight.clear()


def test_who_holds_the_lease_is_not_woken() -> None:
    hall = Hall(5)
    hall.call(5)
    hall.quiet()
    petition = hall.of(5).proposer
    before = petition.state()
    act(hall, 5, petition.again)
    assert petition.state() == before
    assert petition.outbox == []


def test_who_sealed_waits_long_before_it_finishes_the_change_itself() -> None:
    hall = Hall(5)
    hall.forge(5, 2, ConfPrepareMsg(0, 9, 1))
    given = hall.sent(ConfPromiseMsg, 5)[0].message
    assert isinstance(given, ConfPromiseMsg)
    hall.forge(5, 2, ConfAcceptMsg(0, 9, 1, FOUR, given.ticket))
    timer, patience = hall.group.member(2).timers[SEAL], hall.of(2).inner.lease.patience
    assert 8 * patience <= timer.deadline - timer.since <= 16 * patience
