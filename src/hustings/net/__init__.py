"""Runs members on real networks and real disks.

This package names no protocol. A program holds a `Member`. The member's `node` carries messages
between its election and the other members. The `runner` calls the election's handlers. Below them
are the `filter` that all traffic passes, the `wire` format and its `seal`, and the `transport` with
its sockets (`udp`, `tcp`). `storage` and `state_file` keep what a member must not forget.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hustings.net.addresses import Address, Endpoints, endpoints, parse_address, permit
    from hustings.net.filter import FrameFilter
    from hustings.net.keys import Key, new_key, read_key, write_key
    from hustings.net.limits import Counters, Limits, Reason
    from hustings.net.seal import KeyRing
    from hustings.net.state_file import StateFile
    from hustings.net.storage import NotPersisted, incarnation_by_clock
    from hustings.net.tcp import StreamDecoder, on_stream
    from hustings.net.wire import Direction, Frame, Received, Wire, WireCodec

# Loaded on first use: a member without a key or a state file need not load these modules.
_WHERE = {
    "Address": "addresses",
    "Counters": "limits",
    "WireCodec": "wire",
    "Direction": "wire",
    "StateFile": "state_file",
    "Endpoints": "addresses",
    "Frame": "wire",
    "FrameFilter": "filter",
    "Key": "keys",
    "KeyRing": "seal",
    "Limits": "limits",
    "NotPersisted": "storage",
    "Reason": "limits",
    "Received": "wire",
    "StreamDecoder": "tcp",
    "Wire": "wire",
    "endpoints": "addresses",
    "incarnation_by_clock": "storage",
    "new_key": "keys",
    "on_stream": "tcp",
    "parse_address": "addresses",
    "permit": "addresses",
    "read_key": "keys",
    "write_key": "keys",
}

__all__ = [
    "Address",
    "Counters",
    "Direction",
    "Endpoints",
    "Frame",
    "FrameFilter",
    "Key",
    "KeyRing",
    "Limits",
    "NotPersisted",
    "Reason",
    "Received",
    "StateFile",
    "StreamDecoder",
    "Wire",
    "WireCodec",
    "endpoints",
    "incarnation_by_clock",
    "new_key",
    "on_stream",
    "parse_address",
    "permit",
    "read_key",
    "write_key",
]


def __getattr__(name: str) -> object:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module 'hustings.net' has no attribute {name!r}")
    return getattr(import_module(f"hustings.net.{where}"), name)
