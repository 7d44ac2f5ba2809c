"""What nodes cost an adversary: which members own many nodes, and where the rest does most harm.

A member that sits in several electorates counts in all of them. When the adversary can own no more
nodes, its remaining members sit in the nodes that stay honest, about equally many in each. There
packing turns a few into many. `best_number` compares the two uses by an estimate, `harm` by trials.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from hustings.core.choice import MemberId
from hustings.core.streams import Stream
from hustings.protocols.committee.misbehaving import packing
from hustings.protocols.committee.roster import Roster

REFINEMENTS = 6  # lists of targets that are tried, each made from the one before
CHOICES = 25  # numbers of nodes to own, and of bad participants, that are examined
TRIALS = 40  # elections that measure what packing brings
PARTS = 3  # one part of this many is enough to own an electorate
TRIED = 320  # electorates in which a choice is tried, in at least two and at most 16 elections
LOSS = 2.5  # of success, about, for every bad part of the root, up to a third of it

GHOST = -1  # a seat of an owned node: no good member, and no identity

Row = Sequence[MemberId]


@dataclass(frozen=True)
class Market:
    """Rows of members, and how many of each row the adversary needs."""

    rows: Sequence[Row]
    need: Sequence[int]
    order: Sequence[MemberId]  # which of two equally useful members is taken
    sits: Mapping[MemberId, Sequence[int]]
    budget: int

    @classmethod
    def of(
        cls, rows: Sequence[Row], parts: int, roster: Roster, budget: int, rng: Stream
    ) -> Market:
        """Make a market in which a row costs one of this many parts of it."""
        order = list(roster.members)
        rng.shuffle(order)  # chance decides between equally useful members
        sits: dict[MemberId, list[int]] = {member: [] for member in order}
        for place, row in enumerate(rows):
            for member in row:
                sits[member].append(place)
        need = [-(-len(row) // parts) for row in rows]
        return cls(rows, need, order, sits, min(budget, len(order)))

    def targets(self, rng: Stream) -> list[int]:
        """Return all rows, the cheapest first."""
        found = list(range(len(self.rows)))
        rng.shuffle(found)
        found.sort(key=lambda place: self.need[place])
        return found

    def best(self, targets: list[int]) -> tuple[list[int], list[MemberId]]:
        """Return as many rows as possible that can be owned at once, and the members for it.

        A member that was taken sits in other rows, too. So to order the targets by what they still
        lack makes a better list.
        """
        best: list[MemberId] = []
        owned: list[int] = []
        most = -1
        for _ in range(REFINEMENTS):
            taken, low = self.reach(targets)
            if low <= most:
                break
            best, most, owned = taken, low, targets[:low]
            lacking = list(self.need)
            for member in best:
                for place in self.sits[member]:
                    lacking[place] -= 1
            targets = sorted(targets, key=lambda place: lacking[place])
        return owned, best

    def reach(self, targets: Sequence[int]) -> tuple[list[MemberId], int]:
        """Return the longest prefix of the targets that the budget pays for, by bisection."""
        low, high = 0, len(targets)
        taken: list[MemberId] = []
        while low < high:
            middle = (low + high + 1) // 2
            paid = self.price(targets[:middle])
            if paid is None:
                high = middle - 1
            else:
                low, taken = middle, paid
        return taken, low

    def price(self, targets: Sequence[int]) -> list[MemberId] | None:
        """Return members that own all targets, the most useful first; None: too many."""
        lacking = [0] * len(self.need)
        for place in targets:
            lacking[place] = self.need[place]
        left = len(targets)
        taken: list[MemberId] = []
        waiting = list(self.order)
        for level in range(max(len(places) for places in self.sits.values()), 0, -1):
            later = []
            for member in waiting:
                if not left:
                    return taken
                useful = sum(lacking[place] > 0 for place in self.sits[member])
                if useful < level:
                    if useful:
                        later.append(member)
                    continue
                if len(taken) == self.budget:
                    return None
                taken.append(member)
                for place in self.sits[member]:
                    lacking[place] -= 1
                    left -= lacking[place] == 0
            waiting = later
        return None if left else taken

    def spread(self, taken: Iterable[MemberId]) -> tuple[MemberId, ...]:
        """Add others up to the budget, about equally over the rows that are not owned."""
        chosen = dict.fromkeys(taken)
        held = [sum(member in chosen for member in row) for row in self.rows]
        honest = [mine < need for mine, need in zip(held, self.need, strict=True)]
        waiting = [member for member in self.order if member not in chosen]
        bound = 0
        while len(chosen) < self.budget:
            bound += 1
            later = []
            for member in waiting:
                places = self.sits[member]
                fits = any(honest[place] and held[place] < bound for place in places)
                if len(chosen) == self.budget or not fits:
                    later.append(member)
                    continue
                chosen[member] = None
                for place in places:
                    held[place] += 1
            if len(later) == len(waiting) and bound > max(held):  # no other sits in honest rows
                chosen |= dict.fromkeys(later[: self.budget - len(chosen)])
            waiting = later
        return tuple(sorted(chosen))


def best_number(market: Market, owned: Sequence[int], throws: Sequence[int], rng: Stream) -> int:
    """Return how many of these rows to own: the rest of the budget goes where it packs."""
    rows = len(market.rows)
    seats = sum(map(len, market.rows))
    k = round(seats / rows)
    elected = k
    for bins in throws:
        elected //= bins
    held = seats / len(market.order)  # rows of a member
    packed = _packed_shares(k, throws, rng)
    best, found = -1.0, 0
    for number in sorted({round(len(owned) * step / (CHOICES - 1)) for step in range(CHOICES)}):
        used = market.price(owned[:number])
        if used is None:  # fewer rows may cost more: the members taken first sit elsewhere
            continue
        each = (market.budget - len(used)) * held / max(1, rows - number)
        share = _root_share(rows, number, k, elected, each, _between(packed, each), held)
        if share > best:
            best, found = share, number
    return found


def harm(market: Market, chosen: Iterable[MemberId], roster: Roster, rng: Stream) -> float:
    """Return what corrupting these members costs the good on average: 1 if the root falls."""
    bad = frozenset(chosen)  # for membership tests only
    times = max(2, min(16, TRIED // len(market.rows)))
    return sum(_harm_once(market, bad, roster, rng) for _ in range(times)) / times


def _harm_once(market: Market, bad: frozenset[MemberId], roster: Roster, rng: Stream) -> float:
    """Run one election of all layers and return the members of the root."""
    below = [_subcommittee(row, bad, roster.throws[0], rng) for row in market.rows]
    for groups, throws in zip(roster.above, roster.throws[1:], strict=True):
        met = (_together([below[node] for node in group]) for group in groups)
        below = [_subcommittee(row, bad, throws, rng) for row in met]
    root = _together(below)
    good = sum(member != GHOST and member not in bad for member in root)
    faulty = min(len(root) - good, len(market.order) - good)
    if PARTS * faulty >= good + faulty:
        return 1.0
    return LOSS * faulty / (good + faulty)


def _together(committees: Iterable[Row]) -> list[MemberId]:
    """Return the distinct members of some committees, and all seats without identity."""
    seats = [member for committee in committees for member in committee]
    return [*dict.fromkeys(m for m in seats if m != GHOST), *(m for m in seats if m == GHOST)]


def _subcommittee(
    row: Row, bad: frozenset[MemberId], throws: Sequence[int], rng: Stream
) -> list[MemberId]:
    """Return which of these are elected if the bad pack; an owned committee is all theirs."""
    theirs = [member for member in row if member == GHOST or member in bad]
    if PARTS * len(theirs) >= len(row):
        return [GHOST] * (len(row) // prod(throws))
    good = [member for member in row if member != GHOST and member not in bad]
    rng.shuffle(theirs)
    for bins in throws:
        places = [rng.below(bins) for _ in good]
        loads = [0] * bins
        for place in places:
            loads[place] += 1
        plan = packing(loads, len(theirs))
        total = [load + plan.count(place) for place, load in enumerate(loads)]
        lightest = min((each for each in range(bins) if total[each]), key=lambda each: total[each])
        good = [member for member, place in zip(good, places, strict=True) if place == lightest]
        theirs = theirs[: plan.count(lightest)]
    return good + theirs


def _root_share(
    rows: int, owned: int, k: int, c: int, bad: float, inside: float, held: float
) -> float:
    """Estimate the faulty share of the root: distinct members, and all seats of owned nodes.

    Honest nodes have `bad` of k bad participants, and a share `inside` of the c elected.
    """
    members = rows * k / held
    sound = held * (rows - owned) / rows  # honest nodes of a member
    chance_good = (1 - inside) * c / max(1.0, k - bad)
    chance_bad = inside * c / bad if bad > 0 else 0.0
    spread = members * bad / k
    good = (members - spread) * (1 - (1 - min(1.0, chance_good)) ** sound)
    faulty = c * owned + spread * (1 - (1 - min(1.0, chance_bad)) ** sound)
    return faulty / (good + faulty) if good + faulty else 0.0


def _packed_shares(k: int, throws: Sequence[int], rng: Stream) -> list[tuple[int, float]]:
    """Measure what share of the elected is bad, by how many bad members take part."""
    most = max(2, k // PARTS)
    steps = [int(most ** (step / (CHOICES - 1))) - 1 for step in range(CHOICES)]
    found = []
    for bad in sorted({*steps, most - 1}):
        shares = [_packed(k - bad, bad, throws, rng) for _ in range(TRIALS)]
        found.append((bad, sum(shares) / TRIALS))
    return found


def _packed(good: int, bad: int, throws: Sequence[int], rng: Stream) -> float:
    """Run one election into which the bad pack: their share of the elected."""
    for bins in throws:
        loads = [0] * bins
        for _ in range(good):
            loads[rng.below(bins)] += 1
        theirs = packing(loads, bad)
        total = [load + theirs.count(place) for place, load in enumerate(loads)]
        lightest = min((each for each in range(bins) if total[each]), key=lambda each: total[each])
        good, bad = loads[lightest], theirs.count(lightest)
    return bad / (good + bad)


def _between(points: Sequence[tuple[int, float]], at: float) -> float:
    """Interpolate between points; beyond the last, return its value."""
    for (x0, y0), (x1, y1) in pairwise(points):
        if at <= x1:
            return y0 + (y1 - y0) * (at - x0) / (x1 - x0)
    return points[-1][1]
