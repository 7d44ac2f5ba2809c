"""How an election becomes a member: with membership, multicast, a detector and leadership.

GossipLayer                who is there and where (gossip); multicast by the network or by epidemics
  (voting)                 voting members, if the group is its own guard
    LeaseLayer             asks the guard, if there is one: the parts inside only nominate
      LeadershipLayer      transfer, resignation, observers, return to the preferred member
        DetectorLayer      a failure detector, unless the election announces itself all the time
          the election
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Literal

import msgspec

from hustings.core.choice import Choice
from hustings.core.config import Config
from hustings.core.durations import is_duration, parse_duration
from hustings.core.election import Election
from hustings.core.errors import BadInput
from hustings.core.messages import Message
from hustings.layers.detector.detector import Detector
from hustings.layers.detector.heartbeat import HeartbeatConfig
from hustings.layers.detector.layer import DetectorLayer
from hustings.layers.detector.registry import DetectorKind, find_detector
from hustings.layers.gossip.layer import Codec, GossipConfig, GossipLayer
from hustings.layers.gossip.membership import Membership
from hustings.layers.leadership.layer import LeadershipConfig, LeadershipLayer
from hustings.layers.leadership.standing import ByStanding, accepts
from hustings.layers.measurement import (
    WORST,
    MeasureConfig,
    Measuring,
    check_ranked,
    measure_config,
)
from hustings.layers.multicast.bimodal import Bimodal
from hustings.net.addresses import Address, parse_address
from hustings.net.control_messages import CONTROL_MESSAGES
from hustings.net.limits import Limits
from hustings.net.validation import flaw_of_candidates
from hustings.net.wire import WireCodec

if TYPE_CHECKING:
    from hustings.layers.lease import LeaseConfig, LeaseLayer

    Voting = Callable[[LeaseLayer], Election]

DELTA = 0.05  # seconds that a message takes at most, unless settings give another bound
_ROOM = 1000  # bytes of entries in one gossip message; with envelope and seal it fits a datagram
_SPREAD = 4  # members to which each member forwards a multicast: 98 % have it before any repair
_JOIN_WAIT = 1.0  # seconds, at least, that a joining member waits for an answer
_MINIMA = 64  # minima for the estimate of the size, where views are partial: an error of one eighth
_WINDOW = 8  # times T_3: within it a member asks for the next round of a failed election
LEASE = 5.0  # seconds for which a guard confirms a leader

Multicast = Literal["world", "bimodal", "gossip"]
Settings = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Design:
    """What a member is made of, as its owner wants it."""

    kind: type[Election]
    choice: Choice
    settings: Settings = field(default_factory=dict)
    detector: DetectorKind = "accrual"
    detector_settings: Settings = field(default_factory=dict)
    gossip_settings: Settings = field(default_factory=dict)
    leadership_settings: Settings = field(default_factory=dict)
    multicast: Multicast = "world"
    reaches_all: bool = False  # the network multicasts: also to members that are not in view
    preempt: bool = False  # a better member takes over, as in the paper of the protocol
    preempt_after: str | float | None = None  # how long a better member must be up first
    observer: bool = False
    limits: Limits = field(default_factory=Limits)
    measure: str | Settings | None = None  # what members measure themselves; they are ranked by it
    lease: Settings | None = None  # settings of the lease; None: there is no guard
    voting: Voting | None = None  # set if the group is its own guard
    guard: str = ""  # the kind of guard
    label: str = ""  # the label of its frames, if that is more than the election's name

    def with_measured(self, attributes: Mapping[str, float]) -> Mapping[str, float]:
        """The attributes that a member begins with, before it has measured anything."""
        if self.measure is None or self.observer:
            return attributes
        what = self.measure if isinstance(self.measure, str) else self.measure.get("what", "loss")
        return {str(what): WORST, **attributes}

    def check_attributes(self, config: Config, member: str, given: Collection[str]) -> None:
        """Refuse a member without an attribute that the settings name. An observer needs none."""
        lacking = [] if self.observer else [n for n in config.attributes_needed if n not in given]
        if lacking:
            raise BadInput(f"{member!r} lacks the attribute {lacking[0]!r}: the settings name it")


@dataclass(frozen=True, slots=True)
class Configured:
    """All settings, read and checked."""

    election: Config
    detector: HeartbeatConfig | None
    stack: GossipConfig
    leadership: LeadershipConfig
    steady: float  # seconds for which a member must have led before a campaign begins
    lease: LeaseConfig | None
    measure: MeasureConfig | None = None

    @property
    def join_wait(self) -> float:
        """Seconds to wait for an answer from the seeds."""
        return _wait(self.election.delta)

    @property
    def pause(self) -> float:
        """Seconds: a member that did not run for longer first distrusts itself."""
        return self.leadership.unnoticed_stall

    @property
    def warnings(self) -> list[str]:
        """Sentences about settings that work and have consequences."""
        parts = [self.election, self.detector, self.stack, self.leadership]
        return [each for part in parts if part is not None for each in part.warnings()]


@dataclass(frozen=True, slots=True)
class Composed:
    """One member's election, ready to run."""

    stack: GossipLayer
    leadership: LeadershipLayer
    detector: Detector | None
    lease_layer: LeaseLayer | None
    codec: WireCodec
    measuring: Measuring | None = None


def _wait(delta: float) -> float:
    return max(_JOIN_WAIT, 10 * delta)


def configure(design: Design) -> Configured:
    """Read all settings; report everything that is wrong at once."""
    settings = in_seconds(design.settings)
    delta = Config.parse({"delta": settings.get("delta", DELTA)}).delta
    stack = _stack(design, delta)
    usual = {**design.kind.Settings.for_network(delta, settings), **_upon(design, stack)}
    election = design.kind.Settings.parse({**usual, **settings})
    detector = None
    kind = find_detector(design.detector)
    if stack.partial and design.detector_settings:
        raise BadInput(
            "where views are partial, gossip is the detector: set T_gossip and T_fail among "
            "gossip_settings instead"
        )
    if stack.partial:
        pass
    elif not design.kind.assumptions.announces:
        detector = _detector(kind, design.detector_settings, election)
    elif design.detector_settings:
        raise BadInput(
            f"{design.kind.about.name} announces its leader all the time and has no detector: "
            "set T_A and T_L instead"
        )
    leadership: dict[str, object] = {"delta": delta, "membership_wait": _wait(delta)}
    if stack.partial:
        delivery: float = getattr(election, "delivery", delta)
        leadership |= {
            "partial": True,
            "leaderless_timeout": 10 * delivery,
            "call_spread": delivery,
        }
    if design.kind.assumptions.announces:
        leadership["stall_bound"] = _stall_bound(election, delta)
    leadership.update(in_seconds(design.leadership_settings))
    wait = _preemption(design)
    if wait is not None:
        leadership["preempt_after"] = wait
    lease = None if design.lease is None else _lease(design, design.lease, delta)
    seats = design.kind(election, ByStanding(design.choice)).seats
    if lease is not None and seats > 1:
        raise BadInput(f"a guard confirms one leader, and {seats} are to be elected")
    # At a start several members may announce themselves as leaders, until they have heard each
    # other. With a guard no member leads before the guard has confirmed it.
    contested = design.kind.assumptions.announces and lease is None
    if contested:
        leadership.setdefault("claim_delay", getattr(election, "interval", 0.0) + 3 * delta)
    steady = 3 * delta if contested and seats > 1 else 0.0
    measure = _measure(design, delta)
    return Configured(
        election, detector, stack, LeadershipConfig.parse(leadership), steady, lease, measure
    )


def _stall_bound(election: Config, delta: float) -> float:
    """For how long a leader may stand still and lead while it asks.

    The others last heard it up to T_A before it stood still. If the bound is shorter than what is
    left of T_L, no other member has missed the leader yet, as far as nothing was lost.
    """
    usual = LeadershipConfig(delta=delta).usual_stall
    listen: float = getattr(election, "listen", 0.0)
    period: float = getattr(election, "T_A", 0.0)
    left = listen - period - delta
    return left if usual < left < inf else usual


def _measure(design: Design, delta: float) -> MeasureConfig | None:
    if design.measure is None:
        return None
    given = design.measure
    config = measure_config(given if isinstance(given, str) else in_seconds(given), delta)
    check_ranked(design.choice.name, config)
    return config


def _stack(design: Design, delta: float) -> GossipConfig:
    """Settings of membership and multicast. Partial views have other defaults."""
    given = in_seconds(design.gossip_settings)
    known: dict[str, object] = {
        "delta": delta,
        "T_gossip": 5 * delta,
        "entries": 64,
        "gossip_bytes": _ROOM,
        "transfer_entries": min(65_536, design.limits.view),
        "transfers_per_period": 256,
        "introductions": 64,
        "pull": True,
        "minima": 3,
        "whole": True,
        "p_mistake": 1e-4,
        "view_size": max(1, design.limits.view - 1),
        "join_attempts": 1,
        "T_round": 5 * delta,
        "epoch": 40,
        "spread": _SPREAD if design.multicast == "gossip" else 0,
    }
    stack = GossipConfig.parse({**known, **given})
    if stack.view_size < design.limits.view - 1:
        _check_partial(design, stack.view_size)
        known |= {"partial": True, "minima": _MINIMA, "T_round": delta, "introductions": 3}
        stack = GossipConfig.parse({**known, **given})
    return stack


def _upon(design: Design, stack: GossipConfig) -> dict[str, object]:
    """Settings of an election whose members are not in each other's view.

    A multicast by epidemics has reached its members when it is no longer buffered.
    """
    if not stack.partial:
        return {}
    # Copies take different ways: the choice of a relay member may arrive before the Init.
    wanted: dict[str, object] = {"relay_by": "multicast", "join_on_contact": True}
    if design.multicast != "world":
        wanted["T_3"] = stack.buffering_time
        wanted["W"] = _WINDOW * stack.buffering_time
    has = [each.name for each in msgspec.structs.fields(design.kind.Settings)]
    return {name: value for name, value in wanted.items() if name in has}


def _check_partial(design: Design, most: int) -> None:
    """Refuse what cannot work where members know only a part of the group."""
    name = design.kind.about.name
    if not design.kind.assumptions.partial_views:
        raise BadInput(
            f"{name} needs members that know the whole group, and view_size={most} lets each know "
            f"{most} others: leave view_size out, or take protocol='probabilistic'"
        )
    if design.voting is not None:
        raise BadInput(
            f"members that vote must know each other, and view_size={most} lets each know {most} "
            "others: leave view_size out, or take a guard outside of the group"
        )
    if design.multicast == "world" and not design.reaches_all:
        raise BadInput(
            f"multicast='fan-out' reaches the members in view alone, of which view_size={most} "
            "allows no more: take 'gossip', 'bimodal' or 'ip:GROUP:PORT', or leave view_size out"
        )


def _lease(design: Design, given: Settings, delta: float) -> LeaseConfig:
    from hustings.layers.lease import LeaseConfig  # noqa: PLC0415 (memory: few have guards)

    known: dict[str, object] = {"delta": delta, "ttl": LEASE, "retry": max(0.2, 3 * delta)}
    if design.kind.assumptions.announces:  # several members may become leaders at one start
        known["first_wait"] = 3 * delta
    known.update(in_seconds(given))
    if "margin" not in known:
        known["margin"] = LeaseConfig.parse(known).asked / 10
    return LeaseConfig.parse(known)


def _detector(kind: type[HeartbeatConfig], settings: Settings, election: Config) -> HeartbeatConfig:
    """Settings of the detector: the leader sends heartbeats, and the others watch it.

    A member asks the leader before it suspects the leader. The next leader in rank acts at once.
    The others act after a round trip without news from that member. In an election that all members
    have to agree to, all act at once.
    """
    delta, given = election.delta, in_seconds(settings)
    known = kind.for_network(delta, given) | {"pattern": "leader-to-all", "beat": "multicast"}
    first = kind.parse({**known, **given})
    known.setdefault("D", 1.5 * delta)
    known["ping_timeout"] = delta if first.period >= 2 * delta else 0.0
    known["grace"] = 4 * first.period + 2 * delta
    known["first_beat_delay"] = 2 * delta
    known["successor_head_start"] = 0.0 if election.unanimous else 2 * delta
    return kind.parse({**known, **given})


def compose(design: Design, config: Configured, place: str) -> Composed:
    """One member's election, with all layers that it needs."""
    choice = ByStanding(design.choice)
    election: Election = design.kind(config.election, choice)
    measuring = None if config.measure is None else Measuring(election, config.measure)
    detector = None if config.detector is None else Detector(config.detector)
    inner = measuring or election
    if detector is not None:
        inner = DetectorLayer(inner, detector)
    leadership = LeadershipLayer(inner, config.leadership, observer=design.observer)
    lease_layer, top = _with_lease(leadership, config.lease)
    if lease_layer is not None and design.voting is not None:
        top = design.voting(lease_layer)
    membership = Membership(config.stack, accepts(choice), place)
    membership.leading = leadership.leading
    epidemic = design.multicast != "world"
    multicast = Bimodal(config.stack, membership.targets) if epidemic else None
    stack = GossipLayer(top, membership, multicast)
    if multicast is not None:
        stack.codec = _strict_codec(design, tuple(top.handlers), election)
    kinds = (*stack.handlers, *CONTROL_MESSAGES)
    codec = WireCodec(spoken(design), kinds)
    return Composed(stack, leadership, detector, lease_layer, codec, measuring)


def _preemption(design: Design) -> float | None:
    """Seconds that a better member has to be up before it takes over; None: the leader stays."""
    after = design.preempt_after
    wait = None if after is None else parse_duration(after, "preempt_after")
    if design.preempt and wait:
        raise BadInput(
            "preempt lets a better member take over at once, and preempt_after lets it wait: give "
            "one of them"
        )
    return 0.0 if design.preempt else wait


def multicast_policy(text: str) -> tuple[Multicast, Address | None]:
    """How a group multicasts, and at which address if the network multicasts."""
    if text == "fan-out":
        return "world", None
    if text == "bimodal":
        return "bimodal", None
    if text == "gossip":
        return "gossip", None
    head, colon, rest = text.partition(":")
    if head != "ip" or not colon:
        raise BadInput(
            f"multicast {text!r} is not understood: use fan-out, bimodal, gossip or ip:GROUP:PORT"
        )
    address = parse_address(rest, "multicast group")
    if address.ip is None or not address.ip.is_multicast:
        raise BadInput(f"multicast group {rest!r} is not a multicast address")
    if not address.port:
        raise BadInput(f"multicast group {rest!r} needs a port that all members share")
    return "world", address


def _with_lease(
    leadership: LeadershipLayer, lease: LeaseConfig | None
) -> tuple[LeaseLayer | None, Election]:
    if lease is None:
        return None, leadership
    # A member without a guard does not load the lease layer.
    from hustings.layers.lease import LeaseLayer  # noqa: PLC0415 (memory: few have guards)

    layer = LeaseLayer(leadership, lease)
    layer.reclaim = leadership.reclaim
    return layer, layer


def spoken(design: Design) -> str:
    """The label of a group. Members with another guard have another: they could lead beside it."""
    return design.label or design.kind.about.name


def _strict_codec(design: Design, kinds: tuple[type[Message], ...], election: Election) -> Codec:
    """The codec for messages in a multicast: they are as hostile as those straight from a peer."""
    wire = WireCodec(spoken(design), kinds)
    read = wire.body_reader(design.limits.view)

    def decode(body: bytes) -> Message | None:
        message = read(body)
        if isinstance(message, Message) and flaw_of_candidates(message, election.can_rank) is None:
            return message
        return None

    codec = Codec(kinds)
    codec.encode, codec.decode = wire.write_body, decode
    return codec


def in_seconds(settings: Settings) -> dict[str, object]:
    """Settings with durations as numbers of seconds; other settings stay as they were.

    >>> in_seconds({"T_A": "250ms", "leaders": "2"})
    {'T_A': 0.25, 'leaders': '2'}
    """
    return {
        name: parse_duration(value, name) if is_duration(value) else value
        for name, value in settings.items()
    }
