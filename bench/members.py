"""The three workloads as state machines, written once for every callback-style peer.

Law of this file: a member knows its loop only through the five methods of `Loop`. All callback
peers run these very classes, so the benchmark compares engines, not ways to write a protocol.
A message is a plain tuple or int, the leanest thing a hand-written loop would use.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from typing import Any

from bench.run import Run, Tally, timed

# A timer that waits for a message must lose the tie against it, but neither SimPy's timeouts nor
# DSSim's queue rank the events of one instant; so in every peer such a timer runs a hair longer.
HAIR = 1e-9

UNIT_DELAY = 1.0
ANSWER_TIMEOUT = 2.0 + HAIR
COORDINATOR_TIMEOUT = 10.0 + HAIR

MULTICAST_DELAY = 0.1
LOSS = 0.1
SUPPRESS_SPAN = 1.0
ANNOUNCE_PERIOD = 1.0
LISTEN_TIMEOUT = 3.0 + HAIR
HORIZON = 20.0

ELECTION, OK, COORDINATOR = 0, 1, 2
Message = tuple[int, int]


class Loop(ABC):
    """What a callback peer must offer: sends, one timer per member, and a run to an instant."""

    def __init__(self, seed: int) -> None:
        self.members: list[Any] = [None]  # by id; None for a dead member, and at place 0
        self.armed: list[Any] = []  # by id: the mark of the timer now running, 0 for none
        self.random = random.Random(seed).random
        self.sends = 0
        self.events = 0

    @abstractmethod
    def send(self, to: int, message: Message) -> None: ...

    @abstractmethod
    def multicast(self, sender: int) -> None: ...

    @abstractmethod
    def arm(self, member: int, delay: float) -> None: ...

    @abstractmethod
    def run(self, until: float) -> None: ...

    def disarm(self, member: int) -> None:
        self.armed[member] = 0

    def fan_out(self, sender: int) -> None:
        """The arrival of a multicast: one queue entry, one loss draw per receiver."""
        draw, delivered = self.random, 0
        for receiver in self.members[1:]:
            if receiver.id != sender and draw() >= LOSS:
                delivered += 1
                receiver.on_message(sender)
        self.events += delivered

    def tally(self) -> Tally:
        leaders = Counter(member.leader for member in self.members if member is not None)
        return Tally(self.sends, self.events, leaders.most_common(1)[0][0])


class RingMember:
    """Chang and Roberts on a clockwise ring; a message is (ELECTION or COORDINATOR, best id)."""

    __slots__ = ("forwarded", "id", "leader", "loop", "successor")

    def __init__(self, loop: Loop, me: int, successor: int) -> None:
        self.loop = loop
        self.id = me
        self.successor = successor
        self.forwarded = False
        self.leader = 0

    def call(self) -> None:
        self.forwarded = True
        self.loop.send(self.successor, (ELECTION, self.id))

    def on_message(self, message: Message) -> None:
        kind, best = message
        if kind == ELECTION:
            if best > self.id:
                self.forwarded = True
                self.loop.send(self.successor, message)
            elif best == self.id:
                self.leader = best
                self.loop.send(self.successor, (COORDINATOR, best))
            elif not self.forwarded:
                self.forwarded = True
                self.loop.send(self.successor, (ELECTION, self.id))
        elif best != self.id:
            self.leader = best
            self.forwarded = False
            self.loop.send(self.successor, message)


class BullyMember:
    """The bully with ELECTION, OK and COORDINATOR; a message is (kind, sender)."""

    __slots__ = ("answered", "id", "leader", "loop", "n", "running")

    def __init__(self, loop: Loop, me: int, n: int) -> None:
        self.loop = loop
        self.id = me
        self.n = n
        self.running = False
        self.answered = False
        self.leader = 0

    def call(self) -> None:
        self.running = True
        self.answered = False
        message = (ELECTION, self.id)
        for to in range(self.id + 1, self.n + 1):
            self.loop.send(to, message)
        self.loop.arm(self.id, ANSWER_TIMEOUT)

    def on_message(self, message: Message) -> None:
        kind, sender = message
        if kind == ELECTION:
            self.loop.send(sender, (OK, self.id))
            if self.leader == self.id:
                self.loop.send(sender, (COORDINATOR, self.id))
            elif not self.running:
                self.call()
        elif kind == OK:
            if self.running and not self.answered:
                self.answered = True
                self.loop.arm(self.id, COORDINATOR_TIMEOUT)
        elif sender < self.id:
            self.call()
        else:
            self.leader = sender
            self.running = False
            self.loop.disarm(self.id)

    def on_timer(self) -> None:
        if self.answered:
            self.call()
            return
        self.running = False
        self.leader = self.id
        message = (COORDINATOR, self.id)
        for to in range(1, self.id):
            self.loop.send(to, message)


class SuppressionMember:
    """Announces, or listens to a larger member; a multicast carries its sender's id."""

    __slots__ = ("draw", "id", "leader", "loop")

    def __init__(self, loop: Loop, me: int, draw: Callable[[], float]) -> None:
        self.loop = loop
        self.id = me
        self.draw = draw
        self.leader = me

    def call(self) -> None:
        self.loop.arm(self.id, SUPPRESS_SPAN * self.draw())

    def on_message(self, sender: int) -> None:
        # At or above the leader that it follows: it hears the leader again, or a better member. No
        # member hears itself, so if it follows itself only strictly larger ids get here.
        if sender >= self.leader:
            self.leader = sender
            self.loop.arm(self.id, LISTEN_TIMEOUT)

    def on_timer(self) -> None:
        if self.leader == self.id:
            self.loop.multicast(self.id)
            self.loop.arm(self.id, ANNOUNCE_PERIOD)
        else:
            self.leader = self.id
            self.call()


def started(make: Callable[[int], Loop], n: int, seed: int) -> Loop:
    """The suppression group with every timer armed."""
    loop = make(seed)
    loop.members += [SuppressionMember(loop, me, loop.random) for me in range(1, n + 1)]
    loop.armed = [0] * (n + 1)
    for member in loop.members[1:]:
        member.call()
    return loop


def elect(loop: Loop) -> None:
    """Let member 1 call an election and run until no event is left."""
    loop.members[1].call()
    loop.run(float("inf"))


def play_ring(make: Callable[[int], Loop], n: int, seed: int) -> Run:
    """Ids grow clockwise and member 1, the leader's successor, calls: 3n-1 messages."""

    def build() -> Loop:
        loop = make(seed)
        loop.members += [RingMember(loop, me, me % n + 1) for me in range(1, n + 1)]
        return loop

    return timed(build, elect, Loop.tally)


def play_bully(make: Callable[[int], Loop], n: int, seed: int) -> Run:
    """Leader n is dead and member 1 notices: n*n-n-1 messages."""

    def build() -> Loop:
        loop = make(seed)
        loop.members += [BullyMember(loop, me, n) for me in range(1, n)]
        loop.members.append(None)
        loop.armed = [0] * (n + 1)
        return loop

    return timed(build, elect, Loop.tally)


def play_suppression(make: Callable[[int], Loop], n: int, seed: int) -> Run:
    """All n start at once and announce or listen until the horizon."""
    return timed(lambda: started(make, n, seed), lambda loop: loop.run(HORIZON), Loop.tally)
