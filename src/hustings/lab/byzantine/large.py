"""What committees do on the compiled engine: from settings to its numbers, and back."""

from __future__ import annotations

import numpy as np

from hustings.core.errors import BadInput
from hustings.core.streams import Stream, derive
from hustings.lab.kernels.committee import Assembly, memory, play, seating
from hustings.lab.kernels.committee_assembly import CORRUPTIONS
from hustings.lab.kernels.results import Played
from hustings.protocols.committee.adversary import Adversary, budget, parse_adversary
from hustings.protocols.committee.corruption import CORRUPTIONS as KNOWN
from hustings.protocols.committee.extensions import GroupAgreementConfig, deciders_of
from hustings.protocols.committee.network import throws_of
from hustings.protocols.committee.roster import Roster
from hustings.protocols.committee.settings import CommitteeConfig, knobs_of

MOST_BYTES = 8 * 1024**3
MOST_BY_HAND = 100_000  # members among whom somebody's own class may pick
GIVEN = "given"


def assembly_of(config: CommitteeConfig, members: int, task: str = "leader") -> Assembly:
    """What these settings mean in a group of this size, to the compiled engine."""
    knobs = knobs_of(config, members)
    if knobs.padding and knobs.layers:
        raise BadInput(
            "profile printed with layers fills its committees up arbitrarily, which the "
            "large-scale engine does not play: take --engine events"
        )
    adversary = parse_adversary(config.adversary)
    word = corruption_of(adversary)
    return Assembly(
        members=members,
        b=config.b,
        c0=knobs.c0,
        d0=knobs.d0,
        layers=knobs.layers,
        monitors=max(1, knobs.monitors),
        fan=knobs.fan,
        depth=max(1, knobs.depth),
        r_end=knobs.r_end,
        poll=knobs.poll,
        tau=knobs.tau,
        endgame=knobs.endgame,
        bins=knobs.bins,
        final=knobs.final,
        corruption=word if word in CORRUPTIONS and word != GIVEN else GIVEN,
        packs=adversary.packs,
        steers=adversary.packs,
        lies=adversary.lies,
        floods=adversary.floods,
        claims=adversary.claims,
        signed=knobs.signed,
        lists="marks" if knobs.marks else "names",
        network_seed=config.network_seed,
        single=knobs.single if knobs.single or knobs.layers else members,
        task=task,
        deciders=deciders_of(config, members),
        inputs=config.input if isinstance(config, GroupAgreementConfig) else "random",
    )


def corruption_of(adversary: Adversary) -> str:
    """The word for whom it corrupts, if that is one of the catalogue's."""
    word = str(getattr(adversary, "corruption", adversary.name))
    return word if word in KNOWN else GIVEN


def check(
    config: CommitteeConfig, members: int, most: int = MOST_BYTES, task: str = "leader"
) -> Assembly:
    """Refuse what cannot be played here, before anything is laid out."""
    assembly = assembly_of(config, members, task)
    need = memory(assembly)
    if need > most:
        raise BadInput(
            f"this needs about {need / 1e9:.1f} GB of memory, and the limit is {most / 1e9:.1f}: "
            "take fewer members, or fewer leaves for each (d0)"
        )
    if assembly.corruption == GIVEN and members > MOST_BY_HAND:
        raise BadInput(
            f"an adversary of one's own picks among at most {MOST_BY_HAND:,} members, not "
            f"{members:,}: take one of {', '.join(KNOWN)}"
        )
    return assembly


def play_large(
    config: CommitteeConfig, members: int, seed: int, first: int, last: int, task: str = "leader"
) -> Played:
    """Runs first .. last-1, numbered as everywhere."""
    assembly = assembly_of(config, members, task)
    if assembly.corruption != GIVEN:
        return play(assembly, seed, first, last)
    adversary = parse_adversary(config.adversary)
    found = [_by_hand(assembly, config, adversary, seed, run) for run in range(first, last)]
    columns = {
        name: np.concatenate([each.metrics[name] for each in found]) for name in found[0].metrics
    }
    return Played(columns, np.concatenate([each.cut for each in found]))


def _by_hand(
    assembly: Assembly, config: CommitteeConfig, adversary: Adversary, seed: int, run: int
) -> Played:
    """Somebody's own class picks who is bad, with the network of the run before it."""
    order = list(range(assembly.members))
    if assembly.single:  # the engine seats whoever comes first; who that is, is drawn here
        Stream(derive(seed, "committee", run)).shuffle(order)
        roster = Roster(tuple(sorted(order)), (tuple(sorted(order[: assembly.single])),))
    else:
        leaves, *layers = seating(assembly, seed, run)
        groups = [tuple(tuple(group.tolist()) for group in layer) for layer in layers]
        roster = Roster(
            tuple(order),
            tuple(tuple(leaf.tolist()) for leaf in leaves),
            groups[0],
            tuple(groups[1:]),
            tuple(throws_of(h, assembly.bins) for _, _, h in assembly.layers),
        )
    rng = Stream(derive(seed, "adversary", run))
    chosen = adversary.corrupt(roster, budget(config.b, assembly.members), rng)
    places = {member: place for place, member in enumerate(order)}
    bad = sorted(places[member] for member in chosen)
    return play(assembly, seed, run, run + 1, np.array(bad, dtype=np.int64))
