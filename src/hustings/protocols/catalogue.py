"""The catalogue: every election by name."""

from __future__ import annotations

from hustings.core.election import Election
from hustings.core.errors import UnknownName
from hustings.protocols.broadcast import Broadcast
from hustings.protocols.bully import Bully
from hustings.protocols.bully_assistant import BullyAssistant
from hustings.protocols.bully_grant import BullyGrant
from hustings.protocols.bully_group import BullyGroup
from hustings.protocols.bully_map import BullyMap
from hustings.protocols.bully_map_printed import BullyMapPrinted
from hustings.protocols.ring import Ring
from hustings.protocols.stable import Stable

# The classic elections, which `hustings compare` sets side by side.
COMPARED: tuple[type[Election], ...] = (
    Broadcast,
    Ring,
    Bully,
    BullyMap,
    BullyGrant,
    BullyGroup,
    Stable,
    BullyAssistant,
)

CATALOGUE: tuple[type[Election], ...] = (*COMPARED, BullyMapPrinted)


def names() -> list[str]:
    """All names, as typed."""
    return [kind.about.name for kind in CATALOGUE]


def find(name: str) -> type[Election]:
    """An election by its name; an underscore stands for a hyphen.

    >>> find("bully").about.family
    'bully'
    """
    wanted = name.replace("_", "-")
    for kind in CATALOGUE:
        if kind.about.name == wanted:
            return kind
    raise UnknownName("protocol", name, names())
