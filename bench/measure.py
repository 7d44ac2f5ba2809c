"""Interleaved rounds: in each, every implementation runs once, and the order rotates."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.plan import TRACED, Implementation, Workload
from bench.run import Run, Tally

ROOT = Path(__file__).resolve().parent.parent


class WorkerDied(Exception):
    """An implementation's process ended without an answer; its output is on stderr."""


class Worker:
    """The process of one implementation, which answers one question at a time."""

    def __init__(self, implementation: Implementation) -> None:
        self.implementation = implementation
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bench.worker", implementation.module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": "0"},
        )

    def ask(self, do: str, **fields: object) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps({"do": do, **fields}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise WorkerDied(f"{self.implementation.label}: the process died while asked to {do}")
        return json.loads(line)

    def function(self, workload: Workload) -> str:
        return workload.name + self.implementation.suffix

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.communicate()


@dataclass(frozen=True, slots=True)
class Sample:
    """The runs of one implementation in one round, summed; seconds are per event."""

    tallies: tuple[Tally, ...]
    play_cpu: float
    play_wall: float
    whole_cpu: float
    whole_wall: float


def read_run(fields: dict[str, Any]) -> Run:
    return Run(**{**fields, "tally": Tally(**fields["tally"])})


def summed(runs: Sequence[Run]) -> Sample:
    events = sum(run.tally.events for run in runs)
    return Sample(
        tallies=tuple(run.tally for run in runs),
        play_cpu=sum(run.play_cpu for run in runs) / events,
        play_wall=sum(run.play_wall for run in runs) / events,
        whole_cpu=sum(run.build_cpu + run.play_cpu for run in runs) / events,
        whole_wall=sum(run.build_wall + run.play_wall for run in runs) / events,
    )


def takes_part(implementation: Implementation, workload: Workload, round_: int) -> bool:
    if implementation.slow:
        return round_ < workload.slow_rounds
    return workload.traced or implementation.label != TRACED


def take_sample(worker: Worker, workload: Workload, round_: int) -> Sample:
    repeats = workload.repeats(worker.implementation)
    seeds = [1_000 * round_ + index for index in range(repeats)]
    runs = worker.ask("run", name=worker.function(workload), n=workload.n, seeds=seeds)
    return summed([read_run(fields) for fields in runs])


Samples = dict[str, dict[int, Sample]]


def measure(workload: Workload, implementations: Sequence[Implementation], rounds: int) -> Samples:
    """Samples by label and round; all processes are new, and only one of them runs at a time."""
    samples: Samples = {item.label: {} for item in implementations}
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(item)) for item in implementations]
        for worker in workers:
            worker.ask("warm", name=worker.function(workload))
        for round_ in range(rounds):
            say(f"{workload.title}: round {round_ + 1} of {rounds}")
            shift = round_ % len(workers)
            for worker in workers[shift:] + workers[:shift]:
                if takes_part(worker.implementation, workload, round_):
                    sample = take_sample(worker, workload, round_)
                    samples[worker.implementation.label][round_] = sample
    return samples


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
