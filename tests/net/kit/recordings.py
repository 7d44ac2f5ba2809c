"""A stranger without the key that has recorded a group in memory and plays it back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Self
from unittest.mock import patch

from hustings.net.transport import Endpoint
from hustings.net.wire import Direction, group_tag
from hustings.testing import Group
from hustings.testing.memory_network import MemoryNetwork, MemoryTransport

STRANGER: Endpoint = ("127.0.0.1", 6666)


class Heard(NamedTuple):
    """A datagram that was on the network."""

    at: float
    source: Endpoint
    to: Endpoint
    data: bytes


class Recording:
    """All datagrams of a group's network, inside a with block."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self.heard: list[Heard] = []
        post = MemoryNetwork.post

        def noted(network: MemoryNetwork, sender: Any, to: Endpoint, data: bytes) -> None:
            if network is group.network:
                self.heard.append(Heard(network.loop.time(), sender.endpoint, to, data))
            post(network, sender, to, data)

        self._patch = patch.object(MemoryNetwork, "post", noted)

    def __enter__(self) -> Self:
        self._patch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.stop()

    def once(self) -> list[Heard]:
        """Each datagram once, though it may have gone to several members."""
        return list({each.data: each for each in self.heard}.values())


async def play_back(
    group: Group,
    heard: Iterable[Heard],
    to: Iterable[str],
    *,
    spoofed: bool = True,
    look: Callable[[], None] = lambda: None,
) -> int:
    """Send recorded datagrams to members, in their order and at their pace; how many there were.

    `spoofed`: with the recorded source addresses, and otherwise from the stranger's own.
    """
    victims = [group.network._ports[_endpoint(group, name)] for name in to]
    told = list(heard)
    began, first = group.now, told[0].at
    for each in told:
        wait = began + each.at - first - group.now
        if wait > 0:
            await asyncio.sleep(wait)
        for port in victims:
            port.arrive(each.data, each.source if spoofed else STRANGER)
        look()
    return len(told)


class Answerer:
    """Accepts streams at an address, and reads all that comes; it can answer nothing."""

    def __init__(self, group: Group, endpoint: Endpoint) -> None:
        self.port = MemoryTransport(group.network, endpoint)
        self.port.attach(group_tag("test"), self)
        self.frames = 0

    def datagram(self, data: bytes, source: Endpoint) -> None:
        self.frames += 1

    def frame(self, data: bytes, source: Endpoint, direction: Direction) -> bool:
        self.frames += 1
        return True

    def head(self, data: bytes, source: Endpoint) -> bool:
        return True

    def refused(self, to: Endpoint) -> None:
        pass


def _endpoint(group: Group, name: str) -> Endpoint:
    return group.member(name).node.transport.endpoint
