"""Rates, shares and durations: what is understood, what is refused, and that writing is exact."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.durations import parse_duration
from hustings.core.errors import BadInput
from hustings.core.quantities import (
    parse_rate,
    parse_share,
    write_duration,
    write_rate,
    write_share,
)

SIZES = st.floats(1e-12, 1e12)
DAY = 86_400


@pytest.mark.parametrize(
    "text, rate",
    [
        ("6/h", 6 / 3600),
        (" 2 / day ", 2 / DAY),
        ("1/week", 1 / (7 * DAY)),
        ("1/month", 1 / (30 * DAY)),
        ("0.5/year", 0.5 / (365 * DAY)),
        ("1e-3/s", 1e-3),
        ("30/min", 0.5),
    ],
)
def test_a_rate(text: str, rate: float) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize(
    "value", [6, 0.1, True, None, "6", "6/", "/h", "6/fortnight", "-1/h", "6/h/h", "1.2.3/h", "6 h"]
)
def test_what_is_no_rate(value: object) -> None:
    with pytest.raises(BadInput, match="is not a rate: write one as 6/h"):
        parse_rate(value, "pauses")


@pytest.mark.parametrize(
    "value, share",
    [("1%", 0.01), ("0.3 %", 0.003), ("50ppm", 5e-5), (0.25, 0.25), (1, 1.0), ("0.25", 0.25)],
)
def test_a_share(value: object, share: float) -> None:
    assert parse_share(value) == share


@pytest.mark.parametrize("value", [-0.1, 1.5, True, None, "101%", "-1%", "%", "1 per cent", "nan"])
def test_what_is_no_share(value: object) -> None:
    with pytest.raises(BadInput, match=r"loss .* is not a share: write one as 1%"):
        parse_share(value, "loss")


def test_a_refusal_is_short_whatever_was_written() -> None:
    with pytest.raises(BadInput) as refused:
        parse_rate("9" * 5000)
    assert len(str(refused.value)) < 150


@given(SIZES)
def test_a_written_rate_is_the_same_rate(rate: float) -> None:
    assert parse_rate(write_rate(rate)) == rate


@given(st.floats(0.0, 1.0), st.sampled_from(["%", "ppm"]))
def test_a_written_share_is_the_same_share(share: float, unit: str) -> None:
    assert parse_share(write_share(share, unit)) == share


@given(st.floats(0.0, 1e12))
def test_a_written_duration_is_the_same_duration(seconds: float) -> None:
    assert parse_duration(write_duration(seconds), "") == seconds
