"""The edges of envelopes, keys and the gate: the last that is fine, the first that is not."""

from __future__ import annotations

import math
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest

from hustings.core.errors import BadInput, ProtocolBug
from hustings.core.messages import Message, Role
from hustings.net.control_messages import ProbeMsg
from hustings.net.filter import LEAP, FrameFilter
from hustings.net.keys import Key, _check, parse_key, read_key
from hustings.net.limits import Counters, Limits, Reason
from hustings.net.seal import MOST_KEYS, OVERHEAD, KeyRing
from hustings.net.validation import RELEASED, bounds
from hustings.net.wire import (
    MAX_INTEGER,
    MAX_NUMBER,
    MAX_TEXT,
    SIGNED,
    Direction,
    Frame,
    Received,
    Wire,
    WireCodec,
    check_label,
    flaw,
    group_tag,
)
from tests.net.parts import GROUP, KEY, OTHER_KEY, PING, PingMsg, gate, wire

UDP, QUESTION, ANSWER = Direction.DATAGRAM, Direction.QUESTION, Direction.ANSWER
TAG = group_tag(GROUP)


# The envelope and what is in it


def enveloped(**changes: object) -> bytes:
    fields: dict[str, object] = {
        "group": GROUP,
        "protocol": "ping",
        "version": 1,
        "sender": 1,
        "incarnation": 1,
        "number": 1,
        "recipient": 2,
        "payload": ["PING", 7, 0.0, [], b""],
    }
    return b"H\x03\x00" + TAG + msgspec.msgpack.encode(list((fields | changes).values()))


@pytest.mark.parametrize(
    "changes",
    [
        {"incarnation": MAX_NUMBER},
        {"number": MAX_NUMBER},
        {"sender": MAX_INTEGER - 1},
        {"sender": -MAX_INTEGER},
        {"recipient": None},
    ],
)
def test_the_last_numbers_that_are_fine(changes: dict[str, object]) -> None:
    got = wire(2).read(enveloped(**changes), UDP)
    assert isinstance(got, Received)
    assert got.to_all is ("recipient" in changes)


@pytest.mark.parametrize(
    "changes, reason",
    [
        ({"incarnation": MAX_NUMBER + 1}, Reason.IMPLAUSIBLE_NUMBER),
        ({"incarnation": 0}, Reason.IMPLAUSIBLE_NUMBER),
        ({"number": MAX_NUMBER + 1}, Reason.IMPLAUSIBLE_NUMBER),
        ({"number": 0}, Reason.IMPLAUSIBLE_NUMBER),
        ({"sender": MAX_INTEGER}, Reason.IMPLAUSIBLE_NUMBER),
        ({"recipient": MAX_INTEGER}, Reason.IMPLAUSIBLE_NUMBER),
        ({"recipient": 3}, Reason.MISDIRECTED),
        ({"recipient": MAX_INTEGER - 1}, Reason.MISDIRECTED),
        ({"recipient": -MAX_INTEGER}, Reason.MISDIRECTED),
        ({"sender": 2}, Reason.ECHO),
        ({"sender": 2, "incarnation": 2}, Reason.DUPLICATE_NAME),
        ({"version": 2}, Reason.OTHER_PROTOCOL_VERSION),
        ({"group": "x"}, Reason.OTHER_GROUP),
        ({"protocol": "x"}, Reason.OTHER_PROTOCOL),
        ({"payload": ["PONG", 7]}, Reason.UNKNOWN_KIND),
        ({"payload": ["PING", "seven", 0.0, [], b""]}, Reason.BAD_FIELDS),
        ({"payload": ["PING", MAX_INTEGER, 0.0, [], b""]}, Reason.IMPLAUSIBLE_NUMBER),
        ({"payload": ["PING", 1, math.nan, [], b""]}, Reason.IMPLAUSIBLE_NUMBER),
        ({"payload": ["PING", 1, 0.0, [1] * 5000, b""]}, Reason.TOO_MANY),
        ({"payload": ["PING", 1]}, Reason.BAD_FIELDS),
        ({"payload": []}, Reason.MALFORMED),
        ({"payload": 7}, Reason.MALFORMED),
    ],
)
def test_the_first_that_are_not(changes: dict[str, object], reason: Reason) -> None:
    assert wire(2).read(enveloped(**changes), QUESTION) is reason


def test_what_a_namesake_said_is_kept_while_it_can_be_read() -> None:
    mine = wire(2)
    data = enveloped(sender=2, incarnation=9, number=4)
    assert mine.read(data, UDP) is Reason.DUPLICATE_NAME
    assert mine.duplicate == Received(2, 9, 4, False, PingMsg(7), len(data))
    mine.read(enveloped(), UDP)
    assert mine.duplicate is not None, "what others say does not change it"


def test_what_a_namesake_said_is_forgotten_when_the_next_cannot_be_read() -> None:
    mine = wire(2)
    mine.read(enveloped(sender=2, incarnation=9), UDP)
    unread = enveloped(sender=2, incarnation=9, payload=["PONG"])
    assert mine.read(unread, UDP) is Reason.DUPLICATE_NAME
    assert mine.duplicate is None


@pytest.mark.parametrize(
    "me, incarnation, fine",
    [
        (1, 1, True),
        (1, MAX_NUMBER, True),
        (-MAX_INTEGER, 1, True),
        (MAX_INTEGER - 1, 1, True),
        (1, 0, False),
        (1, MAX_NUMBER + 1, False),
        (MAX_INTEGER, 1, False),
        (-MAX_INTEGER - 1, 1, False),
    ],
)
def test_who_can_be_told_on_a_wire(me: int, incarnation: int, fine: bool) -> None:
    if fine:
        assert Wire(GROUP, me, incarnation, PING).me == me
    else:
        with pytest.raises(ProtocolBug, match="cannot be told on a wire"):
            Wire(GROUP, me, incarnation, PING)


def test_a_life_has_so_many_frames_and_no_more() -> None:
    sender = wire(1)
    sender._number = MAX_NUMBER - 1
    assert isinstance(sender.write(PingMsg(1)), Frame)
    assert sender.write(PingMsg(1)) is Reason.UNSENDABLE


def test_an_answer_stays_an_answer_however_large_it_is() -> None:
    sender = wire(1)
    for direction in (QUESTION, ANSWER):
        frame = sender.write(PingMsg(1, body=bytes(5000)), 2, direction)
        assert isinstance(frame, Frame)
        assert frame.direction is direction
    small = sender.write(PingMsg(1), 2, ANSWER)
    assert isinstance(small, Frame)
    assert small.direction is ANSWER


@pytest.mark.parametrize("direction, largest", [(UDP, 1200), (QUESTION, 2000), (ANSWER, 2000)])
def test_a_frame_may_be_as_large_as_its_way_allows(direction: Direction, largest: int) -> None:
    reader = wire(2, limits=Limits(transfer=2000))
    assert reader.largest(direction) == largest
    assert reader.read(bytes(largest), direction) is Reason.NOT_A_FRAME
    assert reader.read(bytes(largest + 1), direction) is Reason.TOO_LARGE


def test_a_header_alone_is_a_frame_with_nothing_in_it() -> None:
    assert wire(2).read((b"H\x03\x00" + TAG)[:-1], UDP) is Reason.NOT_A_FRAME
    assert wire(2).read(b"H\x03\x00" + TAG, UDP) is Reason.MALFORMED


def test_a_frame_of_the_other_mode_of_seal_is_of_no_key_here() -> None:
    frame = wire(1, KEY).write(PingMsg(1), 2)
    assert isinstance(frame, Frame)
    signed = frame.data[:2] + bytes((SIGNED,)) + frame.data[3:]
    assert wire(2, KEY).read(signed, UDP) is Reason.UNKNOWN_KEY
    assert wire(2).read(signed, UDP) is Reason.SEALED


@pytest.mark.parametrize("label", ["x", "x" * 64, "ä" * 32])
def test_labels_that_do(label: str) -> None:
    check_label("group", label)


@pytest.mark.parametrize("label", ["", "x" * 65, "ä" * 33, " x", "x ", "a\nb", "\ud800"])
def test_labels_that_do_not(label: str) -> None:
    with pytest.raises(BadInput, match="1 to 64 bytes of printable text"):
        check_label("group", label)


def test_bytes_that_are_no_value_are_malformed() -> None:
    assert PING.reader(10)(b"\xc1") is Reason.MALFORMED
    assert PING.reader(10)(b"") is Reason.MALFORMED


def test_a_dialect_without_messages_or_with_two_of_a_name_is_none() -> None:
    with pytest.raises(ProtocolBug, match="mute has no messages"):
        WireCodec("mute", ())
    with pytest.raises(ProtocolBug, match="named PING"):
        WireCodec("twice", (PingMsg, PingMsg))
    with pytest.raises(BadInput, match="protocol ' ping' does not do"):
        WireCodec(" ping", (PingMsg,))
    dialect = WireCodec("ping", (PingMsg,), 3)
    assert (dialect.protocol, dialect.version, dialect.kinds) == ("ping", 3, (PingMsg,))


@pytest.mark.parametrize(
    "value, reason",
    [
        (MAX_INTEGER - 1, None),
        (MAX_INTEGER, Reason.IMPLAUSIBLE_NUMBER),
        (-MAX_INTEGER, None),
        (-MAX_INTEGER - 1, Reason.IMPLAUSIBLE_NUMBER),
        (math.inf, Reason.IMPLAUSIBLE_NUMBER),
        ("text", None),
        ("x" * MAX_TEXT, None),
        ("x" * (MAX_TEXT + 1), Reason.BAD_FIELDS),
        (["x" * (MAX_TEXT + 1)], Reason.BAD_FIELDS),
        ((1, 2, 3), None),
        ((1, 2, 3, 4), Reason.TOO_MANY),
        ({"a": MAX_INTEGER}, Reason.IMPLAUSIBLE_NUMBER),
        ({MAX_INTEGER: 1}, Reason.IMPLAUSIBLE_NUMBER),
        ([1, [math.nan]], Reason.IMPLAUSIBLE_NUMBER),
        (PingMsg(1, ids=(1, 2, 3, 4)), Reason.TOO_MANY),
        (PingMsg(1, weight=math.nan), Reason.IMPLAUSIBLE_NUMBER),
    ],
)
def test_what_no_member_would_say(value: object, reason: Reason | None) -> None:
    assert flaw(value, 3) is reason


# Keys and seals


def test_a_key_has_32_bytes() -> None:
    for size in (31, 33):
        with pytest.raises(BadInput, match=f"32 bytes, not {size}"):
            Key(bytes(size))


def test_a_key_file_whose_id_is_of_another_key_is_damaged() -> None:
    lines = KEY.text().splitlines()
    other = OTHER_KEY.text().splitlines()
    mixed = f"{lines[0]}\n{other[1]}\n{lines[2]}\n"
    data = f"{mixed}check {_check(mixed.encode())}\n".encode()
    with pytest.raises(BadInput, match="damaged"):
        parse_key(data, "it")


@pytest.mark.parametrize("mode", [0o610, 0o601, 0o640, 0o604])
def test_a_key_is_its_owners_alone(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "key"
    path.write_text(KEY.text())
    path.chmod(mode)
    with pytest.raises(BadInput, match=f"mode {mode:03o}"):
        read_key(path)
    path.chmod(0o600)
    assert read_key(path) == KEY


def test_a_ring_holds_eight_keys_and_one_of_them_again() -> None:
    keys = [Key(bytes([number]) * 32) for number in range(MOST_KEYS + 1)]
    ring = KeyRing(keys[:MOST_KEYS])
    ring.install(keys[0])
    with pytest.raises(BadInput, match="8 keys are installed"):
        ring.install(keys[-1])
    assert len(ring.ids) == MOST_KEYS


def test_a_ring_that_refuses_new_keys_keeps_the_old_ones() -> None:
    ring = KeyRing([KEY])
    many = [Key(bytes([number]) * 32) for number in range(MOST_KEYS + 1)]
    with pytest.raises(BadInput):
        ring.replace(many)
    with pytest.raises(BadInput, match="at least one key"):
        ring.replace([])
    assert (ring.ids, ring.in_use) == ((KEY.id,), KEY.id)
    assert ring.open(KeyRing([KEY]).seal(b"plain", b"bound"), b"bound") == b"plain"


def test_the_shortest_sealed_frame_holds_nothing() -> None:
    ring = KeyRing([KEY])
    sealed = ring.seal(b"", b"bound")
    assert len(sealed) == OVERHEAD
    assert ring.open(sealed, b"bound") == b""
    assert ring.open(sealed[:-1], b"bound") is Reason.BAD_SEAL
    assert ring.open(bytes(OVERHEAD), b"bound") is Reason.UNKNOWN_KEY
    assert ring.open(b"", b"bound") is Reason.BAD_SEAL


def test_what_is_bound_and_what_is_plain_are_told_apart_in_the_nonce(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.urandom", bytes)
    ring = KeyRing([KEY])
    assert ring.seal(b"bc", b"a")[4:28] != ring.seal(b"c", b"ab")[4:28]
    assert ring.seal(b"bc", b"a") == ring.seal(b"bc", b"a")


# The gate


def sent(sender: FrameFilter, number: int = 1) -> bytes:
    frame = sender.outgoing(PingMsg(number))
    assert frame is not None
    return frame.data


def test_what_was_refused_last_and_why_is_there_to_see() -> None:
    sender, receiver = gate(1), gate(2)
    data = sent(sender)
    got = receiver.incoming(data, UDP, 0.0)
    assert got is not None
    assert (receiver.refused, receiver.unheard) == (None, None)
    assert receiver.incoming(data, UDP, 0.0) is None
    assert (receiver.refused, receiver.unheard) == (Reason.REPLAYED, got)
    assert receiver.incoming(b"x", UDP, 0.0) is None
    assert (receiver.refused, receiver.unheard) == (Reason.NOT_A_FRAME, None)
    twin = gate(2, incarnation=7)
    assert receiver.incoming(sent(twin), UDP, 0.0) is None
    assert receiver.refused is Reason.DUPLICATE_NAME
    assert receiver.unheard is not None
    assert receiver.unheard.incarnation == 7
    assert receiver.incoming(b"x", UDP, 0.0) is None
    assert receiver.unheard is None, "it was somebody else"


def test_what_is_doubtful_is_handed_out_and_not_noted() -> None:
    sender, receiver = gate(1), gate(2)
    data = sent(sender)
    got = receiver.incoming(data, UDP, 0.0, doubtful=lambda got: True)
    assert got is not None
    assert receiver.incarnation(1) == 0
    assert receiver.incoming(data, UDP, 0.0, doubtful=lambda got: False) == got
    assert receiver.incarnation(1) == 1
    assert receiver.incoming(data, UDP, 0.0, doubtful=lambda got: False) is None


def test_a_probe_is_heard_again_but_within_its_senders_rate() -> None:
    dialect = WireCodec("ping", (PingMsg, ProbeMsg))
    sender = FrameFilter(wire(1, dialect=dialect))
    receiver = FrameFilter(wire(2, dialect=dialect, limits=Limits(rate=1.0, burst=2)))
    frame = sender.outgoing(ProbeMsg(7), 2)
    assert frame is not None
    heard = [receiver.incoming(frame.data, UDP, 0.0) is not None for _ in range(4)]
    assert heard == [True, True, True, False], "the first is new, and in the other rate"
    assert receiver.counters[Reason.RATE] == 1
    assert receiver.incarnation(1) == 1


def test_a_life_that_begins_next_month_is_refused_and_the_last_before_is_not() -> None:
    date = RELEASED + 1e6
    last = bounds(date, 1024).end
    receiver = FrameFilter(wire(2), date=lambda: date)
    assert receiver.incoming(sent(gate(1, incarnation=last + 1)), UDP, 0.0) is None
    assert receiver.refused is Reason.FUTURE_INCARNATION
    assert receiver.unheard is not None
    assert receiver.incoming(sent(gate(1, incarnation=last)), UDP, 0.0) is not None
    assert receiver.latest == (last, bounds(date, 1).end)


def test_a_gate_knows_who_leaps_who_lost_count_and_whom_it_forgot() -> None:
    sender, receiver = gate(1), gate(2)
    first = sent(sender)
    got = receiver.incoming(first, UDP, 0.0)
    assert got is not None
    assert not receiver.leaps(got)
    assert receiver.leaps(got._replace(number=LEAP + 2))
    for _ in range(4):
        assert not receiver.lost_count(got)
        receiver.incoming(first, UDP, 0.0)
    assert receiver.lost_count(got)
    receiver.confirm(got._replace(incarnation=9, number=3))
    assert receiver.incarnation(1) == 9
    assert not receiver.lost_count(got)
    receiver.forget(1)
    assert receiver.incarnation(1) == 0


class LedMsg(Message, frozen=True, tag="LED"):
    """Somebody leads in this term."""

    role: ClassVar[Role] = Role.COORDINATOR
    term: int


LEADING = WireCodec("leading", (LedMsg,))
DATE = RELEASED + 1e6


def leading(me: int, limits: Limits | None = None) -> FrameFilter:
    return FrameFilter(wire(me, dialect=LEADING, limits=limits), date=lambda: DATE)


def test_a_number_that_nobody_can_have_reached_is_refused_at_first_hand_and_at_second() -> None:
    sender, receiver = leading(1), leading(2)
    absurd = LedMsg(1 << 60)
    frame = sender.outgoing(absurd)
    assert frame is not None
    assert receiver.incoming(frame.data, UDP, 0.0) is None
    assert receiver.refused is Reason.IMPLAUSIBLE_NUMBER
    assert receiver.unheard is not None
    assert receiver.credible(3, absurd, 0.0) is False
    assert receiver.counters[Reason.IMPLAUSIBLE_NUMBER] == 2
    assert receiver.credible(3, LedMsg(5), 0.0) is True
    assert receiver.counters.total == 2


def test_what_a_member_said_itself_is_no_far_number() -> None:
    sender = leading(1)
    assert sender.number_bounds.known() is None
    sender.outgoing(LedMsg(5))
    assert sender.number_bounds.known() == 5


def test_whoever_is_refused_is_so_in_one_word() -> None:
    sender = leading(1)
    receiver = leading(2, Limits(rate=1.0, burst=1))
    frame = sender.outgoing(LedMsg(1))
    assert frame is not None
    got = receiver.wire.read(frame.data, UDP)
    assert isinstance(got, Received)
    assert receiver.admit(got, 0.0) is True
    assert receiver.admit(got, 0.0) is False  # played again
    assert receiver.admit(got._replace(number=2), 0.0) is False  # too soon
    absurd = got._replace(number=9, message=LedMsg(1 << 60))
    assert receiver.admit(absurd, 100.0) is False


def test_twice_as_many_senders_as_members_are_remembered() -> None:
    receiver = gate(9, limits=Limits(members=2, view=2))
    for me in range(1, 5):
        assert receiver.incoming(sent(gate(me)), UDP, 0.0) is not None
    assert receiver.counters[Reason.SENDERS_FORGOTTEN] == 0
    assert receiver.incoming(sent(gate(5)), UDP, 0.0) is not None
    assert receiver.counters[Reason.SENDERS_FORGOTTEN] == 1
    assert receiver.incarnation(1) == 0


def test_counters_are_the_ones_that_were_given() -> None:
    counters = Counters()
    receiver = FrameFilter(wire(2), counters)
    receiver.incoming(b"x", UDP, 0.0)
    assert counters[Reason.NOT_A_FRAME] == 1
