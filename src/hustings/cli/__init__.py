"""The command line: parsing and printing only."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from hustings.cli import streams

BAD_INPUT, INTERRUPTED = 2, 130


def main() -> None:
    """Entry point of `hustings`."""
    with _ending_at_once():
        streams.prepare()
        try:
            from hustings.cli.app import run
        except ModuleNotFoundError as missing:
            if missing.name not in ("click", "rich"):
                raise
            _say(f"the command line needs {missing.name}: pip install 'hustings[cli]'")
            sys.exit(BAD_INPUT)
    code = run(sys.argv[1:])
    with _ending_at_once():
        trouble = streams.finish()
        if trouble is not None:
            _say(f"cannot write to standard output: {trouble}")
            code = BAD_INPUT
        sys.exit(code)


@contextmanager
def _ending_at_once() -> Iterator[None]:
    """Let Ctrl-C end the process where there is nothing to clean up.

    While modules load, Ctrl-C would surface as an error of whichever module it met. A process that
    was told to ignore it goes on ignoring it.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    before = signal.signal(signal.SIGINT, _interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupted(number: int, frame: FrameType | None) -> None:
    with suppress(OSError):
        os.write(2, b"hustings: interrupted\n")
    os._exit(INTERRUPTED)


def _say(sentence: str) -> None:
    with suppress(OSError):
        print(f"hustings: {sentence}", file=sys.stderr, flush=True)
