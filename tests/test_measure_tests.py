"""What `scripts.measure_tests` and `scripts.measure_group` tell."""

from __future__ import annotations

from pathlib import Path

from scripts.measure_group import rested
from scripts.measure_tests import measured, table

ROWS = [
    ("(collection)", 3.0, 0.0),
    ("tests/unit/sim/test_one.py::test_a[1]", 1.0, 2.0),
    ("tests/unit/sim/test_one.py::test_a[2]", 4.0, 4.0),
    ("tests/net/test_two.py::test_b", 2.0, 9.0),
]


def test_the_tables_sum_up_and_begin_with_what_takes_most() -> None:
    lines = list(table(ROWS, most=2))
    shown = [line.split() for line in lines if line]
    assert shown[:3] == [
        ["processor", "wall", "tests", "folder"],
        ["5.00s", "6.0s", "2", "tests/unit/sim"],
        ["3.00s", "0.0s", "1", "(collection)"],
    ]
    assert ["5.00s", "6.0s", "2", "tests/unit/sim/test_one.py::test_a"] in shown
    assert shown[-2:] == [
        ["4.00s", "4.0s", "1", "tests/unit/sim/test_one.py::test_a[2]"],
        ["3.00s", "0.0s", "1", "(collection)"],
    ]


def test_a_test_is_measured_with_the_processes_that_it_started(tmp_path: Path) -> None:
    sample = tmp_path / "test_sample.py"
    sample.write_text(
        "import subprocess, sys\n"
        "BUSY = 'import time\\nwhile time.process_time() < 0.3: pass'\n"
        "def test_idle(): pass\n"
        "def test_busy(): subprocess.run([sys.executable, '-c', BUSY], check=True)\n",
        encoding="utf-8",
    )
    rc, total, rows = measured(["-p", "no:cacheprovider", f"--rootdir={tmp_path}", str(sample)])
    assert rc == 0
    took = {test.rpartition("::")[2]: cpu for test, cpu, _ in rows}
    assert set(took) == {"(collection)", "test_idle", "test_busy"}
    assert took["test_busy"] > 0.25  # its process does not end before
    assert total > took["test_busy"]


def test_a_group_at_rest_does_the_same_again() -> None:
    _, sent, digest = rested(3, 0.01)
    assert sent > 100
    assert rested(3, 0.01)[1:] == (sent, digest)
    assert rested(3, 0.01, crash=True)[2] != digest


def test_a_group_at_rest_sends_little_where_quiet_time_is_skipped() -> None:
    _, sent, digest = rested(3, 6.0, crash=True, skip_quiet=True)
    assert 100 < sent < 1_000
    assert rested(3, 6.0, crash=True, skip_quiet=True)[1:] == (sent, digest)
