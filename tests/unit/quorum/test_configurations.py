"""Which voters are the present ones: no member's word is enough, and no voter's either."""

from __future__ import annotations

import pytest

from hustings.core.choice import MemberId
from hustings.quorum.config import Electorate
from hustings.quorum.configurations import MAX_STEPS, Configurations
from hustings.quorum.epochs import EPOCH_BITS, epoch_number
from hustings.quorum.layer import MAX_MOVES
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
    NackMsg,
    RecoveryMsg,
    RecoveryStateMsg,
    Sealed,
)
from hustings.quorum.proposer import AGAIN
from hustings.quorum.reconfiguration import IDLE, SEAL
from hustings.quorum.recovery import ENROLL
from tests.unit.quorum.quorum_kit import FIVE, THREE, Hall, replace

NEXT = Electorate(1, (1, 2, 4))
BORN = 1 << EPOCH_BITS | 7
EPOCHS = (BORN, BORN + 1, BORN + 2)
FOUR = Change((1, 2, 4), 4, BORN)
ANOTHER = Change((1, 2, 5), 5, BORN)


class Asked:
    """A member that goes by some voters, has asked them, and hears answers."""

    def __init__(self, electorate: Electorate = THREE) -> None:
        self.known = Configurations(electorate, 30.0, electorate)
        self.known.nonce = 9

    def hear(
        self,
        voter: MemberId,
        change: Change | None,
        at: int | None = None,
        *,
        epochs: tuple[int, ...] = (),
        lease: Lease | None = None,
        nonce: int = 9,
    ) -> ConfInstallMsg | None:
        """A voter says that it has begun with a change, or with epochs that it sealed it."""
        electorate = self.known.electorate
        step = None
        if change is not None:
            step = ConfInstallMsg(electorate.number + 1, change, at or 5, lease, epochs)
        self.known.hear(voter, ConfInfoMsg(electorate.number, electorate.voters, nonce, step))
        return self.known.step()


def test_a_majority_that_has_begun_is_believed() -> None:
    asked = Asked()
    assert asked.hear(1, FOUR) is None
    assert asked.hear(1, FOUR) is None, "one says it twice"
    assert asked.hear(2, FOUR, 7) == ConfInstallMsg(1, FOUR, 7, None)


def test_a_majority_of_five_is_three() -> None:
    asked = Asked(FIVE)
    change = Change((1, 2, 3, 4, 6), 6, BORN)
    assert [asked.hear(voter, change) is None for voter in (1, 2, 3)] == [True, True, False]


def test_a_majority_that_sealed_in_one_round_is_believed() -> None:
    asked = Asked()
    assert asked.hear(1, FOUR, 5, epochs=EPOCHS) is None
    assert asked.hear(2, FOUR, 6, epochs=EPOCHS) is None, "of two rounds none may be decided"
    assert asked.hear(3, FOUR, 6, epochs=EPOCHS) == ConfInstallMsg(1, FOUR, 6, None)


def test_who_has_begun_counts_with_who_sealed() -> None:
    asked = Asked()
    assert asked.hear(1, FOUR, 4, epochs=EPOCHS) is None
    assert asked.hear(3, FOUR, 6) == ConfInstallMsg(1, FOUR, 6, None)


def test_other_changes_do_not_add_up() -> None:
    asked = Asked()
    assert asked.hear(1, FOUR) is None
    assert asked.hear(2, ANOTHER) is None
    assert asked.hear(3, ANOTHER) == ConfInstallMsg(1, ANOTHER, 5, None)


@pytest.mark.parametrize(
    "change",
    [
        Change((1, 4, 5), 4, BORN),
        Change((1, 2, 2), 2, BORN),
        Change((1, 2, 3), 3, BORN),
        Change((1, 2, 4), 2, BORN),
        Change((1, 2), 2, BORN),
        Change((1, 2, 3, 4, 5), 5, BORN),
    ],
    ids=["two at once", "one twice", "nobody", "another newcomer", "fewer", "more"],
)
def test_a_step_that_is_none_is_not_believed_of_all_voters(change: Change) -> None:
    asked = Asked()
    assert [asked.hear(voter, change) for voter in (1, 2, 3)] == [None] * 3


def test_only_the_next_number_is_a_step() -> None:
    known = Asked().known
    for voter in (1, 2, 3):
        install = ConfInstallMsg(2, FOUR, 5, None)
        known.hear(voter, ConfInfoMsg(0, THREE.voters, 9, install))
    assert known.step() is None


def test_who_was_not_asked_is_not_heard() -> None:
    asked = Asked()
    for stranger in (4, 5, 6):
        assert asked.hear(stranger, FOUR) is None
    for voter in (1, 2, 3):
        assert asked.hear(voter, FOUR, nonce=8) is None


def test_a_seal_of_a_life_that_is_over_does_not_count() -> None:
    """1 sealed, lost its disk, and 2 took note of that before it sealed."""
    asked = Asked()
    later = (2 << EPOCH_BITS | 1, *EPOCHS[1:])
    assert asked.hear(1, FOUR, epochs=EPOCHS) is None
    assert asked.hear(2, FOUR, epochs=later) is None
    assert asked.hear(1, FOUR, epochs=EPOCHS) is None, "nor when it comes late"
    assert asked.hear(3, FOUR, epochs=later) is not None


def test_what_is_inherited_is_no_longer_than_the_longest_lease() -> None:
    asked = Asked()
    asked.hear(1, FOUR, lease=Lease(7, 1, 3, 1e12))
    found = asked.hear(2, FOUR)
    assert found is not None
    assert found.lease == Lease(7, 1, 3, 30.0)


def said(
    known: Configurations, voter: MemberId, number: int, voters: tuple[MemberId, ...]
) -> object:
    known.hear(voter, ConfInfoMsg(number, voters, 9))
    return known.jump()


def test_a_majority_names_the_present_voters() -> None:
    known = Asked().known
    assert said(known, 1, 7, (6, 5, 4)) is None
    assert said(known, 2, 6, (4, 5, 6)) is None
    assert said(known, 3, 7, (4, 5, 6)) == Electorate(7, (4, 5, 6))
    assert known.furthest() == 7
    assert known.witnesses(Electorate(7, (4, 5, 6))) == (1, 3)


@pytest.mark.parametrize("voters", [(4, 5), (4, 4, 5), (4, 5, 6, 7, 8)])
def test_present_voters_are_as_many_as_before(voters: tuple[MemberId, ...]) -> None:
    known = Asked().known
    assert [said(known, voter, 7, voters) for voter in (1, 2, 3)] == [None] * 3


def test_former_voters_are_not_the_present_ones() -> None:
    known = Asked(Electorate(3, (1, 2, 3))).known
    assert [said(known, voter, 3, (1, 2, 4)) for voter in (1, 2, 3)] == [None] * 3
    assert [said(known, voter, 2, (1, 2, 4)) for voter in (1, 2, 3)] == [None] * 3


# In a group


def notice(config: int = 1) -> ConfInstallMsg:
    return ConfInstallMsg(config, FOUR, 9, Lease(6, 1, 9, 1e12))


@pytest.mark.parametrize("config", [1, 2, 1 << 62])
@pytest.mark.parametrize("sender", [2, 3, 4, 5])
def test_word_of_later_voters_is_asked_about_and_no_more(sender: MemberId, config: int) -> None:
    hall = Hall(5)
    hall.forge(sender, 1, notice(config))
    assert len(hall.sent(ConfQueryMsg)) == 2
    hall.forge(sender, 1, ConfInfoMsg(config, (1, 2, 4)))
    assert len(hall.sent(ConfQueryMsg)) == 2, "not twice at a time"
    hall.quiet()
    for member in range(1, 6):
        assert hall.of(member).electorate == THREE
        assert hall.of(member).moves == []
    hall.wait(10.0)
    hall.forge(sender, 1, ConfInfoMsg(config, (1, 2, 4)))
    assert len(hall.sent(ConfQueryMsg)) == 2, "but again after a while"


def test_nothing_is_heard_before_a_question() -> None:
    hall = Hall(5)
    for nonce in (1, 2, 7):
        for voter in (1, 2, 3):
            step = ConfInstallMsg(1, FOUR, 9, None)
            hall.forge(voter, 4, ConfInfoMsg(1, FOUR.voters, nonce, step))
    assert hall.of(4).electorate == THREE


@pytest.mark.parametrize("liar", [2, 3])
def test_one_voter_that_lies_moves_nobody(liar: MemberId) -> None:
    hall = Hall(5)
    hall.forge(4, 1, notice())
    question = hall.sent(ConfQueryMsg, liar)[0].message
    assert isinstance(question, ConfQueryMsg)
    lie = ConfInstallMsg(1, FOUR, 9, None)
    hall.forge(liar, 1, ConfInfoMsg(1, FOUR.voters, question.nonce, lie))
    hall.forge(liar, 1, ConfInfoMsg(1, FOUR.voters, question.nonce, lie))
    hall.quiet()
    assert hall.of(1).electorate == THREE


def test_nobody_seals_in_anothers_name() -> None:
    hall = Hall(5)
    for ticket in (0, 7):
        hall.forge(5, 1, ConfPrepareMsg(0, 9, 1))
        hall.forge(5, 1, ConfAcceptMsg(0, 9, 1, FOUR, ticket))
        hall.forge(5, 2, ConfAcceptMsg(0, 9, 1, FOUR, ticket))
    hall.quiet()
    assert hall.of(1).acceptor.sealed is None
    assert hall.of(2).acceptor.sealed is None


def test_a_ticket_is_of_one_round() -> None:
    hall = Hall(5)
    hall.forge(5, 1, ConfPrepareMsg(0, 9, 1))
    given = hall.sent(ConfPromiseMsg, 5)[0].message
    assert isinstance(given, ConfPromiseMsg)
    hall.forge(4, 1, ConfPrepareMsg(0, 10, 1))
    for sender, taken in ((5, 9), (5, 10), (4, 10), (5, 11)):
        hall.forge(sender, 1, ConfAcceptMsg(0, taken, 1, FOUR, given.ticket))
        assert hall.of(1).acceptor.sealed is None
    hall.forge(5, 1, ConfPrepareMsg(0, 11, 1))
    second = hall.sent(ConfPromiseMsg, 5)[-1].message
    assert isinstance(second, ConfPromiseMsg)
    hall.forge(5, 1, ConfPrepareMsg(0, 11, 1))
    again = hall.sent(ConfPromiseMsg, 5)[-1].message
    assert again == second, "who asks twice gets the same"
    hall.forge(5, 1, ConfAcceptMsg(0, 11, 1, FOUR, second.ticket))
    assert hall.of(1).acceptor.sealed == Sealed(11, FOUR)


def test_nobody_ends_anothers_life() -> None:
    """3 has its disk; somebody says in its name that it has lost it."""
    hall = Hall(5)
    before = dict(hall.of(1).acceptor.epochs)
    for born in (2 << EPOCH_BITS | 5, ((1 << 30) - 1) << EPOCH_BITS):
        for proof in (0, 7):
            hall.forge(3, 1, RecoveryMsg(0, born, 7, proof))
    hall.quiet()
    assert hall.of(1).acceptor.epochs == before
    hall.call(5)
    hall.group.crash(2)
    hall.quiet()
    assert hall.leads(5) == 1, "by the votes of 1 and 3"


def test_a_voter_says_what_each_has_given_it_and_is_noted() -> None:
    hall = Hall(5, voters=(1, 2, 3, 4, 5))
    hall.wipe(3)
    hall.deliver(RecoveryMsg, 1)
    hall.deliver(
        RecoveryStateMsg
    )  # it has begun its second life before the others have heard of the first
    hall.quiet()
    born = hall.of(3).recovery.epoch
    assert epoch_number(born) == 2
    assert [hall.of(each).acceptor.epochs[3] for each in (1, 2, 4, 5)] == [born] * 4
    assert [hall.of(each).recovery.challenges for each in (1, 2, 4, 5)] == [{}] * 4


def test_lives_that_nobody_can_have_lived_are_not_noted() -> None:
    hall = Hall(5)
    before = hall.of(1).acceptor.epochs[3]
    hall.forge(3, 1, RecoveryMsg(0, 2 << EPOCH_BITS, 7))
    given = hall.sent(RecoveryStateMsg, 3)[0].message
    assert isinstance(given, RecoveryStateMsg)
    hall.forge(3, 1, RecoveryMsg(0, 66 << EPOCH_BITS, 7, given.challenge))
    assert hall.of(1).acceptor.epochs[3] == before
    hall.forge(3, 1, RecoveryMsg(0, 65 << EPOCH_BITS, 7, given.challenge))
    assert hall.of(1).acceptor.epochs[3] == 65 << EPOCH_BITS


def test_a_lease_that_lasts_for_ever_keeps_no_voter_from_voting() -> None:
    hall = Hall(4)
    hall.wipe(3)
    for _ in range(2):
        hall.deliver(RecoveryMsg)
        hall.deliver(RecoveryStateMsg)
    hall.deliver(RecoveryMsg)
    asked = hall.of(3).recovery
    for voter in (1, 2):
        epochs, lease = hall.of(voter).acceptor.known_epochs(), Lease(4, 1, 1, 1e12)
        born = asked.epoch
        lie = RecoveryStateMsg(0, born, asked.nonce, born, 1, lease, epochs, None, counted=False)
        hall.forge(voter, 3, lie)
    assert not hall.of(3).acceptor.votes
    assert hall.group.member(3).timers[ENROLL].deadline == 16 * 30.0


def test_a_refusal_for_ever_is_one_for_the_longest_lease() -> None:
    hall = Hall(5)
    hall.call(5)
    hall.forge(1, 5, NackMsg(0, 1, 1, 0, Lease(4, 1, 1, 1e12), 1e12))
    assert hall.group.member(5).timers[AGAIN].deadline <= 30.0 + 1.0


def test_the_newcomer_says_how_it_was_born_and_nobody_else() -> None:
    hall = Hall(5)
    replace(hall, 1, 3, 4)
    hall.forge(4, 1, InvitedMsg(0, 1 << 61))
    assert hall.sent(ConfPrepareMsg) == []
    hall.quiet()
    assert hall.of(1).acceptor.epochs[4] == hall.of(4).recovery.epoch


# Catching up


def test_who_was_away_goes_from_step_to_step() -> None:
    """5 slept through three changes; two of the voters that it knew vote no more."""
    hall = Hall(7)
    for old, new in ((3, 4), (2, 3), (4, 6)):
        replace(hall, 1, old, new)
        hall.quiet(but=(5,))
    present = Electorate(3, (1, 3, 6))
    assert hall.of(1).electorate == present
    assert hall.of(2).electorate == present, "who is up has heard of it"
    hall.forge(1, 5, ConfInfoMsg(1, (1, 2, 4)))
    hall.quiet()
    assert hall.of(5).electorate == present
    assert [move.electorate.number for move in hall.of(5).take_moves()] == [1, 2, 3]
    assert hall.of(5).take_moves() == []
    hall.call(5)
    hall.quiet()
    assert hall.leads(5) > 0


def test_a_voter_that_was_away_for_several_changes_votes_again() -> None:
    hall = Hall(6)
    for old, new in ((3, 4), (4, 5)):
        replace(hall, 1, old, new)
        hall.quiet(but=(2,))
    assert hall.of(2).electorate == THREE
    hall.forge(1, 2, ConfInfoMsg(2, (1, 2, 5)))
    hall.quiet()
    assert hall.of(2).electorate == Electorate(2, (1, 2, 5))
    assert hall.of(2).acceptor.votes, "it was told how each began"
    assert epoch_number(hall.of(2).recovery.epoch) == 1


def test_where_the_steps_are_forgotten_a_voter_begins_another_life() -> None:
    hall = Hall(6)
    for old, new in ((3, 4), (4, 5)):
        replace(hall, 1, old, new)
        hall.quiet(but=(2,))
    for each in (1, 3):
        hall.of(each).configurations.steps = {}
    hall.forge(1, 2, ConfInfoMsg(2, (1, 2, 5)))
    hall.quiet()
    assert hall.of(2).electorate == Electorate(2, (1, 2, 5))
    assert not hall.of(2).acceptor.votes
    assert epoch_number(hall.of(2).recovery.epoch) == 2
    hall.group.fire(2, ENROLL)
    hall.quiet()
    assert hall.of(2).acceptor.votes


def test_if_most_of_the_voters_that_one_knows_are_gone_nobody_is_believed() -> None:
    hall = Hall(7)
    for old, new in ((3, 4), (2, 6)):
        replace(hall, 1, old, new)
        hall.quiet(but=(5,))
    hall.group.crash(2)
    hall.group.crash(3)
    hall.forge(1, 5, ConfInfoMsg(2, (1, 4, 6)))
    hall.quiet()
    assert hall.of(5).electorate == THREE, "1 alone may lie"
    assert hall.of(5).configurations.nonce, "which is to be seen"


def test_a_member_that_was_started_with_the_new_names_finds_the_group() -> None:
    """It has no state, and takes the present voters for those that the group began with."""
    hall = Hall(6)
    for old, new in ((3, 4), (2, 6)):
        replace(hall, 1, old, new)
        hall.quiet(but=(5,))
    named = Electorate(0, (1, 4, 6))
    newcomer = hall.of(5)
    newcomer._go_by(named)
    newcomer.configurations.electorate = named
    hall.call(5)
    hall.quiet()
    assert newcomer.electorate == Electorate(2, (1, 4, 6))
    hall.group.fire(5, AGAIN)  # it did not know how far rounds are
    hall.quiet()
    assert hall.leads(5) > 0


def test_steps_are_remembered_across_restarts_and_not_without_bound() -> None:
    hall = Hall(4)
    out = 3
    for number in range(1, MAX_STEPS + 3):
        new = 3 if out == 4 else 4
        replace(hall, 1, out, new)
        hall.quiet()
        assert hall.of(1).electorate.number == number
        out = new
    hall.group.crash(1)
    moves = hall.of(1).moves
    assert [move.electorate.number for move in moves][-1] == MAX_STEPS + 2
    assert len(moves) == MAX_MOVES
    hall.group.restart(1)
    steps = hall.of(1).configurations.steps
    assert sorted(steps) == list(range(3, MAX_STEPS + 3))
    assert hall.of(1).electorate.number == MAX_STEPS + 2


def test_who_has_forgotten_what_it_sealed_is_no_witness() -> None:
    """Two sealed, one of them lost its disk and was told: one that sealed is left."""
    hall = Hall(5)
    replace(hall, 1, 3, 4)
    for kind in (InviteMsg, InvitedMsg, ConfPrepareMsg, ConfPromiseMsg):
        hall.deliver(kind)
    hall.drop(ConfAcceptMsg, 3)
    hall.deliver(ConfAcceptMsg)
    hall.drop(ConfAcceptedMsg)
    hall.of(1).reconfiguration.phase = IDLE
    hall.wipe(2)
    hall.quiet()
    hall.group.fire(2, ENROLL)
    hall.group.member(1).timers.pop(SEAL, None)
    sealed = hall.of(2).acceptor.sealed
    assert hall.of(2).acceptor.votes
    assert sealed is not None
    assert sealed.told
    hall.group.flight.clear()
    hall.forge(1, 3, notice())
    hall.deliver(ConfQueryMsg)
    hall.deliver(ConfInfoMsg)
    assert hall.of(3).electorate == THREE
    hall.group.crash(2)
    hall.group.restart(2)
    again = hall.of(2).acceptor.sealed
    assert again is not None
    assert again.told, "nor after a restart"


def test_who_tells_of_a_change_hears_when_it_is_known() -> None:
    hall = Hall(5)
    replace(hall, 1, 3, 4)
    hall.quiet(but=(5,))
    hall.forge(1, 5, notice())
    hall.deliver(ConfQueryMsg)
    assert hall.sent(ConfInstalledMsg) == []
    hall.deliver(ConfInfoMsg, 5)
    assert [each.to for each in hall.sent(ConfInstalledMsg)] == [1]
    assert hall.of(5).announcer is None
    hall.group.flight.clear()
    hall.forge(2, 5, notice())
    assert [each.to for each in hall.sent(ConfInstalledMsg)] == [2], (
        "and at once if it is known already"
    )


def test_voters_without_a_disk_are_never_others() -> None:
    hall = Hall(5, durable=False)
    for kind in (notice(), ConfInfoMsg(1, (1, 2, 4)), ConfQueryMsg(0, 7), ConfQueryMsg(1, 7)):
        hall.forge(2, 1, kind)
    assert hall.group.flight == []
