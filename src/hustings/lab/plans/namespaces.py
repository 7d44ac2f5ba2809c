"""Network namespaces of one process each, joined by a switch in this process: no tool, no root.

A member's process enters a namespace of its own, makes a TUN device there, gives it an address and
hands the device to the process with the switch. What the member sends comes out of it as IP
packets; the switch passes them on to the device of their destination, or not, or later, or twice,
as its laws say. So the kernels of both ends do all that they do on a real network.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import os
import random
import socket
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from ipaddress import IPv4Address
from typing import Protocol

from hustings.core.streams import Stream, derive
from hustings.sim.environment import Environment
from hustings.testing.surroundings import LinkLaws

NETWORK = "10.77.0"
MOST = 250  # members on one switch
MOST_UNDER_WAY = 100_000  # packets
_KEPT = 20_000  # packets of which it is kept how late they were passed on
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_SIOCSIFADDR, _SIOCSIFNETMASK, _SIOCSIFFLAGS, _SIOCSIFMTU = 0x8916, 0x891C, 0x8914, 0x8922
_IFF_UP, _IFF_RUNNING = 0x1, 0x40


def address(number: int) -> str:
    """The address of the member with this number."""
    return f"{NETWORK}.{number}"


def enter(own: str) -> int:
    """Go into a namespace of this process's own; the device behind `own`."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) and libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET):
        code = ctypes.get_errno()
        raise OSError(code, f"no network namespace: {os.strerror(code)}")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)  # it belongs where it is opened
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", b"member", _IFF_TUN | _IFF_NO_PI))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        _set(control, _SIOCSIFADDR, b"member", _inet(own))
        _set(control, _SIOCSIFNETMASK, b"member", _inet("255.255.255.0"))
        for name in (b"lo", b"member"):
            _set(control, _SIOCSIFFLAGS, name, struct.pack("H", _IFF_UP | _IFF_RUNNING))
    return device


def _inet(text: str) -> bytes:
    return struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(text))


def _set(control: socket.socket, what: int, name: bytes, value: bytes) -> None:
    fcntl.ioctl(control.fileno(), what, struct.pack("16s24s", name, value))


@cache
def obstacle() -> str:
    """Why there can be no namespaces here; nothing if there can."""
    tried = subprocess.run(
        [sys.executable, "-c", f"from {__name__} import enter; enter({address(1)!r})"],
        capture_output=True,
        text=True,
        check=False,
    )
    return tried.stderr.strip().rpartition("\n")[2] if tried.returncode else ""


class PacketLaws(Protocol):
    """What the network does to packets."""

    def ways(self, rng: random.Random, source: str, to: str, now: float) -> Sequence[float]:
        """For each copy of a packet, how long it is under way; nothing if the packet is lost."""


class EnvironmentLaws:
    """The laws of an environment; each link draws from a stream of its own."""

    def __init__(self, environment: Environment, numbers: Mapping[str, int], seed: int) -> None:
        """`numbers` are those of the members at each address."""
        self._laws = LinkLaws(environment)
        self._numbers, self._seed = numbers, seed
        self._streams: dict[tuple[int, int], Stream] = {}

    def ways(self, rng: random.Random, source: str, to: str, now: float) -> Sequence[float]:
        """For each copy of a packet, how long it is under way."""
        link = self._numbers.get(source, 0), self._numbers.get(to, 0)
        stream = self._streams.get(link)
        if stream is None:
            stream = self._streams[link] = Stream(derive(self._seed, "link", *link))
        laws = self._laws
        if laws.lost(stream, now, *link):
            return ()
        copies = 2 if laws.duplicate and stream.random() < laws.duplicate else 1
        return [laws.way(stream, now, *link) for _ in range(copies)]


class PassAll:
    """A network that passes everything on at once."""

    def ways(self, rng: random.Random, source: str, to: str, now: float) -> Sequence[float]:
        return (0.0,)


@dataclass
class Switch:
    """Passes IP packets between the devices of members."""

    seed: int = 0
    laws: PacketLaws = field(default_factory=PassAll)
    devices: dict[str, int] = field(default_factory=dict)
    cuts: set[tuple[str, str]] = field(default_factory=set)  # (from, to)
    traffic: dict[str, int] = field(default_factory=dict)  # bytes that left and that arrived
    late: deque[float] = field(default_factory=lambda: deque(maxlen=_KEPT))  # seconds
    passed: int = 0
    dropped: int = 0

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)
        self._later: list[tuple[float, int, str, bytes]] = []
        self._count = 0

    def plug(self, own: str, device: int) -> None:
        """A member's device."""
        os.set_blocking(device, False)
        self.unplug(own)
        self.devices[own] = device

    def unplug(self, own: str) -> None:
        """Its process is gone, and its namespace with it."""
        if own in self.devices:
            os.close(self.devices.pop(own))

    def cut(self, here: Iterable[str], there: Iterable[str], *, both: bool = True) -> None:
        """No packet goes from here to there any more; nor back, if it is for `both` ways."""
        far = list(there)
        for one in here:
            for other in far:
                self.cuts.add((one, other))
                if both:
                    self.cuts.add((other, one))

    def heal(self) -> None:
        """Undo all cuts."""
        self.cuts.clear()

    def heal_for(self, own: str) -> None:
        """Undo the cuts of one member."""
        self.cuts = {cut for cut in self.cuts if own not in cut}

    def read(self, own: str, now: float) -> None:
        """Take what a member has sent."""
        for _ in range(64):
            try:
                packet = os.read(self.devices[own], 65_536)
            except (BlockingIOError, OSError, KeyError):
                return
            if len(packet) >= 20 and packet[0] >> 4 == 4:
                self._forward(packet, now)

    def _forward(self, packet: bytes, now: float) -> None:
        source, to = (str(IPv4Address(packet[at : at + 4])) for at in (12, 16))
        if (source, to) in self.cuts or to not in self.devices:
            self.dropped += 1
            return
        self._count_bytes(source, packet)
        ways = self.laws.ways(self._rng, source, to, now)
        self.dropped += not ways
        for after in ways:
            if after and len(self._later) < MOST_UNDER_WAY:
                self._count += 1
                heapq.heappush(self._later, (now + after, self._count, to, packet))
            elif after:
                self.dropped += 1
            else:
                self._write(to, packet)

    def _write(self, to: str, packet: bytes) -> None:
        device = self.devices.get(to)
        if device is None:
            return
        try:
            os.write(device, packet)
            self.passed += 1
            self._count_bytes(to, packet)
        except OSError:
            self.dropped += 1  # its process has gone, or reads too slowly

    def _count_bytes(self, own: str, packet: bytes) -> None:
        self.traffic[own] = self.traffic.get(own, 0) + len(packet)

    def due(self, now: float) -> float | None:
        """Pass on what is due; seconds until there is more, if there is."""
        while self._later and self._later[0][0] <= now:
            due, _, to, packet = heapq.heappop(self._later)
            self.late.append(now - due)
            self._write(to, packet)
        return self._later[0][0] - now if self._later else None

    def close(self) -> None:
        """Let go of all devices."""
        for own in list(self.devices):
            self.unplug(own)
