"""Edges of the announcing elections: no delay, nobody else, messages that kill each other."""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.commands import Hustings


def means(hustings: Hustings, *words: str) -> dict[str, float | None]:
    answer = hustings("sim", *words, "--json")
    assert answer.code == 0, answer.err
    metrics = json.loads(answer.out)["metrics"]
    return {name: each["mean"] for name, each in metrics.items()}


def test_without_a_delay_collisions_are_for_nothing(hustings: Hustings) -> None:
    words = ("le-s", "-n", "12", "--delay", "0", "--loss", "0.2", "--runs", "20")
    plain = means(hustings, *words)
    assert means(hustings, *words, "--collision", "1") == plain
    told = hustings("sim", *words, "--collision", "1").err
    assert "--collision has no effect" in told


def test_without_a_delay_no_timer_is_too_short(hustings: Hustings) -> None:
    assert "shorter than" not in hustings("sim", "le-s", "-n", "4", "--delay", "0").err


@pytest.mark.parametrize(
    "words",
    ["le-a -n 3 --delay 0.1", "al -n 3 --delay 0.1", "le-s -n 3 --delay 3 --set T_S=0.1"],
)
def test_a_group_that_drowns_itself_out_is_refused(hustings: Hustings, words: str) -> None:
    answer = hustings("sim", *words.split(), "--collision", "1")
    assert answer.code == 2
    assert "with a collision of 1 nothing is ever heard" in answer.err
    assert hustings("sim", *words.split(), "--collision", "1", "--until", "5").code == 0


@pytest.mark.parametrize("engine", ["events", "fast"])
@pytest.mark.parametrize("protocol", ["al", "le-a", "le-s", "le-m", "sup"])
def test_alone_one_speaks_once(hustings: Hustings, protocol: str, engine: str) -> None:
    words = (protocol, "-n", "1", "--delay", "0.5", "--runs", "3", "--engine", engine)
    found = means(hustings, *words)
    assert found["num_msgs"] == found["messages"] == found["first_round"] == 1.0
    assert found["first_round_time"] == found["tmax"]


def test_all_lead_who_speak_at_once(hustings: Hustings) -> None:
    words = [
        "sup",
        "-n",
        "5",
        "--delay",
        "0",
        "--loss",
        "0.9",
        "--loss-model",
        "correlated",
        "--set",
        "T_S=0",
    ]
    for engine in ("events", "fast"):
        assert means(hustings, *words, "--engine", engine)["simultaneous_leaders"] == 5.0


@pytest.mark.parametrize("text", [".25", "0.25", "2.5e-1", "+.25"])
def test_a_number_may_be_written_in_many_ways(hustings: Hustings, text: str) -> None:
    answer = hustings("sim", "le-s", "-n", "3", "--delay", "0.1", "--set", f"T_S={text}", "--json")
    assert json.loads(answer.out)["params"]["T_S"] == 0.25


@pytest.mark.parametrize("text", ["1_0", "nan", "0x1", "", "1,5"])
def test_and_in_others_not(hustings: Hustings, text: str) -> None:
    answer = hustings("sim", "le-s", "-n", "3", "--set", f"T_S={text}")
    assert answer.code == 2
    assert "T_S" in answer.err
