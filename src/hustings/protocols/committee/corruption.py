"""Whom to corrupt: an adversary's choice before the election, with the roster in its hands.

Each function takes a roster, a budget and a stream and returns so many members, by id. None is the
best possible adversary, which would have to solve a hard covering problem: what they reach bounds
from below what can be done. An electorate is owned from a third on, a leaf's word from a half on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from hustings.core.choice import MemberId
from hustings.core.streams import Stream
from hustings.protocols.committee.owning import PARTS, Market, Row, best_number, harm
from hustings.protocols.committee.roster import Roster
from hustings.protocols.committee.searching import well_seated

Corruption = Callable[[Roster, int, Stream], tuple[MemberId, ...]]


def nobody(roster: Roster, budget: int, rng: Stream) -> tuple[MemberId, ...]:
    """All are good."""
    return ()


def at_random(roster: Roster, budget: int, rng: Stream) -> tuple[MemberId, ...]:
    """Any members, each as likely: who knows nothing of the network."""
    return tuple(sorted(rng.sample(roster.members, min(budget, len(roster.members)))))


def the_first(roster: Roster, budget: int, rng: Stream) -> tuple[MemberId, ...]:
    """The lowest ids: in a committee these are kings before all others."""
    return roster.members[:budget]


def greedy(roster: Roster, budget: int, rng: Stream) -> tuple[MemberId, ...]:
    """Own as many electorates as possible, a third of each; who is left over sits in the others."""
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
    """Own the word of as many leaves as possible: half of each, and the plurality is theirs."""
    market = Market.of(roster.leaves, 2, roster, budget, rng)
    _, taken = market.best(market.targets(rng))
    return _filled(taken, roster, budget, rng)


def clustered(roster: Roster, budget: int, rng: Stream) -> tuple[MemberId, ...]:
    """Whole electorates, one neighbour after the other, from a random one on."""
    rows = roster.electorates or roster.leaves
    first = rng.below(len(rows))
    chosen: dict[MemberId, None] = {}
    for place in range(len(rows)):
        for member in rows[(first + place) % len(rows)]:
            if len(chosen) < budget:
                chosen[member] = None
    return _filled(chosen, roster, budget, rng)


def mixed(roster: Roster, budget: int, rng: Stream) -> tuple[MemberId, ...]:
    """Own some electorates and pack in the others, as many of either as do most harm.

    How many that are follows from an estimate; as many as greedy owns are tried against them.
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
    """Those who sit well in the tree of the path, where that is known before; else as greedy."""
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
    """Who elect first; without a network the one public committee."""
    return roster.electorates or roster.leaves


def _below(layers: Sequence[Sequence[Sequence[int]]], need: Sequence[int]) -> list[int]:
    """Nodes of the first layer in such an order that nodes of the last fall one after another."""
    price = list(need)
    falls: list[list[int]] = [[node] for node in range(len(price))]  # what to own below each
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
    """Some members and, up to the budget, others at random."""
    taken = dict.fromkeys(chosen)
    others = [member for member in roster.members if member not in taken]
    more = rng.sample(others, min(max(0, budget - len(taken)), len(others)))
    return tuple(sorted([*taken, *more]))
