"""What gossiping members send each other, and how long it can get.

Every message is bounded, whatever the size of the group: it has a limited number of entries and
codes. Only a state transfer may contain a whole view. A setting of its own bounds it.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from hustings.core.choice import Candidate
from hustings.core.messages import Count, Incarnation, LayerMessage, Role
from hustings.core.names import LONGEST_NAME, is_attribute_name
from hustings.layers.gossip.config import GossipConfig
from hustings.layers.gossip.size import Codes
from hustings.layers.leadership.messages import LeaderInfoMsg

MAX_NUMBER = 1 << 53  # of incarnations and counters
MAX_ID = 1 << 63
MAX_ATTRIBUTES = 16
MAX_NAME = LONGEST_NAME  # characters of an attribute's name
MAX_PLACE = 160  # characters


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False, repr_omit_defaults=True):
    """What gossip says about a member.

    The counter grows with every period in which the member runs, the incarnation with every
    restart. Of two entries the later one, in this order, is the newer. `place` says where the
    member can be reached, in the world's format: gossip only passes it on.
    """

    who: Candidate
    incarnation: int
    counter: int
    place: str = ""


class GossipMsg(LayerMessage, frozen=True, tag="GOSSIP"):
    """Some of the members that the sender takes for alive, itself first, and the size's minima."""

    role: ClassVar[Role] = Role.DETECTOR
    entries: tuple[Entry, ...]
    epoch: Count
    minima: Codes
    size: float | None  # the last epoch's result
    asks: bool = False  # asks the receiver for its news: the receiver was not heard of for long
    known: int = 0  # how many members the sender takes for alive; 0: it does not say


class LeadingMsg(GossipMsg, frozen=True, tag="GOSSIP-LEADER"):
    """Gossip that names the leader; the leader's entry comes second. For views that are partial."""

    leading: LeaderInfoMsg | None = None


class WelcomeMsg(LayerMessage, frozen=True, tag="STATE-TRANSFER"):
    """A part of the state transfer to a member that asked to join, or all of it."""

    role: ClassVar[Role] = Role.DETECTOR
    entries: tuple[Entry, ...]
    epoch: Count
    minima: Codes
    size: float | None
    known: int = 0  # how many members the sender takes for alive; 0: it does not say


class JoinMsg(LayerMessage, frozen=True, tag="JOIN"):
    """Here I am. To one member, or to all; asks for a state transfer, or only to be known."""

    role: ClassVar[Role] = Role.DETECTOR
    entry: Entry
    to_all: bool
    asks: bool


class PullMsg(LayerMessage, frozen=True, tag="STATE-REQUEST"):
    """I know far fewer members than you: send me all. I am in the group already."""

    role: ClassVar[Role] = Role.DETECTOR
    entry: Entry


class LeaveMsg(LayerMessage, frozen=True, tag="LEAVE"):
    """I leave: this incarnation is over."""

    role: ClassVar[Role] = Role.DETECTOR
    incarnation: Incarnation


News = GossipMsg | WelcomeMsg


def sound(entry: Entry) -> bool:
    """Whether an entry keeps within bounds, whichever member sent it."""
    who = entry.who
    return (
        -MAX_ID <= who.id < MAX_ID
        and 1 <= entry.incarnation <= MAX_NUMBER
        and 0 <= entry.counter <= MAX_NUMBER
        and len(entry.place) <= MAX_PLACE
        and entry.place.isprintable()
        and presentable(who)
    )


def presentable(who: Candidate) -> bool:
    """Whether a member's attributes fit into an entry: few, each once, with valid names."""
    attributes = who.attributes
    if not attributes:
        return True
    return (
        len(attributes) <= MAX_ATTRIBUTES
        and len(dict(attributes)) == len(attributes)
        and all(is_attribute_name(name) and value == value for name, value in attributes)
    )


def weight(entry: Entry) -> int:
    """About how many bytes an entry takes. The estimate is rather too high than too low.

    >>> weight(Entry(Candidate(1 << 60), 1 << 40, 7, "127.0.0.1:7400 a"))
    51
    """
    attributes = sum(len(name) + 11 for name, _ in entry.who.attributes)
    return 35 + attributes + len(entry.place.encode())


# msgpack takes at most 9 bytes for a number and 5 for the head of an array, a text or bytes.
_NUMBER = 9
_HEAD = 5
_TAG = _HEAD + 16
_CODE = 3


def longest_gossip(config: GossipConfig, attributes: int = 0, place: int = 0) -> int:
    """The most bytes of a gossip message, if no member has longer attributes or a longer place.

    >>> longest_gossip(GossipConfig(entries=2, minima=3))
    162
    """
    entry = 4 * _HEAD + 3 * _NUMBER + attributes + place
    minima = _HEAD + config.minima * _CODE
    news = _HEAD + config.entries * entry + _NUMBER + minima + 2 * _NUMBER + 1
    return _TAG + news
