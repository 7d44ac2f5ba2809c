"""Members of the simulated world, put together by the same code that `join` uses; their bytes.

So the simulated members are those that really run: gossip membership, detector, leadership layer
with its stall bound, and lease, with the defaults of a real network. Time is in seconds; a delay of
0.05 gives exactly the defaults of `join`.

Members of the simulator hand values to each other. `FrameSizes` says how many bytes these take on a
network: sealed, since members on several machines have a key, and in a datagram with the headers of
IP and UDP. A frame that no datagram holds goes over a connection of its own, in segments with the
headers of IP and TCP. Real members have long ids, since these come from their names, incarnations
that grow with the date, and addresses, all of which gossip passes on. So entries of gossip are
encoded with such values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import inf

import msgspec

from hustings.core.choice import MemberId, parse_choice
from hustings.core.election import Election
from hustings.core.errors import BadInput
from hustings.core.messages import Message
from hustings.layers.gossip.messages import Entry, GossipMsg, JoinMsg, LeaveMsg, PullMsg, WelcomeMsg
from hustings.net.composition import Configured, Design, compose, configure
from hustings.net.limits import LARGEST_DATAGRAM, Limits
from hustings.net.peer_addresses import Place
from hustings.net.seal import OVERHEAD
from hustings.net.wire import Direction, Frame, Wire, WireCodec
from hustings.sim.experiment import PERFECT, SCRIPTED, Composed, Description
from hustings.sim.resident import Composition, Resident
from hustings.sim.traffic import FrameSize
from hustings.testing.memory_network import CLOSING, HANDSHAKE, TCP_MORE, stream_bytes

GROUP = "test"  # the label of a group in tests; a longer one makes every frame longer
_LONG_ID = 1 << 60  # ids of real members have 64 bits
_AGE = 1 << 50  # incarnations of real members grow with the date
_PLACE = Place(("10.0.100.100", 7400), "member-100").text()


def compose_members(described: Description, settings: Mapping[str, object]) -> Composed:
    """The members of a description, as `join` would build them."""
    if described.detection == PERFECT:
        raise BadInput(
            "composed members have a detector of their own, as accrual or heartbeat, and not "
            f"{described.detection!r}"
        )
    choice = described.choice
    design = Design(
        kind=described.kind,
        choice=parse_choice(choice) if isinstance(choice, str) else choice,
        settings=settings,
        detector="accrual" if described.detection == SCRIPTED else described.detection,
        detector_settings=described.detection_settings,
        leadership_settings=described.leadership_settings,
        measure=described.measure or None,
        reaches_all=True,
        lease=described.guard,
        guard="" if described.guard is None else "simulated",
    )
    config = configure(design)
    if described.voting is not None:
        design = replace(design, voting=described.voting(config.election.delta))
    composition = Composition(
        partial(_member, design, config), config.pause, displaces=_displaces(described, config)
    )
    return Composed(config.election, config.lease, composition, _calm(config))


def _member(design: Design, config: Configured) -> Election:
    made = compose(design, config, "")
    return Resident(made.stack, made.leadership, made.measuring)


def _displaces(described: Description, config: Configured) -> bool:
    """Whether a better member displaces a live leader; the layer by itself forbids this."""
    after = config.leadership.preempt_after
    return after is not None and (after > 0 or described.kind.assumptions.displaces)


def _calm(config: Configured) -> float:
    """By then all detectors have spoken, refused members have asked again, better ones have led."""
    listen: float = getattr(config.election, "listen", 0.0)
    longest = [
        config.leadership.leaderless_limit,
        config.join_wait,
        listen if listen < inf else 0.0,
    ]
    longest += [config.leadership.preempt_after or 0.0]
    longest += [] if config.detector is None else [2 * config.detector.timeout]
    longest += [] if config.lease is None else [2 * config.lease.asked]
    return max(longest) + 20 * config.election.delta


# Bytes


@dataclass(frozen=True, slots=True)
class FrameSizes:
    """What makes the `FrameSize` of an election: the caller knows the headers of its network."""

    protocol: str  # the label that frames carry
    header: int  # bytes of IP and UDP for each datagram
    group: str = GROUP

    def __call__(self, election: Election) -> FrameSize:
        """What counts the bytes of messages of this election and its layers."""
        limits = Limits(datagram=LARGEST_DATAGRAM - OVERHEAD)  # the seal must fit in, too
        codec = WireCodec.of(election, self.protocol)
        wires: dict[tuple[MemberId, int], Wire] = {}

        def size(sender: MemberId, incarnation: int, to: MemberId | None, message: Message) -> int:
            wire = wires.get((sender, incarnation))
            if wire is None:
                real = _LONG_ID + sender, _AGE + incarnation
                wire = Wire(self.group, *real, codec, limits=limits)
                wires[sender, incarnation] = wire
            frame = wire.write(_as_real(message), None if to is None else _LONG_ID + to)
            if not isinstance(frame, Frame):
                return 0  # no frame holds it, so a real member sends nothing
            return self.on_the_way(len(frame.data) + OVERHEAD, frame.direction)

        return size

    def on_the_way(self, frame: int, direction: Direction) -> int:
        """The bytes of a sealed frame with all its headers."""
        if direction is Direction.DATAGRAM:
            return frame + self.header
        opened = (HANDSHAKE + CLOSING) * (self.header + TCP_MORE)
        return opened + stream_bytes(frame, self.header)


def _as_real(message: Message) -> Message:
    """The same message with entries as those of real members are."""
    if isinstance(message, GossipMsg | WelcomeMsg):
        return msgspec.structs.replace(message, entries=tuple(map(_real_entry, message.entries)))
    if isinstance(message, JoinMsg | PullMsg):
        return msgspec.structs.replace(message, entry=_real_entry(message.entry))
    if isinstance(message, LeaveMsg):
        return msgspec.structs.replace(message, incarnation=_AGE + message.incarnation)
    return message


def _real_entry(entry: Entry) -> Entry:
    who = msgspec.structs.replace(entry.who, id=_LONG_ID + entry.who.id)
    return msgspec.structs.replace(
        entry, who=who, incarnation=_AGE + entry.incarnation, place=_PLACE
    )
