"""What all members of a group must have in common, and what happens to members that differ.

Two members with different guards, or with different ways to choose a leader, could both lead and
not know it. So the label that every frame bears contains a digest of the fields that must be equal.
A member does not hear frames with another digest. Only the message CONFIG is understood across
labels. From it both sides learn which field differs, and log it.

A member that differs from an existing group is refused when it tries to join. It believes only a
seed about this. Two groups with guards may also meet after each has settled. Then the smaller group
does not lead while it sees the other one. If both are equally large, neither leads. The sender of
an answer chooses what the answer says about its group. So the claimed size of another group does
not count. What counts is the number of its members that have answered: each in its own name, to a
question that went to its address only. A member counts for some seconds after its last answer. When
`ENOUGH` members have answered, more would prove little, and the claims of both sides decide. A
group with a guard never yields to a group without one.

A member acts only on an answer to a question of its own, and only if the answer comes from the
address that the question went to. So no other process can forge the answer.

An observer has no configuration of its own, so it may belong to any group of the name. It takes the
label of the group that lets it in: the label of a state transfer that comes from the address where
the observer asked for one. Without a key any process can send frames with any label. So the
observer gives a label up when no frame has borne it for a while.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from hustings.core.choice import MemberId
from hustings.core.digests import blake2b
from hustings.core.durations import show_duration
from hustings.core.errors import BadInput
from hustings.core.messages import Message
from hustings.layers.gossip.messages import WelcomeMsg
from hustings.net.clock import member_clock
from hustings.net.control_messages import ConfigConflictMsg, ConfigMsg
from hustings.net.limits import Rates
from hustings.net.transport import Endpoint, Transport
from hustings.net.validation import is_address
from hustings.net.wire import ANY, MARK, Direction, Frame, Received, Wire, group_tag

if TYPE_CHECKING:
    from hustings.net.addresses import Address
    from hustings.net.composition import Configured, Design
    from hustings.net.node import MemberNode

BARRED = "a group of this name with another configuration is there"
DIGEST = 5  # bytes
LONGEST = 200  # characters of a value
MOST_FIELDS = 64

_SHOWN = 120  # characters that a log shows of a value from another member
_ANSWERS = 20  # per second, to members that differ
_ASKING = 1.0  # seconds between two questions to one unknown sender
_LOOK = 2.0  # seconds between two checks whether another group is still there
_PEERS = 4  # members of the sender's own group that an answer names
_WITNESSES = 8.0  # questions per second to unknown senders; up to twice as many at once
_QUESTIONS = 64  # unanswered questions that are remembered
_SILENCE = 60.0  # seconds between two log lines about one member
_MOST_NOTED = 256
_REPEAT = 0.3  # seconds until a process that is no member asks again
_AT_ONCE = 8  # log lines of one kind at once; then one per minute


class Field(NamedTuple):
    """One setting that members have in common, or should have."""

    name: str
    value: str
    must: bool  # True: members that differ here are no group. False: a difference is only logged.


class AgreedConfig(NamedTuple):
    """What one member tells others about its configuration; nothing in it is secret."""

    fields: tuple[Field, ...]
    observer: bool = False

    @property
    def digest(self) -> str:
        """A short digest of the fields that must be equal.

        >>> one = AgreedConfig((Field("guard", "etcd", True), Field("ttl", "5", False)))
        >>> other = AgreedConfig((Field("guard", "etcd", True), Field("ttl", "9", False)))
        >>> one.digest == other.digest
        True
        """
        if self.observer:
            return ANY
        return _digest(f"{each.name}={each.value}" for each in self.fields if each.must)

    def told(self) -> tuple[tuple[str, str, bool], ...]:
        """The fields as a message carries them."""
        return tuple((each.name, each.value[:LONGEST], each.must) for each in self.fields)

    def differences(self, theirs: Iterable[tuple[str, str, bool]]) -> list[tuple[Field, str]]:
        """The fields that differ, with the other side's values; those that must be equal first."""
        there = {name: value for name, value, _ in theirs}
        found = [
            (each, there.get(each.name, "not given"))
            for each in self.fields
            if there.get(each.name) != each.value[:LONGEST]
        ]
        return sorted(found, key=lambda pair: not pair[0].must)


def agreed_config(
    design: Design, config: Configured, multicast: Address | None, guard: tuple[Field, ...]
) -> AgreedConfig:
    """What a member of this design tells others. An observer leads no group and follows any."""
    if design.observer:
        return AgreedConfig((), observer=True)
    lease, settings = config.lease, msgspec.structs.asdict(config.election)
    fields = [
        Field("protocol", design.kind.about.name, True),
        Field("choice", design.choice.name, True),
        Field("multicast", str(multicast or design.multicast), True),
        *(guard or (Field("guard", "", True),)),
    ]
    if config.measure is not None:
        fields.append(Field("measure", config.measure.what, True))
    if lease is not None:
        fields.append(Field("ttl", show_duration(lease.asked), False))
        fields.append(Field("drift", f"{lease.drift:g}", False))
    fields += [Field(name, f"{value}", False) for name, value in settings.items()]
    return AgreedConfig(tuple(fields))


def _digest(lines: Iterable[str]) -> str:
    text = "\n".join(lines).encode(errors="backslashreplace")
    return blake2b(text, digest_size=DIGEST, person=b"hustings config").hexdigest()


def label_of(protocol: str, guard: str, digest: str) -> str:
    """The label at the head of a member's frames.

    >>> label_of("bully", "etcd", "0123456789")
    'bully+etcd#0123456789'
    """
    return f"{protocol}+{guard}{MARK}{digest}" if guard else f"{protocol}{MARK}{digest}"


class ConfigCheck:
    """One node's part in the comparison of configurations."""

    def __init__(self, node: MemberNode, config: AgreedConfig) -> None:
        self._node = node
        self._config = config
        self._clock = member_clock()
        self._asked: dict[int, Endpoint] = {}  # by the number of the question
        self._tellable = 0.0  # the time from which the group may be told again
        self._answers = Rates(_ANSWERS, _ANSWERS, 1)  # any process may send questions
        self._strangers = Rates(1.0 / _ASKING, 1, _QUESTIONS)  # by source address
        self._questions = Rates(_WITNESSES, round(2 * _WITNESSES), 1)  # to unknown senders
        self._noted: dict[tuple[str, str], float] = {}  # what was logged, and when
        self._rivals = CompetingGroups()
        self._barred = False
        self._was_led = False  # whether its group had a leader when this member was barred
        self._timer: asyncio.TimerHandle | None = None

    def ask(self, endpoint: Endpoint, *, brief: bool = False) -> None:
        """Ask the member at an endpoint for its configuration.

        `brief`: send no fields of this member, so that the question is not larger than its cause.
        """
        nonce = 1 + self._node.runner.rng.below(1 << 53)
        self._asked[nonce] = endpoint
        if len(self._asked) > _QUESTIONS:
            del self._asked[next(iter(self._asked))]
        message = self._message(nonce, answer=False)
        if brief:
            message = msgspec.structs.replace(message, fields=())
        self._node.introduce(endpoint, message)

    def _message(self, nonce: int, *, answer: bool) -> ConfigMsg:
        node = self._node
        return ConfigMsg(
            nonce=nonce,
            answer=answer,
            settled=node.settled.is_set() and node.bootstrap.open,
            members=self._members,
            led=self._led,
            fields=self._config.told(),
            peers=self._peers() if answer else (),
        )

    def answer_as(self, nonce: int, words: str) -> ConfigMsg:
        """An answer that no member can join upon; these words beside the protocol say why."""
        message = self._message(nonce, answer=True)
        fields = tuple(
            (name, f"{value} {words}" if name == "protocol" else value, must)
            for name, value, must in message.fields
            if must
        )
        return msgspec.structs.replace(message, fields=fields, peers=())

    @property
    def _members(self) -> int:
        """How many members may lead. Observers answer no questions, so they do not count."""
        return len(self._node.leadership.electors.view)

    @property
    def _led(self) -> bool:
        return bool(self._node.stack.leaders) or self._was_led

    def _peers(self) -> tuple[Endpoint, ...]:
        """Some members of this group that can give the same answer."""
        node, electors = self._node, self._node.leadership.electors.view
        there = [
            endpoint
            for member, endpoint in node.address_book.known.items()
            if member in electors and node.address_validation.reached(member, endpoint)
        ]
        return tuple(node.runner.rng.sample(there, min(_PEERS, len(there))))

    # What arrives

    def stranger(self, source: Endpoint) -> None:
        """A frame with another label came: ask its sender for its configuration."""
        now = self._clock.time()
        if not self._config.observer and self._strangers.allow(source, now):
            self._question(source, now)

    def heard(
        self, sender: MemberId, message: ConfigMsg | ConfigConflictMsg, source: Endpoint
    ) -> None:
        """Another member says how it is configured, or where it has met a member that differs."""
        if self._config.observer:
            return
        if isinstance(message, ConfigConflictMsg):
            if self._node.leadership.leader == self._node.runner.me.id:  # only the leader acts
                self.stranger((message.host, message.port))
            return
        found = self._config.differences(message.fields)
        must = [each for each in found if each[0].must]
        asked = None
        if message.answer:
            asked = self._asked.get(message.nonce)
            # An answer on a stream comes from another port of the same node.
            if asked is None or asked[0] != source[0]:
                return
            del self._asked[message.nonce]
        elif found and self._answers.allow(None, self._clock.time()):
            self._node.introduce(source, self._message(message.nonce, answer=True))
        if found and not must:
            self._note("settings", self._name(sender), source, found)
        elif must and asked is None:
            self.stranger(source)  # ask first: only an answer to a question of this member counts
        elif must and asked is not None:
            if not self._node.bootstrap.open:
                self._node.bootstrap.differs(asked, differing(must))
            if message.settled:
                self._conflict(sender, message, asked, must)
            elif not self._node.settled.is_set():  # else the other one is refused
                self._start_beside(sender, message, asked, must)

    # What follows

    def _start_beside(
        self, sender: MemberId, theirs: ConfigMsg, where: Endpoint, found: list[tuple[Field, str]]
    ) -> None:
        """Two members whose guards differ start at one time: neither leads for a moment."""
        if self._node.lease_layer is not None and _guarded(theirs):
            config = _digest(f"{field.name}={there}" for field, there in found)
            witness = CompetingMember(sender, config, theirs.members, theirs.led)
            self._rivals.answered(where, witness, self._clock.time())
            self._judge()
            if self._timer is None:
                self._timer = self._clock.call_later(_LOOK, self._look)

    def _conflict(
        self, sender: MemberId, theirs: ConfigMsg, where: Endpoint, found: list[tuple[Field, str]]
    ) -> None:
        node = self._node
        if not node.settled.is_set():
            if node.lets_in(where):
                node.failed(
                    BadInput(
                        f"this member does not fit group {node.filter.wire.group!r}: "
                        f"{differing(found)} (the other one is at {where[0]}:{where[1]}); give all "
                        "members the same, or this group another name"
                    )
                )
            return
        # Without a guard, an election's result is only an opinion. A guard can be held back.
        if not node.bootstrap.open:
            so = "this member waits for others and does not lead"
            self._note("waiting", "a group of this name", where, found, so)
            return
        if node.lease_layer is None:
            so = "without a guard both may lead until all members are configured alike"
            self._note("no-guard", "a group of this name", where, found, so)
            self._tell(where)
            return
        if not _guarded(theirs):
            so = "it has no guard, and this member does not yield to it"
            self._note("unguarded", "a group of this name", where, found, so)
            return
        config = _digest(f"{field.name}={there}" for field, there in found)
        witness = CompetingMember(sender, config, theirs.members, theirs.led)
        self._rivals.answered(where, witness, self._clock.time())
        self._judge()
        if not self._barred and theirs.members < self._members:
            self._note("smaller", "a group that is smaller", where, found, "it must not lead")
            return
        so = "this member does not lead beside it"
        if not self._barred:
            so = f"it says that it has {theirs.members} members: as many as answer count"
        self._note("barred" if self._barred else "larger", "a group of this name", where, found, so)
        self._look_for(theirs.peers)
        self._tell(where)
        if self._timer is None:
            self._timer = self._clock.call_later(_LOOK, self._look)

    def _tell(self, where: Endpoint) -> None:
        """Tell the group about a member that differs; the leader will ask that member itself."""
        now = self._clock.time()
        if now >= self._tellable:
            self._tellable = now + _ASKING
            self._node.transmit(None, ConfigConflictMsg(*where))

    def _look_for(self, endpoints: Iterable[Endpoint]) -> None:
        """Ask other members of that group, so that each counts by its own answer."""
        now = self._clock.time()
        there = self._rivals.there(now)
        known = {*there, *self._asked.values()}
        for endpoint in tuple(endpoints)[:_PEERS]:
            if endpoint not in known and len(there) < ENOUGH and is_address(*endpoint):
                self._question(endpoint, now)

    def _question(self, endpoint: Endpoint, now: float) -> None:
        """Ask briefly and not too often: the endpoint may be a false claim of a third process."""
        if self._questions.allow(None, now):
            self.ask(endpoint, brief=True)

    def _look(self) -> None:
        """Check whether the other group is still there."""
        self._timer = None
        if self._node.closed:
            return
        self._judge()
        now = self._clock.time()
        there = self._rivals.there(now)
        for endpoint in there:
            self._question(endpoint, now)
        if there:
            self._timer = self._clock.call_later(_LOOK, self._look)

    def _judge(self) -> None:
        """Stop leading for as long as a group that outweighs this one is there."""
        now = self._clock.time()
        outweighed = self._rivals.outweigh(self._members, self._led, now)
        if outweighed and not self._barred:
            self._barred, self._was_led = True, self._led
            self._allow(BARRED)
        elif self._barred and not outweighed:
            self._barred, self._was_led = False, False
            self._node.rejections.say(
                "config allowed",
                f"of the other group of this name too few were heard for {LASTING:.0f} s: this "
                "member may lead again",
                now,
                _AT_ONCE,
            )
            self._allow(None)

    def _allow(self, reason: str | None) -> None:
        """Bar this member from leading for a reason; None lets it lead again."""
        node, lease_layer = self._node, self._node.lease_layer
        if lease_layer is not None:
            stack = node.stack
            node.runner.run(
                lambda ctx: stack.run_at(
                    ctx, lease_layer, lambda within: lease_layer.bar(within, reason)
                )
            )

    def _name(self, member: MemberId) -> str:
        place = self._node.presence.place(member)
        return "a member" if place is None else f"member {place.name}"

    def _note(
        self,
        kind: str,
        who: str,
        source: Endpoint,
        found: list[tuple[Field, str]],
        so: str = "",
    ) -> None:
        # The log limits use the names of the fields: a sender could choose ever new values.
        now, words = self._clock.time(), differing(found)
        fields = " ".join([kind, *(field.name for field, _ in found)])
        if now < self._noted.get((who, fields), -_SILENCE) + _SILENCE:
            return
        self._noted.pop((who, fields), None)
        self._noted[who, fields] = now
        if len(self._noted) > _MOST_NOTED:
            del self._noted[next(iter(self._noted))]
        what = "is configured otherwise" if not so else "is there and has another configuration"
        sentence = f"{who} at {source[0]}:{source[1]} {what}: {words}" + (so and f"; {so}")
        self._node.rejections.say(f"config {kind}", sentence, now, _AT_ONCE)


def _guarded(theirs: ConfigMsg) -> bool:
    return any(name == "guard" and value for name, value, _ in theirs.fields)


def differing(found: Iterable[tuple[Field, str]]) -> str:
    """The fields that differ, with both values, as text.

    >>> differing([(Field("ttl", "5", False), "9")])
    'ttl is 5 here and 9 there'
    """
    return ", ".join(
        f"{field.name} is {field.value or 'none'} here and {_shown(there)} there"
        for field, there in found
    )


def _shown(value: str) -> str:
    """A value from another member, fit for a log."""
    return (value if value.isprintable() else ascii(value))[:_SHOWN] or "none"


ENOUGH = 16  # members of another group whose answers decide by themselves
LASTING = 10.0  # seconds for which a member counts as there after its last answer
_MOST = 4 * ENOUGH  # members of other groups that are remembered


class CompetingMember(NamedTuple):
    """A member of another group, and what it says about that group."""

    member: MemberId
    config: str  # a digest of the ways in which it differs from this group
    members: int
    led: bool


class CompetingGroups:
    """What one member knows about other groups with the same name.

    >>> rivals = CompetingGroups()
    >>> rivals.answered(("192.0.2.1", 7400), CompetingMember(1, "other", 1000, True), now=0.0)
    >>> rivals.outweigh(members=3, led=True, now=0.0), rivals.outweigh(1, led=True, now=0.0)
    (False, True)
    """

    def __init__(self) -> None:
        self._witnesses: dict[Endpoint, tuple[CompetingMember, float]] = {}  # oldest answer first

    def answered(self, endpoint: Endpoint, witness: CompetingMember, now: float) -> None:
        """Note an answer from an endpoint. One member counts once, and one address counts once."""
        kept = {
            where: (other, at)
            for where, (other, at) in self._fresh(now).items()
            if where != endpoint and (other.member, other.config) != witness[:2]
        }
        if len(kept) >= _MOST:
            del kept[next(iter(kept))]
        self._witnesses = {**kept, endpoint: (witness, now)}

    def there(self, now: float) -> list[Endpoint]:
        """The endpoints from which an answer came lately."""
        return list(self._fresh(now))

    def outweigh(self, members: int, led: bool, now: float) -> bool:
        """Whether a group of `members` must not lead because one of these groups is there."""
        groups: defaultdict[str, list[CompetingMember]] = defaultdict(list)
        for witness, _ in self._fresh(now).values():
            groups[witness.config].append(witness)
        return any(_weight(group) >= _own(members, led) for group in groups.values())

    def _fresh(self, now: float) -> dict[Endpoint, tuple[CompetingMember, float]]:
        return {
            where: (witness, at)
            for where, (witness, at) in self._witnesses.items()
            if now - at < LASTING
        }


def _own(members: int, led: bool) -> tuple[int, int, bool]:
    return (members, 0, led) if members < ENOUGH else (ENOUGH, members, led)


def _weight(group: list[CompetingMember]) -> tuple[int, int, bool]:
    claimed, led = max(each.members for each in group), any(each.led for each in group)
    return (len(group), 0, led) if len(group) < ENOUGH else (ENOUGH, claimed, led)


_UNHEARD = 5.0  # seconds without a frame that bears the label, after which it is given up


class ObserverLabel:
    """One node's label. The label changes only if the node is an observer."""

    def __init__(self, wire: Wire, now: float) -> None:
        self._wire = wire
        self.observes = wire.codec.undecided
        self._heard = now  # when the last frame with the adopted label came

    def heard(self, message: Message, invited: bool, now: float) -> None:
        """A frame was understood. `invited`: it comes from where this node asked to be let in."""
        codec, label = self._wire.codec, self._wire.label
        if not self.observes:
            return
        if codec.undecided and invited and isinstance(message, WelcomeMsg):
            codec.take_up(label)
        if label == codec.protocol:
            self._heard = now

    def refused(self, now: float) -> bool:
        """A frame with another label came. Returns whether the next one like it is understood."""
        if not self.observes or now - self._heard < _UNHEARD:
            return False
        self._wire.codec.give_up()
        return True


# A process that is no member


class ConfigQuestion:
    """Asks members how their group is configured, and waits for the first answer."""

    def __init__(self, transport: Transport, wire: Wire) -> None:
        self._transport = transport
        self._wire = wire
        self._nonce = int.from_bytes(os.urandom(6), "big") + 1
        self._answered: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    async def answer(
        self, endpoints: Callable[[], Iterable[Endpoint]], seconds: float
    ) -> dict[str, str] | None:
        """The fields of a member at one of the endpoints; None if none answers in time."""
        tag, clock = group_tag(self._wire.group), member_clock()
        self._transport.attach(tag, self)
        end = clock.time() + seconds
        try:
            while not self._answered.done() and (left := end - clock.time()) > 0:
                self._ask(endpoints())
                await asyncio.wait([self._answered], timeout=min(left, _REPEAT))
        finally:
            self._transport.detach(tag)
        return self._answered.result() if self._answered.done() else None

    def _ask(self, endpoints: Iterable[Endpoint]) -> None:
        question = ConfigMsg(self._nonce, False, False, 0, False, ())
        for endpoint in dict.fromkeys(endpoints):
            frame = self._wire.write(question)
            if isinstance(frame, Frame):
                self._transport.send(endpoint, frame.data)

    def datagram(self, data: bytes, source: Endpoint) -> None:
        got = self._wire.read(data, Direction.DATAGRAM)
        if not isinstance(got, Received) or not isinstance(got.message, ConfigMsg):
            return
        message = got.message
        if message.answer and message.nonce == self._nonce and not self._answered.done():
            self._answered.set_result({name: value for name, value, _ in message.fields})

    def frame(self, data: bytes, source: Endpoint, direction: Direction) -> bool:
        return False

    def head(self, data: bytes, source: Endpoint) -> bool:
        return False

    def refused(self, to: Endpoint) -> None:
        """Another endpoint may answer."""
