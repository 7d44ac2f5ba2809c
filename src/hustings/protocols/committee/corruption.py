"""Whom to corrupt: an adversary's choice before the election, with the roster in its hands.

Each function takes a roster, a budget and a stream and returns so many members, by id. None is the
best possible adversary, which would have to solve a hard covering problem: what they reach bounds
from below what can be done. An electorate is owned from a third on, a leaf's word from a half on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from hustings.core.choice import MemberId
from hustings.core.streams import Stream
from hustings.protocols.committee.roster import Roster

REFINEMENTS = 6  # lists of targets that are tried, each made from the one before

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
    """Own as many electorates as possible, a third of each; what is left over goes anywhere."""
    return _owning(roster.electorates or roster.leaves, 3, roster, budget, rng)


def by_leaf(roster: Roster, budget: int, rng: Stream) -> tuple[MemberId, ...]:
    """Own the word of as many leaves as possible: half of each, and the plurality is theirs."""
    return _owning(roster.leaves, 2, roster, budget, rng)


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
    """Half of the budget owns electorates; the other half sits in those that stay honest."""
    chosen = dict.fromkeys(greedy(roster, budget // 2, rng))
    return _filled(chosen, roster, budget, rng)


CORRUPTIONS: dict[str, tuple[Corruption, str]] = {
    "none": (nobody, "nobody is bad"),
    "random": (at_random, "any members: knows nothing of the network"),
    "first": (the_first, "the lowest ids, who are kings before all others"),
    "greedy": (greedy, "owns as many electorates as the budget allows, a third of each"),
    "cluster": (clustered, "whole electorates, one after the other"),
    "leaf": (by_leaf, "owns the word of as many leaves as the budget allows, half of each"),
    "mixed": (mixed, "half of the budget greedy, the other half at random"),
}


def _owning(
    rows: Sequence[Sequence[MemberId]], parts: int, roster: Roster, budget: int, rng: Stream
) -> tuple[MemberId, ...]:
    """As many rows as possible, a 1/parts share of each.

    For a list of targets those members are taken first who sit in most of them; the longest
    beginning of the list that the budget pays for is found by bisection. Whoever was taken sits in
    other rows, too: ordering targets by what they still lack then makes a better list.
    """
    order = list(roster.members)
    rng.shuffle(order)  # which of two members that do the same is chance
    sits: dict[MemberId, list[int]] = {member: [] for member in order}
    for place, row in enumerate(rows):
        for member in row:
            sits[member].append(place)
    need = [-(-len(row) // parts) for row in rows]
    targets = list(range(len(rows)))
    rng.shuffle(targets)
    targets.sort(key=lambda place: need[place])
    best: list[MemberId] = []
    most = -1
    for _ in range(REFINEMENTS):
        low, high = 0, len(targets)
        taken: list[MemberId] = []
        while low < high:
            middle = (low + high + 1) // 2
            paid = _price(targets[:middle], need, order, sits, budget)
            if paid is None:
                high = middle - 1
            else:
                low, taken = middle, paid
        if low <= most:
            break
        best, most = taken, low
        lacking = list(need)
        for member in best:
            for place in sits[member]:
                lacking[place] -= 1
        targets.sort(key=lambda place: lacking[place])
    return _filled(best, roster, budget, rng)


def _price(
    targets: Sequence[int],
    need: Sequence[int],
    order: Sequence[MemberId],
    sits: Mapping[MemberId, Sequence[int]],
    budget: int,
) -> list[MemberId] | None:
    """Members that own all targets, those first who sit in most of them; None: too many."""
    lacking = [0] * len(need)
    for place in targets:
        lacking[place] = need[place]
    left = len(targets)
    taken: list[MemberId] = []
    waiting = list(order)
    for level in range(max(len(places) for places in sits.values()), 0, -1):
        later = []
        for member in waiting:
            if not left:
                return taken
            useful = sum(lacking[place] > 0 for place in sits[member])
            if useful < level:
                if useful:
                    later.append(member)
                continue
            if len(taken) == budget:
                return None
            taken.append(member)
            for place in sits[member]:
                lacking[place] -= 1
                left -= lacking[place] == 0
        waiting = later
    return None if left else taken


def _filled(
    chosen: Iterable[MemberId], roster: Roster, budget: int, rng: Stream
) -> tuple[MemberId, ...]:
    """Some members and, up to the budget, others at random."""
    taken = dict.fromkeys(chosen)
    others = [member for member in roster.members if member not in taken]
    more = rng.sample(others, min(max(0, budget - len(taken)), len(others)))
    return tuple(sorted([*taken, *more]))
