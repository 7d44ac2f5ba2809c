"""What streams cost: memory under attack, slots that are given back, honest ones that get through.

A member's memory is measured from outside, as its system accounts for it.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from hustings.core.messages import Message
from hustings.net.addresses import Address
from hustings.net.control_messages import HelloMsg, ProbeReplyMsg
from hustings.net.keys import Key, new_key, write_key
from hustings.net.limits import INCOMPLETE, Counters, Limits, Reason
from hustings.net.member import Member
from hustings.net.seal import KeyRing
from hustings.net.tcp import HEAD, StreamDecoder, on_stream, refusal_of
from hustings.net.transport import Endpoint
from hustings.net.udp import UdpTransport, open_udp
from hustings.net.wire import (
    ANY,
    CLEAR,
    MAGIC,
    MARK,
    SEALED,
    VERSION,
    Direction,
    Wire,
    WireCodec,
    group_tag,
)
from tests.net.kit.crowd import Crowd, dropped, endpoint
from tests.net.kit.loops import run, until
from tests.net.kit.stranger import forged
from tests.net.parts import KEY

MIB = 1024 * 1024
GROUP = "memory"
MEMBER = """
import asyncio, sys, hustings
async def main():
    key = sys.argv[2] or None
    async with hustings.join(sys.argv[1], name="a", key=key, insecure=key is None) as member:
        print(member.address, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
asyncio.run(main())
"""


# Memory of a process


class Process:
    """A member in a process of its own.

    Its C library takes each large buffer from the system and gives it back when it is freed. By
    default the library begins to keep such buffers after the first ones, and what it keeps looks
    like memory that a stream still holds.
    """

    def __init__(self, key: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", MEMBER, GROUP, key],
            env={**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        host, port = self._process.stdout.readline().strip().split(":")
        self.endpoint = (host, int(port))

    def mib(self, field: str) -> float:
        """What the system says about its memory: VmRSS now, VmHWM at most so far."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        found = re.search(rf"^{field}:\s+(\d+) kB", status, re.M)
        assert found is not None
        return int(found[1]) / 1024

    def close(self) -> None:
        assert self._process.stdin is not None
        with self._process:  # which closes its pipes and waits
            self._process.stdin.close()


@contextmanager
def member_process(key: str) -> Iterator[Process]:
    process = Process(key)
    try:
        yield process
    finally:
        process.close()


def head(key: Key | None) -> bytes:
    mode = bytes((VERSION, CLEAR if key is None else SEALED))
    return MAGIC + mode + group_tag(GROUP) + (b"" if key is None else key.mark)


def all_but_one_byte(begin: bytes, size: int = MIB) -> bytes:
    """A frame as long as a frame may be, of which the end never comes."""
    return (size.to_bytes(4, "big") + begin).ljust(size + 3, b"x")


def hello(key: Key | None, sender: int) -> bytes:
    """A small frame of somebody who has the key, or who needs none."""
    ring = None if key is None else KeyRing([key])
    wire = Wire(GROUP, sender, 1, WireCodec(f"le-s{MARK}{ANY}", (HelloMsg,)), ring)
    made = wire.write(HelloMsg(), None, Direction.QUESTION)
    assert not isinstance(made, str)
    return on_stream(made.data)


def attack(to: Endpoint, parts: list[bytes], count: int, stack: ExitStack) -> None:
    """So many streams, each of which says all of it, unless it is hung up on before."""
    for number in range(count):
        stream = stack.enter_context(socket.create_connection(to, timeout=5))
        stream.settimeout(0.3)  # of one that is not read any more
        with suppress(OSError):
            stream.sendall(parts[number % len(parts)])


LIMIT = 8  # MiB of incomplete frames
SLACK = 10  # MiB: sockets, tasks, and what the allocator keeps between frames


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("who", ["stranger", "stranger that knows the key's id", "clear", "member"])
def test_unfinished_frames_do_not_pin_memory(who: str, tmp_path: Path) -> None:
    """600 streams with all but the last byte of a mebibyte once pinned 2 GB, also once closed."""
    key, path = new_key(), tmp_path / "key"
    write_key(path, key)
    rest = all_but_one_byte(head(None if who == "clear" else key))
    match who:
        case "stranger":
            parts = [all_but_one_byte(head(new_key())), all_but_one_byte(b"GET / HTTP/1.1")]
        case "stranger that knows the key's id":
            parts = [rest, all_but_one_byte(head(key), 1200)]
        case "clear":
            parts = [hello(None, number) + rest for number in range(1, 101)]
        case _:
            parts = [hello(key, number) + rest for number in range(1, 101)]
    with member_process("" if who == "clear" else str(path)) as member:
        before = member.mib("VmRSS")
        with ExitStack() as opened:
            attack(member.endpoint, parts, 200 if len(parts) > 2 else 600, opened)
            most = LIMIT + SLACK if len(parts) > 2 else SLACK
            assert member.mib("VmHWM") - before < most
            if len(parts) > 2:  # else those who may speak at all would not have been tried
                assert member.mib("VmHWM") - before > LIMIT / 2
        deadline = time.monotonic() + 10
        while member.mib("VmRSS") - before > SLACK:
            assert time.monotonic() < deadline, "closed streams still hold memory"
            time.sleep(0.05)


# Judged by the first bytes


async def counted(member: Member, reason: str, times: int) -> None:
    """Wait for a reason to have applied so often, for less than a stream may take for a frame."""
    await until(
        lambda: dropped(member, reason) == times,
        lambda: f"{reason}: {member.metrics().drops}",
        within=2.0,
    )


def test_a_frame_is_judged_by_its_first_bytes() -> None:
    async def story() -> None:
        async with Crowd(key=KEY) as crowd:
            member = await crowd.add("a")
            tag = group_tag("crowd")
            for begin, reason in (
                (b"X" * HEAD, "not-a-frame"),
                (MAGIC + b"\x63\x01" + tag + KEY.mark, "unknown-version"),
                (MAGIC + bytes((VERSION, 3)) + tag + KEY.mark, "unknown-mode"),
                (MAGIC + bytes((VERSION, SEALED)) + b"what" + KEY.mark, "other-group"),
                (MAGIC + bytes((VERSION, CLEAR)) + tag + KEY.mark, "not-sealed"),
                (MAGIC + bytes((VERSION, SEALED)) + tag + b"what", "unknown-key"),
            ):
                before = dropped(member, reason)
                _, writer = await asyncio.open_connection(*endpoint(member))
                writer.write((1000).to_bytes(4, "big") + begin)  # and not a byte more
                await counted(member, reason, before + 1)
                writer.close()

    run(story())


def test_a_first_frame_is_no_longer_than_a_datagram() -> None:
    async def story() -> None:
        async with Crowd(key=KEY) as crowd:
            member = await crowd.add("a")
            for size, reason in ((1201, "too-large"), (1200, "truncated")):
                _, writer = await asyncio.open_connection(*endpoint(member))
                writer.write(size.to_bytes(4, "big"))
                await writer.drain()
                if reason == "truncated":
                    writer.close()
                await counted(member, reason, 1)
                writer.close()

    run(story())


def test_the_head_of_a_frame_that_was_written_is_never_refused() -> None:
    for ring in (None, KeyRing([KEY])):
        wire = Wire(GROUP, 1, 1, WireCodec(f"le-s{MARK}{ANY}", (HelloMsg,)), ring)
        made = wire.write(HelloMsg(), 2, Direction.QUESTION)
        assert not isinstance(made, str)
        assert refusal_of(made.data[:HEAD], wire) is None


def test_whoever_reads_what_is_missing_gets_each_frame_and_its_head_by_itself() -> None:
    frames = [b"a", b"b" * HEAD, b"c" * (HEAD + 1), b"d" * 300]
    data, stream, got, heads = b"".join(map(on_stream, frames)), StreamDecoder(300), [], []
    while data:
        cut = stream.missing
        assert cut > 0
        got += stream.feed(data[:cut])
        data = data[cut:]
        if stream.head is not None:
            heads.append(stream.head)
    assert got == frames
    assert heads == [b"c" * HEAD, b"d" * HEAD]
    assert stream.waiting == 0


# Honest ones


def test_a_transfer_gets_through_while_strangers_hold_all_slots_and_the_budget() -> None:
    """They come again and again, and one of them even has the key."""

    async def story() -> None:
        limits = {"connections": 8, "transfer": 100_000, "incomplete": 300_000}
        many = {f"{'ä' * 61}{number:03}": number / 7 for number in range(12)}  # 1.5 KB
        async with Crowd(protocol="bully", key=KEY, attributes=many, limits=limits) as crowd:
            a = await crowd.add("a")
            with ExitStack() as opened:

                async def besiege() -> None:
                    number = 0
                    while True:
                        number += 1
                        stream = opened.enter_context(socket.socket())
                        stream.setblocking(False)
                        loop = asyncio.get_running_loop()
                        with suppress(OSError):
                            await loop.sock_connect(stream, endpoint(a))
                            if number % 2:
                                made = forged(a, number).write(HelloMsg(), a.id, Direction.QUESTION)
                                assert not isinstance(made, str)
                                stream.send(on_stream(made.data) + (100_000).to_bytes(4, "big"))
                                stream.send(made.data[:HEAD] + bytes(50_000))
                        await asyncio.sleep(0.002)

                siege = asyncio.create_task(besiege())
                try:
                    await until(lambda: dropped(a, "connections") > 20, "all slots are taken")
                    await crowd.add("b")
                    await crowd.known(2)
                    # What b says of itself fits into no datagram.
                    assert {peer.name: peer.attributes for peer in a.members()}["b"] == many
                finally:
                    siege.cancel()
                    await asyncio.gather(siege, return_exceptions=True)

    run(story())


# Slots and bytes are given back


class Silent:
    """A receiver that accepts all."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def datagram(self, data: bytes, source: Endpoint) -> None:
        raise AssertionError("nobody sends one")

    def frame(self, data: bytes, source: Endpoint, direction: Direction) -> bool:
        self.frames.append(data)
        return True

    def head(self, data: bytes, source: Endpoint) -> bool:
        return True

    def refused(self, to: Endpoint) -> None:
        raise AssertionError("nobody is refused")


@contextmanager
def nobody_accepts() -> Iterator[Endpoint]:
    """Where connections come about, and nothing is read."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(64)
        yield deaf.getsockname()


def frame_of(tag: bytes, size: int = 20) -> bytes:
    return (MAGIC + bytes((VERSION, CLEAR)) + tag).ljust(size, b"-")


async def two_ports(limits: Limits) -> tuple[UdpTransport, UdpTransport, Silent, Counters]:
    counters, silent = Counters(), Silent()
    here = await open_udp(Address("127.0.0.1", 0), limits, counters)
    there = await open_udp(Address("127.0.0.1", 0), limits)
    there.attach(b"tag!", silent)
    return here, there, silent, counters


def test_knocks_and_transfers_give_their_slots_back_whatever_comes_of_them() -> None:
    async def story() -> None:
        here, there, silent, counters = await two_ports(Limits(connections=2))
        gone = await open_udp(Address("127.0.0.1", 0))
        nobody = gone.endpoint
        await gone.close()
        refusals: list[Endpoint] = []

        async def idle() -> None:
            await until(lambda: not here.connections._outgoing, "nothing is under way")

        try:
            for to in (there.endpoint, nobody, ("256.0.0.1", 1), ("127.0.0.1", 70_000)):
                for _ in range(6):
                    here.knock(to, partial(refusals.append, to))
                    here.knock(to, partial(refusals.append, to))
                    await idle()
                    here.stream(to, frame_of(b"tag!"))
                    await idle()
            assert refusals == [nobody] * 12
            here.faults.cut([there.endpoint])
            for _ in range(3):
                here.knock(there.endpoint, lambda: refusals.append(("", 0)))
                here.stream(there.endpoint, frame_of(b"tag!"))
                await idle()
            here.faults.heal()
            assert counters[Reason.TRANSFER] == 0
            before = len(silent.frames)
            here.stream(there.endpoint, frame_of(b"tag!", 5000), frame_of(b"tag!"))
            await until(lambda: len(silent.frames) == before + 2, "a transfer gets through")
        finally:
            await here.close()
            await there.close()

    run(story())


def test_a_knock_takes_a_slot_and_no_more_are_taken_than_there_are() -> None:
    async def story() -> None:
        here, there, _, counters = await two_ports(Limits(connections=2))
        try:
            for _ in range(5):
                here.knock(there.endpoint, lambda: None)
            assert here.connections._outgoing.total() == 2
            here.stream(there.endpoint, frame_of(b"tag!"))
            assert counters[Reason.TRANSFER] == 1
        finally:
            await here.close()
            await there.close()
        assert not here.connections._outgoing

    run(story())


def test_one_that_does_not_read_holds_few_transfers_and_few_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hustings.net.tcp._OUTGOING", 30 * MIB)

    async def story() -> None:
        here, there, _, counters = await two_ports(Limits(transfer=16 * MIB, incomplete=16 * MIB))
        large = bytes(16 * MIB)
        try:
            with nobody_accepts() as deaf:
                for _ in range(40):
                    here.stream(deaf, frame_of(b"tag!"))
                assert counters[Reason.TRANSFER] == 8
                await until(lambda: not here.connections._outgoing, "all are sent")
                here.stream(deaf, large)
                here.stream(deaf, large)
                assert counters[Reason.TRANSFER] == 9
        finally:
            await here.close()
            await there.close()
        assert here.connections._outgoing_bytes == 0

    run(story())


@pytest.mark.parametrize("ends", ["by itself", "too large", "refused", "evicted", "with the port"])
def test_what_a_stream_held_is_given_back(ends: str) -> None:
    async def story() -> None:
        taken = INCOMPLETE.taken
        port = await open_udp(Address("127.0.0.1", 0), Limits(connections=1))
        port.attach(b"tag!", Silent())
        reader, writer = await asyncio.open_connection(*port.endpoint)
        try:
            writer.write(on_stream(frame_of(b"tag!", 100)))
            writer.write(on_stream(frame_of(b"tag!", 50_000))[:40_000])
            await until(lambda: INCOMPLETE.taken == taken + 40_000, "it is accounted for")
            match ends:
                case "by itself":
                    writer.close()
                case "too large":
                    writer.write(bytes(10_004) + b"\xff\xff\xff\xff")
                case "refused":
                    port.detach(b"tag!")
                    writer.write(bytes(10_004))
                case "evicted":
                    for accepted in port.connections._accepted.values():
                        accepted.proven = False
                    _, other = await asyncio.open_connection(*port.endpoint)
                    await until(reader.at_eof, "it is hung up on")
                    other.close()
            if ends != "with the port":
                await until(lambda: INCOMPLETE.taken == taken, lambda: f"{INCOMPLETE.taken}")
        finally:
            writer.close()
            await port.close()
        assert INCOMPLETE.taken == taken

    run(story())


def test_an_answer_on_a_connection_that_is_only_watched_ends_it() -> None:
    """Nothing is ever answered there: whoever does would only keep its watcher busy."""

    async def story() -> None:
        port = await open_udp(Address("127.0.0.1", 0))
        with socket.socket() as talker:
            talker.bind(("127.0.0.1", 0))
            talker.listen(4)
            talker.setblocking(False)
            loop = asyncio.get_running_loop()
            watch = port.watch(talker.getsockname(), lambda: None, lambda _: None, lambda: 60.0)
            try:
                stream, _ = await loop.sock_accept(talker)
                with stream:
                    await loop.sock_sendall(stream, b"news")
                    async with asyncio.timeout(3):
                        with suppress(ConnectionError):
                            assert await loop.sock_recv(stream, 1) == b""
            finally:
                watch.cancel()
                await port.close()

    run(story())


def test_one_source_with_all_slots_gives_way_to_another() -> None:
    async def story() -> None:
        port = await open_udp(Address("127.0.0.1", 0), Limits(connections=4))
        silent = Silent()
        port.attach(b"tag!", silent)
        with ExitStack() as opened:
            loop = asyncio.get_running_loop()

            async def connect(source: str) -> socket.socket:
                stream = opened.enter_context(socket.socket())
                stream.setblocking(False)
                stream.bind((source, 0))
                await loop.sock_connect(stream, port.endpoint)
                with suppress(ConnectionError):
                    await loop.sock_sendall(stream, on_stream(frame_of(b"tag!")))
                return stream

            try:
                streams = [await connect("127.0.0.1") for _ in range(4)]
                await until(lambda: len(silent.frames) == 4, "all have shown who they are")
                await connect("127.0.0.2")
                await until(lambda: len(silent.frames) == 5, "another source gets through")
                with suppress(ConnectionError):
                    assert await loop.sock_recv(streams[0], 1) == b""
                await connect("127.0.0.1")
                await until(lambda: len(port.connections._accepted) == 4, "no more than four")
                hosts = [each.host for each in port.connections._accepted.values()]
                assert "127.0.0.2" in hosts
            finally:
                await port.close()

    run(story())


def test_a_present_message_is_small_enough_to_open_a_stream() -> None:
    """Whatever opens a stream fits into the first frame's limit."""
    messages: list[Message] = [HelloMsg(), ProbeReplyMsg((1 << 63) - 1)]
    wire = Wire("g" * 64, (1 << 63) - 1, 1 << 50, WireCodec("p" * 64, (HelloMsg, ProbeReplyMsg)))
    wire.ring = KeyRing([KEY])
    for message in messages:
        made = wire.write(message, (1 << 63) - 1, Direction.QUESTION)
        assert not isinstance(made, str)
        assert len(made.data) < 512
