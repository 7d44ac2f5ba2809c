"""Committee elections on the compiled engine: from settings to its parameters, and back."""

from __future__ import annotations

import numpy as np

from hustings.core.errors import BadInput
from hustings.core.streams import Stream, derive
from hustings.lab.kernels.committee.parameters import CORRUPTIONS
from hustings.lab.kernels.committee.play import CommitteeParameters, memory, play, seating
from hustings.lab.kernels.results import Columns
from hustings.protocols.committee.adversary import Adversary, budget, parse_adversary
from hustings.protocols.committee.corruption import CORRUPTIONS as KNOWN
from hustings.protocols.committee.extensions import GroupAgreementConfig, deciders_of
from hustings.protocols.committee.network import throws_of
from hustings.protocols.committee.roster import Roster
from hustings.protocols.committee.settings import CommitteeConfig, knobs_of

MOST_BYTES = 8 * 1024**3
MOST_BY_HAND = 100_000  # members of a group in which a user's own class may choose the bad ones
GIVEN = "given"


def parameters_of(
    config: CommitteeConfig, members: int, task: str = "leader"
) -> CommitteeParameters:
    """The compiled engine's parameters for these settings in a group of this size."""
    knobs = knobs_of(config, members)
    if knobs.padding and knobs.layers:
        raise BadInput(
            "profile printed with layers fills its committees up arbitrarily, which the "
            "large-scale engine does not play: take --engine events"
        )
    adversary = parse_adversary(config.adversary)
    word = corruption_of(adversary)
    return CommitteeParameters(
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
    """The engine's name for the corruption, if it is one of the built-in ones."""
    word = str(getattr(adversary, "corruption", adversary.name))
    return word if word in KNOWN else GIVEN


def check(
    config: CommitteeConfig, members: int, most: int = MOST_BYTES, task: str = "leader"
) -> CommitteeParameters:
    """Refuse what cannot be played here, before anything is allocated."""
    parameters = parameters_of(config, members, task)
    need = memory(parameters)
    if need > most:
        raise BadInput(
            f"this needs about {need / 1e9:.1f} GB of memory, and the limit is {most / 1e9:.1f}: "
            "take fewer members, or fewer leaves for each (d0)"
        )
    if parameters.corruption == GIVEN and members > MOST_BY_HAND:
        raise BadInput(
            f"an adversary of one's own picks among at most {MOST_BY_HAND:,} members, not "
            f"{members:,}: take one of {', '.join(KNOWN)}"
        )
    return parameters


def play_large(
    config: CommitteeConfig, members: int, seed: int, first: int, last: int, task: str = "leader"
) -> Columns:
    """Play runs first .. last-1; run numbers are the same as everywhere."""
    parameters = parameters_of(config, members, task)
    if parameters.corruption != GIVEN:
        return play(parameters, seed, first, last)
    adversary = parse_adversary(config.adversary)
    found = [_by_hand(parameters, config, adversary, seed, run) for run in range(first, last)]
    columns = {
        name: np.concatenate([each.metrics[name] for each in found]) for name in found[0].metrics
    }
    return Columns(columns, np.concatenate([each.cut for each in found]))


def _by_hand(
    parameters: CommitteeParameters,
    config: CommitteeConfig,
    adversary: Adversary,
    seed: int,
    run: int,
) -> Columns:
    """A user's own class chooses the bad members, given the network of the run."""
    order = list(range(parameters.members))
    if parameters.single:  # the engine seats the first members; this draws which members come first
        Stream(derive(seed, "committee", run)).shuffle(order)
        roster = Roster(tuple(sorted(order)), (tuple(sorted(order[: parameters.single])),))
    else:
        leaves, *layers = seating(parameters, seed, run)
        groups = [tuple(tuple(group.tolist()) for group in layer) for layer in layers]
        roster = Roster(
            tuple(order),
            tuple(tuple(leaf.tolist()) for leaf in leaves),
            groups[0],
            tuple(groups[1:]),
            tuple(throws_of(h, parameters.bins) for _, _, h in parameters.layers),
        )
    rng = Stream(derive(seed, "adversary", run))
    chosen = adversary.corrupt(roster, budget(config.b, parameters.members), rng)
    places = {member: place for place, member in enumerate(order)}
    bad = sorted(places[member] for member in chosen)
    return play(parameters, seed, run, run + 1, np.array(bad, dtype=np.int64))
