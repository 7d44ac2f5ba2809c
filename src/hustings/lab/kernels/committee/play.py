"""Byzantine elections with committees in groups to a million and more: `play`.

Agreement is replaced by its outcome. That is exact while the faulty are fewer than a third of the
distinct participants; otherwise the node belongs to the adversary, which never favours the good.
Run number k of some parameters and a seed is the same run in any process, alone or among others.

`p_good` is the chance of a good leader given the members of the root. `good_leader` is drawn with
it, and `confirmed` requires besides that the leader's final poll is answered. `informed` is the
share of good members that know the elected member, good or bad; it is 0 where the adversary owns
the root.

Of an agreement `agreeing` is the share of good members that decide what the elected set decided; it
is 0 where the adversary owns the root or a third of the set. `valid` is 0 where all good members
wanted the same and most of them may decide something else. Of a coin `seen` is the share of good
members that see what the root agreed on; where the adversary throws it, it throws 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hustings.core.errors import BadInput
from hustings.lab.kernels.committee.bins import BAD
from hustings.lab.kernels.committee.corruption import corrupt
from hustings.lab.kernels.committee.election import play_run
from hustings.lab.kernels.committee.network import Ids, build, grown
from hustings.lab.kernels.committee.outcome import CORRUPTION, METRICS, NAMES, NETWORK
from hustings.lab.kernels.committee.parameters import CommitteeParameters, memory
from hustings.lab.kernels.counter import root
from hustings.lab.kernels.results import Columns

__all__ = ["METRICS", "CommitteeParameters", "corrupted", "memory", "play", "seating"]

LAST_RUN = 1 << 48
MOST_AT_ONCE = 1_000_000


def play(
    parameters: CommitteeParameters,
    seed: int,
    first: int,
    last: int,
    bad: NDArray[np.int64] | None = None,
) -> Columns:
    """Play runs number `first` to `last` - 1; `bad` are the given ids of the bad, if any.

    >>> found = play(CommitteeParameters(members=200, c0=8, layers=((5, 5, 1),)), 1, 0, 2).metrics
    >>> found["good_leader"].tolist(), found["informed"].tolist()
    ([1.0, 1.0], [1.0, 1.0])
    """
    if not 0 <= first < last <= LAST_RUN:
        raise BadInput(f"runs must be numbered from 0 to {LAST_RUN:,}, the first before the last")
    if last - first > MOST_AT_ONCE:
        raise BadInput(f"at most {MOST_AT_ONCE:,} runs are played at once, not {last - first:,}")
    if (parameters.corruption == "given") != (bad is not None):
        raise BadInput("the ids of the bad belong to corruption 'given', and only there")
    if bad is not None and len(bad) and not 0 <= bad.min() <= bad.max() < parameters.members:
        raise BadInput(f"ids of the bad must lie between 0 and {parameters.members - 1:,}")
    names = NAMES[parameters.task]
    rows = np.zeros((last - first, len(names)))
    for number in range(first, last):
        key = grown(root(seed), number)
        rows[number - first] = play_run(parameters, key, _public(parameters, key), bad)
    columns = {name: rows[:, place] for place, name in enumerate(names)}
    return Columns(columns, np.zeros(last - first, np.bool_))


def seating(parameters: CommitteeParameters, seed: int, run: int) -> list[list[Ids]]:
    """Return what a custom adversary may look at before a run: public, and the same as played.

    The members of each leaf, the leaves that elect each committee of the first layer, and so on for
    all layers. A single public committee is the one leaf.

    >>> leaves, groups = seating(CommitteeParameters(members=200, c0=8, layers=((5, 5, 1),)), 1, 0)
    >>> len(leaves), len(groups), sum(map(len, leaves))
    (25, 5, 200)
    """
    if parameters.single:
        return [[np.arange(parameters.single, dtype=np.int32)]]
    network = build(parameters, _public(parameters, grown(root(seed), run)))
    found = [list(np.split(network.seats, network.cuts[1:-1]))]
    found += [list(np.split(layer.below, layer.start[1:-1])) for layer in network.layers]
    return found


def corrupted(parameters: CommitteeParameters, seed: int, run: int) -> NDArray[np.bool_]:
    """By member: whether the adversary of a run corrupts it.

    >>> tenth = CommitteeParameters(members=200, b=0.1, c0=8, layers=((5, 5, 1),))
    >>> int(corrupted(tenth, 1, 0).sum())
    20
    """
    key = grown(root(seed), run)
    network = None if parameters.single else build(parameters, _public(parameters, key))
    return np.asarray(corrupt(parameters, network, grown(key, CORRUPTION)) == BAD)


def _public(parameters: CommitteeParameters, key: np.uint64) -> np.uint64:
    """Return the key of a run's network: its own, or that of a fixed seed."""
    if parameters.network_seed is None:
        return grown(key, NETWORK)
    return grown(root(parameters.network_seed), NETWORK)
