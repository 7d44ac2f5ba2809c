"""Bits that a member sends and rounds that pass: elections, endgames, all members with all.

All are means over participants; agreement is the recursive phase king unless stated otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from math import ceil

from hustings.lab.closed_forms.committee.agreement import (
    agreement_bits,
    broadcast_bits,
    broadcast_rounds,
    phase_king_bits,
)
from hustings.lab.closed_forms.committee.exponents import PAPER
from hustings.lab.closed_forms.committee.network import (
    NetworkNumbers,
    halvings_to,
    lean,
    root_members,
)
from hustings.lab.closed_forms.form import Sheet, require

SOURCE = f"{PAPER}: sections 2, 4 and 5, with the agreement of `agreement`"
LIST_END = 128  # at this many an all-to-all Feige ends: the rest go on among themselves
SMALLEST, LARGEST = 16, 1 << 20
STEPS = 8  # sizes in a doubling


def election_bits(k: int, h: int) -> float:
    """C(k) sum over i < h of ceil(k/2^i): h halvings, each candidate's bit agreed on by all k.

    Parameters: k, participants; h, halvings.

    Source: section 2, ELECT-SUBCOMMITTEE. Verdict: exact but for the bits sent before they are
    agreed on, one in 14 k; about 28 k^2 (1 - 2^-h).

    >>> round(election_bits(512, 2))
    5517792
    """
    return agreement_bits(k) * _candidates(k, h)


def sending_bits(k: int, h: int) -> float:
    """(k-1)/k sum over i < h of ceil(k/2^i): what candidates send before it is agreed on.

    Parameters: k, participants; h, halvings.

    Source: section 2, step 2 of ELECT-SUBCOMMITTEE. Verdict: exact in the mean, if every bin that
    wins is full.

    >>> sending_bits(512, 2)
    766.5
    """
    return (k - 1) / k * _candidates(k, h)


def one_shot_bits(k: int, bins: int) -> float:
    """k C(k) with values of log2 B bits: one election with B bins.

    Parameters: k, participants; bins (B), at least 2.

    Source: section 2, ELECT-SUBCOMMITTEE. Verdict: exact but for the bits sent before.

    >>> round(one_shot_bits(512, 4) / election_bits(512, 2), 2)
    1.14
    """
    return k * agreement_bits(k, bins)


def election_rounds(k: int, h: int) -> int:
    """h (R(k) + 1).

    Parameters: k, participants; h, halvings.

    Source: section 2. Verdict: exact.

    >>> election_rounds(512, 2)
    1526
    """
    return h * broadcast_rounds(k)


def path_bits(k: int, depth: int) -> float:
    """D (C(k) + (k-1)/k): a random path in a committee of k.

    Parameters: k, participants; depth (D).

    Source: reference [2]. Verdict: exact in the mean, holders taken evenly.

    >>> round(path_bits(128, 128))
    233423
    """
    return depth * broadcast_bits(k)


def path_rounds(k: int, depth: int) -> int:
    """D (R(k) + 1).

    Parameters: k, participants; depth (D).

    Source: reference [2]. Verdict: exact.

    >>> path_rounds(128, 128)
    23936
    """
    return depth * broadcast_rounds(k)


def everybody_by_feige(n: int) -> float:
    """Halvings of all n with recursive phase king, to 128 or fewer, which then go on by themselves.

    Parameters: n.

    Source: section 2, HEAVYWEIGHT on all n. Verdict: exact up to the bits sent before each
    agreement; about 28 n^2.

    >>> [f"{everybody_by_feige(10**e):.1e}" for e in (3, 4, 5, 6)]
    ['2.5e+07', '2.8e+09', '2.8e+11', '2.8e+13']
    """
    return _by_feige(n, agreement_bits)


def everybody_by_phase_king(n: int) -> float:
    """The same with phase king: about 2 n^3.

    Parameters: n.

    Source: section 2, HEAVYWEIGHT on all n. Verdict: as of `everybody_by_feige`.

    >>> [f"{everybody_by_phase_king(10**e):.1e}" for e in (3, 4, 5, 6)]
    ['1.8e+09', '2.0e+12', '2.0e+15', '2.0e+18']
    """
    return _by_feige(n, phase_king_bits)


def everybody_by_path(n: int) -> float:
    """n C(n): a random path of n steps among all n, about 14 n^2.

    Parameters: n.

    Source: reference [2]. Verdict: exact but for the bits sent before each agreement.

    >>> [f"{everybody_by_path(10**e):.1e}" for e in (3, 4, 5, 6)]
    ['1.4e+07', '1.4e+09', '1.4e+11', '1.4e+13']
    """
    return n * agreement_bits(n)


def printed_everybody(n: int) -> float:
    """n^3 bits of a member: HEAVYWEIGHT on all n in O(n^4 ln* n) bits together.

    Parameters: n.

    Source: Lemma 2.1. Verdict: with the printed O(k^3) for one agreement, constants left out.

    >>> printed_everybody(1000)
    1000000000.0
    """
    return float(n) ** 3


def tree_bits(knobs: NetworkNumbers, b: float = 0.0) -> float:
    """E[bits of a member]: its elections, its part in the root's path, the words between nodes.

    Parameters: knobs; b, the share of bad members, who pack every bin.

    Source: sections 4 and 5, with the full endgame. Verdict: an estimate within a tenth: mean
    numbers of participants are put in.

    >>> f"{tree_bits(lean(10_000), 0.1):.2g}"
    '7.2e+06'
    """
    return electing_bits(knobs) + rooting_bits(knobs, b) + learning_bits(knobs)


def electing_bits(knobs: NetworkNumbers) -> float:
    """sum over layers of (elections of a member) x `election_bits(k, h)`.

    Parameters: knobs.

    Source: section 5, step 4. Verdict: exact for full nodes.

    >>> f"{electing_bits(lean(10_000)):.2g}"
    '5.5e+06'
    """
    return sum(
        times * (election_bits(round(k), h) + sending_bits(round(k), h))
        for times, k, (_, _, h) in zip(
            knobs.electing, knobs.participants, knobs.layers, strict=True
        )
    )


def rooting_bits(knobs: NetworkNumbers, b: float = 0.0) -> float:
    """(k_top/n) D C(k_top), with k_top distinct members.

    Parameters: knobs; b, the share of bad members, who pack every bin.

    Source: section 5, step 5, with a random path. Verdict: exact for the mean k_top.

    >>> f"{rooting_bits(lean(10_000)):.2g}"
    '1.1e+06'
    """
    good, bad = root_members(knobs, b)
    k = max(1, round(good + bad))
    share = good / (knobs.n * (1 - b)) if b < 1 else 0.0
    return share * path_bits(k, knobs.depth)


def learning_bits(knobs: NetworkNumbers) -> float:
    """sum over layers of d0 (N-1) l (fan + c M/q): LEARN-PROCESSORS, with lists of l bits.

    All leaves under a node keep its list: c names of ceil log2 n bits, or in the first layer, where
    it is known who took part, a mark for each of those if that is shorter. Each member of them is
    told the lists of the N-1 other nodes by `fan` members; each member of the node asks M leaves
    for all of those lists.

    Parameters: knobs.

    Source: section 4. Verdict: exact in the mean for full nodes and good members; bad ones may ask
    all leaves.

    >>> f"{learning_bits(lean(10_000)):.2g}"
    '6.5e+05'
    """
    return _learning(
        knobs, lambda under, leaf, c: knobs.fan + c * min(1.0, knobs.monitors / under), marks=True
    )


def leaf_learning_bits(knobs: NetworkNumbers) -> float:
    """sum over layers of d0 (N-1) c w (fan c0 + c) M/q: the same by M leaves for each node.

    M leaves under a node keep its list of c names (w bits each) and those of the others, told by
    all members of `fan` leaves of each, and tell all of them to each member of the node.

    Parameters: knobs.

    Source: section 4. Verdict: exact in the mean for full nodes, if those leaves are spread evenly.

    >>> f"{leaf_learning_bits(lean(10_000)):.2g}"
    '3.8e+06'
    """
    return _learning(
        knobs,
        lambda under, leaf, c: (knobs.fan * leaf + c) * min(1.0, knobs.monitors / under),
        marks=False,
    )


def _learning(
    knobs: NetworkNumbers, lists: Callable[[float, float, float], float], *, marks: bool
) -> float:
    """Lists that one member sends for each other node, summed over nodes and layers, in bits."""
    total = 0.0
    names = (knobs.n - 1).bit_length()
    leaf = knobs.n / (knobs.n // knobs.c0)
    under = 1.0  # leaves under a node
    for layer, (q, _, h) in enumerate(knobs.layers):
        under *= q
        top = layer + 1 == len(knobs.layers)
        above_q, above_s = (1, knobs.nodes[layer]) if top else knobs.layers[layer + 1][:2]
        meetings = 1.0 if top else above_s / above_q
        c = knobs.committees[layer]
        size, voters = c * names, knobs.participants[layer]
        if marks and layer == 0 and round(voters) <= (round(voters) >> h) * names:
            size = voters
        total += knobs.d0 * meetings * (above_s - 1) * size * lists(under, leaf, c)
    return total


def tree_rounds(knobs: NetworkNumbers, b: float = 0.0) -> int:
    """The rounds of the elections, the root's path, and two for each layer to learn who is where.

    Parameters: knobs; b, the share of bad members, who pack every bin.

    Source: section 5. Verdict: an estimate within a twentieth, since R depends on halves of k.

    >>> f"{tree_rounds(lean(10_000)):.2g}"
    '5.7e+05'
    """
    total = path_rounds(max(1, round(sum(root_members(knobs, b)))), knobs.depth)
    for k, (_, _, h) in zip(knobs.participants, knobs.layers, strict=True):
        total += election_rounds(round(k), h) + 2
    return total


def crossover(rival: Callable[[int], float], knobs: Callable[[int], NetworkNumbers] = lean) -> int:
    """The least n from which on the tree sends fewer bits in the mean, to 2^20 at least.

    Parameters: rival, the bits of a member when everybody speaks to everybody; knobs by n.

    Source: none in the paper. Verdict: by `tree_bits` with nobody bad, over eight sizes in every
    doubling of n from 16 on.

    >>> crossover(everybody_by_path) <= 256
    True
    """
    first, last = (STEPS * (size.bit_length() - 1) for size in (SMALLEST, LARGEST))
    sizes = sorted({round(2 ** (step / STEPS)) for step in range(first, last + 1)})
    beaten = LARGEST
    for n in reversed(sizes):
        if tree_bits(knobs(n)) >= rival(n):
            break
        beaten = n
    require(beaten < LARGEST, "the tree sends more bits at every n up to 2^20")
    return beaten


def _candidates(k: int, h: int) -> int:
    require(h >= 0, f"h must not be negative, not {h}")
    return sum(ceil(k / 2**i) for i in range(h))


@lru_cache(4096)
def _by_feige(n: int, agreed: Callable[[int], float]) -> float:
    require(n >= 2, f"n must be at least 2, not {n}")
    h = halvings_to(n, LIST_END)
    left = n >> h
    total = _candidates(n, h) * agreed(n)
    return total + left / n * _candidates(left, halvings_to(left, 1)) * agreed(left)


def declare_one_election(sheet: Sheet, k: int, h: int) -> None:
    """Add the costs of one election of k members to a sheet."""
    sheet.source = SOURCE
    lead = f"k = {k}, h = {h}: "
    sheet.known("election_bits", election_bits, lambda: election_bits(k, h), lead)
    sheet.known("election_rounds", election_rounds, lambda: election_rounds(k, h), lead)
    if h:
        sheet.known("one_shot_bits", one_shot_bits, lambda: one_shot_bits(k, 2**h), lead)


def declare(sheet: Sheet, knobs: NetworkNumbers, b: float) -> None:
    """Add the forms of this module to a sheet."""
    sheet.source = SOURCE
    sheet.add("bits_mean", tree_bits, knobs, b)
    sheet.add("bits_electing", electing_bits, knobs)
    sheet.add("bits_root", rooting_bits, knobs, b)
    sheet.add("bits_learning", learning_bits, knobs)
    sheet.add("rounds", tree_rounds, knobs, b)
    for name, rival in (
        ("path", everybody_by_path),
        ("feige", everybody_by_feige),
        ("phase_king", everybody_by_phase_king),
    ):
        sheet.add(f"bits_everybody_{name}", rival, knobs.n)
        sheet.known(f"crossover_{name}", crossover, partial(crossover, rival), f"{name}: ")
    sheet.add("bits_everybody", printed_everybody, knobs.n)
