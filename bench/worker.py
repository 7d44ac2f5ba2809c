"""The process that runs one implementation; `python -m bench.worker MODULE`.

One JSON object per line comes in on standard input and one goes out on standard output. Each
implementation has a process of its own, so that none inherits the heap another one left behind,
and keeps it between rounds, so that every timed run meets a warm interpreter.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict
from types import ModuleType
from typing import Any

from bench.run import Run

WARM_UP_SIZE = 50


def time_runs(module: ModuleType, function: str, n: int, seeds: list[int]) -> list[dict[str, Any]]:
    """Time one run per seed; garbage of the run before is collected while no watch runs."""
    play: Callable[[int, int], Run] = getattr(module, function)
    runs = []
    for seed in seeds:
        gc.collect()
        runs.append(asdict(play(n, seed)))
    return runs


def traced_bytes(work: Callable[[], object]) -> tuple[int, int]:
    """Bytes allocated by `work`: still held while its result lives, and at the peak."""
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = work()
        held, peak = tracemalloc.get_traced_memory()
        del kept
    finally:
        tracemalloc.stop()
    return held - before, peak - before


def held_bytes(module: ModuleType, name: str, n: int) -> float:
    return traced_bytes(lambda: getattr(module, name)(n, 1))[0] / n


def peak_bytes(module: ModuleType, n: int) -> float:
    return traced_bytes(lambda: module.suppression(n, 1))[1] / n


def resident_peak() -> int:
    """Bytes: the high-water mark of this process alone.

    Not `getrusage`, whose figure on Linux starts from the parent's size at the fork.
    """
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    raise OSError("the system does not report VmHWM")


def answer(module: ModuleType, request: dict[str, Any]) -> object:
    what = request["do"]
    if what == "has":
        return hasattr(module, request["name"])
    if what == "warm":
        # Long enough for the interpreter to specialise the hot code, short for the slowest peer.
        for seed in range(3):
            getattr(module, request["name"])(WARM_UP_SIZE, seed)
        return True
    if what == "run":
        return time_runs(module, request["name"], request["n"], request["seeds"])
    if what == "held":
        return held_bytes(module, request["name"], request["n"])
    if what == "peak":
        return peak_bytes(module, request["n"])
    if what == "big":
        run: Run = module.ring(request["n"], 1)
        return {"resident": resident_peak(), "run": asdict(run)}
    raise ValueError(f"unknown request {what!r}")


def main() -> None:
    # The output of an implementation must not get among the answers.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    module = importlib.import_module(sys.argv[1])
    for line in sys.stdin:
        out.write(json.dumps(answer(module, json.loads(line))) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
