"""The overhead-aware paper's section 2: four relatives of the bully election.

They are known from their summaries there, which give no counts; the counts of the specification
are confirmed by running each.
"""

from __future__ import annotations

import pytest

from hustings.core.choice import HighestId
from hustings.core.outcome import Elected, NoLeader
from hustings.protocols.bully import Bully
from hustings.protocols.bully_assistant import BullyAssistant
from hustings.protocols.bully_grant import BullyGrant
from hustings.protocols.bully_group import BullyGroup
from hustings.protocols.stable import Stable
from hustings.sim.checkers import Verdict
from hustings.sim.experiment import Experiment
from hustings.sim.faults import Alive, Crash, Happening, Suspect
from hustings.sim.play import prepare
from hustings.sim.scenarios import Scenario
from hustings.sim.world import Ended
from tests.paper.playing import Played, finish, played, several_ids

SIZES = [3, 4, 5, 8, 16, 64]


def top(n: int, m: int) -> tuple[int, ...]:
    """The dead between m and the leader n."""
    return tuple(range(m + 1, n))


# Kordafshari et al.: GRANT


@pytest.mark.parametrize("n", SIZES)
def test_grant_the_initiator_appoints_the_best_that_answers(n: int) -> None:
    """ELECTION to all higher, OK with their ids, GRANT to the best, COORDINATOR: 3n-4 at d = 1."""
    run = played(BullyGrant, n, detectors=(1,))
    others = {"OK": n - 2, "GRANT": 1, "COORDINATOR": n - 2}
    assert run.kinds == {"ELECTION": n - 1, **others}
    assert (run.messages, run.leader) == (3 * n - 4, n - 1)
    assert run.sound


@pytest.mark.parametrize("n", SIZES)
def test_grant_no_response_from_higher_ids_makes_the_initiator_leader(n: int) -> None:
    """The summary says LOWER; it must read HIGHER."""
    for m in {1, n // 2, n - 1}:
        run = played(BullyGrant, n, detectors=(m,), crashed=top(n, m))
        assert (run.sent("OK"), run.sent("GRANT"), run.leader) == (0, 0, m)
        assert run.sent("ELECTION") == n - m


@pytest.mark.parametrize("initiators", [(1, 2), (2, 5), (1, 3, 6), (1, 2, 3, 4, 5, 6, 7), (6, 7)])
def test_grant_only_the_lowest_initiator_is_answered(initiators: tuple[int, ...]) -> None:
    """Concurrent: sum(n - di) ELECTION, m - d1 OK, 1 GRANT, m-1 COORDINATOR."""
    run = played(BullyGrant, 8, detectors=initiators)
    assert run.sent("ELECTION") == sum(8 - d for d in initiators)
    assert run.sent("OK") == 7 - initiators[0]
    assert (run.sent("GRANT"), run.sent("COORDINATOR")) == (1, 6)
    assert run.leader == 7


def test_grant_the_appointed_dies() -> None:
    """T2 after the GRANT the initiator asks again."""
    run = played(BullyGrant, 8, detectors=(1,), extra=(Crash(member=7, at=3.5),))
    assert (run.sent("GRANT"), run.leader) == (2, 6)
    assert run.sound


# Gholipour et al.: a coordination group


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("K", [1, 2, 5])
def test_group_the_first_live_alternate_takes_over(n: int, K: int) -> None:
    """a < K dead alternates: a+1 CRASH_LEADER, 1 CHECK, m-1 COORDINATOR; n in all."""
    for dead in range(min(K, n - 2)):
        m = n - 1 - dead
        run = played(BullyGroup, n, detectors=(1,), crashed=top(n, m), K=K)
        assert run.kinds == {"CRASH_LEADER": dead + 1, "CHECK": 1, "COORDINATOR": m - 1}
        assert (run.messages, run.leader) == (n, m)


@pytest.mark.parametrize("n", [5, 8, 16, 64])
@pytest.mark.parametrize("K", [1, 2])
def test_group_all_alternates_are_dead(n: int, K: int) -> None:
    """K CRASH_LEADER in vain, (n-d) ELECTION, (m-d) OK, then 1 CRASH_LEADER and 1 CHECK."""
    for m in sorted({2, n - K - 1}):
        for d in {1, m - 1}:
            run = played(BullyGroup, n, detectors=(d,), crashed=top(n, m), K=K)
            asked = {"ELECTION": n - d, "OK": m - d}
            assert run.kinds == {"CRASH_LEADER": K + 1, "CHECK": 1, "COORDINATOR": m - 1, **asked}
            assert run.leader == m


def test_group_nobody_above_the_detector_lives() -> None:
    """ "If P still didn't receive a response, it is selected as a coordinator"."""
    run = played(BullyGroup, 8, detectors=(4,), crashed=(5, 6, 7))
    assert run.kinds == {"CRASH_LEADER": 2, "ELECTION": 4, "COORDINATOR": 3}
    assert run.leader == 4


@pytest.mark.parametrize("n", SIZES)
def test_group_a_false_alarm_costs_four_messages(n: int) -> None:
    """CRASH_LEADER, CHECK, the leader's answer, ALIVE to the detector; the leader stays."""
    calm = played(BullyGroup, n, initiators=(1,))
    run = played(BullyGroup, n, initiators=(1,), extra=(Suspect(member=1, about=n, at=50.0),))
    assert run.messages - calm.messages == 4
    assert (run.sent("CRASH_LEADER"), run.sent("CHECK"), run.sent("ALIVE")) == (
        calm.sent("CRASH_LEADER") + 1,
        1,
        2,
    )
    assert set(run.outcomes.values()) == {Elected(n, 1)}


def test_group_is_renewed_with_every_leader() -> None:
    """The list comes with COORDINATOR: after the election of 7 the alternates are 6 and 5."""
    run = played(BullyGroup, 8, detectors=(1,))
    assert {ctx.election.state().split("group=")[1] for ctx in run.world.live()} == {"(6, 5)"}


# Park: three phases, unanimity


@pytest.mark.parametrize("n", SIZES)
def test_stable_three_phases(n: int) -> None:
    """PREPARE to n-2; ACK, READY, ACK, COMMIT with the r live others: (n-2)+4r, 5 delays.

    All notice the crash, or, where silence gives consent, one member does.
    """
    for dead in {1, 2, n // 2}:
        m = n - dead
        r = m - 1
        for run in (
            played(Stable, n, crashed=top(n, m)),
            played(Stable, n, crashed=top(n, m), detectors=(1,), belief="silent"),
        ):
            phases = {"PREPARE": n - 2, "ACK": 2 * r, "READY": r, "COMMIT": r}
            assert run.kinds == {kind: count for kind, count in phases.items() if count}
            assert run.messages == (n - 2) + 4 * r
            assert run.leader == m
    assert played(Stable, n).messages == 5 * (n - 2)
    assert played(Stable, n).time == 5


@pytest.mark.parametrize("n", [4, 5, 8, 16, 64])
def test_stable_one_wrong_belief_blocks_the_election(n: int) -> None:
    """One NACK: ABORT and no leader; safe, not live; (n-2) + 2r messages."""
    believer = n // 2
    told = tuple(member for member in range(1, n) if member != believer)
    run = played(Stable, n, detectors=told)
    assert not run.claims
    assert (run.ended, run.verdicts["uniqueness"]) == (Ended.QUIESCENT, Verdict.HOLDS)
    for member in told:
        reason = run.outcomes[member]
        assert isinstance(reason, NoLeader)
        assert f"believes that {n} leads" in reason.reason
    doubt = Alive(member=believer, about=n)
    run = played(Stable, n, detectors=(1,), extra=(doubt,), belief="silent")
    assert run.kinds == {"PREPARE": n - 2, "ACK": n - 3, "NACK": 1, "ABORT": n - 2}
    assert run.messages == (n - 2) + 2 * (n - 2)
    assert run.outcomes[1] == NoLeader(f"member {believer} believes that {n} leads")
    assert not run.claims


@pytest.mark.parametrize("belief", ["told", "silent"])
def test_stable_goes_on_when_the_last_believer_learns_better(belief: str) -> None:
    story: tuple[Happening, ...] = (
        Alive(member=3, about=8),
        Suspect(member=3, about=8, at=60.0),
    )
    run = played(Stable, 8, detectors=(1, 2, 4, 5, 6, 7), extra=story, belief=belief)
    assert run.leader == 7
    assert run.sound


def test_stable_elects_only_when_all_agree_upon_the_crash() -> None:
    """Silence is no consent; all must have been told of the crash, and in any order."""
    for told in several_ids(6):
        run = played(Stable, 7, detectors=told)
        if len(told) < 6:
            assert not run.claims
            assert run.verdicts["uniqueness"] is Verdict.HOLDS
            assert all(isinstance(run.outcomes[member], NoLeader) for member in told)
        else:
            assert run.leader == 6
            assert run.sound


@pytest.mark.parametrize("order", [(1, 2, 3, 4, 5), (5, 4, 3, 2, 1), (3, 1, 5, 2, 4)])
@pytest.mark.parametrize("gap", [0.0, 0.25, 1.0, 3.0, 30.0])
def test_stable_elects_once_however_the_notices_are_spread(
    order: tuple[int, ...], gap: float
) -> None:
    later = tuple(
        Suspect(member=member, about=6, at=place * gap) for place, member in enumerate(order)
    )
    run = played(Stable, 6, detectors=order[:1], extra=later[1:])
    assert run.leader == 5
    assert run.sound
    assert run.claims == [5]


def test_stable_keeps_a_living_leader_that_some_suspect() -> None:
    """Whoever errs, and when: while one member takes the leader to be alive, nobody replaces it."""
    for wrong in several_ids(5):
        for gap in (0.0, 1.0, 7.0):
            if len(wrong) < 5:
                run = wrongly_accused(wrong, gap)
                assert not run.claims, (wrong, gap)
                assert run.outcomes[6] == Elected(6, 1)
                assert {each.leader for each in run.outcomes.values() if type(each) is Elected} == {
                    6
                }
                assert run.verdicts["uniqueness"] is Verdict.HOLDS


def wrongly_accused(wrong: tuple[int, ...], gap: float) -> Played:
    """6 leads and lives; some of 1 to 5 suspect it, one after the other."""
    later = [Suspect(member=member, about=6, at=k * gap) for k, member in enumerate(wrong)]
    scenario = Scenario("false-departure", detectors=wrong[:1], extra=tuple(later[1:]))
    experiment = Experiment(Stable, 6, Stable.Settings.parse({}), scenario=scenario)
    return finish(prepare(experiment, 0), HighestId())


# Zargarnataj: an assistant


@pytest.mark.parametrize("n", SIZES)
def test_assistant_takes_over(n: int) -> None:
    """Report, CHECK, I_AM_LEADER to all others, then VOTE and ASSISTANT: 2 + 3(n-2)."""
    run = played(BullyAssistant, n, detectors=(1,))
    if n > 3:
        assert run.kinds == {
            "REPORT": 1,
            "CHECK": 1,
            "I_AM_LEADER": n - 2,
            "VOTE": n - 2,
            "ASSISTANT": n - 2,
        }
    assert (run.messages, run.leader) == (2 + 3 * (n - 2), n - 1)
    assert run.sound


@pytest.mark.parametrize("n", [4, 5, 8, 16, 64])
def test_assistant_is_dead_too(n: int) -> None:
    """A complete election, then 2r for the next assistant; and the report that nobody received."""
    for m in {2, n // 2, n - 2}:
        for d in {1, m}:
            full = played(Bully, n, detectors=(d,), crashed=top(n, m))
            run = played(BullyAssistant, n, detectors=(d,), crashed=top(n, m))
            assert run.messages == 1 + full.messages + 2 * (m - 1)
            assert run.sent("ELECTION") == full.sent("ELECTION")
            assert run.sent("OK") == full.sent("OK")
            assert run.leader == m


def test_assistant_checks_the_leader_first() -> None:
    """ "Really crashed or still alive": on a false alarm the leader stays."""
    calm = played(BullyAssistant, 8, initiators=(1,))
    run = played(BullyAssistant, 8, initiators=(1,), extra=(Suspect(member=1, about=8, at=50.0),))
    assert run.messages - calm.messages == 4
    assert set(run.outcomes.values()) == {Elected(8, 1)}


def test_assistant_is_elected_by_all() -> None:
    """Everybody votes; all know the next assistant, the best after the leader."""
    run = played(BullyAssistant, 8, detectors=(1,))
    states = [ctx.election.state() for ctx in run.world.live()]
    assert {state.split("assistant=")[1] for state in states} == {"6"}
