"""The command line: parsing and printing only."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TextIO


def main() -> None:
    """Entry point of `hustings`."""
    try:
        from hustings.cli.app import run
    except ModuleNotFoundError as missing:
        if missing.name not in ("click", "rich"):
            raise
        print(
            f"hustings: the command line needs {missing.name}: pip install 'hustings[cli]'",
            file=sys.stderr,
        )
        sys.exit(2)
    code = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        _empty(stream)
    sys.exit(code)


def _empty(stream: TextIO | None) -> None:
    """What a closed terminal does not take must not become the exit code."""
    if stream is None:
        return
    try:
        stream.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
