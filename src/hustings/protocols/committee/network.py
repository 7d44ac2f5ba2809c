"""The layered network: which members elect, tell and know which others. All of it is public.

Layer 0 are the leaves of the roster. Every higher layer has fewer nodes, which those below elect.
One root is adjacent to all nodes of the last layer. The children of a node in the tree follow each
other in the layer below; there are at most q of them, and as many as its neighbours in the layer
have, give or take one. s - q further nodes of that layer are drawn at random. All of these elect
the node's committee. The committee sends to its children only: they took part in electing it, so
they know it, as it knows them.

The paper writes "an edge between layer l and layer l"; it means l and l + 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

from hustings.core.choice import MemberId
from hustings.core.streams import Stream, derive
from hustings.protocols.committee.bits import width_of
from hustings.protocols.committee.profiles import Knobs
from hustings.protocols.committee.roster import (
    Roster,
    bipartite,
    distinct,
    seated,
    seated_by_graph,
)


@dataclass(frozen=True)
class CommitteeNode:
    """One node: its place and its neighbours. Committees are elected later."""

    layer: int
    index: int
    children: tuple[int, ...]  # in the tree: of the layer below
    below: tuple[int, ...]  # neighbours of the layer below, the children among them
    leaves: tuple[int, ...]  # of the tree under it
    monitors: tuple[int, ...]  # m(A): leaves under its neighbours, which keep its list
    most: int  # members that its committee can have at most
    voters: int  # members that can take part in its election at most


@dataclass(frozen=True)
class CommitteeNetwork:
    """The roster, the elected layers above it, and the root."""

    knobs: Knobs
    roster: Roster
    layers: tuple[tuple[CommitteeNode, ...], ...]  # layer 0 first, the root's last
    above: tuple[tuple[tuple[int, ...], ...], ...]  # of each node: the nodes that it helps to elect

    @property
    def root(self) -> CommitteeNode:
        """Return the one node of the last layer."""
        return self.layers[-1][0]

    @property
    def top(self) -> int:
        """Return the last layer that has committees."""
        return len(self.layers) - 2

    @cached_property
    def label(self) -> int:
        """Return the bits that name a member."""
        return width_of(len(self.roster.members))

    def marked(self, layer: int, index: int) -> tuple[MemberId, ...]:
        """Return the list on which marks tell a committee, if it is public and this is shorter."""
        if layer != 1 or not self.knobs.marks:
            return ()
        voters = self.roster.electorates[index]
        return voters if len(voters) <= self.layers[1][index].most * self.label else ()

    @cached_property
    def parent(self) -> tuple[tuple[int, ...], ...]:
        """Return the parent in the tree of each node of each layer but the root's."""
        found = []
        for lower, upper in pairwise(self.layers):
            row = [0] * len(lower)
            for node in upper:
                for child in node.children:
                    row[child] = node.index
            found.append(tuple(row))
        return tuple(found)

    @cached_property
    def relatives(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """Return the nodes of its layer that each node elects with: its members must know them."""
        found = []
        for layer in range(len(self.layers) - 1):
            row = []
            for node in self.layers[layer]:
                uppers = (self.layers[layer + 1][each] for each in self.above[layer][node.index])
                near = distinct(upper.below for upper in uppers)
                row.append(tuple(other for other in near if other != node.index))
            found.append(tuple(row))
        return tuple(found)

    @cached_property
    def guards(self) -> tuple[tuple[tuple[MemberId, ...], ...], ...]:
        """Return for each layer and node the members of its monitors, which keep its list."""
        leaves = self.roster.leaves
        return tuple(
            tuple(distinct(leaves[leaf] for leaf in node.monitors) for node in layer)
            for layer in self.layers
        )

    @cached_property
    def hearings(self) -> tuple[dict[MemberId, dict[int, tuple[MemberId, ...]]], ...]:
        """Return for each layer the nodes that each guard hears of, and from which guards."""
        found = []
        for layer in range(len(self.layers) - 1):
            row: dict[MemberId, dict[int, dict[MemberId, None]]] = {}
            for node, others in enumerate(self.relatives[layer]):
                for other in others:
                    for guard, sources in self._sources(layer, node, other):
                        row.setdefault(guard, {}).setdefault(other, {}).update(
                            dict.fromkeys(sources)
                        )
            found.append(
                {
                    guard: {other: tuple(sorted(row[guard][other])) for other in sorted(row[guard])}
                    for guard in sorted(row)
                }
            )
        return tuple(found)

    def _sources(
        self, layer: int, node: int, other: int
    ) -> Iterator[tuple[MemberId, tuple[MemberId, ...]]]:
        """Return each guard of a node, and the guards of another node that report to it.

        In the paper the i-th leaf of m(B) tells the i-th of m(A), from all members to all. Here the
        i-th guard of A hears `fan` guards of B, from the i-th on in an order that is public and
        mixed. That is a fraction of the words, and each guard's word counts the same.
        """
        leaves, knobs = self.roster.leaves, self.knobs
        if knobs.graph:
            mine, theirs = (self.layers[layer][each].monitors for each in (node, other))
            for place, leaf in enumerate(mine):
                for guard in leaves[leaf]:
                    yield guard, leaves[theirs[place % len(theirs)]]
            return
        sources = list(self.guards[layer][other])
        Stream(derive(knobs.network_seed, "report", layer, node, other)).shuffle(sources)
        for place, guard in enumerate(self.guards[layer][node]):
            steps = range(min(knobs.fan, len(sources)))
            yield guard, tuple(sources[(place + step) % len(sources)] for step in steps)

    @cached_property
    def reports(self) -> tuple[dict[MemberId, dict[int, tuple[MemberId, ...]]], ...]:
        """Return the same from the other side: to which guards each guard sends which list."""
        found = []
        for hearings in self.hearings:
            row: dict[MemberId, dict[int, list[MemberId]]] = {}
            for guard, subjects in hearings.items():
                for subject, sources in subjects.items():
                    for source in sources:
                        row.setdefault(source, {}).setdefault(subject, []).append(guard)
            found.append(
                {
                    source: {subject: tuple(readers) for subject, readers in sorted(told.items())}
                    for source, told in sorted(row.items())
                }
            )
        return tuple(found)

    def slots(self, layer: int) -> float:
        """Return in how many committees of a layer a member sits on average, at most."""
        return sum(node.most for node in self.layers[layer]) / len(self.roster.members)

    def tau(self, layer: int) -> float:
        """Return in how many committees of one layer a member may sit; with more, it is silent.

        The paper says 8. But its own first elected layer has n/L^2 nodes of c1 L^3 seats, which is
        c1 L for each member on average, so 8 would silence nearly all of them. Its Lemma 5.1 takes
        16 L^4 elections for a member's share where on that layer the share is 2 L^8. Four times the
        average is rarely exceeded, and it balances the load in the same way.
        """
        given = self.knobs.tau
        return max(8.0, 4.0 * self.slots(layer)) if given is None else float(given)


@lru_cache(maxsize=16)
def lay_out(members: tuple[MemberId, ...], knobs: Knobs) -> CommitteeNetwork:
    """Lay out the network of a group; every member works out the same one."""
    leaves: tuple[tuple[MemberId, ...], ...]
    if knobs.single:
        order = list(members)
        Stream(derive(knobs.network_seed, "public committee")).shuffle(order)
        leaves = (tuple(sorted(order[: knobs.single])),)
    else:
        seat = seated_by_graph if knobs.graph else seated
        rows = seat(members, knobs.c0, knobs.d0, knobs.network_seed)
        leaves = tuple(tuple(row) for row in rows)
    layers = [
        tuple(
            CommitteeNode(0, leaf, (), (), (leaf,), (leaf,), len(seats), len(seats))
            for leaf, seats in enumerate(leaves)
        )
    ]
    for q, s, h in knobs.layers:
        layers.append(_next_layer(layers[-1], leaves, members, (q, s, h), knobs))
    groups = [tuple(node.below for node in layer) for layer in layers[1:]]
    throws = tuple(throws_of(h, knobs.bins) for _, _, h in knobs.layers)
    path = knobs.depth if knobs.single and knobs.endgame == "full" else 0
    first = groups[0] if groups else ()
    roster = Roster(members, leaves, first, tuple(groups[1:]), throws, path)
    layers.append((_root(layers[-1], leaves, members),))
    above = tuple(
        _turned(len(lower), (node.below for node in upper)) for lower, upper in pairwise(layers)
    )
    return CommitteeNetwork(knobs, roster, tuple(layers), above)


def throws_of(halvings: int, bins: str) -> tuple[int, ...]:
    """Return into how many bins an electorate throws, one time after the other.

    >>> throws_of(2, "halving"), throws_of(2, "oneshot")
    ((2, 2), (4,))
    """
    return (2,) * halvings if bins == "halving" else (1 << halvings,)


def _next_layer(
    lower: Sequence[CommitteeNode],
    leaves: Sequence[Sequence[MemberId]],
    members: Sequence[MemberId],
    shape: tuple[int, int, int],
    knobs: Knobs,
) -> tuple[CommitteeNode, ...]:
    """Put a layer on top of `lower`: at most q children for each node, and s - q others."""
    q, s, h = shape
    layer = lower[0].layer + 1
    rng = Stream(derive(knobs.network_seed, "layer", layer))
    count = -(-len(lower) // q)
    cuts = [k * len(lower) // count for k in range(count + 1)]
    stretches = [range(one, two) for one, two in pairwise(cuts)]
    nodes = []
    for index, below in enumerate(bipartite(len(lower), stretches, s - q, rng)):
        under = [lower[each] for each in below]
        voters = _voters(under, leaves, members)
        nodes.append(
            CommitteeNode(
                layer,
                index,
                tuple(stretches[index]),
                tuple(below),
                tuple(leaf for each in stretches[index] for leaf in lower[each].leaves),
                distinct(node.leaves for node in under),
                max(1, voters >> h),
                voters,
            )
        )
    return tuple(nodes)


def _root(
    lower: Sequence[CommitteeNode],
    leaves: Sequence[Sequence[MemberId]],
    members: Sequence[MemberId],
) -> CommitteeNode:
    every = tuple(range(len(lower)))
    voters = _voters(lower, leaves, members)
    under = tuple(range(len(leaves)))
    return CommitteeNode(lower[0].layer + 1, 0, every, every, under, (), 1, voters)


def _voters(
    under: Sequence[CommitteeNode],
    leaves: Sequence[Sequence[MemberId]],
    members: Sequence[MemberId],
) -> int:
    """Count the distinct members that can meet: exact over leaves, a bound over committees."""
    if under[0].layer == 0:
        return len(distinct(leaves[node.index] for node in under))
    return min(len(members), sum(node.most for node in under))


def over_representation(
    network: CommitteeNetwork, members: Iterable[MemberId], layer: int = 0
) -> tuple[float, ...]:
    """Return by how much each node's share of `members` exceeds that of the whole group.

    Layer 0 are the leaves; layer 1 are the participants in each of the first elections. A network
    is a good sampler if, for any set of members, few nodes have much more than their share.
    """
    roster = network.roster
    chosen = frozenset(members)  # for membership tests only
    share = sum(member in chosen for member in roster.members) / len(roster.members)
    rows = roster.leaves if layer == 0 else roster.electorates
    return tuple(sum(member in chosen for member in row) / len(row) - share for row in rows)


def share_above(excesses: Sequence[float], bound: float) -> float:
    """Return the share of nodes whose excess is larger than a bound: what Lemma 3.1 limits.

    >>> share_above((0.1, -0.2, 0.3, 0.0), 0.05)
    0.5
    """
    return sum(each > bound for each in excesses) / len(excesses)


def _turned(count: int, rows: Iterable[Iterable[int]]) -> tuple[tuple[int, ...], ...]:
    """Return which rows name each of `count`: a table of neighbours read the other way."""
    found: list[list[int]] = [[] for _ in range(count)]
    for index, row in enumerate(rows):
        for each in row:
            found[each].append(index)
    return tuple(tuple(row) for row in found)
