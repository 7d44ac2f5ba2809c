"""Kill a writer at each of its steps, one after the other, and look at what it left.

`python -m tests.fence.crashing FOLDER` prints how many steps a write has. A step is a call that
changes something the next process can see; the writer dies right before it, and once in the middle
of each write of bytes.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from hustings.fence import FileFence
from tests.fence.writers import content, token_of

MOST_STEPS = 200
STEPS = ("open", "write", "pwrite", "fsync", "replace", "unlink", "close", "fchmod", "ftruncate")


def dying(before: int) -> None:
    """From now on, die at a certain step."""
    left = [before]

    def instead(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **named: Any) -> Any:
            if left[0] == 0:
                if name in ("write", "pwrite"):
                    descriptor, data, *rest = arguments
                    real(descriptor, bytes(data)[: len(data) // 2], *rest)
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            return real(*arguments, **named)

        return step

    for name in STEPS:
        mock.patch.object(os, name, instead(name, getattr(os, name))).start()
    mock.patch.object(fcntl, "flock", instead("flock", fcntl.flock)).start()


def write_and_die(path: Path, token: int, before: int) -> bool:
    """Whether the writer got through before its step came."""
    child = os.fork()
    if child == 0:
        dying(before)
        FileFence(path).write(token, content(token))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return not os.WIFSIGNALED(status)


def crashes(folder: Path, first: bool) -> int:
    """All steps of one write: the very first of a fence, or one that replaces another."""
    for before in range(MOST_STEPS):
        path = folder / f"{'first' if first else 'later'}-{before}"
        if not first:
            FileFence(path).write(5, content(5))
        through = write_and_die(path, 6, before)
        fence = FileFence(path)
        found = token_of(path.read_bytes()) if path.exists() else 0
        assert found in ((0, 6) if first else (5, 6)), found
        assert found <= fence.highest <= 6
        if through:
            assert found == 6
            return before
        fence.write(6, content(6))
        assert token_of(path.read_bytes()) == 6
        left = [each.name for each in folder.glob(f".{path.name}.*.part")]
        assert not left, left
    raise AssertionError("a write has no end")


if __name__ == "__main__":
    sys.stdout.write(f"{crashes(Path(sys.argv[1]), True)} {crashes(Path(sys.argv[1]), False)}\n")
