"""A practical network by its parameters: leaves, nodes, participants; effects of random corruption.

Leaves are cut from d0 permutations of the group; node j of a layer has q children in the tree and s
neighbours below, whose members halve themselves h times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import ceil, floor

from hustings.lab.closed_forms.committee import bins, endgame
from hustings.lab.closed_forms.committee.exponents import PAPER, THIRD
from hustings.lab.closed_forms.committee.sums import hypergeometric
from hustings.lab.closed_forms.form import Sheet, require

SOURCE = f"{PAPER}: sections 3 to 5, with the numbers given"
LARGEST_GROUP = 10**9
MOST_HALVINGS = 16
SMALL = 129  # members: below, networks are made to be played message by message
COARSE = 0.05  # between values of phi that are computed; those between are interpolated
DUST = 1e-7
STYLES = ("full", "small", "baton")

Shape = tuple[int, int, int]  # q, s, h

LEAN = (  # below this many members: leaf size, children, halvings
    (32, 4, 2, 1),
    (64, 4, 4, 1),
    (104, 8, 4, 1),
    (SMALL, 8, 6, 1),
    (500, 16, 4, 1),
    (3163, 16, 16, 1),
    (31623, 32, 16, 2),
    (316228, 32, 32, 3),
    (LARGEST_GROUP + 1, 32, 64, 4),
)

ROBUST = (  # below this many members: leaf size, leaves of a member, children, halvings, monitors
    (3_163, 16, 8, 8, 1, 4),
    (25_000, 16, 8, 16, 1, 3),
    (125_000, 16, 4, 16, 1, 3),
    (316_228, 16, 5, 32, 2, 3),
    (LARGEST_GROUP + 1, 16, 5, 64, 3, 3),
)


@dataclass(frozen=True, slots=True)
class NetworkNumbers:
    """The numbers from which a network is built.

    >>> one = lean(10_000)
    >>> one.leaves, one.nodes, round(one.participants[0]), round(one.seats), one.groups
    (312, (20,), 513, 2564, 1)
    """

    n: int
    c0: int = 32
    d0: int = 1
    layers: tuple[Shape, ...] = ((16, 16, 2),)
    monitors: int = 8
    fan: int = 3
    depth: int = 128
    r_end: int = 128

    def __post_init__(self) -> None:
        """Refuse numbers that make no network, in one sentence."""
        require(2 <= self.n <= LARGEST_GROUP, f"n must be between 2 and 10^9, not {self.n}")
        require(1 <= self.c0 <= self.n, f"c0 must be between 1 and n = {self.n}, not {self.c0}")
        for key in ("d0", "monitors", "fan", "depth", "r_end"):
            require(getattr(self, key) >= 1, f"{key} must be at least 1, not {getattr(self, key)}")
        require(len(self.layers) >= 1, "layers must name at least one layer")
        for q, s, h in self.layers:
            require(
                2 <= q <= s and 0 <= h <= MOST_HALVINGS,
                f"a layer q:s:h needs 2 <= q <= s and 0 <= h <= {MOST_HALVINGS}, not {q}:{s}:{h}",
            )

    @property
    def leaves(self) -> int:
        """Leaves of all permutations."""
        return self.d0 * (self.n // self.c0)

    @property
    def nodes(self) -> tuple[int, ...]:
        """Nodes of each elected layer."""
        found, below = [], self.leaves
        for q, _, _ in self.layers:
            below = ceil(below / q)
            found.append(below)
        return tuple(found)

    @property
    def committees(self) -> tuple[float, ...]:
        """c: seats of a node of each elected layer; c = s c_below / 2^h."""
        found, below = [], self.n / (self.n // self.c0)
        for _, s, h in self.layers:
            below = s * below / 2**h
            found.append(below)
        return tuple(found)

    @property
    def participants(self) -> tuple[float, ...]:
        """k: members that elect a node of each elected layer; two-seat members counted twice."""
        return tuple(c * 2**h for c, (_, _, h) in zip(self.committees, self.layers, strict=True))

    @property
    def seats(self) -> float:
        """Seats below the root: nodes times c."""
        return self.nodes[-1] * self.committees[-1]

    @property
    def groups(self) -> float:
        """R = d0 s/q of the first layer: the elections there of a member."""
        q, s, _ = self.layers[0]
        ratio = self.d0 * s / q
        return int(ratio) if ratio.is_integer() else ratio

    @property
    def electing(self) -> tuple[float, ...]:
        """Elections that a member takes part in, by layer, in the mean."""
        return tuple(
            self.leaves * k * self._sharing(layer) / self.n
            for layer, k in enumerate(self.participants)
        )

    @property
    def memberships(self) -> tuple[float, ...]:
        """Committees that a member sits in, by layer, in the mean."""
        return tuple(
            each / 2**h for each, (_, _, h) in zip(self.electing, self.layers, strict=True)
        )

    @property
    def tries(self) -> int:
        """Elections of the last layer in which a member may be elected."""
        ratio = float(self.d0)
        for q, s, _ in self.layers:
            ratio *= s / q
        return max(1, round(ratio))

    @property
    def root(self) -> float:
        """Distinct members that take part at the root, in the mean, if no member is bad."""
        return self.n * (1 - (1 - self.memberships[-1] / self.tries) ** self.tries)

    def _sharing(self, layer: int) -> float:
        """Nodes of a layer for each leaf, a last one that is not full counted by what it has."""
        share = 1.0
        for q, _, _ in self.layers[: layer + 1]:
            share /= q
        return share


def lean(n: int) -> NetworkNumbers:
    """Return the parameters of the cheapest network for n members.

    Parameters: n, at least 16.

    Source: none in the paper. Verdict: found by trying; one elected layer for every n to 10^6.

    >>> lean(10**6).layers, lean(1000).c0
    (((64, 64, 4),), 16)
    """
    require(n >= 16, f"n must be at least 16 for a network, not {n}")
    c0, q, h = next(shape for most, *shape in LEAN if n < most)
    small = n < SMALL
    return NetworkNumbers(
        n,
        c0,
        1,
        ((q, q, h),),
        fan=9 if not small and n < 3163 else 3,
        depth=64 if small else 128,
        r_end=64 if small else 128,
    )


def robust(n: int) -> NetworkNumbers:
    """Return the parameters with several small leaves for each member and electorates halved once.

    Parameters: n, at least 16.

    Source: none in the paper. Verdict: found by trying.

    >>> robust(1000).layers, robust(10_000).d0
    (((8, 8, 1),), 8)
    """
    one = lean(n)
    if n < SMALL:
        ((q, s, h),) = one.layers
        return replace(one, d0=4, layers=((q, s, h + 1 if n >= 32 else h),))
    c0, d0, q, h, monitors = next(shape for most, *shape in ROBUST if n < most)
    return replace(one, c0=c0, d0=d0, layers=((q, q, h),), monitors=monitors, fan=9)


def polled(n: float) -> int:
    """Members that a practical profile asks in the last step: 64, 96, 128 or 160.

    Parameters: n.

    Source: none in the paper, which asks L^2. Verdict: enough for 98 per cent informed.

    >>> [polled(10**k) for k in (1, 3, 4, 5, 6)]
    [9, 64, 96, 128, 160]
    """
    for most, poll in ((3163, 64), (31623, 96), (316228, 128)):
        if n < most:
            return min(poll, max(1, int(n) - 1))
    return 160


def participants(knobs: NetworkNumbers) -> float:
    """k = s c_below: members that elect a node of the first elected layer.

    Parameters: knobs.

    Source: section 3. Verdict: exact for full nodes, up to members that sit in two of its leaves.

    >>> round(participants(lean(1000)))
    258
    """
    return knobs.participants[0]


def committee(knobs: NetworkNumbers) -> float:
    """c = k/2^h: seats of a node of the last elected layer.

    Parameters: knobs.

    Source: section 3. Verdict: exact for full nodes, if the winning bin is full.

    >>> round(committee(lean(1000)))
    129
    """
    return knobs.committees[-1]


def top_nodes(knobs: NetworkNumbers) -> int:
    """Nodes of the last elected layer: leaves, divided by q layer by layer and rounded up.

    Parameters: knobs.

    Source: section 3. Verdict: exact.

    >>> top_nodes(robust(10_000))
    313
    """
    return knobs.nodes[-1]


def top_seats(knobs: NetworkNumbers) -> float:
    """k_top = nodes x c: seats below the root.

    Parameters: knobs.

    Source: section 3. Verdict: exact for full nodes; the last one may be smaller.

    >>> round(top_seats(lean(10**6)))
    62592
    """
    return knobs.seats


def top_members(knobs: NetworkNumbers) -> float:
    """n (1 - (1 - 2^-h)^R): distinct members at the root, if no member is bad.

    Parameters: knobs.

    Source: section 5. Verdict: exact in the mean for one elected layer.

    >>> round(top_members(robust(1000)))
    996
    """
    return knobs.root


def most_memberships(knobs: NetworkNumbers) -> float:
    """R = d0 s/q: elections, and so committees at most, of a member on the first elected layer.

    Parameters: knobs.

    Source: section 5, step 7. Verdict: exact for full nodes.

    >>> most_memberships(robust(1000))
    8
    """
    return knobs.groups


def root_bad(knobs: NetworkNumbers, b: float) -> float:
    """E[bad share] at the root, if b n random members are bad and pack every bin.

    `bins.halved` layer by layer, of the mean number of bad participants; then distinct members,
    since the bad fill more seats each.

    Parameters: knobs; b, the bad share.

    Source: section 5. Verdict: an estimate within 0.01: nodes vary, the mean is put in.

    >>> [round(root_bad(lean(10_000), b), 3) for b in (0.05, 0.1, 0.2)]
    [0.118, 0.174, 0.271]
    >>> round(root_bad(robust(10_000), 0.1), 3)
    0.101
    """
    good, bad = root_members(knobs, b)
    return bad / (good + bad) if bad else 0.0


def root_members(knobs: NetworkNumbers, b: float) -> tuple[float, float]:
    """Distinct good and bad members at the root: see `root_bad`; all bad if a third is anywhere.

    Parameters: knobs; b, the bad share.

    Source: section 5. Verdict: as of `root_bad`.

    >>> [round(members) for members in root_members(robust(1000), 0.1)]
    [894, 100]
    """
    require(0 <= b <= 1, f"b must lie in [0, 1], not {b:g}")
    share = b
    for k, (_, _, h) in zip(knobs.participants, knobs.layers, strict=True):
        if share >= THIRD:
            return 0.0, knobs.root
        share = _after(round(k), share, h)
    if b == 0:
        return knobs.root, 0.0
    seats = knobs.memberships[-1]
    return (
        knobs.n * (1 - b) * _sits(seats * (1 - share) / (1 - b), knobs.tries),
        knobs.n * b * _sits(seats * share / b, knobs.tries),
    )


def good_leader(knobs: NetworkNumbers, b: float, style: str = "full") -> float:
    """P(good leader), if b n random members are bad and pack every bin.

    full: phi of the bad share at the root; small and baton: halved to r_end first, in the mean
    over how that goes; 0 if a third of the root is bad.

    Parameters: knobs; b, the bad share; style, of the endgame: full, small or baton.

    Source: section 5, with the endgames of `endgame`. Verdict: an estimate within 0.02, 0.06 with
    `small`; too high by more where the root is nearly lost, since nodes vary.

    >>> round(good_leader(lean(10_000), 0.1), 2)
    0.66
    """
    require(style in STYLES, f"the endgame must be full, small or baton, not {style!r}")
    good, bad = root_members(knobs, b)
    share = bad / (good + bad)
    if share >= THIRD:
        return 0.0
    if style == "full":
        return endgame.path(share, knobs.depth)
    k = round(good + bad)
    h = halvings_to(k, knobs.r_end)
    while k > bins.LARGEST:  # by normal laws while that is exact enough
        share = bins.halved_formula(k, share, 1)
        k, h = k // 2, h - 1
    law = bins.elected(k, round(k * min(share, 1.0)), h)
    return sum(
        chance * _won(g + x, x, knobs.depth, style)
        for (g, x), chance in law.items()
        if chance > DUST
    )


def single(n: int, b: float, size: int = 128, depth: int = 128) -> float:
    """P(good leader) of one public committee, drawn before b n random members are corrupted.

    Parameters: n; b, the bad share; size, of the committee; depth, of its path.

    Source: none in the paper. Verdict: exact in the mean up to 0.001: phi over the law of its bad
    members, and 0 from a third on.

    >>> [round(single(10**6, b), 3) for b in (0.1, 0.2)]
    [0.838, 0.581]
    """
    require(1 <= size <= n, f"the committee must have between 1 and n = {n} members, not {size}")
    first, law = hypergeometric(n, round(b * n), size)
    return sum(chance * phi(x / size, depth) for x, chance in enumerate(law, first) if 3 * x < size)


def phi(share: float, depth: int) -> float:
    """`endgame.path`, interpolated between shares that are multiples of 0.05.

    Parameters: share, of bad candidates; depth (D).

    Source: reference [2]. Verdict: within 0.0005 of `endgame.path`.

    >>> abs(phi(0.21, 128) - endgame.path(0.21, 128)) < 5e-4
    True
    """
    place = min(max(floor(share / COARSE), 1), round(1 / COARSE) - 2)
    xs = [place - 1, place, place + 1, place + 2]
    at = share / COARSE
    total = 0.0
    for i in xs:
        weight = 1.0
        for j in xs:
            if i != j:
                weight *= (at - j) / (i - j)
        if weight:
            total += weight * endgame.path(i * COARSE, depth)
    return min(1.0, max(0.0, total))


def halvings_to(k: int, end: int) -> int:
    """Halvings from k candidates to `end` or fewer.

    Parameters: k, candidates; end, at least 1.

    Source: section 2. Verdict: exact, as every bin that wins has floor(k/2) at most.

    >>> halvings_to(1000, 128), halvings_to(128, 128), halvings_to(3, 1)
    (3, 0, 1)
    """
    require(end >= 1, f"r_end must be at least 1, not {end}")
    times = 0
    while k > end:
        k //= 2
        times += 1
    return times


@lru_cache(256)
def _after(k: int, share: float, h: int) -> float:
    """`bins.halved` at a number of bad members that need not be whole."""
    if k > bins.LARGEST:
        return bins.halved_formula(k, share, h)
    low = floor(share * k)
    part = share * k - low
    here = bins.halved(k, low, h)
    return here if part < 1e-9 else here + part * (bins.halved(k, low + 1, h) - here)


def _sits(mean: float, tries: int) -> float:
    """P(at least one of some seats), in this many elections with that mean."""
    return 1 - (1 - min(1.0, mean / tries)) ** tries


def _won(r: int, x: int, depth: int, style: str) -> float:
    return phi(x / r, depth) if style == "small" else endgame.baton(r, x)


def declare(sheet: Sheet, knobs: NetworkNumbers, b: float) -> None:
    """Add the forms of this module to a sheet."""
    sheet.source = SOURCE
    sheet.add("k", participants, knobs)
    sheet.add("c", committee, knobs)
    sheet.add("nodes", top_nodes, knobs)
    sheet.add("k_top", top_seats, knobs)
    sheet.add("k_top_distinct", top_members, knobs)
    sheet.add("memberships_at_most", most_memberships, knobs)
    sheet.add("root_bad", root_bad, knobs, b)
    for style in STYLES:
        compute = partial(good_leader, knobs, b, style)
        sheet.known(f"good_leader_{style}", good_leader, compute, f"{style}: ")
    size = min(128, knobs.n)
    compute = partial(single, knobs.n, b, size, knobs.depth)
    sheet.known("good_leader_single", single, compute, f"of {size}: ")
