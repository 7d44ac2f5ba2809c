"""The stall detector of a process: members that share it were away together, or not at all."""

from __future__ import annotations

import asyncio
from math import inf

from hustings.core.streams import Stream
from hustings.net.stall_detector import StallDetector, stall_detector_of


def test_who_waits_for_its_turn_was_not_away() -> None:
    detector = StallDetector(0.0)
    for turn in range(1, 101):
        detector.beat(turn * 0.05)  # others run, for five seconds
    assert detector.away(ran=0.0, due=0.1) == 0.0


def test_when_the_process_stood_still_everybody_is_told() -> None:
    detector = StallDetector(0.0)
    detector.beat(1.0)
    detector.beat(6.0)
    detector.beat(6.01)  # the first to run again does not hide it from the others
    assert detector.away(ran=0.9, due=1.5) == 4.5
    assert detector.away(ran=1.0, due=0.5) == 5.0
    assert detector.away(ran=6.0, due=0.5) == 0.0


def test_with_nothing_to_do_nobody_is_away() -> None:
    detector = StallDetector(0.0)
    detector.beat(60.0)
    assert detector.away(ran=0.0, due=inf) == 0.0
    assert detector.away(ran=0.0, due=60.0) == 0.0
    assert detector.away(ran=0.0, due=61.0) == 0.0


def test_lapses_are_remembered_within_bounds() -> None:
    detector = StallDetector(0.0)
    for second in range(1, 1001):
        detector.beat(float(second))
    assert detector.away(ran=0.0, due=0.0) == 1.0
    detector.beat(2000.0)
    for turn in range(15):
        detector.beat(2001.0 + turn)
    assert detector.away(ran=0.0, due=0.0) == 1000.0
    detector.beat(2016.0)
    assert detector.away(ran=0.0, due=0.0) == 1.0


def test_a_process_that_ran_all_the_time_had_no_lapse() -> None:
    detector = StallDetector(0.0)
    for turn in range(1, 100):
        detector.beat(turn * 0.05)
    assert detector.lapse(ran=0.0) == 0.0
    detector.beat(8.0)
    assert detector.lapse(ran=1.0) == 8.0 - 99 * 0.05
    assert detector.lapse(ran=7.0) == 1.0
    assert detector.lapse(ran=8.0) == 0.0


def test_nobody_was_away_for_longer_than_the_process() -> None:
    rng = Stream(11)
    detector, now = StallDetector(0.0), 0.0
    for _ in range(500):
        ran = now * rng.random()
        assert detector.away(ran, due=now * rng.random()) <= detector.lapse(ran)
        now += 0.3 * rng.random() ** 2
        detector.beat(now)


def test_one_loop_has_one_stall_detector() -> None:
    async def mine() -> StallDetector:
        loop = asyncio.get_running_loop()
        assert stall_detector_of(loop) is stall_detector_of(loop)
        return stall_detector_of(loop)

    assert asyncio.run(mine()) is not asyncio.run(mine())
