"""Streams of a port, over the loopback: who is let in, who makes room, what is given back."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from hustings.net import tcp
from hustings.net.addresses import Address
from hustings.net.limits import INCOMPLETE, Counters, Limits, Reason
from hustings.net.tcp import HEAD, Accepted, _oldest_of_most, on_stream
from hustings.net.transport import Endpoint
from hustings.net.udp import UdpTransport, open_udp
from hustings.net.wire import Direction
from tests.net.kit.loops import run, until
from tests.net.kit.ports import free_port

FRAME = b"H" + bytes(99)
Story = Callable[[UdpTransport, "Ears"], Coroutine[Any, Any, None]]


class Ears:
    """A member that accepts what it is told to."""

    def __init__(self) -> None:
        self.frames: list[tuple[bytes, str, Direction]] = []
        self.heads: list[bytes] = []
        self.accepts = self.goes_on = True

    def datagram(self, data: bytes, source: Endpoint) -> None:
        raise AssertionError("nobody sends datagrams here")

    def frame(self, data: bytes, source: Endpoint, direction: Direction) -> bool:
        self.frames.append((data, source[0], direction))
        return self.accepts

    def head(self, data: bytes, source: Endpoint) -> bool:
        self.heads.append(data)
        return self.goes_on

    def refused(self, to: Endpoint) -> None:
        raise AssertionError("nobody sends datagrams here")


def at_a_port(story: Story, **limits: Any) -> Counters:
    """Play a story at a port with ears, and see that all is given back."""
    counters = Counters()

    async def played() -> None:
        port = await open_udp(Address("127.0.0.1", 0), Limits.parse(limits), counters)
        ears = Ears()
        port.attach(b"anyt", ears)
        try:
            await story(port, ears)
        finally:
            await port.close()
        assert INCOMPLETE.taken == 0
        assert not port.connections._accepted
        assert not port.connections._opened

    run(played(), within=20.0)
    return counters


async def dialled(port: UdpTransport, host: str = "127.0.0.1") -> socket.socket:
    """A stream to a port, from one of this machine's own addresses."""
    stream = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    stream.setblocking(False)
    stream.bind((host, 0))
    await asyncio.get_running_loop().sock_connect(stream, port.endpoint)
    return stream


async def say(stream: socket.socket, data: bytes) -> None:
    with suppress(ConnectionError):
        await asyncio.get_running_loop().sock_sendall(stream, data)


async def hung_up(stream: socket.socket) -> bool:
    """Whether the far end has closed it, or does within a moment."""
    with suppress(TimeoutError):
        async with asyncio.timeout(0.3):
            try:
                return not await asyncio.get_running_loop().sock_recv(stream, 1)
            except ConnectionError:
                return True
    return False


def read(ears: Ears, count: int) -> bool:
    return len(ears.frames) == count


# Accepted


def test_frames_are_handed_over_one_by_one_and_larger_ones_after_a_good_one() -> None:
    async def story(port: UdpTransport, ears: Ears) -> None:
        large = b"H" + bytes(5000)
        with await dialled(port) as stream:
            await say(stream, on_stream(FRAME) + on_stream(FRAME + b"2"))
            await until(lambda: len(ears.frames) == 2, "both are read")
            assert ears.frames[0] == (FRAME, "127.0.0.1", Direction.QUESTION)
            await say(stream, on_stream(large))
            await until(lambda: len(ears.frames) == 3, "who is proven may send more")
            assert ears.frames[2][0] == large
        with await dialled(port) as other:
            await say(other, on_stream(large))
            assert await hung_up(other), "who is not may not"
        assert len(ears.frames) == 3

    assert at_a_port(story)[Reason.TOO_LARGE] == 1


def test_a_frame_that_is_not_accepted_ends_its_stream() -> None:
    async def story(port: UdpTransport, ears: Ears) -> None:
        ears.accepts = False
        with await dialled(port) as stream:
            await say(stream, on_stream(FRAME) + on_stream(FRAME))
            assert await hung_up(stream)
        ears.accepts, ears.goes_on = True, False
        with await dialled(port) as stream:
            await say(stream, on_stream(FRAME)[:80])
            assert await hung_up(stream), "its first bytes will not do"
        assert set(ears.heads) == {FRAME[:HEAD]}
        port.detach(b"anyt")
        with await dialled(port) as stream:
            await say(stream, on_stream(FRAME))
            assert await hung_up(stream), "nobody is there to read it"

    counters = at_a_port(story)
    assert counters.total == 0, "whoever reads frames counts them"


def test_a_stream_that_ends_within_a_frame_is_counted_and_one_between_two_is_not() -> None:
    async def story(port: UdpTransport, ears: Ears) -> None:
        with await dialled(port) as stream:
            await say(stream, on_stream(FRAME))
            await until(lambda: len(ears.frames) == 1, "it is read")
        with await dialled(port) as stream:
            await say(stream, on_stream(FRAME)[:50])
            await until(lambda: INCOMPLETE.taken == 50, "so many bytes are held")
        await until(lambda: INCOMPLETE.taken == 0, "and given back")

    assert at_a_port(story)[Reason.TRUNCATED] == 1


def test_a_frame_has_a_time_to_become_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "_FIRST_FRAME", 0.15)

    async def story(port: UdpTransport, ears: Ears) -> None:
        with await dialled(port) as silent, await dialled(port) as proven:
            await say(proven, on_stream(FRAME))
            assert await hung_up(silent)
            assert not await hung_up(proven), "between two frames there is time"
            await say(proven, on_stream(FRAME)[:50])
            await asyncio.sleep(0.05)
            await say(proven, on_stream(FRAME)[50:60])
            assert await hung_up(proven), "within one there is not"

    at_a_port(story)


def test_where_all_slots_are_taken_who_has_shown_nothing_makes_room() -> None:
    async def story(port: UdpTransport, ears: Ears) -> None:
        with await dialled(port) as proven, await dialled(port) as silent:
            await say(proven, on_stream(FRAME))
            await until(lambda: len(ears.frames) == 1, "one is proven")
            with await dialled(port) as third:
                assert await hung_up(silent)
                assert not await hung_up(proven)
                await say(third, on_stream(FRAME))
                await until(lambda: len(ears.frames) == 2, "both are proven")
                with await dialled(port) as fourth:
                    assert await hung_up(fourth), "nobody makes room for one of the same source"
                    assert not await hung_up(proven)

    assert at_a_port(story, connections=2)[Reason.CONNECTIONS] == 2


def test_of_many_that_come_at_once_only_as_many_as_there_are_slots_stay() -> None:
    async def story(port: UdpTransport, ears: Ears) -> None:
        streams = [socket.create_connection(port.endpoint) for _ in range(6)]
        for each in streams:
            each.setblocking(False)
        hung = [await hung_up(each) for each in streams[:4]]
        assert hung == [True] * 4, "the oldest make room"
        for each in streams[4:]:
            await say(each, on_stream(FRAME))
        await until(lambda: len(ears.frames) == 2, "the others are heard")
        for each in streams:
            each.close()

    assert at_a_port(story, connections=2)[Reason.CONNECTIONS] == 4


def test_a_source_with_most_slots_makes_room_for_another_its_oldest_first() -> None:
    async def story(port: UdpTransport, ears: Ears) -> None:
        streams = [await dialled(port) for _ in range(3)]
        for number, each in enumerate(streams):
            await say(each, on_stream(FRAME))
            await until(partial(read, ears, number + 1), "it is proven")
        with await dialled(port, "127.0.0.2") as other:
            await say(other, on_stream(FRAME))
            await until(lambda: len(ears.frames) == 4, "the other one is heard")
            assert await hung_up(streams[0])
            assert not await hung_up(streams[1])
        for each in streams:
            each.close()

    assert at_a_port(story, connections=3)[Reason.CONNECTIONS] == 1


def test_where_bytes_run_out_the_source_that_holds_most_gives_them_back() -> None:
    async def story(port: UdpTransport, ears: Ears) -> None:
        with await dialled(port) as big, await dialled(port, "127.0.0.2") as small:
            for each in (big, small):
                await say(each, on_stream(FRAME))
            await until(lambda: len(ears.frames) == 2, "both are proven")
            await say(big, on_stream(b"H" + bytes(1400))[:1300])
            await until(lambda: INCOMPLETE.taken == 1300, "the first holds most")
            await say(small, on_stream(b"H" + bytes(1000))[:900])
            await until(lambda: INCOMPLETE.taken == 900, "it had to make room")
            assert await hung_up(big)
            await say(small, on_stream(b"H" + bytes(1000))[900:])
            await until(lambda: len(ears.frames) == 3, "the other one gets through")
        assert INCOMPLETE.taken == 0

    counters = at_a_port(story, transfer=1500, incomplete=1500)
    assert counters[Reason.TRANSFER] == 1


@pytest.mark.parametrize("taken, said", [(1400, 900), (1500, 2)])
def test_who_takes_more_than_there_is_ends_itself(taken: int, said: int) -> None:
    async def story(port: UdpTransport, ears: Ears) -> None:
        INCOMPLETE.take(taken, 10**9)  # another port's
        try:
            with await dialled(port) as stream:
                await say(stream, on_stream(b"H" + bytes(1000))[:said])
                assert await hung_up(stream)
        finally:
            INCOMPLETE.give_back(taken)

    assert at_a_port(story, transfer=1500, incomplete=1500)[Reason.TRANSFER] == 1


def test_of_several_sources_the_one_with_most_and_of_its_streams_the_oldest() -> None:
    limits = Limits()
    streams: Any = {}
    for number, host in enumerate(("a", "b", "b", "c")):
        streams[number] = Accepted((host, number), limits)
    found: Any = _oldest_of_most(streams)
    assert found == 1
    streams[3].held = 9
    found = _oldest_of_most(streams, size_of=lambda each: each.held)
    assert found == 3


def test_a_kernel_that_gives_no_stream_is_asked_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tcp, "SHORTEST", 0.05)

    async def story(port: UdpTransport, ears: Ears) -> None:
        listener: Any = port.connections._listener

        class Exhausted:
            fileno = listener.fileno

            def accept(self) -> None:
                raise OSError(24, "too many open files")

        exhausted: Any = Exhausted()
        port.connections._listener = exhausted
        port.connections._incoming(exhausted)
        with await dialled(port) as stream:
            await asyncio.sleep(0.02)
            port.connections._listener = listener
            asyncio.get_running_loop().remove_reader(listener.fileno())
            port.connections._resume(exhausted)
            port.connections._resume(listener)
            await say(stream, on_stream(FRAME))
            await until(lambda: len(ears.frames) == 1, "it is served in the end")

    assert at_a_port(story)[Reason.CONNECTIONS] >= 1


# Opened


def test_a_transfer_shows_who_opens_it_and_then_writes_its_frame() -> None:
    async def story(port: UdpTransport, ears: Ears) -> None:
        port.connections.stream(port.endpoint, b"H" + bytes(3000), FRAME)
        port.connections.stream(port.endpoint, FRAME + b"alone")
        await until(lambda: len(ears.frames) == 3, "all frames are there")
        assert {len(frame) for frame, _, _ in ears.frames} == {100, 105, 3001}
        await until(lambda: not port.connections._outgoing, "slots are given back")
        assert port.connections._outgoing_bytes == 0
        port.connections.stream(("127.0.0.1", free_port()), FRAME)
        port.connections.stream(("nonsense", -1), FRAME)
        port.faults.cut([port.endpoint])
        port.connections.stream(port.endpoint, FRAME)
        await until(lambda: not port.connections._outgoing, "whatever comes of it")
        assert len(ears.frames) == 3

    assert at_a_port(story)[Reason.UNSENT] == 2


def test_so_many_are_under_way_at_a_time_and_so_many_to_one() -> None:
    async def story(port: UdpTransport, ears: Ears) -> None:
        there = port.connections
        for _ in range(40):
            there.stream(port.endpoint, FRAME)
        assert there._outgoing[port.endpoint] == 32
        assert there._outgoing_bytes == 32 * len(FRAME)
        for number in range(10):
            there.stream(("127.0.0.1", 1 + number), FRAME)
        assert there._outgoing.total() == 34
        await until(lambda: not there._outgoing, "they end")
        assert there._outgoing_bytes == 0
        there._outgoing_bytes = 32 * 1024 * 1024 - 100
        there.stream(port.endpoint, FRAME)
        there.stream(port.endpoint, FRAME)
        assert there._outgoing[port.endpoint] == 1
        there.knock(port.endpoint, lambda: None)
        assert there._outgoing[port.endpoint] == 2, "a knock holds no bytes"
        await until(lambda: not there._outgoing, "they end")
        there._outgoing_bytes = 0

    assert at_a_port(story, connections=34)[Reason.TRANSFER] == 8 + 8 + 1


def test_a_knock_says_only_that_nobody_is_there() -> None:
    async def story(port: UdpTransport, ears: Ears) -> None:
        refused: list[str] = []
        port.connections.knock(port.endpoint, lambda: refused.append("there"))
        port.connections.knock(("nonsense", -1), lambda: refused.append("nowhere"))
        port.connections.knock(("127.0.0.1", free_port()), lambda: refused.append("gone"))
        await until(lambda: not port.connections._outgoing, "all have ended")
        assert refused == ["gone"]
        port.faults.cut([("127.0.0.1", 1)])
        port.connections.knock(("127.0.0.1", 1), lambda: refused.append("cut"))
        await until(lambda: not port.connections._outgoing, "it has ended")
        assert refused == ["gone"]

    at_a_port(story)


def test_a_watch_is_opened_with_a_word_and_its_end_is_told() -> None:
    async def story(port: UdpTransport, ears: Ears) -> None:
        loop = asyncio.get_running_loop()
        gone: list[bool] = []
        far = socket.create_server(("127.0.0.1", 0))
        far.setblocking(False)
        watch = port.connections.watch(far.getsockname(), lambda: FRAME, gone.append, lambda: 0.0)
        stream, _ = await loop.sock_accept(far)
        assert await loop.sock_recv(stream, 1000) == on_stream(FRAME)
        assert stream.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR) >= 0
        assert gone == []
        far.close()
        stream.close()
        await until(lambda: gone, "nobody listens any more")
        assert gone[0] is True
        watch.cancel()
        await until(lambda: not port.connections._opened, "it has ended")
        port.faults.cut([("127.0.0.1", 1)])
        with pytest.raises(OSError, match="cut on purpose"):
            await port.connections._hold(("127.0.0.1", 1), lambda: None, 1.0)

    at_a_port(story)


def test_how_long_a_connection_lasted() -> None:
    async def story(port: UdpTransport, ears: Ears) -> None:
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as far:
            far.setblocking(False)
            held = loop.create_task(port.connections._hold(far.getsockname(), lambda: None, 1.0))
            stream, _ = await loop.sock_accept(far)
            await asyncio.sleep(0.2)
            assert not held.done()
            stream.close()
            assert 0.15 < await held < 5.0

    at_a_port(story)


def test_streams_are_kept_alive_and_hold_little_unread() -> None:
    async def story(port: UdpTransport, ears: Ears) -> None:
        listener = port.connections._listener
        assert listener is not None
        assert listener.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) <= 2 * 32_768
        assert not listener.getblocking()
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as stream:
            tcp._keep_alive(stream)
            assert stream.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30
            assert stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 10
            assert stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) == 3

    at_a_port(story)
