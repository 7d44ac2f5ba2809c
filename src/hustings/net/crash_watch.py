"""Notices processes that have ended before any time-out: see decision 0013.

There are three signs. The far kernel closed a stream, and no process listens there any more. The
far kernel refused a datagram, twice. Or another member says that it noticed the end, and then a
connection is refused. A machine that is down or cut off shows none of these signs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from hustings.core.choice import MemberId
from hustings.net.clock import member_clock
from hustings.net.control_messages import HelloMsg, ProbeMsg, ProcessEndedMsg
from hustings.net.transport import Endpoint, Watch
from hustings.net.wire import Direction

if TYPE_CHECKING:
    from hustings.net.node import MemberNode

_REFUSALS = 2  # refusals after which a member counts as gone, if they come within ...
_FRESH = 3.0  # ... this time, in seconds
_WATCHED = 8  # leaders at most to which a stream is kept
_WATCHERS = 64  # members that keep a stream to one leader, on average, at most
_FEW = 8  # the same, where the next leader acts first: it keeps one, some others a reserve
_TELLERS = 5  # members that tell the others of an end which they noticed themselves, on average
_TOLD = 256  # ends that are remembered, so that the group is not told twice
_KNOCK = 1.0  # seconds until the same member is tried again
# Bounds in seconds: the wait before a stream to a new leader is opened, or before the end of the
# former leader is checked. On a machine with many members this work would take the processor from
# members that do not know yet who leads.
_UNHURRIED = (0.05, 0.15)


class CrashWatch:
    """How one node notices that other processes end."""

    def __init__(self, node: MemberNode) -> None:
        self._node = node
        # True: `follow` has nothing to do until the view, the ranking or the leaders change.
        self.following = False
        self._watches: dict[MemberId, tuple[Endpoint, Watch | asyncio.TimerHandle]] = {}
        self._refusals: dict[Endpoint, tuple[int, float]] = {}
        self._told: dict[tuple[MemberId, int], None] = {}
        self._knocked: dict[MemberId, float] = {}
        self._waiting: set[asyncio.TimerHandle] = set()  # work that waits for a quiet moment
        self._lot = node.runner.rng.random()  # decides whether this member watches in a large group

    def stop(self) -> None:
        """Stop watching."""
        for _, watch in self._watches.values():
            watch.cancel()
        self._watches.clear()
        for handle in self._waiting:
            handle.cancel()
        self._waiting.clear()

    def refused(self, to: Endpoint) -> None:
        """The far kernel refused a datagram: ask once more, then believe it."""
        node = self._node
        member = node.address_book.owner(to)
        if member is None:
            return
        now = member_clock().time()
        times, first = self._refusals.pop(to, (0, now))
        if now - first > _FRESH:
            times, first = 0, now
        if times + 1 >= _REFUSALS:
            # A machine that goes down takes many members with it. In a large group all are told of
            # the leader's end only; each member finds out about the others itself.
            leads = member in node.stack.leaders
            large = node.stack.membership.size > _WATCHERS
            self._ask(member, tell=1.0 if leads or not large else 0.0)
            return
        self._refusals[to] = (times + 1, first)
        if len(self._refusals) > node.filter.wire.limits.members:
            del self._refusals[next(iter(self._refusals))]
        node.transmit(member, ProbeMsg(0))

    def gone(self, message: ProcessEndedMsg) -> None:
        """A member says that a process has ended."""
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
        """Keep a stream to each other leader; in a large group some members do so for all."""
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
            # Where gossip gives no place for the leader, a frame from it may.
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
        """The wait before an end is checked: none for the next leader, longer for the others.

        Otherwise all members of a group would do the same at the same time. On a busy machine the
        only member that matters might come last.
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
                # The next leader may be the only member that checks: the others will hear of a new
                # leader.
                few = _TELLERS / min(self._watchers, len(self._node.stack.membership.view))
                self._ended(leader, tell=1.0 if self._is_next() else few)
            else:
                # A refusal of this probe is an answer too.
                self._node.transmit(leader, ProbeMsg(0))

        return closed

    def _ask(self, member: MemberId, tell: float) -> None:
        """Try to connect first: a refusal can be forged, and other members can err."""
        place = self._node.address_book.place(member)
        now = member_clock().time()
        if now - self._knocked.get(member, -_KNOCK) < _KNOCK:
            return  # other members have noticed the same end, and all of them have said so
        self._knocked.pop(member, None)
        self._knocked[member] = now
        if len(self._knocked) > _TOLD:
            del self._knocked[next(iter(self._knocked))]
        if place is not None and self._node.address_validation.reached(member, place.endpoint):
            self._node.transport.knock(place.endpoint, lambda: self._ended(member, tell))

    def _ended(self, member: MemberId, tell: float) -> None:
        """A process has ended. Tell the others with probability `tell`, unless they know."""
        node = self._node
        if not node.stack.membership.circle.lives(member):
            return
        entry = node.stack.membership.circle.entry(member)
        # First act on the end itself: this member may have to lead now.
        node.runner.run(lambda ctx: node.stack.on_suspect(ctx, member))
        if entry is not None:
            end = (member, entry.incarnation)
            if end not in self._told and node.runner.rng.random() < tell:
                # With `successor_head_start` all hear that this member leads. They need no more
                # now.
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
        return member_clock().call_later(wait, work)

    def _unhurried(self, work: Callable[[], None]) -> None:
        """Do something later, unless this node has stopped by then."""

        def begin() -> None:
            self._waiting.discard(handle)
            work()

        handle = self._later(begin)
        self._waiting.add(handle)
