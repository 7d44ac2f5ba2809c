"""The complete path of a message: every model, every cut, every trace.

The world's fast path covers one fixed delay with plain loss. Everything else goes through here:
other delays, duplicates, reordering, collisions, cuts, crashes in the middle of a send, traces,
debug mode. Where both paths are possible, both give the same run: they toss the same coins in the
same order, and a test compares them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hustings.core.messages import Message
from hustings.sim.delay import Fixed
from hustings.sim.fast_path import hear_at_once
from hustings.sim.loss import Coins, Loss
from hustings.sim.member import SimContext, Status
from hustings.sim.network import Network
from hustings.sim.queue import on_grid

if TYPE_CHECKING:
    from hustings.core.choice import MemberId
    from hustings.sim.queue import Delivery
    from hustings.sim.world import World


class Flight:
    """A message in flight, with everything on which its fate still depends."""

    __slots__ = (
        "copies",
        "doomed",
        "lands",
        "loss",
        "message",
        "number",
        "reach",
        "toss",
        "traffic",
    )

    def __init__(self, message: Message, number: int, traffic: int, loss: Loss) -> None:
        self.message = message
        self.loss = loss  # of its kind: to one member, or to the group
        self.number = number
        self.traffic = traffic  # see Carrier._overlapping
        self.copies = 0  # entries in the queue
        self.lands = -1.0  # when the last of them comes up
        self.toss = False  # whether each receiver still tosses a coin
        self.doomed: bool | None = False  # lost by all; None: one coin for all at the first arrival
        self.reach: list[MemberId] | None = None  # a multicast cut short by its sender's crash


class Carrier:
    """Decides what happens to each message."""

    __slots__ = (
        "_at",
        "_fate",
        "_flying",
        "_group_fate",
        "_landing",
        "_last",
        "_network",
        "_number",
        "_number_at",
        "_one_delay",
        "_world",
    )

    def __init__(self, world: World, network: Network) -> None:
        self._world = world
        self._network = network
        self._number = 0  # messages launched so far
        self._flying = 0  # of these, in flight
        self._landing: dict[float, int] = {}  # how many of these finish at an instant
        self._at = -1.0  # the instant for which ...
        self._number_at = 0  # ... this many messages had been launched before
        self._last: dict[tuple[MemberId, MemberId], float] = {}  # latest arrival per link, fifo
        # Loss models with a memory decide per link when a message leaves; coins are tossed here.
        one, group = network.loss, network.multicasts
        self._fate = None if isinstance(one, Coins) else one.fate(world.chance)
        self._group_fate = self._fate
        if network.multicast_loss is not None:
            self._group_fate = None if isinstance(group, Coins) else group.fate(world.chance)
        fixed = isinstance(network.delay, Fixed)
        self._one_delay = fixed and not network.duplicate and not network.reorder

    # Sending

    def send(self, sender: SimContext, to: MemberId, message: Message) -> None:
        """One message to one member."""
        if not sender.up:
            return  # it crashed earlier in this very handler
        world, loss = self._world, self._network.loss
        target = world.members[to]
        flight = self._launch(sender, to, message, loss)
        if sender.fuse is not None:
            self._burn(sender, 1)
        if self._fate is not None:
            if self._fate(world.now, sender.id, to):
                self._lose(flight, to, "loss")
                return
        elif loss.collision:
            flight.toss = True  # how much traffic it met is known when it arrives
        elif loss.p and world.coin() < loss.p:
            self._lose(flight, to, "loss")
            return
        if world.partitions and world.partitions.between(sender.id, to):
            self._lose(flight, to, "cut")
            return
        self._copies(sender.id, target, flight)

    def multicast(self, sender: SimContext, message: Message) -> None:
        """One message to the group."""
        if not sender.up:
            return
        world, loss = self._world, self._network.multicasts
        flight = self._launch(sender, None, message, loss)
        others = [member for member in world.reach().members if member is not sender]
        if sender.fuse is not None:
            if sender.fuse < len(others):
                others = others[: sender.fuse]
                flight.reach = [member.id for member in others]
            self._burn(sender, len(others) or 1)
        fate = self._group_fate  # if there is one, it decides for each receiver below
        if fate is None:
            if not loss.shared:
                flight.toss = True
            elif loss.collision:
                flight.doomed = None
            elif loss.p and world.coin() < loss.p:
                self._lose(flight, None, "loss")
                return
        if self._one_delay and not world.partitions and fate is None:
            self._schedule(sender.id, None, flight, self._network.delay.bound)
            return
        for member in others:  # a delay each, so members that join later do not hear it
            if fate is not None and fate(world.now, sender.id, member.id):
                self._lose(flight, member.id, "loss")
            elif world.partitions and world.partitions.between(sender.id, member.id):
                self._lose(flight, member.id, "cut")
            else:
                self._copies(sender.id, member, flight)

    def _launch(
        self, sender: SimContext, to: MemberId | None, message: Message, loss: Loss
    ) -> Flight:
        world = self._world
        if self._at != world.now:
            self._at, self._number_at = world.now, self._number
        number = 0
        if world.heeded:
            item = world.note(sender, to, message)
            number = item[0] if isinstance(item, tuple) else 0
        # A message that arrives at this instant is not counted, handed over or not.
        met = self._flying - self._landing.get(world.now, 0)
        flight = Flight(message, number, met - self._number, loss)
        self._number += 1
        if message.__class__ is world.kind:
            world.run_of_kind += 1
        else:
            world.count(message.__class__)
        return flight

    def _burn(self, sender: SimContext, transmissions: int) -> None:
        """A fuse counts single transmissions, so a crash may fall into the middle of a send."""
        assert sender.fuse is not None
        sender.fuse -= transmissions
        if sender.fuse <= 0:
            self._world.change(sender, Status.CRASHED)

    def _copies(self, sender: MemberId, target: SimContext, flight: Flight) -> None:
        network, world = self._network, self._world
        copies = 2 if network.duplicate and world.coin() < network.duplicate else 1
        for _ in range(copies):
            delay = network.delay.draw(world.chance, sender, target.id)
            if network.reorder and world.coin() < network.reorder:
                delay += world.chance.uniform(0.0, network.hold_back)
            self._schedule(sender, target, flight, delay)

    def _schedule(
        self, sender: MemberId, target: SimContext | None, flight: Flight, delay: float
    ) -> None:
        world = self._world
        at = on_grid(world.now + on_grid(delay))
        if self._network.fifo and target is not None:
            link = (sender, target.id)
            at = max(at, self._last.get(link, at))
            self._last[link] = at
        if not flight.copies:
            self._flying += 1
        flight.copies += 1
        self._will_land(flight, at)
        world.queue.arrive(at, (target, sender, flight))

    def _will_land(self, flight: Flight, at: float) -> None:
        if at > flight.lands:
            self._has_landed(flight)
            self._landing[at] = self._landing.get(at, 0) + 1
            flight.lands = at

    def _has_landed(self, flight: Flight) -> None:
        left = self._landing.pop(flight.lands, 1) - 1
        if left:
            self._landing[flight.lands] = left

    # Arriving

    def deliver(self, batch: list[Delivery]) -> int:
        """Hand a batch of arrivals to their receivers; return the number of receptions."""
        world = self._world
        if self._at != world.now:
            self._at, self._number_at = world.now, self._number
        received = 0
        for target, sender, item in batch:
            flight = item if isinstance(item, Flight) else self._adopt(target, item)
            flight.copies -= 1
            if not flight.copies:
                self._flying -= 1
                self._has_landed(flight)
            if target is not None:
                received += self._land(target, sender, flight)
                continue
            received += self._spread(sender, flight)
        return received

    def _spread(self, sender: MemberId, flight: Flight) -> int:
        """A multicast that lands everywhere at once."""
        world = self._world
        p = 0.0
        if flight.toss:
            flight.toss = False  # tossed here, for all at once, as on the fast path
            p = flight.loss.at(self._overlapping(flight))
        reach = world.reach()
        marks, _ = reach.marks(sender, p, world.chance)
        if (
            reach.all_up
            and not world.partitions
            and flight.reach is None
            and flight.doomed is False
        ):
            return hear_at_once(world, reach, marks, sender, flight.number, flight.message)
        received = 0
        for member, reached in zip(reach.members, marks, strict=True):
            if member.id == sender or (flight.reach is not None and member.id not in flight.reach):
                continue
            if reached:
                received += self._land(member, sender, flight)
            else:
                self._lose(flight, member.id, "loss")
        return received

    def _adopt(self, target: SimContext | None, item: Message | tuple[int, Message]) -> Flight:
        """A message that was sent on the fast path, before the world became careful."""
        number, message = item if isinstance(item, tuple) else (0, item)
        network = self._network
        flight = Flight(message, number, 0, network.multicasts if target is None else network.loss)
        flight.copies = 1
        flight.toss = target is None and not flight.loss.shared
        self._flying += 1
        self._will_land(flight, self._world.now)
        return flight

    def _land(self, target: SimContext, sender: MemberId, flight: Flight) -> int:
        world = self._world
        if self._is_lost(flight):
            self._lose(flight, target.id, "loss")
        elif world.partitions and world.partitions.between(sender, target.id):
            self._lose(flight, target.id, "cut")
        elif target.up:
            if world.tracer is not None:
                world.tracer.received(world.now, target.id, flight.number)
            world.receive(target, sender, flight.message)
            return 1
        elif not world.keep(target, sender, flight.message, flight.number):
            self._lose(flight, target.id, target.status.value)
        return 0

    def _is_lost(self, flight: Flight) -> bool:
        if flight.toss:
            p = flight.loss.at(self._overlapping(flight))
            return p > 0 and self._world.coin() < p
        if flight.doomed is None:
            p = flight.loss.at(self._overlapping(flight))
            flight.doomed = self._world.coin() < p
        return flight.doomed

    def _overlapping(self, flight: Flight) -> int:
        """The number of messages, itself included, that shared some of this one's time in flight.

        These are the messages in flight when it left, and all that were launched since. `traffic`
        is the number in flight then, minus the number launched before it.
        """
        return max(1, flight.traffic + self._number_at)  # without a delay it meets no other

    def _lose(self, flight: Flight, to: MemberId | None, why: str) -> None:
        world = self._world
        world.lost[why] += 1
        if world.tracer is not None:
            world.tracer.lost(world.now, flight.number, to, why)
