"""The event queue and its instants: simulated time lies on a grid.

The queue is a heap of plain tuples (instant, order, number, item). The number is a sequence number,
so what was made first comes first among entries of one order.

Arrivals that were sent one after the other for the same instant share one entry, a list: a round
of messages with one delay costs one heap operation, not one each. Only the entry made last may
grow, so the order stays that of the sends; and it stays out of the heap until another is made, so
a token that goes round a ring costs no heap operation at all.

Timers are re-armed lazily. The entry of a timer that was moved to a later instant stays where it
is; when it comes up, it goes back into the heap under its new instant. Timers armed one after the
other for one instant share an entry, too. In every case, timers of one instant fire in the order of
their members, and those of one member in the order in which it first used them.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hustings.core.context import TimerKey
    from hustings.sim.member import SimContext


NEVER = inf

TICKS = 1e8  # per unit of time

# Adding and subtracting 1.5 * 2**52 leaves a double (below 2**51) rounded to a whole number.
ROUND = 1.5 * 2.0**52

END_OF_TIME = 20_000_000.0  # in ticks still below 2**51

# What happens first at one instant. Faults and calls from outside come before everything; eager
# timers ("sends") before arrivals; all other timers after them.
CONTROL = 0
EAGER = 1
ARRIVAL = 2
TIMER = 3


def on_grid(instant: float) -> float:
    """The nearest instant of the grid; infinity stays infinite.

    >>> on_grid(0.1 + 0.1 + 0.1) == on_grid(0.3)
    True
    >>> on_grid(on_grid(0.1) + 3) == on_grid(3.1)
    True
    """
    return ((instant * TICKS + ROUND) - ROUND) / TICKS


# Receiver (a SimContext; None: the group), sender, and what (a message, or a carrier's flight).
# Untyped inside, because naming both kinds would cost the hot loop a test per message.
Delivery = tuple[Any, int, Any]


class Timer:
    """One timer of one member, armed or not; kept and used again as long as the member lives."""

    __slots__ = ("deadline", "entry", "key", "member", "order", "rank")

    def __init__(self, member: SimContext, key: TimerKey, order: int, rank: int) -> None:
        self.member = member
        self.key = key
        self.order = order
        self.rank = rank  # decides between timers of one instant: by member, then by first arming
        self.deadline = NEVER  # when it is due
        self.entry = NEVER  # when its entry comes up, never after the deadline


# (instant, order, number, item). By order, the item is an action, a timer or a list of timers, or
# a list of deliveries; the order tells which, so the loop need not ask.
Entry = tuple[float, int, int, Any]


class EventQueue:
    """What is going to happen, in order."""

    __slots__ = ("_timers", "_timers_at", "_timers_order", "heap", "sequence", "tail", "tail_at")

    def __init__(self) -> None:
        self.heap: list[Entry] = []
        self.sequence = 0
        self.tail: list[Delivery] = []  # the arrivals made last, not yet in the heap
        self.tail_at = NEVER
        self._timers: list[Timer] | None = None  # those armed last for one instant, if several
        self._timers_at = NEVER
        self._timers_order = TIMER

    @property
    def busy(self) -> bool:
        """Whether anything is left to happen; timers that were cancelled do not count."""
        if self.tail_at != NEVER:
            return True
        for _, order, _, item in self.heap:
            if order in (ARRIVAL, CONTROL):
                return True
            if any(
                timer.deadline < NEVER for timer in (item if item.__class__ is list else [item])
            ):
                return True
        return False

    # Arrivals

    def arrive(self, at: float, delivery: Delivery) -> None:
        """A message will arrive at `at`. Code that takes the tail away sets `tail_at` to NEVER."""
        if at == self.tail_at:
            self.tail.append(delivery)
            return
        if self.tail_at != NEVER:
            self._push(self.tail_at, ARRIVAL, self.tail)
        self.tail = [delivery]
        self.tail_at = at

    def put_back(self, at: float, rest: list[Delivery]) -> None:
        """Return what a limit left of the arrivals of `at` to the front of that instant."""
        # Before what their handlers have added to this instant since, as if there were no limit.
        heappush(self.heap, (at, CONTROL, 0, rest))

    # Control

    def control(self, at: float, action: Callable[[], None]) -> None:
        """Something outside the members will happen at `at`."""
        self._push(at, CONTROL, action)

    # Timers

    def arm(self, timer: Timer, at: float) -> None:
        """Make `timer` fire at `at`, and not at any instant it was armed for before."""
        timer.deadline = at
        if at < timer.entry:
            # Any entry it had for a later instant is left behind and ignored when it comes up.
            self._enter(timer, at)

    def _enter(self, timer: Timer, at: float) -> None:
        """Into the heap: the first timer of an instant alone, those that follow together."""
        timer.entry = at
        if at != self._timers_at or timer.order != self._timers_order:
            self._timers_at, self._timers_order, self._timers = at, timer.order, None
            self._push(at, timer.order, timer)
        elif self._timers is None:
            self._timers = [timer]
            self._push(at, timer.order, self._timers)
        else:
            self._timers.append(timer)

    def due(self, at: float, order: int) -> list[Timer]:
        """Take all timers of this instant off the heap: those to fire, in order.

        One that was moved to a later instant goes back into the heap.
        """
        if at == self._timers_at:
            self._timers_at = NEVER
        heap = self.heap
        due: list[Timer] = []
        moved: dict[float, list[Timer]] = {}  # by where to: timers armed together move together
        last_at, last = -1.0, due
        while heap and heap[0][0] == at and heap[0][1] == order:
            item = heappop(heap)[3]
            for timer in [item] if item.__class__ is Timer else item:
                if timer.entry != at:
                    continue  # it has an entry for an earlier instant, or had its turn
                timer.entry = deadline = timer.deadline
                if deadline == last_at:
                    last.append(timer)
                elif deadline == at:
                    timer.entry = NEVER
                    due.append(timer)
                elif deadline < NEVER:
                    if deadline not in moved:
                        moved[deadline] = []
                    last_at, last = deadline, moved[deadline]
                    last.append(timer)
        for deadline, timers in moved.items():
            self._push(deadline, order, timers)
        if len(due) > 1:
            due.sort(key=_rank)
        return due

    def move_on(self) -> None:
        """The first entry is that of one timer which is not to fire now."""
        at, order, _, timer = heappop(self.heap)
        if timer.entry != at:
            return
        deadline = timer.deadline
        if deadline < NEVER:
            if (
                deadline == self._timers_at
                and order == self._timers_order
                and self._timers is not None
            ):
                timer.entry = deadline  # as _enter does, without its call
                self._timers.append(timer)
            else:
                self._enter(timer, deadline)
        else:
            timer.entry = NEVER

    def live(self, at: float, order: int) -> bool:
        """Whether a timer is to fire at this instant; drops the entries if none is."""
        due = self.due(at, order)
        self.put_back_timers(at, due)
        return bool(due)

    def put_back_timers(self, at: float, rest: list[Timer]) -> None:
        """Return timers that were due but have not fired yet; some may have moved meanwhile."""
        for timer in rest:
            if timer.deadline == at and timer.entry == NEVER:
                timer.entry = at
                self._push(at, timer.order, timer)

    def _push(self, at: float, order: int, item: object) -> None:
        self.sequence = sequence = self.sequence + 1
        heappush(self.heap, (at, order, sequence, item))


def _rank(timer: Timer) -> int:
    return timer.rank
