"""GroupGoals: what people write, with units; what is refused; what is written is read again."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.errors import BadInput, UnknownName
from hustings.core.quantities import DAY
from hustings.lab.plans.goals import SHARED_ENGINES, GroupGoals, parse_bytes, show_bytes, show_rate

POSITIVE = st.floats(min_value=1e-9, max_value=1e9, allow_nan=False, allow_infinity=False)
SURVIVAL = st.one_of(
    st.sampled_from(["site", "engine"]), st.integers(1, 99_999).map(lambda n: f"{n} members")
)
GOALS = st.builds(
    GroupGoals,
    failover_p99=st.none() | POSITIVE,
    wrong=st.none() | POSITIVE,
    two_leaders=st.none() | st.just(0.0) | POSITIVE,
    survive=st.lists(SURVIVAL, max_size=3, unique=True).map(tuple),
    bytes=st.none() | POSITIVE,
    engines=st.lists(st.sampled_from(SHARED_ENGINES), max_size=3, unique=True).map(tuple),
    prefer=st.sampled_from(["", "calm", "speed", "bytes"]),
)


@given(GOALS)
def test_what_is_written_is_read_as_the_same_goals(goals: GroupGoals) -> None:
    assert GroupGoals.parse(goals.words()) == goals


def test_the_words_of_a_command_line() -> None:
    goals = GroupGoals.parse(
        {
            "failover_p99": "5s",
            "wrong": "1/month",
            "two_leaders": "never",
            "survive": ("site", "2 members"),
            "bytes": "1.5kB/s",
            "engines": "etcd,postgres",
            "prefer": "calm",
        }
    )
    assert goals.failover_p99 == 5.0
    assert goals.wrong == 1 / (30 * DAY)
    assert goals.two_leaders == 0.0
    assert (goals.survive, goals.members_lost) == (("site", "2 members"), 2)
    assert goals.bytes == 1500.0
    assert goals.engines == ("etcd", "postgres")
    assert goals.demanded == ("failover-p99", "wrong", "two-leaders", "bytes", "survive")
    assert GroupGoals.parse({"wrong": None, "engines": ()}) == GroupGoals()


@pytest.mark.parametrize(
    "given, words",
    [
        ({"failover-p99": "5"}, "failover-p99 '5' is not a duration: write one as 250ms, 2s"),
        ({"failover-p99": "0s"}, "failover-p99 must be more than 0"),
        ({"wrong": "1"}, "wrong '1' is not a rate: write one as 6/h"),
        ({"wrong": "1/fortnight"}, "wrong '1/fortnight' is not a rate"),
        ({"wrong": "0/month"}, "no estimate shows that something never happens"),
        ({"wrong": "never"}, "wrong 'never' is not a rate"),
        ({"two-leaders": "seldom"}, "write never, or a time as 10s"),
        ({"two-leaders": "10"}, "write never, or a time as 10s"),
        ({"bytes": "100"}, "bytes '100' is no number of bytes: write one as 100/s or 2kB/s"),
        ({"bytes": "100 bit/s"}, "is no number of bytes"),
        ({"bytes": "0/s"}, "is no number of bytes"),
        ({"survive": "everything"}, "write site, engine, or a number of members"),
        ({"survive": "0 members"}, "write site, engine, or a number of members"),
        ({"survive": 3}, "survive must be a text or a list of texts"),
        ({"engines": "memory"}, "unknown engine 'memory'"),
        ({"engines": "etcdd"}, "did you mean 'etcd'"),
        ({"prefer": "sped"}, "did you mean 'speed'"),
        ({"failover": "5s"}, "unknown goal 'failover': did you mean 'failover-p99'"),
    ],
)
def test_what_is_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput) as refused:
        GroupGoals.parse(given)
    assert words in str(refused.value)


@given(st.text(max_size=20))
def test_no_text_for_a_goal_breaks_the_reader(text: str) -> None:
    for name in ("failover-p99", "wrong", "two-leaders", "survive", "bytes", "engines", "prefer"):
        try:
            goals = GroupGoals.parse({name: text})
        except BadInput:
            continue
        assert GroupGoals.parse(goals.words()) == goals


@pytest.mark.parametrize("value", [math.inf, math.nan, -1.0])
def test_no_goal_is_without_a_bound(value: float) -> None:
    for name in ("failover_p99", "wrong", "two_leaders", "bytes"):
        given: dict[str, Any] = {name: value}
        with pytest.raises(BadInput):
            GroupGoals(**given)
    with pytest.raises(UnknownName):
        GroupGoals(prefer="luck")


def test_units_of_bytes() -> None:
    assert parse_bytes("120/m", "bytes") == 2.0
    assert parse_bytes("2 KiB/s", "bytes") == 2048.0
    assert show_bytes(1048.0) == "1.05 kB/s"
    assert show_rate(3 / DAY) == "3/day"
