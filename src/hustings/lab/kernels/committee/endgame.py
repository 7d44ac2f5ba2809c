"""The last stage: the probability of a good leader, given the members of the root.

Random path: a public binary tree of depth D, every place of it labelled with a candidate by a hash.
A good holder goes left or right by a coin, a bad one to the side that is worse for the good; the
member that the last label names leads. Labels are independent, so the value of a place is a random
number whose law follows from that of the level below: the mean of two such numbers with probability
1 - x, their minimum with probability x, where x is the share of bad candidates.

Baton passing: the lowest id begins and is taken to be good, which is worse for the good. The holder
passes to a candidate not yet visited, and the last one leads. Feige to one: two bins until one is
left. Before baton, and before the path among few, two bins are repeated until few are left.

Where the bad move like the good, all candidates are alike: each leads with the same chance, and the
candidates left after two bins are any sample of the earlier ones.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, lgamma

import numpy as np
from numpy.typing import NDArray

from hustings.lab.kernels.committee.bins import pack_two
from hustings.lab.kernels.compiling import compiled
from hustings.lab.kernels.draws import binomial
from hustings.lab.kernels.results import Floats

GRID = 1024  # values of a place are told apart to 1 part in this many
SHARES = 128  # bad shares of 0 .. 1 at which the path is tabled
FEIGE_TABLE = 128  # up to this many candidates Feige to one is tabled
FAINT = 1e-13  # states less likely than this are dropped


@lru_cache(maxsize=8)
def path_table(depth: int) -> Floats:
    """P(good leader) of the random path, for shares 0, 1/SHARES, .., 1."""
    shares = np.arange(SHARES + 1) / SHARES
    low, cell = np.zeros(SHARES + 1), np.full(SHARES + 1, 1.0 / GRID)
    law = np.zeros((SHARES + 1, GRID + 1))
    law[:, 0], law[:, GRID] = shares, 1.0 - shares
    for _ in range(depth):
        law = _level(law, shares[:, None])
        for row in range(SHARES + 1):
            _zoom(law[row], row, low, cell)
    return np.asarray(low + cell * (law @ np.arange(GRID + 1)))


@lru_cache(maxsize=8)
def path_law(share: float, depth: int) -> tuple[Floats, Floats]:
    """Return the value of a place with this many levels below: values and their chances."""
    shares, low, cell = np.array([[share]]), np.zeros(1), np.full(1, 1.0 / GRID)
    law = np.zeros((1, GRID + 1))
    law[0, 0], law[0, GRID] = share, 1.0 - share
    for _ in range(depth):
        law = _level(law, shares)
        _zoom(law[0], 0, low, cell)
    return low[0] + cell[0] * np.arange(GRID + 1), law[0]


def _zoom(law: Floats, row: int, low: Floats, cell: Floats) -> None:
    """Halve the cells where half the grid holds all that matters; both steps of a level allow it.

    Averages and minima do not ask where the grid lies, and a law that is put on every other point
    of a finer grid has lost nothing.
    """
    below = np.cumsum(law)
    start = int(np.searchsorted(below, FAINT))
    end = int(np.searchsorted(below, 1.0 - FAINT))
    half = GRID // 2
    if end - start > half or cell[row] < FAINT:
        return
    start = min(max(0, (start + end - half) // 2), half)
    kept = law[start : start + half + 1].copy()
    law[:] = 0.0
    law[::2] = kept / kept.sum()
    low[row] += start * cell[row]
    cell[row] /= 2.0


def _level(law: Floats, share: Floats) -> Floats:
    """The law one level higher: halves of a cell go to both sides, which keeps the mean."""
    wide = 2 * GRID + 2
    sums = np.fft.irfft(np.fft.rfft(law, wide, axis=1) ** 2, wide, axis=1)[:, : 2 * GRID + 1]
    mean = sums[:, ::2].copy()
    odd = sums[:, 1::2] / 2.0
    mean[:, :-1] += odd
    mean[:, 1:] += odd
    above = np.cumsum(law[:, ::-1], axis=1)[:, ::-1]
    least = above**2
    least[:, :-1] -= above[:, 1:] ** 2
    found = np.maximum((1.0 - share) * mean + share * least, 0.0)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def path_value(bad: float, total: float, depth: int) -> float:
    """P(good leader) of the random path among `total`.

    >>> round(path_value(10, 100, 128), 3)
    0.841
    """
    if total <= 0:
        return 0.0
    shares = np.arange(SHARES + 1) / SHARES
    return float(np.interp(bad / total, shares, path_table(depth)))


@lru_cache(maxsize=64)
def baton_table(size: int) -> Floats:
    """P(good leader) of baton passing among `size`, by how many of them are bad."""
    found = np.zeros(size + 1)
    _fill_batons(size, found)
    return found


@compiled
def _fill_batons(size: int, found: Floats) -> None:
    """Columns by good not yet visited, from none to all; rows by bad."""
    with_good = np.zeros((size + 1, size + 1))  # [good, bad] not yet visited, a good holder
    with_bad = np.zeros((size + 1, size + 1))
    for left in range(size):
        for bad in range(left + 1):
            good = left - bad
            if left == 0:
                with_good[0, 0] = 1.0
                continue
            mean = 0.0
            least = 2.0
            if good:
                mean += good * with_good[good - 1, bad]
                least = with_good[good - 1, bad]
            if bad:
                mean += bad * with_bad[good, bad - 1]
                least = min(least, with_bad[good, bad - 1])
            with_good[good, bad] = mean / left
            with_bad[good, bad] = least
    for bad in range(size):
        found[bad] = with_good[size - bad - 1, bad]
    found[size] = 0.0


@lru_cache(maxsize=1)
def feige_table() -> Floats:
    """P(good leader) of two bins to one, by [good, bad], to FEIGE_TABLE candidates in all."""
    found = np.zeros((FEIGE_TABLE + 1, FEIGE_TABLE + 1))
    _fill_feige(found)
    return found


@compiled
def _fill_feige(found: Floats) -> None:
    """Smaller groups first; the adversary may have a round repeated by leaving one bin empty."""
    most = found.shape[0] - 1
    for size in range(1, most + 1):
        for good in range(1, size + 1):
            bad = size - good
            if bad == 0:
                found[good, 0] = 1.0
                continue
            chance = 0.5**good
            value = forced = repeated = 0.0
            for zeros in range(good + 1):
                if zeros:
                    chance *= (good - zeros + 1) / zeros
                best = _best_of_two(found, zeros, good - zeros, bad)
                if zeros in (0, good):
                    forced += chance * best
                    repeated += chance
                else:
                    value += chance * best
            # Where one bin holds no good member, the adversary may empty it and have it again.
            again = value / (1.0 - repeated) if repeated < 1.0 else 0.0
            found[good, bad] = min(value + forced, again)


@compiled
def _best_of_two(found: Floats, zeros: int, ones: int, bad: int) -> float:
    """The adversary's best after it has seen the good choices, without a repetition."""
    size = zeros + ones + bad
    best = 2.0
    for good, most in ((zeros, size // 2 - zeros), (ones, (size - 1) // 2 - ones)):
        filled = min(bad, most)
        if filled >= 0 and good + filled > 0 and good + filled < size:
            best = min(best, found[good, filled])
    return best


def after_halving(
    good: int, bad: int, until: int, packs: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats, list[float]]:
    """Two bins as often as it takes to come to `until`: good, bad and chance of all ends.

    The number of halvings follows from the number of candidates, which is public, and not from
    luck. If too many are still left they are cut, in the adversary's favour. Also return how many
    candidates each round has, on average.
    """
    if not packs and bad:
        return _sampled(good, bad, until)
    goods, bads = np.array([good], np.int64), np.array([bad], np.int64)
    chances: Floats = np.ones(1)
    sizes = []
    for _ in range(halvings_to(good + bad, until)):
        sizes.append(float((goods + bads) @ chances))
        parts = [
            _one_halving(int(g), int(x), float(p))
            for g, x, p in zip(goods, bads, chances, strict=True)
        ]
        codes = np.concatenate([code for code, _ in parts])
        weights = np.concatenate([weight for _, weight in parts])
        states, place = np.unique(codes, return_inverse=True)
        chances = np.asarray(np.bincount(place, weights), np.float64)
        keep = chances > FAINT
        states, chances = states[keep], chances[keep] / chances[keep].sum()
        goods = (states >> 32).astype(np.int64)
        bads = (states & 0xFFFFFFFF).astype(np.int64)
    bads = np.minimum(bads, until)
    return np.minimum(goods, until - bads), bads, chances, sizes


def halvings_to(candidates: int, most: int) -> int:
    """How often to halve so that at most `most` are left.

    >>> [halvings_to(k, 128) for k in (100, 128, 129, 512, 513)]
    [0, 0, 1, 2, 2]
    """
    times = 0
    while candidates >> times > most:
        times += 1
    return times


def _sampled(
    good: int, bad: int, until: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats, list[float]]:
    """Return the ends where the bad throw like the good: any sample of that size is left."""
    left, _, chances, sizes = after_halving(good + bad, 0, until, packs=True)
    rows = [
        (size - x, x, float(chance) * _drawn(size, x, good, bad))
        for size, chance in zip(left.tolist(), chances.tolist(), strict=True)
        for x in range(max(0, size - good), min(size, bad) + 1)
    ]
    goods, bads, found = zip(*(row for row in rows if row[2] > FAINT), strict=True)
    law: Floats = np.array(found)
    return np.array(goods, np.int64), np.array(bads, np.int64), law / law.sum(), sizes


def _drawn(size: int, x: int, good: int, bad: int) -> float:
    """P(x of a sample of this many are bad)."""
    return exp(_choose(bad, x) + _choose(good, size - x) - _choose(good + bad, size))


def _choose(n: int, k: int) -> float:
    """The logarithm of n over k."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _one_halving(good: int, bad: int, chance: float) -> tuple[NDArray[np.int64], Floats]:
    """Return where one state goes, as codes and chances."""
    if good + bad <= 1 or good == 0:
        return np.array([(good << 32) | bad]), np.array([chance])
    spread = int(4.5 * good**0.5) + 4
    low, high = max(0, good // 2 - spread), min(good, (good + 1) // 2 + spread)
    codes = np.empty(high - low + 1, np.int64)
    weights = np.empty(high - low + 1)
    _fill_halving(good, bad, low, codes, weights)
    return codes, weights * (chance / weights.sum())


@compiled
def _fill_halving(good: int, bad: int, low: int, codes: NDArray[np.int64], weights: Floats) -> None:
    middle = good // 2
    weight = 1.0
    for zeros in range(middle, low + codes.size):
        if zeros > middle:
            weight *= (good - zeros + 1) / zeros
        weights[zeros - low] = weight
    weight = 1.0
    for zeros in range(middle - 1, low - 1, -1):
        weight *= (zeros + 1) / (good - zeros)
        weights[zeros - low] = weight
    for place in range(codes.size):
        zeros = low + place
        ones = good - zeros
        bin_, filled = pack_two(zeros, ones, bad)
        if bin_ < 0:
            codes[place] = (good << 32) | bad
        else:
            codes[place] = ((zeros if bin_ == 0 else ones) << 32) | filled


def halved_once(stream: NDArray[np.uint64], good: int, bad: int, packs: bool) -> tuple[int, int]:
    """One election by two bins, thrown once: how many good ones and bad ones are left."""
    zeros = int(binomial(stream, good, 0.5))
    if packs:
        bin_, filled = pack_two(zeros, good - zeros, bad)
        return (good, bad) if bin_ < 0 else (zeros if bin_ == 0 else good - zeros, int(filled))
    down = int(binomial(stream, bad, 0.5))
    ones, up = good - zeros, bad - down
    if zeros + down == 0 or ones + up == 0:
        return good, bad
    return (zeros, down) if zeros + down <= ones + up else (ones, up)


def last_value(
    endgame: str, good: int, bad: int, depth: int, parts: int, steers: bool = True
) -> float:
    """P(good leader) among the remaining members, which agree among themselves.

    >>> last_value("feige", 3, 1, 128, 3, steers=False)
    0.75
    """
    if endgame != "feige" and parts * bad >= good + bad:
        return 0.0
    if not steers:
        return good / (good + bad)
    if endgame == "feige":
        return float(feige_table()[good, bad])
    if endgame == "baton":
        return float(baton_table(good + bad)[bad])
    return path_value(bad, good + bad, depth)
