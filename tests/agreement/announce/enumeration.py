"""Small groups without chance: every order of waking and every fate of every message, weighed.

A second witness, with exact fractions. The members of a group of n <= 4 are 0 to n-1 and 0 is the
best. No message takes time (delta = 0), or (le-a) any time below T_A; timers satisfy T_S <= T_A and
T_L is infinite, so a group goes through rounds in each of which everybody who still announces does
so once, always in the order of waking. Whoever has heard a better announcer is out for good.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from math import factorial

LARGEST = 4

Order = tuple[int, ...]  # members in the order of waking
Fate = tuple[frozenset[int], Fraction]  # who hears a message, and how likely that is


def orders(n: int) -> list[Order]:
    """Every order in which n members may wake; all are equally likely."""
    assert 1 <= n <= LARGEST
    return list(permutations(range(n)))


@cache
def fates(n: int, sender: int, loss: Fraction, model: str) -> tuple[Fate, ...]:
    """Every set of receivers of one message."""
    others = [j for j in range(n) if j != sender]
    if model == "none" or not others:
        return ((frozenset(others), Fraction(1)),)
    if model == "correlated":
        return ((frozenset(), loss), (frozenset(others), 1 - loss))
    found = []
    for heard in product((False, True), repeat=len(others)):
        weight = Fraction(1)
        for hears in heard:
            weight *= 1 - loss if hears else loss
        found.append(
            (frozenset(j for j, hears in zip(others, heard, strict=True) if hears), weight)
        )
    return tuple(found)


def defers(algorithm: str, order: Order, member: int, sender: int) -> bool:
    """Whether hearing `sender` silences `member`."""
    if algorithm == "le-m":
        return order.index(sender) < order.index(member)
    return sender < member


@dataclass(frozen=True)
class State:
    """Between two sends of one round."""

    active: frozenset[int]  # who still takes itself for the leader
    deaf: frozenset[int]  # who has not yet heard the true one
    sent: int = 0  # in this round

    @property
    def done(self) -> bool:
        return not self.deaf


def after_send(
    state: State, algorithm: str, order: Order, sender: int, heard: frozenset[int]
) -> State:
    """What one message makes of a group."""
    silenced = frozenset(
        j for j in heard if j in state.active and defers(algorithm, order, j, sender)
    )
    leads = sender == leader(algorithm, order)
    return State(
        active=state.active - silenced,
        deaf=state.deaf - heard if leads else state.deaf,
        sent=state.sent + 1,
    )


def leader(algorithm: str, order: Order) -> int:
    """Who shall lead."""
    return order[0] if algorithm == "le-m" else 0


def one_round(
    algorithm: str, order: Order, start: State, loss: Fraction, model: str
) -> dict[State, Fraction]:
    """Where a round may end, and how likely; it breaks off when everybody has heard the leader."""
    n = len(order)
    # In le-a all send at once: who is silenced in this round has sent already.
    at_once = start.active if algorithm == "le-a" else None
    now: dict[State, Fraction] = {start: Fraction(1)}
    for sender in order:
        then: defaultdict[State, Fraction] = defaultdict(Fraction)
        for state, weight in now.items():
            sends = sender in (state.active if at_once is None else at_once)
            if not sends or (state.done and at_once is None):
                then[state] += weight
                continue
            for heard, chance in fates(n, sender, loss, model):
                then[after_send(state, algorithm, order, sender, heard)] += weight * chance
        now = dict(then)
    return {state: weight for state, weight in now.items() if weight}


def begin(algorithm: str, order: Order) -> State:
    """Everybody awake or about to be, and nobody has heard anything."""
    everybody = frozenset(range(len(order)))
    return State(everybody, everybody - {leader(algorithm, order)})


# Expectations


@dataclass(frozen=True)
class Expected:
    """Exact means until everybody has heard the leader."""

    messages: Fraction
    rounds: Fraction
    first_round: Fraction


def expected(algorithm: str, n: int, loss: Fraction, model: str) -> Expected:
    """Means over every order and every fate."""
    totals = [Fraction(0)] * 3
    choices = [tuple(range(n))] if algorithm == "le-a" else orders(n)
    for order in choices:
        start = begin(algorithm, order)
        messages, rounds = _remaining(algorithm, order, start, loss, model)
        totals[0] += messages
        totals[1] += rounds
        totals[2] += sum(
            count * weight for count, weight in _first(algorithm, order, loss, model).items()
        )
    return Expected(*(total / len(choices) for total in totals))


@cache
def _remaining(
    algorithm: str, order: Order, start: State, loss: Fraction, model: str
) -> tuple[Fraction, Fraction]:
    """Mean messages and rounds from the beginning of a round.

    A state never comes back once it is left, so the mean solves one equation: its own, in which it
    stands on both sides if the round may change nothing.
    """
    messages, rounds, stays = Fraction(0), Fraction(1), Fraction(0)
    for end, weight in one_round(algorithm, order, start, loss, model).items():
        messages += weight * end.sent
        following = State(end.active, end.deaf)
        if following == start:
            stays += weight
        elif not end.done:
            more, further = _remaining(algorithm, order, following, loss, model)
            messages += weight * more
            rounds += weight * further
    return messages / (1 - stays), rounds / (1 - stays)


# Distributions


def first_round(algorithm: str, n: int, loss: Fraction, model: str) -> dict[int, Fraction]:
    """How many members send a first announcement: the exact distribution over every order.

    `sup` is here too: in it any message silences.
    """
    total: defaultdict[int, Fraction] = defaultdict(Fraction)
    for order in orders(n):
        for count, weight in _first(algorithm, order, loss, model).items():
            total[count] += weight / factorial(n)
    return dict(sorted(total.items()))


def _first(algorithm: str, order: Order, loss: Fraction, model: str) -> dict[int, Fraction]:
    n = len(order)
    if algorithm == "le-a":
        return {n: Fraction(1)}
    # The set of the silenced (2^n states) and the number of senders, one waker after the other.
    now: dict[tuple[frozenset[int], int], Fraction] = {(frozenset(), 0): Fraction(1)}
    for waker in order:
        then: defaultdict[tuple[frozenset[int], int], Fraction] = defaultdict(Fraction)
        for (silenced, count), weight in now.items():
            if waker in silenced:
                then[silenced, count] += weight
                continue
            for heard, chance in fates(n, waker, loss, model):
                more = frozenset(
                    j for j in heard if algorithm == "sup" or defers(algorithm, order, j, waker)
                )
                then[silenced | more, count + 1] += weight * chance
        now = dict(then)
    counts: defaultdict[int, Fraction] = defaultdict(Fraction)
    for (_, count), weight in now.items():
        if weight:
            counts[count] += weight
    return dict(counts)


def rounds(
    algorithm: str, n: int, loss: Fraction, model: str, tail: Fraction
) -> Iterator[tuple[int, Fraction, Fraction]]:
    """Round by round: its number, the chance that it is the last, the chance that all n send in it.

    Ends when less than `tail` of the probability is left.
    """
    choices = [tuple(range(n))] if algorithm == "le-a" else orders(n)
    now = {(order, begin(algorithm, order)): Fraction(1, len(choices)) for order in choices}
    number = 0
    while sum(now.values()) >= tail:
        number += 1
        then: defaultdict[tuple[Order, State], Fraction] = defaultdict(Fraction)
        last = everybody = Fraction(0)
        for (order, state), weight in now.items():
            for end, chance in one_round(algorithm, order, state, loss, model).items():
                everybody += weight * chance * (end.sent == n)
                if end.done:
                    last += weight * chance
                else:
                    then[order, State(end.active, end.deaf)] += weight * chance
        now = dict(then)
        yield number, last, everybody
