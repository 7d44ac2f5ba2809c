"""The Linux calls the harness needs: a network of one's own, and death with one's parent."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import struct
from contextlib import suppress
from pathlib import Path

NEW_NETWORK, NEW_USER = 0x40000000, 0x10000000
DEATH_SIGNAL = 1
GET_FLAGS, SET_FLAGS, UP = 0x8913, 0x8914, 1
REQUEST = struct.Struct("16sh22x")
AHEAD = -10

libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent: int) -> None:
    """Ask for SIGKILL when the parent ends; if it has ended already, end here."""
    libc.prctl(DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def hurry(ahead: bool) -> None:
    """Run ahead of ordinary processes, or as one of them; where that is not permitted, do not."""
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, AHEAD if ahead else 0)


def own_network() -> bool:
    """Move this process into a new network with loopback up; false if the system refuses."""
    for flags in (NEW_NETWORK, NEW_NETWORK | NEW_USER):
        if libc.unshare(flags) == 0:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
                answer = fcntl.ioctl(handle, GET_FLAGS, REQUEST.pack(b"lo", 0))
                _, found = REQUEST.unpack(answer)
                fcntl.ioctl(handle, SET_FLAGS, REQUEST.pack(b"lo", found | UP))
            return True
    return False


def loopback_packets(text: str) -> int:
    """Packets received by `lo` according to /proc/net/dev: what is sent there, counted once."""
    for line in text.splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == "lo":
            return int(numbers.split()[1])
    raise ValueError("no line for lo")


def packets() -> int:
    return loopback_packets(Path("/proc/self/net/dev").read_text(encoding="ascii"))


def cpu_seconds(pid: int) -> float:
    """Processor time of all threads, which the scheduler counts in nanoseconds."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text(encoding="ascii").split()[0])
    return total / 1e9


def memory_megabytes(pid: int) -> tuple[float, float]:
    """Resident, and the part of it that no other process shares."""
    resident = private = 0
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
        name, _, rest = line.partition(":")
        if name == "Rss":
            resident += int(rest.split()[0])
        elif name in ("Private_Clean", "Private_Dirty"):
            private += int(rest.split()[0])
    return resident / 1024, private / 1024
