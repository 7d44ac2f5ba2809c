"""Double starts: how they are counted, and groups in which the job was once started twice."""

from __future__ import annotations

import json

import pytest

from scripts.measure_starts import Block, Cell, Play, Start, main, play, upper


@pytest.mark.parametrize(
    "cell, seed, rounds",
    [
        (Cell("le-s", False, 10, 0.02), 5477829538557801698, 6),  # a member came back meanwhile
        (Cell("bully", False, 10, 0.001), 4154673742036220229, 1),  # the same, and 136 terms
        (Cell("le-a", False, 3, 0.0), 11706576655009191315, 2),  # two members claimed one term
        (Cell("le-a", False, 3, 0.02), 36591225712669837, 3),  # one of them heard it too late
        (Cell("le-a", False, 3, 0.02), 3497356015783800795, 8),  # an old announcement came late
        (Cell("le-s", True, 3, 0.02), 1, 2),
        (Cell("le-m", False, 3, 0.002), 1, 2),
        (Cell("probabilistic", False, 3, 0.002), 1, 2),
    ],
    ids=str,
)
def test_each_failover_starts_the_job_once(cell: Cell, seed: int, rounds: int) -> None:
    block = play(cell, seed, rounds)
    assert block.found == ()
    assert (block.failovers, block.doubles, block.unsettled) == (rounds, 0, 0)
    assert len(block.process) + len(block.machine) == rounds
    assert all(0.0 <= gap < 5.0 for gap in (*block.process, *block.machine))


def test_a_second_start_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever member it is, and however soon."""
    quiet = Play._quiet

    async def twice(self: Play, seen: int) -> None:
        await quiet(self, seen)
        last = self._starts[-1]
        self._starts.append(Start(last.at + 0.05, last.member, last.term + 1))

    monkeypatch.setattr(Play, "_quiet", twice)
    block: Block = play(Cell("le-s", False, 2, 0.001), 1, 2)
    assert (block.boots, block.failovers, block.doubles) == (1, 2, 2)
    assert "after 0.050 s" in block.found[0]


def test_the_bound_is_the_exact_one() -> None:
    for none, share in ((29_956, 1e-4), (299, 0.01)):
        assert upper(0, none) == pytest.approx(1 - 0.05 ** (1 / none), rel=1e-9)
        assert upper(0, none) <= share < upper(0, none - 2)
    assert upper(3, 100) == pytest.approx(0.0757, abs=1e-4)
    assert upper(0, 0) == upper(2, 2) == 1.0


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--protocols le-s --members 2 --delays 1ms --guards without --failovers 2 --jobs 1"
    assert main([*words.split(), "--json"]) == 0
    cell, total = map(json.loads, capsys.readouterr().out.splitlines())
    assert (cell["members"], cell["failovers"], cell["doubles"]) == (2, 2, 0)
    assert (total["members"], total["failovers"]) == (None, 2)
    assert main(["--members", "1"]) == 2
    assert "between 2 and 100" in capsys.readouterr().err
