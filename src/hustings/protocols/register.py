"""Where each election is found by its name. Only the one that is asked for is loaded.

A member on a network runs one election, and the others would be a twelfth of its memory. The
classes themselves, in families, stand in the `catalogue`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from importlib import import_module

from hustings.core.election import Election
from hustings.core.errors import ProtocolBug, UnknownName


class Use(Enum):
    """What an election is for, on a network."""

    JOIN = "elects among members that join"
    GUARD = "stands behind an election, as its guard"
    ROUNDS = "needs rounds that only the simulator keeps"
    STUDY = "is there to be studied"


# Module and class; the order is that of the catalogue.
REGISTER: Mapping[str, tuple[str, str, Use]] = {
    "broadcast": ("broadcast", "Broadcast", Use.JOIN),
    "ring": ("ring", "Ring", Use.JOIN),
    "bully": ("bully", "Bully", Use.JOIN),
    "bully-map": ("bully_map", "BullyMap", Use.JOIN),
    "bully-grant": ("bully_grant", "BullyGrant", Use.JOIN),
    "bully-group": ("bully_group", "BullyGroup", Use.JOIN),
    "stable": ("stable", "Stable", Use.JOIN),
    "bully-assistant": ("bully_assistant", "BullyAssistant", Use.JOIN),
    "le-a": ("announce.le_a", "LeA", Use.JOIN),
    "le-s": ("announce.le_s", "LeS", Use.JOIN),
    "le-m": ("announce.le_m", "LeM", Use.JOIN),
    "sup": ("announce.sup", "Sup", Use.STUDY),
    "al": ("announce.al", "Al", Use.STUDY),
    "sup-al-random": ("announce.sup_al_random", "SupAlRandom", Use.STUDY),
    "probabilistic": ("probabilistic.election", "Probabilistic", Use.JOIN),
    "consensus": ("consensus", "Consensus", Use.STUDY),
    "quorum": ("quorum.election", "Quorum", Use.GUARD),
    "ring-printed": ("ring_printed", "RingPrinted", Use.STUDY),
    "bully-map-printed": ("bully_map_printed", "BullyMapPrinted", Use.STUDY),
    "le-s-printed": ("announce.printed", "LeSPrinted", Use.STUDY),
    "sup-al": ("announce.sup_al", "SupAl", Use.STUDY),
    "committee": ("committee.election", "Committee", Use.ROUNDS),
    "committee-agreement": ("committee.extensions", "GroupAgreement", Use.ROUNDS),
    "committee-coin": ("committee.extensions", "CommonCoin", Use.ROUNDS),
    "agreement": ("committee.single", "Agreement", Use.ROUNDS),
    "lightest-bin": ("committee.single", "LightestBin", Use.ROUNDS),
}


def use_of(name: str) -> Use:
    """What an election is for, by its name."""
    return REGISTER[_known(name)][2]


def find(name: str) -> type[Election]:
    """An election by its name; an underscore stands for a hyphen.

    >>> find("bully").about.family
    'bully'
    """
    module, named, _ = REGISTER[_known(name)]
    kind = getattr(import_module(f"hustings.protocols.{module}"), named)
    if not (isinstance(kind, type) and issubclass(kind, Election)):
        raise ProtocolBug(f"{module}.{named} is not an election")
    return kind


def _known(name: str) -> str:
    wanted = name.replace("_", "-")
    if wanted not in REGISTER:
        raise UnknownName("protocol", name, REGISTER)
    return wanted
