"""Processes that have ended, noticed before any time-out: see decision 0013.

By a stream that the far kernel closed, where nobody listens any more; by a datagram that it
refused, twice, or by the word of somebody who noticed, and then by a connection that is refused. A
machine that is gone, or cut off, shows none of these.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from hustings.core.choice import MemberId
from hustings.net.control_messages import HelloMsg, ProbeMsg, ProcessEndedMsg
from hustings.net.transport import Endpoint, Watch
from hustings.net.wire import Direction

if TYPE_CHECKING:
    from hustings.net.node import MemberNode

_REFUSALS = 2  # and a member counts as gone, if they come within ...
_FRESH = 3.0  # ... so many seconds
_WATCHED = 8  # leaders at most to whom a stream is kept
_WATCHERS = 64  # members at most, on average, that keep a stream to one leader
_FEW = 8  # the same, where whoever is to lead next acts first: it keeps one, and some in case
_TELLERS = 5  # of those who notice an end by themselves tell the others, on average
_TOLD = 256  # ends that are remembered, so as not to be told of twice
_KNOCK = 1.0  # seconds until the same door is knocked at again
# Seconds until a stream to a new leader is opened, or the end of the one before is looked into, at
# least and at most: on a machine with many members it would take the processor from those that do
# not know yet who leads.
_UNHURRIED = (0.05, 0.15)


class CrashWatch:
    """What one host does to see others end."""

    def __init__(self, node: MemberNode) -> None:
        self._node = node
        # Whether `follow` has nothing to do until the view, the ranking or the leaders change.
        self.following = False
        self._watches: dict[MemberId, tuple[Endpoint, Watch | asyncio.TimerHandle]] = {}
        self._refusals: dict[Endpoint, tuple[int, float]] = {}
        self._told: dict[tuple[MemberId, int], None] = {}
        self._knocked: dict[MemberId, float] = {}
        self._waiting: set[asyncio.TimerHandle] = set()  # what is done when there is time
        self._lot = node.runner.rng.random()  # who watches in a large group

    def stop(self) -> None:
        """Watch nobody any more."""
        for _, watch in self._watches.values():
            watch.cancel()
        self._watches.clear()
        for handle in self._waiting:
            handle.cancel()
        self._waiting.clear()

    def refused(self, to: Endpoint) -> None:
        """Nobody listens there: ask once more, and then believe it."""
        node = self._node
        member = node.address_book.owner(to)
        if member is None:
            return
        now = asyncio.get_running_loop().time()
        times, first = self._refusals.pop(to, (0, now))
        if now - first > _FRESH:
            times, first = 0, now
        if times + 1 >= _REFUSALS:
            # A machine that is gone takes many members along: in a large group only the leader's
            # end is told to all, and the others find out for themselves.
            leads = member in node.stack.leaders
            large = node.stack.membership.size > _WATCHERS
            self._ask(member, tell=1.0 if leads or not large else 0.0)
            return
        self._refusals[to] = (times + 1, first)
        if len(self._refusals) > node.filter.wire.limits.members:
            del self._refusals[next(iter(self._refusals))]
        node.transmit(member, ProbeMsg(0))

    def gone(self, message: ProcessEndedMsg) -> None:
        """Somebody says that a process has ended."""
        node, member = self._node, message.member
        circle = node.stack.membership.circle
        entry = circle.entry(member)
        known = entry is not None and entry.incarnation == message.incarnation
        if not known or member == node.runner.me.id or not circle.lives(member):
            return
        if node.stack.leaders and member not in node.stack.leaders:
            self._unhurried(lambda: self._ask(member, tell=0.0))
        else:
            self._ask(member, tell=0.0)

    def follow(self, leaders: tuple[MemberId, ...]) -> None:
        """Keep a stream to each leader but oneself; in a large group some do so for all."""
        node = self._node
        mine = node.runner.me.id
        wanted: dict[MemberId, Endpoint] = {}
        chosen = self._lot * node.stack.membership.size < self._watchers
        watches_any = chosen or self._is_next()
        self.following = True
        for leader in leaders[:_WATCHED] if watches_any else ():
            if leader == mine:
                continue
            endpoint = node.address_book.endpoint(leader)
            if endpoint is not None and node.address_validation.reached(leader, endpoint):
                wanted[leader] = endpoint
            elif endpoint is not None:
                self.following = False
                node.address_validation.ask(leader, endpoint)
            # Where gossip does not say where it is, what is heard of it may.
            self.following = self.following and node.address_book.place(leader) is not None
        watches = self._watches
        for leader in [each for each in watches if watches[each][0] != wanted.get(each)]:
            watches.pop(leader)[1].cancel()
        for leader, endpoint in wanted.items():
            if leader not in watches:
                begin = self._later(partial(self._watch, leader, endpoint))
                watches[leader] = (endpoint, begin)

    def _watch(self, leader: MemberId, endpoint: Endpoint) -> None:
        transport = self._node.transport
        watch = transport.watch(endpoint, self._hello(leader), self._closes(leader), self._leisure)
        self._watches[leader] = (endpoint, watch)

    @property
    def _watchers(self) -> int:
        return _FEW if self._node.deference else _WATCHERS

    def _leisure(self) -> float:
        """Whoever is to lead next looks at once, the others when that one has had its turn.

        Else all members of a group do the same at the same time, and on a busy machine the only
        one that matters may come last.
        """
        return 0.0 if self._is_next() else self._node.deference

    def _is_next(self) -> bool:
        """Whether this member is the best of those that do not lead, if that makes a difference."""
        node = self._node
        if not node.deference:
            return False
        leaders = node.stack.leaders
        others = (
            each
            for each in node.leadership.electors.view.ranking(node.stack.choice).ids
            if each not in leaders
        )
        return next(others, None) == node.runner.me.id

    def _hello(self, leader: MemberId) -> Callable[[], bytes | None]:
        def hello() -> bytes | None:
            frame = self._node.filter.outgoing(HelloMsg(), leader, Direction.QUESTION)
            return None if frame is None else frame.data

        return hello

    def _closes(self, leader: MemberId) -> Callable[[bool], None]:
        def closed(certainly: bool) -> None:
            if leader not in self._watches:
                return
            if certainly:
                self.following = False
                self._watches.pop(leader)[1].cancel()
                # Who looks first may be the only one to look: the others have their next leader.
                few = _TELLERS / min(self._watchers, len(self._node.stack.membership.view))
                self._ended(leader, tell=1.0 if self._is_next() else few)
            else:
                # If that is refused, it is an answer too.
                self._node.transmit(leader, ProbeMsg(0))

        return closed

    def _ask(self, member: MemberId, tell: float) -> None:
        """A refusal can be forged, and others can err: knock, before it is believed."""
        place = self._node.address_book.place(member)
        now = asyncio.get_running_loop().time()
        if now - self._knocked.get(member, -_KNOCK) < _KNOCK:
            return  # others have noticed, too, and all have said so
        self._knocked.pop(member, None)
        self._knocked[member] = now
        if len(self._knocked) > _TOLD:
            del self._knocked[next(iter(self._knocked))]
        if place is not None and self._node.address_validation.reached(member, place.endpoint):
            self._node.transport.knock(place.endpoint, lambda: self._ended(member, tell))

    def _ended(self, member: MemberId, tell: float) -> None:
        """It is gone; `tell` the others with this probability, unless they have been told."""
        node = self._node
        if not node.stack.membership.circle.lives(member):
            return
        entry = node.stack.membership.circle.entry(member)
        # First what follows from it: it may be for this member to lead now.
        node.runner.run(lambda ctx: node.stack.on_suspect(ctx, member))
        if entry is not None:
            end = (member, entry.incarnation)
            if end not in self._told and node.runner.rng.random() < tell:
                # With `successor_head_start` all hear that this member leads, and need no more now.
                if node.deference and node.runner.me.id in node.stack.leaders:
                    self._unhurried(lambda: node.transmit(None, ProcessEndedMsg(*end)))
                else:
                    node.transmit(None, ProcessEndedMsg(*end))
            self._told.pop(end, None)
            self._told[end] = None
            if len(self._told) > _TOLD:
                del self._told[next(iter(self._told))]

    def _later(self, work: Callable[[], None]) -> asyncio.TimerHandle:
        soonest, latest = _UNHURRIED
        wait = soonest + (latest - soonest) * self._node.runner.rng.random()
        return asyncio.get_running_loop().call_later(wait, work)

    def _unhurried(self, work: Callable[[], None]) -> None:
        """Do something later, unless this node has stopped by then."""

        def begin() -> None:
            self._waiting.discard(handle)
            work()

        handle = self._later(begin)
        self._waiting.add(handle)
