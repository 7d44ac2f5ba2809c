"""What tests do to packets between network namespaces; see `hustings.lab.plans.namespaces`."""

from __future__ import annotations

import fcntl
import random
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass

_SIOCSIFADDR = 0x8916


def add_ipv6(own: str) -> None:
    """Give the device in this process's namespace an IPv6 address as well."""
    number = socket.if_nametoindex("member")
    given = struct.pack("16sIi", socket.inet_pton(socket.AF_INET6, own), 64, number)
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control.fileno(), _SIOCSIFADDR, given)


@dataclass
class Weather:
    """What the network does to every packet."""

    loss: float = 0.0
    copies: float = 0.0
    delay: float = 0.0
    jitter: float = 0.0

    def ways(self, rng: random.Random, source: str, to: str, now: float) -> Sequence[float]:
        """For each copy of a packet, how long it is under way."""
        if self.loss and rng.random() < self.loss:
            return ()
        copies = 2 if self.copies and rng.random() < self.copies else 1
        return [self.delay + self.jitter * rng.random() for _ in range(copies)]
