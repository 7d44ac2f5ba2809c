"""Members in processes and network namespaces of their own, forked from one process.

Run as `python -m hustings.lab.plans.member_process FD`. On the socket of that number each datagram
is an order in JSON, with the socket of the new process attached: the address of its namespace, what
to tell `join`, and the group's key. The new process first hands over the device of its namespace,
and the namespace itself, so that its kernel answers for it after it is killed. Then it tells, line
by line, whom it holds for the leader, until its socket is closed.

Law: no process here outlives the one that started it, however that one ends.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import Any

from hustings.core.errors import HustingsError
from hustings.joining import join
from hustings.lab.plans.namespaces import enter
from hustings.net.keys import Key
from hustings.net.member import Member

LONGEST_ORDER = 65_536
_DEATH_SIGNAL = 1  # of prctl
_SETTLED = 0.02  # seconds in which a process that was paused finds out what it missed


def die_with_parent(parent: int) -> None:
    """Get SIGKILL when the parent ends; if it has ended already, end here."""
    ctypes.CDLL(None, use_errno=True).prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def main(number: int) -> None:
    """Fork a process for each order."""
    die_with_parent(os.getppid())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one that gives orders
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no process waits to be asked for its end
    with socket.socket(fileno=number) as orders:
        while True:
            data, descriptors, _, _ = socket.recv_fds(orders, LONGEST_ORDER, 1)
            if not data:
                return
            me = os.getpid()
            if not os.fork():
                code = 1
                try:
                    die_with_parent(me)
                    orders.close()
                    with socket.socket(fileno=descriptors[0]) as wire:
                        _child(json.loads(data), wire, me)
                    code = 0
                finally:
                    os._exit(code)
            os.close(descriptors[0])


def _child(order: dict[str, Any], wire: socket.socket, parent: int) -> None:
    """All of one process's life."""
    try:
        device = enter(order["address"])
    except OSError as error:
        _say(wire, what="failed", why=str(error))
        return
    die_with_parent(parent)  # again, since a user namespace clears it
    namespace = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    socket.send_fds(wire, [_line(what="born", pid=os.getpid())], [device, namespace])
    os.close(device)
    os.close(namespace)
    asyncio.run(_live(order, wire))


def _line(**report: object) -> bytes:
    return json.dumps(report | {"at": time.monotonic()}).encode() + b"\n"


def _say(wire: socket.socket, **report: object) -> None:
    with suppress(OSError):  # whoever started this is gone, and so is this process soon
        wire.sendall(_line(**report))


async def _live(order: dict[str, Any], wire: socket.socket) -> None:
    given = dict(order["join"])
    key = Key(bytes.fromhex(order["key"]))
    try:
        member = await join(given.pop("group"), key=key, local=False, **given).open()
    except HustingsError as error:
        _say(wire, what="failed", why=str(error))
        return
    _say(wire, what="joined")
    watching = asyncio.create_task(_observe(member, wire))
    reader, loop = asyncio.StreamReader(), asyncio.get_running_loop()
    await loop.connect_accepted_socket(lambda: asyncio.StreamReaderProtocol(reader), wire.dup())
    wire.setblocking(True)  # reports are not lost: whoever reads them decides on the pace
    while await reader.readline():
        await asyncio.sleep(_SETTLED)
        _say(wire, what="awake")
    watching.cancel()
    await member.kill()


async def _observe(member: Member, wire: socket.socket) -> None:
    async for state in member.observe():
        leader = None if state.leader is None else state.leader.name
        _say(wire, what="state", leader=leader, leading=state.leading, term=state.term)
    _say(wire, what="failed", why=str(member.error or "it left"))


if __name__ == "__main__":
    main(int(sys.argv[1]))
