"""`hustings sim --engine fast`: the compiled kernels behind the options of the event simulator."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING

from hustings.cli.output import progress
from hustings.core.errors import BadInput, UnknownName
from hustings.sim.experiment import Experiment
from hustings.sim.metrics import Summary, summarise
from hustings.sim.runs import Report

if TYPE_CHECKING:
    from hustings.fast.results import Played

EVENTS, FAST = "events", "fast"
ENGINES = (EVENTS, FAST)
PIECE = 2_000_000  # members in all runs that are played between two looks at Ctrl-C


def check_engine(name: str, max_events: int | None, **judging: object) -> None:
    """Refuse an engine that is not there, and options that it cannot heed."""
    if name not in ENGINES:
        raise UnknownName("engine", name, ENGINES)
    if name != FAST:
        return
    for option, given in judging.items():
        if given:
            raise BadInput(
                f"--{option} needs every message of a run, which engine 'fast' does not keep: "
                "take --engine events"
            )
    if max_events is not None:
        raise BadInput(
            "--max-events limits the event simulator: engine 'fast' gives a run up when a member "
            "has announced itself 10,000 times"
        )


def admit(experiment: Experiment) -> None:
    """Refuse what the kernels cannot play, and say which extra is missing."""
    from hustings.figures.kernels import setting_of

    setting_of(experiment)
    import_module("hustings.fast.compiling")  # for what it says when it cannot be imported


def run_fast(experiment: Experiment, number: int, runs: int, jobs: int) -> Report:
    """Runs from `number` on, on so many threads; how they are cut up cannot be seen."""
    from hustings.figures.kernels import CUT, at_once, ending_of, play_kernel, setting_of

    setting = setting_of(experiment)
    size = at_once(setting, PIECE)
    ends = range(number, number + runs, size)
    pieces = [(first, min(first + size, number + runs)) for first in ends]
    found: list[Played] = []
    with (
        progress(experiment.kind.about.name, runs) as tell,
        ThreadPoolExecutor(jobs) as threads,
    ):
        waiting = (
            threads.map(lambda piece: play_kernel(setting, experiment.seed, *piece), pieces)
            if jobs > 1
            else (play_kernel(setting, experiment.seed, *piece) for piece in pieces)
        )
        for each in waiting:
            found.append(each)
            if tell is not None:
                tell(sum(one.runs for one in found))
    cut = sum(int(each.cut.sum()) for each in found)
    endings = {ending_of(setting): runs - cut, CUT: cut}
    return Report(
        runs=runs,
        metrics=dict(_summaries(found)),
        verdicts={},
        reasons={},
        endings={name: count for name, count in sorted(endings.items()) if count},
    )


def given_up(result: Report) -> list[str]:
    """A sentence about runs that a kernel did not play to their end."""
    from hustings.figures.kernels import CUT

    if not (cut := result.endings.get(CUT, 0)):
        return []
    return [
        f"{cut} of {result.runs} runs were given up when a member had announced itself 10,000 "
        "times; they count in no metric, so that means are too low: give a smaller --loss or "
        "--collision"
    ]


def _summaries(found: list[Played]) -> Iterator[tuple[str, Summary | None]]:
    from hustings.figures.kernels import known

    for name in found[0].metrics:
        values = known(list(chain.from_iterable(each.metrics[name].tolist() for each in found)))
        yield name, summarise(values) if values else None
