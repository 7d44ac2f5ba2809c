"""Chapter 5 of the announce-listen thesis, section 5.7: what it leaves for future work.

The thesis sketches Bye, Query and several leaders in a few sentences each, and ageing in a
footnote; what they cost and gain is worked out here and tried.
"""

from __future__ import annotations

from math import inf
from statistics import fmean, stdev

import pytest

from hustings.core.outcome import Elected
from hustings.protocols.announce.le_a import LeA
from hustings.protocols.announce.le_m import LeM
from hustings.protocols.announce.le_s import LeS
from hustings.protocols.announce.machine import Machine
from hustings.sim.faults import Crash, Join, Leave, schedule
from hustings.sim.loss import Loss, Uncorrelated
from hustings.sim.queue import on_grid
from tests.paper.announcing import DELTA, NO_LOSS, Group, asleep, group, uncorrelated


def close(values: list[float], expected: float) -> bool:
    """Within four standard errors."""
    error: float = stdev(values) / len(values) ** 0.5
    return abs(fmean(values) - expected) <= 4 * error


def kinds(run: Group, kind: str) -> list[tuple[float, int]]:
    return [(at, who) for at, who, said in run.notes.said if said == kind]


# Bye


def test_a_bye_saves_the_wait_for_t_l() -> None:
    """Re-establishment takes a delay for the Bye, a sleep and a delay, instead of T_L and those."""
    run = group(asleep(LeS, {1: [0.6], 2: [0.3]}), 3, leader=3, bye=1)
    schedule(run.world, [Leave(at=0.5, member=3)])
    run.run(0.5 + DELTA + 0.3 + DELTA)
    assert kinds(run, "BYE") == [(0.5, 3)]
    assert run.said == [(0.9, 2)]
    assert run.leaders == {1: 2, 2: 2}


def test_without_a_bye_the_group_waits() -> None:
    run = group(asleep(LeS, {1: [0.6], 2: [0.3]}), 3, leader=3)
    schedule(run.world, [Leave(at=0.5, member=3)])
    run.run(3.05)
    assert kinds(run, "BYE") == []
    assert run.said == []


def test_who_does_not_lead_leaves_in_silence() -> None:
    """Nobody misses a process that does not lead, so it need not say anything."""
    run = group(LeS, 3, leader=3, bye=5)
    schedule(run.world, [Leave(at=0.5, member=1)])
    assert kinds(run.run(2), "BYE") == []


def test_byes_are_repeated_with_a_gap() -> None:
    run = group(LeS, 3, leader=3, bye=3, bye_gap=0.4)
    schedule(run.world, [Leave(at=1.5, member=3, linger=1.0)])
    run.run(10)
    assert kinds(run, "BYE") == [(1.5, 3), (1.9, 3), (2.3, 3)]
    assert [at for at, who in run.said if who == 3] == [1]  # it leads no more while it lingers


def test_a_leader_that_says_goodbye_is_not_won_over() -> None:
    """While it lingers somebody better turns up; it goes on saying goodbye, and nothing else."""
    run = group(asleep(LeS, {1: [9], 3: [0.1]}), 3, leader=2, later=(3,), bye=3, bye_gap=0.4)
    schedule(run.world, [Join(at=1.3, member=3), Leave(at=1.35, member=2, linger=2.0)])
    run.run(3)
    assert len(kinds(run, "BYE")) == 3
    assert run.election(2).state() == "leader=2 term=1 gone"
    assert run.election(1).leader == 3


def test_who_has_said_goodbye_declares_nothing_more() -> None:
    """The second of two leaders leaves, and lingers until the first would be missed."""
    run = group(asleep(LeS, {1: [0.5, 0.5], 2: [0.3], 3: [0.1]}), 3, leaders=2, bye=2, bye_gap=5)
    schedule(run.world, [Crash(at=1.2, member=3), Leave(at=1.25, member=2, linger=9)])
    run.run(9)
    assert run.election(2).state().endswith("gone")
    assert max(at for at, who, _ in run.notes.declared_at if who == 2) < 1.25
    assert len(kinds(run, "BYE")) == 2


@pytest.mark.parametrize("p, N", [(0.4, 20), (0.7, 5)])
def test_the_number_of_byes_for_a_stated_loss(p: float, N: int) -> None:
    """E29: B such that somebody hears none with probability at most eps, and B - 1 is too few."""
    eps, runs, missed = 0.1, 400, 0
    for seed in range(runs):
        run = group(
            LeS, N, seed=seed, leader=N, loss=uncorrelated(p), bye_loss=p, bye_eps=eps, T_L=inf
        )
        schedule(run.world, [Leave(at=0.5, member=N)])
        run.run(0.5 + DELTA)
        missed += N in run.leaders.values()
        byes = len(kinds(run, "BYE"))
    miss = 1 - (1 - p**byes) ** (N - 1)
    assert miss <= eps < 1 - (1 - p ** (byes - 1)) ** (N - 1)
    assert abs(missed - runs * miss) <= 4 * (runs * miss * (1 - miss)) ** 0.5


# Query


def test_a_query_is_answered_before_the_next_announcement() -> None:
    """Extensions (1): with a long T_A a Query finds the leader sooner than waiting does."""
    run = group(LeA, 3, leader=3, later=(1,), query="query", T_A=5, T_L=15)
    schedule(run.world, [Join(at=1, member=1)])
    run.run(1 + 2 * DELTA)
    assert kinds(run, "QUERY") == [(1, 1)]
    assert run.said == [(1.1, 3)]
    assert run.leaders == {1: 3, 2: 3, 3: 3}


def test_a_query_works_like_an_announcement() -> None:
    """All ask at once; a better one's Query silences, and the best announces itself after T_Q."""
    run = group(LeA, 10, query="query").run(0.8)
    assert len(kinds(run, "QUERY")) == 10
    assert run.said == [(0.25, 10)]
    assert set(run.leaders.values()) == {10}


def test_the_delay_of_a_smaller_joiner_with_query() -> None:
    """1.8 [D]: 2 Delta - 2 Delta^2/T_A, if 2 Delta <= T_A."""
    delays = []
    for seed in range(300):
        run = group(LeA, 4, seed=seed, leader=4, later=(1,), query="query", T_L=inf)
        joins = 3 + (seed + 0.5) / 300
        schedule(run.world, [Join(at=joins, member=1)])
        run.run(5)
        heard = next(
            at for at, who, told in run.notes.declared_at if (who, told) == (1, Elected(4, 1))
        )
        delays.append(heard - joins)
    assert fmean(delays) == pytest.approx(2 * DELTA - 2 * DELTA**2, abs=0.002)


def test_one_suppressed_answer_serves_many_and_comes_later() -> None:
    """Extensions (2): suppression before asking and answering saves messages and takes longer."""
    counts, ends = {}, {}
    for query in ("query", "suppress-query"):
        run = group(LeS, 30, seed=5, leader=30, query=query, T_A=50, T_L=200)
        for member in range(1, 30):
            run.election(member).call(run.world.members[member])
        ends[query] = run.agree_at(0.05)
        run.run(5)
        counts[query] = len(run.notes.said)
    assert counts["suppress-query"] < counts["query"] / 2
    assert ends["suppress-query"] > ends["query"]


def test_without_a_leader_suppress_query_sleeps_asks_and_announces() -> None:
    run = group(asleep(LeS, {1: [0.9], 2: [0.4]}), 2, query="suppress-query", T_A=3).run(2)
    assert kinds(run, "QUERY") == [(0.4, 2)]
    assert run.said == [(on_grid(0.4 + 2.5 * DELTA + 1), 2)]


# Several leaders


def harmonic(n: int) -> float:
    return sum(1 / i for i in range(1, n + 1))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_first_round_of_several_leaders(k: int) -> None:
    """1.8 [E]: k + k(H_N - H_k) first announcements; [D]: the last leader wakes at k/(k+1)."""
    N, counts, last = 10, [], []
    for seed in range(800):
        run = group(LeS, N, seed=seed, delta=1e-6, leaders=k, T_A=2, T_L=inf).run(1.5)
        counts.append(float(len(run.said)))
        best = range(N - k + 1, N + 1)
        last.append(max(at for at, who in run.said if who in best))
    assert close(counts, k + k * (harmonic(N) - harmonic(k)))
    assert close(last, k / (k + 1))


@pytest.mark.parametrize("kind", [LeA, LeS, LeM], ids=lambda kind: str(kind.about.name))
@pytest.mark.parametrize("loss", [NO_LOSS, Uncorrelated(0.3)], ids=["none", "loss"])
def test_k_agreed_leaders(kind: type[Machine], loss: Loss) -> None:
    """Several leaders that all agree upon: the same k for all; `leader` is the best of them."""
    run = group(kind, 12, seed=3, loss=loss, leaders=3, T_A=2, T_L=40).run(60)
    elections = [member.election for member in run.world.live()]
    named = {
        each.leaders for each in elections if isinstance(each, Machine) and len(each.leaders) == 3
    }
    assert len(named) == 1
    (leaders,) = named
    announcing = {who for at, who in run.said if at > 55}
    assert announcing == set(leaders)
    assert set(run.leaders.values()) == {leaders[0]}
    assert kind is LeM or leaders == (12, 11, 10)


def test_one_of_several_leaders_is_replaced() -> None:
    run = group(LeS, 6, seed=1, leaders=2, T_A=2).run(10)
    schedule(run.world, [Crash(at=10.5, member=5)])
    run.run(30)
    assert {who for at, who in run.said if at > 25} == {4, 6}
    assert set(run.leaders.values()) == {6}


# Aged leaders


def test_an_aged_leader_gives_way_before_it_expires() -> None:
    """5.1.3, footnote: leaders might age instead of expiring all at once.

    One that was missed once is followed on, but its successor is no longer ignored (E9 b).
    """
    ends = {}
    for aged in (1, 4):
        run = group(asleep(LeS, {1: [0.5], 2: [0.0]}), 3, leader=3, T_L=4, aged=aged)
        schedule(run.world, [Crash(at=0.5, member=3)])
        run.run(1.5)
        assert run.leaders == {1: 3, 2: 3}
        run.election(2).on_suspect(run.world.members[2], 3)
        ends[aged] = run.agree_at(0.05)
    assert ends[4] == pytest.approx(1.6)
    assert ends[1] >= 4


def test_an_aged_leader_expires_after_t_l_all_the_same() -> None:
    for aged in (1, 2, 5):
        run = group(asleep(LeS, {1: [0.25]}), 2, leader=2, T_L=5, aged=aged)
        schedule(run.world, [Crash(at=0.5, member=2)])
        assert run.run(5.5).said == [(5.25, 1)]


def test_a_leader_that_is_heard_again_is_young_again() -> None:
    """It is missed once in every period, for it ages faster than it speaks, and never expires."""
    run = group(asleep(LeS, {1: [9]}), 2, leader=2, T_A=1, T_L=2.4, aged=3).run(20.5)
    assert set(run.leaders.values()) == {2}
    assert {who for _, who in run.said} == {2}


def test_a_listener_of_le_m_has_no_key_of_its_own() -> None:
    """Whoever wakes after an aged leader woke later, too, and takes its place all the same."""
    run = group(asleep(LeM, {1: [0.5], 2: [0.2]}), 3, leader=3, T_L=4, aged=4)
    schedule(run.world, [Crash(at=0.5, member=3)])
    run.run(1.5)
    run.election(2).on_suspect(run.world.members[2], 3)
    run.run(1.5 + 0.2 + DELTA)
    assert run.leaders == {1: 2, 2: 2}
