"""The same numbers whoever plays, whatever happens to them, and nothing is played twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import active_children
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from hustings.core.errors import BadInput
from hustings.lab.runs import executors
from hustings.lab.runs.block import Column, Moments
from hustings.lab.runs.engines import EventsPlayer, FastPlayer, play_block
from hustings.lab.runs.executors import PROCESSES, THREADS, OnExecutor, Pool, open_pool
from hustings.lab.runs.playing import Progress, Series, play_all
from hustings.lab.simulation import run_all
from hustings.lab.sweeps import Runs, SweepPoint, SweepResult, play_points
from hustings.lab.sweeps.points import digest_of, play_points_in
from tests.unit.lab.runs.samples import experiment, fatal, fatal_once, grid, numbers, point


@pytest.fixture(scope="module")
def alone() -> list[SweepResult]:
    return play_points(grid())


def blocks(results: list[SweepResult]) -> list[object]:
    return [each.block for each in results]


class Backwards(Executor):
    """Does nothing until it must, and then the last first."""

    def __init__(self) -> None:
        self._tasks: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        made: Future[Any] = Future()
        self._tasks.append((made, lambda: fn(*args, **kwargs)))
        return made

    def play(self) -> None:
        while self._tasks:
            made, call = self._tasks.pop()
            made.set_result(call())


class Listed:
    """Blocks as they are added up."""

    metrics: Mapping[str, Column] = {}

    def __init__(self) -> None:
        self.found: list[Any] = []

    def add(self, block: Any) -> None:
        self.found.append(block)


def in_order(pool: Pool[Any, Any], work: object, runs: range, size: int) -> list[Any]:
    """What comes of some runs in blocks of a size."""
    total = Listed()
    play_all([Series(work, Runs(len(runs)), total, lambda _: size, runs.start)], pool)
    return total.found


def test_runs_are_those_of_the_simulator(alone: list[SweepResult]) -> None:
    report = run_all(alone[0].point.experiment, 450)
    for name, summary in report.metrics.items():
        column = alone[0].block.metrics[name]
        assert summary is not None
        assert column.moments.mean == pytest.approx(summary.mean, rel=1e-12)
        assert column.moments.stderr == pytest.approx(summary.stderr, rel=1e-9)
        assert (column.least, column.most) == (summary.min, summary.max)
    assert alone[0].block.endings == report.endings


def test_threads_play_the_same(alone: list[SweepResult]) -> None:
    with ThreadPoolExecutor(3) as pool:
        assert blocks(play_points(grid(), pool)) == blocks(alone)
    with open_pool(THREADS, 2, play_block) as pool:
        assert blocks(play_points_in(pool, grid())) == blocks(alone)


def test_any_executor_plays_the_same_in_any_order(
    alone: list[SweepResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    backwards = Backwards()
    monkeypatch.setattr(executors, "LOOK", 0.0)
    pool = OnExecutor(play_block, backwards, lambda: 1_000, look=backwards.play)
    assert blocks(play_points_in(pool, grid())) == blocks(alone)


def test_a_worker_that_is_killed_changes_nothing(alone: list[SweepResult], tmp_path: Path) -> None:
    killed: list[int | None] = []

    def kill(reached: Progress) -> None:
        # Not equal: several blocks may end at once.
        if len(killed) < 2 and reached.played >= (2, 5)[len(killed)]:
            victim = active_children()[0]
            assert victim.pid is not None
            killed.append(victim.pid)
            os.kill(victim.pid, signal.SIGKILL)

    with open_pool(PROCESSES, 2, play_block) as pool:
        found = play_points_in(pool, grid(), checkpoint=tmp_path / "kept", tell=kill)
    assert blocks(found) == blocks(alone)
    assert len(killed) == 2
    assert active_children() == []


def test_a_block_that_was_lost_is_played_again(tmp_path: Path) -> None:
    with open_pool(PROCESSES, 2, fatal_once) as pool:
        found = in_order(pool, tmp_path / "mark", range(5, 11), 2)
    assert found == [[5, 6], [7, 8], [9, 10]]


def test_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "MOST_LOSSES", 1)
    told = "again and again, perhaps for want of memory: what is finished is kept"
    with pytest.raises(BadInput, match=told), open_pool(PROCESSES, 2, fatal) as pool:
        in_order(pool, None, range(1), 1)
    assert active_children() == []


def test_an_executor_of_ones_own_is_not_replaced() -> None:
    with ProcessPoolExecutor(1) as pool, pytest.raises(BadInput, match="what is finished is kept"):
        in_order(OnExecutor(fatal, pool, lambda: 1), None, range(1), 1)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_stage_is_added_up_in_order_and_numbers_begin_where_asked(jobs: int) -> None:
    """Stages of 4 and 6 runs from run 100 on, in blocks of 3 or less."""
    looked: list[int] = []

    class TwoStages:
        first, guess = 4, 10

        def next(self, runs: int, metrics: Mapping[str, Column]) -> int:
            looked.append(runs)
            return 10

    total = Listed()
    told: list[Progress] = []
    with open_pool(THREADS, jobs, numbers) as pool:
        series = Series(None, TwoStages(), total, lambda runs: runs // 2, 100)
        assert play_all([series], pool, tell=told.append) == [10]
    assert total.found == [[100, 101], [102, 103], [104, 105, 106], [107, 108, 109]]
    assert looked == [4, 10]
    assert [each.share for each in told if not each.runs] == [0.0] * len(told[:1])
    assert (told[-1].share, told[-1].runs, told[-1].wanted) == (1.0, 10, 10)


def test_progress_is_told_although_no_block_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """One block may take longer than anybody waits for a sign of life."""
    begun = Event()
    told: list[Progress] = []

    def tell(reached: Progress) -> None:
        told.append(reached)
        if len(told) >= 3:
            begun.set()

    def slow(work: None, first: int, last: int) -> list[int]:
        assert begun.wait(60)
        return numbers(work, first, last)

    monkeypatch.setattr(executors, "LOOK", 0.01)
    with open_pool(THREADS, 2, slow) as pool:
        play_all([Series(None, Runs(2), Listed(), lambda _: 2)], pool, tell=tell)
    assert [reached.runs for reached in told[:3]] == [0, 0, 0]
    assert told[-1].share == 1.0


class _Stop(Exception):
    pass


@pytest.mark.parametrize("after", [0, 1, 4])
def test_after_an_interruption_it_goes_on(
    after: int, alone: list[SweepResult], tmp_path: Path
) -> None:
    played: list[int] = []

    def stop(reached: Progress) -> None:
        if reached.played >= after:
            raise _Stop

    def count(reached: Progress) -> None:
        played.append(reached.played)

    path = tmp_path / "checkpoint"
    play_points(grid(), tell=count)
    whole = played[-1]
    with pytest.raises(_Stop):
        play_points(grid(), checkpoint=path, tell=stop)
    assert blocks(play_points(grid(), checkpoint=path, tell=count)) == blocks(alone)
    assert played[-1] == whole - after, "what was finished is not played again"
    kept = path.read_bytes()
    assert blocks(play_points(grid(), checkpoint=path, tell=count)) == blocks(alone)
    assert played[-1] == 0
    assert path.read_bytes() == kept


def test_progress_ends_where_it_says(alone: list[SweepResult]) -> None:
    told: list[Progress] = []
    play_points(grid(), tell=told.append)
    assert told[-1].done == told[-1].series == len(alone)
    assert told[-1].runs == told[-1].wanted == sum(each.block.runs for each in alone)
    assert [each.runs for each in told] == sorted(each.runs for each in told)


def test_a_worker_with_other_code_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    backwards = Backwards()
    monkeypatch.setattr(executors, "LOOK", 0.0)
    pool = OnExecutor(play_block, backwards, lambda: 9, look=backwards.play)
    pool.submit(executors.Task(0, 0, 2), EventsPlayer(experiment()))
    backwards.play()
    monkeypatch.setattr(executors, "code_digest", lambda: "other")
    with pytest.raises(BadInput, match="a worker runs another version"):
        pool.collect()


def test_points_are_told_apart() -> None:
    assert len({digest_of([each]) for each in grid()}) == 5
    assert digest_of(grid()) == digest_of(grid()) != digest_of(grid()[::-1])
    with pytest.raises(BadInput, match="points 1 and 3 are the same: protocol=le-s, members=4"):
        play_points([point(4), point(5), point(4)])
    with pytest.raises(BadInput, match="at least one point"):
        play_points([])


def test_an_engine_that_cannot_play_it_is_refused() -> None:
    with pytest.raises(BadInput, match="engine 'fast' plays"):
        point(5, engine="fast", protocol="bully")
    with pytest.raises(BadInput, match="unknown engine 'quick'"):
        point(5, engine="quick")


def test_a_kernel_that_gives_up_names_the_point(monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(*_: object) -> None:
        raise BadInput("gave up")

    monkeypatch.setattr(FastPlayer, "columns", give_up)
    with pytest.raises(BadInput, match="point 2: gave up"):
        play_points([point(4, Runs(1)), point(4, Runs(1), "fast")])


def test_sums_are_those_of_the_whole() -> None:
    one = SweepPoint({}, experiment(), Runs(200))
    parts = [play_block(one.player, at, at + 50) for at in (0, 50, 100, 150)]
    whole = play_block(one.player, 0, 200)
    summed = parts[0] + parts[1] + parts[2] + parts[3]
    assert (summed.endings, summed.violated, summed.runs) == (whole.endings, whole.violated, 200)
    for name, column in whole.metrics.items():
        moments: Moments = summed.metrics[name].moments
        assert moments.mean == pytest.approx(column.moments.mean, rel=1e-12)
        assert moments.spread == pytest.approx(column.moments.spread, rel=1e-9, abs=1e-12)
