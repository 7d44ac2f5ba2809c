"""Configuration: every broken rule in one sentence, before anything starts."""

import math
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from hustings.core.config import Config, describe
from hustings.core.errors import BadInput, UnknownName


class SampleConfig(Config, frozen=True, kw_only=True):
    """One field of every sort."""

    wait: Annotated[float, Meta(gt=0, description="how long to wait")] = 2.0
    share: Annotated[float, Meta(ge=0, le=1)] = 0.5
    tries: Annotated[int, Meta(ge=1, lt=10)] = 3
    limit: Annotated[float, Meta(gt=0)] | None = None
    pattern: Literal["ring", "all"] = "ring"
    loud: bool = False
    free: float = 0.0

    def broken_rules(self) -> list[str]:
        rules = []
        if self.wait < self.delta:
            rules.append(f"wait = {self.wait:g} must be at least delta = {self.delta:g}")
        if self.loud and self.tries > 5:
            rules.append("loud needs tries <= 5")
        return rules


def test_nothing_given_means_the_defaults() -> None:
    assert SampleConfig.parse({}) == SampleConfig()


def test_texts_as_typed_and_numbers_are_read_alike() -> None:
    typed = {"wait": "4", "share": "0.25", "tries": "2", "pattern": "all", "loud": "true"}
    given_as_values = {"wait": 4, "share": 0.25, "tries": 2, "pattern": "all", "loud": True}
    assert SampleConfig.parse(typed) == SampleConfig.parse(given_as_values)
    assert isinstance(SampleConfig.parse({"wait": 4}).wait, float)


def test_all_broken_fields_are_told_at_once() -> None:
    bad = {"wait": "-1", "share": "2", "tries": "many", "pattern": "star", "delta": "0"}
    with pytest.raises(BadInput) as caught:
        SampleConfig.parse(bad)
    sentence = str(caught.value)
    assert sentence.count(";") == len(bad) - 1
    assert "wait must be a number > 0, not '-1'" in sentence
    assert "share must be a number >= 0 <= 1, not '2'" in sentence
    assert "tries must be a whole number >= 1 < 10, not 'many'" in sentence
    assert "pattern must be one of ring, all, not 'star'" in sentence
    assert "delta must be a number > 0, not '0'" in sentence


def test_all_contradictions_between_fields_are_told_at_once() -> None:
    with pytest.raises(BadInput) as caught:
        SampleConfig.parse({"wait": 1, "delta": 2, "loud": True, "tries": 6})
    assert str(caught.value) == "wait = 1 must be at least delta = 2; loud needs tries <= 5"


@pytest.mark.parametrize("value", ["nan", "NaN", "-nan", math.nan])
@pytest.mark.parametrize("field", ["wait", "share", "limit", "delta", "free"])
def test_what_is_not_a_number_is_refused(field: str, value: object) -> None:
    with pytest.raises(BadInput, match=f"{field} must be a number"):
        SampleConfig.parse({field: value})


def test_infinity_is_a_number_where_no_upper_bound_says_otherwise() -> None:
    assert SampleConfig.parse({"wait": "inf"}).wait == math.inf
    assert SampleConfig.parse({"limit": math.inf}).limit == math.inf
    for field in ("share", "tries"):
        with pytest.raises(BadInput, match=f"{field} must be"):
            SampleConfig.parse({field: "inf"})
    with pytest.raises(BadInput, match="wait must be"):
        SampleConfig.parse({"wait": "-inf"})


@pytest.mark.parametrize(
    "value", ["", " ", "1 2", "one", "0x10", None, [1], True, 10**400, "1e999"]
)
def test_odd_values_are_refused_with_the_field_and_the_rule(value: object) -> None:
    with pytest.raises(BadInput, match="wait must be a number > 0, not"):
        SampleConfig.parse({"wait": value})


def test_an_optional_field_takes_nothing_for_an_answer() -> None:
    assert SampleConfig.parse({"limit": None}).limit is None
    assert SampleConfig.parse({"limit": "3"}).limit == 3
    with pytest.raises(BadInput, match="limit must be a number > 0, not '0'"):
        SampleConfig.parse({"limit": "0"})


def test_an_unknown_setting_names_the_nearest_and_all() -> None:
    with pytest.raises(UnknownName) as caught:
        SampleConfig.parse({"watt": "1"})
    assert "unknown setting 'watt': did you mean 'wait'?" in str(caught.value)
    assert caught.value.known == (
        "delta",
        "wait",
        "share",
        "tries",
        "limit",
        "pattern",
        "loud",
        "free",
    )


def test_an_unknown_setting_like_no_other_lists_all() -> None:
    with pytest.raises(UnknownName, match=r"unknown setting 'zzz' \(known: delta, wait, "):
        SampleConfig.parse({"zzz": "1"})


@given(
    wait=st.floats(allow_nan=True),
    tries=st.integers(-5, 15),
    delta=st.floats(0, 10) | st.just(math.nan),
)
def test_whatever_is_accepted_keeps_every_rule(wait: float, tries: int, delta: float) -> None:
    try:
        config = SampleConfig.parse({"wait": repr(wait), "tries": str(tries), "delta": delta})
    except BadInput:
        assert not (wait >= delta > 0 and 1 <= tries < 10)
    else:
        assert config.wait == wait
        assert wait >= delta > 0
        assert 1 <= tries < 10


def test_describe_gives_name_rule_default_and_explanation() -> None:
    rows = {row[0]: row[1:] for row in describe(SampleConfig)}
    assert rows["wait"] == ("a number > 0", 2.0, "how long to wait")
    assert rows["tries"] == ("a whole number >= 1 < 10", 3, "")
    assert rows["pattern"][0] == "one of ring, all"
    assert rows["limit"][:2] == ("a number > 0", None)
    assert rows["loud"] == ("true or false", False, "")
    assert list(rows) == ["delta", "wait", "share", "tries", "limit", "pattern", "loud", "free"]


def test_a_configuration_cannot_be_changed() -> None:
    for field in SampleConfig.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(SampleConfig(), field, 3)
