"""Turmoil, then calm: announcing elections come back to one leader, the best alive.

One seed draws group, network and misfortunes: crashes, returns, pauses, partitions, deaf links,
wrong suspicions, departures, changing attributes. Members run in debug mode.
"""

from __future__ import annotations

import pytest

from hustings.core.choice import parse_choice
from hustings.core.outcome import Elected
from hustings.core.streams import Stream, derive
from hustings.protocols.announce.machine import Machine
from hustings.protocols.registry import find
from hustings.sim.faults import schedule
from hustings.sim.world import World
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
MANY_SEEDS = 3_000
LASTS = 20.0  # a pause or a partition, at most
CALM = 25.0  # enough for everything to be missed and repeated

CASES: list[tuple[str, dict[str, object]]] = [
    ("le-a", {}),
    ("le-a", {"query": "query", "bye": 2}),
    ("le-s", {}),
    ("le-s", {"wake": "criterion", "bye_loss": 0.2, "bye_gap": 0.5}),
    ("le-s", {"query": "suppress-query", "law": "exponential"}),
    ("le-s", {"leaders": 2, "bye": 1}),
    ("le-s", {"aged": 3, "T_L": 6}),
    ("le-s", {"leaders": 3, "aged": 2, "T_L": 4, "query": "query"}),
    ("le-m", {}),
    ("le-m", {"key": "relative", "query": "suppress-query"}),
    ("le-m", {"leaders": 2, "aged": 2, "T_L": 4}),
    ("al", {"T_L": 3}),
]
UNPROMISING: list[tuple[str, dict[str, object]]] = [
    ("sup", {}),
    ("le-s-printed", {}),
    ("sup-al", {}),
    ("sup-al", {"yields": False}),
]
every_case = pytest.mark.parametrize("name, settings", CASES, ids=str)


def troubled(name: str, settings: dict[str, object], seed: int, *, lossy: bool) -> Group:
    """A group that has seen all its misfortunes, and some calm after them."""
    kind = find(name)
    config = kind.Settings.parse(settings)
    stream = Stream(derive(seed, "announce", name, str(settings)))
    choice = parse_choice(stream.choice(CHOICES))
    ids = stream.sample(range(1, 30), 1 + stream.below(8))
    world = World(
        lambda: kind(config, choice),
        [draw_candidate(stream, member) for member in ids],
        seed=seed,
        network=(unreliable if lossy else reliable)(stream),
        debug=True,
    )
    group = Group(world, choice, stream, Attendance())
    world.start()
    if stream.below(2):
        leader = group.ranked()[0]
        group.assume(lambda: leader)
    horizon = stream.choice((5.0, 20.0, 40.0))
    troubles = [draw_trouble(group, horizon) for _ in range(1 + stream.below(15))]
    schedule(world, [happening for each in troubles for happening in each])
    world.run(until=horizon + LASTS + CALM, max_events=200_000)
    return group


def complaint(name: str, group: Group) -> str | None:
    live = group.world.live()
    best = group.best_alive()
    held = {member.id: member.outcome for member in live}
    leaders = {each.leader for each in held.values() if isinstance(each, Elected)}
    if not live:
        return None
    if len(leaders) != 1 or not all(isinstance(each, Elected) for each in held.values()):
        return f"they hold {held}"
    (leader,) = leaders
    if not group.world.members[leader].up:
        return f"{leader} is gone"
    if leader != best and name != "le-m":
        return f"{leader} leads, but {best} is the best alive"
    return None


def check(name: str, settings: dict[str, object], seeds: range) -> None:
    wrong = []
    for seed in seeds:
        group = troubled(name, settings, seed, lossy=False)
        if (what := complaint(name, group)) is not None:
            wrong.append((seed, what))
    assert not wrong


@every_case
def test_calm_comes_back(name: str, settings: dict[str, object]) -> None:
    check(name, settings, range(SEEDS))


@pytest.mark.soak
@every_case
def test_calm_comes_back_for_very_many_seeds(name: str, settings: dict[str, object]) -> None:
    check(name, settings, range(SEEDS, SEEDS + MANY_SEEDS))


@pytest.mark.parametrize("name, settings", [*CASES, *UNPROMISING], ids=str)
def test_no_misfortune_makes_a_handler_raise(name: str, settings: dict[str, object]) -> None:
    for seed in range(SEEDS // 2):
        group = troubled(name, settings, seed, lossy=True)
        for member in group.world.live():
            assert member.outcome is not None
            if isinstance(member.election, Machine):
                assert member.election.leader is not None
