"""Two processes under one name: the one that was there first keeps it.

A member that comes back after a crash has the name of one that others still take for alive. So
whoever hears a newcomer under a known name, from another address, asks at the old address first: if
somebody answers there, the newcomer is told that the name is taken; if not, it is let in.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hustings.core.choice import MemberId
from hustings.core.errors import BadInput, HustingsError
from hustings.core.messages import Message
from hustings.net.book import read_place
from hustings.net.courtesy import LivedLaterMsg, NameTakenMsg, PresentMsg, ProbeMsg
from hustings.net.port import Endpoint
from hustings.net.wire import MAX_NUMBER, Direction, Received
from hustings.substrate.gossip_messages import JoinMsg

if TYPE_CHECKING:
    from hustings.net.host import Host

_ANSWER = 0.5  # seconds that the one who was there first has to speak up
_AT_ONCE = 64  # newcomers in doubt
_BETWEEN = 0.05  # seconds between two answers to namesakes
_MEETINGS = 2  # frames of a namesake at a seed: one might be a former life's


class LivedLater(HustingsError):
    """The group has heard this member in a later life: it has to begin a life after that."""

    def __init__(self, life: int) -> None:
        super().__init__(f"the group has heard this member in life {life} already")
        self.life = life


class Namesakes:
    """What one host does about names that are claimed twice."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._doubts: dict[int, tuple[Received, Endpoint, asyncio.TimerHandle]] = {}
        self._met = 0
        self._answerable = 0.0  # from when on a namesake is answered again

    def doubts(self, got: Received) -> bool:
        """Whether this is a newcomer under the name of somebody who seems to be alive."""
        message = got.message
        if not isinstance(message, JoinMsg) or message.entry.who.id != got.sender:
            return False
        circle = self._host.stack.membership.circle
        known = circle.entry(got.sender)
        return (
            known is not None
            and circle.lives(got.sender)
            and known.incarnation < message.entry.incarnation
            and known.place != message.entry.place
            and read_place(known.place) is not None
        )

    def challenge(self, got: Received) -> None:
        """Ask at the old address."""
        host = self._host
        place = host.book.place(got.sender)
        if place is None or len(self._doubts) >= _AT_ONCE:
            return
        if any(other.sender == got.sender for other, _, _ in self._doubts.values()):
            return
        nonce = 1 + host.runner.rng.below(1 << 53)
        loop = asyncio.get_running_loop()
        timer = loop.call_later(_ANSWER, self._silent, nonce)
        self._doubts[nonce] = (got, place.endpoint, timer)
        host.transmit(got.sender, ProbeMsg(nonce))

    def present(self, nonce: int, source: Endpoint) -> None:
        """Somebody answered a question; perhaps it was this one."""
        if nonce not in self._doubts or self._doubts[nonce][1] != source:
            return
        got, _, timer = self._doubts.pop(nonce)
        timer.cancel()
        message = got.message
        newcomer = read_place(message.entry.place) if isinstance(message, JoinMsg) else None
        old = self._host.stack.membership.circle.entry(got.sender)
        if newcomer is not None and old is not None:
            frame = self._host.gate.outgoing(
                NameTakenMsg(old.place, old.incarnation, got.incarnation), got.sender
            )
            if frame is not None and frame.direction is Direction.DATAGRAM:
                self._host.port.send(newcomer.endpoint, frame.data)

    def _silent(self, nonce: int) -> None:
        """Nobody is there any more: the newcomer is let in."""
        got, endpoint, _ = self._doubts.pop(nonce)
        if self._host.gate.admit(got, asyncio.get_running_loop().time()):
            self._host.accept(got, endpoint)

    def taken(self, message: NameTakenMsg) -> None:
        """This member is told that its name is taken.

        One that is in the group already believes it only of a later life, which others prefer: two
        groups that met had a member of this name each.
        """
        mine = self._host.gate.wire.incarnation
        if message.yours == mine and (not self._host.settled.is_set() or message.life > mine):
            self._fail(message.place.partition(" ")[0])

    def met(self, source: Endpoint) -> None:
        """A frame under this member's own name came from elsewhere.

        In the group, it answers, so that the other one knows. On its way into the group it is the
        other one: if a seed has its name, it cannot have it too.
        """
        host = self._host
        if not host.settled.is_set():
            if source in host.seeds.endpoints:
                self._met += 1
                if self._met >= _MEETINGS:
                    self._fail(f"{source[0]}:{source[1]}")
            return
        now = asyncio.get_running_loop().time()
        if source != host.port.endpoint:
            self._answer(source, PresentMsg(0), now)

    def out_of_date(self, source: Endpoint) -> None:
        """Somebody speaks in a life that is over: tell it so.

        One that wants to join is told which life it had last, since the date of a machine that has
        just started may be wrong, and lives are counted by it. To any other its name is lost, if
        the later life is somewhere else.
        """
        host = self._host
        got, now = host.gate.unheard, asyncio.get_running_loop().time()
        if got is None:
            return
        if isinstance(got.message, JoinMsg):
            place = read_place(got.message.entry.place)
            if place is not None and got.message.entry.who.id == got.sender:
                later = LivedLaterMsg(host.gate.life(got.sender), got.incarnation)
                self._answer(place.endpoint, later, now, got.sender)
            return
        entry = host.stack.membership.circle.entry(got.sender)
        there = None if entry is None else read_place(entry.place)
        if entry is not None and there is not None and there.endpoint != source:
            if host.stack.membership.circle.lives(got.sender):
                taken = NameTakenMsg(entry.place, entry.incarnation, got.incarnation)
                self._answer(source, taken, now, got.sender)

    def lived_later(self, message: LivedLaterMsg) -> None:
        """This member is told that it lived later already."""
        host = self._host
        mine = host.gate.wire.incarnation
        if not host.settled.is_set() and message.yours == mine < message.life < MAX_NUMBER:
            host.failed(LivedLater(message.life))

    def _answer(
        self, to: Endpoint, message: Message, now: float, member: MemberId | None = None
    ) -> None:
        """Not too often: whoever asks could be anybody."""
        if now >= self._answerable:
            self._answerable = now + _BETWEEN
            frame = self._host.gate.outgoing(message, member)
            if frame is not None and frame.direction is Direction.DATAGRAM:
                self._host.port.send(to, frame.data)

    def _fail(self, where: str) -> None:
        own = read_place(self._host.stack.membership.circle.own.place)
        name = "this name" if own is None else repr(own.name)
        self._host.failed(
            BadInput(
                f"{name} is the name of a member of group {self._host.gate.wire.group!r} at "
                f"{where}: give this one another name, or stop that one"
            )
        )

    def stop(self) -> None:
        """Doubt nobody any more."""
        for _, _, timer in self._doubts.values():
            timer.cancel()
        self._doubts.clear()
