"""SimPy without processes: each arrival and each timer is a timeout with one callback."""

from __future__ import annotations

from typing import Any

import simpy
from simpy.events import Event

from bench import members
from bench.run import Run


class SimpyLoop(members.Loop):
    """One callback per kind of event; one per member was measured no faster and builds slower."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.env = simpy.Environment()

    def send(self, to: int, message: members.Message) -> None:
        self.sends += 1
        self.env.timeout(members.UNIT_DELAY, (to, message)).callbacks.append(self.arrive)

    def multicast(self, sender: int) -> None:
        self.sends += 1
        self.env.timeout(members.MULTICAST_DELAY, sender).callbacks.append(self.spread)

    def arm(self, member: int, delay: float) -> None:
        timer = self.env.timeout(delay, member)
        timer.callbacks.append(self.fire)
        self.armed[member] = timer

    def run(self, until: float) -> None:
        # SimPy wants no bound, rather than an infinite one, for a run to the last event.
        self.env.run(None if until == float("inf") else until)

    def arrive(self, event: Event) -> None:
        value: Any = event.value
        to, message = value
        receiver = self.members[to]
        if receiver is not None:
            self.events += 1
            receiver.on_message(message)

    def spread(self, event: Event) -> None:
        sender: Any = event.value
        self.fan_out(sender)

    def fire(self, event: Event) -> None:
        member: Any = event.value
        if self.armed[member] is event:
            self.events += 1
            self.members[member].on_timer()


def ring(n: int, seed: int) -> Run:
    return members.play_ring(SimpyLoop, n, seed)


def bully(n: int, seed: int) -> Run:
    return members.play_bully(SimpyLoop, n, seed)


def suppression(n: int, seed: int) -> Run:
    return members.play_suppression(SimpyLoop, n, seed)


def started(n: int, seed: int) -> object:
    return members.started(SimpyLoop, n, seed)
