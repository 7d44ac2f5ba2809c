"""Measuring: as many runs as asked, once, whatever was known before and whoever played them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from hustings.lab.figures import measuring, workers
from hustings.lab.figures.block import Block, play_block
from hustings.lab.figures.cell import Cell
from hustings.lab.figures.measuring import Progress, Results, measure
from hustings.lab.figures.precision import Adaptive, Fixed, Policy
from hustings.lab.figures.store import Store
from hustings.lab.runs.block import Moments
from tests.unit.lab.figures.samples import bully

CELLS = [bully(4), bully(6), bully(5)]
LOOSE = Adaptive(target=0.05, pilot=20)


class Counter:
    """Counts the runs that are played in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.played: list[tuple[int, int, int]] = []
        self.stop_after: int | None = None
        monkeypatch.setattr(workers, "play_block", self)

    def __call__(self, cell: Cell, seed: int, first: int, last: int) -> Block:
        if self.stop_after is not None and len(self.played) >= self.stop_after:
            raise KeyboardInterrupt
        self.played.append((cell.members, first, last))
        return play_block(cell, seed, first, last)


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    return Counter(monkeypatch)


def measured(folder: Path, policy: Policy, seed: int = 1, jobs: int = 1) -> Results:
    remarks: list[str] = []
    results = measure(CELLS, seed, policy, Store(folder, seed, remarks.append), jobs=jobs)
    assert remarks == []
    return results


@pytest.mark.parametrize("runs", [1, 10, 25])
def test_a_fixed_number_of_runs(tmp_path: Path, runs: int) -> None:
    results = measured(tmp_path, Fixed(runs))
    assert list(results) == CELLS
    for cell, result in results.items():
        direct = play_block(cell, 1, 0, runs)
        assert (result.runs, result.endings) == (runs, direct.endings)
        assert result.metrics["messages"].mean == pytest.approx(direct.metrics["messages"].mean)


def test_precision_is_reached_and_not_overdone(tmp_path: Path) -> None:
    for result in measured(tmp_path, LOOSE).values():
        assert result.metrics["messages"].relative <= 0.05
        assert result.runs % 10 == 0
        fewer = result.metrics["messages"].relative * (result.runs / 20) ** 0.5
        assert result.runs == 20 or fewer > 0.05  # twenty alone would not have done


def test_nothing_is_played_twice(tmp_path: Path, counter: Counter) -> None:
    first = measured(tmp_path, LOOSE)
    played = len(counter.played)
    assert played == len(set(counter.played)) > 0
    assert measured(tmp_path, LOOSE) == first
    assert len(counter.played) == played


def test_more_runs_go_on_from_fewer(tmp_path: Path, counter: Counter) -> None:
    measured(tmp_path, Fixed(20))
    counter.played.clear()
    more = measured(tmp_path, Fixed(35))
    assert sorted(counter.played) == [
        (members, *span) for members in (4, 5, 6) for span in ((20, 30), (30, 35))
    ]
    assert more == measured(tmp_path / "other", Fixed(35))
    counter.played.clear()
    fewer = measured(tmp_path, Fixed(15))  # half a block is not stored, and stores nothing
    assert sorted(counter.played) == [(members, 10, 15) for members in (4, 5, 6)]
    assert fewer == measured(tmp_path / "third", Fixed(15))
    counter.played.clear()
    assert measured(tmp_path, Fixed(35)) == more
    assert counter.played == []


def test_other_seeds_are_other_runs(tmp_path: Path) -> None:
    one, other = (measured(tmp_path, Fixed(20), seed) for seed in (1, 2))
    assert all(one[cell] != other[cell] for cell in CELLS)


def test_the_number_of_processes_cannot_be_seen(tmp_path: Path) -> None:
    assert measured(tmp_path / "one", LOOSE) == measured(tmp_path / "two", LOOSE, jobs=2)
    stored = [
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("one", "two")
    ]
    assert stored[0] == stored[1]


@pytest.mark.parametrize("after", [0, 1, 4, 7])
def test_an_interruption_keeps_what_is_done(tmp_path: Path, counter: Counter, after: int) -> None:
    counter.stop_after = after
    with pytest.raises(KeyboardInterrupt):
        measured(tmp_path, LOOSE)
    before = list(counter.played)
    assert len(before) == after
    counter.stop_after = None
    whole = measured(tmp_path, LOOSE)
    assert len(counter.played) == len(set(counter.played)), "what was done is not done again"
    assert whole == measured(tmp_path / "other", LOOSE)


def test_a_damaged_file_is_measured_again(tmp_path: Path, counter: Counter) -> None:
    first = measured(tmp_path, Fixed(20))
    counter.played.clear()
    remarks: list[str] = []
    store = Store(tmp_path, 1, remarks.append)
    store.path(CELLS[1]).write_text("{}", encoding="utf-8")
    assert measure(CELLS, 1, Fixed(20), store) == first
    assert sorted(counter.played) == [(6, 0, 10), (6, 10, 20)]
    assert len(remarks) == 1
    assert measured(tmp_path, Fixed(20)) == first


def test_a_cell_named_twice_is_measured_once(tmp_path: Path, counter: Counter) -> None:
    results = measure([*CELLS, *CELLS], 1, Fixed(10), Store(tmp_path, 1, print))
    assert list(results) == CELLS
    assert len(counter.played) == 3


def test_a_long_cell_is_saved_on_the_way(
    tmp_path: Path, counter: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "SAVE_EVERY", -1.0)
    store = Store(tmp_path, 1, print)
    sizes: list[int] = []
    save = store.save

    def noted(cell: Cell, blocks: Sequence[Block]) -> None:
        sizes.append(len(blocks))
        save(cell, blocks)

    monkeypatch.setattr(store, "save", noted)
    measure(CELLS[:1], 1, Fixed(30), store)
    assert sizes == [1, 2, 3]


def test_progress_ends_at_the_whole(tmp_path: Path) -> None:
    told: list[Progress] = []
    measure(CELLS, 1, LOOSE, Store(tmp_path, 1, print), tell=told.append)
    assert told[-1].done == told[-1].cells == 3
    assert told[-1].share == 1.0
    assert told[0].share < 1.0
    assert [each.runs for each in told] == sorted(each.runs for each in told)


# How many runs


def so_far(runs: int, relative: float, metric: str = "messages") -> Block:
    spread = (relative * 10.0) ** 2 * runs * (runs - 1)
    return Block(0, runs, {metric: Moments(runs, 10.0, spread)}, {"quiescent": runs}, 0)


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
    assert Adaptive().next(bully(8), so_far(runs, relative)) == wanted


def test_kernels_are_asked_for_more() -> None:
    fast = msgspec.structs.replace(bully(8), engine="fast", members=20_000)  # blocks of 200
    policy = Adaptive()
    assert policy.first(fast) == 200
    assert policy.guess(fast) > 100 * policy.guess(bully(8))
    assert policy.next(fast, so_far(200, 0.00099)) == 200
    assert policy.next(fast, so_far(200, 0.002)) == 800
    assert policy.next(fast, so_far(1_000_000, 0.5)) == 4_000_000
    assert policy.next(fast, so_far(4_000_000, 0.5)) == 4_000_000


def test_a_metric_that_never_shows_is_given_up_at_the_cap() -> None:
    policy = Adaptive(cap=1000)
    assert policy.next(bully(8), so_far(400, 0.001, "other")) == 1000
    assert policy.next(bully(8), so_far(1000, 0.001, "other")) == 1000


def test_all_aims_count() -> None:
    cell = bully(8)
    both = msgspec.structs.replace(cell, aims=("messages", "time"))
    block = so_far(200, 0.001)
    block = Block(0, 200, {**block.metrics, **so_far(200, 0.02, "time").metrics}, {}, 0)
    assert Adaptive().next(cell, block) == 200
    assert Adaptive().next(both, block) == 740
