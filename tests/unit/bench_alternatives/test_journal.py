"""What a journal of workers says about gaps and about two leaders at once."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from bench.alternatives.journal import Beat, Journal, Overlap, Reader, gap, overlap


def beats(*lines: tuple[float, str] | tuple[float, str, int]) -> list[Beat]:
    return [Beat(*line) for line in lines]


def test_workers_write_whole_lines_that_are_read_in_order_of_time(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    one, two = Journal(path, "w0"), Journal(path, "w1")
    began = time.monotonic()
    two.waits()
    for _ in range(3):
        one.beat()
        two.beat(7)
    reader = Reader(path)
    reader.look()
    assert [(beat.name, beat.token) for beat in reader.beats] == [("w0", None), ("w1", 7)] * 3
    assert [beat.at for beat in reader.beats] == sorted(beat.at for beat in reader.beats)
    assert reader.waiting.keys() == {"w1"}
    assert reader.waiting["w1"] >= began - 0.001
    one.beat()
    reader.look()
    assert [beat.name for beat in reader.beats[6:]] == ["w0"]
    one.close()
    two.close()


def test_a_line_that_is_not_whole_yet_is_left_for_the_next_look(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_text("1.5 w0 -\n2.5 w")
    reader = Reader(path)
    reader.look()
    assert reader.beats == beats((1.5, "w0"))
    with path.open("a") as file:
        file.write("1 12\n")
    reader.look()
    assert reader.beats == beats((1.5, "w0"), (2.5, "w1", 12))


def test_lines_since_a_moment_are_those_at_it_and_later(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_text("3.0 w1 -\n1.0 w0 -\n2.0 w0 -\n")
    reader = Reader(path)
    reader.look()
    assert reader.since(2.0) == beats((2, "w0"), (3, "w1"))
    assert reader.since(4.0) == []


def test_the_gap_is_from_the_fault_to_the_first_work_of_another_worker() -> None:
    found = beats((1, "w0"), (2, "w0"), (2.25, "w0"), (5, "w1"), (6, "w2"))
    assert gap(found, "w0", 2) == 3
    assert gap(found, "w1", 2) == pytest.approx(0.25)


def test_without_a_successor_there_is_no_gap() -> None:
    assert gap(beats((1, "w0"), (9, "w0")), "w0", 2) is None
    assert gap(beats((1, "w1")), "w0", 2) is None  # before the fault


def test_two_at_once_is_what_the_old_leader_wrote_after_its_successor_began() -> None:
    found = beats((1, "w0"), (4, "w1"), (5, "w0"), (5.5, "w1"), (5.75, "w0"), (6, "w1"))
    assert overlap(found, "w0", 2) == Overlap(beats=2, seconds=0.75, refused=0)


def test_an_old_leader_that_wrote_only_before_its_successor_does_not_overlap() -> None:
    nothing = Overlap(0, 0.0, 0)
    assert overlap(beats((1, "w0"), (2.5, "w0"), (4, "w1")), "w0", 2) == nothing
    assert overlap(beats((1, "w0"), (9, "w0")), "w0", 2) == nothing


def test_a_resource_refuses_a_token_below_one_that_it_has_seen() -> None:
    found = beats((3, "w0", 7), (4, "w1", 8), (5, "w0", 7), (6, "w0", 7), (7, "w1", 8))
    assert overlap(found, "w0", 2) == Overlap(beats=2, seconds=1.0, refused=2)


def test_a_former_leader_that_leads_again_with_a_larger_token_is_not_refused() -> None:
    found = beats((4, "w1", 8), (5, "w0", 7), (6, "w0", 9), (7, "w1", 8), (8, "w0", 9))
    assert overlap(found, "w0", 2) == Overlap(beats=3, seconds=3.0, refused=1)
