"""`hustings check` from the command line."""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.commands import Hustings


@pytest.mark.parametrize(
    "typed, complaint",
    [
        ("nobody", "unknown protocol 'nobody'"),
        ("quorum --voters 4", "3, 5 or 7 voters, not 4"),
        ("quorum --candidates 0", "candidates must lie between 1 and 9"),
        ("quorum --wipes 1", "wipes cannot exceed crashes"),
        ("bully -n 0", "0 is not in the range"),
        ("bully --ticks -1", "ticks must lie between"),
    ],
)
def test_a_mistake_gets_a_sentence(hustings: Hustings, typed: str, complaint: str) -> None:
    assert complaint in hustings("check", *typed.split()).complaint


def test_a_quorum_is_exhausted(hustings: Hustings) -> None:
    result = hustings("check", "quorum", "--ticks", "1")
    assert result.code == 0
    assert "exhausted: no schedule within these limits breaks anything" in result.out


def test_too_many_states_is_told_and_no_success(hustings: Hustings) -> None:
    result = hustings("check", "quorum", "--max-states", "50")
    assert result.code == 2
    assert "max-states: not all schedules were tried" in result.out
    assert "raise --max-states" in result.err


def test_json_is_one_object(hustings: Hustings) -> None:
    result = hustings("check", "ring", "-n", "3", "--json")
    told = json.loads(result.out)
    assert (told["ending"], told["steps"]) == ("exhausted", [])
    assert told["states"] > 0
    assert told["rests"] > 0


def test_what_is_broken_is_told_step_by_step(hustings: Hustings) -> None:
    """A program that counts on every message does not survive the loss of one."""
    result = hustings("check", "broadcast", "-n", "3", "--losses", "1")
    assert result.code == 1
    assert "a shortest way there:" in result.out
    assert "all start" in result.out
