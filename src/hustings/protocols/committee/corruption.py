"""Which members to corrupt: an adversary's choice before the election, when it knows the roster.

Each function takes a roster, a budget and a stream, and returns that many members, by id. None is
the best possible adversary, which would have to solve a hard covering problem. So the results are a
lower bound of what is possible. An adversary owns an electorate from a third of its members on, and
a leaf's word from a half on.

Without a network the candidates are known before any member is corrupted, and so is the public tree
of their path. `well_seated` searches that tree down to a limited depth. If the tree goes deeper,
the member at the limit counts as leader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from hustings.core.choice import MemberId
from hustings.core.streams import Stream
from hustings.protocols.committee.endgame import Walk
from hustings.protocols.committee.owning import PARTS, Market, Row, best_number, harm
from hustings.protocols.committee.roster import Roster

Corruption = Callable[[Roster, int, Stream], tuple[MemberId, ...]]


def nobody(roster: Roster, budget: int, rng: Stream) -> tuple[MemberId, ...]:
    """Corrupt no member."""
    return ()


def at_random(roster: Roster, budget: int, rng: Stream) -> tuple[MemberId, ...]:
    """Corrupt any members, each equally likely: the adversary does not know the network."""
    return tuple(sorted(rng.sample(roster.members, min(budget, len(roster.members)))))


def the_first(roster: Roster, budget: int, rng: Stream) -> tuple[MemberId, ...]:
    """Corrupt the lowest ids: in a committee these are kings before all others."""
    return roster.members[:budget]


def greedy(roster: Roster, budget: int, rng: Stream) -> tuple[MemberId, ...]:
    """Own as many electorates as possible, a third of each; the rest sit in the others."""
    market = Market.of(_electorates(roster), PARTS, roster, budget, rng)
    _, taken = market.best(market.targets(rng))
    return market.spread(taken)


def second(roster: Roster, budget: int, rng: Stream) -> tuple[MemberId, ...]:
    """Own nodes of the last layer: a third of those that elect each, and a third of their voters.

    With one elected layer that is the same as to own electorates.
    """
    if not roster.above:
        return greedy(roster, budget, rng)
    market = Market.of(_electorates(roster), PARTS, roster, budget, rng)
    taken, _ = market.reach(_below(roster.above, market.need))
    return market.spread(taken)


def by_leaf(roster: Roster, budget: int, rng: Stream) -> tuple[MemberId, ...]:
    """Own the word of as many leaves as possible: half of each gives the plurality."""
    market = Market.of(roster.leaves, 2, roster, budget, rng)
    _, taken = market.best(market.targets(rng))
    return _filled(taken, roster, budget, rng)


def clustered(roster: Roster, budget: int, rng: Stream) -> tuple[MemberId, ...]:
    """Corrupt whole electorates, each the neighbour of the last, from a random one on."""
    rows = roster.electorates or roster.leaves
    first = rng.below(len(rows))
    chosen: dict[MemberId, None] = {}
    for place in range(len(rows)):
        for member in rows[(first + place) % len(rows)]:
            if len(chosen) < budget:
                chosen[member] = None
    return _filled(chosen, roster, budget, rng)


def mixed(roster: Roster, budget: int, rng: Stream) -> tuple[MemberId, ...]:
    """Own some electorates and pack in the others, in the proportion that does most harm.

    An estimate gives the proportion. It is compared with that of `greedy`.
    """
    market = Market.of(_electorates(roster), PARTS, roster, budget, rng)
    owned, taken = market.best(market.targets(rng))
    if not roster.throws:
        return market.spread(taken)
    number = best_number(market, owned, roster.throws[0], rng)
    if number == len(owned):
        return market.spread(taken)
    some, most = market.spread(market.price(owned[:number]) or []), market.spread(taken)
    return some if harm(market, some, roster, rng) > harm(market, most, roster, rng) else most


def in_the_tree(roster: Roster, budget: int, rng: Stream) -> tuple[MemberId, ...]:
    """Corrupt members well placed in the path's tree, if it is known before; else as greedy."""
    if not roster.path or len(roster.leaves[0]) < len(roster.members):
        return greedy(roster, budget, rng)
    return well_seated(roster.leaves[0], roster.path, budget, rng)


CORRUPTIONS: dict[str, tuple[Corruption, str]] = {
    "none": (nobody, "nobody is bad"),
    "random": (at_random, "any members: knows nothing of the network"),
    "first": (the_first, "the lowest ids, who are kings before all others"),
    "greedy": (greedy, "owns as many electorates as the budget allows, a third of each"),
    "cluster": (clustered, "whole electorates, one after the other"),
    "leaf": (by_leaf, "owns the word of as many leaves as the budget allows, half of each"),
    "mixed": (mixed, "owns some electorates and packs in the others, whatever does most harm"),
    "tree": (in_the_tree, "those who sit well in the tree of a path among all members"),
    "second": (second, "owns nodes of the last layer, a third of those that elect each"),
}


def _electorates(roster: Roster) -> Sequence[Row]:
    """Return the members that elect first; without a network the one public committee."""
    return roster.electorates or roster.leaves


def _below(layers: Sequence[Sequence[Sequence[int]]], need: Sequence[int]) -> list[int]:
    """Order nodes of the first layer so that nodes of the last are owned one after another."""
    price = list(need)
    falls: list[list[int]] = [[node] for node in range(len(price))]  # the nodes to own below each
    for groups in layers:
        upper, costs = [], []
        for group in groups:
            cheap = sorted(group, key=lambda node: price[node])[: -(-len(group) // PARTS)]
            upper.append([each for node in cheap for each in falls[node]])
            costs.append(sum(price[node] for node in cheap))
        falls, price = upper, costs
    order = sorted(range(len(price)), key=lambda node: price[node])
    return list(dict.fromkeys(each for node in order for each in falls[node]))


def _filled(
    chosen: Iterable[MemberId], roster: Roster, budget: int, rng: Stream
) -> tuple[MemberId, ...]:
    """Return some members and, up to the budget, others at random."""
    taken = dict.fromkeys(chosen)
    others = [member for member in roster.members if member not in taken]
    more = rng.sample(others, min(max(0, budget - len(taken)), len(others)))
    return tuple(sorted([*taken, *more]))


SIGHT = 10  # levels that are expanded
STEPS = 8  # sets that are tried, each made from the one before
MOST_WORK = 1 << 19  # places examined in one round of exchanges; with more, there is no exchange


def well_seated(
    candidates: tuple[MemberId, ...], depth: int, budget: int, rng: Stream
) -> tuple[MemberId, ...]:
    """Return this many members that make a good leader as unlikely as this search can."""
    tree = PathTree(candidates, min(depth, SIGHT))
    order = list(candidates)
    rng.shuffle(order)
    bad = order[:budget]
    best, found = bad, 2.0
    for _ in range(STEPS):
        value, harm = tree.harms(frozenset(bad).__contains__)
        if value < found:
            best, found = bad, value
        bad = sorted(order, key=lambda member: -harm[member])[:budget]
    return tuple(sorted(_exchanged(tree, best, found, order)))


def _exchanged(
    tree: PathTree, bad: list[MemberId], value: float, order: Sequence[MemberId]
) -> list[MemberId]:
    """Exchange the member that does most harm, as long as an exchange does harm."""
    while len(bad) * (len(order) - len(bad)) * 2 * len(tree.levels[-1]) <= MOST_WORK:
        best, found = bad, value
        for place in range(len(bad)):
            for other in order:
                if other not in bad:
                    tried = [*bad[:place], other, *bad[place + 1 :]]
                    worse = tree.value(frozenset(tried).__contains__)
                    if worse < found:
                        best, found = tried, worse
        if found >= value:
            break
        bad, value = best, found
    return bad


class PathTree:
    """The holders of the first levels of the tree, from the top."""

    def __init__(self, candidates: tuple[MemberId, ...], levels: int) -> None:
        self.candidates = candidates
        walks = [Walk.begin(candidates, levels)]
        self.levels = [[walks[0].holder]]
        for _ in range(levels):
            walks = [walk.step(branch) for walk in walks for branch in (0, 1)]
            self.levels.append([walk.holder for walk in walks])

    def value(self, is_bad: Callable[[MemberId], bool]) -> float:
        """Return P(good leader)."""
        return self._values(is_bad)[0][0]

    def _values(self, is_bad: Callable[[MemberId], bool]) -> list[list[float]]:
        values = [[0.0 if is_bad(member) else 1.0 for member in self.levels[-1]]]
        for holders in reversed(self.levels[:-1]):
            below = values[-1]
            pairs = zip(below[::2], below[1::2], strict=True)
            values.append(
                [
                    min(pair) if is_bad(member) else sum(pair) / 2
                    for member, pair in zip(holders, pairs, strict=True)
                ]
            )
        values.reverse()
        return values

    def harms(self, is_bad: Callable[[MemberId], bool]) -> tuple[float, dict[MemberId, float]]:
        """Return the value, and how far each member reduces it by being bad, the others as now."""
        values = self._values(is_bad)
        harm = dict.fromkeys(self.candidates, 0.0)
        reach = [1.0]
        for holders, below in zip(self.levels[:-1], values[1:], strict=True):
            after = []
            for place, member in enumerate(holders):
                left, right = below[2 * place], below[2 * place + 1]
                harm[member] += reach[place] * abs(left - right) / 2
                share = float(left <= right) if is_bad(member) else 0.5
                after += [reach[place] * share, reach[place] * (1 - share)]
            reach = after
        for member, chance in zip(self.levels[-1], reach, strict=True):
            harm[member] += chance
        return values[0][0], harm
