"""The overhead-aware paper, sections 4 and 5: the MAP election, its formulas and its Table 1.

n counts the crashed leader, m is the best member alive, d the detector. "Overhead" is the paper's:
ELECTION and OK. The crashed include the leader unless a test says "on top".
"""

from __future__ import annotations

import pytest

from hustings.core.election import Election
from hustings.core.outcome import Elected
from hustings.lab.closed_forms import overhead as theory
from hustings.lab.figures.overhead_table import counted_table
from hustings.protocols.bully import Bully
from hustings.protocols.bully_map import BullyMap
from hustings.sim.checkers import Verdict
from hustings.sim.faults import Alive, Crash, Happening, Restart, Suspect
from tests.paper.playing import Played, played

QUARTERS = [4, 8, 12, 16, 32, 64]


def overhead(kind: type[Election], n: int, d: int, dead: int) -> int:
    """ELECTION and OK when the `dead` best members are dead, the leader among them."""
    run = played(kind, n, detectors=(d,), crashed=tuple(range(n - dead + 1, n)))
    assert run.leader == n - dead
    return run.sent("ELECTION") + run.sent("OK")


# Section 4: the algorithm


def test_figure_3() -> None:
    """Node 4 of 7 detects: one ELECTION to 6, its OK, and LEADER from 6 to everybody else."""
    run = played(BullyMap, 7, detectors=(4,))
    assert run.kinds == {"ELECTION": 1, "OK": 1, "LEADER": 5}
    assert (run.leader, run.time) == (6, 2)
    assert run.elected[0] == (1.0, 6, 6)
    assert set(run.outcomes.values()) == {Elected(6, 2)}


def test_the_candidate_holds_no_election_of_its_own() -> None:
    """After the ELECTION it needs not hold another: nobody else ever asks."""
    for n in range(3, 65):
        assert played(BullyMap, n, detectors=(1,)).sent("ELECTION") == 1


@pytest.mark.parametrize("n", range(2, 20))
def test_a_silent_candidate_is_skipped_after_t(n: int) -> None:
    """ELECTION n-m, OK 1, LEADER m-1, time (n-1-m)T + 2; for d = m n-1-d, 0 and d-1."""
    for m in range(1, n):
        for d in range(1, m + 1):
            run = played(BullyMap, n, detectors=(d,), crashed=tuple(range(m + 1, n)))
            assert run.sent("ELECTION") == (n - m if d < m else n - 1 - d)
            assert run.sent("OK") == (1 if d < m else 0)
            assert run.sent("LEADER") == m - 1
            told = 1 if m > 1 else 0
            assert run.time == 2 * (n - 1 - m) + (2 if d < m else told)
            assert run.leader == m
            assert run.sound


def test_when_all_higher_nodes_are_crashed_the_detector_leads() -> None:
    """The worst case of section 4."""
    run = played(BullyMap, 9, detectors=(3,), crashed=(4, 5, 6, 7, 8))
    assert run.outcomes == dict.fromkeys((1, 2, 3), Elected(3, 2))


@pytest.mark.parametrize("k", range(1, 7))
def test_the_first_gets_ok_and_all_later_ones_stop(k: int) -> None:
    """k detectors below m: k(n-m) ELECTION, 1 OK, k-1 STOP, which the overhead leaves out."""
    for crashed in ((), (7,)):
        m = 6 if crashed else 7
        if k < m:
            run = played(BullyMap, 8, detectors=tuple(range(1, k + 1)), crashed=crashed)
            assert run.sent("ELECTION") == k * (8 - m)
            assert (run.sent("OK"), run.sent("STOP")) == (1, k - 1)
            assert run.sent("LEADER") == m - 1
            assert run.leader == m


def test_two_nodes_may_ask_different_candidates() -> None:
    """ "No chance that any two nodes send to two different candidates": a candidate may die.

    7 answers 1 and dies before it tells anybody; 2, which detects a little later, finds it silent
    and asks 6, while 1 still waits for 7. One leader results all the same.
    """
    story: tuple[Happening, ...] = (
        Crash(member=7, after_sends=1),
        Suspect(member=2, about=8, at=0.5),
    )
    run = played(BullyMap, 8, detectors=(1,), extra=story)
    assert (run.sent("ELECTION"), run.sent("OK")) == (1 + 2, 2)
    assert run.claims[-1:] == [6]
    assert run.leader == 6
    assert run.sound


def test_a_candidate_that_dies_after_its_ok() -> None:
    """Not in the paper: the wait for LEADER needs a bound, T2; then the walk starts again."""
    run = played(BullyMap, 8, detectors=(1,), extra=(Crash(member=7, after_sends=1),))
    # OK at 2, T2 = 10, ELECTION to 7 in vain for T = 2, ELECTION to 6 and its LEADER.
    assert (run.kinds, run.time) == ({"ELECTION": 3, "OK": 2, "LEADER": 5}, 2 + 10 + 2 + 2)
    assert run.leader == 6
    assert run.sound


def come_back(at: float) -> Played:
    """8 was elected and crashes at 20; 1 detects it at once; 8 is back at 20 + at."""
    story = (
        Crash(member=8, at=20.0),
        Suspect(member=1, about=8, at=20.0),
        Restart(member=8, at=20.0 + at),
    )
    return played(BullyMap, 8, initiators=(8,), extra=story)


@pytest.mark.parametrize("at", [0.25, 0.5, 1.0, 1.5, 1.75, 2.0, 2.5, 30.0])
def test_the_returning_leader_resumes_without_an_election(at: float) -> None:
    """Old leader back: LEADER to all n-1 lower ids, no ELECTION; n = 8: 6 + 7 = 13 LEADER.

    Decision: 7 led meanwhile, so it tells 8 the later term, and 8 announces itself once more in a
    term of its own: one ELECTION and n-1 LEADER on top.
    """
    run = come_back(at)
    first = 7  # when it was elected
    assert run.sent("LEADER") - first == 13 + 7
    assert (run.sent("ELECTION"), run.sent("OK"), run.sent("STOP")) == (1 + 1, 1, 1)
    assert run.leader == 8
    assert run.sound
    assert len(set(run.outcomes.values())) == 1  # in one term


def test_the_returning_leader_of_the_scenario() -> None:
    """The same, when the leader was down from the beginning."""
    run = played(BullyMap, 8, detectors=(1,), extra=(Restart(member=8, at=1.5),))
    assert run.sent("LEADER") == 13 + 7
    assert set(run.outcomes.values()) == {Elected(8, 3)}
    assert run.sound
    assert run.verdicts["terms"] is Verdict.HOLDS


def test_the_returning_leader_whose_successor_is_not_in_office() -> None:
    """Nobody led meanwhile: LEADER to all n-1 lower ids is all."""
    story = (Crash(member=8, at=20.0), Restart(member=8, at=21.0))
    run = played(BullyMap, 8, initiators=(8,), extra=story)
    assert run.kinds == {"LEADER": 14}
    assert set(run.outcomes.values()) == {Elected(8, 2)}


def test_a_suspicion_taken_back_gives_the_office_back() -> None:
    """Decision: T2 after a suspicion was taken back the doubter asks from the top."""
    story: tuple[Happening, ...] = (
        Suspect(member=1, about=8, at=20.0),
        Alive(member=1, about=8, at=25.0),
    )
    run = played(BullyMap, 8, initiators=(8,), extra=story)
    assert 7 in run.claims
    assert run.leader == 8
    assert run.sound


# Section 5: formulas (1) to (7)


@pytest.mark.parametrize("n", QUARTERS)
def test_case_1_map(n: int) -> None:
    """One election, "regardless to the detector": 1 + 1; false for d = n-1, which sends nothing."""
    for d in range(1, n - 1):
        assert overhead(BullyMap, n, d, 1) == 2
    assert overhead(BullyMap, n, n - 1, 1) == 0


@pytest.mark.parametrize("n", QUARTERS)
def test_formula_1(n: int) -> None:
    """Bully, N[1] detects: printed n(n-1), counted (n-1)^2; the dead leader sends no OK."""
    assert overhead(Bully, n, 1, 1) == (n - 1) ** 2 == theory.corrected_1(n)
    assert theory.printed_1(n) == n * (n - 1) == overhead(Bully, n, 1, 1) + n - 1


@pytest.mark.parametrize("n", QUARTERS)
def test_formula_2(n: int) -> None:
    """Bully, N[n/2] detects: printed (n/2)(n/2+1), counted n^2/4."""
    assert overhead(Bully, n, n // 2, 1) == n * n // 4 == theory.corrected_2(n)
    assert theory.printed_2(n) == overhead(Bully, n, n // 2, 1) + n // 2


@pytest.mark.parametrize("n", QUARTERS)
def test_formula_3(n: int) -> None:
    """MAP, n/4 crashed: printed n/4 + 2, counted n/4 + 1; right with the leader on top."""
    for d in {1, n // 2}:
        if d < n - n // 4:
            assert overhead(BullyMap, n, d, n // 4) == n // 4 + 1 == theory.corrected_3(n)
    assert overhead(BullyMap, n, 1, n // 4 + 1) == n // 4 + 2 == theory.printed_3(n)


@pytest.mark.parametrize("n", QUARTERS)
def test_formula_4(n: int) -> None:
    """Bully, n/4 crashed, N[1]: counted (3n/4)(n-1); printed 3n/4 - 1 more."""
    counted = overhead(Bully, n, 1, n // 4)
    assert counted == 3 * n // 4 * (n - 1) == theory.corrected_4(n)
    assert theory.printed_4(n) == counted + 3 * n // 4 - 1


@pytest.mark.parametrize("n", QUARTERS)
def test_formula_5(n: int) -> None:
    """Bully, n/4 crashed, N[n/2]: (n/4+1)(n/2), as printed."""
    assert overhead(Bully, n, n // 2, n // 4) == (n // 4 + 1) * (n // 2) == theory.printed_5(n)


@pytest.mark.parametrize("n", QUARTERS)
def test_formula_6(n: int) -> None:
    """MAP, n/2 crashed, N[1]: printed n/2 + 2, counted n/2 + 1; right with the leader on top."""
    assert overhead(BullyMap, n, 1, n // 2) == n // 2 + 1 == theory.corrected_6(n)
    if n > 4:  # else nobody but N[1] is left
        assert overhead(BullyMap, n, 1, n // 2 + 1) == n // 2 + 2 == theory.printed_6(n)


@pytest.mark.parametrize("n", QUARTERS)
def test_formula_7(n: int) -> None:
    """Bully, n/2 crashed, N[1]: counted (n/2)(n-1); printed n/2 - 1 more."""
    counted = overhead(Bully, n, 1, n // 2)
    assert counted == n // 2 * (n - 1) == theory.corrected_7(n)
    assert theory.printed_7(n) == counted + n // 2 - 1


@pytest.mark.parametrize("n", QUARTERS)
def test_4_and_7_as_printed_happen_to_count_the_coordinator_messages(n: int) -> None:
    """Coincidence: they equal the totals that the paper says it leaves out."""
    for dead, printed in ((n // 4, theory.printed_4(n)), (n // 2, theory.printed_7(n))):
        run = played(Bully, n, detectors=(1,), crashed=tuple(range(n - dead + 1, n)))
        assert run.messages == printed


@pytest.mark.parametrize("n", QUARTERS)
def test_case_4(n: int) -> None:
    """N[n/2] detects, n/2 crashed: bully n/2 ELECTION, MAP n/2 - 1, since it skips the leader."""
    assert overhead(Bully, n, n // 2, n // 2) == n // 2 == theory.printed_case_4(n)
    assert overhead(BullyMap, n, n // 2, n // 2) == n // 2 - 1 == theory.corrected_case_4_map(n)


@pytest.mark.parametrize("n", QUARTERS)
def test_case_4_is_slower_than_bully(n: int) -> None:
    """The paper says so itself: T for each dead candidate against one T1 for all of them."""
    crashed = tuple(range(n // 2 + 1, n))
    walk = played(BullyMap, n, detectors=(n // 2,), crashed=crashed).time
    shot = played(Bully, n, detectors=(n // 2,), crashed=crashed).time
    assert (walk, shot) == (2 * (n // 2 - 1) + 1, 3)


@pytest.mark.parametrize("n", QUARTERS)
def test_special_case_only_the_lowest_is_alive(n: int) -> None:
    """5.5: "n-1 for both" is right for bully; MAP sends n-2, with more delay."""
    crashed = tuple(range(2, n))
    bully = played(Bully, n, detectors=(1,), crashed=crashed)
    walk = played(BullyMap, n, detectors=(1,), crashed=crashed)
    assert (bully.sent("ELECTION"), walk.sent("ELECTION")) == (n - 1, n - 2)
    assert (bully.time, walk.time) == (2, 2 * (n - 2))


@pytest.mark.parametrize("n", QUARTERS)
def test_special_case_the_next_higher_detects(n: int) -> None:
    """5.5: neither ELECTION nor OK, for both; LEADER to all others."""
    for kind in (Bully, BullyMap):
        run = played(kind, n, detectors=(n - 1,))
        assert run.messages == n - 2
        assert overhead(kind, n, n - 1, 1) == 0


def test_latency_is_decreased_only_while_few_candidates_are_dead() -> None:
    """Section 4 claims a shorter wait: 2 against 4, a tie with one dead candidate, then longer."""
    times = []
    for dead in (1, 2, 3, 4):
        crashed = tuple(range(16 - dead + 1, 16))
        walk = played(BullyMap, 16, detectors=(1,), crashed=crashed).time
        shot = played(Bully, 16, detectors=(1,), crashed=crashed).time
        times.append((walk, shot))
    assert times == [(2, 4), (4, 4), (6, 4), (8, 4)]


# Table 1


@pytest.mark.parametrize("n", QUARTERS)
def test_table_1_every_cell_is_counted_in_a_run(n: int) -> None:
    cells = counted_table(n)
    assert len(cells) == 12
    for cell in cells:
        assert cell.agrees, cell
        assert cell.run == cell.row.counted


def test_table_1_at_sixteen() -> None:
    """Rows N[1] and N[n/2]; for each column MAP, then bully."""
    assert [cell.run for cell in counted_table(16)] == [2, 225, 5, 180, 9, 120, 2, 64, 5, 40, 7, 8]


def test_table_1_prints_the_right_orders() -> None:
    """Doubling n multiplies a cell by 1, about 2 or about 4, as printed."""
    for small, large in zip(counted_table(64), counted_table(128), strict=True):
        growth = {"2": 1, "O(n)": 2, "O(n^2)": 4}[small.row.printed_order]
        assert large.run / small.run == pytest.approx(growth, rel=0.1), small
