"""DSSim callbacks, in its lite profile and with its default queue, a heap of time buckets."""

from __future__ import annotations

from dssim import DSSimulation, LiteLayer2

from bench import members
from bench.run import Run


class DssimLoop(members.Loop):
    """One callback per kind of event; one per member takes three times as long to build."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.sim = DSSimulation(layer2=LiteLayer2)
        self.schedule = self.sim.schedule_event
        self.arrivals = self.sim.callback(self.arrive)
        self.multicasts = self.sim.callback(self.fan_out)
        self.timers = self.sim.callback(self.fire)
        self.serial = 0

    def send(self, to: int, message: members.Message) -> None:
        self.sends += 1
        self.schedule(members.UNIT_DELAY, (to, message), self.arrivals)

    def multicast(self, sender: int) -> None:
        self.sends += 1
        self.schedule(members.MULTICAST_DELAY, sender, self.multicasts)

    def arm(self, member: int, delay: float) -> None:
        self.serial += 1
        self.armed[member] = self.serial
        self.schedule(delay, (member, self.serial), self.timers)

    def run(self, until: float) -> None:
        self.sim.run(until)

    def arrive(self, event: tuple[int, members.Message]) -> None:
        to, message = event
        receiver = self.members[to]
        if receiver is not None:
            self.events += 1
            receiver.on_message(message)

    def fire(self, event: tuple[int, int]) -> None:
        member, serial = event
        if self.armed[member] == serial:
            self.events += 1
            self.members[member].on_timer()


def ring(n: int, seed: int) -> Run:
    return members.play_ring(DssimLoop, n, seed)


def bully(n: int, seed: int) -> Run:
    return members.play_bully(DssimLoop, n, seed)


def suppression(n: int, seed: int) -> Run:
    return members.play_suppression(DssimLoop, n, seed)


def started(n: int, seed: int) -> object:
    return members.started(DssimLoop, n, seed)
