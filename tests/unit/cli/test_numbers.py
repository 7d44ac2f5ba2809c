"""Numbers are read in one way, wherever they are typed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.config import parse_number, parse_whole
from tests.unit.cli.commands import Hustings

STRANGE = [
    "1_000",
    "\u0661\u0662",
    "\uff11",
    "1e",
    "0x10",
    "1,5",
    "--1",
    "",
    " ",
    "1e999",
    "\u00b2",
]


@pytest.mark.parametrize("text", [*STRANGE, "nan", "NaN", "infinity", "Inf"])
def test_no_number(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a number|is too large"):
        parse_number(text)


@pytest.mark.parametrize("text", [*STRANGE, "nan", "inf", "2.5", "1e-1", "1e31", "9" * 401])
def test_no_whole_number(text: str) -> None:
    with pytest.raises(ValueError, match="is not a whole number"):
        parse_whole(text)


@given(st.floats(allow_nan=False))
def test_every_number_python_writes_is_read(value: float) -> None:
    assert parse_number(repr(value)) == value


@given(st.integers(-(10**30), 10**30))
def test_every_whole_number_is_read_exactly(value: int) -> None:
    assert parse_whole(str(value)) == parse_whole(f"{value}e0") == value


def test_an_exponent_loses_no_digit() -> None:
    assert parse_whole("12345678901234567.89e2") == 1234567890123456789
    assert math.isinf(parse_number("-inf"))


@pytest.mark.parametrize(
    "typed",
    [
        "sim bully -n 1_000",
        "sim bully -n \u0661\u0662",
        "sim bully --seed 1_0",
        "sim bully --runs 1_0",
        "sim bully --loss 0_1",
        "sim bully --delay 1_0",
        "sim bully --set T1=1_0",
        "sim bully --set T1=\u0663",
        "sim bully --fault crash:1@1_0",
        "sim bully --link 1>2=\u0663",
        "sim bully --guard quorum --guard-set voters=\u0663",
        "sim probabilistic --set K=1_0",
        "theory bully --set n=1_0",
        "theory bully --set T1=1_0",
        "check bully --ticks 1_0",
        "plan committee -n 100 --bits nan",
        "plan committee -n 100 --bits \u0663",
        "plan committee -n 1_00",
        "demo --seconds \u0663",
    ],
)
def test_what_python_reads_and_nobody_means_is_refused(typed: str, hustings: Hustings) -> None:
    assert hustings(*typed.split()).complaint


@pytest.mark.parametrize(
    "typed, same",
    [
        ("sim bully -n 1e1 --json", "sim bully -n 10 --json"),
        (
            "sim bully -n 5 --runs 2e0 --seed 1e3 --json",
            "sim bully -n 5 --runs 2 --seed 1000 --json",
        ),
        ("theory bully --set n=6.4e1 --json", "theory bully --set n=64 --json"),
        (
            "theory heartbeat --set T=1e-3 --set D=1e-4",
            "theory heartbeat --set T=.001 --set D=.0001",
        ),
    ],
)
def test_an_exponent_is_a_number_like_any_other(typed: str, same: str, hustings: Hustings) -> None:
    first, second = hustings(*typed.split()), hustings(*same.split())
    assert (first.code, first.out) == (0, second.out)


def test_a_billion_members_need_no_zeros(hustings: Hustings) -> None:
    found = hustings(
        *["sim", "probabilistic", "-n", "1e9", "--engine", "fast", "--runs", "1", "--json"]
    )
    assert found.code == 0
    assert '"members": 1000000000' in found.out
