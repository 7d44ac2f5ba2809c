"""Chapter 5 of the announce-listen thesis, sections 5.1 and 5.2: the machine itself.

Addresses are ids and the largest leads. Where the printed programs are wrong (E1, E2), or leave an
instant undecided (E3), `le-s-printed` or a story shows it.
"""

from __future__ import annotations

from math import inf
from statistics import fmean, stdev

import pytest

from hustings.core.choice import candidate, parse_choice
from hustings.core.election import Election
from hustings.core.outcome import ELECTING, Elected, NoLeader
from hustings.lab.closed_forms.announce.extensions import best_first, linked_tmax
from hustings.lab.closed_forms.announce.laws import Law
from hustings.protocols.announce.al import Al
from hustings.protocols.announce.le_a import LeA
from hustings.protocols.announce.le_m import LeM
from hustings.protocols.announce.le_s import LeS
from hustings.protocols.announce.le_s_printed import LeSPrinted
from hustings.protocols.announce.sup import Sup
from hustings.sim.faults import Crash, Heal, Join, OneWay, Update, schedule
from hustings.sim.queue import on_grid
from tests.paper.announcing import DELTA, Group, asleep, group, uncorrelated

# 5.1, "Basic Algorithm"


def test_a_process_assumes_that_it_leads_until_it_is_challenged() -> None:
    """5.1: everybody begins as its own leader; here nobody is told before it has said so."""
    run = group(asleep(LeS, {1: [0.5], 2: [0.2]}), 2)
    assert run.leaders == {1: 1, 2: 2}
    assert {outcome for _, _, outcome in run.notes.declared_at} == {NoLeader(ELECTING)}
    run.run(0.25)
    assert run.world.members[2].outcome == Elected(2, 1)


def test_alone_one_leads_at_once() -> None:
    """5.3.1: a process without others has nobody to agree with."""
    run = group(LeA, 1).run(3.5)
    assert run.said == [(0, 1), (1, 1), (2, 1), (3, 1)]
    assert run.notes.declared_at[-1] == (0, 1, Elected(1, 1))


# 5.1.1, Program 5.1


@pytest.mark.parametrize("n", [2, 10, 50])
def test_program_5_1_without_loss_takes_one_round_and_n_messages(n: int) -> None:
    """5.1.1: all propose themselves, N messages, one leader after a delay."""
    run = group(LeA, n).run(DELTA)
    assert run.said == [(0, member) for member in range(1, n + 1)]
    assert run.leaders == dict.fromkeys(range(1, n + 1), n)
    run.run(3.05)
    assert run.said[n:] == [(1, n), (2, n), (3, n)]


def test_program_5_1_restarts_when_the_listen_timer_expires() -> None:
    """5.1.1: who detects leaderlessness appoints itself and announces at once."""
    run = group(LeA, 3, leader=3, T_L=2)
    schedule(run.world, [Crash(at=0.5, member=3)])
    run.run(1.99)
    assert run.said == []
    run.run(2.0)
    assert run.said == [(2, 1), (2, 2)]
    run.run(2.1)
    assert run.leaders == {1: 2, 2: 2}


@pytest.mark.parametrize("seed", range(5))
def test_le_a_is_le_s_with_no_suppression(seed: int) -> None:
    """5.3: LE-A is LE-S with T_S = 0: the same words at the same time, also with loss."""
    words = []
    lossy = uncorrelated(0.5)
    for run in (
        group(LeA, 12, seed=seed, loss=lossy, T_L=2),
        group(LeS, 12, seed=seed, loss=lossy, T_L=2, T_S=0),
    ):
        run.run(15)
        words.append((run.notes.said, run.notes.declared_at))
    assert words[0] == words[1]
    assert len(words[0][0]) > 20


# 5.1.2, Program 5.2


def test_program_5_2_line_by_line() -> None:
    """2 wakes first; 1 hears it asleep (lines 7 to 9); 3 is better and takes over (line 10)."""
    run = group(asleep(LeS, {1: [0.8], 2: [0.2], 3: [0.6]}), 3, T_A=2).run(0.3)
    assert run.leaders == {1: 2, 2: 2, 3: 3}
    run.run(5)
    assert run.said == [(0.2, 2), (0.6, 3), (2.6, 3), (4.6, 3)]
    assert run.leaders == {1: 3, 2: 3, 3: 3}


def test_a_smaller_address_never_suppresses() -> None:
    """5.1.2: this is what differs from suppression as SUP has it."""
    run = group(asleep(LeS, {1: [0.1], 2: [0.5], 3: [0.9]}), 3, T_A=5).run(2)
    assert run.said == [(0.1, 1), (0.5, 2), (0.9, 3)]


def test_a_listener_of_a_dead_leader_ignores_its_successor() -> None:
    """E9 (b): a dead leader with a larger address still outranks whoever replaces it."""
    run = group(asleep(LeS, {1: [0.0], 2: [0.1]}), 3, leader=3, T_A=1, T_L=4)
    schedule(run.world, [Crash(at=0.5, member=3)])
    run.election(1).on_suspect(run.world.members[1], 3)  # 1 gives it up at once, 2 does not
    run.run(3.9)
    assert (run.leaders, [who for _, who in run.said]) == ({1: 1, 2: 3}, [1, 1, 1, 1])
    run.run(4.3)
    assert run.leaders == {1: 2, 2: 2}


def test_the_wait_for_a_silent_leader_is_t_l_and_then_a_sleep() -> None:
    """5.1.2 (2): after T_L everything begins anew, with a sleep."""
    run = group(asleep(LeS, {1: [0.25]}), 2, leader=2, T_A=1, T_L=3)
    schedule(run.world, [Crash(at=1.5, member=2)])
    run.run(10)
    # Last heard at 1.1.
    assert next(at for at, who in run.said if who == 1) == pytest.approx(1.1 + 3 + 0.25)


@pytest.mark.parametrize("choice", ["lowest-id", "lowest:load", "highest:load"])
def test_any_criterion_will_do(choice: str) -> None:
    """5: whatever the criterion is, if all compare alike there is one leader."""
    order = parse_choice(choice)
    run = group(
        LeS, 20, loss=uncorrelated(0.3), choice=order, attributes=lambda i: (("load", i * 7 % 20),)
    )
    run.agree_at(0.25)
    best = max((member.me for member in run.world.live()), key=order.key).id
    assert set(run.leaders.values()) == {best}


@pytest.mark.parametrize("kind", [LeA, LeS, Al], ids=lambda kind: str(kind.about.name))
def test_a_criterion_may_change_under_way(kind: type[Election]) -> None:
    """5.7: load or loss seen by a member vary; announcements carry what is compared."""
    loads = {1: 0.4, 2: 0.6, 3: 0.1, 4: 0.8}
    run = group(
        kind,
        4,
        leader=3,
        choice=parse_choice("lowest:load"),
        attributes=lambda i: (("load", loads[i]),),
    )
    schedule(
        run.world,
        [
            Update(at=2.5, member=3, candidate=candidate(3, load=0.5)),  # worse than 1 now
            Update(at=8.5, member=4, candidate=candidate(4, load=0.2)),  # better than all
        ],
    )
    run.run(2.4)
    assert set(run.leaders.values()) == {3}
    run.run(8.4)
    assert set(run.leaders.values()) == {1}
    run.run(14)
    assert set(run.leaders.values()) == {4}


# Errata of the programs

CYCLES = [(1, 1 / 2), (2, 1 / 3), (3, 1 / 4), (5, 1 / 6)]


def disagreement(run: Group, leader: int, start: float, end: float) -> float:
    """The part of the time in which some member does not hold `leader`."""
    run.run(end)
    astray: set[int] = set()
    since, total = start, 0.0
    for at, member, outcome in run.notes.declared_at:
        if at > start:
            total += (at - since) * bool(astray)
            since = at
        holds = isinstance(outcome, Elected) and outcome.leader == leader
        (astray.discard if holds else astray.add)(member)
    return (total + (end - since) * bool(astray)) / (end - start)


@pytest.mark.parametrize("k, fraction", CYCLES)
def test_e1_the_printed_listen_timer_is_never_refreshed(k: int, fraction: float) -> None:
    """E1: without loss members disagree 1 - T_L/((floor(T_L/T_A)+1) T_A) of the time."""
    start = 5 * (k + 1) + 0.05
    end = start + 20 * (k + 1)
    printed = group(LeSPrinted, 10, leader=10, T_A=1, T_L=k)
    assert disagreement(printed, 10, start, end) == pytest.approx(fraction)
    right = group(LeS, 10, leader=10, T_A=1, T_L=k)
    assert disagreement(right, 10, start, end) == 0
    assert len(printed.said) > 1.4 * len(right.said)


def test_e2_timers_expire_without_a_message() -> None:
    """E2: as indented in print, a member alone would never get past its first line."""
    assert group(LeS, 1).run(5).said


@pytest.mark.parametrize("lost, departs", [(1, False), (2, False), (3, True)])
@pytest.mark.parametrize("phase", [place / 23 for place in range(1, 23)])
def test_e3_an_arrival_at_the_end_of_t_l_is_in_time(phase: float, lost: int, departs: bool) -> None:
    """E3: with T_L = k T_A a false departure takes k losses, whatever rounding makes of it."""
    run = group(asleep(LeS, {1: [9, 9], 2: [phase]}), 2, T_A=0.3, T_L=0.9)
    cut = phase + 0.15  # after the first announcement has arrived
    schedule(
        run.world,
        [OneWay(at=cut, senders=(2,), to=(1,)), Heal(at=cut + 0.3 * lost, name="one-way")],
    )
    run.run(phase + 1.05)  # the third next would have arrived at phase + 1
    assert run.leaders == {1: 1 if departs else 2, 2: 2}
    run.run(phase + 3)
    assert run.leaders == {1: 2, 2: 2}


# LE-M and the baselines


@pytest.mark.parametrize("seed", range(20))
def test_le_m_elects_the_first_to_wake(seed: int) -> None:
    """1.5: at a simultaneous start the leader is argmin t."""
    run = group(LeM, 30, seed=seed, T_A=2).run(1.5)
    first = min(run.said)[1]
    assert set(run.leaders.values()) == {first}


@pytest.mark.parametrize("p", [0.0, 0.4])
@pytest.mark.parametrize("seed", range(10))
def test_the_first_round_of_le_m_is_sup(seed: int, p: float) -> None:
    """Claims: who wakes after a message it has heard came from an earlier waker, in both."""
    le_m = group(LeM, 40, T_A=10, seed=seed, loss=uncorrelated(p)).run(1.5)
    sup = group(Sup, 40, seed=seed, loss=uncorrelated(p)).run(1.5)
    assert le_m.said == sup.said


def test_sup_speaks_once_and_is_silenced_by_anybody() -> None:
    """1.3: any message heard before waking silences, whoever sent it."""
    run = group(Sup, 30, seed=3).run(20)
    speakers = [who for _, who in run.said]
    first = min(run.said)[0]
    assert len(speakers) == len(set(speakers))
    assert all(at <= first + DELTA for at, _ in run.said)
    assert {member for member, held in run.leaders.items() if held == member} == set(speakers)


def test_al_never_stops() -> None:
    """1.4: all N announce at 0, T_A, 2 T_A, ... and hold the best."""
    run = group(Al, 5).run(3.5)
    assert run.said == [(at, who) for at in range(4) for who in range(1, 6)]
    assert set(run.leaders.values()) == {5}


@pytest.mark.parametrize("key, taken_over", [("absolute", 0), ("relative", 1 / 6)])
def test_le_m_a_late_joiner(key: str, taken_over: float) -> None:
    """1.5: by the time slept one joiner in N+1 unseats the leader for nothing; else none does."""
    runs, unseated = 600, 0
    for seed in range(runs):
        run = group(LeM, 6, seed=seed, later=(6,), key=key, T_A=2, T_L=inf)
        schedule(run.world, [Join(at=3, member=6)])
        run.run(9)
        assert len(set(run.leaders.values())) == 1
        unseated += run.leaders[1] == 6
    spread = (runs * taken_over * (1 - taken_over)) ** 0.5
    assert abs(unseated - runs * taken_over) <= 4 * spread


# The mapping of a criterion onto the wake-up time


def test_who_is_better_wakes_earlier() -> None:
    """5.6: let the wake-up time depend on what the leader is chosen by."""
    N = 50
    run = group(LeS, N, wake="criterion").run(0.5)
    # Places are T_S/N apart; only those that wake within a delay of the best speak at all.
    assert run.said == [(on_grid(i / N), N - i) for i in range(int(DELTA * N) + 1)]
    assert run.world.members[1].outcome == Elected(N, 1)


@pytest.mark.parametrize("link", [0.25, 0.5, 0.9])
@pytest.mark.parametrize("law", ["uniform", "exponential"])
def test_who_is_better_is_likely_to_wake_earlier(link: float, law: str) -> None:
    """5.7: the effect of linking the definition of leadership with the wake-up time, measured.

    How likely the best speaks first does not depend on the law, which keeps the order.
    """
    N, runs, first, slept = 10, 500, 0, []
    for seed in range(runs):
        run = group(LeS, N, seed=seed, wake="linked", link=link, law=law, T_L=inf).run(1.2)
        first += run.said[0][1] == N
        slept.append(min(at for at, who in run.said if who == N))
    expected = best_first(N, link)
    assert 1 / N < expected < 1
    assert abs(first - runs * expected) <= 4 * (runs * expected * (1 - expected)) ** 0.5
    if law == "uniform":
        tmax = linked_tmax(link, 0.5, Law())
        assert abs(fmean(slept) - tmax) <= 4 * stdev(slept) / runs**0.5


def test_a_link_spares_a_group_whose_best_are_dead() -> None:
    """By place alone those that are left wake in the old order; all chance forgets the order."""
    counts = {}
    for link in (0.0, 0.5, 1.0):
        heard = 0
        for seed in range(40):
            run = group(LeS, 30, seed=seed, wake="linked", link=link, T_L=inf)
            schedule(run.world, [Crash(at=0.0, member=member) for member in range(21, 31)])
            heard += len(run.run(1.1).said)
        counts[link] = heard / 40
    assert counts[0.5] < counts[0.0]
    assert counts[1.0] < counts[0.0]


def test_the_law_of_sleep_is_that_of_the_settings() -> None:
    """1.6: the mean of the truncated exponential with lambda = 5 is 0.807 T_S."""
    firsts = [
        min(group(LeS, 1, seed=seed, law="exponential", T_S=2).run(3).said)[0]
        for seed in range(400)
    ]
    assert abs(fmean(firsts) - 2 * 0.8068) < 4 * stdev(firsts) / 20
