"""The pulse of a process: members that share it were away together, or not at all."""

from __future__ import annotations

import asyncio
from math import inf

from hustings.core.streams import Stream
from hustings.net.stall_detector import StallDetector, stall_detector_of


def test_who_waits_for_its_turn_was_not_away() -> None:
    pulse = StallDetector(0.0)
    for turn in range(1, 101):
        pulse.beat(turn * 0.05)  # others run, for five seconds
    assert pulse.away(ran=0.0, due=0.1) == 0.0


def test_when_the_process_stood_still_everybody_is_told() -> None:
    pulse = StallDetector(0.0)
    pulse.beat(1.0)
    pulse.beat(6.0)
    pulse.beat(6.01)  # the first to run again does not hide it from the others
    assert pulse.away(ran=0.9, due=1.5) == 4.5
    assert pulse.away(ran=1.0, due=0.5) == 5.0
    assert pulse.away(ran=6.0, due=0.5) == 0.0


def test_with_nothing_to_do_nobody_is_away() -> None:
    pulse = StallDetector(0.0)
    pulse.beat(60.0)
    assert pulse.away(ran=0.0, due=inf) == 0.0
    assert pulse.away(ran=0.0, due=60.0) == 0.0
    assert pulse.away(ran=0.0, due=61.0) == 0.0


def test_lapses_are_remembered_within_bounds() -> None:
    pulse = StallDetector(0.0)
    for second in range(1, 1001):
        pulse.beat(float(second))
    assert pulse.away(ran=0.0, due=0.0) == 1.0
    pulse.beat(2000.0)
    for turn in range(15):
        pulse.beat(2001.0 + turn)
    assert pulse.away(ran=0.0, due=0.0) == 1000.0
    pulse.beat(2016.0)
    assert pulse.away(ran=0.0, due=0.0) == 1.0


def test_a_process_that_ran_all_the_time_had_no_lapse() -> None:
    pulse = StallDetector(0.0)
    for turn in range(1, 100):
        pulse.beat(turn * 0.05)
    assert pulse.lapse(ran=0.0) == 0.0
    pulse.beat(8.0)
    assert pulse.lapse(ran=1.0) == 8.0 - 99 * 0.05
    assert pulse.lapse(ran=7.0) == 1.0
    assert pulse.lapse(ran=8.0) == 0.0


def test_nobody_was_away_for_longer_than_the_process() -> None:
    rng = Stream(11)
    pulse, now = StallDetector(0.0), 0.0
    for _ in range(500):
        ran = now * rng.random()
        assert pulse.away(ran, due=now * rng.random()) <= pulse.lapse(ran)
        now += 0.3 * rng.random() ** 2
        pulse.beat(now)


def test_one_loop_has_one_pulse() -> None:
    async def mine() -> StallDetector:
        loop = asyncio.get_running_loop()
        assert stall_detector_of(loop) is stall_detector_of(loop)
        return stall_detector_of(loop)

    assert asyncio.run(mine()) is not asyncio.run(mine())
