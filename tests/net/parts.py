"""What the tests of the network share: dialects of the whole catalogue, messages, members."""

from __future__ import annotations

import types
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st

from hustings.core.choice import HighestId
from hustings.core.election import Election
from hustings.core.messages import Message, Role
from hustings.layers.detector import heartbeat
from hustings.layers.detector.detector import Detector
from hustings.layers.detector.heartbeat import HeartbeatConfig, HeartbeatMsg, WatchMsg
from hustings.layers.detector.layer import DetectorLayer
from hustings.layers.gossip.layer import GossipConfig, with_gossip
from hustings.layers.gossip.messages import (
    GossipMsg,
    JoinMsg,
    LeadingMsg,
    LeaveMsg,
    PullMsg,
    WelcomeMsg,
)
from hustings.layers.lease import LeaseConfig, LeaseHeldMsg, LeaseLayer
from hustings.layers.multicast.messages import CASTS, CopyMsg, DigestMsg, SolicitMsg
from hustings.net.filter import FrameFilter
from hustings.net.keys import Key
from hustings.net.limits import Limits
from hustings.net.seal import KeyRing
from hustings.net.wire import Wire, WireCodec
from hustings.protocols.registry import CATALOGUE, classes

GROUP = "billing"
KEY = Key(bytes(range(32)))
OTHER_KEY = Key(bytes(range(1, 33)))

SUBSTRATE: tuple[type[Message], ...] = (
    *CASTS.values(),
    CopyMsg,
    DigestMsg,
    SolicitMsg,
    GossipMsg,
    LeadingMsg,
    WelcomeMsg,
    JoinMsg,
    PullMsg,
    LeaveMsg,
    HeartbeatMsg,
    WatchMsg,
    heartbeat.PingMsg,
    heartbeat.PongMsg,
    LeaseHeldMsg,
)


class PingMsg(Message, frozen=True, tag="PING"):
    """A message of the tests' own, with something of everything."""

    role: ClassVar[Role] = Role.OTHER
    number: int
    weight: float = 0.0
    ids: tuple[int, ...] = ()
    body: bytes = b""


PING = WireCodec("ping", (PingMsg,))


def whole(protocol: type[Election]) -> WireCodec:
    """The dialect of a protocol together with everything that it may be composed with."""
    kinds = dict.fromkeys((*protocol.messages, *SUBSTRATE))
    return WireCodec(protocol.about.name, tuple(kinds))


DIALECTS = [whole(protocol) for protocol in classes(CATALOGUE)]


def composed(protocol: type[Election]) -> list[Election]:
    """A protocol upon a stack and with a detector, each with a guard behind it."""

    def plain() -> Election:
        return protocol(protocol.Settings(), HighestId())

    stack = with_gossip(plain, GossipConfig())()
    watched = DetectorLayer(plain(), Detector(HeartbeatConfig()))
    return [plain(), LeaseLayer(stack, LeaseConfig()), LeaseLayer(watched, LeaseConfig())]


def wire(
    me: int,
    *keys: Key,
    dialect: WireCodec = PING,
    group: str = GROUP,
    incarnation: int = 1,
    limits: Limits | None = None,
) -> Wire:
    """A member's wire; sealed if it has keys."""
    return Wire(group, me, incarnation, dialect, KeyRing(keys) if keys else None, limits)


def gate(me: int, *keys: Key, **settings: Any) -> FrameFilter:
    """A member's gate."""
    return FrameFilter(wire(me, *keys, **settings))


INTEGERS = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.sampled_from([0, 1, -1, 1 << 53, (1 << 63) - 1, -(1 << 63)]),
)
PLAIN: dict[object, st.SearchStrategy[Any]] = {
    int: INTEGERS,
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    str: st.text(max_size=20),
    bytes: st.binary(max_size=40),
    type(None): st.none(),
}


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type."""
    if kind in PLAIN:
        return PLAIN[kind]
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return bounded(parts[0], *parts[1:])
    if origin in (Union, types.UnionType):
        return st.one_of([values(part) for part in parts])
    if origin is tuple and len(parts) == 2 and parts[1] is Ellipsis:
        return st.lists(values(parts[0]), max_size=4).map(tuple)
    if origin is tuple:
        return st.tuples(*(values(part) for part in parts))
    assert isinstance(kind, type), kind
    assert issubclass(kind, msgspec.Struct), kind
    hints = get_type_hints(kind, include_extras=True)
    fields = [values(hints[name]) for name in kind.__struct_fields__]
    return st.tuples(*fields).map(lambda drawn: kind(*drawn))


def bounded(kind: Any, *metas: msgspec.Meta) -> st.SearchStrategy[Any]:
    """Values of a field's type within its bounds."""
    meta = metas[-1]
    low, high = meta.ge, meta.le
    if low is None and high is None and kind in PLAIN:
        return PLAIN[kind]
    if kind is int:
        return st.integers(None if low is None else int(low), None if high is None else int(high))
    if kind is float:
        return st.floats(low, high, allow_nan=False, allow_infinity=False)
    part = get_args(kind)[0]
    return st.lists(values(part), min_size=meta.min_length or 0, max_size=meta.max_length).map(
        tuple
    )


def messages(dialect: WireCodec) -> st.SearchStrategy[Message]:
    """Messages of all kinds of a dialect."""
    return st.one_of([values(kind) for kind in dialect.kinds])
