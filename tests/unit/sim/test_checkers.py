"""Every verdict of every checker, reached by a run made for it."""

from __future__ import annotations

import pytest

from hustings.core.choice import HighestId, LowestId, MemberId
from hustings.core.outcome import ELECTING, Elected, GaveUp, NoLeader, Outcome
from hustings.sim.checkers import (
    Agreement,
    Checker,
    Termination,
    Terms,
    Uniqueness,
    Validity,
    Verdict,
    agreed_leader,
    all_checkers,
    beliefs,
)
from hustings.sim.member import Status
from hustings.sim.world import Ended
from tests.unit.sim.worlds import Stage

CUT_OFF = [Ended.UNTIL, Ended.MAX_EVENTS]
FINISHED = [Ended.QUIESCENT, Ended.STOPPED]


def judged(
    checker: Checker,
    declared: list[tuple[MemberId, Outcome]],
    dead: tuple[MemberId, ...] = (),
    ended: Ended = Ended.QUIESCENT,
) -> tuple[Verdict, str]:
    """Three members declare things, some die, and the run ends."""
    stage = Stage(3)
    stage.watch(checker)
    for member, outcome in declared:
        stage.members[member].declare(outcome)
        stage.now += 1.0
    for member in dead:
        stage.change(stage.members[member], Status.CRASHED)
    return checker.judge(stage, ended)


def all_hold(leader: MemberId, term: int = 1) -> list[tuple[MemberId, Outcome]]:
    return [(member, Elected(leader, term)) for member in (1, 2, 3)]


# Uniqueness


@pytest.mark.parametrize("ended", list(Ended))
def test_one_leader_or_none_is_unique(ended: Ended) -> None:
    assert judged(Uniqueness(), [], ended=ended)[0] is Verdict.HOLDS
    assert judged(Uniqueness(), all_hold(3), ended=ended)[0] is Verdict.HOLDS


@pytest.mark.parametrize("ended", FINISHED)
def test_two_leaders_in_the_end_are_a_violation(ended: Ended) -> None:
    verdict, reason = judged(Uniqueness(), [(3, Elected(3, 2)), (1, Elected(1, 1))], ended=ended)
    assert verdict is Verdict.VIOLATED
    assert "members 1, 3 all lead" in reason


@pytest.mark.parametrize("ended", CUT_OFF)
def test_two_leaders_when_the_run_was_cut_off_are_undecided(ended: Ended) -> None:
    verdict, reason = judged(Uniqueness(), [(3, Elected(3, 2)), (1, Elected(1, 1))], ended=ended)
    assert verdict is Verdict.UNDECIDED
    assert "members 1, 3" in reason


def test_a_leader_that_stepped_down_or_died_does_not_count() -> None:
    two: list[tuple[MemberId, Outcome]] = [(3, Elected(3, 1)), (2, Elected(2, 2))]
    assert judged(Uniqueness(), two, dead=(3,))[0] is Verdict.HOLDS
    assert judged(Uniqueness(), [*two, (3, Elected(2, 2))])[0] is Verdict.HOLDS


# Terms


@pytest.mark.parametrize("ended", list(Ended))
def test_a_term_claimed_twice_is_a_violation_even_in_passing(ended: Ended) -> None:
    claims: list[tuple[MemberId, Outcome]] = [(3, Elected(3, 4)), (2, Elected(2, 4))]
    verdict, reason = judged(Terms(), [*claims, (2, Elected(3, 4))], dead=(3,), ended=ended)
    assert verdict is Verdict.VIOLATED
    assert reason == "members 3 and 2 both lead in term 4 (the second at 1, says 2)"


def test_a_term_is_claimed_by_its_leader_only() -> None:
    several: list[tuple[MemberId, Outcome]] = [
        *all_hold(3),
        (2, Elected(2, 2)),
        (3, Elected(2, 2)),
        (3, Elected(3, 3)),
        (3, Elected(3, 3)),
        (1, Elected(3, 3)),
        (2, Elected(3, 3)),
    ]
    assert judged(Terms(), several)[0] is Verdict.HOLDS


def test_a_follower_that_names_another_leader_of_a_term_is_a_violation() -> None:
    story: list[tuple[MemberId, Outcome]] = [
        (3, Elected(3, 3)),
        (1, Elected(2, 3)),
        *all_hold(3, 4),
    ]
    verdict, reason = judged(Terms(), story)
    assert verdict is Verdict.VIOLATED
    assert reason == "members 3 and 2 both lead in term 3 (the second at 1, says 1)"


@pytest.mark.parametrize("term", [1, 2, 4, 9])
@pytest.mark.parametrize("ended", list(Ended))
def test_a_follower_may_be_behind_its_leader_but_not_ahead_of_it(term: int, ended: Ended) -> None:
    story: list[tuple[MemberId, Outcome]] = [*all_hold(3, 3), (1, Elected(3, term))]
    verdict, reason = judged(Terms(), story, ended=ended)
    ahead = term > 3 and ended in FINISHED
    assert verdict is (Verdict.VIOLATED if ahead else Verdict.UNDECIDED)
    assert reason == f"member 1 holds 3 in term {term}, which itself leads in term 3"


def test_who_is_ahead_of_its_leader_counts_more_than_who_is_behind() -> None:
    story: list[tuple[MemberId, Outcome]] = [
        *all_hold(3, 3),
        (1, Elected(3, 2)),
        (2, Elected(3, 4)),
    ]
    verdict, reason = judged(Terms(), story)
    assert (verdict, reason.split()[1]) == (Verdict.VIOLATED, "2")


def test_a_dead_leader_has_no_term_to_differ_from() -> None:
    story: list[tuple[MemberId, Outcome]] = [*all_hold(3), (3, Elected(3, 2))]
    assert judged(Terms(), story, dead=(3,))[0] is Verdict.HOLDS


# Agreement


@pytest.mark.parametrize("ended", list(Ended))
def test_all_hold_one_leader(ended: Ended) -> None:
    assert judged(Agreement(), all_hold(1), ended=ended)[0] is Verdict.HOLDS


def test_the_dead_need_not_agree() -> None:
    outcomes: list[tuple[MemberId, Outcome]] = [*all_hold(1), (2, Elected(2, 2))]
    assert judged(Agreement(), outcomes, dead=(2,))[0] is Verdict.HOLDS


@pytest.mark.parametrize("ended", list(Ended))
def test_different_leaders_disagree(ended: Ended) -> None:
    verdict, reason = judged(Agreement(), [*all_hold(1), (2, Elected(2, 2))], ended=ended)
    assert verdict is (Verdict.VIOLATED if ended in FINISHED else Verdict.UNDECIDED)
    assert "leaders 1, 2" in reason


@pytest.mark.parametrize("nothing", [NoLeader(), NoLeader(ELECTING), GaveUp("tired")])
def test_who_holds_no_leader_leaves_it_undecided(nothing: Outcome) -> None:
    verdict, reason = judged(Agreement(), [*all_hold(1), (2, nothing)])
    assert verdict is Verdict.UNDECIDED
    assert "members 2 hold no leader" in reason


# Validity


def test_the_best_alive_is_valid_by_its_choice_function() -> None:
    assert judged(Validity(HighestId()), all_hold(3))[0] is Verdict.HOLDS
    assert judged(Validity(LowestId()), all_hold(1))[0] is Verdict.HOLDS
    assert judged(Validity(HighestId()), all_hold(2), dead=(3,))[0] is Verdict.HOLDS


@pytest.mark.parametrize("ended", list(Ended))
def test_one_that_is_not_the_best_is_not_valid(ended: Ended) -> None:
    verdict, reason = judged(Validity(HighestId()), [*all_hold(3), (1, Elected(2, 1))], ended=ended)
    assert verdict is (Verdict.VIOLATED if ended in FINISHED else Verdict.UNDECIDED)
    assert reason == "member 1 holds 2, which is not the best alive"


def test_one_that_is_dead_is_not_valid() -> None:
    verdict, reason = judged(Validity(HighestId()), all_hold(3), dead=(3,))
    assert verdict is Verdict.VIOLATED
    assert reason == "member 1 holds 3, which is dead"


def test_with_nobody_alive_validity_is_undecided() -> None:
    assert judged(Validity(HighestId()), [], dead=(1, 2, 3))[0] is Verdict.UNDECIDED


# Termination


@pytest.mark.parametrize("ended", FINISHED)
def test_all_have_decided(ended: Ended) -> None:
    assert judged(Termination(), all_hold(1), ended=ended)[0] is Verdict.HOLDS


@pytest.mark.parametrize("ended", CUT_OFF)
def test_a_run_that_was_cut_off_has_not_terminated(ended: Ended) -> None:
    verdict, reason = judged(Termination(), all_hold(1), ended=ended)
    assert verdict is Verdict.UNDECIDED
    assert ended.value in reason


def test_who_never_declared_anything_hangs() -> None:
    verdict, reason = judged(Termination(), all_hold(1)[:2])
    assert verdict is Verdict.VIOLATED
    assert "members 3 never decided" in reason


def test_who_is_still_electing_hangs() -> None:
    verdict, reason = judged(Termination(), [*all_hold(1), (2, NoLeader(ELECTING))])
    assert verdict is Verdict.VIOLATED
    assert "members 2 never decided" in reason


@pytest.mark.parametrize("named", [NoLeader("one said no"), GaveUp("one said no")])
def test_a_named_end_without_a_leader_is_undecided(named: Outcome) -> None:
    verdict, reason = judged(Termination(), [*all_hold(1), (2, named)])
    assert verdict is Verdict.UNDECIDED
    assert "members 2 ended without a leader: one said no" in reason


def test_the_dead_need_not_decide() -> None:
    assert judged(Termination(), all_hold(1)[:2], dead=(3,))[0] is Verdict.HOLDS


# Together


def test_each_run_has_checkers_of_its_own() -> None:
    one, other = all_checkers(HighestId()), all_checkers(HighestId())
    names = [checker.name for checker in one]
    assert sorted(names) == ["agreement", "termination", "terms", "uniqueness", "validity"]
    assert not {id(checker) for checker in one} & {id(checker) for checker in other}


def test_beliefs_are_of_the_living_and_agreement_is_of_all() -> None:
    stage = Stage(3)
    stage.members[1].declare(Elected(3, 1))
    stage.members[2].declare(GaveUp("tired"))
    stage.change(stage.members[3], Status.CRASHED)
    assert beliefs(stage) == {1: 3, 2: None}
    assert agreed_leader(stage) is None
    stage.members[2].declare(Elected(3, 1))
    assert agreed_leader(stage) == 3
    for member in (1, 2):
        stage.change(stage.members[member], Status.CRASHED)
    assert agreed_leader(stage) is None


def test_long_lists_of_members_are_cut() -> None:
    stage = Stage(12)
    _, reason = Termination().judge(stage, Ended.QUIESCENT)
    assert reason.startswith("members 1, 2, 3, 4, 5, 6, 7, 8 and 4 more never")


# Elections that announce never rest


@pytest.mark.parametrize("choice", [HighestId(), LowestId()])
def test_a_stop_of_a_restless_election_is_no_end(choice: HighestId | LowestId) -> None:
    """What does not hold at that moment may hold at the next."""
    declared: list[tuple[MemberId, Outcome]] = [
        (1, Elected(1, 1)),
        (2, NoLeader(ELECTING)),
        (3, Elected(3, 1)),
    ]
    for checker in all_checkers(choice, announces=True):
        stopped = judged(checker, declared, ended=Ended.STOPPED)
        assert stopped[0] is Verdict.UNDECIDED, checker.name
        assert judged(checker, declared, ended=Ended.QUIESCENT)[0] is Verdict.VIOLATED
    for checker in all_checkers(choice)[:4]:
        assert judged(checker, declared, ended=Ended.STOPPED)[0] is Verdict.VIOLATED


def test_a_restless_election_that_has_agreed_at_its_stop_holds_all() -> None:
    for checker in all_checkers(HighestId(), announces=True):
        assert judged(checker, all_hold(3), ended=Ended.STOPPED)[0] is Verdict.HOLDS


def test_members_that_announce_promise_nothing_about_terms() -> None:
    names = [checker.name for checker in all_checkers(HighestId(), announces=True)]
    assert names == ["uniqueness", "agreement", "validity", "termination"]


@pytest.mark.parametrize("displaces", [True, False])
@pytest.mark.parametrize("leader", [1, 2, 3])
def test_a_dead_leader_is_seen_whether_leaders_are_displaced_or_not(
    leader: MemberId, displaces: bool
) -> None:
    """Also where the dead one was the best, the worst, or neither."""
    checker = Validity(HighestId(), displaces=displaces)
    verdict, reason = judged(checker, all_hold(leader), dead=(leader,))
    assert verdict is Verdict.VIOLATED
    assert reason.endswith(f"holds {leader}, which is dead")
    cut_off = judged(
        Validity(HighestId(), displaces=displaces), all_hold(leader), (leader,), Ended.UNTIL
    )
    assert cut_off[0] is Verdict.UNDECIDED


@pytest.mark.parametrize("status", [Status.CRASHED, Status.LEFT, Status.PAUSED])
def test_one_follower_of_a_dead_leader_is_enough(status: Status) -> None:
    stage = Stage(3)
    for member, leader in ((1, 1), (2, 3)):
        stage.members[member].declare(Elected(leader, 1))
    if status is Status.PAUSED:
        stage.pause(stage.members[3])
    else:
        stage.change(stage.members[3], status)
    checker = Validity(HighestId(), displaces=False)
    assert checker.judge(stage, Ended.QUIESCENT)[1] == "member 2 holds 3, which is dead"


def test_a_living_leader_that_is_not_the_best_is_fine_where_none_is_displaced() -> None:
    assert judged(Validity(HighestId(), displaces=False), all_hold(1))[0] is Verdict.HOLDS
    assert judged(Validity(HighestId()), all_hold(1))[0] is Verdict.VIOLATED
