"""Scenarios from the command line: listed, explained, measured, refused with a sentence."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from hustings.sim.scenarios import SCENARIOS
from tests.unit.cli.commands import Hustings

LE_S = ("sim", "le-s", "-n", "10", "--delay", "0.1", "--runs", "20", "--seed", "7")
LOSSY = ("--loss", "0.4", "--loss-model", "uncorrelated")
CHURN = ("--arrivals", "20", "--departures", "20", "--until", "200")


def shown(hustings: Hustings, *arguments: str) -> dict[str, Any]:
    result = hustings(*arguments, "--json")
    assert result.code == 0, result.err
    value = json.loads(result.out)
    assert isinstance(value, dict)
    return value


def means(value: dict[str, Any]) -> dict[str, float]:
    return {name: summary["mean"] for name, summary in value["metrics"].items()}


def test_scenarios_are_listed_without_a_protocol(hustings: Hustings) -> None:
    result = hustings("sim", "--scenarios")
    assert (result.code, result.err) == (0, "")
    for name in SCENARIOS:
        assert re.search(rf"^ +{name} ", result.out, re.MULTILINE)


def test_help_explains_every_scenario(hustings: Hustings) -> None:
    words = " ".join(hustings("sim", "--help").out.split())
    for name, about in SCENARIOS.items():
        assert f"{name} {about}" in words


START = [
    "tmax",
    "num_msgs",
    "sent_by_tmax",
    "rounds",
    "avg_rounds",
    "first_round",
    "first_round_time",
]
OVER_TIME = ["simultaneous_leaders", "simultaneous_leaders_max"]
INCONSISTENT = ["inconsistent_fraction", "inconsistencies", "inconsistency_duration"]
DISTURBED = ["reestablishment_delay", "num_msgs", *OVER_TIME]
SPECIAL = {
    "start": [*START, "leadership_delay", *OVER_TIME],
    "leader-crash": DISTURBED,
    "leader-leave": DISTURBED,
    "join-larger": DISTURBED,
    "join-smaller": DISTURBED,
    "false-departure": [
        "false_departures",
        "false_departure_duration",
        "false_departure_fraction",
        *INCONSISTENT,
        *OVER_TIME,
    ],
    "churn": ["arrivals", "departures", "leader_departures", *INCONSISTENT, *OVER_TIME],
}
COMMON = [f"{role}_messages" for role in ("election", "answer", "coordinator", "other")]
COMMON += ["messages", "time", "leader"]
LOSSES = {
    "none": (),
    "correlated": ("--loss", "0.4", "--loss-model", "correlated"),
    "uncorrelated": LOSSY,
    "adjusted": ("--loss", "0.3", "--loss-model", "adjusted", "--collision", "0.01"),
}


@pytest.mark.parametrize("scenario", list(SCENARIOS))
@pytest.mark.parametrize("loss", list(LOSSES))
def test_each_scenario_reports_what_applies_under_every_loss(
    scenario: str, loss: str, hustings: Hustings
) -> None:
    extra = CHURN if scenario == "churn" else ("--until", "60")
    typed = (*LE_S, "--scenario", scenario, *LOSSES[loss], *extra)
    value = shown(hustings, *typed, "--runs", "3")
    assert sorted(value["metrics"]) == sorted([*SPECIAL[scenario], *COMMON])
    assert means(value)["simultaneous_leaders"] is not None


def test_a_simultaneous_start(hustings: Hustings) -> None:
    """E[tmax] = 1/2 + E[R] - 1 = 3.08 with nine receivers."""
    value = shown(hustings, *LE_S, *LOSSY, "--set", "T_A=1", "--set", "T_S=1", "--runs", "400")
    found = means(value)
    assert found["tmax"] == pytest.approx(3.08, abs=0.35)
    assert found["leadership_delay"] == pytest.approx(found["tmax"] + 0.1)
    assert found["avg_rounds"] == pytest.approx(1 / 0.6, abs=0.1)
    assert found["leader"] == 10
    assert value["endings"] == {"stopped": 400}
    assert {tuple(counts.items()) for counts in value["verdicts"].values()} == {
        (("holds", 400), ("undecided", 0), ("violated", 0))
    }


def test_a_scenario_s_own_settings_are_remarked_on_and_can_be_changed(hustings: Hustings) -> None:
    usual = shown(hustings, *LE_S)
    assert usual["params"]["T_L"] == "inf"
    assert any("scenario start sets T_L=inf" in warning for warning in usual["warnings"])
    given = shown(hustings, *LE_S, "--set", "T_L=4")
    assert given["params"]["T_L"] == 4.0
    assert not any("T_L" in warning for warning in given["warnings"])
    other = shown(hustings, *LE_S, "--scenario", "leader-crash")
    assert other["params"]["T_L"] is None


def test_settings_that_do_not_go_with_the_scenario_s_own_win(hustings: Hustings) -> None:
    """Leaders that age need a finite T_L."""
    value = shown(hustings, *LE_S, "--set", "aged=3")
    assert value["params"]["T_L"] is None
    assert any("T_L keeps its default" in warning for warning in value["warnings"])


def test_what_a_scenario_took_is_reported(hustings: Hustings) -> None:
    value = shown(hustings, *LE_S, *LOSSY, "--scenario", "churn", *CHURN, "--orderly")
    assert value["scenario"] == {
        "name": "churn",
        "crashed": [],
        "detectors": [],
        "initiators": [],
        "faults": 0,
        "warm_up_periods": 18,
        "arrivals": 20.0,
        "departures": 20.0,
        "orderly": True,
        "until": 200.0,
    }
    leave = ("--scenario", "leader-leave", "--linger", "2")
    assert shown(hustings, *LE_S, *leave)["scenario"]["linger"] == 2.0
    plain = shown(hustings, "sim", "bully")["scenario"]
    assert list(plain) == ["name", "crashed", "detectors", "initiators", "faults"]


def test_what_has_no_end_ends_at_a_thousand(hustings: Hustings) -> None:
    typed = ("sim", "le-s", "-n", "3", "--delay", "0.1", "--scenario", "false-departure")
    value = shown(hustings, *typed)
    assert value["scenario"]["until"] == 1000.0
    assert means(value)["time"] == 997.0


def test_the_same_on_two_processes(hustings: Hustings) -> None:
    typed = (*LE_S, *LOSSY, "--scenario", "churn", *CHURN, "--digest")
    assert shown(hustings, *typed, "--jobs", "2") == shown(hustings, *typed)


def test_adjusted_loss_is_uncorrelated_loss_that_grows(hustings: Hustings) -> None:
    """With everybody announcing at once nearly all is lost."""
    al = ("sim", "al", "-n", "30", "--delay", "0.1", "--runs", "10", "--loss", "0.2")
    plain = means(shown(hustings, *al))["rounds"]
    adjusted = ("--loss-model", "adjusted", "--collision", "0.03")
    assert means(shown(hustings, *al, *adjusted))["rounds"] > 2 * plain


BAD = [
    ("sim bully --scenario churn --arrivals 5", "needs a --detection"),
    ("sim le-s --scenario churn", "needs --arrivals MEAN, --departures MEAN or both"),
    ("sim le-s --scenario churn --arrivals 0", "arrivals must be a mean time"),
    ("sim le-s --scenario churn --departures nan", "'nan' is not a valid float"),
    ("sim le-s --scenario churn --arrivals 1e-9", "are more than 100,000"),
    ("sim le-s --scenario churn --arrivals x", "--arrivals"),
    ("sim le-s --scenario churn --arrivals 5 --initiator 1", "drop --initiator"),
    ("sim le-s --arrivals 5", "go with --scenario churn"),
    ("sim le-s --orderly", "go with --scenario churn"),
    ("sim le-s --linger 3", "--linger goes with --scenario leader-leave"),
    ("sim le-s --scenario leader-leave --linger -1", "linger must be a time >= 0"),
    ("sim le-s --scenario leader-leave -n 1", "needs a live member in addition to the leader"),
    ("sim le-s --scenario leader-crash -n 1", "needs a live member in addition to the leader"),
    ("sim bully --scenario leader-leave --detector 8", "member 8 is the leader"),
    ("sim bully --scenario join-larger --detector 1", "has no dead leader to detect"),
    ("sim bully --scenario join-larger --initiator 10", "ids are 1 to 9"),
    ("sim bully --scenario join-larger --link 1>10=2", "ids are 1 to 9"),
    ("sim bully --scenario join-largr", "did you mean 'join-larger'?"),
    ("sim le-s --loss-model adjusted", "loss model 'adjusted' needs --collision"),
    ("sim le-s --loss-model ajusted", "did you mean 'adjusted'?"),
    ("compare le-s --scenario churn", "has no end to compare"),
]


@pytest.mark.parametrize("typed, words", BAD, ids=[typed for typed, _ in BAD])
def test_a_mistake_gets_one_sentence(typed: str, words: str, hustings: Hustings) -> None:
    assert words in hustings(*typed.split()).complaint


def test_announcing_elections_can_be_compared(hustings: Hustings) -> None:
    for scenario in ("start", "leader-crash", "join-smaller"):
        value = shown(hustings, "compare", "le-s", "bully", "--scenario", scenario)
        assert [row["protocol"] for row in value["rows"]] == ["le-s", "bully"]
