"""How runs begin: who is dead, who notices, who calls."""

from __future__ import annotations

import pytest

from hustings.core.choice import HighestId, LowestId, candidate, parse_choice
from hustings.core.config import Config
from hustings.core.context import Context
from hustings.core.election import Assumptions, Election
from hustings.core.errors import BadInput, UnknownName
from hustings.core.outcome import Elected
from hustings.sim.experiment import Experiment, prepare
from hustings.sim.faults import Crash, Restart
from hustings.sim.member import Status
from hustings.sim.scenarios import SCENARIOS, Cast, Scenario, begin, cast
from hustings.sim.world import World
from tests.unit.sim.worlds import Stage, people

GROUP = people(5)
HIGHEST = HighestId()


def test_the_best_member_is_the_dead_leader_by_any_choice_function() -> None:
    scenario = Scenario("leader-crash")
    assert cast(scenario, GROUP, HIGHEST).leader == 5
    assert cast(scenario, GROUP, LowestId()).leader == 1
    group = [candidate(1, cpu=3), candidate(2, cpu=9), candidate(3, cpu=1)]
    assert cast(scenario, group, parse_choice("highest:cpu")).leader == 2


def test_the_worst_live_member_opens_if_nobody_is_named() -> None:
    assert cast(Scenario("leader-crash"), GROUP, HIGHEST).openers == (1,)
    assert cast(Scenario("leader-crash", crashed=(1, 2)), GROUP, HIGHEST).openers == (3,)
    assert cast(Scenario("leader-crash"), GROUP, LowestId()).openers == (5,)
    assert cast(Scenario("start"), GROUP, HIGHEST).openers == (1,)


def test_who_is_named_opens_once_each_in_the_order_of_ids() -> None:
    scenario = Scenario("leader-crash", detectors=(3, 1, 3))
    assert cast(scenario, GROUP, HIGHEST).openers == (1, 3)
    assert cast(Scenario("start", initiators=(4, 2)), GROUP, HIGHEST).openers == (2, 4)


def test_the_down_are_the_leader_and_those_named() -> None:
    assert cast(Scenario("leader-crash", crashed=(4, 2)), GROUP, HIGHEST) == Cast(
        5, (2, 4, 5), (1,)
    )
    assert cast(Scenario("leader-crash", crashed=(5,)), GROUP, HIGHEST).down == (5,)
    assert cast(Scenario("start", crashed=(2,)), GROUP, HIGHEST) == Cast(None, (2,), (1,))


def test_a_detector_finds_a_crash_by_itself_but_somebody_must_call_the_first_election() -> None:
    assert cast(Scenario("leader-crash"), GROUP, HIGHEST, scripted=False).openers == ()
    assert cast(Scenario("start"), GROUP, HIGHEST, scripted=False).openers == (1,)


WRONG: list[tuple[Scenario, str]] = [
    (Scenario("leader-crash", crashed=(9,)), "crashed 9 is not a member"),
    (Scenario("leader-crash", detectors=(0,)), "detector 0 is not a member"),
    (Scenario("start", initiators=(6,)), "initiator 6 is not a member"),
    (Scenario("leader-crash", detectors=(5,)), "member 5 is crashed"),
    (Scenario("leader-crash", crashed=(2,), detectors=(2,)), "member 2 is crashed"),
    (Scenario("start", crashed=(2,), initiators=(2,)), "member 2 is crashed"),
    (Scenario("leader-crash", crashed=(1, 2, 3, 4)), "5 of 5 members are crashed"),
    (Scenario("start", crashed=(1, 2, 3, 4, 5)), "5 of 5 members are crashed"),
    (Scenario("start", detectors=(1,)), "no dead leader to detect"),
]


@pytest.mark.parametrize("scenario, complaint", WRONG)
def test_contradictions_are_refused_with_a_sentence(scenario: Scenario, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        cast(scenario, GROUP, HIGHEST)


def test_an_unknown_scenario_gets_the_nearest_name() -> None:
    with pytest.raises(UnknownName, match="did you mean 'leader-crash'"):
        cast(Scenario("leader_crsh"), GROUP, HIGHEST)


def test_one_member_alone_cannot_have_lost_its_leader() -> None:
    with pytest.raises(BadInput, match="1 of 1 members are crashed"):
        cast(Scenario("leader-crash"), people(1), HIGHEST)
    assert cast(Scenario("start"), people(1), HIGHEST).openers == (1,)


# The beginning of a world


def began(scenario: Scenario, *, live_view: bool = False, tell: bool = True) -> Stage:
    stage = Stage(5, up=[])
    parts = cast(scenario, GROUP, HIGHEST)
    begin(stage, scenario, parts, live_view=live_view, tell=tell)
    return stage


def test_leader_crash_begins_with_a_dead_leader_whom_all_still_hold() -> None:
    stage = began(Scenario("leader-crash", crashed=(2,), detectors=(3, 1)))
    assert [member.status for member in stage.members.values()] == [
        Status.UP,
        Status.CRASHED,
        Status.UP,
        Status.UP,
        Status.CRASHED,
    ]
    for member in stage.live():
        assert member.outcome == Elected(5, 1)
        assert (member.election.leader, member.election.term) == (5, 1)
    assert stage.played() == [(0.0, 1, "suspect 5"), (0.0, 3, "suspect 5")]


def test_start_begins_without_a_leader_and_with_a_call() -> None:
    stage = began(Scenario("start", crashed=(2,), initiators=(4, 3)))
    assert [member.id for member in stage.live()] == [1, 3, 4, 5]
    assert all(member.outcome is None for member in stage.live())
    assert stage.played() == [(0.0, 3, "call"), (0.0, 4, "call")]


def test_nobody_is_told_of_the_crash_if_a_detector_is_to_notice_it() -> None:
    assert began(Scenario("leader-crash"), tell=False).played() == []
    assert began(Scenario("start"), tell=False).played() == [(0.0, 1, "call")]


def test_views_of_the_living_hold_the_living() -> None:
    scenario = Scenario("leader-crash", crashed=(2,))
    assert began(scenario, live_view=True).members[1].view.ids == [1, 3, 4]
    assert began(scenario).members[1].view.ids == [1, 2, 3, 4, 5]


def test_what_is_extra_comes_after_the_opening() -> None:
    stage = began(Scenario("start", extra=(Crash(member=1), Crash(member=3, at=1.0))))
    assert stage.played() == [(0.0, 1, "call")]
    assert [member.id for member in stage.live()] == [2, 4, 5]


def test_who_was_dead_from_the_beginning_returns_as_a_new_incarnation() -> None:
    """It lived before the run began: it was the leader."""
    stage = began(Scenario("leader-crash", extra=(Restart(member=5, at=3.0),)))
    stage.run()
    assert stage.members[5].up
    assert stage.members[5].incarnation == 2
    assert stage.members[4].incarnation == 1


class Modest(Election):
    """Notes what it is told to assume."""

    assumptions = Assumptions(live_view=True)

    def assume_leader(self, ctx: Context, leader: int, term: int) -> None:
        super().assume_leader(ctx, leader, term)
        ctx.persist(assumed=leader, seen=tuple(ctx.view))


def test_a_protocol_may_prepare_for_a_beginning_in_the_middle() -> None:
    experiment = Experiment(Modest, 4, Config(), scenario=Scenario("leader-crash", crashed=(1,)))
    world: World = prepare(experiment, 0)
    assert [dict(member.stored) for member in world.live()] == [
        {"assumed": 4, "seen": (2, 3)},
        {"assumed": 4, "seen": (2, 3)},
    ]


def test_the_catalogue_of_scenarios() -> None:
    assert list(SCENARIOS) == ["start", "leader-crash"]
