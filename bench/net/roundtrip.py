"""The round trip of a datagram between two processes on loopback, each with an event loop.

Members have the same cost: two wake-ups of a loop that was asleep, and four system calls. So both
get the time to fall asleep between two round trips.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import cast

HOST = "127.0.0.1"
SIZE = 200
WARM = 20
PAUSE_S = 0.005
PATIENCE_S = 30
Address = tuple[str, int]


class Echo(asyncio.DatagramProtocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # What asyncio makes is a transport, but not by inheritance.
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: Address) -> None:
        self.transport.sendto(data, addr)


class Ping(Echo):
    """Sends anew a while after the last one came back, until it has counted enough."""

    def __init__(self, count: int) -> None:
        self.left = WARM + count
        self.taken: list[float] = []
        self.done = asyncio.get_running_loop().create_future()

    def begin(self, to: Address) -> None:
        self.to = to
        self.send()

    def send(self) -> None:
        self.began = time.perf_counter()
        self.transport.sendto(bytes(SIZE), self.to)

    def datagram_received(self, data: bytes, addr: Address) -> None:
        self.taken.append(time.perf_counter() - self.began)
        self.left -= 1
        if self.left:
            asyncio.get_running_loop().call_later(PAUSE_S, self.send)
        elif not self.done.done():
            self.done.set_result(None)


async def echo(writing: int) -> None:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(Echo, local_addr=(HOST, 0))
    port = transport.get_extra_info("sockname")[1]
    os.write(writing, str(port).encode())
    await asyncio.sleep(PATIENCE_S)


async def ping(port: int, count: int) -> list[float]:
    loop = asyncio.get_running_loop()
    transport, pinger = await loop.create_datagram_endpoint(
        lambda: Ping(count), local_addr=(HOST, 0)
    )
    try:
        pinger.begin((HOST, port))
        await asyncio.wait_for(pinger.done, PATIENCE_S)
    finally:
        transport.close()
    return pinger.taken[WARM:]


def round_trips(count: int) -> list[float]:
    """Seconds of each of `count` round trips, after some to warm up."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE_S)
        try:
            asyncio.run(echo(writing))
        finally:
            os._exit(1)
    try:
        os.close(writing)
        return asyncio.run(ping(int(os.read(reading, 16)), count))
    finally:
        os.close(reading)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
