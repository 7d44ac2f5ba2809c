"""`python -m bench.alternatives.process RECIPE GROUP URL NAME JOURNAL`: one worker.

SIGTERM ends it in good order: every recipe gives its leadership back, as its library has it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback

from bench.alternatives.journal import Journal
from bench.alternatives.recipes import RECIPES
from bench.net.spaces import die_with_parent

AGAIN_S = 0.2


def main() -> None:
    recipe, group, url, name, path = sys.argv[1:]
    die_with_parent(os.getppid())
    told = threading.Event()

    def end(_number: int, _frame: object) -> None:
        told.set()
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, end)
    journal = Journal(path, name)
    while not told.is_set():
        try:
            RECIPES[recipe](group, url, name, journal)
        except Exception:
            # Leadership that ends by an error is leadership that ends: the worker is a candidate
            # again. What it was is in the worker's log.
            traceback.print_exc()
        told.wait(AGAIN_S)


if __name__ == "__main__":
    main()
