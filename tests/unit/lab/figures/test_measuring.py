"""Measuring: as many runs as asked, once, whatever was known before and whoever played them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from hustings.lab.figures import measuring
from hustings.lab.figures.measurement import CAP, Measurement
from hustings.lab.figures.measuring import Results, measure
from hustings.lab.figures.store import Store
from hustings.lab.runs.block import Block, Column, Moments
from hustings.lab.runs.engines import EventsPlayer, Player, play_block
from hustings.lab.runs.playing import Goal, Progress, RelativePrecision
from tests.unit.lab.figures.samples import bully, fixed

CELLS = [bully(4), bully(6), bully(5)]


def loose(cell: Measurement) -> Goal:
    return RelativePrecision(
        aims=cell.aims, target=0.05, most=CAP, usual=160, block=cell.block, pilot=20
    )


class Counter:
    """Counts the runs that are played in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.played: list[tuple[int, int, int]] = []
        self.stop_after: int | None = None
        monkeypatch.setattr(measuring, "play_block", self)

    def __call__(self, player: Player, first: int, last: int) -> Block:
        if self.stop_after is not None and len(self.played) >= self.stop_after:
            raise KeyboardInterrupt
        assert isinstance(player, EventsPlayer)
        self.played.append((player.experiment.members, first, last))
        return play_block(player, first, last)


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    return Counter(monkeypatch)


def measured(
    folder: Path, goal: Callable[[Measurement], Goal], seed: int = 1, jobs: int = 1
) -> Results:
    warnings: list[str] = []
    results = measure(CELLS, seed, goal, Store(folder, seed, warnings.append), jobs=jobs)
    assert warnings == []
    return results


@pytest.mark.parametrize("runs", [1, 10, 25])
def test_a_fixed_number_of_runs(tmp_path: Path, runs: int) -> None:
    results = measured(tmp_path, fixed(runs))
    assert list(results) == CELLS
    for cell, result in results.items():
        direct = cell.play(1, 0, runs)
        assert (result.runs, result.endings) == (runs, direct.endings)
        assert result.metrics["messages"].mean == pytest.approx(direct.metrics["messages"].mean)


def test_precision_is_reached_and_not_overdone(tmp_path: Path) -> None:
    for result in measured(tmp_path, loose).values():
        assert result.metrics["messages"].relative <= 0.05
        assert result.runs % 10 == 0
        fewer = result.metrics["messages"].relative * (result.runs / 20) ** 0.5
        assert result.runs == 20 or fewer > 0.05  # twenty alone would not have done


def test_nothing_is_played_twice(tmp_path: Path, counter: Counter) -> None:
    first = measured(tmp_path, loose)
    played = len(counter.played)
    assert played == len(set(counter.played)) > 0
    assert measured(tmp_path, loose) == first
    assert len(counter.played) == played


def test_more_runs_go_on_from_fewer(tmp_path: Path, counter: Counter) -> None:
    measured(tmp_path, fixed(20))
    counter.played.clear()
    more = measured(tmp_path, fixed(35))
    assert sorted(counter.played) == [
        (members, *span) for members in (4, 5, 6) for span in ((20, 30), (30, 35))
    ]
    assert more == measured(tmp_path / "other", fixed(35))
    counter.played.clear()
    fewer = measured(tmp_path, fixed(15))  # half a block is not stored, and stores nothing
    assert sorted(counter.played) == [(members, 10, 15) for members in (4, 5, 6)]
    assert fewer == measured(tmp_path / "third", fixed(15))
    counter.played.clear()
    assert measured(tmp_path, fixed(35)) == more
    assert counter.played == []


def test_other_seeds_are_other_runs(tmp_path: Path) -> None:
    one, other = (measured(tmp_path, fixed(20), seed) for seed in (1, 2))
    assert all(one[cell] != other[cell] for cell in CELLS)


def test_the_number_of_processes_cannot_be_seen(tmp_path: Path) -> None:
    assert measured(tmp_path / "one", loose) == measured(tmp_path / "two", loose, jobs=2)
    stored = [
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("one", "two")
    ]
    assert stored[0] == stored[1]


@pytest.mark.parametrize("after", [0, 1, 4, 7])
def test_an_interruption_keeps_what_is_done(tmp_path: Path, counter: Counter, after: int) -> None:
    counter.stop_after = after
    with pytest.raises(KeyboardInterrupt):
        measured(tmp_path, loose)
    before = list(counter.played)
    assert len(before) == after
    counter.stop_after = None
    whole = measured(tmp_path, loose)
    assert len(counter.played) == len(set(counter.played)), "what was done is not done again"
    assert whole == measured(tmp_path / "other", loose)


def test_a_damaged_file_is_measured_again(tmp_path: Path, counter: Counter) -> None:
    first = measured(tmp_path, fixed(20))
    counter.played.clear()
    warnings: list[str] = []
    store = Store(tmp_path, 1, warnings.append)
    store.path(CELLS[1]).write_text("{}", encoding="utf-8")
    assert measure(CELLS, 1, fixed(20), store) == first
    assert sorted(counter.played) == [(6, 0, 10), (6, 10, 20)]
    assert len(warnings) == 1
    assert measured(tmp_path, fixed(20)) == first


def test_a_cell_named_twice_is_measured_once(tmp_path: Path, counter: Counter) -> None:
    results = measure([*CELLS, *CELLS], 1, fixed(10), Store(tmp_path, 1, print))
    assert list(results) == CELLS
    assert len(counter.played) == 3


def test_a_long_cell_is_saved_on_the_way(
    tmp_path: Path, counter: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "SAVE_EVERY", -1.0)
    store = Store(tmp_path, 1, print)
    sizes: list[int] = []
    save = store.save

    def noted(cell: Measurement, blocks: Sequence[Block]) -> None:
        sizes.append(len(blocks))
        save(cell, blocks)

    monkeypatch.setattr(store, "save", noted)
    measure(CELLS[:1], 1, fixed(30), store)
    assert sizes == [1, 2, 3]


def test_progress_ends_at_the_whole(tmp_path: Path) -> None:
    told: list[Progress] = []
    measure(CELLS, 1, loose, Store(tmp_path, 1, print), tell=told.append)
    assert told[-1].done == told[-1].series == 3
    assert told[-1].share == 1.0
    assert told[0].share < 1.0
    assert [each.runs for each in told] == sorted(each.runs for each in told)


# How many runs


def so_far(runs: int, relative: float, metric: str = "messages") -> Block:
    spread = (relative * 10.0) ** 2 * runs * (runs - 1)
    column = Column(Moments(runs, 10.0, spread), 0.0, 20.0)
    return Block(0, runs, {metric: column}, {"quiescent": runs}, 0)


def following(goal: Goal, block: Block) -> int:
    return goal.next(block.runs, block.metrics)


@pytest.mark.parametrize(
    "runs, relative, wanted",
    [
        (200, 0.009, 200),  # good enough
        (200, 0.02, 740),  # four times the runs halve the error, and a little less for a look
        (200, 0.2, 1480),  # a first look is not followed further
        (200, 0.0101, 210),  # whole blocks
        (200, 0.0105, 230),  # nearly there: all the way
        (30_000, 0.5, 30_000),  # the cap
        (10_000, 0.03, 30_000),
    ],
)
def test_the_next_number_of_runs(runs: int, relative: float, wanted: int) -> None:
    assert following(bully(8).goal(), so_far(runs, relative)) == wanted


def test_kernels_are_asked_for_more() -> None:
    fast = msgspec.structs.replace(bully(8), engine="fast", members=20_000)  # blocks of 200
    goal = fast.goal()
    assert goal.first == 200
    assert goal.guess > 100 * bully(8).goal().guess
    assert following(goal, so_far(200, 0.00099)) == 200
    assert following(goal, so_far(200, 0.002)) == 800
    assert following(goal, so_far(1_000_000, 0.5)) == 4_000_000
    assert following(goal, so_far(4_000_000, 0.5)) == 4_000_000


def test_a_metric_that_never_shows_is_given_up_at_the_cap() -> None:
    goal = RelativePrecision(("messages",), 0.01, most=1000, usual=1000, block=10)
    assert following(goal, so_far(400, 0.001, "other")) == 1000
    assert following(goal, so_far(1000, 0.001, "other")) == 1000


def test_all_aims_count() -> None:
    cell = bully(8)
    both = msgspec.structs.replace(cell, aims=("messages", "time"))
    block = so_far(200, 0.001)
    block = Block(0, 200, {**block.metrics, **so_far(200, 0.02, "time").metrics}, {}, 0)
    assert following(cell.goal(), block) == 200
    assert following(both.goal(), block) == 740
