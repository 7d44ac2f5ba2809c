"""Which members are there: only those that have answered this process are heard.

A stranger without the key can record frames and send them again later. Each receiver takes a
frame once, and refuses those of former incarnations. But a member that has never heard the sender
cannot tell a recorded frame from a new one. So a frame does not show that its sender is there. An
answer to a question of this process does: it repeats a number that nobody could know before.

    a frame of X, which has not answered    -> it is kept; PROBE(nonce) goes to where it came from
    X: PROBE-REPLY(nonce)                   -> X is present; what was kept is heard, in its order
    X leaves the view, or begins anew       -> X has to answer again, to another number

A member hears nothing else from a member that is not present, neither elections nor gossip. So the
members of its view are those that have answered it, or of which such members have told it. A member
that is heard and never answers is as good as cut off: either the link works in one direction only,
or there is no such member any more. The log says so.

The answer says the sender's number. Recorded frames with lower numbers are refused from then on.

Bounds     A question goes out for a frame that came, and is about as long as the shortest of them.
           Each member is asked at most 5 times a second. The kept messages are limited for each
           member, in time and in bytes. If there are too many, the oldest are dropped: a member's
           first messages may be lost, as on any network. Its answer is heard in any case.
Large      A group in which more than 64 members have answered this process is too large for that:
           all followers of a new leader would ask it at the same moment. There, and where views are
           partial, a member hears all that have the key. It does so only after its first election
           if it was told of others (`bootstrap.py`).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

from hustings.core.choice import MemberId
from hustings.layers.gossip.messages import GossipMsg, JoinMsg, LeaveMsg, PullMsg, WelcomeMsg
from hustings.net.addresses import Address
from hustings.net.clock import member_clock
from hustings.net.limits import Reason
from hustings.net.peer_addresses import SMALL, Place
from hustings.net.transport import Endpoint
from hustings.net.validation import place_of
from hustings.net.wire import Received

if TYPE_CHECKING:
    from hustings.net.node import MemberNode

_KEPT = 1.0  # seconds for which a message is kept until its sender has answered
_MOST_KEPT = 16  # messages of one member that are kept
_SENDERS = 4 * SMALL  # members of which messages are kept
_BYTES = 2 * 1024 * 1024  # bytes of all kept messages
_PAUSE = 0.2  # seconds between two questions to a member
_PASSING = 10.0  # seconds for which a member that is not in view counts as present
_SILENT = 3.0  # seconds after which a member that does not answer is named in the log
# Where a member does not wait for answers in general, these are heard in any case while it waits
# for its first election: they tell which members there are, and not which one leads.
_MEMBERSHIP = frozenset((GossipMsg, JoinMsg, LeaveMsg, PullMsg, WelcomeMsg))


class Answered(NamedTuple):
    """A member that has answered."""

    incarnation: int
    at: float
    viewed: bool  # whether it has been in view since


Kept = tuple[tuple[float, Received], ...]  # messages, and when each came


class Unheard(NamedTuple):
    """A member that speaks and has not answered."""

    since: float
    at: float  # when it spoke last
    asked: float  # when it was asked last
    source: Endpoint  # where it was heard last
    kept: Kept


class PresenceCheck:
    """Which members have answered one node since they came into its view."""

    def __init__(self, node: MemberNode) -> None:
        self._node = node
        self._present: dict[MemberId, Answered] = {}
        self._unheard: dict[MemberId, Unheard] = {}  # the one that was silent longest first
        self._bytes = 0  # of all kept messages
        self._most = 2 * node.filter.wire.limits.members

    def has(self, member: MemberId) -> bool:
        """Whether a member has answered."""
        return member in self._present

    def place(self, member: MemberId) -> Place | None:
        """The place that gossip gives for a member, or what it says itself before it is heard."""
        place = self._node.address_book.place(member)
        if place is None and (unheard := self._unheard.get(member)) is not None:
            for _, got in unheard.kept:
                if isinstance(got.message, JoinMsg | PullMsg) and place is None:
                    place = place_of(got.message.entry)
        return place

    def unheard(self) -> list[str]:
        """The members that speak now and do not answer, in words."""
        now = member_clock().time()
        return [
            f"{self._named(member)} speaks from {Address(*each.source)} and does not answer"
            for member, each in self._unheard.items()
            if each.kept and now - each.since >= _KEPT and now - each.at < _SILENT
        ]

    @property
    def is_strict(self) -> bool:
        """Whether only members that are present are heard: the group is small."""
        partial = self._node.stack.membership.config.partial
        return not partial and len(self._present) <= SMALL

    def admits(self, got: Received, source: Endpoint) -> bool:
        """Whether a message is heard already. If not, it is kept, and its sender is asked."""
        membership = type(got.message) in _MEMBERSHIP
        if self._is_present(got):
            if membership or not self._is_new:
                return True
            self._note(got.sender, source, ((member_clock().time(), got),))
            return False
        if not self.is_strict and (membership or not self._node.bootstrap.asks):
            return True
        self._keep(got, source)
        return False

    @property
    def _is_new(self) -> bool:
        """Whether this member waits to be let in. It first learns which members there are.

        An election that it hears before would find it alone in its view.
        """
        return not (self._node.settled.is_set() or self._node.bootstrap.open)

    def greet(self, got: Received, source: Endpoint) -> None:
        """A member asks this one. It is asked, too: what it says next can be heard then."""
        if self.is_strict and not self._is_present(got):
            entry = self._node.stack.membership.circle.entry(got.sender)
            # Another process under the name of a member has to be let in first.
            if entry is None or entry.incarnation == got.incarnation:
                self._note(got.sender, source, ())
                self._ask(got.sender)

    def answered(self, got: Received) -> list[Received]:
        """A member has answered a question of this process: its kept messages, to be heard now."""
        now = member_clock().time()
        viewed = got.sender in self._node.stack.membership.view
        self._present.pop(got.sender, None)
        self._present[got.sender] = Answered(got.incarnation, now, viewed)
        if len(self._present) > self._most:
            del self._present[next(iter(self._present))]
        self._node.filter.note(got)
        unheard = self._unheard.pop(got.sender, None)
        if unheard is None:
            return []
        window = self._node.filter.wire.limits.replay_window
        fresh = tuple(
            (at, each)
            for at, each in unheard.kept
            if now - at < _KEPT
            and each.incarnation == got.incarnation
            and abs(got.number - each.number) < window  # else it was recorded long ago
        )
        later = tuple(
            each for each in fresh if self._is_new and type(each[1].message) not in _MEMBERSHIP
        )
        self._drop(unheard.kept, len(unheard.kept) - len(fresh))
        if later:
            self._note(got.sender, unheard.source, later)
        return [each for at, each in fresh if (at, each) not in later]

    def let_in(self) -> list[Received]:
        """This member has been let in, or has waited for that: what was kept until then."""
        now = member_clock().time()
        found = [
            each
            for member in list(self._unheard)
            if member in self._present
            for each in self._take(member)
        ]
        return [got for at, got in sorted(found, key=lambda each: each[0]) if now - at < _KEPT]

    def look_round(self) -> None:
        """Members that have left the view must answer again: their next frames may be recorded."""
        view, now = self._node.stack.membership.view, member_clock().time()
        for member, found in list(self._present.items()):
            if member in view:
                if not found.viewed:
                    self._present[member] = found._replace(viewed=True)
            elif found.viewed or now - found.at >= _PASSING:
                del self._present[member]
                self._node.address_validation.void(member)

    # Inside

    def _is_present(self, got: Received) -> bool:
        found = self._present.get(got.sender)
        if found is None or found.incarnation != got.incarnation:
            return False
        if found.viewed or member_clock().time() - found.at < _PASSING:
            return True
        self.look_round()
        return got.sender in self._present

    def _keep(self, got: Received, source: Endpoint) -> None:
        now, member = member_clock().time(), got.sender
        self._note(member, source, ((now, got),))
        self._ask(member)
        if (unheard := self._unheard.get(member)) and now - unheard.since >= _SILENT:
            self._say(member, now)

    def _note(self, member: MemberId, source: Endpoint, more: Kept) -> None:
        """A member speaks that has not answered."""
        now = member_clock().time()
        before = self._unheard.pop(member, None)
        if before is None or now - before.at >= _SILENT:
            self._drop(() if before is None else before.kept)
            before = Unheard(now, now, -inf, source, ())
        fresh = tuple(each for each in before.kept if now - each[0] < _KEPT)
        kept = (*fresh, *more)[-_MOST_KEPT:]
        self._bytes += sum(each.size for _, each in kept)
        self._drop(before.kept, len(before.kept) + len(more) - len(kept))
        self._unheard[member] = before._replace(at=now, source=source, kept=kept)
        while len(self._unheard) > _SENDERS or self._bytes > _BYTES:
            oldest = self._unheard.pop(next(iter(self._unheard)))
            self._drop(oldest.kept)

    def _take(self, member: MemberId) -> Kept:
        kept = self._unheard.pop(member).kept
        self._drop(kept, 0)
        return kept

    def _drop(self, kept: Kept, lost: int | None = None) -> None:
        """Messages are kept no more; `lost` of them were not heard."""
        self._bytes -= sum(each.size for _, each in kept)
        self._node.filter.counters.count(Reason.UNANSWERED, len(kept) if lost is None else lost)

    def _ask(self, member: MemberId) -> None:
        now, node, unheard = member_clock().time(), self._node, self._unheard.get(member)
        if unheard is None or now - unheard.asked < _PAUSE:
            return
        self._unheard[member] = unheard._replace(asked=now)
        if (came_from := node.address_book.came_from(member)) is not None:
            node.address_validation.ask_back(member, came_from)
        elif (endpoint := node.address_book.endpoint(member)) is not None:
            node.address_validation.ask(member, endpoint)  # it has sent no datagram yet

    def _named(self, member: MemberId) -> str:
        place = self.place(member)
        return f"member {member}" if place is None else place.name

    def _say(self, member: MemberId, now: float) -> None:
        where = Address(*self._unheard[member].source)
        self._node.rejections.say(
            Reason.UNANSWERED.value,
            f"{self._named(member)} speaks from {where} and does not answer: it is not heard. The "
            "network lets nothing through to it, or a recording of its messages is played back",
            now,
            label=Reason.UNANSWERED.value,
        )
