"""Plans: which candidates there are, what is kept of them, and what is proposed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache

import pytest

from hustings.core.errors import BadInput
from hustings.lab.plans.committee import (
    AWARE,
    EFFORTS,
    NEARLY,
    CommitteePlan,
    Trial,
    attacks_of,
    candidates,
    concerning,
    make_plan,
)
from hustings.lab.runs.playing import Progress
from hustings.protocols.committee.settings import CommitteeConfig, knobs_of

N = 200


@cache
def aware() -> CommitteePlan:
    return make_plan({"b": 0.1, "c0": 16}, N, attacks_of("aware"), effort="quick", seed=3)


def test_attacks() -> None:
    assert attacks_of("random") == ("random",)
    assert attacks_of("leaf+lie") == ("leaf+lie",)
    assert attacks_of("aware") == AWARE
    assert attacks_of("aware+pack") == tuple(f"{word}+pack" for word in AWARE)
    assert attacks_of("pack+aware+lie")[0] == "random+pack+lie"


@pytest.mark.parametrize("n", [40, 300, 5000])
def test_candidates_are_settings_and_some_fit(n: int) -> None:
    every = list(candidates(n))
    assert len(every) == len(set(every))
    fitting = 0
    for settings in every:
        config = CommitteeConfig.parse(dict(settings))
        try:
            knobs_of(config, n)
        except BadInput:
            continue
        fitting += 1
    assert fitting >= 5


def test_a_plan_is_the_same_again() -> None:
    again = make_plan({"b": 0.1, "c0": 16}, N, attacks_of("aware"), effort="quick", seed=3)
    assert again == aware()


def beats(one: Trial, two: Trial) -> bool:
    no_worse = one.score >= two.score and one.bits_mean <= two.bits_mean
    return no_worse and (one.score, one.bits_mean) != (two.score, two.bits_mean)


def test_nobody_on_the_front_is_beaten() -> None:
    front = aware().front
    assert front
    assert not any(beats(one, two) for one in front for two in front)
    costs = [trial.bits_mean for trial in front]
    assert costs == sorted(costs)


def test_what_is_proposed_is_the_cheapest_of_the_nearly_best() -> None:
    found = aware()
    assert found.proposed in found.front
    assert found.proposed is not None
    best = max(trial.score for trial in found.front)
    assert best > 0
    assert found.proposed.score >= best - NEARLY
    cheaper = [each for each in found.front if each.bits_mean < found.proposed.bits_mean]
    assert all(each.score < best - NEARLY for each in cheaper)


def test_every_trial_met_every_attack_and_is_judged_by_the_worst() -> None:
    """But for those on a second layer and on a public tree, which are not there."""
    for trial in aware().front:
        assert tuple(trial.success) == AWARE[:-2]
        assert trial.runs == EFFORTS["quick"][1]
        means = {name: each.mean for name, each in trial.success.items()}
        assert trial.score == min(means.values())
        assert means[trial.worst] == trial.score
        assert trial.bits_mean <= trial.bits_max


def test_attacks_that_do_not_concern_a_network_are_left_out() -> None:
    assert AWARE[-2:] == ("second", "tree")
    for settings, left in (
        ({}, AWARE[:-2]),
        ({"layers": "4:4:1,4:4:1", "c0": 8}, AWARE[:-1]),
        ({"profile": "single"}, AWARE[:-2]),
        ({"profile": "single", "size": N, "endgame": "full"}, (*AWARE[:-2], "tree")),
    ):
        knobs = knobs_of(CommitteeConfig.parse(settings), N)
        assert concerning(knobs, AWARE) == left
        assert concerning(knobs, ("second+pack",)) == ("second+pack",)


def test_knobs_that_are_fixed_stay_so() -> None:
    """Profile single has no leaves, so a fixed leaf size leaves it out."""
    found = aware()
    assert found.b == 0.1
    for trial in found.front:
        assert dict(trial.settings).get("profile") != "single"
        made = CommitteeConfig.parse({**dict(trial.settings), "c0": 16})
        assert knobs_of(made, N).c0 == 16


def test_bits_are_a_limit() -> None:
    given = {"b": 0.0, "endgame": "baton", "c0": 16}
    free = make_plan(given, N, ("random",), effort="quick")
    most = max(trial.bits_mean for trial in free.front)
    bound = make_plan(given, N, ("random",), effort="quick", most_bits=most)
    assert all(trial.bits_mean <= most for trial in bound.front)
    least = min(trial.bits_mean for trial in free.front)
    with pytest.raises(BadInput, match="no candidate sends 1 bits or less per member"):
        make_plan(given, N, ("random",), effort="quick", most_bits=1)
    kept = make_plan(given, N, ("random",), effort="quick", most_bits=least * 1.001)
    assert [trial.settings for trial in kept.front] == [free.front[0].settings]


def test_nothing_is_proposed_where_nothing_helps() -> None:
    """Two thirds of liars own every root."""
    given = {"b": 0.66, "experiment": True, "c0": 16, "endgame": "full"}
    found = make_plan(given, N, ("random",), effort="quick")
    assert found.proposed is None
    assert all(trial.score == 0 for trial in found.front)


def test_progress_is_told_to_the_end() -> None:
    told: list[Progress] = []
    make_plan(
        {"b": 0.0, "layers": "4:4:1", "c0": 16},
        N,
        ("none",),
        effort="quick",
        tell=told.append,
    )
    assert told[-1].done == told[-1].series
    assert told[-1].share == 1.0
    assert {each.series for each in told if each.share == 1.0} != {0}


def test_where_it_is_played_cannot_be_seen() -> None:
    with ThreadPoolExecutor(2) as executor:
        again = make_plan(
            {"b": 0.1, "c0": 16}, N, attacks_of("aware"), effort="quick", seed=3, on=executor
        )
    assert again == aware()


@pytest.mark.parametrize(
    "given, n, words",
    [
        ({"profile": "lean"}, 300, "looks through the profiles by itself"),
        ({"b": 0.4}, 300, "must be below 1/3"),
        ({"nope": 1}, 300, "unknown setting 'nope'"),
        ({"c0": 400}, 300, "no network of the search fits a group of 300"),
    ],
)
def test_what_is_refused(given: dict[str, object], n: int, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        make_plan(given, n, ("random",), effort="quick")
    assert words in str(caught.value)
