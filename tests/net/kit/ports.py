"""Port numbers that stay free: none of those that the kernel hands out to whoever asks for any."""

from __future__ import annotations

import socket
from contextlib import suppress
from random import SystemRandom

_LOWEST, _HIGHEST = 10_000, 30_000  # below the range from which Linux takes numbers by itself


def free_port() -> int:
    """A number that nobody uses, for datagrams and for streams, and nobody is given by chance."""
    draw = SystemRandom()
    for _ in range(100):
        number = draw.randrange(_LOWEST, _HIGHEST)
        with (
            suppress(OSError),
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
            socket.socket(socket.AF_INET, socket.SOCK_STREAM) as streams,
        ):
            datagrams.bind(("127.0.0.1", number))
            streams.bind(("127.0.0.1", number))
            return number
    raise AssertionError("no port is free")


def free_address() -> str:
    """An address on the loopback that nobody uses."""
    return f"127.0.0.1:{free_port()}"
