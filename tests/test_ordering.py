"""The order of tests for several workers keeps all of them, and starts with those that wait."""

from __future__ import annotations

import pytest

from tests.ordering import CORES, dealt, group_of, ordered, weight_of

ENGINES = ("etcd", "nats")
TESTS = (
    *(f"tests/agreement/test_a.py::test[{number}]" for number in range(20)),
    *(
        f"tests/guard/test_g.py::test[{engine}-{n}]"
        for n in range(10)
        for engine in ("etcd", "nats")
    ),
    *(f"tests/net/test_{file}.py::test[{number}]" for file in "abc" for number in range(10)),
    *(f"tests/unit/core/test_u.py::test[{number}]" for number in range(130)),
)


def shares(workers: int) -> list[list[str]]:
    """What each worker gets at first, as xdist deals it out."""
    left = iter(ordered(TESTS, workers))
    return [[TESTS[next(left)] for _ in range(size)] for size in dealt(len(TESTS), workers)]


def test_all_are_dealt_out_in_equal_parts() -> None:
    assert dealt(10, 3) == [3, 3, 4]
    assert sum(dealt(17_549, 6)) == 17_549


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 6, 50])
def test_each_test_is_there_once(workers: int) -> None:
    assert sorted(ordered(TESTS, workers)) == list(range(len(TESTS)))


def test_few_workers_keep_the_order() -> None:
    assert ordered(TESTS, CORES) == list(range(len(TESTS)))


def test_those_that_wait_come_first_and_are_spread() -> None:
    dealt = shares(6)
    for share in dealt[: 6 - CORES]:
        waits = [weight_of(test) > 0 for test in share]
        assert any(waits)
        assert waits == sorted(waits, reverse=True)
    assert not any(weight_of(test) for share in dealt[6 - CORES :] for test in share)


def test_the_long_ones_are_computed_from_the_start() -> None:
    assert any(share[0].startswith("tests/agreement") for share in shares(6))


def test_an_engines_tests_stay_together() -> None:
    assert group_of("tests/guard/test_x.py::test[a-etcd]") == "etcd"
    for engine in ENGINES:
        holders = [share for share in shares(6) if any(f"[{engine}" in test for test in share)]
        assert len(holders) == 1
