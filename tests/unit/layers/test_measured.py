"""What a member measures of the ways to it, with time as an argument."""

from __future__ import annotations

import pytest

from hustings.core.streams import Stream
from hustings.layers.measurement import Measurement, MeasureMsg, measure_config

ME, OTHER = 1, 2


def measured(what: str = "loss", **given: object) -> Measurement:
    return Measurement(measure_config({"what": what, "T_M": 1.0, **given}, 0.1))


def hear(one: Measurement, numbers: list[int], life: int = 1) -> None:
    for number in numbers:
        one.heard(float(number), ME, OTHER, MeasureMsg(life, number))


def test_gaps_are_losses() -> None:
    one = measured()
    hear(one, [1, 2, 4, 5, 7, 8, 9, 10])
    assert one.value(10.0) == pytest.approx(0.2)


def test_only_the_window_counts() -> None:
    one = measured(window=8)
    hear(one, [1, 20, 21, 22, 23, 24, 25, 26, 27])
    assert one.value(27.0) == 0


def test_copies_and_late_ones_are_no_losses() -> None:
    one = measured()
    hear(one, [1, 2, 4, 3, 4, 4, 5, 6])
    assert one.value(6.0) == 0


def test_silence_is_loss_as_long_as_the_member_is_there() -> None:
    one = measured(window=10)
    hear(one, list(range(1, 11)))
    assert one.value(15.0) == pytest.approx(0.4)
    assert one.value(60.0) == 1
    one.attend(60.0, [])
    assert one.value(60.0) is None


def test_who_is_never_heard_counts_as_well() -> None:
    one = measured()
    one.attend(0.0, [OTHER, 3])
    hear(one, list(range(1, 11)))
    assert one.value(10.0) == pytest.approx(0.5)


def test_another_life_begins_anew() -> None:
    one = measured()
    hear(one, list(range(1, 11)))
    hear(one, [1, 2, 3, 4, 5, 6], life=2)
    assert one.value(6.0) == 0
    hear(one, [90], life=1)  # of a life that is over
    assert one.value(6.0) == 0


def test_an_echo_makes_a_round_trip_whatever_the_clocks_say() -> None:
    one = measured("delay")
    sent = one.probe(10.0, 1)
    one.heard(13.0, ME, OTHER, MeasureMsg(1, 1, ((ME, sent.number, 2.0),)))
    assert one.value(13.0) == pytest.approx(0.5)
    for held in (-1.0, 99.0, float("nan")):  # a lie, which teaches nothing
        one.heard(13.0, ME, OTHER, MeasureMsg(1, 2, ((ME, sent.number, held),)))
    assert one.value(13.0) == pytest.approx(0.5)


def test_the_attribute_follows_with_hysteresis() -> None:
    one = measured(step=0.1)
    hear(one, list(range(1, 101)))
    one.follow(100.0, leading=False)
    assert one.published == 0
    one.follow(102.5, leading=False)  # one of fifty is overdue, or two: less than half a step
    assert one.published == 0
    one.follow(102.5, leading=True)
    assert one.published == pytest.approx(-0.16, abs=0.03)


def test_a_leader_gives_way_only_to_one_that_measures_better_by_a_step() -> None:
    """Whatever two members have measured before, and in whichever order it was published."""
    rng, step, gave = Stream(3), 0.1, 0
    for _ in range(300):
        leader, rival = measured(step=step), measured(step=step)
        for _ in range(20):
            for one in (leader, rival):
                one.ways.clear()
                lost = rng.random()
                hear(one, [1, *(n for n in range(2, 50) if rng.random() > lost), 50])
                one.follow(50.0, leading=one is leader)
        ours, theirs = leader.value(50.0), rival.value(50.0)
        assert ours is not None
        assert theirs is not None
        assert leader.published is not None
        assert rival.published is not None
        if rival.published < leader.published:
            gave += 1
            assert theirs < ours - step + 1e-9
        else:
            assert theirs > ours - 3 * step - 1e-9
    assert gave > 20
