"""The hash of the probabilistic election: fair, keyed, and the same however it is looked up."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.protocols.probabilistic.election import Probabilistic
from hustings.protocols.probabilistic.hashing import (
    ROUNDS_KEPT,
    Blake2,
    Filter,
    HashFunction,
    HashTable,
    Skewed,
    shared_filter,
)
from hustings.protocols.probabilistic.messages import Call
from hustings.protocols.probabilistic.settings import ProbabilisticConfig
from hustings.sim.experiment import Experiment
from hustings.sim.play import prepare

# Chi-square at 63 degrees of freedom exceeds this with probability 1e-4. Seven such tests here:
# family-wise level below 1e-3.
CELLS, CRITICAL = 64, 113.7


def chi_square(values: list[float]) -> float:
    counts = Counter(int(value * CELLS) for value in values)
    assert set(counts) <= set(range(CELLS))
    expected = len(values) / CELLS
    return sum((counts[cell] - expected) ** 2 / expected for cell in range(CELLS))


@pytest.mark.parametrize("group", ["", "billing", "日本"])
def test_it_is_fair_over_members(group: str) -> None:
    function = Blake2(group)
    assert chi_square([function.of(each, b"1.2.3.4") for each in range(20_000)]) < CRITICAL


def test_it_is_fair_over_texts() -> None:
    function = Blake2("")
    assert chi_square([function.of(7, b"%d" % each) for each in range(20_000)]) < CRITICAL


def test_it_is_fair_over_rounds_and_nonces() -> None:
    own = Filter(Blake2(""))
    values = [
        own.table(Call(1, 2, nonce), number).value(3)
        for nonce in range(4_000)
        for number in range(1, 6)
    ]
    assert chi_square(values) < CRITICAL


def test_neighbours_are_independent() -> None:
    """Pairs of members in one round, and a member's hashes for relaying and for asking again."""
    side = int(CELLS**0.5)
    function, own = Blake2(""), Filter(Blake2(""))
    values = [function.of(each, b"1.1.1.1") for each in range(20_001)]
    pairs = [(int(a * side) * side + int(b * side)) / CELLS for a, b in pairwise(values)]
    assert chi_square(pairs[::2]) < CRITICAL
    both = []
    for nonce in range(10_000):
        call = Call(1, 1, nonce)
        relays, again = own.table(call, 1).value(5), own.again(5, call, 1)
        both.append((int(relays * side) * side + int(again * side)) / CELLS)
    assert chi_square(both) < CRITICAL


@given(st.integers(-(2**70), 2**70), st.binary(max_size=40), st.text(max_size=10))
def test_it_lies_below_one_and_depends_on_nothing_else(
    member: int, text: bytes, group: str
) -> None:
    value = Blake2(group).of(member, text)
    assert 0.0 <= value < 1.0
    assert value == Blake2(group).of(member, text)


def test_groups_members_and_texts_do_not_run_into_each_other() -> None:
    values = {
        Blake2(group).of(member, text)
        for group in ("", "a", "b")
        for member, text in ((1, b"1.2"), (11, b".2"), (1, b"12"), (11, b"2"), (-1, b"2"))
    }
    assert len(values) == 15


def test_every_part_of_a_round_counts() -> None:
    own = Filter(Blake2(""))
    rounds = [
        (Call(1, 1, 1), 1),
        (Call(2, 1, 1), 1),
        (Call(1, 2, 1), 1),
        (Call(1, 1, 2), 1),
        (Call(1, 1, 1), 2),
    ]
    assert len({own.table(call, number).value(4) for call, number in rounds}) == 5
    assert len({own.again(4, call, number) for call, number in rounds}) == 5


def test_who_is_ruled_out_does_not_change_who_relays() -> None:
    own = Filter(Blake2(""))
    assert own.table(Call(1, 1, 1, (3,)), 1).value(4) == own.table(Call(1, 1, 1), 1).value(4)


# Tables

rosters = st.lists(st.integers(1, 60), unique=True, max_size=40).map(sorted)
bounds = st.floats(0.0, 3.0)


@given(st.lists(st.tuples(rosters, bounds), max_size=8))
def test_a_table_says_what_one_would_compute(asked: list[tuple[list[int], float]]) -> None:
    """In whatever order rosters and bounds change."""
    function = Blake2("x")
    table = HashTable(function, b"9")
    for roster, bound in asked:
        expected = [each for each in roster if function.of(each, b"9") < bound]
        assert table.below(roster, bound) == expected
        assert all(table.value(each) == function.of(each, b"9") for each in roster)


def test_a_roster_that_grows_in_place_is_noticed() -> None:
    table = HashTable(Blake2(""), b"1")
    roster = [1, 2, 3]
    assert table.below(roster, 1.0) == [1, 2, 3]
    roster.append(4)
    assert table.below(roster, 1.0) == [1, 2, 3, 4]
    roster.remove(2)
    assert table.below(tuple(roster), 1.0) == [1, 3, 4]


class Counting(HashFunction):
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def of(self, member: int, text: bytes) -> float:
        self.asked += 1
        return (member * 37 % 101) / 101


def test_each_hash_is_worked_out_once() -> None:
    function = Counting()
    own = Filter(function)
    for _ in range(5):
        own.table(Call(1, 1, 1), 1).below(range(1, 101), 0.1)
        own.table(Call(1, 1, 1), 1).value(17)
    assert function.asked == 100


def test_tables_of_few_rounds_are_kept() -> None:
    function = Counting()
    own = Filter(function)
    for number in range(1, 1 + ROUNDS_KEPT):
        own.table(Call(1, 1, number), 1).value(5)
    for number in range(1, 1 + ROUNDS_KEPT):
        own.table(Call(1, 1, number), 1).value(5)
    assert function.asked == ROUNDS_KEPT
    for number in range(10 * ROUNDS_KEPT):
        own.table(Call(2, 1, number), 1).value(5)
    before = function.asked
    own.table(Call(1, 1, 1), 1).value(5)
    assert function.asked == before + 1


def test_a_table_that_was_forgotten_comes_back_the_same() -> None:
    own = Filter(Blake2(""))
    first = own.table(Call(1, 1, 1), 1).below(range(200), 0.05)
    for number in range(3 * ROUNDS_KEPT):
        own.table(Call(2, 1, number), 1).below(range(200), 0.5)
    assert own.table(Call(1, 1, 1), 1).below(range(200), 0.05) == first


def test_members_of_one_group_share_their_filter() -> None:
    assert shared_filter(Blake2, "a") is shared_filter(Blake2, "a")
    assert shared_filter(Blake2, "a") is not shared_filter(Blake2, "b")


# Hashes that are not fair


@pytest.mark.parametrize("skew", [0.5, 1.0, 2.0])
def test_a_skewed_hash_has_its_distribution_function(skew: float) -> None:
    """Section 3.3: the share below x is x^(1/skew), to four standard errors."""
    function = Skewed(Blake2("g"), skew)
    values = [function.of(member, b"1") for member in range(4000)]
    for x in (0.01, 0.1, 0.5, 0.9):
        share = x ** (1 / skew)
        found = sum(value < x for value in values) / 4000
        assert abs(found - share) < 4 * (share * (1 - share) / 4000) ** 0.5


def test_filters_of_one_group_with_other_hashes_are_others() -> None:
    assert shared_filter(Blake2, "a", 1.0) is not shared_filter(Blake2, "a", 2.0)
    call = Call(1, 1, 1)
    fair, skewed = (shared_filter(Blake2, "a", skew).table(call, 1) for skew in (1.0, 2.0))
    assert skewed.value(3) == fair.value(3) ** 2


def test_an_unfair_hash_states_no_risk_and_says_so() -> None:
    fair, unfair = (
        ProbabilisticConfig.parse({"N": 9, "p_mcastl": 0.1, "hash_skew": skew})
        for skew in (1.0, 1.5)
    )
    assert fair.warnings() == []
    assert "the hash is not fair" in unfair.warnings()[0]
    for config, states in ((fair, True), (unfair, False)):
        experiment = Experiment(Probabilistic, 9, config)
        world = prepare(experiment, 0)
        world.run()
        risks = [getattr(member.outcome, "risk", None) for member in world.live()]
        assert any(risk is not None for risk in risks) is states
