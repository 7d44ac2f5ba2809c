"""Voters without memory: new ones, ones that lost their disks, and ones that keep nothing."""

from __future__ import annotations

import pytest

from hustings.core.choice import Candidate, HighestId
from hustings.core.errors import BadInput
from hustings.layers.lease import ASK, LeaseLayer
from hustings.quorum import QuorumConfig, QuorumLeaseLayer
from hustings.quorum.election import Quorum, QuorumElectionConfig
from hustings.quorum.epochs import epoch_number
from hustings.quorum.messages import (
    AcceptedMsg,
    AcceptMsg,
    PrepareMsg,
    RecoveryEmptyMsg,
    RecoveryMsg,
    RecoveryStateMsg,
)
from hustings.quorum.proposer import AGAIN
from hustings.quorum.recovery import ENROLL, AcceptorRecovery
from hustings.testing.scripted_group import ScriptedGroup
from tests.unit.quorum.quorum_kit import LEASE, Hall, eager


def test_a_new_voter_votes_nothing_until_all_have_answered() -> None:
    hall = Hall(start=False)
    hall.group.start([1, 2])
    hall.quiet()
    hall.wait(100.0)
    assert not hall.of(1).acceptor.votes
    assert "does not vote yet: 1 of the 2 other" in hall.of(1).state()
    member = hall.group.member(1)
    assert member.deliver(2, PrepareMsg(0, 1, 1)) == []
    hall.group.start([3])
    hall.quiet()
    for other in (1, 2):
        hall.group.fire(other, ENROLL)
        hall.quiet()
    assert [hall.of(each).acceptor.votes for each in (1, 2, 3)] == [True, True, False]
    hall.group.fire(3, ENROLL)
    assert hall.group.now == 130.0, "who has just come waits by itself"
    hall.quiet()
    assert hall.of(3).acceptor.votes


def test_an_electorate_without_memory_waits_one_longest_lease() -> None:
    """Somebody cut off may hold what all of them granted before they lost their disks."""
    hall = Hall(start=False)
    hall.group.start([1, 2, 3])
    hall.quiet()
    for voter in (1, 2, 3):
        assert not hall.of(voter).acceptor.votes
        assert hall.group.member(voter).timers[ENROLL].deadline == 30.0
        assert hall.of(voter).recovery.excuse(29.9).endswith("waits for 0.1 s more, one lease")
    hall.enroll()
    assert [hall.of(each).acceptor.votes for each in (1, 2, 3)] == [True] * 3
    assert any(hall.of(each).recovery.founded for each in (1, 2, 3))


def test_one_voter_alone_waits_as_well() -> None:
    config = QuorumElectionConfig(voters=1, ttl=30.0)
    group = ScriptedGroup(lambda: Quorum(config, HighestId()), [Candidate(1)])
    group.start([1])
    election = group.member(1).election
    assert isinstance(election, Quorum)
    assert not election.acceptor.votes
    group.fire(1, ENROLL)
    assert group.now == 30.0
    assert election.acceptor.votes


@pytest.mark.parametrize("last", [1, 2, 3])
def test_all_disks_lost_one_after_the_other_is_a_new_beginning(last: int) -> None:
    """Those that notice first begin other lives; when nobody remembers, lives do not matter."""
    hall = Hall(4)
    hall.call(4)
    hall.quiet()
    for voter in (1, 2, 3):
        if voter != last:
            hall.wipe(voter)
    hall.quiet()
    hall.enroll()
    assert [each for each in (1, 2, 3) if hall.of(each).acceptor.votes] == [last]
    lost = hall.group.now
    hall.wipe(last)
    hall.quiet()
    hall.enroll()
    assert [hall.of(each).acceptor.votes for each in (1, 2, 3)] == [True] * 3
    assert hall.group.now >= lost + 30.0
    hall.call(4)
    for _ in range(6):  # it knew them all in their former lives
        hall.quiet()
        for key in (AGAIN, ASK):
            if key in hall.group.member(4).timers and not hall.leads(4):
                hall.group.fire(4, key)
                hall.quiet()
    assert hall.leads(4) > 1


def test_who_was_seen_without_memory_before_may_vote_by_now() -> None:
    """1 answered that it does not vote, and has resumed since: there is no new beginning."""
    hall = Hall(5, voters=(1, 2, 3, 4, 5))
    hall.wipe(1)
    hall.wipe(2)
    hall.deliver(RecoveryMsg, 1)
    hall.deliver(RecoveryEmptyMsg, 2)
    asked = hall.of(2).recovery
    assert 1 in asked.fresh
    hall.quiet(but=(2,))
    hall.group.fire(1, ENROLL)
    assert hall.of(1).acceptor.votes
    for lost in (3, 4, 5):
        hall.wipe(lost)
        hall.group.flight.clear()
        epoch = hall.of(lost).recovery.epoch
        answer = RecoveryEmptyMsg(0, asked.epoch, asked.nonce, epoch, 2)
        hall.group.member(2).deliver(lost, answer)
    hall.wait(100.0)
    hall.enroll(1, 3, 4, 5)
    assert not asked.founded
    assert not hall.of(2).acceptor.votes


def test_rounds_of_a_new_beginning_lie_above_every_voters_first_incarnation() -> None:
    """One right clock is enough: 3 knows the date, the others' clocks begin in 1970."""
    date = 1_700_000_000_000
    hall = Hall(4, start=False)
    hall.group.member(3).incarnation = date
    hall.group.start([1, 2, 3, 4])
    hall.quiet()
    hall.enroll()
    hall.group.crash(3)
    for voter in (1, 2):
        hall.group.crash(voter)
        hall.group.restart(voter)
    hall.call(4)
    hall.quiet()
    for _ in range(3):
        if AGAIN in hall.group.member(4).timers:
            hall.group.fire(4, AGAIN)
            hall.quiet()
    assert hall.leads(4) >= date


def test_a_voter_with_an_old_copy_of_its_disk_begins_above_the_date() -> None:
    hall = Hall(4)
    copies = {voter: dict(hall.group.member(voter).stored) for voter in (1, 2, 3)}
    for _ in range(2):
        hall.call(4)
        hall.quiet()
        hall.group.crash(4)
        hall.group.restart(4)
        hall.wait(31.0)
    config = QuorumConfig(voters=(1, 2, 3), above=1_000)
    group = ScriptedGroup(
        lambda: QuorumLeaseLayer(LeaseLayer(eager(), LEASE), config),
        [Candidate(each) for each in (1, 2, 3, 4)],
    )
    for voter, copy in copies.items():
        group.member(voter).stored = copy
    hall.group = group
    group.start([1, 2, 3, 4])
    assert [hall.of(each).acceptor.votes for each in (1, 2, 3)] == [True] * 3
    hall.of(4).proposer.highest = 0  # whoever asks has no clock
    hall.call(4)
    hall.quiet()
    assert hall.leads(4) == 1_001


def test_a_lost_disk_waits_for_the_longest_lease_that_others_tell_of() -> None:
    """Members were restarted with shorter leases meanwhile: what was granted before counts."""
    hall = Hall(4)
    hall.call(4)
    hall.quiet()
    for voter in (1, 2, 3):
        hall.of(voter).acceptor.longest = 5.0
    hall.wipe(2)
    hall.of(2).acceptor.longest = 5.0
    hall.of(2).recovery.ready = 5.0
    hall.quiet()
    hall.group.fire(2, ENROLL)
    assert hall.of(2).acceptor.votes
    assert hall.group.now == 30.0


def test_who_is_not_a_voter_is_not_counted_among_the_new() -> None:
    hall = Hall(4, start=False)
    hall.group.start([1, 2, 4])
    hall.quiet()
    asked = hall.of(1).recovery
    hall.wait(30.0)
    hall.group.member(1).deliver(4, RecoveryEmptyMsg(0, asked.epoch, asked.nonce, 1 << 32, 1))
    assert len(asked.fresh) == 1
    assert not hall.of(1).acceptor.votes


def test_who_was_counted_when_it_was_new_votes_with_the_others() -> None:
    """Also without a majority that it could ask: it has not voted since, and has waited."""
    hall = Hall(start=False)
    hall.group.start([1, 2, 3])
    hall.quiet()
    hall.wait(20.0)
    hall.group.crash(2)
    hall.group.restart(2)
    hall.quiet()
    hall.group.fire(1, ENROLL)
    hall.quiet()
    assert [hall.of(each).acceptor.votes for each in (1, 2)] == [True, False]
    hall.group.crash(3)
    hall.of(1).acceptor.begin_above(7)
    hall.group.member(2).timers.pop(ENROLL, None)
    hall.group.crash(2)
    hall.group.restart(2)
    hall.quiet()
    begun = hall.group.now
    assert "no other voter did when it asked" in hall.of(2).state()
    assert not hall.of(2).acceptor.votes
    hall.group.fire(2, ENROLL)
    assert hall.group.now == begun + 30.0
    assert hall.of(2).acceptor.votes
    assert hall.of(2).acceptor.promised.round == 7


def test_a_restart_with_a_disk_asks_nobody() -> None:
    hall = Hall()
    hall.group.crash(2)
    hall.group.restart(2)
    assert hall.group.flight == []
    assert hall.of(2).acceptor.votes


def test_a_lost_disk_is_noticed_and_waits_one_longest_lease() -> None:
    hall = Hall(4)
    hall.call(4)
    hall.quiet()
    hall.wipe(2)
    hall.quiet()
    assert not hall.of(2).acceptor.votes
    assert "lost its disk" in hall.of(2).state()
    assert epoch_number(hall.of(1).acceptor.epochs[2]) == 2
    hall.group.fire(2, ENROLL)
    assert hall.group.now == 30.0
    assert hall.of(2).acceptor.votes
    assert hall.of(2).acceptor.promised.round == 1, "what the others have promised"
    assert not hall.of(2).acceptor.is_leased(30.0)
    assert not hall.of(2).recovery.founded
    hall.group.crash(2)
    hall.group.restart(2)
    assert hall.of(2).acceptor.votes, "and it is stored"


def test_without_the_wait_a_forgotten_lease_is_granted_again() -> None:
    class Hasty(AcceptorRecovery):
        def _is_ready(self, ctx: object) -> bool:
            return len(self.known) >= self.acceptor.electorate.majority

    class Careless(QuorumLeaseLayer):
        recovery_class = Hasty

    hall = Hall(5, kind=Careless)
    hall.call(4)
    hall.drop(PrepareMsg, 3)
    hall.quiet()
    hall.drop(AcceptMsg, 3)
    hall.wipe(2)
    hall.quiet()
    assert hall.of(2).acceptor.votes
    assert not hall.of(2).acceptor.is_leased(0.0)


def test_two_lost_disks_of_three_do_not_vote_beside_one_that_remembers() -> None:
    hall = Hall()
    for member in (2, 3):
        hall.wipe(member)
    hall.quiet()
    for _ in range(12):
        for member in (2, 3):
            hall.group.fire(member, ENROLL)
            hall.quiet()
    for member in (2, 3):
        assert not hall.of(member).acceptor.votes
        assert "put disks back, or empty the state of all members" in hall.of(member).state()


def test_two_lost_disks_of_five_are_not_too_many() -> None:
    hall = Hall(5, voters=(1, 2, 3, 4, 5))
    for member in (2, 3):
        hall.wipe(member)
    hall.quiet()
    for _ in range(6):
        for member in (2, 3):
            if ENROLL in hall.group.member(member).timers:
                hall.group.fire(member, ENROLL)
                hall.quiet()
    assert [hall.of(each).acceptor.votes for each in (2, 3)] == [True, True]


def test_a_vote_of_before_is_not_counted_with_one_of_after() -> None:
    """2 accepts, loses its disk and is enrolled by 1, which accepts only then."""
    hall = Hall(4)
    hall.call(4)
    hall.deliver(PrepareMsg)
    for each in list(hall.group.flight):
        hall.group.deliver(each)  # promises; 4 proposes
    hall.drop(AcceptMsg, 3)
    hall.deliver(AcceptMsg, 2)
    hall.wipe(2)
    hall.deliver(RecoveryMsg)
    hall.deliver(RecoveryStateMsg)
    hall.deliver(RecoveryMsg)
    hall.deliver(AcceptMsg, 1)
    hall.deliver(AcceptedMsg)
    assert hall.leads(4) == 0


def test_an_answer_to_an_older_question_is_not_counted() -> None:
    hall = Hall(start=False)
    hall.group.start([1, 2, 3])
    hall.deliver(RecoveryMsg)
    hall.wipe(1)
    hall.drop(RecoveryMsg, 2)
    hall.drop(RecoveryMsg, 3)
    hall.deliver(RecoveryEmptyMsg, 1)
    assert not hall.of(1).acceptor.votes


def test_who_has_answered_new_believes_in_no_former_birth() -> None:
    """1 answers 2, which loses its disk; 3's own roster must have 2's later epoch."""
    hall = Hall(start=False)
    hall.group.start([1, 2, 3])
    hall.deliver(RecoveryMsg)
    hall.wipe(2)
    hall.deliver(RecoveryMsg, 3)  # 3 answers the new 2 that it is new, too
    hall.deliver(RecoveryEmptyMsg, 3)  # and only now hears what the former one said
    assert not hall.of(3).acceptor.votes
    hall.quiet()
    hall.enroll()
    assert hall.of(3).acceptor.epochs[2] == hall.of(2).recovery.epoch


# Without a disk


def test_without_a_disk_every_start_waits_one_longest_lease() -> None:
    hall = Hall(durable=False)
    assert hall.group.flight == []
    assert not hall.of(1).acceptor.votes
    assert "keeps nothing" in hall.of(1).state()
    assert hall.group.member(1).timers[ENROLL].deadline == 30.0
    hall.group.fire(1, ENROLL)
    assert hall.of(1).acceptor.votes
    hall.group.crash(1)
    hall.group.restart(1)
    assert not hall.of(1).acceptor.votes


def test_without_a_disk_rounds_begin_above_the_incarnation() -> None:
    hall = Hall(4, durable=False)
    hall.group.member(4).incarnation = 1_700_000_000_000
    hall.group.crash(4)
    hall.group.restart(4)
    for member in (1, 2, 3):
        hall.group.fire(member, ENROLL)
    hall.call(4)
    hall.quiet()
    assert hall.leads(4) > 1_700_000_000_000


# Voters that came later


def later(stored: dict[str, object] | None = None) -> Hall:
    """2, 3 and 4 are started as voters that follow 1, 2 and 3."""
    hall = Hall(4, start=False, voters=(2, 3, 4), first=(1, 2, 3))
    for member in (2, 3, 4):
        hall.group.member(member).stored = dict(stored or {})
    hall.group.start([2, 3, 4])
    hall.quiet()
    return hall


def test_voters_that_came_later_found_no_electorate() -> None:
    hall = later()
    hall.wait(100.0)
    hall.enroll()
    assert not any(hall.of(each).acceptor.votes for each in (2, 3, 4))
    assert "began with others (initial=)" in hall.of(2).recovery.state()
    hall.call(4)
    hall.quiet()
    assert not hall.leads(4)


def test_a_voter_that_remembers_goes_by_the_first_voters_whoever_is_named() -> None:
    born: dict[str, object] = {"quorum-birth": 1 << 40 | 5}
    assert later(born).of(2).electorate.voters == (1, 2, 3)
    assert later().of(2).electorate.voters == (2, 3, 4)
    voted = later({**born, "quorum-votes": True})
    assert voted.of(2).acceptor.votes
    assert voted.of(4).electorate.voters == (1, 2, 3), "it is none of them"


def test_who_moved_on_goes_by_that() -> None:
    config = {"number": 2, "voters": [1, 2, 4]}
    moved: dict[str, object] = {"quorum-birth": 1 << 40 | 5, "quorum-config": config}
    assert later(moved).of(2).electorate.voters == (1, 2, 4)


def test_voters_that_were_agreed_on_may_begin_anew_whoever_was_first() -> None:
    """Their number says that the first ones vote no more: one change is enough."""
    config = {"number": 1, "voters": [2, 3, 4]}
    hall = later({"quorum-birth": 1 << 40 | 5, "quorum-config": config})
    hall.enroll()
    assert hall.of(2).electorate.number == 1
    assert [hall.of(each).acceptor.votes for each in (2, 3, 4)] == [True] * 3
    assert any(hall.of(each).recovery.founded for each in (2, 3, 4))


@pytest.mark.parametrize(
    "settings, says",
    [
        ({"voters": (1, 2, 3), "initial": (1, 2)}, "as many voters"),
        ({"voters": (1, 2, 3), "initial": (1, 2, 2)}, "each once"),
        ({"voters": (1, 2, 3), "initial": (1, 2, 4), "durable": False}, "never replaced"),
    ],
)
def test_first_voters_that_cannot_have_been(settings: dict[str, object], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        QuorumConfig.parse(settings)
    assert not QuorumConfig(voters=(1, 2, 3), initial=(3, 2, 1), durable=False).broken_rules()
    assert not QuorumConfig(voters=(1, 2, 3), initial=(4, 5, 6)).broken_rules()
