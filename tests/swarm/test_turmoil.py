"""Turmoil, then calm: the whole catalogue under crashes, returns and every other misfortune.

One seed draws group, network and misfortunes; a failure ends with the line that replays it.
"""

from __future__ import annotations

import pytest

from hustings.core.election import Election
from hustings.protocols.catalogue import CATALOGUE
from tests.swarm.claims import CLAIMS, judge
from tests.swarm.replay import main, replay

SEEDS = 400
MANY_SEEDS = 20_000
SHOWN = 5  # failures that are told in full

EVERY_CLAIM = pytest.mark.parametrize("claim", CLAIMS)
EVERY_PROTOCOL = pytest.mark.parametrize("kind", CATALOGUE, ids=lambda kind: kind.about.name)


def check(claim: str, kind: type[Election], seeds: range) -> None:
    wrong = [(seed, what) for seed in seeds if (what := judge(claim, kind, seed)) is not None]
    lines = [
        f"python -m tests.swarm.replay {claim} {kind.about.name} {seed}  # {what}"
        for seed, what in wrong[:SHOWN]
    ]
    assert not wrong, f"{len(wrong)} of {len(seeds)} seeds fail:\n" + "\n".join(lines)


@EVERY_PROTOCOL
@EVERY_CLAIM
def test_the_claim_holds(claim: str, kind: type[Election]) -> None:
    check(claim, kind, range(SEEDS))


@pytest.mark.soak
@EVERY_PROTOCOL
@EVERY_CLAIM
def test_the_claim_holds_for_very_many_seeds(claim: str, kind: type[Election]) -> None:
    check(claim, kind, range(SEEDS, SEEDS + MANY_SEEDS))
