"""Anything that reaches a living member's host yields a message or a counted rejection.

Two members stand on real sockets. With every change hypothesis makes up 2,700 inputs, 300 for each
of nine ways into a host (27,000 more with `make soak`): noise, and frames put together anew under
anybody's name with any fields. Beside these there are 2,000 frames of a real group, damaged.
Afterwards the member still lives, no callback has failed, and each input has been counted.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hustings.core.messages import Message
from hustings.net.member import Member
from hustings.net.node import MemberNode
from hustings.net.tcp import on_stream
from hustings.net.wire import Direction, Frame, Wire
from tests.net.kit.crowd import Crowd, one_leader
from tests.net.kit.loops import run, until
from tests.net.kit.stranger import Tap
from tests.net.parts import KEY, messages

KINDS = ["le-s", "bully", "ring", "stable", "probabilistic"]
FEW, MANY = 300, 3_000
DAMAGED = 2_000
how_many = pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.soak)])


class Books:
    """How many messages and how many rejections a host has counted."""

    def __init__(self, host: MemberNode) -> None:
        self._host = host
        self.before = self.now()

    def now(self) -> tuple[int, int]:
        return sum(self._host.traffic.received.values()), self._host.filter.counters.total

    def grown(self) -> tuple[int, int]:
        (a, b), (c, d) = self.before, self.now()
        return c - a, d - b


def drawn(strategy: st.SearchStrategy[Any], seed: int, count: int) -> list[Any]:
    """Values of a strategy, always the same for one seed."""
    found: list[Any] = []

    @settings(
        max_examples=count,
        database=None,
        derandomize=True,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    rng = random.Random(seed)
    rng.shuffle(found)
    return found


def any_frames(host: MemberNode, strangers: list[int]) -> st.SearchStrategy[bytes]:
    """Frames that are well-formed down to the fields, which are anything, from anybody."""
    wire = host.filter.wire

    def written(who: int, life: int, skip: int, message: Message, to_me: bool) -> bytes:
        voice = Wire(wire.group, who, life, wire.codec, wire.ring, wire.limits)
        voice._number = skip
        made = voice.write(message, wire.me if to_me else None, Direction.DATAGRAM)
        return made.data if isinstance(made, Frame) else b""

    return st.builds(
        written,
        st.sampled_from([*strangers, wire.me]),
        st.one_of(st.integers(1, 5), st.integers(1, 1 << 53)),
        st.integers(0, 1 << 40),
        messages(wire.codec),
        st.booleans(),
    )


async def pair(crowd: Crowd) -> tuple[Member, Member]:
    await crowd.add_all(["a", "b"])
    await crowd.known(2)
    await crowd.agreed()
    a, b = crowd.members
    return a, b


def quiet_loop() -> list[dict[str, Any]]:
    """What the loop would have logged: callbacks that failed."""
    wrong: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: wrong.append(context))
    return wrong


def fuzz(
    protocol: str, count: int, feed: Callable[[MemberNode, bytes, int], None], **more: Any
) -> None:
    """Feed a living member; it lives on."""
    limits = {"rate": 1e6, "burst": 1_000_000}

    async def story() -> None:
        async with Crowd(protocol=protocol, limits=limits, **more) as crowd:
            a, b = await pair(crowd)
            wrong = quiet_loop()
            host = a.node
            frames = any_frames(host, [b.id, 7, -3, 1 << 62])
            inputs = drawn(st.one_of(st.binary(max_size=1300), frames), 1, count)
            assert len(inputs) >= count
            for number, data in enumerate(inputs):
                feed(host, data, number)
                if number % 100 == 0:
                    await asyncio.sleep(0)
            assert a.error is None, a.error
            assert not a.closed
            assert wrong == []

    run(story(), within=100)


@how_many
@pytest.mark.parametrize(
    "protocol, key", [("le-s", KEY), *((kind, None) for kind in KINDS)], ids=str
)
def test_datagrams(protocol: str, key: object, count: int) -> None:
    def feed(host: MemberNode, data: bytes, number: int) -> None:
        books = Books(host)
        host.datagram(data, ("192.0.2.9", 1 + number % 65_535))
        accepted, refused = books.grown()
        assert accepted + refused >= 1, data.hex()
        assert accepted <= 1
        assert host.runner._stopped is False, data.hex()

    fuzz(protocol, count, feed, key=key)


@how_many
@pytest.mark.parametrize("direction", list(Direction))
def test_frames_on_streams(direction: Direction, count: int) -> None:
    def feed(host: MemberNode, data: bytes, number: int) -> None:
        books = Books(host)
        taken = host.frame(data, ("192.0.2.9", 1 + number % 65_535), direction)
        accepted, refused = books.grown()
        assert accepted + refused >= 1, data.hex()
        assert host.runner._stopped is False, data.hex()
        assert taken or refused

    fuzz("probabilistic", count, feed)


def test_real_frames_damaged() -> None:
    """Recorded in a living group, then changed in up to three places: the group lives on."""

    async def story() -> None:
        async with Crowd(protocol="probabilistic") as crowd:
            a, b = await pair(crowd)
            tap = Tap(b)
            await b.elect()
            await until(lambda: len(tap.sent) > 30, "something is said")
            recorded = [data for _, data in tap.sent]
            wrong, rng = quiet_loop(), random.Random(1)
            for number in range(DAMAGED):
                data = bytearray(rng.choice(recorded))
                for _ in range(rng.randint(1, 3)):
                    at = rng.randrange(len(data))
                    data[at : at + rng.randrange(3)] = rng.randbytes(rng.randrange(3))
                books = Books(a.node)
                a.node.datagram(bytes(data), ("192.0.2.9", 9))
                assert sum(books.grown()) >= 1
                if number % 200 == 0:
                    await asyncio.sleep(0)
            assert (a.error, b.error, wrong) == (None, None, [])
            await until(lambda: one_leader([a, b]), "one leader", within=30)

    run(story())


@pytest.mark.parametrize("seed", range(3))
def test_bytes_on_real_streams(seed: int) -> None:
    """Whatever is written to a member over TCP, in whatever pieces: it hangs up and lives on."""

    async def story() -> None:
        async with Crowd(protocol="bully") as crowd:
            a, b = await pair(crowd)
            wrong, rng = quiet_loop(), random.Random(seed)
            frame = b.node.filter.outgoing(b.node.stack.membership.card(), a.id, Direction.QUESTION)
            assert frame is not None
            host, port = a.node.transport.endpoint
            for _ in range(40):
                noise = rng.randbytes(rng.choice([0, 1, 3, 4, 5, 60, 4000]))
                data = rng.choice([noise, on_stream(noise or b"x"), on_stream(frame.data) + noise])
                _, writer = await asyncio.open_connection(host, port)
                while data:
                    cut = rng.randint(1, len(data))
                    writer.write(data[:cut])
                    data = data[cut:]
                    await asyncio.sleep(0)
                writer.close()
            await until(lambda: one_leader([a, b]), "one leader")
            assert (a.error, wrong) == (None, [])

    run(story())


def test_the_inputs_are_worth_something() -> None:
    """Some of the made-up frames are taken for messages, or the tests above would show little."""

    async def story() -> None:
        async with Crowd(protocol="bully") as crowd:
            a, b = await pair(crowd)
            frames = any_frames(a.node, [b.id, 7])
            wire = a.node.filter.wire
            taken = [wire.read(data, Direction.DATAGRAM) for data in drawn(frames, 1, FEW)]
            read = [got for got in taken if not isinstance(got, str)]
            assert len(read) > FEW / 6
            assert len({type(got.message) for got in read}) > 5

    run(story())
