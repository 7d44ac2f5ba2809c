"""Every election by name. Only the election that is asked for is loaded.

Wherever a caller names a protocol, on a command line, in a file or in Python, each of these works:

    bully                          one of ours, or of an installed package
    mine.elections:Claims          a class in a module that can be imported
    claims.py:Claims               a class in a file
    Claims                         the class itself (in Python)

A package installs elections through entry points of the group `hustings.protocols` (see `plugins`).

A member on a network runs one election. All the others would take a twelfth of its memory. So a
family is a tuple of names, and `classes` loads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from importlib import import_module
from typing import NamedTuple, TypeAlias

from hustings.core.election import About, Election
from hustings.core.errors import BadInput

Protocol: TypeAlias = str | type[Election]


class Use(Enum):
    """The purpose of an election on a network."""

    JOIN = "elects among members that join"
    GUARD = "stands behind an election, as its guard"
    ROUNDS = "needs rounds that only the simulator keeps"
    STUDY = "is there to be studied"


class ProtocolEntry(NamedTuple):
    """Where one of our elections is."""

    module: str
    named: str
    use: Use = Use.JOIN


# The classic elections, which `hustings compare` sets side by side.
COMPARED = (
    *("broadcast", "ring", "bully", "bully-map", "bully-grant", "bully-group"),
    *("stable", "bully-assistant"),
)
# Elections by repetition over lossy multicast, and the baselines for comparison.
ANNOUNCING = ("le-a", "le-s", "le-m", "sup", "al", "sup-al-random")
# For the study of repetition, suppression and consensus, not for use.
BASELINES = ("sup", "al", "sup-al-random", "consensus")
# Elections for groups so large that no member knows all of the group.
LARGE = ("probabilistic",)
# Election by consensus of members that are named beforehand.
CONSENSUS = ("quorum",)
# Programs as the papers print or sketch them, which show how they fail.
PRINTED = ("ring-printed", "bully-map-printed", "le-s-printed", "sup-al")
# Among Byzantine members, in synchronous rounds, which only the simulator keeps.
BY_ROUNDS = ("committee", "committee-agreement", "committee-coin", "agreement", "lightest-bin")

CATALOGUE = (*COMPARED, *ANNOUNCING, *LARGE, "consensus", *CONSENSUS, *PRINTED)
EVERY = (*CATALOGUE, *BY_ROUNDS)

PROTOCOLS: Mapping[str, ProtocolEntry] = {
    "broadcast": ProtocolEntry("protocols.broadcast", "Broadcast"),
    "ring": ProtocolEntry("protocols.ring", "Ring"),
    "bully": ProtocolEntry("protocols.bully", "Bully"),
    "bully-map": ProtocolEntry("protocols.bully_map", "BullyMap"),
    "bully-grant": ProtocolEntry("protocols.bully_grant", "BullyGrant"),
    "bully-group": ProtocolEntry("protocols.bully_group", "BullyGroup"),
    "stable": ProtocolEntry("protocols.stable", "Stable"),
    "bully-assistant": ProtocolEntry("protocols.bully_assistant", "BullyAssistant"),
    "le-a": ProtocolEntry("protocols.announce.le_a", "LeA"),
    "le-s": ProtocolEntry("protocols.announce.le_s", "LeS"),
    "le-m": ProtocolEntry("protocols.announce.le_m", "LeM"),
    "sup": ProtocolEntry("protocols.announce.sup", "Sup", Use.STUDY),
    "al": ProtocolEntry("protocols.announce.al", "Al", Use.STUDY),
    "sup-al-random": ProtocolEntry("protocols.announce.sup_al_random", "SupAlRandom", Use.STUDY),
    "probabilistic": ProtocolEntry("protocols.probabilistic.election", "Probabilistic"),
    "consensus": ProtocolEntry("protocols.consensus", "Consensus", Use.STUDY),
    "quorum": ProtocolEntry("quorum.election", "Quorum", Use.GUARD),
    "ring-printed": ProtocolEntry("protocols.ring_printed", "RingPrinted", Use.STUDY),
    "bully-map-printed": ProtocolEntry("protocols.bully_map_printed", "BullyMapPrinted", Use.STUDY),
    "le-s-printed": ProtocolEntry("protocols.announce.le_s_printed", "LeSPrinted", Use.STUDY),
    "sup-al": ProtocolEntry("protocols.announce.sup_al", "SupAl", Use.STUDY),
    "committee": ProtocolEntry("protocols.committee.election", "Committee", Use.ROUNDS),
    "committee-agreement": ProtocolEntry(
        "protocols.committee.extensions", "GroupAgreement", Use.ROUNDS
    ),
    "committee-coin": ProtocolEntry("protocols.committee.extensions", "CommonCoin", Use.ROUNDS),
    "agreement": ProtocolEntry("protocols.committee.single", "Agreement", Use.ROUNDS),
    "lightest-bin": ProtocolEntry("protocols.committee.single", "LightestBin", Use.ROUNDS),
}

# Elections that members can join with.
JOINED = tuple(name for name, entry in PROTOCOLS.items() if entry.use is Use.JOIN)


def find(protocol: Protocol) -> type[Election]:
    """The class of an election; an underscore in a name stands for a hyphen.

    >>> find("bully").about.family
    'bully'
    >>> find("hustings.protocols.bully:Bully") is find("bully") is find(find("bully"))
    True
    """
    if isinstance(protocol, type):
        return checked(protocol, protocol.__qualname__)
    name = protocol.replace("_", "-")
    if name in PROTOCOLS:
        ours = PROTOCOLS[name]
        module = import_module(f"hustings.{ours.module}")
        return checked(getattr(module, ours.named), name)
    from hustings.protocols import plugins  # noqa: PLC0415 (memory: most members run one of ours)

    return checked(plugins.load(protocol, EVERY), protocol)


def use_of(protocol: Protocol) -> Use:
    """Return the purpose of an election; one that is not ours is for members that join."""
    kind = find(protocol)
    return PROTOCOLS[kind.about.name].use if is_ours(kind) else Use.JOIN


def is_ours(kind: type[Election]) -> bool:
    """Whether this is the class that its name stands for in the table, and no other of that name.

    >>> class Mine(find("bully")):
    ...     pass
    >>> is_ours(find("bully")), is_ours(Mine)
    (True, False)
    """
    ours = PROTOCOLS.get(kind.about.name)
    if ours is None:
        return False
    return (kind.__module__, kind.__name__) == (f"hustings.{ours.module}", ours.named)


def names() -> list[str]:
    """List all names: ours, then those of installed packages."""
    from hustings.protocols import plugins  # noqa: PLC0415 (memory, as above)

    return [*EVERY, *plugins.names(EVERY)]


def classes(protocols: Iterable[Protocol]) -> tuple[type[Election], ...]:
    """Load the classes of several protocols, in their order."""
    return tuple(map(find, protocols))


def checked(found: object, named: str) -> type[Election]:
    """Return what was found, if it is an election that can run."""
    if not (isinstance(found, type) and issubclass(found, Election)):
        raise BadInput(f"{named} is no protocol: a protocol is a subclass of Election")
    if not isinstance(getattr(found, "about", None), About):
        raise BadInput(f"{named} is not complete: a protocol says what it is in `about`")
    return found
