"""The fast path with a record of everything.

As in `World._arrive` and `World._spread`, except that queue items carry the messages' numbers and
every arrival is written down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hustings.core.choice import MemberId
from hustings.core.messages import Message
from hustings.sim.trace import Tracer

if TYPE_CHECKING:
    from hustings.sim.queue import Delivery
    from hustings.sim.world import World


def arrive_traced(world: World, batch: list[Delivery], tracer: Tracer) -> int:
    """Hand a batch of arrivals to their receivers; how many receptions came of it."""
    received = len(batch)
    add, now = tracer.add, world.now  # Tracer.received, without its call
    for target, sender, item in batch:
        number, message = item
        if target is None:
            received += _spread_traced(world, sender, number, message, tracer) - 1
        elif target.up:
            add(("recv", now, target.id, number))
            target.handlers[message.__class__](target.election, target, sender, message)
        else:
            received -= 1
            if not world.keep(target, sender, message, number):
                world.lose(item, target.id, target.status.value)
    return received


def _spread_traced(
    world: World, sender: MemberId, number: int, message: Message, tracer: Tracer
) -> int:
    loss = 0.0 if world.loss_is_correlated else world.plain_loss
    marks = world.receivers(sender, loss)
    received = 0
    add, now, kind = tracer.add, world.now, message.__class__
    for member, mark in zip(world.reachable(), marks, strict=True):
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
