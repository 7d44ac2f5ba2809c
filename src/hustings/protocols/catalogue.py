"""The catalogue: every election, in families; `find` is the `register`'s."""

from __future__ import annotations

from hustings.core.election import Election
from hustings.protocols import register
from hustings.protocols.announce.al import Al
from hustings.protocols.announce.le_a import LeA
from hustings.protocols.announce.le_m import LeM
from hustings.protocols.announce.le_s import LeS
from hustings.protocols.announce.printed import LeSPrinted
from hustings.protocols.announce.sup import Sup
from hustings.protocols.announce.sup_al import SupAl
from hustings.protocols.announce.sup_al_random import SupAlRandom
from hustings.protocols.broadcast import Broadcast
from hustings.protocols.bully import Bully
from hustings.protocols.bully_assistant import BullyAssistant
from hustings.protocols.bully_grant import BullyGrant
from hustings.protocols.bully_group import BullyGroup
from hustings.protocols.bully_map import BullyMap
from hustings.protocols.bully_map_printed import BullyMapPrinted
from hustings.protocols.committee.election import Committee
from hustings.protocols.committee.extensions import CommonCoin, GroupAgreement
from hustings.protocols.committee.single import Agreement, LightestBin
from hustings.protocols.consensus import Consensus
from hustings.protocols.probabilistic.election import Probabilistic
from hustings.protocols.quorum.election import Quorum
from hustings.protocols.ring import Ring
from hustings.protocols.ring_printed import RingPrinted
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

# Elections by repetition over lossy multicast, and the baselines they are measured against.
ANNOUNCING: tuple[type[Election], ...] = (LeA, LeS, LeM, Sup, Al, SupAlRandom)

# Right for studying what repetition, suppression and consensus do, not for use.
BASELINES: tuple[type[Election], ...] = (Sup, Al, SupAlRandom, Consensus)

# Elections for groups so large that nobody knows all of it.
LARGE: tuple[type[Election], ...] = (Probabilistic,)

# Election by consensus of members that are named beforehand.
CONSENSUS: tuple[type[Election], ...] = (Quorum,)

# Programs as the papers print or sketch them, to be seen failing.
PRINTED: tuple[type[Election], ...] = (RingPrinted, BullyMapPrinted, LeSPrinted, SupAl)

CATALOGUE: tuple[type[Election], ...] = (
    *COMPARED,
    *ANNOUNCING,
    *LARGE,
    Consensus,
    *CONSENSUS,
    *PRINTED,
)

# Among members that lie, in synchronous rounds, which only the simulator keeps.
BY_ROUNDS: tuple[type[Election], ...] = (
    Committee,
    GroupAgreement,
    CommonCoin,
    Agreement,
    LightestBin,
)

EVERY: tuple[type[Election], ...] = (*CATALOGUE, *BY_ROUNDS)


def names() -> list[str]:
    """All names, as typed."""
    return [kind.about.name for kind in EVERY]


find = register.find  # which loads only the one that is asked for
