"""Members of the simulated world, put together by the same code that `join` uses.

So the simulated members are those that really run: gossip membership, detector, leadership layer
with its stall bound, and lease, with the defaults of a real network. Time is in seconds; a delay of
0.05 gives exactly the defaults of `join`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from math import inf

from hustings.core.choice import parse_choice
from hustings.core.election import Election
from hustings.core.errors import BadInput
from hustings.net.composition import Configured, Design, compose, configure
from hustings.sim.experiment import PERFECT, SCRIPTED, Composed, Description
from hustings.sim.resident import Composition, Resident


def compose_members(described: Description, settings: Mapping[str, object]) -> Composed:
    """The members of a description, as `join` would build them."""
    if described.detection == PERFECT:
        raise BadInput(
            "composed members have a detector of their own, as accrual or heartbeat, and not "
            f"{described.detection!r}"
        )
    choice = described.choice
    design = Design(
        kind=described.kind,
        choice=parse_choice(choice) if isinstance(choice, str) else choice,
        settings=settings,
        detector="accrual" if described.detection == SCRIPTED else described.detection,
        detector_settings=described.detection_settings,
        leadership_settings=described.leadership_settings,
        measure=described.measure or None,
        reaches_all=True,
        lease=described.guard,
        guard="" if described.guard is None else "simulated",
    )
    config = configure(design)
    if described.voting is not None:
        design = replace(design, voting=described.voting(config.election.delta))
    composition = Composition(
        partial(_member, design, config), config.pause, displaces=_displaces(described, config)
    )
    return Composed(config.election, config.lease, composition, _calm(config))


def _member(design: Design, config: Configured) -> Election:
    made = compose(design, config, "")
    return Resident(made.stack, made.leadership, made.measuring)


def _displaces(described: Description, config: Configured) -> bool:
    """Whether a better member displaces a live leader; the layer by itself forbids this."""
    after = config.leadership.preempt_after
    return after is not None and (after > 0 or described.kind.assumptions.displaces)


def _calm(config: Configured) -> float:
    """By then all detectors have spoken, refused members have asked again, better ones have led."""
    listen: float = getattr(config.election, "listen", 0.0)
    longest = [
        config.leadership.leaderless_limit,
        config.join_wait,
        listen if listen < inf else 0.0,
    ]
    longest += [config.leadership.preempt_after or 0.0]
    longest += [] if config.detector is None else [2 * config.detector.timeout]
    longest += [] if config.lease is None else [2 * config.lease.asked]
    return max(longest) + 20 * config.election.delta
