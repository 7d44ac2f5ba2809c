"""What a forked child process does not inherit: memberships, sockets, locks.

A fork copies the memory of a process, and so its members; but a member is one process. So in the
child each member is told that it has none there, and its descriptors are replaced by the null
device. Sockets that stayed open in the child would hide the end of the parent from the others, and
would keep its port and its lock.

Law: the parent notices nothing. Nothing is sent from the child, and no event loop is touched there:
its selector is the parent's own, and removing a reader in the child would remove it in the parent.
A descriptor that is replaced only loses the child's hold on it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary, WeakSet

T = TypeVar("T")


class Forkable(Protocol):
    """Something that knows what to do in a forked child."""

    def forked(self) -> None:
        """This process is a forked child. Nothing may be sent, and no loop touched."""


_parts: WeakSet[Forkable] = WeakSet()
_held: WeakKeyDictionary[object, Callable[[Any], int]] = WeakKeyDictionary()


def tell_of_forks(part: Forkable) -> None:
    """Call `part.forked` in each forked child."""
    _parts.add(part)


def copy_in_children(part: Forkable) -> None:
    """A forked child goes on with its copy of this part, which holds nothing of the system."""
    _parts.discard(part)


def keep_from_children(owner: T, descriptor: Callable[[T], int]) -> None:
    """Let no forked child hold a descriptor of `owner`. `descriptor` tells it; -1: none is left.

    It must not be a method of `owner` itself, which would never be collected then.
    """
    _held[owner] = descriptor


def socket_of(writer: asyncio.StreamWriter) -> int:
    """The descriptor of a stream's socket."""
    found = writer.get_extra_info("socket")
    return -1 if found is None else int(found.fileno())


def _in_child() -> None:
    for part in list(_parts):
        with suppress(Exception):  # the others must be told all the same
            part.forked()
    _parts.clear()
    null = os.open(os.devnull, os.O_RDWR)
    try:
        for owner, descriptor in list(_held.items()):
            with suppress(Exception):
                number = descriptor(owner)
                if number >= 0:
                    os.dup2(null, number, inheritable=False)
    finally:
        _held.clear()
        os.close(null)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
