"""Members whose wire versions do not meet: both are told, and a newcomer waits.

    a frame that cannot be read or answered
        ->  NOTICE [written, oldest, newest, echo, leads, peers, passed on]

A member writes one wire version and reads some before and after it (`wire.py`), so members of
releases in a row are one group. Members of other releases cannot be: one refuses the other's
frames, and says so in its log. But a newcomer that hears nothing it understands would take itself
for alone, and lead beside the group. So a member that gets such a frame says in a NOTICE which
versions it reads and writes, whether its group takes part in elections, and where some of its
members are. A newcomer that gets one as an answer to its own frame does not take part while that
group is there (`bootstrap.py` asks `ahead`). The newcomer asks on until no member of that group has
answered for `LASTING` seconds.

A newcomer may also find newcomers of its own version that wait already, before it finds the group
that they wait for. So those pass on what they were told. Only what a member was told at first hand
is passed on: otherwise two members could wait for what each has from the other.

When members of two versions start at one moment, both are newcomers: the newer one waits. With a
guard no member waits.

Members of wire version 2 know no NOTICE, but they answer questions about their configuration, and
refuse to join where the answer differs. So a newcomer that is alone also asks such a question in
version 2, and a member that takes part answers those of version 2 with its wire version. A question
without fields is that of a newcomer: members of version 2 write theirs down.

Laws: the form of a NOTICE never changes. A NOTICE counts only as an answer: it repeats a digest of
a frame that this member sent in the last `LASTING` seconds, and only processes on the way of that
frame have seen it. In a group with a key a NOTICE is sealed, and frames without the group's seal
get none. A NOTICE delays newcomers only: nothing that it says ends a leadership. No answer is
longer than its question by more than `_LONGER` bytes, and each address gets a few in a second.
Addresses that a NOTICE names get two questions in a second, all of them together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import TYPE_CHECKING, TypeVar

import msgspec

from hustings.core.digests import blake2b
from hustings.net.clock import member_clock
from hustings.net.control_messages import ConfigMsg
from hustings.net.limits import Rates, Reason, WireVersions, show_versions
from hustings.net.transport import Endpoint
from hustings.net.validation import is_address
from hustings.net.wire import FIRST, OURS, UNREADABLE, is_notice, versions_of

if TYPE_CHECKING:
    from hustings.net.node import MemberNode

LASTING = 3.0  # seconds for which a group counts as there after its last answer
_ASKING = 0.5  # seconds between two questions to one address
_ECHO = 8  # bytes
_NONCE = 6  # bytes of it that are the number of a question in version 2
_LARGEST_NONCE = (1 << 8 * _NONCE) - 1
_SENT = 256  # own frames whose answers count
_MOST = 32  # addresses of each kind that are remembered
_ASKED = 16  # addresses that have answered and are asked at a time
_UNPROVEN, _UNPROVEN_AT_ONCE = 2.0, 8  # questions where others say that a member is: in a second
_STRANGERS = 4096  # addresses whose rate is remembered
_PEERS = 4  # members of its own group that an answer names
_ANSWERS, _AT_ONCE = 8.0, 32  # per address: in a second, and at once
_UNSEALED_ANSWERS, _UNSEALED_AT_ONCE = 2.0, 4  # the same in a group without a key
_BEFORE = FIRST - 1  # the version whose members understand a CONFIG, and no NOTICE
_LONGER = 64


class VersionNotice(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Which wire versions a member writes and reads. Later releases may append fields only."""

    written: int
    oldest: int
    newest: int
    echo: bytes  # of the frame that was not understood
    leads: bool  # whether its group takes part in elections; False: it is a newcomer, too
    peers: tuple[tuple[str, int], ...] = ()
    passed_on: bool = False  # its sender was told this by another member, and waits

    @property
    def versions(self) -> WireVersions:
        """Those of the member that it is about."""
        return WireVersions(self.oldest, self.written, self.newest)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(VersionNotice).decode

Key = TypeVar("Key")
Value = TypeVar("Value")


class OtherVersions:
    """What one node knows about members of its group whose wire versions do not meet its own."""

    def __init__(self, node: MemberNode) -> None:
        self._node = node
        self._clock = member_clock()
        sealed = node.filter.wire.ring is not None
        self._rates = (
            Rates(_ANSWERS, _AT_ONCE, _STRANGERS)
            if sealed
            else Rates(_UNSEALED_ANSWERS, _UNSEALED_AT_ONCE, _STRANGERS)
        )
        self._unproven = Rates(_UNPROVEN, _UNPROVEN_AT_ONCE, 1)
        self._sent: dict[bytes, float] = {}  # digests of own frames and when they left
        # Each with the time when it came, by the address that it came from:
        self._heard: dict[Endpoint, tuple[VersionNotice, float]] = {}  # at first hand
        self._passed_on: dict[Endpoint, tuple[VersionNotice, float]] = {}
        self._named: dict[Endpoint, tuple[None, float]] = {}  # addresses that others named
        self._timer: asyncio.TimerHandle | None = None

    def stop(self) -> None:
        """The node stops."""
        if self._timer is not None:
            self._timer.cancel()

    def sent(self, data: bytes) -> bytes | None:
        """This node introduces itself with a frame, so an answer to it counts.

        Returns a frame for members of wire version 2 to send along, while this member is alone.
        """
        echo, now = _echo(data), self._clock.time()
        _keep(self._sent, echo, now, _SENT)
        node = self._node
        if len(node.stack.membership.view) > 1 or node.leadership.observer:
            return None
        key = echo[:_NONCE]
        _keep(self._sent, key, now, _SENT)
        question = ConfigMsg(int.from_bytes(key), False, self._takes_part, 1, False, ())
        return node.filter.wire.write_old(question, _BEFORE)

    def _is_answer(self, echo: bytes) -> bool:
        """Whether an answer repeats what this node sent lately."""
        return self._clock.time() - self._sent.get(echo, -LASTING) < LASTING

    @property
    def there(self) -> Collection[Endpoint]:
        """Where such members have answered lately."""
        return self._fresh(self._heard).keys()

    @property
    def ahead(self) -> bool:
        """Whether a newcomer has to wait for such members."""
        return any(map(_is_ahead, self._fresh(self._heard).values())) or any(
            map(_is_ahead, self._fresh(self._passed_on).values())
        )

    def _fresh(self, found: dict[Endpoint, tuple[Value, float]]) -> dict[Endpoint, Value]:
        """What came lately; the rest is forgotten."""
        if not found:
            return {}
        now = self._clock.time()
        for endpoint in [each for each, (_, at) in found.items() if now - at >= LASTING]:
            del found[endpoint]
        return {endpoint: value for endpoint, (value, _) in found.items()}

    # What arrives

    def took(self, data: bytes, source: Endpoint) -> bool:
        """A datagram came that may be understood across versions; returns whether it is."""
        wire = self._node.filter.wire
        if is_notice(data):
            content = wire.read_notice(data)
            if isinstance(content, Reason):
                return False
            self._notice(content, source)
            return True
        message = wire.read_old(data)
        if message is not None:
            self._heard_before(message, len(data), source)
        return message is not None

    def refused(self, data: bytes, source: Endpoint) -> None:
        """A datagram came whose sender and this member do not read each other."""
        node = self._node
        written = versions_of(data).written
        if written >= FIRST and not node.leadership.observer and node.filter.wire.opens(data):
            leads = self._takes_part
            peers = node.address_book.some(_PEERS) if leads else ()
            self._answer(data, source, OURS, leads=leads, peers=peers)

    @property
    def _takes_part(self) -> bool:
        return self._node.settled.is_set() and self._node.bootstrap.open

    def pass_on(self, data: bytes, source: Endpoint) -> None:
        """A newcomer of this version introduces itself: tell it for whom this member waits."""
        if self._heard and not self._node.bootstrap.open:
            about = {
                each: said for each, said in self._fresh(self._heard).items() if _is_ahead(said)
            }
            if about:
                said, peers = next(iter(about.values())), tuple(about)[:_PEERS]
                self._answer(
                    data, source, said.versions, leads=said.leads, peers=peers, passed_on=True
                )

    def _answer(
        self,
        data: bytes,
        source: Endpoint,
        versions: WireVersions,
        *,
        leads: bool,
        peers: tuple[Endpoint, ...],
        passed_on: bool = False,
    ) -> None:
        """Answer a frame with a NOTICE that is not longer."""
        if not self._rates.allow(source, self._clock.time()):
            return
        oldest, written, newest = versions
        for named in (peers, peers[:1], ()):
            notice = VersionNotice(written, oldest, newest, _echo(data), leads, named, passed_on)
            frame = self._node.filter.wire.write_notice(_encode(notice))
            if len(frame) <= len(data):
                self._node.put(source, frame, streamed=False)
                return

    def _notice(self, content: bytes, source: Endpoint) -> None:
        try:
            said = _decode(content)
        except UNREADABLE:
            return
        if self._is_answer(said.echo):
            self._believe(said, source)

    def _heard_before(self, message: ConfigMsg, size: int, source: Endpoint) -> None:
        """A member of the version before asks for this member's configuration, or tells its own."""
        node = self._node
        if message.answer:
            key = (message.nonce & _LARGEST_NONCE).to_bytes(_NONCE)
            if self._is_answer(key):
                self._believe(
                    VersionNotice(_BEFORE, _BEFORE, _BEFORE, key, message.settled), source
                )
        elif (
            message.fields  # else its sender is of this version, and would take us for one before
            and self._takes_part
            and node.lease_layer is None
            and node.config_check is not None
            and self._rates.allow(source, self._clock.time())
        ):
            words = f"of wire version {OURS.written}"
            answer = node.config_check.answer_as(message.nonce, words)
            frame = node.filter.wire.write_old(answer, _BEFORE)
            if frame is not None and len(frame) <= size + _LONGER:
                node.put(source, frame, streamed=False)

    def _believe(self, said: VersionNotice, source: Endpoint) -> None:
        """Act upon an answer to a frame of this node."""
        node = self._node
        if OURS.meets(said.versions):
            return
        now = self._clock.time()
        _keep(self._passed_on if said.passed_on else self._heard, source, (said, now), _MOST)
        for peer in said.peers[:_PEERS]:
            if is_address(*peer) and peer != node.transport.endpoint:
                _keep(self._named, peer, (None, now), _MOST)
        if self.ahead:
            node.bootstrap.hold()
        if not said.passed_on:
            node.rejections.saw(Reason.UNKNOWN_VERSION, source, now, said.versions)
            node.bootstrap.unread(source, Reason.UNKNOWN_VERSION, said.versions)
        if self._timer is None:
            self._timer = self._clock.call_later(_ASKING, self._ask)

    def told(self) -> list[str]:
        """What is known of the members that a newcomer waits for; a line for each range."""
        found: dict[WireVersions, str] = {}
        for kept, words in (self._heard, ""), (self._passed_on, "waits for one that "):
            for source, said in sorted(self._fresh(kept).items()):
                if _is_ahead(said) and said.versions not in found:
                    found[said.versions] = (
                        f"the member at {source[0]}:{source[1]} {words}writes version "
                        f"{said.written} and reads {show_versions(said.oldest, said.newest)}"
                    )
        return [found[each] for each in sorted(found)]

    def _ask(self) -> None:
        """Introduce this member again where such members are or may be."""
        self._timer = None
        node, now = self._node, self._clock.time()
        if node.closed or node.bootstrap.open:
            return  # a member that takes part looks for others as it always does
        told = list(dict.fromkeys([*self._fresh(self._heard), *self._fresh(self._passed_on)]))
        named = [each for each in self._fresh(self._named) if each not in told]
        asked = [each for each in named if self._unproven.allow(None, now)]
        for endpoint in [*told[:_ASKED], *asked]:
            node.introduce(endpoint, node.stack.membership.card(asks=False))
        if told or named:
            self._timer = self._clock.call_later(_ASKING, self._ask)


def _is_ahead(said: VersionNotice) -> bool:
    return said.leads or said.written < OURS.written


def _keep(kept: dict[Key, Value], key: Key, value: Value, most: int) -> None:
    """Keep a value as the latest, and forget the oldest one if there are too many."""
    kept.pop(key, None)
    kept[key] = value
    if len(kept) > most:
        del kept[next(iter(kept))]


def _echo(data: bytes) -> bytes:
    return blake2b(data, digest_size=_ECHO, person=b"hustings notice").digest()
