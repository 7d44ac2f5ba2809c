"""From nearly all that know a bit to all: what asking brings, and what a flood does to it."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from hustings.core.errors import BadInput, UnknownName
from hustings.lab.kernels.everywhere import METRICS, Poll, play, rooted

QUIET = Poll(members=10_000)
LABELLED = Poll(members=10_000, labels=rooted(10_000), attack="blind")


def known(poll: Poll, runs: int = 4) -> float:
    return float(play(poll, 3, 0, runs).metrics["all_know"].mean())


def changed(poll: Poll, **fields: Any) -> Poll:
    return msgspec.structs.replace(poll, **fields)


def test_asking_works_while_nobody_floods() -> None:
    assert known(QUIET) == 1.0


def test_a_flood_keeps_nearly_all_in_the_dark() -> None:
    found = play(changed(QUIET, attack="blind"), 3, 0, 4).metrics
    assert (found["left"] > 0.5 * found["dark"]).all()


def test_the_flood_fails_where_the_answers_are_a_part_of_the_group() -> None:
    """Right answers, .8 A/(bn) of those asked, must be more than the wrong ones, .2 of them."""
    flooded = changed(QUIET, attack="blind")
    assert known(changed(flooded, answers=1_600)) == 1.0
    assert known(changed(flooded, answers=500)) == 0.0


def test_labels_defeat_a_flood_that_sees_nothing_and_not_one_that_sees_all() -> None:
    assert known(LABELLED) == 1.0
    rushing = changed(LABELLED, attack="rushing")
    found = play(rushing, 3, 0, 4).metrics
    assert rushing.victims >= 1
    assert (found["left"] == rushing.victims).all()
    assert known(changed(rushing, answers=10_000)) == 1.0


def test_bits_of_labels_grow_slower_than_the_group() -> None:
    shares = [Poll(members=n, labels=rooted(n)).bits / n for n in (10**4, 10**5, 10**6)]
    assert shares[0] > 2 * shares[1] > 4 * shares[2]


def test_how_the_work_is_cut_up_does_not_matter() -> None:
    flooded = changed(QUIET, attack="blind", answers=520)
    whole = play(flooded, 5, 0, 4).metrics
    pieces = [play(flooded, 5, *ends).metrics for ends in ((0, 1), (1, 4))]
    for name in METRICS:
        assert np.array_equal(whole[name], np.concatenate([each[name] for each in pieces])), name
    assert len(set(whole["left"].tolist())) > 1


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"members": 3}, "members must lie between 16"),
        ({"b": 0.5}, "b must lie in"),
        ({"dark": 1.0}, "dark must lie in"),
        ({"labels": 0}, "labels must lie between 1"),
        ({"answers": 10_001}, "answers must lie between 0"),
        ({"members": 10**8, "labels": 10**4}, "take too long"),
    ],
)
def test_refusals(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        changed(QUIET, **fields)
    with pytest.raises(UnknownName, match="unknown attack 'blin'"):
        changed(QUIET, attack="blin")
    with pytest.raises(BadInput, match="the first before the last"):
        play(QUIET, 1, 2, 2)
