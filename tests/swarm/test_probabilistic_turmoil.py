"""Turmoil, then calm: the probabilistic election ends whatever happens, and agrees when asked to.

One seed draws group, network, views and misfortunes: crashes, returns, pauses, partitions, deaf
links, suspicions right and wrong, departures, changing attributes. Members run in debug mode.
"""

from __future__ import annotations

import pytest

from hustings.core.choice import Choice, MemberId, parse_choice
from hustings.core.outcome import ELECTING, Elected, NoLeader
from hustings.core.streams import Stream, derive
from hustings.protocols.probabilistic.election import Probabilistic
from hustings.protocols.probabilistic.settings import ProbabilisticConfig
from hustings.sim.faults import schedule
from hustings.sim.world import Ended, World
from tests.swarm.draws import (
    CHOICES,
    Attendance,
    Group,
    draw_candidate,
    draw_trouble,
    reliable,
    unreliable,
)

SEEDS = 60
MANY_SEEDS = 5_000
MAX_EVENTS = 200_000
SHOWN = 5

CASES: list[dict[str, object]] = [
    {},
    {"thinning": "all"},
    {"thinning": "hash", "K": 3},
    {"join_on_contact": True, "K": 2},
    {"estimate": "view", "K": 2, "W": 3.0},
    {"strategy": "1,2,N", "T_2": 4.0},
    {"strategy": "doubling", "K": 1, "max_rounds": 2, "K_max": 1.5},
    {"max_rounds": 1},
]
every_case = pytest.mark.parametrize("settings", CASES, ids=str)


def views_of(stream: Stream, ids: list[MemberId]) -> dict[MemberId, list[MemberId]]:
    share = stream.choice((0.0, 0.3, 0.7))
    return {me: [other for other in ids if other == me or stream.random() < share] for me in ids}


def drawn(settings: dict[str, object], seed: int, *, lossy: bool) -> Group:
    """A group that has started, perhaps with a leader."""
    stream = Stream(derive(seed, "probabilistic", str(settings)))
    choice: Choice = parse_choice(stream.choice(CHOICES))
    ids = stream.sample(range(1, 30), 1 + stream.below(9))
    known: dict[str, object] = {"N": len(ids)} if stream.below(2) else {}
    config = ProbabilisticConfig.parse({**known, **settings})
    world = World(
        lambda: Probabilistic(config, choice),
        [draw_candidate(stream, member) for member in ids],
        seed=seed,
        network=(unreliable if lossy else reliable)(stream),
        views=views_of(stream, ids) if lossy and stream.below(2) else None,
        debug=True,
    )
    group = Group(world, choice, stream, Attendance())
    world.start()
    if stream.below(2):
        group.assume(lambda: stream.choice(ids))
    return group


def trouble(group: Group) -> Ended:
    """All that may happen, and then enough time."""
    stream, world = group.stream, group.world
    horizon = stream.choice((5.0, 40.0, 150.0))
    troubles = [draw_trouble(group, horizon) for _ in range(1 + stream.below(20))]
    schedule(world, [happening for each in troubles for happening in each])
    for member in world.live():
        if stream.below(3) == 0:
            world.tell(member, "call")
    return world.run(max_events=MAX_EVENTS)


def unrest(group: Group, ended: Ended) -> str | None:
    """What is wrong with the end of a run: it must be one."""
    if ended is not Ended.QUIESCENT:
        return f"the run did not end by itself: {ended.value}"
    for member in group.world.live():
        election = member.election
        assert isinstance(election, Probabilistic)
        if election.phase != "idle" or election.expected is not None:
            return f"member {member.id} waits for nothing: {election.state()}"
        if member.outcome == NoLeader(ELECTING):
            return f"member {member.id} is left electing"
        held = member.outcome.leader if isinstance(member.outcome, Elected) else None
        if held != election.leader:
            return f"member {member.id} declared {member.outcome}, and holds {election.leader}"
    return None


def calm(group: Group) -> str | None:
    """Every detector is right, then everybody calls: all hold the best alive."""
    world = group.world
    while True:
        there = [member.id for member in world.live()]
        for member in world.live():
            for other in world.members.values():
                if other is not member:
                    world.tell(member, "alive" if other.up else "suspect", other.id)
        wrong = unrest(group, world.run(max_events=MAX_EVENTS))
        for member in world.live():
            world.tell(member, "call")
        wrong = wrong or unrest(group, world.run(max_events=MAX_EVENTS))
        if wrong is not None:
            return wrong
        if there == [member.id for member in world.live()]:
            return disagreement(group)
        # Somebody was doomed to crash in the middle of what it sends: it was not calm yet.


def disagreement(group: Group) -> str | None:
    best = group.best_alive()
    held = {member.id: member.outcome for member in group.world.live()}
    if len(set(map(str, held.values()))) > 1:
        return f"they hold {held}"
    if any(not isinstance(it, Elected) or it.leader != best for it in held.values()):
        return f"they hold {held}, but {best} is the best alive"
    return None


def check(settings: dict[str, object], seeds: range, *, lossy: bool) -> None:
    wrong = []
    for seed in seeds:
        group = drawn(settings, seed, lossy=lossy)
        what = unrest(group, trouble(group))
        if what is None and not lossy:
            what = calm(group)
        if what is not None:
            wrong.append((seed, what))
    assert not wrong, f"{len(wrong)} of {len(seeds)} seeds fail: {wrong[:SHOWN]}"


@every_case
def test_whatever_happens_a_run_ends_by_itself(settings: dict[str, object]) -> None:
    check(settings, range(SEEDS), lossy=True)


# With fewer rounds or smaller K than it takes, or thinned out, an election may come to nothing.
SURE: list[dict[str, object]] = [
    {},
    {"thinning": "all", "K": 30},
    {"join_on_contact": True},
    {"estimate": "view"},
    {"max_rounds": 1, "K": 30},
]


@pytest.mark.parametrize("settings", SURE, ids=str)
def test_in_calm_a_new_call_makes_all_agree_on_the_best_alive(settings: dict[str, object]) -> None:
    check(settings, range(SEEDS), lossy=False)


@pytest.mark.soak
@every_case
def test_very_many_runs_end_by_themselves(settings: dict[str, object]) -> None:
    check(settings, range(SEEDS, SEEDS + MANY_SEEDS), lossy=True)


@pytest.mark.soak
@pytest.mark.parametrize("settings", SURE, ids=str)
def test_in_calm_very_many_agree(settings: dict[str, object]) -> None:
    check(settings, range(SEEDS, SEEDS + MANY_SEEDS), lossy=False)
