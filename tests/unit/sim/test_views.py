"""Who knows whom: full, partial and explicit views, and how they change."""

from __future__ import annotations

import pytest

from hustings.core.choice import HighestId, candidate, parse_choice
from hustings.core.errors import BadInput, UnknownName
from hustings.protocols.bully import Bully, BullyConfig
from hustings.protocols.ring import Ring, RingConfig
from hustings.sim.experiment import Experiment
from hustings.sim.faults import Crash, Join, Leave, Restart, Update, schedule
from hustings.sim.member import partial_views
from hustings.sim.play import prepare
from hustings.sim.scenarios import Scenario
from hustings.sim.world import World
from tests.unit.sim.worlds import Stage, cry, people


def test_by_default_everybody_knows_everybody_through_one_view() -> None:
    stage = Stage(4)
    assert all(member.view.ids == [1, 2, 3, 4] for member in stage.live())
    assert all(member.view is stage.members[1].view for member in stage.live())


def test_an_explicit_view_is_as_listed_with_oneself_and_sorted() -> None:
    stage = Stage(4, views={2: [4, 1], 3: []})
    assert [member.view.ids for member in stage.live()] == [
        [1, 2, 3, 4],
        [1, 2, 4],
        [3],
        [1, 2, 3, 4],
    ]


def test_a_view_of_a_stranger_is_refused() -> None:
    for views in ({1: [9]}, {9: [1]}):
        with pytest.raises(UnknownName, match="unknown member '9'"):
            Stage(3, views=views)


def test_a_multicast_reaches_the_group_whatever_the_views_say() -> None:
    stage = Stage(3, views={1: []})
    cry(1)(stage.members[1])
    assert [who for _, who, _ in stage.played()] == [2, 3]


# Partial views


def test_a_certain_view_is_the_full_one() -> None:
    assert partial_views([1, 2, 3], 1.0, 5) is None


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan")])
def test_a_view_has_a_probability(wrong: float) -> None:
    with pytest.raises(BadInput, match="view probability must lie in"):
        partial_views([1, 2], wrong, 1)


def test_an_experiment_draws_new_views_for_every_run() -> None:
    experiment = Experiment(Bully, 20, BullyConfig(), view_probability=0.5)
    runs = [[one.view.ids for one in prepare(experiment, run).live()] for run in (0, 0, 1)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


# Changes


def test_leaving_changes_every_view_that_held_the_member_and_no_other() -> None:
    stage = Stage(4, views={2: [1, 3], 3: [4]})
    before = [member.view.version for member in stage.members.values()]
    stage.plan(Leave(member=1, at=1.0))
    stage.run()
    assert [member.view.ids for member in stage.live()] == [[2, 3], [3, 4], [2, 3, 4]]
    after = [member.view.version for member in stage.members.values()]
    assert after[1] > before[1]
    assert after[2] == before[2]
    assert after[3] > before[3]


def test_a_crash_changes_no_view() -> None:
    stage = Stage(3)
    version = stage.members[1].view.version
    stage.plan(Crash(member=2, at=1.0))
    stage.run()
    assert stage.members[1].view.ids == [1, 2, 3]
    assert stage.members[1].view.version == version


def test_a_return_is_seen_in_all_full_views() -> None:
    stage = Stage(3)
    stage.plan(Leave(member=2, at=1.0), Restart(member=2, at=2.0))
    stage.run(until=1.5)
    version = stage.members[1].view.version
    assert stage.members[1].view.ids == [1, 3]
    stage.run()
    assert stage.members[1].view.ids == [1, 2, 3]
    assert stage.members[1].view.version > version


def test_who_leaves_and_returns_still_knows_itself() -> None:
    """Also when its view was its own: a ranking asks for its own place."""
    world = World(lambda: Bully(BullyConfig(), HighestId()), people(3), views={1: [1, 2, 3]})
    world.start()
    schedule(world, [Leave(member=1, at=1.0), Restart(member=1, at=2.0)])
    world.run()
    assert 1 in world.members[1].view
    assert world.members[1].election.leader == 3


def test_a_ranking_follows_new_attributes_in_every_view() -> None:
    choice = parse_choice("highest:cpu")
    group = [candidate(1, cpu=1), candidate(2, cpu=2), candidate(3, cpu=3)]
    world = World(lambda: Bully(BullyConfig(), choice), group, views={2: [1, 2, 3]})
    world.start()
    for member in world.live():
        assert member.view.ranking(choice).ids == (3, 2, 1)
    schedule(world, [Update(member=1, candidate=candidate(1, cpu=9), at=1.0)])
    world.run()
    for member in world.live():
        assert member.view.ranking(choice).ids == (1, 3, 2)


def test_somebody_who_joins_becomes_known_then() -> None:
    stage = Stage(3, up=[1, 2])
    stage.everybody_forgets(stage.members[3])
    version = stage.members[1].view.version
    assert stage.members[1].view.ids == [1, 2]
    stage.plan(Join(member=3, at=1.0))
    stage.run()
    assert stage.members[1].view.ids == [1, 2, 3]
    assert stage.members[1].view.version > version


# Views of the living


@pytest.mark.parametrize("probability", [1.0, 0.8])
def test_a_protocol_that_wants_the_living_gets_them(probability: float) -> None:
    dead = Scenario("leader-crash", crashed=(2, 5))
    experiment = Experiment(
        Ring, 8, RingConfig(), scenario=dead, view_probability=probability, seed=3
    )
    world = prepare(experiment, 0)
    for member in world.live():
        assert member.id in member.view
        assert not {2, 5, 8} & set(member.view.ids)


def test_a_protocol_that_does_not_ask_knows_the_dead_too() -> None:
    experiment = Experiment(Bully, 5, BullyConfig(), scenario=Scenario("leader-crash"))
    assert prepare(experiment, 0).members[1].view.ids == [1, 2, 3, 4, 5]


def test_a_dead_member_that_returns_is_in_the_view_of_the_living_again() -> None:
    scenario = Scenario("leader-crash", extra=(Restart(member=5, at=30.0),))
    world = prepare(Experiment(Ring, 5, RingConfig(), scenario=scenario), 0)
    world.run(until=29.0)
    assert world.members[1].view.ids == [1, 2, 3, 4]
    world.run()
    assert world.members[1].view.ids == [1, 2, 3, 4, 5]
