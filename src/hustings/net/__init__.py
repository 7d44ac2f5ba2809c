"""The real world: what members send each other over real networks, and keep on real disks.

It names no protocol. `gate` is what a member's traffic passes, in and out; below it are `wire`
(frames), `dialect` and `strict` (what is in them), `sealing` and `keys`, `replay`, `streams` and
`limits`; `memory` and `durable` keep what a member must not forget, `addresses` reads where members
are.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hustings.net.addresses import Address, Endpoints, endpoints, parse_address, permit
    from hustings.net.dialect import Dialect
    from hustings.net.durable import DurableState
    from hustings.net.gate import Gate
    from hustings.net.keys import Key, new_key, read_key, write_key
    from hustings.net.limits import Counters, Limits, Reason
    from hustings.net.memory import NotPersisted, life_by_clock
    from hustings.net.sealing import KeyRing
    from hustings.net.streams import Unstreamed, on_stream
    from hustings.net.wire import Direction, Frame, Received, Wire

# Found when they are asked for: a member without a key or a state file need not load these.
_WHERE = {
    "Address": "addresses",
    "Counters": "limits",
    "Dialect": "dialect",
    "Direction": "wire",
    "DurableState": "durable",
    "Endpoints": "addresses",
    "Frame": "wire",
    "Gate": "gate",
    "Key": "keys",
    "KeyRing": "sealing",
    "Limits": "limits",
    "NotPersisted": "memory",
    "Reason": "limits",
    "Received": "wire",
    "Unstreamed": "streams",
    "Wire": "wire",
    "endpoints": "addresses",
    "life_by_clock": "memory",
    "new_key": "keys",
    "on_stream": "streams",
    "parse_address": "addresses",
    "permit": "addresses",
    "read_key": "keys",
    "write_key": "keys",
}

__all__ = [
    "Address",
    "Counters",
    "Dialect",
    "Direction",
    "DurableState",
    "Endpoints",
    "Frame",
    "Gate",
    "Key",
    "KeyRing",
    "Limits",
    "NotPersisted",
    "Reason",
    "Received",
    "Unstreamed",
    "Wire",
    "endpoints",
    "life_by_clock",
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
