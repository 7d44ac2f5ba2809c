"""How many unicasts the worst schedules take, found by trying, and the time-outs."""

from __future__ import annotations

import random

import pytest

from hustings.lab.closed_forms.probabilistic import messages
from hustings.lab.closed_forms.probabilistic.round import Round

Box = list[tuple[int, int, int]]


def any_order(seed: int, m: int) -> tuple[int, int]:
    """Unicasts, and different ones, if messages overtake each other between different pairs."""
    rng = random.Random(seed)
    best = rng.sample(range(m), m)
    known = [{j for j in range(m) if j != i and rng.random() < 0.8} for i in range(m)]
    waiting: dict[tuple[int, int], list[int]] = {}
    sent: list[tuple[int, int, int]] = []

    def tell(i: int, j: int) -> None:
        sent.append((i, j, best[i]))
        waiting.setdefault((i, j), []).append(best[i])

    for i in range(m):
        for j in sorted(known[i]):
            tell(i, j)
    while pairs := [pair for pair in sorted(waiting) if waiting[pair]]:
        i, j = rng.choice(pairs)
        choice = waiting[i, j].pop(0)
        known[j].add(i)
        if choice < best[j]:
            best[j] = choice
            for k in sorted(known[j]):
                tell(j, k)
        elif choice > best[j]:
            tell(j, i)
    return len(sent), len(set(sent))


@pytest.mark.parametrize("m, most", [(2, 4), (3, 18), (4, 44)])
def test_the_printed_bound_is_exceeded_and_ours_is_not(m: int, most: int) -> None:
    found = [any_order(seed, m) for seed in range(3000)]
    worst = max(sent for sent, _ in found)
    assert most <= worst <= messages.most_unicasts(m)
    assert (worst > messages.printed_unicasts(m)) == (m > 2)
    assert max(fresh for _, fresh in found) <= messages.most_fresh_unicasts(m) or m == 2


def fed_halves(quarter: int) -> int:
    """Two chains of ever better choices feed two halves that know each other; unit delays."""
    chains = [range(quarter), range(quarter, 2 * quarter)]
    halves = [range(2 * quarter, 3 * quarter), range(3 * quarter, 4 * quarter)]
    best = [0] * (4 * quarter)  # larger is better here
    known: list[set[int]] = [set() for _ in best]
    for side, (chain, half) in enumerate(zip(chains, halves, strict=True)):
        for step, member in enumerate(chain):
            best[member] = 2 * step + side + 3
            known[member] |= {chain[step - 1]} if step else set(half)
        for member in half:
            best[member] = side + 1
    for member in halves[0]:
        known[member] |= set(halves[1])
    sent = 0
    box: Box = [(i, j, best[i]) for i in range(len(best)) for j in sorted(known[i])]
    while box:
        sent += len(box)
        arriving, box = sorted(box, key=lambda each: each[0]), []  # feeders first
        for i, j, choice in arriving:
            known[j].add(i)
            if choice > best[j]:
                best[j] = choice
                box += [(j, k, choice) for k in sorted(known[j])]
            elif choice < best[j]:
                box.append((j, i, best[j]))
    return sent


def test_the_worst_case_grows_with_the_fourth_power() -> None:
    """E12 leaves O(m^3) standing; with answers it does not stand."""
    few, many = fed_halves(8), fed_halves(32)
    assert many > 1.5 * 4**3 * few
    assert many > messages.printed_unicasts(128)
    assert many < messages.most_unicasts(128)
    assert many == pytest.approx(128**4 / 256, rel=0.1)


def test_small_groups() -> None:
    assert messages.most_unicasts(0) == messages.most_unicasts(1) == 0
    assert messages.first_unicasts(Round(K=7, N=1)) == 0
    assert messages.relay_members(Round(K=7, N=3)) == 3


def test_all_relay_when_k_reaches_n() -> None:
    """E11: the last round of the strategy costs a part of N^2."""
    one = Round(K=2000, view_prob=0.5, p_mcastl=0.001, p_ucastl=0.001, p_fail=0.001, N=2000)
    assert 0.42 * 2000**2 < messages.first_unicasts(one) < 1.1 * 2000**2
    assert messages.mean_unicasts_at_most(one) > 1.1 * 2000**2


def test_time_outs() -> None:
    assert messages.printed_time_out_2(7, 1.0) == 10.5
    assert messages.time_out_2(7, 1.0, 0.25) == 10.75
    assert messages.time_out_1(10.75, 0.25, work=1.0) == 12.25
    assert messages.printed_time_out_1(7, 1.0, 0.25, work=1.0) == 11.75
