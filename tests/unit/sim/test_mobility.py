"""Members that move: their paths, who is in range of whom, and what is refused."""

from __future__ import annotations

import math
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hustings.core.choice import MemberId
from hustings.core.errors import BadInput
from hustings.core.streams import Stream
from hustings.sim.mobility import (
    MAX_ROAMING,
    Leg,
    Mobility,
    Path,
    Place,
    RandomWaypoint,
    Still,
    Topology,
    contacts,
    parse_mobility,
)

HORIZON = 200.0
NEAR = 1e-6  # of a length: what rounding may cost

waypoints = st.builds(
    lambda side, reach, slow, more, pause: RandomWaypoint(
        side=side, range=reach, speed_min=slow, speed_max=slow + more, pause=pause
    ),
    st.floats(100.0, 1000.0),
    st.floats(0.0, 1500.0),
    st.floats(0.5, 20.0),
    st.floats(0.0, 20.0),
    st.floats(0.0, 30.0),
)
seeds = st.integers(0, 2**64 - 1)


def place(path: Path, at: float) -> Place:
    """The dumb way: the last leg that has begun."""
    return [leg for leg in path if leg.start <= at][-1].at(at)


def ends(path: Path) -> list[float]:
    return [leg.start for leg in path[1:]]


# Paths


@given(waypoints, seeds)
def test_a_path_stays_in_the_square_and_within_its_speeds(model: RandomWaypoint, seed: int) -> None:
    path = model.path(Stream(seed), HORIZON)
    assert path[0].start == 0.0
    for leg, end in zip(path, [*ends(path), HORIZON], strict=True):
        for x in (*leg.at(leg.start), *leg.at(min(end, HORIZON))):
            assert -NEAR <= x <= model.side + NEAR
        speed = math.hypot(leg.vx, leg.vy)
        if speed:
            assert model.speed_min - NEAR <= speed <= model.speed_max + NEAR
        else:
            assert model.pause > 0


@given(waypoints, seeds)
def test_nobody_jumps(model: RandomWaypoint, seed: int) -> None:
    path = model.path(Stream(seed), HORIZON)
    for leg, following in pairwise(path):
        assert following.start >= leg.start
        assert math.dist(leg.at(following.start), following[1:3]) < NEAR * model.side


def test_a_member_rests_for_its_pause() -> None:
    path = RandomWaypoint(pause=30.0).path(Stream(4), 2000.0)
    rests = [
        following.start - leg.start
        for leg, following in pairwise(path[1:])
        if (leg.vx, leg.vy) == (0.0, 0.0)
    ]
    assert len(rests) > 3
    assert rests == pytest.approx([30.0] * len(rests))


def test_paths_begin_in_the_steady_state() -> None:
    """Where members are, how fast, and how many rest: the same at 0 as long afterwards."""
    model = RandomWaypoint(speed_min=1.0, speed_max=20.0, pause=40.0)
    paths = [model.path(Stream(seed), 2000.0) for seed in range(3000)]
    centre = (model.side / 2, model.side / 2)
    found = []
    for at in (0.0, 1900.0):
        legs = [[leg for leg in path if leg.start <= at][-1] for path in paths]
        speeds = [math.hypot(leg.vx, leg.vy) for leg in legs]
        away = [math.dist(leg.at(at), centre) for leg in legs]
        moving = [speed for speed in speeds if speed]
        found.append((sum(away) / 3000, len(moving) / 3000, sum(moving) / len(moving)))
    assert found[0] == pytest.approx(found[1], rel=0.08)
    # A uniform square would have .3826 of its side; waypoints gather in the middle.
    assert found[0][0] < 0.36 * model.side
    assert found[0][2] == pytest.approx(19.0 / math.log(20.0), rel=0.05)


def test_one_seed_makes_every_path_and_no_member_another_ones() -> None:
    model = RandomWaypoint()
    few, many = model.paths(3, HORIZON, 7), model.paths(9, HORIZON, 7)
    assert few == {member: many[member] for member in (1, 2, 3)}
    assert few != model.paths(3, HORIZON, 8)
    assert len(dict.fromkeys(many.values())) == 9


def test_who_stands_still_stays() -> None:
    assert len(Still().path(Stream(1), HORIZON)) == 1
    (only,) = Still(range=400.0).topologies(8, HORIZON, 1)
    assert only.at == 0.0


# Contacts


@settings(max_examples=30)
@given(waypoints, seeds, seeds)
def test_contacts_are_what_looking_shows(model: RandomWaypoint, one: int, other: int) -> None:
    paths = [model.path(Stream(seed), HORIZON) for seed in (one, other)]
    found = contacts(paths[0], paths[1], model.range, HORIZON)
    for look in range(200):
        at = look + 0.5
        away = math.dist(place(paths[0], at), place(paths[1], at))
        if abs(away - model.range) > NEAR * model.side:
            assert any(start <= at < end for start, end in found) is (away < model.range)


def test_a_contact_goes_on_over_a_turn() -> None:
    """Whoever turns round within range is not lost for an instant."""
    there_and_back = (Leg(0.0, 0.0, 0.0, 1.0, 0.0), Leg(4.0, 4.0, 0.0, -1.0, 0.0))
    standing = (Leg(0.0, 5.0, 0.0),)
    assert contacts(there_and_back, standing, 2.0, 100.0) == [(3.0, 5.0)]
    assert contacts(there_and_back, standing, 1.0, 100.0) == []


# Topologies


@settings(max_examples=24)
@given(waypoints, st.integers(1, 8), seeds)
def test_components_part_the_members(model: RandomWaypoint, members: int, seed: int) -> None:
    seen = []
    for topology in model.topologies(members, HORIZON, seed):
        together = [one for component in topology.components() for one in component]
        assert sorted(together) == list(range(1, members + 1))
        seen.append(topology.at)
    assert seen[0] == 0.0
    assert seen == sorted(seen)
    assert len(dict.fromkeys(seen)) == len(seen)


def brute(model: Mobility, paths: dict[MemberId, Path], at: float) -> tuple[tuple[int, ...], ...]:
    """Components by merging, from distances."""
    label = {member: member for member in paths}
    for _ in paths:
        for one, other in combinations(paths, 2):
            if math.dist(place(paths[one], at), place(paths[other], at)) < model.range:
                label[one] = label[other] = min(label[one], label[other])
    firsts = sorted({*label.values()})
    return tuple(tuple(m for m in sorted(paths) if label[m] == first) for first in firsts)


@settings(max_examples=12)
@given(waypoints, seeds)
def test_between_two_changes_components_are_those_of_the_distances(
    model: RandomWaypoint, seed: int
) -> None:
    paths = model.paths(6, HORIZON, seed)
    topologies = list(model.topologies(6, HORIZON, seed))
    for topology, following in pairwise([*topologies, Topology(HORIZON, {})]):
        if following.at - topology.at > 1e-3:
            middle = (topology.at + following.at) / 2
            assert topology.components() == brute(model, paths, middle)


@given(seeds)
def test_without_end_one_component_and_without_range_each_alone(seed: int) -> None:
    far, none = RandomWaypoint(range=math.inf), RandomWaypoint(range=0.0)
    assert [one.components() for one in far.topologies(5, 50.0, seed)] == [((1, 2, 3, 4, 5),)]
    (only,) = none.topologies(5, 50.0, seed)
    assert only.components() == ((1,), (2,), (3,), (4,), (5,))


def test_being_connected_goes_over_others() -> None:
    chain = Topology(0.0, {1: {2: None}, 2: {1: None, 3: None}, 3: {2: None}, 4: {}})
    assert chain.components() == ((1, 2, 3), (4,))


# What is refused

WRONG = [
    ({"side": "0"}, "side must be a length > 0, not 0"),
    ({"side": "inf"}, "side must be a length > 0"),
    ({"range": "-1"}, "range must be a length >= 0, not -1"),
    ({"range": "wide"}, "range must be a number, not 'wide'"),
    ({"speed_min": "0"}, "speed_min must be > 0 and at most speed_max"),
    ({"speed_min": "11"}, "not 11 and 10"),
    ({"pause": "-1"}, "pause must be a time >= 0, not -1"),
    ({"links": "wired"}, "links must be routed or direct, not 'wired'"),
    ({"settle": "0"}, "settle must be a time > 0, not 0"),
    ({"rnge": "1"}, "unknown mobility setting 'rnge': did you mean 'range'?"),
    ({"side": "-1", "pause": "-1"}, "side must be a length > 0, not -1; pause must be"),
]


@pytest.mark.parametrize("given_, complaint", WRONG)
def test_what_is_no_world_is_refused(given_: dict[str, object], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint.replace("?", r"\?")):
        parse_mobility("random-waypoint", given_)


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(BadInput, match="unknown mobility 'waypoint'"):
        parse_mobility("waypoint", {})
    with pytest.raises(BadInput, match="unknown mobility setting 'pause'"):
        parse_mobility("still", {"pause": 1})


def test_too_much_is_refused() -> None:
    with pytest.raises(BadInput, match="at most 200 members move about, not 201"):
        Still().check(MAX_ROAMING + 1, 1.0)
    with pytest.raises(BadInput, match="too many pieces"):
        RandomWaypoint(side=1e-3).check(10, 1000.0)
