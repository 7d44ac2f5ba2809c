"""A network in memory with receivers that write down what they hear: for tests of the network."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from hustings.net.transport import Endpoint
from hustings.net.wire import HEADER, Direction, group_tag
from hustings.testing.clock import VirtualLoop
from hustings.testing.memory_network import Conditions, MemoryNetwork, MemoryTransport

A, B, C = (("127.0.0.1", number) for number in (1, 2, 3))
TAG = group_tag("test")


def packet(number: int) -> bytes:
    """Something with the tag of the group in its place."""
    return b"H\x02\x00" + TAG + str(number).encode()


@dataclass
class Heard:
    """A receiver that writes down what it is told, and when."""

    loop: asyncio.AbstractEventLoop
    accepts: bool = True
    datagrams: list[tuple[float, int, Endpoint]] = field(default_factory=list)
    frames: list[tuple[float, bytes, Direction]] = field(default_factory=list)
    refusals: list[tuple[float, Endpoint]] = field(default_factory=list)

    def datagram(self, data: bytes, source: Endpoint) -> None:
        self.datagrams.append((round(self.loop.time(), 6), int(data[HEADER:]), source))

    def frame(self, data: bytes, source: Endpoint, direction: Direction) -> bool:
        self.frames.append((round(self.loop.time(), 6), data[HEADER:], direction))
        return self.accepts

    def head(self, data: bytes, source: Endpoint) -> bool:
        return self.accepts

    def refused(self, to: Endpoint) -> None:
        self.refusals.append((round(self.loop.time(), 6), to))

    @property
    def numbers(self) -> list[int]:
        return [number for _, number, _ in self.datagrams]


class Net:
    """A network with ports that listen."""

    def __init__(self, conditions: Conditions, seed: int = 1) -> None:
        self.loop = VirtualLoop()
        self.board = MemoryNetwork(self.loop, seed, conditions)
        self.ports: dict[Endpoint, MemoryTransport] = {}
        self.heard: dict[Endpoint, Heard] = {}

    def open(self, *endpoints: Endpoint) -> None:
        for endpoint in endpoints:
            self.ports[endpoint] = MemoryTransport(self.board, endpoint)
            self.heard[endpoint] = Heard(self.loop)
            self.ports[endpoint].attach(TAG, self.heard[endpoint])

    def send(self, source: Endpoint, to: Endpoint, count: int = 1) -> None:
        for number in range(count):
            self.ports[source].send(to, packet(number))

    def run(self, seconds: float = 1.0) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))

    def close(self) -> None:
        for port in self.ports.values():
            self.loop.run_until_complete(port.close())
        self.loop.close()
