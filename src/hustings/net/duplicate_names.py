"""Two processes under one name: the process that was there first keeps the name.

A member that comes back after a crash has the name of a member that others still take for alive. So
a member that hears another incarnation under the name of a live member asks at the address that it
knows. If the former incarnation answers there, the newcomer is told that the name is taken. If the
new incarnation answers, or none, the newcomer is let in. The question has a number that cannot be
guessed, and the answer repeats it. So an answer that was recorded earlier, or that comes from a
process that was not asked, proves nothing.

The same question finds out the true state of a sender whose numbers make no sense: they are far
ahead of its own, or frame after frame is refused. The question also goes to a member after each
message that says that the member has left, and whenever it speaks afterwards. So one forged
farewell, or one lost answer, does not keep the member out.

A member believes that its own name is taken only if it has asked at the other address itself. A
member that is in the group believes it only if the group has a key: without one, any process can
answer in its name.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from hustings.core.choice import MemberId
from hustings.core.errors import BadInput, HustingsError
from hustings.core.messages import Message
from hustings.layers.gossip.messages import GossipMsg, JoinMsg, LeaveMsg, PullMsg, WelcomeMsg
from hustings.net.clock import member_clock
from hustings.net.control_messages import NameTakenMsg, OldIncarnationMsg, ProbeMsg, ProbeReplyMsg
from hustings.net.filter import UNNUMBERED
from hustings.net.limits import Rates, Reason
from hustings.net.peer_addresses import read_place
from hustings.net.transport import Endpoint
from hustings.net.wire import Received

if TYPE_CHECKING:
    from hustings.net.node import MemberNode

_ANSWER = 0.5  # seconds that the former incarnation has to answer
_AT_ONCE = 256  # members that are asked at one time
_PAUSE = 0.25  # seconds between two questions about one member
_ASKED = 1024  # members for which the time of the last question is kept
_RATE, _AT_A_TIME = 20.0, 4  # messages to processes of the same name, per second and at once


class NewerIncarnation(HustingsError):
    """The group has heard this member in a later incarnation: it has to begin an even later one."""

    def __init__(self, incarnation: int) -> None:
        super().__init__(f"the group has heard this member in incarnation {incarnation} already")
        self.incarnation = incarnation


class Doubt(NamedTuple):
    """A question that waits for its answer."""

    member: MemberId
    said: Received | None  # the frame to let in if no answer contradicts it
    endpoint: Endpoint
    timer: asyncio.TimerHandle


class Claim(NamedTuple):
    """The address of another process that is said to have this member's name, and was asked."""

    nonce: int
    endpoint: Endpoint
    at: float


class DuplicateNames:
    """What one node does about names that two processes claim."""

    def __init__(self, node: MemberNode) -> None:
        self._node = node
        self._doubts: dict[int, Doubt] = {}  # by the number of the question
        self._asked: dict[MemberId, float] = {}  # when each member was asked; the longest ago first
        self._claim: Claim | None = None  # which process is said to have this member's name
        self._answers = Rates(_RATE, _AT_A_TIME, 1)  # to processes of the same name

    def doubts(self, got: Received) -> bool:
        """Whether the sender must be asked before this frame is handled.

        That is so for a newcomer under the name of a member that seems alive, and for numbers that
        would shut out everything that the sender has said so far.
        """
        message, leaps = got.message, self._node.filter.leaps(got)
        if not leaps and not isinstance(message, JoinMsg):
            return False  # most frames
        if isinstance(message, UNNUMBERED):
            return False
        circle = self._node.stack.membership.circle
        known = circle.entry(got.sender)
        if known is None or not circle.lives(got.sender) or read_place(known.place) is None:
            return False
        return leaps or (
            isinstance(message, JoinMsg)
            and message.entry.who.id == got.sender
            and known.incarnation < message.entry.incarnation
            and known.place != message.entry.place
        )

    def challenge(self, got: Received) -> None:
        """Ask at the known address; the frame in doubt is not handled meanwhile."""
        self._node.filter.counters.count(Reason.UNVERIFIED)
        self._ask(got.sender, got)

    def precede(self, got: Received) -> None:
        """Do what must be done before the group's own layers handle a message."""
        message, node = got.message, self._node
        if isinstance(message, LeaveMsg):
            # Any process could have said so in its name; with a key, any member could.
            self.ask(got.sender)
            return
        circle = node.stack.membership.circle
        if isinstance(message, GossipMsg | WelcomeMsg | JoinMsg | PullMsg):
            circle.latest = node.filter.latest
        if circle.departed(got.sender):
            self.ask(got.sender)

    def ask(self, member: MemberId) -> None:
        """Ask a member for its present incarnation and frame number."""
        self._ask(member, None)

    def _ask(self, member: MemberId, said: Received | None) -> None:
        node, clock = self._node, member_clock()
        endpoint, now = node.address_book.endpoint(member), clock.time()
        if endpoint is None or len(self._doubts) >= _AT_ONCE:
            return
        if now - self._asked.get(member, -_PAUSE) < _PAUSE:
            return
        if any(other.member == member for other in self._doubts.values()):
            return
        self._asked.pop(member, None)
        self._asked[member] = now
        if len(self._asked) > _ASKED:
            del self._asked[next(iter(self._asked))]
        nonce = 1 + node.runner.rng.below(1 << 53)
        timer = clock.call_later(_ANSWER, self._silent, nonce)
        self._doubts[nonce] = Doubt(member, said, endpoint, timer)
        node.transmit(member, ProbeMsg(nonce))

    def asked(self, nonce: int, member: MemberId) -> bool:
        """Whether a number is that of a question to this member."""
        doubt = self._doubts.get(nonce)
        return doubt is not None and doubt.member == member

    def present(self, nonce: int, got: Received) -> None:
        """A member answered a question; it may be a question of this class."""
        if not self.asked(nonce, got.sender):
            return
        doubt = self._doubts.pop(nonce)
        doubt.timer.cancel()
        self._node.filter.confirm(got)
        self._node.stack.membership.circle.recall(got.sender)
        said = doubt.said
        if said is None:
            return
        if said.incarnation == got.incarnation:
            # The frame is still far ahead of what its sender says: another process has sent it.
            if not self._node.filter.leaps(said):
                self._admit(said, doubt.endpoint)
        elif isinstance(said.message, JoinMsg):
            self._refuse_name(said, said.message)

    def _refuse_name(self, said: Received, join: JoinMsg) -> None:
        newcomer = read_place(join.entry.place)
        old = self._node.stack.membership.circle.entry(said.sender)
        if newcomer is not None and old is not None:
            taken = NameTakenMsg(old.place, old.incarnation, said.incarnation)
            now = member_clock().time()
            self._answer(newcomer.endpoint, taken, now, said.sender)

    def _silent(self, nonce: int) -> None:
        """No answer came: let the newcomer in."""
        doubt = self._doubts.pop(nonce)
        if doubt.said is not None:
            self._admit(doubt.said, doubt.endpoint)

    def _admit(self, said: Received, endpoint: Endpoint) -> None:
        if self._node.filter.admit(said, member_clock().time()):
            self._node.accept(said, endpoint)

    def taken(self, message: NameTakenMsg, source: Endpoint) -> None:
        """This member is told that its name is taken: it asks there before it believes that.

        A member that wants to be let in believes it only from the address where it asked for that.
        A member that is in the group already believes it only of a later incarnation, which others
        prefer: two groups that met each had a member of this name.
        """
        node = self._node
        mine, place = node.filter.wire.incarnation, read_place(message.place)
        settled = node.settled.is_set()
        if message.yours != mine or place is None or place.endpoint == node.transport.endpoint:
            return
        if message.incarnation <= mine if settled else not node.lets_in(source):
            return
        self._ask_duplicate(place.endpoint)

    def _ask_duplicate(self, there: Endpoint) -> None:
        now, claim = member_clock().time(), self._claim
        if claim is not None and claim.endpoint == there and now - claim.at < _ANSWER:
            return
        nonce = 1 + self._node.runner.rng.below(1 << 53)
        if self._answer(there, ProbeMsg(nonce), now):
            self._claim = Claim(nonce, there, now)

    def _proven(self, source: Endpoint) -> None:
        """Another process has this member's name, and answers to it."""
        node, where = self._node, f"{source[0]}:{source[1]}"
        if not node.settled.is_set() or node.filter.wire.ring is not None:
            self._fail(where)
        else:
            node.rejections.say(
                "name used twice",
                f"a process at {where} uses this member's name too: stop one of the two. Without "
                "a key any process can say so, and this member goes on",
                member_clock().time(),
            )

    def met(self, source: Endpoint, said: Received | None = None) -> None:
        """A frame under this member's own name came from elsewhere.

        A member in the group answers, so that the other process knows. A member that is still
        joining asks back if the frame came from a seed: if the seed has its name and answers, the
        newcomer cannot have that name.
        """
        node, message = self._node, None if said is None else said.message
        claim = self._claim
        if claim is not None and message == ProbeReplyMsg(claim.nonce) and source == claim.endpoint:
            self._claim = None
            self._proven(source)
            return
        if not node.settled.is_set():
            if source in node.seeds.endpoints:
                self._ask_duplicate(source)
            return
        now = member_clock().time()
        if source != node.transport.endpoint and not isinstance(message, ProbeReplyMsg):
            nonce = message.nonce if isinstance(message, ProbeMsg) else 0
            self._answer(source, ProbeReplyMsg(nonce), now)

    def out_of_date(self, source: Endpoint) -> None:
        """A member speaks in an incarnation that is over: tell it so.

        A member that wants to join is told its last incarnation: incarnations are counted by the
        date, and the date of a machine that has just started may be wrong. Any other member has
        lost its name if the later incarnation is at another address.
        """
        node = self._node
        got, now = node.filter.unheard, member_clock().time()
        if got is None:
            return
        if isinstance(got.message, JoinMsg):
            place = read_place(got.message.entry.place)
            if place is not None and got.message.entry.who.id == got.sender:
                later = OldIncarnationMsg(node.filter.incarnation(got.sender), got.incarnation)
                self._answer(place.endpoint, later, now, got.sender)
            return
        entry = node.stack.membership.circle.entry(got.sender)
        there = None if entry is None else read_place(entry.place)
        if entry is not None and there is not None and there.endpoint != source:
            if node.stack.membership.circle.lives(got.sender):
                taken = NameTakenMsg(entry.place, entry.incarnation, got.incarnation)
                self._answer(source, taken, now, got.sender)

    def lived_later(self, message: OldIncarnationMsg, source: Endpoint) -> None:
        """Where this member wants to be let in, it is told of a later incarnation of itself."""
        node = self._node
        mine = node.filter.wire.incarnation
        # Every member would refuse an incarnation beyond the date: a larger number is a lie.
        later = mine < message.incarnation < node.filter.latest[0]
        if later and message.yours == mine and not node.settled.is_set() and node.lets_in(source):
            node.failed(NewerIncarnation(message.incarnation))

    def _answer(
        self, to: Endpoint, message: Message, now: float, member: MemberId | None = None
    ) -> bool:
        """Send a message, but not too often, since any process may ask; returns whether it did."""
        allowed = self._answers.allow(None, now)
        if allowed:
            self._node.introduce(to, message, member)
        return allowed

    def _fail(self, where: str) -> None:
        own = read_place(self._node.stack.membership.circle.own.place)
        name = "this name" if own is None else repr(own.name)
        self._node.failed(
            BadInput(
                f"{name} is the name of a member of group {self._node.filter.wire.group!r} at "
                f"{where}: give this one another name, or stop that one"
            )
        )

    def stop(self) -> None:
        """Drop all questions."""
        for doubt in self._doubts.values():
            doubt.timer.cancel()
        self._doubts.clear()
