"""SimPy in its natural style: a process per member, a process per message, a store as inbox.

The protocols of `members` are told again here, because a process is its own state machine.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Generator
from typing import Any

import simpy
from simpy.events import Event

from bench import members as m
from bench.run import Run, Tally, timed

Steps = Generator[Event, Any, None]


class Group:
    """Environment, counters, and per id an inbox (None for the dead) and the leader followed."""

    def __init__(self, n: int, seed: int, dead: int = 0) -> None:
        self.env = simpy.Environment()
        self.n = n
        self.inboxes = [simpy.Store(self.env) if me != dead else None for me in range(n + 1)]
        self.leaders = [0] * (n + 1)
        self.random = random.Random(seed).random
        self.sends = 0
        self.events = 0

    def inbox(self, me: int) -> simpy.Store:
        inbox = self.inboxes[me]
        if inbox is None:
            raise ValueError(f"member {me} is dead")
        return inbox

    def send(self, to: int, message: m.Message) -> None:
        self.sends += 1
        self.env.process(self.carry(to, message))

    def carry(self, to: int, message: m.Message) -> Steps:
        yield self.env.timeout(m.UNIT_DELAY)
        inbox = self.inboxes[to]
        if inbox is not None:
            yield inbox.put(message)

    def multicast(self, sender: int) -> None:
        self.sends += 1
        self.env.process(self.spread(sender))

    def spread(self, sender: int) -> Steps:
        yield self.env.timeout(m.MULTICAST_DELAY)
        for to in range(1, self.n + 1):
            if to != sender and self.random() >= m.LOSS:
                self.inbox(to).put(sender)

    def tally(self) -> Tally:
        leader = Counter(self.leaders[1:]).most_common(1)[0][0]
        return Tally(self.sends, self.events, leader)


def ring_member(group: Group, me: int) -> Steps:
    inbox = group.inbox(me)
    successor = me % group.n + 1
    forwarded = me == 1
    if forwarded:
        group.send(successor, (m.ELECTION, me))
    while True:
        message = yield inbox.get()
        group.events += 1
        kind, best = message
        if kind == m.ELECTION:
            if best > me:
                forwarded = True
                group.send(successor, message)
            elif best == me:
                group.leaders[me] = me
                group.send(successor, (m.COORDINATOR, me))
            elif not forwarded:
                forwarded = True
                group.send(successor, (m.ELECTION, me))
        elif best != me:
            group.leaders[me] = best
            forwarded = False
            group.send(successor, message)


def bully_call(group: Group, me: int) -> Event:
    for to in range(me + 1, group.n + 1):
        group.send(to, (m.ELECTION, me))
    return group.env.timeout(m.ANSWER_TIMEOUT)


def bully_member(group: Group, me: int) -> Steps:
    inbox = group.inbox(me)
    answered = False
    timer = bully_call(group, me) if me == 1 else None
    heard = inbox.get()
    while True:
        yield heard if timer is None else heard | timer
        group.events += 1
        if not heard.triggered:
            if answered:
                answered = False
                timer = bully_call(group, me)
                continue
            timer = None
            group.leaders[me] = me
            for to in range(1, me):
                group.send(to, (m.COORDINATOR, me))
            continue
        message: Any = heard.value
        kind, sender = message
        heard = inbox.get()
        if kind == m.ELECTION:
            group.send(sender, (m.OK, me))
            if group.leaders[me] == me:
                group.send(sender, (m.COORDINATOR, me))
            elif timer is None:
                timer = bully_call(group, me)
        elif kind == m.OK:
            if timer is not None and not answered:
                answered = True
                timer = group.env.timeout(m.COORDINATOR_TIMEOUT)
        elif sender < me:
            answered = False
            timer = bully_call(group, me)
        else:
            group.leaders[me] = sender
            timer = None


def suppression_member(group: Group, me: int) -> Steps:
    env, inbox, leaders = group.env, group.inbox(me), group.leaders
    leaders[me] = me
    timer = env.timeout(m.SUPPRESS_SPAN * group.random())
    heard = inbox.get()
    while True:
        yield heard | timer
        group.events += 1
        if heard.triggered:
            sender: Any = heard.value
            heard = inbox.get()
            if sender >= leaders[me]:
                leaders[me] = sender
                timer = env.timeout(m.LISTEN_TIMEOUT)
        elif leaders[me] == me:
            group.multicast(me)
            timer = env.timeout(m.ANNOUNCE_PERIOD)
        else:
            leaders[me] = me
            timer = env.timeout(m.SUPPRESS_SPAN * group.random())


def ring(n: int, seed: int) -> Run:
    def build() -> Group:
        group = Group(n, seed)
        for me in range(1, n + 1):
            group.env.process(ring_member(group, me))
        return group

    return timed(build, lambda group: group.env.run(), Group.tally)


def bully(n: int, seed: int) -> Run:
    def build() -> Group:
        group = Group(n, seed, dead=n)
        for me in range(1, n):
            group.env.process(bully_member(group, me))
        return group

    return timed(build, lambda group: group.env.run(), Group.tally)


def started(n: int, seed: int) -> Group:
    group = Group(n, seed)
    for me in range(1, n + 1):
        group.env.process(suppression_member(group, me))
    return group


def suppression(n: int, seed: int) -> Run:
    return timed(lambda: started(n, seed), lambda group: group.env.run(m.HORIZON), Group.tally)
