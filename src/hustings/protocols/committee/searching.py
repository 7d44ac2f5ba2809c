"""Who sits well in the public tree of a path, as far as one can look down it.

Without a network the candidates are known before anybody is corrupted, and so is their tree. Where
sight ends before the tree does, whoever is found there counts as leader.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hustings.core.choice import MemberId
from hustings.core.streams import Stream
from hustings.protocols.committee.endgame import Walk

SIGHT = 10  # levels that are written out
STEPS = 8  # sets that are tried, each made from the one before
MOST_WORK = 1 << 19  # places looked at in one round of exchanges; where there are more, none


def well_seated(
    candidates: tuple[MemberId, ...], depth: int, budget: int, rng: Stream
) -> tuple[MemberId, ...]:
    """So many members that make a good leader as unlikely as this search can."""
    tree = Tree(candidates, min(depth, SIGHT))
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
    tree: Tree, bad: list[MemberId], value: float, order: Sequence[MemberId]
) -> list[MemberId]:
    """One for another, whichever does most harm, as long as any does."""
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


class Tree:
    """The holders of its first levels, from the top."""

    def __init__(self, candidates: tuple[MemberId, ...], levels: int) -> None:
        self.candidates = candidates
        walks = [Walk.begin(candidates, levels)]
        self.levels = [[walks[0].holder]]
        for _ in range(levels):
            walks = [walk.step(branch) for walk in walks for branch in (0, 1)]
            self.levels.append([walk.holder for walk in walks])

    def value(self, is_bad: Callable[[MemberId], bool]) -> float:
        """P(good leader)."""
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
        """The value, and what each member takes from it by being bad, the others as they are."""
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
