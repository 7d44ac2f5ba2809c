"""How runs begin: who is dead, who notices, who calls."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hustings.core.choice import HighestId, LowestId, candidate, parse_choice
from hustings.core.config import Config
from hustings.core.context import Context
from hustings.core.election import Assumptions, Election
from hustings.core.errors import BadInput, UnknownName
from hustings.core.outcome import Elected
from hustings.protocols.bully import Bully, BullyConfig
from hustings.protocols.registry import COMPARED, classes
from hustings.sim.checkers import Verdict
from hustings.sim.experiment import Experiment
from hustings.sim.faults import Crash, Restart
from hustings.sim.member import Status
from hustings.sim.play import play, prepare
from hustings.sim.scenarios import SCENARIOS, Cast, Rates, Scenario, begin, cast
from hustings.sim.world import Ended, World
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
    assert list(SCENARIOS) == [
        "start",
        "leader-crash",
        "leader-leave",
        "join-larger",
        "join-smaller",
        "false-departure",
        "churn",
    ]
    assert all(about.endswith(".") for about in SCENARIOS.values())


# Other scenarios than the classic two


@pytest.mark.parametrize("name", ["leader-leave", "false-departure"])
def test_a_leader_that_lives_at_first_is_the_best_of_the_living(name: str) -> None:
    assert cast(Scenario(name), GROUP, HIGHEST) == Cast(5, (), (1,))
    assert cast(Scenario(name, crashed=(5, 1)), GROUP, HIGHEST) == Cast(4, (1, 5), (2,))
    assert cast(Scenario(name, detectors=(3, 2)), GROUP, LowestId()).openers == (2, 3)


def test_who_joins_is_the_best_or_the_worst_of_all_and_calls() -> None:
    assert cast(Scenario("join-larger"), GROUP, HIGHEST) == Cast(4, (), (5,), (5,))
    assert cast(Scenario("join-smaller"), GROUP, HIGHEST) == Cast(5, (), (1,), (1,))
    assert cast(Scenario("join-larger"), GROUP, LowestId()) == Cast(2, (), (1,), (1,))
    assert cast(Scenario("join-larger", initiators=(2,)), GROUP, HIGHEST).openers == (2,)


def test_who_announces_is_told_nothing_unless_somebody_is_named() -> None:
    for name in SCENARIOS:
        if name != "churn":
            assert cast(Scenario(name), GROUP, HIGHEST, announces=True).openers == ()
    named = Scenario("leader-crash", detectors=(2,))
    assert cast(named, GROUP, HIGHEST, announces=True) == Cast(5, (), (2,))


def test_a_detector_finds_a_departure_but_a_false_one_is_a_script() -> None:
    assert cast(Scenario("leader-leave"), GROUP, HIGHEST, scripted=False).openers == ()
    assert cast(Scenario("false-departure"), GROUP, HIGHEST, scripted=False).openers == (1,)
    assert cast(Scenario("join-smaller"), GROUP, HIGHEST, scripted=False).openers == (1,)


ALSO_WRONG: list[tuple[Scenario, str]] = [
    (Scenario("leader-leave", detectors=(5,)), "member 5 is the leader"),
    (
        Scenario("leader-leave", crashed=(1, 2, 3, 4)),
        "needs a live member in addition to the leader",
    ),
    (
        Scenario("false-departure", crashed=(1, 2, 3, 4)),
        "needs a live member in addition to the leader",
    ),
    (Scenario("join-larger", crashed=(1, 2, 3, 4)), "4 of 4 members are crashed"),
    (Scenario("join-larger", detectors=(1,)), "scenario 'join-larger' has no dead leader"),
    (Scenario("churn", detectors=(1,)), "scenario 'churn' has no dead leader"),
    (Scenario("churn", initiators=(1,)), "drop --initiator and --crashed"),
    (Scenario("churn", crashed=(1,)), "drop --initiator and --crashed"),
    (Scenario("start", rates=Rates(1.0)), "go with --scenario churn"),
    (Scenario("leader-leave", rates=Rates(orderly=True)), "go with --scenario churn"),
    (Scenario("leader-leave", linger=-1.0), "linger must be a time >= 0, not -1"),
    (Scenario("leader-leave", linger=float("nan")), "linger must be a time >= 0, not nan"),
    (Scenario("leader-crash", linger=1.0), "--linger goes with"),
]


@pytest.mark.parametrize("scenario, complaint", ALSO_WRONG)
def test_what_makes_no_sense_gets_a_sentence(scenario: Scenario, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        cast(scenario, GROUP, HIGHEST)


def test_leader_leave_begins_with_a_departure_of_which_somebody_is_told() -> None:
    stage = began(Scenario("leader-leave", detectors=(1, 3)))
    assert stage.members[5].up
    assert all(member.outcome == Elected(5, 1) for member in stage.live())
    assert stage.played() == [(0.0, 5, "leave"), (0.0, 1, "suspect 5"), (0.0, 3, "suspect 5")]
    assert stage.members[5].status is Status.LEFT
    assert stage.members[1].view.ids == [1, 2, 3, 4]
    assert began(Scenario("leader-leave"), tell=False).played() == [(0.0, 5, "leave")]


def test_a_leader_that_lingers_is_gone_later() -> None:
    stage = began(Scenario("leader-leave", linger=3.0))
    stage.run(2.9)
    assert stage.members[5].up
    stage.run(3.1)
    assert stage.members[5].status is Status.LEFT


def test_a_joiner_is_unknown_until_it_joins_and_calls() -> None:
    stage = began(Scenario("join-smaller"))
    assert [member.id for member in stage.live()] == [2, 3, 4, 5]
    assert stage.members[2].view.ids == [2, 3, 4, 5]
    assert stage.played() == [(0.0, 1, "call")]
    assert stage.members[1].up
    assert stage.members[2].view.ids == [1, 2, 3, 4, 5]
    assert stage.members[1].outcome is None


def test_a_false_departure_is_a_suspicion_of_one_who_lives() -> None:
    for tell in (True, False):
        stage = began(Scenario("false-departure"), tell=tell)
        assert stage.played() == [(0.0, 1, "suspect 5")]
        assert stage.members[5].up


def test_n_counts_those_before_a_join() -> None:
    experiment = Experiment(Bully, 4, BullyConfig(), scenario=Scenario("join-larger"))
    assert len(prepare(experiment, 0).members) == 5
    assert experiment.header(0).members == [1, 2, 3, 4, 5]
    with pytest.raises(BadInput, match="attribute 'cpu' has 4 values for 5 members"):
        replace(experiment, attributes=(("cpu", (1.0, 2.0, 3.0, 4.0)),))


CLASSIC = [kind for kind in classes(COMPARED) if not kind.assumptions.announces]


@pytest.mark.parametrize("kind", CLASSIC, ids=lambda kind: kind.about.name)
@pytest.mark.parametrize("name", ["leader-leave", "join-larger", "join-smaller"])
def test_every_classic_election_comes_to_one_living_leader(name: str, kind: type[Election]) -> None:
    experiment = Experiment(kind, 6, kind.Settings(), scenario=Scenario(name))
    result = play(experiment, 0)
    assert result.ended is Ended.QUIESCENT
    assert {verdict for verdict, _ in result.verdicts.values()} == {Verdict.HOLDS}
    best = {"leader-leave": 5.0, "join-larger": 7.0, "join-smaller": 7.0}[name]
    stays = not kind.assumptions.displaces and name == "join-larger"
    assert result.metrics["leader"] == (6.0 if stays else best)


@pytest.mark.parametrize("kind", CLASSIC, ids=lambda kind: kind.about.name)
def test_every_classic_election_ends_after_a_false_departure(kind: type[Election]) -> None:
    experiment = Experiment(kind, 6, kind.Settings(), scenario=Scenario("false-departure"))
    result = play(experiment, 0)
    assert result.ended is Ended.QUIESCENT
    verdict, reason = result.verdicts["termination"]
    if kind.about.name == "stable":  # all must agree on the crash, and others still hear the leader
        assert (verdict, "believes that 6 leads" in reason) == (Verdict.UNDECIDED, True)
    else:
        assert verdict is Verdict.HOLDS
