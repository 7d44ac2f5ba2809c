"""Where the tests' processor time goes: by folder, by file and by test.

    python -m scripts.measure_tests                       # the whole suite, two workers
    python -m scripts.measure_tests --most 40 tests/unit  # what follows goes to pytest

Processor time of a test is its own and that of the processes that it started and that have ended.
What outlives the test, such as an engine that many tests share, counts for nobody, but it is in the
total. Unlike wall time, processor time hardly depends on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = "MEASURED_TESTS"  # where the plugin writes; one file for each worker


def processor_s() -> float:
    """Seconds of processor time of this process, and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _note(test: str, cpu: float, wall: float) -> None:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    with open(Path(os.environ[FOLDER]) / f"{worker}.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps([test, round(cpu, 4), round(wall, 4)]) + "\n")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Note what the test took, with its fixtures."""
    cpu, wall = processor_s(), time.monotonic()
    try:
        return (yield)
    finally:
        _note(item.nodeid, processor_s() - cpu, time.monotonic() - wall)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Note what a worker took before its first test."""
    try:
        return (yield)
    finally:
        _note("(collection)", processor_s(), 0.0)


def measured(words: Sequence[str]) -> tuple[int, float, list[tuple[str, float, float]]]:
    """Run pytest: its exit code, processor time in all, and (test, processor, wall) of each."""
    before = processor_s()
    with tempfile.TemporaryDirectory(prefix="hustings-measured-") as folder:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "scripts.measure_tests", *words]
        rc = subprocess.call(command, cwd=ROOT, env={**os.environ, FOLDER: folder})
        rows: list[Any] = []
        for file in sorted(Path(folder).glob("*.jsonl")):
            rows += map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return rc, processor_s() - before, [tuple(row) for row in rows]


def table(rows: Sequence[tuple[str, float, float]], most: int) -> Iterator[str]:
    """Lines of three tables: folders, files and tests that take most."""

    def folder(test: str) -> str:
        parts = test.partition("::")[0].split("/")
        return "/".join(parts[: 3 if parts[:2] == ["tests", "unit"] else 2])

    kinds: dict[str, Callable[[str], str]] = {
        "folder": folder,
        "file": lambda test: test.partition("::")[0],
        "function": lambda test: test.partition("[")[0],
        "test": lambda test: test,
    }
    for title, kind in kinds.items():
        sums: dict[str, tuple[float, float, int]] = {}
        for test, cpu, wall in rows:
            before = sums.get(kind(test), (0.0, 0.0, 0))
            sums[kind(test)] = (before[0] + cpu, before[1] + wall, before[2] + 1)
        yield f"{'processor':>10} {'wall':>8} {'tests':>6}  {title}"
        for name in sorted(sums, key=lambda name: -sums[name][0])[:most]:
            cpu, wall, count = sums[name]
            yield f"{cpu:>9.2f}s {wall:>7.1f}s {count:>6}  {name}"
        yield ""


def main(arguments: Sequence[str]) -> int:
    """Measure, and print what takes most."""
    assert __doc__
    parser = argparse.ArgumentParser(
        prog="python -m scripts.measure_tests",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--most", type=int, default=25, help="lines of each table")
    parser.add_argument("--keep", type=Path, help="also write every row to this file, as JSON")
    chosen, words = parser.parse_known_args(arguments)
    words = words or ["-n", "2", "--dist=worksteal", "--hypothesis-profile=ci"]
    rc, total, rows = measured(words)
    if chosen.keep:
        chosen.keep.write_text(json.dumps({"total": total, "rows": rows}), encoding="utf-8")
    print(*table(rows, chosen.most), sep="\n")
    named = sum(cpu for _, cpu, _ in rows)
    print(f"{total:.1f} s of processor time in all, {named:.1f} s of them in the rows above")
    return rc


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
