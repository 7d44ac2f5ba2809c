"""The bytes of simulated messages are those of real, sealed frames with their headers."""

from __future__ import annotations

import pytest

from hustings.core.choice import HighestId, candidate
from hustings.layers.gossip.layer import GossipConfig, with_gossip
from hustings.layers.gossip.messages import Entry, WelcomeMsg
from hustings.net.keys import Key
from hustings.net.seal import KeyRing
from hustings.net.wire import Frame, Wire, WireCodec
from hustings.protocols.bully import Bully, ElectionMsg, OkMsg
from hustings.testing.composed import GROUP, FrameSizes
from hustings.testing.memory_network import SEGMENT

IPV4, TCP = 28, 40
BULLY = Bully(Bully.Settings(), HighestId())
LONG = 1 << 60


def test_a_message_takes_what_a_sealed_frame_with_its_headers_takes() -> None:
    size = FrameSizes("bully", IPV4)(BULLY)
    ring = KeyRing([Key(bytes(range(32)))])
    wire = Wire(GROUP, LONG + 3, (1 << 50) + 1, WireCodec.of(BULLY, "bully"), ring)
    for to, message in ((7, ElectionMsg(term=1)), (None, OkMsg(term=70_000))):
        frame = wire.write(message, None if to is None else LONG + to)
        assert isinstance(frame, Frame)
        assert size(3, 1, to, message) == len(frame.data) + IPV4


def test_ipv6_takes_twenty_bytes_more() -> None:
    message = ElectionMsg(term=1)
    four, six = (FrameSizes("bully", header)(BULLY)(1, 1, 2, message) for header in (28, 48))
    assert six - four == 20


def test_what_no_datagram_holds_goes_in_segments() -> None:
    election = with_gossip(lambda: Bully(Bully.Settings(), HighestId()), GossipConfig())()
    size = FrameSizes("bully", IPV4)(election)

    def welcome(members: int) -> int:
        entries = tuple(Entry(candidate(one), 1, 5) for one in range(members))
        return size(1, 1, 2, WelcomeMsg(entries=entries, epoch=0, minima=(), size=None))

    few, many = welcome(2), welcome(100)
    entry = welcome(3) - few  # an address, a long id, an incarnation
    assert 40 < entry < 80
    assert many > 100 * (entry - 2)
    segments = -(-many // (SEGMENT + TCP))
    assert segments > 2
    assert many == pytest.approx(few - IPV4 + 98 * entry + (segments + 4) * TCP, abs=100)


def test_what_no_frame_holds_is_not_sent() -> None:
    election = with_gossip(lambda: Bully(Bully.Settings(), HighestId()), GossipConfig())()
    entries = (Entry(candidate(1), 1, 5),) * 25_000  # more than a member takes
    message = WelcomeMsg(entries=entries, epoch=0, minima=(), size=None)
    assert FrameSizes("bully", IPV4)(election)(1, 1, 2, message) == 0
