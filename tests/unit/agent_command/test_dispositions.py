"""Tests that send signals do so however pytest was started: in the background, by `nohup`."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
IGNORED = """
import signal
print(*[n.name for n in signal.Signals if signal.getsignal(n) == signal.SIG_IGN])
"""


def test_what_a_test_starts_ignores_nothing_that_is_usually_heard() -> None:
    shown = subprocess.run(
        [sys.executable, "-c", IGNORED], capture_output=True, text=True, check=True
    ).stdout.split()
    assert set(shown) <= {"SIGPIPE", "SIGXFSZ"}  # Python itself ignores these


def test_the_same_where_a_shell_made_pytest_ignore_them() -> None:
    itself = f"{Path(__file__).relative_to(ROOT)}::{_CHECKED.__name__}"
    done = subprocess.run(
        [
            *("sh", "-c", 'trap "" INT HUP QUIT TERM USR1 USR2 CHLD; exec "$@"', "sh"),
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", itself),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_first_a_test_that_leaves_signals_blocked_and_ignored() -> None:
    """The next one, in the same process, must not find them so."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)


def test_then_one_that_begins_as_usual() -> None:
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    test_what_a_test_starts_ignores_nothing_that_is_usually_heard()


_CHECKED = test_what_a_test_starts_ignores_nothing_that_is_usually_heard
