"""`hustings sim probabilistic`: settings and world fit together, and bad ones get a sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.cli.commands import Hustings

METRICS = (
    "strong",
    "weak",
    "weak_live",
    "leaderless",
    "rounds",
    "ucasts",
    "mcasts",
    "messages",
    "relay_members",
    "relayed",
    "reinitiations",
    "two_leaders",
    "two_leaders_ever",
    "time",
)


def report(hustings: Hustings, *arguments: str) -> dict[str, Any]:
    done = hustings("sim", "probabilistic", *arguments, "--json")
    assert done.code == 0, done.err
    shown: dict[str, Any] = json.loads(done.out)
    return shown


def means(hustings: Hustings, *arguments: str) -> dict[str, float]:
    metrics = report(hustings, *arguments)["metrics"]
    return {name: metrics[name]["mean"] for name in METRICS}


# What is reported


@pytest.mark.parametrize("scenario", ["start", "leader-crash"])
def test_an_election_without_trouble(hustings: Hustings, scenario: str) -> None:
    found = means(hustings, "-n", "200", "--runs", "3", "--scenario", scenario)
    assert found["strong"] == found["weak"] == found["weak_live"] == found["rounds"] == 1.0
    for name in ("leaderless", "reinitiations", "two_leaders", "two_leaders_ever"):
        assert found[name] == 0.0
    assert found["messages"] == found["ucasts"] + found["mcasts"]
    assert found["mcasts"] == found["relay_members"] + 1 == found["relayed"] + 1
    assert found["time"] > 0


def test_the_same_command_gives_the_same_report(hustings: Hustings) -> None:
    typed = ("-n", "150", "--loss", "0.2", "--set", "p_fail=0.01", "--set", "view_prob=0.5")
    once = report(hustings, *typed, "--runs", "4", "--digest")
    assert once == report(hustings, *typed, "--runs", "4", "--digest")
    other = report(hustings, *typed, "--runs", "4", "--digest", "--seed", "2")
    assert once["digest"] != other["digest"]


# What the settings and the world have to do with each other


def params(hustings: Hustings, *arguments: str) -> tuple[object, ...]:
    given = report(hustings, "-n", "60", *arguments)["params"]
    return tuple(given[name] for name in ("p_ucastl", "p_mcastl", "view_prob", "N", "p_fail"))


def test_the_options_of_the_world_are_told_to_the_election(hustings: Hustings) -> None:
    assert params(hustings) == (0.0, 0.0, 1.0, 60, 0.0)
    assert params(hustings, "--loss", "0.2", "--view", "0.5") == (0.2, 0.2, 0.5, 60, 0.0)
    own = ("--set", "p_mcastl=0.05", "--set", "N=70", "--set", "p_fail=0.25")
    assert params(hustings, "--loss", "0.2", *own) == (0.2, 0.05, 1.0, 70, 0.25)
    same = ("--view", "0.5", "--set", "view_prob=0.50")
    assert params(hustings, *same) == (0.0, 0.0, 0.5, 60, 0.0)


def test_settings_and_options_make_the_same_world(hustings: Hustings) -> None:
    common = ("-n", "80", "--runs", "5", "--digest")
    options = report(hustings, *common, "--loss", "0.3", "--view", "0.4")
    settings = [f"--set={key}" for key in ("p_ucastl=0.3", "p_mcastl=0.3", "view_prob=0.4")]
    assert report(hustings, *common, *settings)["digest"] == options["digest"]
    other = report(hustings, *common, *settings[:1], "--set=p_mcastl=0", *settings[2:])
    assert other["digest"] != options["digest"]


def test_only_multicasts_lost_leaves_everybody_without_word(hustings: Hustings) -> None:
    found = means(hustings, "-n", "40", "--set", "p_mcastl=1")
    assert found["mcasts"] >= 1
    assert found["leaderless"] >= 39 / 40
    assert found["strong"] == 0.0


def test_certain_death_leaves_nobody(hustings: Hustings) -> None:
    found = report(hustings, "-n", "40", "--set", "p_fail=1")["metrics"]
    assert found["strong"]["mean"] == 0.0
    assert found["weak"]["mean"] is None


@pytest.mark.parametrize("view", [(), ("--view", "0.5")])
def test_one_alone_elects_itself(hustings: Hustings, view: tuple[str, ...]) -> None:
    found = report(hustings, "-n", "1", "--loss", "0.5", *view)["metrics"]
    assert found["leader"]["mean"] == 1.0
    assert found["strong"]["mean"] == 1.0
    assert found["ucasts"]["mean"] == 0.0


def test_who_knows_nobody_ends_by_a_bound(hustings: Hustings) -> None:
    """Each names itself, nobody hears two agree, and after the last round they give up."""
    shown = report(hustings, "-n", "4", "--set", "view_prob=1e-9", "--set", "strategy=4,N")
    assert shown["metrics"]["rounds"]["mean"] == 2.0
    assert shown["metrics"]["leaderless"]["mean"] == 1.0
    assert shown["endings"] == {"quiescent": 1}


@pytest.mark.parametrize("estimate", ["exact", "gossip", "view"])
@pytest.mark.parametrize("thinning", ["delay", "hash", "all"])
def test_every_policy_runs(hustings: Hustings, estimate: str, thinning: str) -> None:
    policy = ("--set", f"estimate={estimate}", "--set", f"thinning={thinning}")
    found = means(hustings, "-n", "100", "--loss", "0.2", "--view", "0.5", "--runs", "5", *policy)
    assert found["weak"] > 0.5


# The full stack


def test_upon_gossip_and_bimodal_multicast(hustings: Hustings) -> None:
    shown = report(hustings, "-n", "24", "--loss", "0.1", "--membership", "gossip")
    assert shown["scenario"]["membership"] == "gossip"
    assert shown["scenario"]["settled_at"] > 0
    assert shown["params"]["T_3"] == 20.0
    assert shown["params"]["estimate"] == "gossip"
    assert shown["endings"] == {"stopped": 1}
    metrics = {name: each["mean"] for name, each in shown["metrics"].items()}
    assert metrics["strong"] == 1.0
    assert metrics["messages"] == metrics["ucasts"] + metrics["mcasts"] < 600
    assert metrics["detector_messages"] > 24 * 20
    assert metrics["time"] < 1000


def test_a_typed_setting_goes_before_what_the_stack_would_want(hustings: Hustings) -> None:
    typed = ("--set", "T_3=30", "--set", "estimate=exact", "--gossip-set", "fanout=2")
    shown = report(hustings, "-n", "12", "--membership", "gossip", *typed)
    assert shown["params"]["T_3"] == 30.0
    assert shown["params"]["estimate"] == "exact"


def test_another_election_upon_the_stack(hustings: Hustings) -> None:
    done = hustings("sim", "bully", "-n", "6", "--membership", "gossip", "--json")
    metrics = json.loads(done.out)["metrics"]
    assert metrics["leader"]["mean"] == 6.0
    assert metrics["time"]["mean"] < 20
    assert metrics["detector_messages"]["mean"] > 0


# Bad input

BAD = [
    ("--set K=0", "K must be a number > 0"),
    ("--set K=-3", "K must be a number > 0"),
    ("--set K=many", "K must be a number > 0"),
    ("--set view_prob=0", "view_prob must be a number > 0 <= 1, not '0'"),
    ("--view 0", "view_prob must be a number > 0 <= 1"),
    ("--view 1.5", "view probability must lie in [0, 1], not 1.5"),
    ("--set max_rounds=0", "max_rounds must be a whole number >= 1"),
    ("--set strategy=7,7", "strategy '7,7' does not grow"),
    ("--set strategy=14,7", "strategy '14,7' does not grow"),
    ("--set strategy=fast", "strategy 'fast' is not understood"),
    ("--set p_fail=1.5", "p_fail must be a number >= 0 <= 1"),
    ("--set p_ucastl=-0.1", "p_ucastl must be a number >= 0 <= 1"),
    ("--set p_mcastl=nan", "p_mcastl must be a number >= 0 <= 1"),
    ("--set p_fall=0.1", "did you mean 'p_fail'?"),
    ("--loss 1.2", "loss must lie in [0, 1], not 1.2"),
    ("--view 0.3 --set view_prob=0.5", "--view 0.3 and --set view_prob=0.5 contradict each other"),
    ("--view 0.3 --set view_prob=x", "view_prob must be a number > 0 <= 1, not 'x'"),
    ("--set estimate=guess", "estimate must be one of exact, gossip, view"),
    ("--set thinning=some", "thinning must be one of delay, hash, all"),
    ("-n 0", "members must be at least 1"),
    ("--membership half", "unknown membership 'half'"),
    ("--gossip-set fanout=2", "--gossip-set goes with --membership gossip"),
    ("--membership gossip --gossip-set fanout=0", "fanout must be a whole number >= 1"),
    ("--membership gossip --gossip-set fan=2", "did you mean 'fanout'?"),
    ("--membership gossip --detection perfect", "drop the detector"),
    ("-n 3000 --membership gossip", "at most 2,000 members are played"),
]


@pytest.mark.parametrize(
    "typed, note",
    [
        ("--loss 0.5 --set p_ucastl=0.1 --set p_mcastl=0.1", "--loss has no effect"),
        ("--membership gossip --set T_3=1", "T_3 = 1 is shorter than the buffering time"),
        ("-n 40 --membership gossip --set view_prob=0.05", "members are small for a group of 40"),
    ],
)
def test_what_is_noted(hustings: Hustings, typed: str, note: str) -> None:
    assert note in hustings("sim", "probabilistic", "-n", "8", *typed.split()).err


@pytest.mark.parametrize("typed, complaint", BAD)
def test_bad_input_gets_a_sentence(hustings: Hustings, typed: str, complaint: str) -> None:
    assert complaint in hustings("sim", "probabilistic", *typed.split()).complaint


@pytest.mark.parametrize(
    "typed, complaint",
    [
        ("bully --set p_fail=0.1", "unknown setting 'p_fail'"),
        ("le-a --membership gossip", "does not go upon gossip membership"),
        ("bully --membership gossip --scenario churn --arrivals 5", "scenario 'churn'"),
    ],
)
def test_what_does_not_go_with_other_elections(
    hustings: Hustings, typed: str, complaint: str
) -> None:
    assert complaint in hustings("sim", *typed.split()).complaint
