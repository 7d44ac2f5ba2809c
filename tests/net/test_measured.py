"""Thesis 5.7, other definitions of leadership: members that are ranked by what they measure.

Real members on a virtual clock. Whoever hears the others best comes to lead, stays although
measurements are noisy, and gives way only to one that is better by the hysteresis.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import hustings
from hustings.testing import Group

NAMES = ("a", "b", "c", "d", "e", "f", "g", "h")
CHANGE = 40.0  # seconds: three windows of 50 probes, one each 250 ms


@contextmanager
def measuring() -> Iterator[Group]:
    given: dict[str, Any] = {"choice": "lowest:loss", "measure": "loss", "preempt": True}
    with Group(seed=5, delay=(0.001, 0.004), protocol="le-s", **given) as group:
        for name in NAMES:
            group.join(name)
        group.settle()
        yield group


def deafen(group: Group, name: str, number: int, spared: str) -> None:
    """A member hears so many others no more, but whom it has to follow."""
    for other in [each for each in NAMES if each not in (name, spared)][:number]:
        group.cut(other, name)


def test_who_hears_best_comes_to_lead() -> None:
    with measuring() as group:
        first = group.leaders[0]
        best = next(name for name in NAMES if name != first)
        for name in NAMES:
            if name != best:
                deafen(group, name, 4, spared=best)
        group.advance(CHANGE)
        assert group.settle(within=60, steady=20) == best


def test_noise_unseats_nobody() -> None:
    with measuring() as group:
        group.weather(loss=0.1)
        group.advance(CHANGE)
        leader = group.settle(within=20)
        group.log.clear()
        group.advance(60)
        assert group.settle() == leader
        assert {one.state.leader.name for one in group.log if one.state.leader is not None} <= {
            leader
        }


def test_a_leader_gives_way_only_to_one_that_is_better_by_the_hysteresis() -> None:
    """One way of seven lost is .14, less than two steps; four are .57, more than three."""
    with measuring() as group:
        group.advance(CHANGE)
        leader = group.settle()
        deafen(group, leader, 1, spared=leader)
        group.advance(CHANGE)
        assert group.settle() == leader
        deafen(group, leader, 4, spared=leader)
        group.advance(CHANGE)
        others = [name for name in NAMES if name != leader]  # it may not hear the one that follows
        assert group.settle(others, within=20) != leader


def test_what_is_measured_must_be_what_is_ranked() -> None:
    with pytest.raises(hustings.BadInput, match="choice 'lowest:loss'"):
        hustings.join("billing", measure="loss")
    with pytest.raises(hustings.BadInput, match="what must be one of loss, delay"):
        hustings.join("billing", measure="hops", choice="lowest:hops")
