"""Choice functions: total orders, the same at everybody, ties by id."""

from functools import cmp_to_key
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.choice import (
    ByAttributes,
    Candidate,
    Choice,
    HighestId,
    LowestId,
    candidate,
    parse_choice,
)
from hustings.core.errors import BadInput

NAMES = [
    "highest-id",
    "lowest-id",
    "highest:cpu",
    "lowest:load",
    "highest:cpu,lowest:load",
    "lowest:load,lowest:cpu",
]

# Few values, so that ties are common; and the awkward ones.
VALUES = st.sampled_from([-1.0, -0.0, 0.0, 0.5, 1.0, 2.0**60, float("inf"), float("-inf")])
CANDIDATES = st.builds(
    lambda i, cpu, load: candidate(i, cpu=cpu, load=load), st.integers(1, 6), VALUES, VALUES
)
GROUPS = st.lists(CANDIDATES, unique_by=lambda c: c.id, min_size=1, max_size=6)
CHOICES = st.sampled_from([parse_choice(name) for name in NAMES])


@given(choice=CHOICES, group=GROUPS)
def test_any_two_different_candidates_are_ordered_one_way(
    choice: Choice, group: list[Candidate]
) -> None:
    for one, other in permutations(group, 2):
        assert choice.better(one, other) != choice.better(other, one)
    for one in group:
        assert not choice.better(one, one)


@given(choice=CHOICES, group=GROUPS)
def test_the_order_is_transitive(choice: Choice, group: list[Candidate]) -> None:
    for a, b, c in permutations(group, 3):
        if choice.better(a, b) and choice.better(b, c):
            assert choice.better(a, c)


@given(choice=CHOICES, group=GROUPS)
def test_key_and_better_are_one_order(choice: Choice, group: list[Candidate]) -> None:
    def compare(one: Candidate, other: Candidate) -> int:
        return choice.better(one, other) - choice.better(other, one)

    assert sorted(group, key=choice.key) == sorted(group, key=cmp_to_key(compare))


@given(group=GROUPS)
def test_attributes_are_compared_in_the_order_given_and_ties_go_to_the_higher_id(
    group: list[Candidate],
) -> None:
    best = max(group, key=parse_choice("highest:cpu,lowest:load").key)
    most = [c for c in group if c.attribute("cpu") == max(d.attribute("cpu") for d in group)]
    least = [c for c in most if c.attribute("load") == min(d.attribute("load") for d in most)]
    assert best == max(least, key=lambda c: c.id)


def test_ids_alone() -> None:
    group = [candidate(2, cpu=9), candidate(7, cpu=1), candidate(3, cpu=5)]
    assert max(group, key=HighestId().key).id == 7
    assert max(group, key=LowestId().key).id == 2


def test_one_attribute_up_and_down() -> None:
    group = [candidate(1, load=0.5), candidate(2, load=0.1), candidate(3, load=0.9)]
    assert max(group, key=parse_choice("highest:load").key).id == 3
    assert max(group, key=parse_choice("lowest:load").key).id == 2


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_read_back(name: str) -> None:
    choice = parse_choice(name)
    assert choice.name == name
    assert parse_choice(choice.name) == choice


def test_blanks_after_the_comma_are_fine() -> None:
    assert parse_choice("highest:cpu, lowest:load") == parse_choice("highest:cpu,lowest:load")


def test_different_choices_are_different_values() -> None:
    choices = [parse_choice(name) for name in NAMES]
    assert all(one != other for one, other in permutations(choices, 2))
    assert ByAttributes((("cpu", True),)) == parse_choice("highest:cpu")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "highest",
        "highest:",
        ":cpu",
        "best:cpu",
        "Highest:cpu",
        "highest-cpu",
        "highest:cpu,",
        ",highest:cpu",
        "highest:cpu,lowest",
        "highest-id,lowest:load",
    ],
)
def test_a_choice_that_is_not_understood_gets_a_sentence(text: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_choice(text)
    sentence = str(caught.value)
    assert repr(text) in sentence
    assert "highest-id" in sentence
    assert "lowest:ATTRIBUTE" in sentence


def test_a_missing_attribute_names_member_and_attribute() -> None:
    with pytest.raises(BadInput, match=r"member 4 .*'disk'"):
        parse_choice("highest:disk").key(candidate(4, cpu=1))


@given(attributes=st.dictionaries(st.text("abc", min_size=1, max_size=2), st.floats(0, 9)))
def test_equal_attributes_make_equal_candidates_in_any_order(attributes: dict[str, float]) -> None:
    backwards = dict(reversed(attributes.items()))
    assert candidate(1, **attributes) == candidate(1, **backwards)
    assert all(candidate(1, **attributes).attribute(k) == v for k, v in attributes.items())
