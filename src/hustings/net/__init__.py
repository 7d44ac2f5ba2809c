"""The real world: what members send each other over real networks, and keep on real disks.

It names no protocol. `gate` is what a member's traffic passes, in and out; below it are `wire`
(frames), `dialect` and `strict` (what is in them), `sealing` and `keys`, `replay`, `streams` and
`limits`; `durable` keeps what a member must not forget, `addresses` reads where members are.
"""

from hustings.net.addresses import Address, Endpoints, endpoints, parse_address, permit
from hustings.net.dialect import Dialect
from hustings.net.durable import DurableState, NotPersisted, life_by_clock
from hustings.net.gate import Gate
from hustings.net.keys import Key, new_key, read_key, write_key
from hustings.net.limits import Counters, Limits, Reason
from hustings.net.sealing import KeyRing
from hustings.net.streams import Unstreamed, on_stream
from hustings.net.wire import Direction, Frame, Received, Wire

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
