"""The lecture's chapter 15, "Bully Algorithm", sentence by sentence.

N and n count the crashed leader, m is the best member alive, d the detector.
"""

from __future__ import annotations

import pytest

from hustings.core.outcome import Elected, GaveUp
from hustings.lab.closed_forms import bully as theory
from hustings.protocols.bully import Bully
from hustings.sim.checkers import Verdict
from hustings.sim.delay import Fixed, PerLink
from hustings.sim.faults import Crash, Happening, Restart, Suspect
from hustings.sim.network import Network
from hustings.sim.world import Ended
from tests.paper.playing import played

# "Bully Algorithm"


def test_who_knows_that_it_is_the_highest_elects_itself() -> None:
    """If it knows its id is the highest: COORDINATOR to all lower ids, and done."""
    for n in range(2, 65):
        run = played(Bully, n, detectors=(n - 1,))
        assert run.kinds == ({"COORDINATOR": n - 2} if n > 2 else {})
        assert run.leader == n - 1


def test_election_goes_to_higher_ids_only() -> None:
    """Else: ELECTION to processes with a higher id, the suspect among them."""
    run = played(Bully, 8, detectors=(5,), crashed=(6, 7))
    assert (run.sent("ELECTION"), run.sent("OK")) == (3, 0)


def test_no_answer_within_the_timeout_makes_it_leader() -> None:
    """Only process 1 is alive: n-1 ELECTION in vain, and it leads after T1."""
    for n in range(3, 65):
        run = played(Bully, n, detectors=(1,), crashed=tuple(range(2, n)))
        assert (run.kinds, run.time, run.leader) == ({"ELECTION": n - 1}, 2, 1)


def test_who_is_asked_before_it_suspects_the_leader_does_not_wait_for_the_dead() -> None:
    """7 hears of the election from 6 and asks 8; its own suspicion of 8, next, is the answer."""
    run = played(Bully, 8, detectors=(6,), extra=(Suspect(member=7, about=8, at=1.25),))
    assert (run.leader, run.sent("COORDINATOR")) == (7, 6)
    assert run.time == 1.25 + 1  # and not 1 + T1 + 1


def test_an_answer_means_to_wait_for_the_coordinator_and_then_to_start_again() -> None:
    """If none is received after another timeout, start a new run: here with 7 dead after OK."""
    run = played(Bully, 8, detectors=(6,), extra=(Crash(member=7, at=1.5),))
    # ELECTION to 7 and 8, T2 = 10 after the OK at 2, ELECTION again, T1 = 2, COORDINATOR.
    assert (run.sent("ELECTION"), run.sent("OK"), run.time) == (2 + 1 + 2, 1, 2 + 10 + 2 + 1)
    assert run.leader == 6
    assert run.sound


def test_who_is_asked_answers_and_starts_its_own_election_once() -> None:
    """It replies OK, and starts its own election unless it has already done so."""
    run = played(Bully, 9, detectors=(1, 2, 3))
    assert run.sent("ELECTION") == sum(9 - j for j in range(1, 9))
    assert run.sent("OK") == 8 * 7 // 2


# "Analysis": the table of counts


@pytest.mark.parametrize("n", range(3, 65))
def test_the_worst_case(n: int) -> None:
    """The lowest id detects: (N-1)N/2 ELECTION is right; OK and COORDINATOR come on top."""
    run = played(Bully, n, detectors=(1,))
    assert run.sent("ELECTION") == n * (n - 1) // 2 == theory.printed_worst_election_messages(n)
    assert run.sent("OK") == (n - 1) * (n - 2) // 2
    assert run.sent("COORDINATOR") == n - 2
    assert run.messages == n * n - n - 1
    assert run.sound


@pytest.mark.parametrize("n", range(3, 65))
def test_the_worst_case_takes_four_transmission_times(n: int) -> None:
    """Verdict: 5 is pessimistic. The answer and the second ELECTION travel together: 2 + T1."""
    assert played(Bully, n, detectors=(1,)).time == 4 == theory.printed_worst_time() - 1
    assert played(Bully, n, detectors=(1,), T1=3.0).time == 5


@pytest.mark.parametrize("n", range(3, 65))
def test_the_best_case(n: int) -> None:
    """The second highest detects: N-2 COORDINATOR in one transmission time."""
    run = played(Bully, n, detectors=(n - 1,))
    assert (run.messages, run.time) == (n - 2, 1)
    assert theory.printed_best_coordinator_messages(n) == n - 2


@pytest.mark.parametrize("n", range(4, 65, 2))
def test_the_middle_detects(n: int) -> None:
    run = played(Bully, n, detectors=(n // 2,))
    assert (run.messages, run.time) == (n * n // 4 + n - 2, 4)


@pytest.mark.parametrize("n", range(3, 25))
def test_election_and_answer_together(n: int) -> None:
    """(m-d+1)(n-d), for d < m or d = m < n-1; COORDINATOR m-1."""
    for m in range(1, n):
        for d in range(1, min(m, n - 2) + 1):
            run = played(Bully, n, detectors=(d,), crashed=tuple(range(m + 1, n)))
            assert run.sent("ELECTION") == sum(n - j for j in range(d, m + 1))
            assert run.sent("OK") == sum(m - j for j in range(d, m + 1))
            assert run.sent("ELECTION") + run.sent("OK") == (m - d + 1) * (n - d)
            assert run.sent("COORDINATOR") == m - 1


@pytest.mark.parametrize("n", [3, 4, 5, 8, 16, 64])
def test_all_detect_at_once(n: int) -> None:
    """n(n-1)/2 - 1 ELECTION, the winner's repeats on top of n-2 COORDINATOR (n = 8: 12), time 2."""
    run = played(Bully, n, detectors=tuple(range(1, n)))
    assert run.sent("ELECTION") == n * (n - 1) // 2 - 1
    assert run.sent("OK") == (n - 1) * (n - 2) // 2
    assert run.sent("COORDINATOR") == 2 * (n - 2)
    assert run.time == 2
    assert n != 8 or run.sent("COORDINATOR") == 12


# "Failures during Election Run", "Failures and Timeouts"


@pytest.mark.parametrize("n, election, answer", [(4, 11, 4), (8, 55, 36), (64, 4031, 3844)])
def test_the_second_highest_crashes_after_its_answers(n: int, election: int, answer: int) -> None:
    """Everybody waits out T2 = 10 and runs again: n-3 COORDINATOR, 16 time units."""
    run = played(Bully, n, detectors=(1,), extra=(Crash(member=n - 1, at=2.5),))
    assert (run.sent("ELECTION"), run.sent("OK")) == (election, answer)
    assert (run.sent("COORDINATOR"), run.time, run.leader) == (n - 3, 16, n - 2)
    assert run.sound


@pytest.mark.parametrize("deaths", range(1, 6))
def test_if_failures_stop_a_leader_is_elected(deaths: int) -> None:
    """Each next winner dies right after its OKs; then failures stop."""
    n = 9
    crashes = [Crash(member=n - 1 - k, at=2.5 + 12 * k) for k in range(deaths)]
    run = played(Bully, n, detectors=(1,), extra=tuple(crashes))
    assert run.leader == n - 1 - deaths
    assert run.sound


def test_a_coordinator_that_dies_announcing_is_replaced() -> None:
    """7 wins at 3, tells two of the others, and dies; with a detector all agree in the end."""
    for told in range(1, 7):
        crash = Crash(member=7, at=2.5, after_sends=told)
        # The perfect detector also tells of 8, so that 7 wins without asking.
        run = played(Bully, 8, extra=(crash,), oracle=2.0)
        assert run.leader == 6
        assert run.sound


def test_who_never_hears_a_coordinator_gives_up() -> None:
    """Failures that do not stop: 3 answers each time, and dies before it can win.

    The lecture's run starts anew for ever; here it ends after `max_runs`, and says so.
    """
    story: list[Happening] = []
    for k in range(3):
        story += [Crash(member=3, at=1.5 + 12 * k), Restart(member=3, at=12.5 + 12 * k)]
    run = played(Bully, 4, detectors=(2,), extra=tuple(story[:-1]), max_runs=3)
    assert run.ended is Ended.QUIESCENT
    assert run.outcomes[2] == GaveUp("no coordinator after 3 runs")
    assert run.sent("OK") == 3


# "Impossibility?"


def test_a_timeout_shorter_than_a_round_trip_makes_several_winners() -> None:
    """The protocol relies on a worst-case latency that can be calculated."""
    run = played(Bully, 6, detectors=(1,), T1=1.5)
    assert len(set(run.claims)) > 1
    assert run.leader == 5  # a better member's COORDINATOR puts it right


def test_delays_beyond_delta_violate_safety_for_a_while() -> None:
    """Members take delays for 1, and one OK comes after T1: a worse member has declared itself."""
    late = Network(PerLink({(4, 3): 6.0}, otherwise=1.0))
    run = played(Bully, 5, detectors=(3,), network=late, delta=1.0)
    assert 3 in run.claims
    assert run.leader == 4


# Decisions


def test_a_leader_that_is_asked_says_again_that_it_leads() -> None:
    """Decision: OK, and COORDINATOR to the senders alone, here 4 and, asked by it, 5."""
    once = played(Bully, 6, initiators=(6,))
    again = played(Bully, 6, initiators=(6,), extra=(Suspect(member=4, about=6, at=20.0),))
    assert again.sent("COORDINATOR") - once.sent("COORDINATOR") == 2
    assert set(again.outcomes.values()) == {Elected(6, 1)}


def test_the_returning_best_takes_over() -> None:
    """The bully's name: back from a crash it wins against the present leader."""
    story = (
        Crash(member=8, at=20.0),
        Suspect(member=1, about=8, at=20.0),
        Restart(member=8, at=40.0),
    )
    run = played(Bully, 8, initiators=(8,), extra=story)
    assert run.leader == 8
    assert run.verdicts["agreement"] is Verdict.HOLDS
    assert run.sound


def test_network_of_one_delay_scales() -> None:
    assert played(Bully, 8, detectors=(1,), network=Network(Fixed(0.5)), delta=0.5).time == 2
