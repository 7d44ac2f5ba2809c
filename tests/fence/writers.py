"""Programs that the tests run and kill: `python -m tests.fence.writers NAME ARGUMENTS`."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from hustings.fence import FileFence, Ledger, StaleToken
from tests.fence.judging import Try

ROOT = Path(__file__).resolve().parents[2]
LINES = 2000


def content(token: int) -> bytes:
    """Large enough that writing it takes several steps, and whole only as a whole."""
    return b"%d\n" % token * LINES


def token_of(data: bytes) -> int:
    """The token that all lines name; fails if it is not the whole of one write."""
    lines = data.split(b"\n")
    assert len(lines) == LINES + 1, f"{len(lines)} lines"
    assert set(lines) == {lines[0], b""}, "a mixture"
    return int(lines[0])


def start(name: str, *arguments: object) -> subprocess.Popen[str]:
    """One of the programs, in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.fence.writers", name, *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def go(processes: list[subprocess.Popen[str]]) -> None:
    """Let programs begin together, when all of them are ready."""
    for each in processes:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in processes:
        assert each.stdin is not None
        each.stdin.close()


def end(processes: list[subprocess.Popen[str]]) -> None:
    """Leave none behind."""
    for each in processes:
        each.kill()
        each.wait()
        for stream in (each.stdin, each.stdout):
            assert stream is not None
            stream.close()


def hear(processes: list[subprocess.Popen[str]], watch: Callable[[], None]) -> list[Try]:
    """All that was tried until they have ended, watching meanwhile."""
    heard: list[list[str]] = [[] for _ in processes]

    def listen(process: subprocess.Popen[str], lines: list[str]) -> None:
        assert process.stdout is not None
        lines.extend(process.stdout)

    ears = [
        threading.Thread(target=listen, args=each) for each in zip(processes, heard, strict=True)
    ]
    for ear in ears:
        ear.start()
    while any(each.poll() is None for each in processes):
        watch()
    for ear in ears:
        ear.join()
    return [each for lines in heard for each in Try.read(lines)]


def attempt(token: int, write: Callable[[], None]) -> Try:
    began = time.monotonic()
    try:
        write()
    except StaleToken as stale:
        return Try(token, began, time.monotonic(), False, stale.highest)
    return Try(token, began, time.monotonic(), True)


def say(line: str) -> None:
    sys.stdout.write(line)
    sys.stdout.flush()


def file_tries(path: str, seed: str, count: str) -> None:
    """Write a fenced file many times, with tokens that grow on the whole."""
    fence, rng = FileFence(path, patience=30.0), random.Random(int(seed))
    say("ready\n")
    sys.stdin.read()
    for step in range(int(count)):
        token = max(1, step + rng.randrange(-10, 10))
        say(attempt(token, partial(fence.write, token, content(token))).line())


def ledger_tries(path: str, seed: str, count: str) -> None:
    """Ask a ledger many times."""
    ledger, rng = Ledger(path, patience=30.0), random.Random(int(seed))
    say("ready\n")
    sys.stdin.read()
    for step in range(int(count)):
        token = max(1, step + rng.randrange(-10, 10))
        say(attempt(token, partial(ledger.admit, "x", token)).line())


def endless(path: str, first: str) -> None:
    """Write until somebody kills this, saying which token is begun and which is done."""
    fence, token = FileFence(path), int(first)
    while True:
        say(f"begin {token}\n")
        fence.write(token, content(token))
        say(f"done {token}\n")
        token += 1


def half_way(path: str, token: str) -> None:
    """Stop in the middle of a write, and finish it when woken."""
    with FileFence(path).writing(int(token)) as stream:
        stream.write(content(int(token))[:100])
        stream.flush()
        say("half\n")
        os.kill(os.getpid(), signal.SIGSTOP)
        stream.write(content(int(token))[100:])


def lock_and_stop(path: str) -> None:
    """Stop while holding a ledger's lock."""
    lock = os.open(path + ".lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    say("locked\n")
    os.kill(os.getpid(), signal.SIGSTOP)


if __name__ == "__main__":
    programs = (file_tries, ledger_tries, endless, half_way, lock_and_stop)
    {each.__name__: each for each in programs}[sys.argv[1]](*sys.argv[2:])
