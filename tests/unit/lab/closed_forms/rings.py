"""Dumb twins of the ring election in any order of ids, for counting over all cases.

Messages move in rounds: all that are under way arrive, in the order in which they were sent, and
what they cause is under way for the next round.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

Run = tuple[int, int]


@dataclass
class Rules:
    """Which reading of the slides is played."""

    cache: bool = True  # lower runs are suppressed
    flag_per_run: bool = True
    cache_at_send: bool = True  # an initiator notes its own run when it sends


@dataclass
class Outcome:
    """What one ring cost, when its last message arrived, and whom it elected."""

    messages: int
    time: int
    leaders: set[int]


PLAIN = Rules(cache=False, flag_per_run=False)
CACHED = Rules()
ONE_FLAG = Rules(flag_per_run=False)
LATE_CACHE = Rules(cache_at_send=False)


def play(order: Sequence[int], initiators: Collection[int], rules: Rules) -> Outcome:
    """One election on a ring in the given clockwise order, all initiators at once."""
    after = {i: order[(place + 1) % len(order)] for place, i in enumerate(order)}
    seen: dict[int, int] = dict.fromkeys(order, 0)
    flags: set[tuple[int, int]] = set()
    leaders: set[int] = set()
    under_way: list[tuple[int, str, int, int]] = []  # receiver, kind, run, best
    messages = time = 0

    def flag(i: int, run: int) -> tuple[int, int]:
        return (i, run if rules.flag_per_run else 0)

    def handle(i: int, kind: str, run: int, best: int) -> tuple[str, int] | None:
        if rules.cache:
            if run < seen[i]:
                return None
            seen[i] = run
        if kind == "ELECTED":
            return None if best == i else ("ELECTED", best)
        if best == i:
            leaders.add(i)
            return ("ELECTED", i)
        if best < i and flag(i, run) in flags:
            return None
        flags.add(flag(i, run))
        return ("ELECTION", max(best, i))

    for i in sorted(initiators):
        flags.add(flag(i, i))
        if rules.cache_at_send:
            seen[i] = i
        under_way.append((after[i], "ELECTION", i, i))
    while under_way:
        messages += len(under_way)
        time += 1
        assert time <= 4 * len(order), "the ring does not come to rest"
        arriving, under_way = under_way, []
        for i, kind, run, best in arriving:
            sent = handle(i, kind, run, best)
            if sent is not None:
                under_way.append((after[i], sent[0], run, sent[1]))
    return Outcome(messages, time, leaders)


def orders(n: int) -> Iterator[tuple[int, ...]]:
    """Every ring of n members once: rotations of one ring are the same ring."""
    for rest in permutations(range(2, n + 1)):
        yield (1, *rest)


def initiator_sets(n: int) -> Iterator[tuple[int, ...]]:
    """Every set of initiators that is not empty."""
    for size in range(1, n + 1):
        yield from combinations(range(1, n + 1), size)


def every(n: int, rules: Rules) -> Iterator[Outcome]:
    """The outcome of every ring with every set of initiators."""
    for order in orders(n):
        for initiators in initiator_sets(n):
            yield play(order, initiators, rules)


def leader_dies(n: int, may_rerun: Callable[[int], bool]) -> int:
    """Messages when n dies one hop after sending ELECTION:n, and suspicion comes 2 units later.

    Member 1 initiated. The ring is repaired as n dies. A member that may re-run starts a run of
    the next epoch when it suspects n and holds, or is handed, an ELECTION that names n.
    """
    dies, suspects = n, n + 2  # ELECTION reaches n after n-1 hops; its own needs one more
    seen: dict[int, Run] = dict.fromkeys(range(1, n + 1), (0, 0))
    holds_n: set[int] = set()
    flags: set[tuple[int, Run]] = set()
    under_way: list[tuple[int, str, Run, int]] = []
    messages = now = 0

    def after(i: int) -> int:
        return i % n + 1 if now < dies else i % (n - 1) + 1

    def send(i: int, kind: str, run: Run, best: int) -> None:
        nonlocal messages
        messages += 1
        under_way.append((after(i), kind, run, best))

    def initiate(i: int, run: Run) -> None:
        if seen[i] < run:
            seen[i] = run
            flags.add((i, run))
            holds_n.discard(i)
            send(i, "ELECTION", run, i)

    def handle(i: int, kind: str, run: Run, best: int) -> None:
        if run < seen[i]:
            return
        seen[i] = run
        if kind == "ELECTED":
            if best != i:
                send(i, kind, run, best)
        elif best == n and now > suspects and may_rerun(i):
            initiate(i, (run[0] + 1, i))
        elif best == i:
            send(i, "ELECTED", run, i)
        elif best > i or (i, run) not in flags:
            flags.add((i, run))
            if best == n:
                holds_n.add(i)
            send(i, "ELECTION", run, max(best, i))

    initiate(1, (1, 1))
    while under_way:
        now += 1
        assert now < 20 * n, "the ring does not come to rest"
        arriving, under_way = under_way, []
        for i, kind, run, best in arriving:
            if i != n or now < dies:
                handle(i, kind, run, best)
        if now == suspects:
            for i in sorted(holds_n):
                if may_rerun(i):
                    initiate(i, (2, i))
    return messages
