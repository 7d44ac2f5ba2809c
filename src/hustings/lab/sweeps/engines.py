"""Engines: who can play an experiment, and which one to take where that is left open.

A kind of experiment has a table of engines. An engine refuses what it cannot play in a sentence,
says how many runs make a piece of work, and makes the player that plays them wherever it is sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from hustings.core.errors import BadInput, UnknownName
from hustings.lab.byzantine import messages
from hustings.lab.byzantine.engines import (
    LargePlayer,
    admit_large,
    admit_messages,
    large_player,
    preferred,
)
from hustings.lab.byzantine.experiment import ByRounds
from hustings.lab.figures.kernels import CUT, at_once, ending_of, known, play_kernel, setting_of
from hustings.lab.kernels.ballot import Ballot
from hustings.lab.kernels.setting import Setting
from hustings.lab.sweeps.block import Played
from hustings.sim.checkers import Verdict
from hustings.sim.experiment import Experiment, play
from hustings.sim.runs import MAX_RUNS
from hustings.sim.world import Ended

if TYPE_CHECKING:
    from hustings.lab.kernels.results import Played as Columns

EVENTS, FAST, AUTO = "events", "fast", "auto"
LIGHT = 50_000  # members in all runs that the event simulator plays while kernels are fetched
EVENTS_PIECE, MOST_EVENT_RUNS = 20_000, 200  # members in all runs of a piece, and runs of it
FAST_PIECE, MOST_FAST_RUNS = 2_000_000, 20_000
LARGE_PIECE = 200_000
QUIESCENT = Ended.QUIESCENT.value
_ADVICE = ": take --engine events"


class Player(Protocol):
    """Plays runs of one experiment; run number k is the same run whoever plays it."""

    def play(self, first: int, last: int) -> Played:
        """Runs first .. last-1."""


@dataclass(frozen=True, slots=True)
class EventsPlayer:
    """Message by message."""

    experiment: Experiment

    def play(self, first: int, last: int) -> Played:
        values: dict[str, list[float]] = {}
        endings: Counter[str] = Counter()
        violated = 0
        player = messages.play if isinstance(self.experiment, ByRounds) else play
        for run in range(first, last):
            result = player(self.experiment, run)
            endings[result.ended.value] += 1
            violated += any(verdict is Verdict.VIOLATED for verdict, _ in result.verdicts.values())
            for name, value in result.metrics.items():
                column = values.setdefault(name, [])
                if value is not None:
                    column.append(value)
        return Played(values, dict(endings), violated)


@dataclass(frozen=True, slots=True)
class FastPlayer:
    """By the compiled kernels, which judge no property."""

    setting: Setting | Ballot
    seed: int

    def columns(self, first: int, last: int) -> Columns:
        """Runs first .. last-1, as the kernels give them."""
        return play_kernel(self.setting, self.seed, first, last)

    def play(self, first: int, last: int) -> Played:
        found = self.columns(first, last)
        cut = int(found.cut.sum())
        endings = {ending_of(self.setting): found.runs - cut, CUT: cut}
        return Played(
            {name: known(column.tolist()) for name, column in found.metrics.items()},
            {name: number for name, number in endings.items() if number},
        )


@dataclass(frozen=True, slots=True)
class LargeElections:
    """The election by committees, by its compiled engine: all runs come to their end."""

    large: LargePlayer

    def columns(self, first: int, last: int) -> Columns:
        """Runs first .. last-1, as the engine gives them."""
        return self.large.columns(first, last)

    def play(self, first: int, last: int) -> Played:
        found = self.columns(first, last)
        values = {name: known(column.tolist()) for name, column in found.metrics.items()}
        return Played(values, {QUIESCENT: found.runs})


@dataclass(frozen=True, slots=True)
class Engine:
    """One way to play an experiment."""

    name: str
    admit: Callable[[Experiment], None]  # raises BadInput for what it cannot play
    player: Callable[[Experiment], Player]
    piece: Callable[[Experiment], int]  # runs that make a piece of work, a second or so
    most: int  # runs for a standard error, where no other bound is given
    threaded: bool = False  # whether threads play it side by side


def _admit_all(_: Experiment) -> None:
    """Whatever can be described can be played message by message."""


def _admit_fast(experiment: Experiment) -> None:
    """Refuse what the kernels cannot play, and say which extra is missing."""
    setting_of(experiment)
    import_module("hustings.lab.kernels.compiling")  # for what it says when it cannot be imported


def _fast_player(experiment: Experiment) -> Player:
    return FastPlayer(setting_of(experiment), experiment.seed)


def _events_piece(experiment: Experiment) -> int:
    return max(1, min(MOST_EVENT_RUNS, EVENTS_PIECE // experiment.members))


def _fast_piece(experiment: Experiment) -> int:
    return min(MOST_FAST_RUNS, at_once(setting_of(experiment), FAST_PIECE))


def _one(_: Experiment) -> int:
    return 1


def _large_player(experiment: Experiment) -> Player:
    return LargeElections(large_player(experiment))


def _large_piece(experiment: Experiment) -> int:
    return max(1, min(1_000, LARGE_PIECE // experiment.members))


# By what describes the election; another kind of description brings engines of its own.
ENGINES: Mapping[type, Mapping[str, Engine]] = {
    Experiment: {
        EVENTS: Engine(EVENTS, _admit_all, EventsPlayer, _events_piece, 100_000),
        FAST: Engine(FAST, _admit_fast, _fast_player, _fast_piece, 1_000_000, threaded=True),
    },
    ByRounds: {
        EVENTS: Engine(EVENTS, admit_messages, EventsPlayer, _one, 1_000),
        FAST: Engine(FAST, admit_large, _large_player, _large_piece, 100_000, threaded=True),
    },
}


def engine_of(experiment: Experiment, name: str) -> Engine:
    """The engine of that name for such an experiment."""
    engines = ENGINES[type(experiment)]
    if name not in engines:
        raise UnknownName("engine", name, engines)
    return engines[name]


@dataclass(frozen=True, slots=True)
class Chosen:
    """An experiment with the engine that plays it; a reason where the choice was left to us."""

    experiment: Experiment
    engine: Engine
    reason: str | None = None


def choose(
    describe: Callable[[bool], Experiment], name: str, runs: int, held: str | None = None
) -> Chosen:
    """The experiment as described for an engine, by name or the better one for so many runs.

    `describe` is told whether members are only counted; `held` says why kernels are ruled out.
    """
    if name != AUTO:
        experiment = describe(name == FAST)
        engine = engine_of(experiment, name)
        engine.admit(experiment)
        return Chosen(experiment, engine)
    experiment = describe(True)  # what is wrong with it for any engine is told here
    if isinstance(experiment, ByRounds):
        fast, reason = (False, held) if held is not None else preferred(experiment, runs)
        if runs >= MAX_RUNS:  # that is what is allowed, and not what was asked for
            reason = reason.replace(f"{runs:,} runs", _so_many(runs))
        engine = engine_of(experiment, FAST if fast else EVENTS)
        engine.admit(experiment)
        return Chosen(experiment, engine, reason.removesuffix(_ADVICE))
    why = held
    if why is None:
        try:
            engine = engine_of(experiment, FAST)
            engine.admit(experiment)
        except BadInput as refusal:
            why = str(refusal).removesuffix(_ADVICE)
        else:
            work = runs * experiment.members
            if work > LIGHT:
                return Chosen(experiment, engine, _much(experiment, runs))
            why = "so little is soon played message by message, and judged, too"
    experiment = describe(False)
    return Chosen(experiment, engine_of(experiment, EVENTS), why)


def _much(experiment: Experiment, runs: int) -> str:
    return (
        f"its kernels know this election, and {_so_many(runs)} of {experiment.members:,} members "
        "would take long message by message"
    )


def _so_many(runs: int) -> str:
    if runs >= MAX_RUNS:
        return "as many runs as a standard error may take"
    return f"up to {runs:,} runs" if runs > 1 else "a run"
