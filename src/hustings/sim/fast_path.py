"""The fast path: messages with one fixed delay and nothing but plain loss to fear.

What is here could be done, slower, by `Carrier`; a test holds the two to the same runs.
"""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING

from hustings.sim.instants import NEVER
from hustings.sim.traced import STRETCH

if TYPE_CHECKING:
    from hustings.core.choice import MemberId
    from hustings.core.messages import Message
    from hustings.sim.world import World


def relay(world: World, at: float, until: float, max_events: int) -> int:
    """The fast path of messages that come one at a time, as a token on a ring; how many did."""
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
    """The fast path of a multicast: everybody there at its arrival, a coin for each."""
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
