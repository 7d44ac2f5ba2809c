"""The fast path of messages, with and without a trace: one fixed delay, losses by coins alone.

`Reach` holds the members that a multicast can reach, until a member comes or goes. With a trace,
queue items carry the messages' numbers, and every arrival is written down.

`Carrier` could do the same, slower; a test compares their runs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import compress
from typing import TYPE_CHECKING

from hustings.core.choice import MemberId
from hustings.core.messages import Message
from hustings.sim.loss import reached
from hustings.sim.queue import NEVER
from hustings.sim.trace import Tracer

if TYPE_CHECKING:
    from random import Random

    from hustings.core.choice import MemberId
    from hustings.core.election import Election, Handler
    from hustings.core.messages import Message
    from hustings.sim.member import SimContext
    from hustings.sim.queue import Delivery
    from hustings.sim.world import World


_OTHER = bytes([1, 0]) + bytes(254)  # a table that turns marks round


class Reach:
    """The members that messages can reach, up or paused, by id."""

    __slots__ = ("all_up", "ids", "members", "pairs", "table")

    def __init__(self, everybody: Iterable[SimContext]) -> None:
        self.members = [one for one in everybody if one.awake or one.backlog is not None]
        self.ids = [one.id for one in self.members]
        up = [one for one in self.members if one.awake]
        self.all_up = len(up) == len(self.members)
        # If one table of handlers serves all, a look-up serves them all too.
        self.table: Mapping[type[Message], Handler] | None = None
        self.pairs: list[tuple[Election, SimContext]] = []
        if self.all_up and up:
            first = up[0].handlers
            pairs = [(one.election, one) for one in up if one.handlers is first]
            if len(pairs) == len(up):
                self.table = first
                self.pairs = pairs

    def __contains__(self, member: MemberId) -> bool:
        place = bisect_left(self.ids, member)
        return place < len(self.ids) and self.ids[place] == member

    def of(self, marks: bytearray) -> list[MemberId]:
        """The members that these marks stand for."""
        return list(compress(self.ids, marks))

    def but(self, marks: bytearray, sender: MemberId) -> list[MemberId]:
        """The members that a multicast with these marks misses."""
        missed = list(compress(self.ids, marks.translate(_OTHER)))
        if sender in self:
            missed.remove(sender)
        return missed

    def marks(self, sender: MemberId, loss: float, chance: Random) -> tuple[bytearray, int]:
        """Which members a multicast of `sender` reaches (1, otherwise 0), and how many lose it."""
        ids = self.ids
        marks = reached(len(ids), loss, chance)
        place = bisect_left(ids, sender)
        if place < len(ids) and ids[place] == sender:
            marks[place] = 0
            return marks, marks.count(0) - 1
        return marks, marks.count(0)


def relay(world: World, at: float, until: float, max_events: int) -> int:
    """The fast path of single messages, such as a token on a ring. Return how many arrived."""
    queue = world.queue
    heap = queue.heap
    left = max_events - world.events
    add, received = None, 0
    if world.tracer is not None:
        world.tracer.breathe()
        add, left = world.tracer.add, min(left, STRETCH)
    world.interrupted = False
    try:
        while len(queue.tail) == 1:
            target, sender, message = queue.tail[0]
            if target is None or not target.awake:
                break
            queue.tail_at = NEVER
            world.now = at
            received += 1
            if add is not None:
                number, message = message
                add(("recv", at, target.id, number))
            target.handlers[message.__class__](target.election, target, sender, message)
            at = queue.tail_at
            # No limit of time lies beyond the end of time, so this ends when nothing is left, too.
            if at > until or (heap and heap[0][0] <= at) or received == left or world.interrupted:
                break
    finally:
        world.events += received
        if received:
            world.last_arrival = world.now
    return received


def spread(world: World, sender: MemberId, message: Message) -> int:
    """The fast path of a multicast: a coin for each member that is up when it arrives."""
    reach = world.reach()
    loss = 0.0 if world.loss_is_correlated else world.multicast_loss
    marks, lost = reach.marks(sender, loss, world.chance)
    if lost:
        world.lost["loss"] += lost
    received = marks.count(1)
    table = reach.table
    if table is not None:  # all up, all of one kind
        handler = table[message.__class__]
        for election, member in compress(reach.pairs, marks):
            handler(election, member, sender, message)
        return received
    for member in compress(reach.members, marks):
        if member.up:
            member.handlers[message.__class__](member.election, member, sender, message)
        else:
            received -= 1
            if not world.keep(member, sender, message):
                world.lost[member.status.value] += 1
    return received


STRETCH = 150  # messages between two looks at how long the trace has grown


def arrive_traced(world: World, batch: list[Delivery], tracer: Tracer) -> int:
    """Hand a batch of arrivals to their receivers; return the number of receptions."""
    received = len(batch)
    add, now = tracer.add, world.now  # Tracer.received, without its call
    for place in range(0, len(batch), STRETCH):
        for target, sender, (number, message) in batch[place : place + STRETCH]:
            if target is None:
                received += _spread_traced(world, sender, number, message, tracer) - 1
            elif target.awake:
                add(("recv", now, target.id, number))
                target.handlers[message.__class__](target.election, target, sender, message)
            else:
                received -= 1
                if not world.keep(target, sender, message, number):
                    world.lose((number, message), target.id, target.status.value)
        tracer.breathe()
    return received


def _spread_traced(
    world: World, sender: MemberId, number: int, message: Message, tracer: Tracer
) -> int:
    loss = 0.0 if world.loss_is_correlated else world.multicast_loss
    reach = world.reach()
    marks, _ = reach.marks(sender, loss, world.chance)
    if reach.all_up:
        return hear_at_once(world, reach, marks, sender, number, message)
    received = 0
    add, now, kind = tracer.add, world.now, message.__class__
    for member, mark in zip(reach.members, marks, strict=True):
        if member.id == sender:
            continue
        if not mark:
            world.lose((number, message), member.id, "loss")
        elif member.up:
            received += 1
            add(("recv", now, member.id, number))
            member.handlers[kind](member.election, member, sender, message)
        elif not world.keep(member, sender, message, number):
            world.lose((number, message), member.id, member.status.value)
    return received


def hear_at_once(
    world: World,
    reach: Reach,
    marks: bytearray,
    sender: MemberId,
    number: int,
    message: Message,
) -> int:
    """A multicast that only loss can keep from a member: one record for all receivers."""
    missed = reach.but(marks, sender)
    if missed:
        world.lost["loss"] += len(missed)
    if world.tracer is not None:
        world.tracer.spread(world.now, number, reach.of(marks), missed)
    if reach.table is not None and not world.debug:
        handler = reach.table[message.__class__]
        for election, member in compress(reach.pairs, marks):
            handler(election, member, sender, message)
    else:
        for member in compress(reach.members, marks):
            world.receive(member, sender, message)
    return marks.count(1)
