"""The yardstick: a heap of tuples and a loop, as a programmer would write them by hand."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

from bench import members
from bench.run import Run

MESSAGE, MULTICAST, TIMER = 0, 1, 2


class PlainLoop(members.Loop):
    """Entries are (time, serial, kind, member, message); a timer re-armed leaves a stale entry."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.now = 0.0
        self.serial = 0
        self.heap: list[tuple[float, int, int, int, Any]] = []

    def send(self, to: int, message: members.Message) -> None:
        self.sends += 1
        self.serial += 1
        heappush(self.heap, (self.now + members.UNIT_DELAY, self.serial, MESSAGE, to, message))

    def multicast(self, sender: int) -> None:
        self.sends += 1
        self.serial += 1
        arrival = self.now + members.MULTICAST_DELAY
        heappush(self.heap, (arrival, self.serial, MULTICAST, sender, None))

    def arm(self, member: int, delay: float) -> None:
        self.serial += 1
        self.armed[member] = self.serial
        heappush(self.heap, (self.now + delay, self.serial, TIMER, member, None))

    def run(self, until: float) -> None:
        heap, group, armed = self.heap, self.members, self.armed
        events = 0
        while heap:
            time, serial, kind, who, message = heappop(heap)
            if time >= until:
                break
            self.now = time
            if kind == MESSAGE:
                receiver = group[who]
                if receiver is not None:
                    events += 1
                    receiver.on_message(message)
            elif kind == MULTICAST:
                self.fan_out(who)
            elif armed[who] == serial:
                events += 1
                group[who].on_timer()
        self.events += events


def ring(n: int, seed: int) -> Run:
    return members.play_ring(PlainLoop, n, seed)


def bully(n: int, seed: int) -> Run:
    return members.play_bully(PlainLoop, n, seed)


def suppression(n: int, seed: int) -> Run:
    return members.play_suppression(PlainLoop, n, seed)


def started(n: int, seed: int) -> object:
    return members.started(PlainLoop, n, seed)
