"""Processes whose system tells them another time, by libfaketime."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
_FETCHING_S = 300.0


def environment(clock: str) -> dict[str, str]:
    """Of a process on this clock: "" is the machine's own, "+1d x1.1" another date and rate.

    All clocks of the system are changed, the monotonic one that members live by included.
    """
    if not clock:
        return dict(os.environ)
    return {**os.environ, "LD_PRELOAD": str(library()), "FAKETIME": clock}


@cache
def library() -> Path:
    folder = ROOT / ".engines" / "faketime"
    script = ROOT / "scripts" / "fetch_faketime.sh"
    subprocess.run([str(script), str(folder)], check=True, timeout=_FETCHING_S)
    return folder / "libfaketime.so.1"
