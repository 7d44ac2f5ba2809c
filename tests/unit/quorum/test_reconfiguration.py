"""One voter in the place of another: one successor, and nothing is forgotten on the way."""

from __future__ import annotations

import pytest

from hustings.core.choice import MemberId
from hustings.core.context import Context
from hustings.core.errors import BadInput
from hustings.core.outcome import Elected
from hustings.layers.lease import ASK
from hustings.quorum import configurations
from hustings.quorum.config import Electorate
from hustings.quorum.epochs import epoch_number
from hustings.quorum.messages import (
    Change,
    ConfAcceptedMsg,
    ConfAcceptMsg,
    ConfInfoMsg,
    ConfInstalledMsg,
    ConfInstallMsg,
    ConfPrepareMsg,
    ConfPromiseMsg,
    ConfQueryMsg,
    InvitedMsg,
    InviteMsg,
    Lease,
    PrepareMsg,
)
from hustings.quorum.reconfiguration import IDLE, SEAL
from hustings.quorum.recovery import ENROLL
from tests.unit.quorum.quorum_kit import THREE, Hall, act, kinds, replace

NEXT = Electorate(1, (1, 2, 4))


@pytest.mark.parametrize("by", [1, 3, 4, 5])
def test_anybody_may_begin_it(by: MemberId) -> None:
    hall = Hall(5)
    replace(hall, by, 3, 4)
    hall.quiet()
    for each in (1, 2, 3, 4):
        assert hall.of(each).electorate == NEXT
    assert [hall.of(each).acceptor.votes for each in (1, 2, 3, 4)] == [True, True, False, True]
    hall.call(5)
    hall.quiet()
    assert hall.leads(5) > 0, "who did not know is told, and asks the new ones"
    assert hall.of(5).electorate == NEXT


def test_a_voter_that_is_gone_is_replaced() -> None:
    hall = Hall(4)
    hall.group.crash(3)
    replace(hall, 1, 3, 4)
    hall.quiet()
    assert [hall.of(each).electorate for each in (1, 2, 4)] == [NEXT] * 3


def test_without_a_majority_nothing_changes() -> None:
    hall = Hall(4)
    hall.group.crash(2)
    hall.group.crash(3)
    replace(hall, 1, 3, 4)
    hall.quiet()
    assert hall.of(1).electorate == THREE
    assert hall.of(1).acceptor.sealed is None


def test_the_holder_keeps_its_token_across_a_change() -> None:
    hall = Hall(5)
    hall.call(5)
    hall.quiet()
    replace(hall, 5, 3, 4)
    hall.quiet()
    assert hall.leads(5) == 1
    lease = hall.of(4).acceptor.lease
    assert lease == Lease(5, 1, 1, 30.0), "the newcomer holds it, too"
    hall.group.fire(5, ASK)
    hall.quiet()
    assert hall.leads(5) == 1
    assert hall.of(4).acceptor.is_leased(hall.group.now)


def test_nobody_else_is_granted_what_was_held_before() -> None:
    hall = Hall(6)
    hall.call(5)
    hall.quiet()
    replace(hall, 1, 3, 4)
    hall.quiet()
    hall.call(6)
    hall.quiet()
    assert (hall.leads(5), hall.leads(6)) == (1, 0)


@pytest.mark.parametrize("old, new", [(4, 5), (1, 2), (9, 4)])
def test_what_replaces_nobody_is_refused(old: MemberId, new: MemberId) -> None:
    hall = Hall(5)
    with pytest.raises(BadInput, match="must be one of the voters"):
        replace(hall, 1, old, new)


def test_voters_without_a_disk_are_not_replaced() -> None:
    hall = Hall(4, durable=False)
    with pytest.raises(BadInput, match="without a disk"):
        replace(hall, 1, 3, 4)


# One successor


def sealed_by(hall: Hall, *voters: MemberId) -> None:
    """1 wants 4 for 3, and only these voters have sealed it when 1 is gone."""
    replace(hall, 1, 3, 4)
    hall.deliver(InviteMsg)
    hall.deliver(InvitedMsg)
    hall.deliver(ConfPrepareMsg)
    hall.deliver(ConfPromiseMsg)
    for voter in (2, 3):
        (hall.deliver if voter in voters else hall.drop)(ConfAcceptMsg, voter)
    hall.drop(ConfAcceptedMsg)
    hall.group.crash(1)


def test_who_sealed_votes_no_more() -> None:
    hall = Hall(5)
    sealed_by(hall, 2)
    assert hall.group.member(2).deliver(5, PrepareMsg(0, 9, 1)) == []
    assert kinds(hall.group.member(3).deliver(5, PrepareMsg(0, 9, 1))) == ["Q-PROMISE"]
    hall.group.crash(2)
    hall.group.restart(2)
    assert hall.group.member(2).deliver(5, PrepareMsg(0, 9, 1)) == [], "nor after a restart"


def test_who_sealed_brings_it_to_its_end() -> None:
    hall = Hall(5)
    sealed_by(hall, 2)
    hall.group.fire(2, SEAL)
    hall.quiet()
    assert [hall.of(each).electorate for each in (2, 3, 4)] == [NEXT] * 3
    assert hall.of(2).reconfiguration.phase != IDLE, "1 has yet to hear of it"
    hall.group.restart(1)
    hall.group.fire(2, SEAL)
    hall.quiet()
    assert hall.of(1).electorate == NEXT
    assert hall.of(2).reconfiguration.phase == IDLE


def test_whoever_comes_after_a_majority_sealed_seals_the_same() -> None:
    hall = Hall(5)
    sealed_by(hall, 2, 3)
    replace(hall, 5, 2, 5)
    hall.quiet()  # it learns how far the rounds are
    hall.group.fire(5, SEAL)
    hall.quiet()
    for each in (2, 3, 4, 5):
        assert hall.of(each).electorate == NEXT, "not what 5 wanted"


def test_a_voter_that_forgot_what_it_sealed_is_told() -> None:
    hall = Hall(5)
    sealed_by(hall, 2, 3)
    hall.group.restart(1)  # it had sealed, too, and has its disk
    hall.wipe(3)
    hall.quiet()
    hall.group.fire(3, ENROLL)
    assert hall.of(3).acceptor.votes
    assert hall.of(3).acceptor.sealed is not None
    assert hall.group.member(3).deliver(5, PrepareMsg(0, 9, 1)) == []


def test_a_seal_that_changes_more_than_one_is_not_sealed() -> None:
    hall = Hall(6)
    for voters in ((1, 4, 5), (1, 2, 3), (1, 2), (1, 2, 3, 4, 5)):
        seal = ConfAcceptMsg(0, 9, 1, Change(voters, voters[-1], 7))
        assert hall.group.member(1).deliver(6, seal) == []
    other = ConfAcceptMsg(0, 9, 1, Change((1, 2, 4), 3, 7))
    assert hall.group.member(1).deliver(6, other) == []
    assert hall.of(1).acceptor.sealed is None


# Beginning


def test_a_voter_that_missed_the_change_begins_with_the_others() -> None:
    hall = Hall(5)
    replace(hall, 1, 3, 4)
    hall.quiet(but=(2,))
    assert hall.of(2).electorate == THREE
    hall.forge(5, 2, ConfInfoMsg(1, (1, 2, 4)))
    assert hall.of(2).electorate == THREE, "not by hearsay"
    assert hall.drop(ConfQueryMsg) == 2
    hall.group.fire(1, SEAL)
    hall.quiet()
    assert hall.of(2).electorate == NEXT
    assert hall.of(2).acceptor.votes


def test_the_newcomer_is_seated_once() -> None:
    """It votes, loses its disk, and hears of its seat again."""
    hall = Hall(5)
    replace(hall, 1, 3, 4)
    for kind in (
        InviteMsg,
        InvitedMsg,
        ConfPrepareMsg,
        ConfPromiseMsg,
        ConfAcceptMsg,
        ConfAcceptedMsg,
    ):
        hall.deliver(kind)
    late = hall.sent(ConfInstallMsg, 4)[0].message
    hall.quiet()
    assert hall.of(4).acceptor.votes
    hall.wipe(4)
    hall.forge(1, 4, late)
    hall.quiet()
    assert hall.of(4).electorate == NEXT
    assert not hall.of(4).acceptor.votes
    assert epoch_number(hall.of(4).recovery.epoch) == 2


def test_who_is_replaced_while_it_finds_out_whether_it_votes_does_not() -> None:
    hall = Hall(4)
    hall.wipe(3)
    hall.quiet()
    assert not hall.of(3).acceptor.votes
    replace(hall, 1, 3, 4)
    hall.quiet()
    assert hall.of(3).electorate == NEXT
    assert ENROLL not in hall.group.member(3).timers
    late = ConfInstallMsg(2, Change((1, 3, 4), 2, 7), 9, None)
    hall.forge(1, 3, late)
    hall.quiet()
    assert not hall.of(3).acceptor.votes, "nor is it taken for one that voted"


def test_who_was_replaced_and_comes_back_votes_again() -> None:
    hall = Hall(4)
    replace(hall, 1, 3, 4)
    hall.quiet()
    replace(hall, 1, 4, 3)
    hall.quiet()
    assert [hall.of(each).electorate for each in (1, 2, 3, 4)] == [Electorate(2, (1, 2, 3))] * 4
    assert [hall.of(each).acceptor.votes for each in (1, 2, 3, 4)] == [True, True, True, False]
    hall.call(4)
    hall.quiet()
    assert isinstance(hall.group.member(1).outcome, Elected)


def test_the_last_configuration_survives_a_restart() -> None:
    hall = Hall(4)
    replace(hall, 1, 3, 4)
    hall.quiet()
    for each in (1, 2, 3, 4):
        hall.group.crash(each)
        hall.group.restart(each)
        assert hall.of(each).electorate == NEXT
    assert [hall.of(each).acceptor.votes for each in (1, 2, 3, 4)] == [True, True, False, True]


# What the next voters inherit


def inherited(*leases: Lease | None) -> Lease | None:
    return configurations.inherited(list(leases), 30.0)


def test_one_lease_that_lives_is_held_on_to() -> None:
    assert inherited(Lease(5, 1, 7, 9.0), None) == Lease(5, 1, 7, 9.0)
    assert inherited(Lease(5, 1, 7, 9.0), Lease(4, 1, 3, 0.0)) == Lease(5, 1, 7, 9.0)


def test_what_is_over_leaves_its_token() -> None:
    assert inherited(None, None) is None
    assert inherited(Lease(4, 1, 3, 0.0), Lease(5, 1, 7, 0.0)) == Lease(5, 1, 7, 0.0)


@pytest.mark.parametrize(
    "leases",
    [
        (Lease(5, 1, 7, 9.0), Lease(4, 1, 8, 9.0)),
        (Lease(5, 1, 7, 9.0), Lease(4, 1, 8, 0.0)),
    ],
    ids=["two live", "a higher token is over"],
)
def test_if_it_cannot_be_told_who_holds_all_wait(leases: tuple[Lease, ...]) -> None:
    assert inherited(*leases) == Lease(0, 0, 8, 30.0)


def test_answers_of_strangers_do_not_count() -> None:
    hall = Hall(6)
    replace(hall, 1, 3, 4)
    asked = hall.of(1).reconfiguration
    hall.group.member(1).deliver(6, InvitedMsg(0, 7))
    assert asked.round == 0

    def hear(ctx: Context) -> None:
        asked.phase, asked.round = "surveying", 5
        for stranger in (4, 5, 6):
            asked.on_surveyed(ctx, stranger, ConfPromiseMsg(0, 5, 1, (0, 0, 0), None))
        asked.phase = "installing"
        asked.install = ConfInstallMsg(1, Change((1, 2, 4), 4, 7), 5, None)
        for stranger in (5, 6):
            asked.on_installed(ctx, stranger, ConfInstalledMsg(1))

    act(hall, 1, hear)
    assert (asked.surveys, asked.installed) == ({}, {})
