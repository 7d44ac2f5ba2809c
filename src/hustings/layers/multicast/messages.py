"""What bimodal multicast sends: the multicast itself, digests, requests and copies.

The multicast has one class per role. So a world that counts messages by role counts an election's
multicast in its own role. All other messages are upkeep, with the detectors' role.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from hustings.core.choice import MemberId
from hustings.core.messages import Count, Incarnation, LayerMessage, Role
from hustings.layers.gossip.config import GossipConfig

# The member that sent it first, the incarnation, and the number within the incarnation.
MulticastId = tuple[MemberId, int, int]


class Cast(LayerMessage, frozen=True, tag="CAST"):
    """The first phase: to all members that the network reaches. The origin is the sender."""

    incarnation: Incarnation
    number: Count
    body: bytes  # the election's message


class ElectionCast(Cast, frozen=True, tag="CAST-ELECTION"):
    """A call or a probe."""

    role: ClassVar[Role] = Role.ELECTION


class AnswerCast(Cast, frozen=True, tag="CAST-ANSWER"):
    """An answer to all."""

    role: ClassVar[Role] = Role.ANSWER


class CoordinatorCast(Cast, frozen=True, tag="CAST-COORDINATOR"):
    """A result."""

    role: ClassVar[Role] = Role.COORDINATOR


class OtherCast(Cast, frozen=True, tag="CAST-OTHER"):
    """Any other multicast of an election."""

    role: ClassVar[Role] = Role.OTHER


class DetectorCast(Cast, frozen=True, tag="CAST-DETECTOR"):
    """A detector's message, if the election has its own detector."""

    role: ClassVar[Role] = Role.DETECTOR


CASTS: Mapping[Role, type[Cast]] = {
    kind.role: kind for kind in (ElectionCast, AnswerCast, CoordinatorCast, OtherCast, DetectorCast)
}


class DigestMsg(LayerMessage, frozen=True, tag="DIGEST"):
    """The messages in the sender's buffer, the latest first."""

    role: ClassVar[Role] = Role.DETECTOR
    ids: tuple[MulticastId, ...]


class SolicitMsg(LayerMessage, frozen=True, tag="SOLICIT"):
    """The messages of the receiver's digest that the sender lacks."""

    role: ClassVar[Role] = Role.DETECTOR
    ids: tuple[MulticastId, ...]


class CopyMsg(LayerMessage, frozen=True, tag="RETRANSMIT"):
    """A retransmission. `age` is the longest time since its origin sent it, when it arrives.

    It carries an age, and not an instant: members' clocks need not agree.
    """

    role: ClassVar[Role] = Role.DETECTOR
    origin: MemberId
    incarnation: Incarnation
    number: Count
    age: float
    body: bytes


# msgpack takes at most 9 bytes for a number and 5 for the head of an array, a text or bytes.
_NUMBER = 9
_HEAD = 5
_TAG = _HEAD + 16


def longest_upkeep(config: GossipConfig, body: int | None = None) -> int:
    """The most bytes of a digest, a request, a copy or a multicast whose body has `body` bytes.

    >>> longest_upkeep(GossipConfig(digest=1, solicits=1), body=100)
    162
    """
    carried = config.multicast_bytes if body is None else body
    ids = max(config.digest, config.solicits) * (_HEAD + 3 * _NUMBER)
    return _TAG + max(_HEAD + ids, 4 * _NUMBER + _HEAD + carried)
