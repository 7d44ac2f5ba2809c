"""The fast path with a record of everything.

As in `World._arrive` and `World._spread`, except that queue items carry the messages' numbers and
every arrival is written down.
"""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING

from hustings.core.choice import MemberId
from hustings.core.messages import Message
from hustings.sim.trace import Tracer

if TYPE_CHECKING:
    from hustings.sim.queue import Delivery
    from hustings.sim.reach import Reach
    from hustings.sim.world import World


STRETCH = 150  # messages between two looks at how long the trace has grown


def arrive_traced(world: World, batch: list[Delivery], tracer: Tracer) -> int:
    """Hand a batch of arrivals to their receivers; how many receptions came of it."""
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
    """A multicast that only loss keeps from anybody: one record for all who hear it."""
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
