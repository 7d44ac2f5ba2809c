"""The overhead-aware paper's section 6, its future work: mobile ad hoc groups.

The paper asks for a leader that survives "failures or disconnections of mobile nodes". Our reading:
members move by random waypoint, those in range of each other are linked, a component is a group of
its own, and each component shall have one leader. We assume a routing layer within a component.
"""

from __future__ import annotations

import pytest

from hustings.core.choice import MemberId
from hustings.protocols.registry import find
from hustings.sim.checkers import Verdict
from hustings.sim.consistency import held_by
from hustings.sim.delay import Fixed
from hustings.sim.experiment import Description, Experiment, build
from hustings.sim.faults import Crash, Happening
from hustings.sim.mobility import DIRECT, ROUTED, RandomWaypoint
from hustings.sim.network import Network
from hustings.sim.play import RunResult, play, prepare
from hustings.sim.scenarios import Scenario
from hustings.sim.world import Ended
from hustings.testing.composed import compose_members

MEMBERS = 8
UNTIL = 150.0
SETTLE = 15.0


def mobile(
    name: str,
    *extra: Happening,
    composed: bool = False,
    links: str = ROUTED,
    reach: float = 250.0,
    **settings: object,
) -> Experiment:
    """Eight members in a square of 1000, at up to 10 a second."""
    kind = find(name)
    detected = not composed and not kind.assumptions.announces
    model = RandomWaypoint(links=links, range=reach, settle=SETTLE)
    return build(
        Description(
            kind=kind,
            members=MEMBERS,
            settings=settings,
            network=Network(delay=Fixed(0.05)),
            scenario=Scenario(extra=extra, mobility=model),
            detection="heartbeat" if detected else "scripted",
            detection_settings={"T": 1.0} if detected else {},
            composer=compose_members if composed else None,
            until=UNTIL,
            digest=True,
        )
    )


def judged(result: RunResult) -> Verdict:
    assert list(result.verdicts) == ["components"]
    return result.verdicts["components"][0]


def share(result: RunResult, name: str) -> float:
    value = result.metrics[name]
    assert value is not None
    return value


HOLDING = (
    *("broadcast", "ring", "bully", "bully-map", "bully-grant", "bully-group", "stable"),
    *("bully-assistant", "le-a", "le-s", "le-m", "al"),
)


@pytest.mark.parametrize("name", HOLDING)
def test_each_component_comes_to_one_leader(name: str) -> None:
    result = play(mobile(name), 0)
    assert judged(result) is Verdict.HOLDS, result.verdicts
    assert result.ended is Ended.UNTIL
    assert share(result, "splits") > 2
    assert share(result, "merges") > 2
    assert share(result, "one_leader") > 0.9


@pytest.mark.parametrize("name", ["bully", "le-s", "probabilistic"])
def test_whole_members_hold_too(name: str) -> None:
    """As `join` builds them; components that meet are reconciled by the leadership layer."""
    result = play(mobile(name, composed=True), 0)
    assert judged(result) is Verdict.HOLDS, result.verdicts
    assert share(result, "one_leader") > 0.85


@pytest.mark.parametrize("name", ["sup", "probabilistic"])
def test_an_election_that_is_over_holds_not(name: str) -> None:
    """Who speaks once, or asks nobody after a merger, is left with the leaders of both parts."""
    result = play(mobile(name), 0)
    assert judged(result) is Verdict.VIOLATED
    assert share(result, "several_leaders") > 0.1


def test_a_majority_never_has_two_leaders_and_a_minority_has_none() -> None:
    result = play(mobile("quorum"), 0)
    assert judged(result) is Verdict.VIOLATED
    assert share(result, "several_leaders") == 0.0
    assert share(result, "no_leader") > 0.1


def test_the_best_leads_where_the_paper_wants_it_and_not_where_leaders_are_stable() -> None:
    best, stable = (play(mobile(name), 0) for name in ("bully-map", "stable"))
    assert share(best, "best_leader") == share(best, "one_leader")
    assert share(stable, "best_leader") < share(stable, "one_leader")


def test_without_a_routing_layer_nobody_has_one_leader() -> None:
    """Over one hop members two hops apart never hear of each other: no protocol here relays."""
    reach = 400.0  # a component is then often wider than a hop
    routed, direct = (
        play(mobile("le-s", links=links, reach=reach), 0) for links in (ROUTED, DIRECT)
    )
    for name in ("components", "splits", "merges"):
        assert share(routed, name) == share(direct, name)
    assert judged(direct) is Verdict.VIOLATED
    assert share(direct, "one_leader") < 0.7 < share(routed, "one_leader")


def test_a_crash_is_survived_as_well_as_a_disconnection() -> None:
    result = play(mobile("bully-map", Crash(member=8, at=50.0)), 0)
    assert result.unplayed == ()
    assert judged(result) is Verdict.HOLDS


def test_where_all_are_in_range_it_is_a_group_as_any_other() -> None:
    result = play(mobile("bully", reach=2000.0), 0)
    assert (share(result, "components"), share(result, "splits")) == (1.0, 0.0)
    assert share(result, "one_leader") > 0.99
    assert result.metrics["leader"] == 8.0


@pytest.mark.parametrize("name", ["bully", "le-s"])
def test_shares_are_what_looking_shows(name: str) -> None:
    """A dumb twin: who is where, and who holds whom, on a grid of instants."""
    experiment = mobile(name)
    world = prepare(experiment, 0)
    mobility = experiment.scenario.mobility
    assert mobility is not None
    topologies = list(mobility.topologies(MEMBERS, UNTIL, world.seed))
    looks = one = several = 0
    step = 0.05
    for number in range(int(UNTIL / step)):
        at = (number + 0.5) * step
        world.run(at)
        now = [each for each in topologies if each.at <= at][-1]
        for component in now.components():
            held = [held_by(world.members[member]) for member in component]
            leading = [who for who, whom in zip(component, held, strict=True) if who == whom]
            looks += len(component)
            one += len(component) * (held[0] in component and held.count(held[0]) == len(held))
            several += len(component) * (len(leading) > 1)
    result = play(experiment, 0)
    assert looks == MEMBERS * UNTIL / step
    assert share(result, "one_leader") == pytest.approx(one / looks, abs=0.003)
    assert share(result, "several_leaders") == pytest.approx(several / looks, abs=0.003)


def test_members_reach_exactly_those_of_their_component() -> None:
    experiment = mobile("le-s")
    world = prepare(experiment, 0)
    mobility = experiment.scenario.mobility
    assert mobility is not None
    for topology in list(mobility.topologies(MEMBERS, UNTIL, world.seed))[:20]:
        world.run(topology.at)
        mates: dict[MemberId, tuple[MemberId, ...]] = {
            member: component for component in topology.components() for member in component
        }
        for one, near in mates.items():
            for other in mates:
                assert world.partitions.between(one, other) is (other not in near)


def test_one_seed_makes_the_world() -> None:
    experiment = mobile("le-s")
    first, again, other = (play(experiment, run) for run in (0, 0, 1))
    assert first == again
    assert first.digest != other.digest
