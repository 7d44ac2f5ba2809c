"""The aggregated election: hand-computed groups, cuts of the work, and what it refuses."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np
import pytest

from hustings.core.errors import BadInput, UnknownName
from hustings.lab.kernels.probabilistic.parameters import ProbabilisticParameters
from hustings.lab.kernels.probabilistic.play import play

RUNS = 4000


def near(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]], mean: float) -> bool:
    """Within four standard errors."""
    return bool(abs(values.mean() - mean) <= 4 * values.std() / sqrt(len(values)) + 1e-12)


def test_a_member_alone_elects_itself() -> None:
    found = play(ProbabilisticParameters(members=1), 1, 0, 50).metrics
    for name, value in {
        "strong": 1.0,
        "weak": 1.0,
        "rounds": 1.0,
        "ucasts": 0.0,
        "mcasts": 2.0,
        "relay_members": 1.0,
        "leaderless": 0.0,
    }.items():
        assert (found[name] == value).all(), name


def test_two_members_and_one_place() -> None:
    """K = 1 of 2: nobody passes with probability 1/4; then both do, and always settle it."""
    found = play(ProbabilisticParameters(members=2, sizes=(1.0, inf)), 3, 0, RUNS).metrics
    assert (found["strong"] == 1.0).all()
    assert near(found["rounds"], 1.25)
    assert near(found["relay_members"], 1.0)
    # Both relay: each tells the other its choice, which is the better of the two for both.
    both = found["relayed"] == 2.0
    assert (found["ucasts"][both] == 2.0).all()
    assert (found["ucasts"][found["relayed"] == 1.0] == 0.0).all()
    assert near(found["mcasts"], 1 + 1.0 + 0.25 * (1 + 2))


def test_with_loss_of_everything_only_the_caller_knows() -> None:
    found = play(
        ProbabilisticParameters(members=50, p_ucastl=1.0, p_mcastl=1.0, sizes=(50.0, inf)),
        1,
        0,
        200,
    ).metrics
    assert (found["strong"] == 0.0).all()
    assert (found["ucasts"] == 49.0).all()
    assert (found["mcasts"] == 2.0).all()
    assert (found["leaderless"] == 49 / 50).all()


def test_all_crash() -> None:
    found = play(ProbabilisticParameters(members=20, p_fail=1.0), 1, 0, 50).metrics
    assert (found["strong"] == 0.0).all()
    assert np.isnan(found["weak"]).all()  # of nobody


@pytest.mark.parametrize("estimate", ["exact", "gossip", "view"])
@pytest.mark.parametrize("thinning", ["delay", "hash", "all"])
def test_how_the_work_is_cut_up_does_not_matter(estimate: str, thinning: str) -> None:
    ballot = ProbabilisticParameters(
        members=300,
        view_prob=0.5,
        p_ucastl=0.3,
        p_mcastl=0.3,
        p_fail=0.05,
        estimate=estimate,
        thinning=thinning,
    )
    whole = play(ballot, 5, 0, 40).metrics
    pieces = [play(ballot, 5, *ends).metrics for ends in ((0, 1), (1, 17), (17, 40))]
    for name, column in whole.items():
        joined = np.concatenate([piece[name] for piece in pieces])
        np.testing.assert_array_equal(column, joined, name)


def test_a_billion_members() -> None:
    ballot = ProbabilisticParameters(
        members=10**9, view_prob=0.5, p_ucastl=0.001, p_mcastl=0.001, p_fail=0.001
    )
    found = play(ballot, 2, 0, RUNS).metrics
    assert near(found["relay_members"], 7 * 0.999 * 1.0)
    assert found["strong"].mean() > 0.99
    assert found["messages"].mean() < 100


def test_time_is_told_in_the_unit_of_the_delay() -> None:
    """Nothing lost: the Init, T_2 = 3/2 K, and twice T_3; K = 7, all pass in a group of seven."""
    for delay in (1.0, 0.25):
        found = play(ProbabilisticParameters(members=7, delay=delay), 1, 0, 5).metrics
        assert found["time"].tolist() == pytest.approx([13.5 * delay] * 5)
        assert found["leader"].tolist() == [7.0] * 5


def test_when_all_crash_time_is_the_last_arrival() -> None:
    found = play(ProbabilisticParameters(members=2, p_fail=1.0, sizes=(2.0,)), 1, 0, 4000).metrics
    assert np.isnan(found["leader"]).all()
    assert set(found["time"].tolist()) <= {0.0, *range(1, 5), 5.0}  # a round takes six
    # The one that did not call hears the Init unless it has crashed in the first of six delays.
    assert near((found["time"] > 0).astype(float), 5 / 6)


def test_no_more_members_than_there_are() -> None:
    """K beyond the group: everybody relays."""
    found = play(ProbabilisticParameters(members=5, sizes=(7.0,), view_prob=0.6), 1, 0, 100).metrics
    assert (found["relay_members"] == 5.0).all()
    assert (found["mcasts"] == 6.0).all()


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"members": 0}, "members must lie between 1 and"),
        ({"p_mcastl": 1.5}, "p_mcastl must lie in [0, 1]"),
        ({"p_fail": -0.1}, "p_fail must lie in [0, 1]"),
        ({"view_prob": 0.0}, "view_prob must lie in (0, 1]"),
        ({"sizes": ()}, "the K of every round must be > 0"),
        ({"sizes": (0.0,)}, "the K of every round must be > 0"),
        ({"sizes": (2000.0,)}, "relay members in a round are more than engine 'fast' tracks"),
        ({"sizes": (200.0,), "view_prob": 0.1, "estimate": "view"}, "about 2000 relay members"),
        ({"W": 0.0}, "W must be a finite time > 0"),
        ({"T_3": inf}, "T_3 must be a finite time > 0"),
        ({"T_3": 2.0}, "takes T_3 for the delay of a multicast, and not for 2 of them"),
        ({"delay": 0.0}, "delay must be a finite time > 0"),
    ],
)
def test_what_is_refused(wrong: dict[str, object], words: str) -> None:
    given: dict[str, Any] = {"members": 10_000, **wrong}  # as a caller may get it wrong
    with pytest.raises(BadInput) as caught:
        ProbabilisticParameters(**given)
    assert words in str(caught.value)


def test_unknown_names() -> None:
    with pytest.raises(UnknownName):
        ProbabilisticParameters(members=10, thinning="dely")
    with pytest.raises(UnknownName):
        ProbabilisticParameters(members=10, estimate="guess")


def test_runs_out_of_range() -> None:
    for first, last in ((0, 0), (-1, 5), (0, 10**8)):
        with pytest.raises(BadInput):
            play(ProbabilisticParameters(members=10), 1, first, last)
