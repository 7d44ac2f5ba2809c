"""Frames: what goes in comes out, and everything else gets a reason."""

from __future__ import annotations

import math
from typing import ClassVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hustings.core.choice import Candidate
from hustings.core.election import Election
from hustings.core.errors import BadInput, ProtocolBug
from hustings.core.messages import Message, Role, kind_of
from hustings.layers.gossip.messages import Entry, WelcomeMsg
from hustings.net.limits import LARGEST_DATAGRAM, Limits, Reason
from hustings.net.wire import (
    CLEAR,
    HEADER,
    MAX_NUMBER,
    Direction,
    Frame,
    Received,
    Wire,
    WireCodec,
    group_tag,
    tag_of,
)
from hustings.protocols.announce.messages import QueryMsg
from hustings.protocols.registry import CATALOGUE, CONSENSUS, classes
from tests.drawing import share
from tests.net.parts import (
    DIALECTS,
    GROUP,
    KEY,
    OTHER_KEY,
    PING,
    SUBSTRATE,
    PingMsg,
    composed,
    messages,
    values,
    wire,
)

UDP = Direction.DATAGRAM
MODES = pytest.mark.parametrize("keys", [(), (KEY,)], ids=["clear", "sealed"])
KINDS = {kind for dialect in DIALECTS for kind in dialect.kinds}


def written(sender: Wire, message: Message, to: int | None = None) -> Frame:
    frame = sender.write(message, to)
    assert isinstance(frame, Frame)
    return frame


def enveloped(payload: object, **changes: object) -> bytes:
    """A clear frame for member 2 with anything in it."""
    fields: dict[str, object] = {
        "group": GROUP,
        "protocol": "ping",
        "version": 1,
        "sender": 1,
        "incarnation": 1,
        "number": 1,
        "recipient": 2,
        **changes,
    }
    body = msgspec.msgpack.encode([*fields.values(), payload])
    return b"H\x03" + bytes((CLEAR,)) + group_tag(GROUP) + body


# --- round trips ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(KINDS, key=str))
@given(data=st.data())
@settings(max_examples=share(0.15))  # each kind, or each protocol, has them
def test_every_kind_survives_the_wire(kind: type[Message], data: st.DataObject) -> None:
    message = data.draw(values(kind))
    keys = data.draw(st.sampled_from([(), (KEY,)]))
    to = data.draw(st.sampled_from([None, 2]))
    dialect = WireCodec("one", (kind,))
    frame = written(wire(1, *keys, dialect=dialect), message, to)
    got = wire(2, *keys, dialect=dialect).read(frame.data, frame.direction)
    assert got == Received(1, 1, 1, to is None, message, len(frame.data))
    assert isinstance(got, Received)
    assert type(got.message) is kind
    assert msgspec.msgpack.encode(got.message) == msgspec.msgpack.encode(message)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.protocol)
@given(data=st.data())
@settings(max_examples=share(0.15))  # each kind, or each protocol, has them
def test_kinds_are_told_apart_in_every_protocol(dialect: WireCodec, data: st.DataObject) -> None:
    message = data.draw(messages(dialect))
    frame = written(wire(1, KEY, dialect=dialect), message)
    got = wire(2, KEY, dialect=dialect).read(frame.data, frame.direction)
    assert isinstance(got, Received)
    assert got.message == message
    assert type(got.message) is type(message)


# Election by consensus is its own guard.
GUARDED = [protocol for protocol in classes(CATALOGUE) if protocol not in classes(CONSENSUS)]


@pytest.mark.parametrize("protocol", GUARDED, ids=lambda protocol: protocol.about.name)
def test_a_composed_election_has_one_dialect(protocol: type[Election]) -> None:
    plain, stacked, watched = (WireCodec.of(each, "x") for each in composed(protocol))
    assert set(plain.kinds) == set(protocol.messages)
    assert set(plain.kinds) < set(stacked.kinds)
    assert set(plain.kinds) < set(watched.kinds)
    assert (set(stacked.kinds) | set(watched.kinds)) - set(plain.kinds) == set(SUBSTRATE)
    assert WireCodec.of(protocol, "x").kinds == plain.kinds


def test_two_kinds_of_one_name_are_no_dialect() -> None:
    class AnotherPing(Message, frozen=True, tag="PING"):
        role: ClassVar[Role] = Role.OTHER

    with pytest.raises(ProtocolBug, match="two kinds of message named PING"):
        WireCodec("ping", (PingMsg, AnotherPing))
    with pytest.raises(ProtocolBug, match="no messages"):
        WireCodec("ping", ())


# --- sizes ---------------------------------------------------------------------------------------


@MODES
def test_a_datagram_is_full_at_the_limit_and_larger_things_go_by_stream(
    keys: tuple[()],
) -> None:
    sizes: dict[Direction, int] = {}
    for size in range(900, 1300):
        frame = written(wire(1, *keys), PingMsg(1, body=bytes(size)), 2)
        sizes[frame.direction] = max(sizes.get(frame.direction, 0), len(frame.data))
        assert (len(frame.data) <= LARGEST_DATAGRAM) == (frame.direction is UDP)
        got = wire(2, *keys).read(frame.data, frame.direction)
        assert isinstance(got, Received)
    assert sizes[UDP] == LARGEST_DATAGRAM
    assert sizes[Direction.QUESTION] > LARGEST_DATAGRAM


@MODES
def test_what_no_stream_holds_is_not_sent(keys: tuple[()]) -> None:
    limits = Limits(transfer=5000)
    assert isinstance(wire(1, *keys, limits=limits).write(PingMsg(1, body=bytes(4800))), Frame)
    assert wire(1, *keys, limits=limits).write(PingMsg(1, body=bytes(5000))) is Reason.UNSENDABLE


@pytest.mark.parametrize(
    "message",
    [
        PingMsg(1 << 64),
        QueryMsg(Candidate(1, (("cpu", 10**30),))),
        QueryMsg(Candidate(1, (("\ud800", 1.0),))),
    ],
    ids=["number", "attribute", "text"],
)
def test_what_cannot_be_written_is_said_not_raised(message: Message) -> None:
    assert wire(1).write(message) is Reason.UNSENDABLE


def test_too_large_frames_are_refused_before_they_are_looked_at() -> None:
    receiver = wire(2, limits=Limits(transfer=3000))
    assert receiver.read(b"\xff" * (LARGEST_DATAGRAM + 1), UDP) is Reason.TOO_LARGE
    assert receiver.read(b"\xff" * (LARGEST_DATAGRAM + 1), Direction.ANSWER) is Reason.NOT_A_FRAME
    assert receiver.read(b"\xff" * 3001, Direction.ANSWER) is Reason.TOO_LARGE


def test_a_list_longer_than_a_view_is_refused() -> None:
    limits = Limits(view=10)
    entry = Entry(Candidate(1), 1, 1)
    dialect = WireCodec("one", (WelcomeMsg,))
    for count, kind in ((10, Received), (11, Reason)):
        frame = written(wire(1, dialect=dialect), WelcomeMsg((entry,) * count, 0, (), None))
        got = wire(2, dialect=dialect, limits=limits).read(frame.data, frame.direction)
        assert isinstance(got, kind)
    assert got is Reason.TOO_MANY


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data, reason",
    [
        (b"", Reason.NOT_A_FRAME),
        (b"H\x03\x00", Reason.NOT_A_FRAME),
        (b"G" + enveloped([])[1:], Reason.NOT_A_FRAME),
        (b"H\x01" + enveloped([])[2:], Reason.UNKNOWN_VERSION),
        (b"H\x03\x03" + enveloped([])[3:], Reason.UNKNOWN_MODE),
        (b"H\x03\x00" + group_tag("other") + b"x", Reason.OTHER_GROUP),
        (b"H\x03\x01" + group_tag(GROUP) + bytes(100), Reason.SEALED),
        (enveloped(["PING", 1, 0.0, [], b""])[:HEADER], Reason.MALFORMED),
        (enveloped(["PING", 1, 0.0, [], b""])[:-1], Reason.MALFORMED),
        (enveloped(["PING", 1, 0.0, [], b""]) + b"\x00", Reason.MALFORMED),
        (enveloped([])[:HEADER] + b"\x91" * 1000, Reason.MALFORMED),
        (enveloped([])[:-1] + b"\x91" * 1000 + b"\xc0", Reason.MALFORMED),
        (enveloped([])[:-1] + b"\x81" * 1000, Reason.MALFORMED),
        (enveloped([])[:-1] + b"\xdd\xff\xff\xff\xff", Reason.MALFORMED),
        (enveloped([])[:-1] + b"\xdf\xff\xff\xff\xff", Reason.MALFORMED),
        (enveloped([])[:-1] + b"\xc6\xff\xff\xff\xff", Reason.MALFORMED),
        (enveloped([], group="other"), Reason.OTHER_GROUP),
        (enveloped([], protocol="pong"), Reason.OTHER_PROTOCOL),
        (enveloped([], version=2), Reason.OTHER_PROTOCOL_VERSION),
        (enveloped([], sender="me"), Reason.MALFORMED),
        (enveloped([], sender=1 << 63), Reason.IMPLAUSIBLE_NUMBER),
        (enveloped([], recipient=1 << 63), Reason.IMPLAUSIBLE_NUMBER),
        (enveloped([], incarnation=0), Reason.IMPLAUSIBLE_NUMBER),
        (enveloped([], incarnation=MAX_NUMBER + 1), Reason.IMPLAUSIBLE_NUMBER),
        (enveloped([], number=0), Reason.IMPLAUSIBLE_NUMBER),
        (enveloped([], number=MAX_NUMBER + 1), Reason.IMPLAUSIBLE_NUMBER),
        (enveloped([], recipient=3), Reason.MISDIRECTED),
        (enveloped([], sender=2), Reason.ECHO),
        (enveloped([], sender=2, incarnation=2), Reason.DUPLICATE_NAME),
        (enveloped([]), Reason.MALFORMED),
        (enveloped(None), Reason.MALFORMED),
        (enveloped([1]), Reason.MALFORMED),
        (enveloped(["PONG", 1]), Reason.UNKNOWN_KIND),
        (enveloped(["PING"]), Reason.BAD_FIELDS),
        (enveloped(["PING", "one"]), Reason.BAD_FIELDS),
        (enveloped(["PING", 1]), Reason.BAD_FIELDS),
        (enveloped(["PING", 1, 0.0, [], b"", 1]), Reason.BAD_FIELDS),
        (enveloped(["PING", 1 << 63, 0.0, [], b""]), Reason.IMPLAUSIBLE_NUMBER),
        (enveloped(["PING", 1, math.nan, [], b""]), Reason.IMPLAUSIBLE_NUMBER),
        (enveloped(["PING", 1, math.inf, [], b""]), Reason.IMPLAUSIBLE_NUMBER),
        (enveloped(["PING", 1, 0.0, [1, 1 << 63], b""]), Reason.IMPLAUSIBLE_NUMBER),
        (enveloped(["PING", 1, 0.0, [], b""], extra=1), Reason.MALFORMED),
    ],
)
def test_each_thing_that_may_be_wrong_has_its_reason(data: bytes, reason: Reason) -> None:
    assert wire(2).read(data, UDP) is reason


def test_the_sample_that_the_refusals_are_made_from_is_read() -> None:
    data = enveloped(["PING", 1, 0.0, [], b""])
    assert wire(2).read(data, UDP) == Received(1, 1, 1, False, PingMsg(1), len(data))


def test_a_member_with_a_key_takes_nothing_that_is_not_sealed() -> None:
    frame = written(wire(1), PingMsg(1))
    assert wire(2, KEY).read(frame.data, UDP) is Reason.NOT_SEALED
    frame = written(wire(1, OTHER_KEY), PingMsg(1))
    assert wire(2, KEY).read(frame.data, UDP) is Reason.UNKNOWN_KEY
    assert wire(2).read(frame.data, UDP) is Reason.SEALED


@pytest.mark.parametrize("field", ["sender", "incarnation", "number", "payload"])
def test_an_envelope_is_read_whole(field: str) -> None:
    """Deep nesting anywhere is refused, not followed."""
    depth = 100_000
    nested = b"\x91" * depth + b"\xc0"
    parts = [msgspec.msgpack.encode(part) for part in (GROUP, "ping", 1, 1, 1, 1, 2, ["PING", 1])]
    parts[("sender", "incarnation", "number", None, "payload").index(field) + 3] = nested
    data = b"H\x03\x00" + group_tag(GROUP) + b"\x98" + b"".join(parts)
    assert wire(2).read(data, Direction.QUESTION) is Reason.MALFORMED


# --- the small things ----------------------------------------------------------------------------


def test_frames_are_numbered_within_a_life() -> None:
    sender, receiver = wire(1, incarnation=9), wire(2)
    got = [receiver.read(written(sender, PingMsg(k)).data, UDP) for k in range(3)]
    assert [each[1:3] for each in got if isinstance(each, Received)] == [(9, 1), (9, 2), (9, 3)]


def test_a_port_with_several_groups_can_sort_what_arrives() -> None:
    assert tag_of(written(wire(1, KEY), PingMsg(1)).data) == group_tag(GROUP)
    assert tag_of(written(wire(1, group="x"), PingMsg(1)).data) == group_tag("x")
    assert tag_of(b"Hustings") is not None
    assert tag_of(b"H\x01") is None
    assert tag_of(b"something else") is None


@pytest.mark.parametrize("label", ["", " a", "a\n", "a" * 65, "é" * 33, "\ud800"])
def test_a_label_that_has_no_place_is_refused(label: str) -> None:
    with pytest.raises(BadInput, match=r"^group .* does not do: 1 to 64 bytes"):
        wire(1, group=label)


def test_the_largest_labels_fit() -> None:
    label = "é" * 32
    frame = written(wire(1, KEY, group=label), PingMsg(1))
    assert isinstance(wire(2, KEY, group=label).read(frame.data, UDP), Received)


def test_a_wire_knows_what_it_can_tell() -> None:
    for me, incarnation in ((1 << 63, 1), (1, 0), (1, MAX_NUMBER + 1)):
        with pytest.raises(ProtocolBug, match="cannot be told"):
            wire(me, incarnation=incarnation)


def test_tags_of_the_catalogue_are_short() -> None:
    """The substrate reckons with at most 16 bytes for a kind's name."""
    assert max(len(kind_of(kind)) for kind in KINDS) <= 16
    assert PING.kinds == (PingMsg,)
