"""Plans of groups: what is proposed is predicted, played, and can be run; files say the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hustings import lab
from hustings.agent.config import load
from hustings.core.durations import parse_duration
from hustings.core.errors import BadInput, UnknownName
from hustings.lab import planning
from hustings.lab.plans import search as search_module
from hustings.lab.plans.asked import asked_in_file, asked_in_words, assumptions
from hustings.lab.plans.candidates import Proposal, SettingReason, propose
from hustings.lab.plans.configuration import Configuration, read_configuration
from hustings.lab.plans.explain import placed
from hustings.lab.plans.goals import GroupGoals
from hustings.lab.plans.intervals import Interval
from hustings.lab.plans.planned import KEPT, GroupPlan, defaults
from hustings.lab.plans.rare import Rate
from hustings.lab.plans.real_group import NotVerified
from hustings.lab.plans.search import (
    EFFORTS,
    MET,
    MISSED,
    OPEN,
    Effort,
    Prediction,
    SearchRound,
    moved,
    nearest,
    nearest_played,
    prune,
    scaled,
)
from hustings.lab.plans.sensitivity import longer
from hustings.lab.plans.verify import Verification, VerifiedRow
from hustings.lab.runs.playing import Progress
from hustings.sim.delay import Exponential, Fixed, Lognormal
from hustings.sim.environment import parse_environment

LAN = {"members": 3, "within": "1ms", "pause_max": "100ms"}
GOALS = {"failover-p99": "4s", "wrong": "1/month", "two-leaders": "never"}
TINY = Effort(4, (SearchRound(3, 2, 2, 1e9), SearchRound(2, 2, 4, 1e9)))


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing here is about how sure a plan is: little is played."""
    with monkeypatch.context() as patch:
        patch.setitem(EFFORTS, "quick", TINY)
        yield


@cache
def plan_of(**goals: str) -> GroupPlan:
    words = {name.replace("_", "-"): value for name, value in goals.items()} or GOALS
    found = lab.plan(goals=words, environment=LAN, effort="quick", seed=3)
    assert isinstance(found, GroupPlan)
    return found


def test_a_plan_that_is_feasible() -> None:
    found = plan_of()
    assert found.verdict == "feasible"
    assert found.proposed is found.proposed or found.proposed is not None
    best = found.options[0]
    assert best.verdict == MET
    assert best.configuration.guard == "quorum"
    by_goal = {each.goal: each for each in best.played.predictions}
    assert set(by_goal) == {"failover-p99", "wrong", "two-leaders", "bytes"}
    for each in by_goal.values():
        assert each.low <= each.value <= each.high
        assert each.method
    # Any failover takes as long as the lease, and ends within the closed form.
    ttl = float(str(best.configuration.lease["ttl"]))
    assert 2 / 3 * ttl < by_goal["failover-p99"].value < 4.0
    assert by_goal["two-leaders"].high == 0.0
    assert by_goal["wrong"].method.startswith(("upper bound", "counted"))
    assert by_goal["bytes"].value > 100.0


def test_the_same_seed_gives_the_same_plan() -> None:
    again = lab.plan(goals=GOALS, environment=LAN, effort="quick", seed=3, jobs=2)
    assert isinstance(again, GroupPlan)
    assert again.to_json() == plan_of().to_json()


def test_every_setting_is_told_once() -> None:
    best = plan_of().options[0]
    every = best.settings()
    names = [each.setting for each in every]
    assert len(names) == len(set(names))
    assert {each.setting for each in every if each.goal} == {r.setting for r in best.changed}
    assert all(each.because == KEPT for each in every if not each.goal)
    for name in ("protocol", "T_A", "gossip-settings.T_gossip", "limits.members", "multicast"):
        assert name in names


def test_what_is_proposed_can_be_run(tmp_path: Path) -> None:
    for option in plan_of().options:
        path = tmp_path / "hustings.toml"
        path.write_text(option.to_toml(), encoding="utf-8")
        load(path, {}, {})
        again, _ = read_configuration(path)
        assert again.configured() == option.configuration.configured()
        graced = option.configuration.grace is not None
        assert bool(option.run_lines()) is graced
        assert all(line.startswith("hustings run jobs --name m") for line in option.run_lines())


def test_a_plan_as_rows_and_as_json() -> None:
    found = plan_of()
    assert len(found.rows()) == 4 * len(found.options)
    told = json.loads(json.dumps(found.to_json()))
    assert told["verdict"] == "feasible"
    assert parse_environment(told["environment"]) == found.environment
    assert told["options"][0]["hustings_toml"] == found.options[0].to_toml()
    assert found.to_pandas().shape[0] == len(found.rows())
    assert found.command in found._repr_html_()
    assert found.plot()["png"].startswith(b"\x89PNG")
    metrics = [each["metric"] for each in told["options"][0]["alarms"]]
    guide = Path("docs/guide/02-in-production.md").read_text(encoding="utf-8")
    known = guide + Path("src/hustings/agent/metrics.py").read_text(encoding="utf-8")
    assert all(each.removesuffix("_total") in known for each in metrics)


def test_how_much_an_assumption_may_worsen() -> None:
    best = plan_of().options[0]
    found = {each.assumption: each for each in best.sensitivity()}
    assert set(found) == {"delay", "length of pauses", "rate of pauses", "clock drift"}
    longest = found["length of pauses"]
    assert 1.0 < longest.factor < 64.0
    assert longest.goal in ("wrong", "failover-p99")
    assert found["clock drift"].breaks_at == "1000ppm"


def test_a_plan_that_is_impossible() -> None:
    found = plan_of(two_leaders="never", survive="site")
    assert (found.verdict, found.options, found.proposed) == ("infeasible", (), None)
    assert found.impossible[0].because == "there is one site, and with it all members are gone"
    assert found.to_json()["impossible"]


def test_a_lease_cannot_be_so_short() -> None:
    found = plan_of(failover_p99="100ms", two_leaders="never")
    assert found.verdict == "infeasible"
    (nearby,) = [each for each in found.impossible if each.goal == "failover-p99"]
    assert nearby.nearest.startswith("--failover-p99 ")


def test_progress_is_told() -> None:
    told: list[Progress] = []
    lab.plan(goals={"failover-p99": "4s"}, environment=LAN, effort="quick", tell=told.append)
    shares = [each.share for each in told]
    assert shares == sorted(shares)
    assert 0.0 < shares[0] <= shares[-1] <= 1.0


@pytest.mark.parametrize(
    "goals, environment, words",
    [
        ({}, LAN, "a plan needs a goal"),
        ({"prefer": "calm"}, LAN, "a plan needs a goal"),
        (GOALS, {}, "how large is the group?"),
        (GOALS, {"members": 3, "sites": "a=3,b=3"}, "--members says 3 and --sites holds 6"),
        (GOALS, {"members": 3, "between": "a,b=1ms"}, "--between goes with --sites"),
        (GOALS, {"sites": "a=3,b=3"}, "delay.between.a>b is missing"),
        (GOALS, {"members": 3, "burst": 5}, "--burst goes with --loss"),
        (GOALS, {"members": 3, "loss": "101%"}, "loss.rate: '101%' is not a share"),
        (GOALS, {"members": 3, "within": "5"}, "delay.within"),
        (GOALS, {"members": 3, "pause_max": "0s"}, "--pause-max must be more than 0"),
        (GOALS, {"members": 3, "pause_rate": "6/h"}, "--pause-rate goes with --pause"),
        (GOALS, {"members": 3, "weather": "bad"}, "weather says nothing of an environment"),
    ],
)
def test_bad_input(goals: dict[str, Any], environment: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput) as refused:
        lab.plan(goals=goals, environment=environment, effort="quick")
    assert words in str(refused.value)


def test_an_unknown_effort_or_election() -> None:
    with pytest.raises(UnknownName, match="unknown effort 'much'"):
        lab.plan(goals=GOALS, environment=LAN, effort="much")
    with pytest.raises(UnknownName, match="unknown election to plan 'bully'"):
        lab.plan("bully", members=5)
    with pytest.raises(BadInput, match="does not say how large the group is"):
        lab.plan(goals=GOALS, environment=parse_environment('[delay]\nwithin = "1ms"\n'))


def test_what_is_assumed_is_said() -> None:
    words = {"members": 3}
    told = assumptions(GroupGoals(engines=("etcd",)), asked_in_words(words), words)
    for part in ("500us", "no message is lost", "ever stands still", "the engine is as far"):
        assert any(part in each for each in told)
    said = {**LAN, "loss": "1%", "pause_rate": "1/h", "burst": 4}
    told = assumptions(GroupGoals(), asked_in_words(said), said)
    assert len(told) == 1


# One file


def test_goals_and_environment_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "goals.toml"
    path.write_text(
        'members = 5\n[goals]\nfailover-p99 = "5s"\nsurvive = ["1 members"]\n'
        '[delay]\nwithin = "2ms"\n[loss]\nrate = "1%"\n',
        encoding="utf-8",
    )
    asked = asked_in_file(path)
    assert asked.goals == GroupGoals(failover_p99=5.0, survive=("1 members",))
    assert asked.environment.members == 5
    assert asked.environment.network.loss.p == 0.01


@pytest.mark.parametrize(
    "text, words",
    [
        ('members = 3\n[delay]\nwithin = "1ms"\n', "has no table [goals]"),
        ('members = 3\n[goals]\nfailover = "5s"\n', "goals.toml, line 3: goals.failover is no"),
        ('members = 3\n[goals]\nwrong = "1"\n', "goals.toml, line 3: goals.wrong: wrong '1' is"),
        (
            'members = 3\n[goals]\nwrong = "1/day"\n[delay]\nwithni = "1ms"\n',
            "goals.toml, line 5: delay.withni",
        ),
        ('[goals]\nwrong = "1/day"\n[delay]\nwithin = "1ms"\n', "does not say how large"),
        ("goals = 3\n", "has no table [goals]"),
        ("[goals\n", "this is not TOML"),
    ],
)
def test_a_file_that_is_wrong(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "goals.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput) as refused:
        asked_in_file(path)
    assert words in str(refused.value)
    with pytest.raises(BadInput, match="cannot read"):
        asked_in_file(tmp_path / "none.toml")


# A configuration that exists


def test_a_configuration_is_judged(tmp_path: Path) -> None:
    path = tmp_path / "hustings.toml"
    path.write_text('[groups.jobs]\nguard = "quorum://a,b,c"\nttl = "3s"\n', encoding="utf-8")
    goals = {"failover-p99": "2s", "two-leaders": "never"}
    found = lab.explain(path, goals, LAN, effort="quick")
    assert found.verdict == MISSED
    assert found.missed == ("failover-p99",)
    assert found.contradictions == ()
    assert found.to_json()["verdict"] == "missed"
    assert len(found.rows()) == 4
    assert found.command.startswith("hustings plan --members=3")
    assert f"--explain={path}" in found.command
    assert "quorum" in found._repr_html_()


def test_voters_stand_where_their_names_say() -> None:
    place = parse_environment(
        '[sites]\nparis = 3\nrome = 3\n[delay]\nwithin = "1ms"\nbetween."paris,rome" = "9ms"\n'
    )
    given = Configuration(guard="quorum", voters=(1, 2, 3))
    found, told = placed(given, ["rome-1", "paris-7", "Rome2"], place)
    assert (found.voters, told) == ((4, 1, 5), ())
    found, told = placed(given, ["x", "y", "z"], place)
    assert found.voters == (1, 4, 2)
    assert "assumed: x at paris, y at rome, z at paris" in told[0]
    assert placed(given, ["m1", "m2", "m3"], place) == (given, ())


# Parts


def test_verdicts_and_margins() -> None:
    def told(wanted: float | None, low: float, high: float) -> Prediction:
        return Prediction("failover-p99", wanted, (low + high) / 2, low, high, "")

    assert told(5.0, 3.0, 4.0).verdict == MET
    assert told(5.0, 3.0, 4.0).margin == pytest.approx(0.2)
    assert told(5.0, 4.0, 6.0).verdict == OPEN
    assert told(5.0, 6.0, 7.0).verdict == MISSED
    assert (told(None, 1.0, 2.0).verdict, told(None, 1.0, 2.0).margin) == ("", None)
    assert told(5.0, 4.0, float("inf")).margin is None
    assert (told(0.0, 0.0, 0.0).verdict, told(0.0, 0.0, 0.0).margin) == (MET, 0.0)


def test_bounds_prune_what_misses_a_goal() -> None:
    place = parse_environment('members = 5\n[delay]\nwithin = "1ms"\n')
    waits = {"T_fail": 20.0}
    slow = Proposal(Configuration(settings={"T_A": 2.0, "T_L": 9.0}, gossip_settings=waits))
    calm = Proposal(Configuration(guard="quorum", voters=(1, 2, 3), ttl=4.0))
    quick = Proposal(Configuration())

    def left(**words: str) -> tuple[list[Proposal], dict[str, int]]:
        goals = GroupGoals.parse({name.replace("_", "-"): text for name, text in words.items()})
        return prune([slow, calm, quick], goals, place)

    assert left(failover_p99="2s") == ([quick], {"failover-p99": 2})
    assert left(two_leaders="never") == ([calm], {"two-leaders": 2})
    assert left(survive="2 members") == ([slow, quick], {"survive": 1})
    assert left(bytes="1B/s")[1] == {"bytes": 3}
    assert left(failover_p99="20s")[0] == [slow, calm, quick]


def test_a_smaller_group_has_the_same_shares() -> None:
    place = parse_environment(
        '[sites]\na = 30\nb = 10\n[delay]\nwithin = "1ms"\nbetween."a,b" = "9ms"\n'
        '[loss]\nrate = "1%"\nbetween."a,b" = "5%"\n'
    )
    small = scaled(place, 8)
    assert small.sites is not None
    assert small.sites.sizes == (6, 2)
    assert small.network.delay.bound == place.network.delay.bound
    given = Configuration(guard="quorum", voters=(1, 2, 31))
    assert moved(given, place, small).voters == (1, 2, 7)
    assert scaled(place, 100) == place.__class__(
        **{name: getattr(place, name) for name in place.__dataclass_fields__}
    )
    alone = parse_environment('members = 900\n[delay]\nwithin = "1ms"\n')
    assert scaled(alone, 100).members == 100


def test_the_nearest_goals() -> None:
    place = parse_environment('members = 5\n[delay]\nwithin = "1ms"\n')
    goals = GroupGoals(bytes=500.0, failover_p99=1.0)
    found = {each.goal: each.nearest for each in nearest(goals, place)}
    assert set(found) == {"bytes", "failover-p99"}
    later = GroupGoals(
        bytes=500.0, failover_p99=parse_duration(found["failover-p99"].split()[1], "")
    )
    assert prune(propose(later, place).candidates, later, place)[0]  # what is said can be


def test_laws_grow() -> None:
    assert longer(Fixed(2.0), 3.0) == Fixed(6.0)
    assert longer(Exponential(0.5), 2.0) == Exponential(1.0)
    assert longer(Lognormal(0.5, 0.4), 2.0) == Lognormal(1.0, 0.4)  # sigma is no time


def test_defaults_name_all_tables() -> None:
    heads = {each.setting.rpartition(".")[0] for each in defaults(Configuration(protocol="bully"))}
    assert {"", "gossip-settings", "leadership-settings", "detector-settings", "limits"} <= heads
    assert SettingReason("ttl", "4s", "wrong", "why").value == "4s"


# Real processes


def trial_of(agrees: bool) -> Verification:
    predicted = Interval(1.0, 0.5, 1.5, "order statistics")
    row = VerifiedRow("failover", "s", predicted, 1.1 if agrees else 9.0, "8 failovers", agrees)
    return Verification(3, 10.0, 8, 2, (row,), ("one note",))


def verified(monkeypatch: pytest.MonkeyPatch, outcome: Verification | NotVerified) -> GroupPlan:
    def trial(*_: object, **options: Any) -> Verification:
        assert options["seconds"] == 10.0
        options["tell"](0.5, "half")
        if isinstance(outcome, NotVerified):
            raise outcome
        return outcome

    monkeypatch.setattr(planning, "verify_configuration", trial)
    found = lab.plan(
        goals=GOALS, environment=LAN, effort="quick", seed=3, verify="10s", tell=lambda _: None
    )
    assert isinstance(found, GroupPlan)
    return found


def test_real_processes_that_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    found = verified(monkeypatch, trial_of(agrees=True))
    assert found.verdict == "feasible"
    told = found.to_json()["verification"]
    assert isinstance(told, dict)
    assert told["agrees"] is True


def test_real_processes_that_contradict_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    assert verified(monkeypatch, trial_of(agrees=False)).verdict == "infeasible"


def test_a_machine_on_which_nothing_can_be_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    found = verified(monkeypatch, NotVerified("namespaces are refused"))
    assert (found.verdict, found.unverified) == ("undecided", "namespaces are refused")


def test_a_trial_takes_a_while() -> None:
    with pytest.raises(BadInput, match="a verification takes 10 s or more, not 5"):
        lab.plan(goals=GOALS, environment=LAN, verify="5s")
    with pytest.raises(BadInput, match="verify 'long' is not a duration"):
        lab.plan(goals=GOALS, environment=LAN, verify="long")


def test_the_nearest_of_what_was_played() -> None:
    best = plan_of().found.front[0]
    missed = replace(
        best,
        predictions=tuple(
            replace(each, wanted=each.low / 2) if each.goal == "failover-p99" else each
            for each in best.predictions
        ),
    )
    (near,) = nearest_played([missed])
    assert near.nearest.startswith("--failover-p99 ")
    assert nearest_played([]) == nearest_played([best]) == []


def test_voters_of_a_large_group_are_played_at_their_sites() -> None:
    words = {"sites": "a=30,b=30", "between": ["a,b=2ms"], "within": "1ms"}
    found = lab.plan(
        goals={"two-leaders": "never", "failover-p99": "4s"}, environment=words, effort="quick"
    )
    assert isinstance(found, GroupPlan)
    assert found.found.members == 4
    assert max(found.options[0].configuration.voters) > 4


def test_a_rare_rate_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a guard the closed form for losses is far too high, and decides nothing."""
    asked: list[Configuration] = []

    def rate_of(configuration: Configuration, *_: object, **options: Any) -> Rate:
        asked.append(configuration)
        assert options["effort"] == "quick"
        return Rate(Interval(1e-9, 1e-10, 1e-8, "splitting"), "splitting", 60.0, 0, 9, 3)

    monkeypatch.setattr(search_module, "wrong_rate", rate_of)
    lossy = {**LAN, "loss": "1%", "burst": 3}
    goals = {"wrong": "1/month", "failover-p99": "10s"}
    found = lab.plan(goals=goals, environment=lossy, effort="quick")
    assert isinstance(found, GroupPlan)
    split = [
        each
        for each in found.options
        if each.played.of("wrong").method.startswith("splitting: 0 in 60 s on the")
    ]
    assert [each.configuration for each in split] == [
        each.configuration for each in found.options if each.configuration in asked
    ]
    assert all(each.played.of("wrong").verdict == MET for each in split)
