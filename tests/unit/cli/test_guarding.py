"""`--guard` and `--guard-set`: a guard in the simulator, from the command line."""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.commands import Hustings


@pytest.mark.parametrize(
    "typed, complaint",
    [
        ("--guard etcd", "unknown guard 'etcd' (known: none, memory, quorum)"),
        ("--guard-set ttl=30", "--guard-set goes with --guard memory"),
        ("--guard memory --guard-set ttl=3", "ttl must be at least three round trips"),
        ("--guard memory --guard-set drift=0.5", "too short to renew in"),
        ("--guard memory --guard-set tll=30", "did you mean 'ttl'?"),
        ("--fault partition:0|1-8@1", "unknown member '0'"),
    ],
)
def test_a_mistake_gets_a_sentence(hustings: Hustings, typed: str, complaint: str) -> None:
    result = hustings("sim", "bully", *typed.split())
    assert (result.code, result.out) == (2, "")
    assert complaint in result.err


def test_the_lease_follows_the_delay_and_is_told(hustings: Hustings) -> None:
    result = hustings("sim", "bully", "--delay", "0.5", "--guard", "memory", "--json")
    told = json.loads(result.out)
    asked = {"ttl": None, "drift": 0.001, "retry": None, "margin": 0.0, "first_wait": 0.0}
    assert told["guard"] == {"delta": 0.5, **asked}
    assert told["metrics"]["guard_requests"]["mean"] > 0
    for name in ("holders", "tokens", "grants", "windows"):
        assert told["verdicts"][name]["holds"] == 1


def test_without_a_guard_nothing_is_told_of_one(hustings: Hustings) -> None:
    told = json.loads(hustings("sim", "bully", "--json").out)
    assert "guard" not in told
    assert "windows" not in told["verdicts"]
    assert "guard_requests" not in told["metrics"]


def test_a_guard_that_is_cut_off_confirms_nobody(hustings: Hustings) -> None:
    cut = ("--fault", "partition:0|1-8@0", "--until", "200")
    result = hustings("sim", "bully", "--guard", "memory", *cut, "--json")
    told = json.loads(result.out)
    assert told["metrics"]["leader"]["mean"] is None
    assert told["metrics"]["guard_requests"]["mean"] == 0


def test_clocks_beyond_the_bound_are_remarked_on(hustings: Hustings) -> None:
    typed = ("sim", "bully", "--drift", "0.1", "--guard", "memory")
    assert "two may lead at one time" in hustings(*typed).err
    assert "two may lead" not in hustings(*typed, "--guard-set", "drift=0.1").err


@pytest.mark.parametrize(
    "typed",
    [
        "quorum -n 5 --crashed 3-5",
        "bully -n 5 --guard quorum --crashed 2-3",
        "bully -n 5 --guard memory --fault partition:0|1-5@0",
        "le-s -n 5 --guard quorum --crashed 1-2",
    ],
)
def test_a_run_that_can_never_be_confirmed_is_given_up(hustings: Hustings, typed: str) -> None:
    """Soon, under its own name, and without advice that would not help."""
    result = hustings("sim", *typed.split(), "--json")
    told = json.loads(result.out)
    assert told["endings"] == {"unconfirmable": 1}
    assert told["metrics"]["messages"]["mean"] < 200
    why = told["reasons"]["termination"]
    assert why.startswith("undecided in run 0: no member can be confirmed")
    assert "1 of 1 runs were given up: no member could be confirmed" in result.err
    assert "raise" not in result.err
    assert "smaller" not in result.err
