"""Which members sit in which leaf: the seating that every member knows from the beginning.

There are two ways to seat the group, both drawn from a public seed. `seated` lays `d0` random
orders of the group out in a row each and cuts every row into leaves of about `c0`. Each member sits
in exactly `d0` leaves, and leaf sizes differ by one seat at most. `seated_by_graph` is the paper's
bipartite graph G(L_0, R_0): a leaf holds its own stretch of the labels and others at random, so
that members sit in about equally many leaves.

The paper labels nodes 0..|R_i|, one too many; here the last label is |R_i| - 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from hustings.core.choice import MemberId
from hustings.core.streams import Stream, derive


@dataclass(frozen=True)
class Roster:
    """The members, the leaves, and which leaves elect one committee of the first elected layer.

    An adversary that picks members to corrupt can use only that and the public numbers of the
    layers above, because the members above are elected.
    """

    members: tuple[MemberId, ...]  # by id
    leaves: tuple[tuple[MemberId, ...], ...]  # each by id
    groups: tuple[tuple[int, ...], ...] = ()  # leaves that elect together
    above: tuple[tuple[tuple[int, ...], ...], ...] = ()  # and so on: nodes that elect together
    throws: tuple[tuple[int, ...], ...] = ()  # by layer: the bins of each throw of its elections
    path: int = 0  # steps of a path among all of the one leaf, whose tree is then public, too

    @cached_property
    def position(self) -> dict[MemberId, int]:
        """Return a member's place in the list of all, which names it in messages."""
        return {member: place for place, member in enumerate(self.members)}

    @cached_property
    def leaves_of(self) -> dict[MemberId, tuple[int, ...]]:
        """Return the leaves that each member sits in."""
        found: dict[MemberId, list[int]] = {member: [] for member in self.members}
        for leaf, seats in enumerate(self.leaves):
            for member in seats:
                found[member].append(leaf)
        return {member: tuple(leaves) for member, leaves in found.items()}

    @cached_property
    def electorates(self) -> tuple[tuple[MemberId, ...], ...]:
        """Return the members that take part in each of the first elections."""
        return tuple(distinct(self.leaves[leaf] for leaf in group) for group in self.groups)


def distinct(committees: Iterable[Iterable[MemberId]]) -> tuple[MemberId, ...]:
    """Return all members of some committees, by id, each once for any number of seats.

    The paper leaves open whether a member that is elected twice counts twice. It counts once: an
    adversary would gain weight by being elected often, and a member can say only one thing.

    >>> distinct([(3, 1), (2, 3)])
    (1, 2, 3)
    """
    found: dict[MemberId, None] = {}
    for committee in committees:
        for member in committee:
            found[member] = None
    return tuple(sorted(found))


def seated(members: Sequence[MemberId], c0: int, d0: int, seed: int) -> tuple[list[MemberId], ...]:
    """Seat members in leaves of `c0` members or a few more, `d0` leaves for each member.

    >>> [len(leaf) for leaf in seated(range(10), 4, 1, 0)]
    [5, 5]
    """
    leaves: list[list[MemberId]] = []
    for turn in range(d0):
        row = list(members)
        Stream(derive(seed, "leaves", turn)).shuffle(row)
        count = max(1, len(row) // c0)
        cuts = [place * len(row) // count for place in range(count + 1)]
        leaves += [sorted(row[one:two]) for one, two in pairwise(cuts)]
    return tuple(leaves)


def seated_by_graph(
    members: Sequence[MemberId], c0: int, d0: int, seed: int
) -> tuple[list[MemberId], ...]:
    """Make equally many leaves of `c0` members or a few more, by the paper's graph.

    >>> [len(leaf) for leaf in seated_by_graph(range(10), 4, 2, 0)]
    [4, 4, 4, 4]
    """
    count = d0 * max(1, len(members) // c0)
    cuts = [place * len(members) // count for place in range(count + 1)]
    stretches = [range(one, two) for one, two in pairwise(cuts)]
    more = [max(0, c0 - len(stretch)) for stretch in stretches]
    rows = bipartite(len(members), stretches, more, Stream(derive(seed, "graph", 0)))
    return tuple([members[label] for label in row] for row in rows)


def bipartite(
    left: int, stretches: Sequence[Sequence[int]], more: int | Sequence[int], rng: Stream
) -> list[list[int]]:
    """Make a bipartite graph: each right node gets its stretch of left ones, and `more` others.

    The others come off random orders of all left nodes, one order after the other, so that left
    nodes differ little in degree. Neighbours are distinct; where there are no more, fewer.
    """
    order: list[int] = []
    rows: list[list[int]] = []
    for place, stretch in enumerate(stretches):
        row = dict.fromkeys(stretch)
        extra = more if isinstance(more, int) else more[place]
        degree = min(len(row) + extra, left)
        put_back: list[int] = []
        while len(row) < degree:
            if not order:
                order = list(range(left))
                rng.shuffle(order)
            label = order.pop()
            if label in row:
                put_back.append(label)
            else:
                row[label] = None
        order += reversed(put_back)  # they come first: the next node takes them
        rows.append(sorted(row))
    return rows
