"""A node: one member of one group at one port.

A node carries messages from its election to the other members, and theirs to the election. It also
looks for members that it does not know: seeds, and members that it lost sight of. And it notices
ended processes sooner than any time-out, because their kernel closed a stream or refused a
datagram.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Protocol

from hustings.core.choice import Candidate, MemberId
from hustings.core.context import Context
from hustings.core.election import Election
from hustings.core.errors import ProtocolBug
from hustings.core.guard import Verdict
from hustings.core.messages import Message, kind_of
from hustings.core.outcome import Outcome
from hustings.core.streams import Stream
from hustings.core.view import View
from hustings.layers.detector.detector import Detector
from hustings.layers.gossip.layer import GossipLayer
from hustings.layers.gossip.membership import GOSSIP_TICK
from hustings.layers.gossip.messages import JoinMsg
from hustings.layers.layer import innermost
from hustings.layers.leadership.layer import TICK, LeadershipLayer
from hustings.layers.measurement import Measuring
from hustings.net.addresses import Address, reaches_family
from hustings.net.agreed_config import ObserverLabel
from hustings.net.bootstrap import ANY_START, Bootstrap, StartRule
from hustings.net.clock import member_clock
from hustings.net.control_messages import (
    ConfigConflictMsg,
    ConfigMsg,
    HelloMsg,
    NameTakenMsg,
    OldIncarnationMsg,
    ProbeMsg,
    ProbeReplyMsg,
    ProcessEndedMsg,
    SurveyEchoMsg,
    SurveyMsg,
    SurveyProbeMsg,
    SurveyReplyMsg,
)
from hustings.net.crash_watch import CrashWatch
from hustings.net.discovery import Discovery, Seeds
from hustings.net.duplicate_names import DuplicateNames
from hustings.net.filter import FrameFilter
from hustings.net.limits import STALE, Reason, RejectionLog
from hustings.net.peer_addresses import AddressBook, AddressValidation, read_place
from hustings.net.presence import PresenceCheck
from hustings.net.runner import Runner
from hustings.net.stall_detector import StallDetector
from hustings.net.storage import Storage
from hustings.net.survey import SurveyAnswers
from hustings.net.tcp import refusal_of
from hustings.net.transport import Endpoint, Transport
from hustings.net.udp import is_own_host
from hustings.net.validation import MemberClaims
from hustings.net.versions import OtherVersions
from hustings.net.wire import (
    OURS,
    Direction,
    Received,
    group_tag,
    is_across,
    is_notice,
    versions_of,
)

if TYPE_CHECKING:
    from hustings.layers.lease import LeaseLayer
    from hustings.net.agreed_config import ConfigCheck
    from hustings.net.local_members import LocalMembers

_RECENT_S = 1.0  # seconds after a stall in which a loss of leadership comes from it
_SHOWN = 200  # characters of an error in a log line


@dataclass(slots=True)
class Traffic:
    """Counts of what went out and came in."""

    sent: Counter[str] = field(default_factory=Counter)  # messages by kind
    received: Counter[str] = field(default_factory=Counter)
    frames_out: int = 0
    frames_in: int = 0
    bytes_out: int = 0
    bytes_in: int = 0


class MemberNode:
    """One running member. Its election is `stack`, which contains `leadership`."""

    measuring: Measuring | None = None  # measures what this member is ranked by

    def __init__(
        self,
        *,
        transport: Transport,
        filter: FrameFilter,
        stack: GossipLayer,
        leadership: LeadershipLayer,
        detector: Detector | None,
        me: Candidate,
        rng: Stream,
        storage: Storage,
        seeds: Seeds,
        listener: NodeListener,
        pause: float,
        join_wait: float,
        start_rule: StartRule = ANY_START,
        lease_layer: LeaseLayer | None = None,
    ) -> None:
        self.transport = transport
        self.filter = filter
        self.stack = stack
        self.leadership = leadership
        self.seeds = seeds
        self.listener = listener
        self.lease_layer = lease_layer  # the layer that asks the guard, if there is one
        self.lease_client: LeaseRequests | None = None
        self.config_check: ConfigCheck | None = None  # compares with other members
        self.traffic = Traffic()
        self.address_book = AddressBook(me.id, stack.membership)
        view = View({me.id: me}, [me.id])
        self.runner = Runner(
            stack,
            me,
            view,
            rng,
            filter.wire.incarnation,
            storage,
            self,
            pause,
            lax=(TICK,),
            stall_detector=_shared_detector(transport),
        )
        self.settled = asyncio.Event()  # in the group, or alone and no longer waiting
        self._detector = detector
        self._join_wait = join_wait
        self.address_validation = AddressValidation(self)
        self.address_book.reached = self.address_validation.reached
        self.presence, self.crash_watch = PresenceCheck(self), CrashWatch(self)
        self._duplicate_names = DuplicateNames(self)
        self._member_claims, self.survey = MemberClaims(self), SurveyAnswers(self)
        self._observer_label = ObserverLabel(filter.wire, member_clock().time())
        self.rejections, self.other_versions = RejectionLog(self.note, OURS), OtherVersions(self)
        self._seen: tuple[int, tuple[MemberId, ...]] = (-1, ())
        self._ranked = -1
        self.search, self.bootstrap = Discovery(self), Bootstrap(self, join_wait, start_rule)
        self._seeking: asyncio.Task[None] | None = None
        self._clock = member_clock()
        self._closed = False
        filter.implies = self.election.implies
        stack.credible = lambda who, said: filter.credible(who, said, self._clock.time())

    # Start and stop

    def start(self) -> None:
        """Take part from now on."""
        self.leadership.is_met = self.address_validation.met
        self.transport.attach(group_tag(self.filter.wire.group), self)
        self.bootstrap.begin()
        if not self.runner.run(self.stack.start) or self._closed:
            return  # the caller was told why
        if not (self.seeds.addresses or self.seeds.local_endpoints or self.transport.reaches_all):
            self._enter()
        else:
            self._clock.call_later(self._join_wait, self._enter)
        self._seeking = asyncio.get_running_loop().create_task(self.search.seek())

    def leave(self) -> None:
        """Say goodbye."""
        self.runner.run(self.stack.leave)

    def stop(self) -> None:
        """Stop sending, without a goodbye."""
        if self._closed:
            return
        self._closed = True
        self.runner.stop()
        self.transport.detach(group_tag(self.filter.wire.group))
        if self._seeking is not None:
            self._seeking.cancel()
        self.bootstrap.stop()
        self.other_versions.stop()
        self.crash_watch.stop()
        self.address_validation.stop()
        self._duplicate_names.stop()
        self.settled.set()

    def forked(self) -> None:
        """This process is a forked child: no handler runs here, and nothing is sent."""
        self._closed = True
        self.runner.stop()

    @property
    def local(self) -> LocalMembers | None:
        """The members of the group on this machine; None if this member does not look for them."""
        return self.seeds.local

    @property
    def election(self) -> Election:
        """The election inside, without its layers."""
        return innermost(self.leadership)

    @property
    def closed(self) -> bool:
        """Whether the node has stopped."""
        return self._closed

    def is_own(self, endpoint: Endpoint) -> bool:
        """Whether an endpoint is this member itself, as it is bound or as it advertises itself."""
        own = read_place(self.stack.membership.circle.own.place)
        return (own is not None and endpoint == own.endpoint) or self.is_bound_to(endpoint)

    def is_bound_to(self, endpoint: Endpoint) -> bool:
        """Whether what is sent to an endpoint comes to this process and to no other."""
        bound = self.transport.endpoint
        if not Address(*bound).is_wildcard:
            return endpoint == bound
        return (
            endpoint[1] == bound[1]
            and reaches_family(bound[0], endpoint[0])
            and is_own_host(endpoint[0])
        )

    def lets_in(self, endpoint: Endpoint) -> bool:
        """Whether a newcomer is let in at an endpoint; then it may be refused from there, too."""
        # Without seeds, any member that hears the newcomer's multicast lets it in.
        alone = not self.seeds.addresses and self.transport.reaches_all
        return alone or endpoint in self.seeds.endpoints

    def upon(self, act: Callable[[Context], None]) -> bool:
        """Let the leadership layer act; returns whether it could."""
        stack, leadership = self.stack, self.leadership
        return self.runner.run(lambda ctx: stack.run_at(ctx, leadership, act))

    def engage(self) -> None:
        """Work begins that may run only while this member leads."""
        if self.lease_layer is not None:
            self.lease_layer.engaged += 1

    def disengage(self) -> None:
        """Such work has ended."""
        if (lease_layer := self.lease_layer) is not None:
            lease_layer.engaged -= 1
            stack, settle = self.stack, lease_layer.settle_up
            # If nothing can run now, the next handler does it.
            self.runner.run(lambda ctx: stack.run_at(ctx, lease_layer, settle))

    def hear(self, verdict: Verdict) -> None:
        """The guard has answered."""
        self.runner.run(lambda ctx: self.stack.on_verdict(ctx, verdict))

    def acquire(self, ttl: float, request: int) -> None:
        self._leases().acquire(ttl, request)

    def release(self, request: int) -> None:
        self._leases().release(request)

    def _leases(self) -> LeaseRequests:
        if self.lease_client is None:
            raise ProtocolBug("this member has no guard to ask")
        return self.lease_client

    def stand_as(self, me: Candidate) -> None:
        """This member's attributes have changed. The leadership layer says how it is shown."""
        self._become(self.leadership.shown(me))
        self.ran()

    @property
    def deference(self) -> float:
        """Seconds that all but the next leader wait before they act on a leader's end."""
        return 0.0 if self._detector is None else self._detector.config.successor_head_start

    @property
    def stale_bound(self) -> float:
        """The longest time for which a leader that is cut off goes on; infinite without a guard."""
        lease = None if self.lease_layer is None else self.lease_layer.lease
        return inf if lease is None else lease.leading(lease.asked)

    @property
    def recent_stall(self) -> float:
        """The length of a stall of this process that ended just now, or 0."""
        stall = self.runner.last_stall
        if stall is None or self._clock.time() > stall[0] + _RECENT_S:
            return 0.0
        return stall[1]

    def health(self) -> float:
        """1 is well; above, this member has reason to distrust itself."""
        return 1.0 if self._detector is None else self._detector.health

    def _enter(self) -> None:
        if not self._closed and not self.settled.is_set():
            self.settled.set()
            self.runner.lax = (TICK, GOSSIP_TICK)  # as a newcomer it had punctual timers
            if self.seeds.addresses and not self.stack.membership.joined:
                self.bootstrap.say_alone()
            if self.bootstrap.open:
                self.upon(self.leadership.joined)
            else:
                self.bootstrap.check()
            for each in self.presence.let_in():
                source = self.address_book.endpoint(each.sender) or self.transport.endpoint
                self._hear(each, source, kept=True)

    # What the runner tells

    def transmit(self, to: MemberId | None, message: Message) -> None:
        """Send a message of the election or of this node."""
        frame = self.filter.outgoing(message, to)
        if frame is None:
            return
        self.traffic.sent[kind_of(message)] += 1
        streamed = frame.direction is not Direction.DATAGRAM
        if to is not None:
            endpoint = self.address_book.endpoint(to)
            if endpoint is None:
                self.filter.counters.count(Reason.UNKNOWN_ADDRESS)
            else:
                self.address_validation.put(to, endpoint, frame.data, streamed)
            return
        if self.transport.reaches_all and not streamed:
            self._count_out(frame.data)
            self.transport.send_all(frame.data)
            if isinstance(message, JoinMsg) and (more := self.other_versions.sent(frame.data)):
                self._count_out(more)
                self.transport.send_all(more)
            return
        for member, endpoint in self.address_book.known.items():
            self.address_validation.put(member, endpoint, frame.data, streamed)

    def introduce(self, endpoint: Endpoint, message: Message, to: MemberId | None = None) -> None:
        """Send a small message to an address, or to one member there."""
        frame = self.filter.outgoing(message, to)
        if frame is not None:
            self.traffic.sent[kind_of(message)] += 1
            self.put(endpoint, frame.data, frame.direction is not Direction.DATAGRAM, to)
            if isinstance(message, JoinMsg) and (more := self.other_versions.sent(frame.data)):
                self.put(endpoint, more, streamed=False)

    def put(
        self, endpoint: Endpoint, data: bytes, streamed: bool, to: MemberId | None = None
    ) -> None:
        """Send a frame, and count it."""
        self._count_out(data)
        if not streamed:
            self.transport.send(endpoint, data)
        elif hello := self.filter.outgoing(HelloMsg(), to, Direction.QUESTION):
            self.transport.stream(endpoint, data, hello.data)

    def _count_out(self, data: bytes) -> None:
        self.traffic.frames_out += 1
        self.traffic.bytes_out += len(data)

    def told(self, outcome: Outcome) -> None:
        self.listener.told(outcome)

    def overslept(self) -> None:
        if self.settled.is_set():  # a member that is in no group yet is not misled by old frames
            self.transport.discard()

    def note(self, sentence: str) -> None:
        self.listener.note(sentence)

    def baffled(self, sender: MemberId, message: Message, error: Exception) -> None:
        self.filter.counters.count(Reason.UNHANDLED)
        why = ascii(f"{type(error).__name__}: {error}")[1:-1][:_SHOWN]
        self.rejections.say(
            Reason.UNHANDLED.value,
            f"could not handle a {kind_of(message)} of member {sender}, and goes on without it "
            f"({why}): a member lies, or this is a defect of the protocol",
            self._clock.time(),
            label=Reason.UNHANDLED.value,
        )

    def failed(self, error: Exception) -> None:
        self.stop()
        self.listener.failed(error)

    def ran(self) -> None:
        """Look once, after a handler, at everything that it may have changed."""
        self._become(self.leadership.shown(self.runner.me))
        if self.measuring is not None:
            self._become(self.measuring.stand(self.runner.me))
        if not self.settled.is_set() and self.stack.membership.joined:
            self._enter()
        if not self.bootstrap.open:
            self.bootstrap.check()
        leaders = self.stack.leaders
        seen = (self.stack.membership.view.version, leaders)
        news = seen != self._seen
        ranked = self.leadership.electors.view.version  # the next leader watches the leader
        if (news or ranked != self._ranked or not self.crash_watch.following) and not self._closed:
            self._ranked = ranked
            self.crash_watch.follow(leaders)
        if news:
            self._seen = seen
            self.presence.look_round()
            self.address_validation.look_round()
            self.listener.changed()

    def _become(self, me: Candidate) -> None:
        if me != self.runner.me:
            self.runner.me = me
            self.stack.membership.circle.renew_own(me)

    # What arrives

    def datagram(self, data: bytes, source: Endpoint) -> None:
        self._read(data, source, Direction.DATAGRAM)

    def frame(self, data: bytes, source: Endpoint, direction: Direction) -> bool:
        return self._read(data, source, direction)

    def head(self, data: bytes, source: Endpoint) -> bool:
        reason = refusal_of(data, self.filter.wire)
        if reason is not None:
            self.filter.counters.count(reason)
            self.rejections.saw(reason, source, self._clock.time(), versions_of(data))
        return reason is None

    def _read(self, data: bytes, source: Endpoint, direction: Direction) -> bool:
        if self._closed:
            return False
        self.traffic.frames_in += 1
        self.traffic.bytes_in += len(data)
        if direction is Direction.DATAGRAM and is_across(data):
            if self.other_versions.took(data, source):
                return False
        now = self._clock.time()
        got = self.filter.incoming(data, direction, now, self._duplicate_names.doubts)
        if got is None:
            self._refused_to_read(data, source, direction)
            return False
        if self._observer_label.observes:
            self._observer_label.heard(got.message, self.lets_in(source), now)
        if direction is Direction.DATAGRAM:
            self.address_book.heard(got.sender, source)
            self.address_validation.heard(got.sender, source)
            if isinstance(got.message, JoinMsg):
                self.other_versions.pass_on(data, source)
        if self._duplicate_names.doubts(got):
            self._duplicate_names.challenge(got)
        else:
            self.accept(got, source)
        return True

    def accept(self, got: Received, source: Endpoint) -> None:
        """Hand a message to the part that handles it."""
        layers = type(got.message) in self.stack.handlers  # most messages, so this is checked first
        if layers and not self.presence.admits(got, source):
            self.traffic.received[kind_of(got.message)] += 1
        elif layers:
            self._hear(got, source)
        elif (message := self._member_claims.heard(got, source, self._clock.time())) is not None:
            self.traffic.received[kind_of(message)] += 1
            self._control(got, message, source)

    def _hear(self, got: Received, source: Endpoint, kept: bool = False) -> None:
        message = self._member_claims.heard(got, source, self._clock.time())
        if message is not None:
            if not kept:
                self.traffic.received[kind_of(message)] += 1
            self._deliver(got if message is got.message else got._replace(message=message))

    def _control(self, got: Received, message: Message, source: Endpoint) -> None:
        match message:
            case HelloMsg():
                pass
            case ProbeMsg(nonce):
                self.introduce(source, ProbeReplyMsg(nonce), got.sender)
                self.presence.greet(got, source)
            case ProbeReplyMsg(nonce):
                self._answered(nonce, got, source)
            case NameTakenMsg():
                self._duplicate_names.taken(message, source)
            case ProcessEndedMsg():
                self.crash_watch.gone(message)
            case OldIncarnationMsg():
                self._duplicate_names.lived_later(message, source)
            case SurveyMsg() | SurveyReplyMsg() | SurveyProbeMsg() | SurveyEchoMsg():
                self.survey.heard(got, source)
            case ConfigMsg() | ConfigConflictMsg() if self.config_check is not None:
                self.config_check.heard(got.sender, message, source)

    def _answered(self, nonce: int, got: Received, source: Endpoint) -> None:
        asked = self.search.met(nonce, got.sender)
        asked |= self._duplicate_names.asked(nonce, got.sender)
        if got.incarnation >= self.filter.incarnation(got.sender):  # else it may be recorded
            asked |= self.address_validation.present(nonce, got.sender, source)
        kept = self.presence.answered(got) if asked else []
        self._duplicate_names.present(nonce, got)
        self.bootstrap.check()
        for each in kept:
            self._hear(each, source, kept=True)

    def _deliver(self, got: Received) -> None:
        message = got.message
        if isinstance(message, JoinMsg) and self._is_full(got.sender):
            self.filter.counters.count(Reason.MEMBERS)
        self._duplicate_names.precede(got)
        if not self.runner.deliver(got.sender, message) and self.runner.stalled:
            self.filter.counters.count(Reason.INBOX)

    def _is_full(self, newcomer: MemberId) -> bool:
        membership = self.stack.membership
        full = membership.circle.known > membership.config.view_size
        return full and membership.circle.entry(newcomer) is None

    def _refused_to_read(self, data: bytes, source: Endpoint, direction: Direction) -> None:
        reason, got = self.filter.refused, self.filter.unheard
        if reason is Reason.UNKNOWN_VERSION and direction is Direction.DATAGRAM:
            if is_notice(data):
                return  # forged or damaged: it is counted, and there is nothing to say about it
            if is_across(data):  # its sender may be of this version, and have another key
                reason = self.filter.wire.obstacle(data) or reason
            self.other_versions.refused(data, source)
        if reason is Reason.DUPLICATE_NAME:
            self._duplicate_names.met(source, got)
        elif reason is Reason.OLD_INCARNATION:
            self._duplicate_names.out_of_date(source)
        elif reason is Reason.OTHER_PROTOCOL:
            mine = self._observer_label.refused(self._clock.time())
            if not mine and self.config_check is not None:
                self.config_check.stranger(source)
        if reason is not None:
            self.bootstrap.unread(source, reason, versions_of(data))
        if got is not None and reason in STALE and self.filter.lost_count(got):
            self._duplicate_names.ask(got.sender)
        if reason is not None and not (reason is Reason.ECHO and source == self.transport.endpoint):
            self.rejections.saw(reason, source, self._clock.time(), versions_of(data))

    def refused(self, to: Endpoint) -> None:
        if not self._closed:
            self.bootstrap.refused(to)
            self.crash_watch.refused(to)


class NodeListener(Protocol):
    """Whom a node reports to."""

    def told(self, outcome: Outcome) -> None:
        """The election has an outcome."""

    def changed(self) -> None:
        """Members came, left, or rank otherwise now."""

    def note(self, sentence: str) -> None:
        """Something worth a log line."""

    def failed(self, error: Exception) -> None:
        """The node cannot go on."""


class LeaseRequests(Protocol):
    """The client of a member's guard, as a node sees it. It answers through `MemberNode.hear`."""

    def acquire(self, ttl: float, request: int) -> None:
        """Ask for a lease of `ttl`, or renew the one that is held."""

    def release(self, request: int) -> None:
        """Give the lease back; there is no answer."""

    def inherited(self) -> AbstractContextManager[tuple[int, ...]]:
        """The descriptors that a process inherits which is started meanwhile, for the lease."""


def _shared_detector(transport: Transport) -> StallDetector | None:
    """The stall detector that all members of the process share, if the transport has one."""
    shared: StallDetector | None = getattr(transport, "stall_detector", None)
    return shared
