"""The bytes that members put on the network: frames as they are encoded, with IP and UDP headers.

The simulator knows no frames. Its caller hands it what makes a `FrameSize` of a member's election.
A message to the whole group is one datagram to each other member, as where no network multicasts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hustings.core.choice import MemberId
from hustings.core.election import Election
from hustings.core.messages import Message
from hustings.core.outcome import Elected, Outcome

if TYPE_CHECKING:
    from hustings.sim.member import SimContext
    from hustings.sim.world import World

# The bytes of a message from a member in one of its incarnations to another one, or to all (None).
FrameSize = Callable[[MemberId, int, MemberId | None, Message], int]
ToFrameSize = Callable[[Election], FrameSize]


class NetworkBytes:
    """Counts bytes, and apart from the others those that members send while they lead."""

    def __init__(self, world: World, size: FrameSize, begin: float) -> None:
        self._size = size
        self._begin = begin
        self._bytes = self._leading_bytes = 0
        self._leading: dict[MemberId, float] = {}  # who leads, and since when
        self._led = 0.0  # seconds in which a member led, of those that do no longer
        world.listen_in(self)
        world.watch(self)

    def sent(self, world: World, member: SimContext, to: MemberId | None, message: Message) -> None:
        """A member sends."""
        if world.now < self._begin:
            return
        size = self._size(member.id, member.incarnation, to, message)
        if to is None:
            size *= len(world.reach().members) - 1
        self._bytes += size
        if member.id in self._leading:
            self._leading_bytes += size

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        """A member says that it leads, or something else."""
        if isinstance(outcome, Elected) and outcome.leader == member.id:
            self._leading.setdefault(member.id, max(world.now, self._begin))
        else:
            self._cease(world, member.id)

    def changed(self, world: World, member: SimContext) -> None:
        """A member that is down does not lead."""
        if not member.up and member.backlog is None:
            self._cease(world, member.id)

    def _cease(self, world: World, member: MemberId) -> None:
        since = self._leading.pop(member, None)
        if since is not None:
            self._led += max(0.0, world.now - since)

    def metrics(self, world: World) -> dict[str, float | None]:
        """At the end of a run: bytes per second of a member, and of a member while it leads."""
        seconds = world.now - self._begin
        led = self._led + sum(max(0.0, world.now - since) for since in self._leading.values())
        return {
            "bytes_per_s": self._bytes / len(world.members) / seconds if seconds > 0 else None,
            "leader_bytes_per_s": self._leading_bytes / led if led > 0 else None,
        }
