"""Anything that arrives yields a message or one counted rejection, and nothing else.

20,000 inputs with every change, a million with `make soak`: noise, noise behind a valid head, valid
frames that were damaged (clear and sealed), and envelopes of well-formed nonsense.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import cycle

import msgspec
import pytest

from hustings.core.choice import Candidate
from hustings.core.messages import Message, kind_of
from hustings.layers.detector.heartbeat import HeartbeatMsg
from hustings.layers.gossip.messages import (
    Entry,
    GossipMsg,
    JoinMsg,
    LeaveMsg,
    PullMsg,
    WelcomeMsg,
)
from hustings.layers.lease import LeaseHeldMsg
from hustings.layers.multicast.messages import CopyMsg, DigestMsg, ElectionCast
from hustings.net.filter import FrameFilter
from hustings.net.keys import Key
from hustings.net.limits import Limits, Reason
from hustings.net.tcp import StreamDecoder, on_stream
from hustings.net.wire import Direction, Frame, Received, group_tag
from hustings.protocols.probabilistic.messages import Call, FinalMsg, InitMsg, PreferMsg
from tests.net.parts import DIALECTS, GROUP, KEY, gate

DIALECT = next(dialect for dialect in DIALECTS if dialect.protocol == "probabilistic")
FAST = Limits(rate=1e6, burst=1_000_000, view=100)
WHO = Candidate(9, (("cpu", 2.5), ("disk", 1.0)))
CALL = Call(5, 1, 77, (3,))
SAMPLES: list[Message] = [
    GossipMsg((Entry(WHO, 1, 7), Entry(Candidate(2), 3, 9)), 4, (256, 300), 17.5),
    JoinMsg(Entry(WHO, 1, 0), to_all=True, asks=False),
    LeaveMsg(3),
    PullMsg(Entry(WHO, 1, 7, "192.0.2.1:7400 web-1")),
    WelcomeMsg((Entry(WHO, 1, 7),) * 50, 4, (256, 300), None, 900),
    InitMsg(CALL, 1, 2.5),
    PreferMsg(CALL, 2, WHO, Candidate(3), 0.5),
    FinalMsg(CALL, 1, WHO),
    ElectionCast(1, 2, b"body"),
    CopyMsg(1, 2, 3, 0.5, b"body"),
    DigestMsg(((1, 2, 3), (4, 5, 6))),
    DigestMsg(((1, 2, 3),) * (FAST.view + 1)),
    HeartbeatMsg(1, 2),
    LeaseHeldMsg(4, 5),
]
WAYS = list(Direction)
# Numbers and heads at which readers go wrong.
EDGES = [
    b"\x91",
    b"\xdd\xff\xff\xff\xff",
    b"\xdf\xff\xff\xff\xff",
    b"\xc6\xff\xff\xff\xff",
    b"\xc1",
]
EDGES += [
    b"\xcf" + b"\xff" * 8,
    b"\xcb\x7f\xf8" + bytes(6),
    b"\xd3\x80" + bytes(7),
    b"\xc7\x01\xff\x00",
]


def noise(rng: random.Random) -> bytes:
    return rng.randbytes(rng.choice([0, 1, 6, 7, 8, 40, 200, 1200, 1300]))


def headed(rng: random.Random) -> bytes:
    head = b"H\x03" + bytes((rng.randrange(2),)) + group_tag(GROUP)
    return head + (KEY.mark if rng.random() < 0.5 else b"") + noise(rng)


def damage(data: bytes, rng: random.Random) -> bytes:
    """One to three changes anywhere."""
    made = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(made) + 1)
        match rng.randrange(6):
            case 0 if at < len(made):
                made[at] ^= 1 << rng.randrange(8)
            case 1 if at < len(made):
                made[at] = rng.randrange(256)
            case 2:
                del made[at:]
            case 3:
                made[at:at] = rng.choice(EDGES) * rng.choice([1, 1, 1, 300])
            case 4:
                made[at : at + rng.randint(1, 9)] = rng.choice(EDGES)
            case _:
                begin = rng.randrange(len(made) + 1)
                made[at:at] = made[begin : begin + rng.randrange(20)]
    return bytes(made)


def thing(rng: random.Random, depth: int = 0) -> object:
    """Any value that msgpack knows."""
    simple: list[object] = [None, True, 0, -1, 2**63, 2**64 - 1, 0.5, float("nan"), "CALL", b"x"]
    if rng.random() < 0.3:
        return [7] * rng.choice([3, 120])
    if depth > 5 or rng.random() < 0.6:
        return rng.choice([*simple, kind_of(rng.choice(DIALECT.kinds))])
    parts = [thing(rng, depth + 1) for _ in range(rng.choice([0, 1, 3, 6, 120]) >> depth)]
    return parts if rng.random() < 0.8 else {str(place): part for place, part in enumerate(parts)}


def nonsense(rng: random.Random) -> bytes:
    """A proper envelope around a payload that is well-formed and nothing more."""
    plain: list[object] = msgspec.msgpack.decode(msgspec.msgpack.encode(rng.choice(SAMPLES)))
    for _ in range(rng.randint(0, 2)):
        plain[rng.randrange(len(plain))] = thing(rng)
    if rng.random() < 0.2:
        plain.insert(rng.randrange(len(plain) + 1), thing(rng))
    parts: list[object] = [
        GROUP,
        "probabilistic",
        1,
        rng.choice([1, 3]),
        1,
        rng.randint(1, 50),
        None,
    ]
    if rng.random() < 0.2:
        parts[rng.randrange(len(parts))] = thing(rng)
    return b"H\x03\x00" + group_tag(GROUP) + msgspec.msgpack.encode([*parts, plain])


class Fuzz:
    """One receiver, and what reached it."""

    def __init__(self, seed: int, *keys: Key) -> None:
        self.rng = random.Random(seed)
        self.sender = gate(1, *keys, dialect=DIALECT, limits=FAST)
        self.receiver: FrameFilter = gate(2, *keys, dialect=DIALECT, limits=FAST)
        self.accepted = 0
        self.fed = 0

    def damaged(self, rng: random.Random) -> bytes:
        frame = self.sender.outgoing(rng.choice(SAMPLES), rng.choice([None, 2, 3]))
        assert isinstance(frame, Frame)
        while (made := damage(frame.data, rng)) == frame.data:
            pass  # two changes that undo each other
        return made

    def feed(self, data: bytes) -> None:
        self.fed += 1  # one a second: the rate is not what is tried here
        before = self.receiver.counters.total
        got = self.receiver.incoming(data, self.rng.choice(WAYS), float(self.fed))
        if got is None:
            assert self.receiver.counters.total == before + 1, data
            return
        assert isinstance(got, Received)
        assert type(got.message) in DIALECT.kinds
        assert self.receiver.counters.total == before
        assert msgspec.msgpack.encode(got.message)  # it can be sent on
        self.accepted += 1

    def run(self, inputs: int) -> None:
        makers: list[Callable[[random.Random], bytes]] = [noise, headed, self.damaged]
        if self.receiver.wire.ring is None:
            makers.append(nonsense)
        for _, make in zip(range(inputs), cycle(makers), strict=False):
            self.feed(make(self.rng))
            if self.fed % 500 == 0:
                # Damage to a clear frame may claim a far later life, and then the sender's own
                # frames are old: all that followed would be refused for this one reason.
                for member in (1, 3):
                    self.receiver.forget(member)


CLEAR_REASONS = {
    Reason.TOO_LARGE,
    Reason.NOT_A_FRAME,
    Reason.UNKNOWN_VERSION,
    Reason.UNKNOWN_MODE,
    Reason.OTHER_GROUP,
    Reason.SEALED,
    Reason.MALFORMED,
    Reason.OTHER_PROTOCOL,
    Reason.UNKNOWN_KIND,
    Reason.BAD_FIELDS,
    Reason.IMPLAUSIBLE_NUMBER,
    Reason.TOO_MANY,
    Reason.MISDIRECTED,
    Reason.REPLAYED,
}
SEALED_REASONS = {Reason.NOT_SEALED, Reason.UNKNOWN_KEY, Reason.BAD_SEAL, Reason.NOT_A_FRAME}


def reached(fuzz: Fuzz) -> set[Reason]:
    return {reason for reason in Reason if fuzz.receiver.counters[reason]}


def check_clear(seed: int, inputs: int) -> None:
    fuzz = Fuzz(seed)
    fuzz.run(inputs)
    assert reached(fuzz) >= CLEAR_REASONS, CLEAR_REASONS - reached(fuzz)
    assert fuzz.accepted > inputs // 100  # some damage does no harm where there is no seal


def check_sealed(seed: int, inputs: int) -> None:
    fuzz = Fuzz(seed, KEY)
    fuzz.run(inputs)
    assert reached(fuzz) >= SEALED_REASONS
    assert fuzz.accepted == 0


def test_ten_thousand_inputs_without_a_key() -> None:
    check_clear(seed=1, inputs=10_000)


def test_ten_thousand_inputs_with_a_key() -> None:
    check_sealed(seed=2, inputs=10_000)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_a_million_inputs(seed: int) -> None:
    check_clear(100 + seed, 50_000)
    check_sealed(200 + seed, 50_000)


def test_a_stream_of_noise_ends_and_a_stream_of_frames_does_not() -> None:
    rng = random.Random(3)
    for _ in range(300):
        frames = [rng.randbytes(rng.randint(1, 300)) for _ in range(rng.randint(0, 5))]
        data = b"".join(map(on_stream, frames))
        stream, got = StreamDecoder(most=300), []
        while data:
            cut = rng.randint(1, 400)
            got += stream.feed(data[:cut])
            data = data[cut:]
        assert got == frames
        assert stream.end() is None
        assert stream.broken is None
    for _ in range(300):
        stream = StreamDecoder(most=300)
        for _ in range(20):
            stream.feed(rng.randbytes(rng.randint(0, 200)))
            assert stream.waiting <= 304
        assert stream.broken is Reason.TOO_LARGE
        assert stream.feed(on_stream(b"later")) == []


def test_a_stream_that_ends_within_a_frame_was_cut_short() -> None:
    whole = on_stream(b"frame")
    for cut in range(1, len(whole)):
        stream = StreamDecoder(most=100)
        assert stream.feed(whole[:cut]) == []
        assert stream.end() is Reason.TRUNCATED
    stream = StreamDecoder(most=100)
    assert stream.feed(on_stream(b"")) == []
    assert stream.broken is Reason.NOT_A_FRAME
