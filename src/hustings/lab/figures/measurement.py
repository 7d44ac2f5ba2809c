"""A cell: one point of a figure before it is measured, as a plain value.

A cell holds everything that its numbers depend on. So two figures that need the same point name the
same cell, and a stored result can be told from a different one. The seed of a cell is derived from
the figures' seed and the cell, so cells are independent of each other. `command` gives the same
numbers by hand.
"""

from __future__ import annotations

import shlex
from hashlib import blake2b

import msgspec

from hustings.core.streams import derive
from hustings.lab.byzantine.experiment import by_rounds
from hustings.lab.runs.block import Block
from hustings.lab.runs.engines import EVENTS, FAST, BlockTotal, Player, engine_of, play_block
from hustings.lab.runs.playing import GROWTH, PILOT, Goal, RelativePrecision, Runs, Series
from hustings.protocols.probabilistic.election import Probabilistic
from hustings.protocols.registry import Use, find, use_of
from hustings.sim.delay import Fixed
from hustings.sim.experiment import Experiment
from hustings.sim.loss import parse_loss
from hustings.sim.network import Network
from hustings.sim.queue import END_OF_TIME
from hustings.sim.scenarios import Scenario

MAX_EVENTS = 50_000_000
LARGEST_BLOCK = 500
TARGET = 0.01  # standard error as a share of the mean
FAST_TARGET = 0.001  # the same where the compiled kernels play
CAP = 30_000  # runs of one cell
FAST_CAP = 4_000_000
FAST_USUAL = 300_000  # what most cells need
FAST_BLOCK = 4_000_000  # members in all runs of a block
FAST_LARGEST = 20_000  # runs of a block
ROUNDS_BLOCK, ROUNDS_LARGEST = 200_000, 1_000  # the same for elections in rounds, which are slow


class Measurement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One protocol, group, network and scenario; `aims` are the metrics that must be precise."""

    protocol: str
    members: int
    scenario: str = "start"
    loss_model: str = "none"
    loss: float = 0.0
    collision: float = 0.0
    delay: float = 0.1
    settings: tuple[tuple[str, str], ...] = ()  # as a user types them after --set
    until: float | None = None
    engine: str = EVENTS
    runs: int | None = None  # the number that the paper gives; None: as many as the precision needs
    aims: tuple[str, ...]
    work: float = 1.0  # receptions in a run, in thousands, roughly: sets the size of blocks

    @property
    def text(self) -> str:
        """The cell as canonical text."""
        text = msgspec.json.encode(self, order="deterministic").decode()
        return text.replace(',"runs":null', "")  # a later field: old seeds must not change

    @property
    def block(self) -> int:
        """How many runs are played and stored together: about a second of work."""
        if self.engine == FAST and self.in_rounds:
            return max(1, min(ROUNDS_LARGEST, ROUNDS_BLOCK // self.members))
        if self.engine == FAST and self.protocol == Probabilistic.about.name:
            return FAST_LARGEST  # the cost does not depend on the members
        if self.engine == FAST:
            return max(1, min(FAST_LARGEST, FAST_BLOCK // self.members))
        return max(2, min(LARGEST_BLOCK, int(2000 / max(self.work, 1.0))))

    @property
    def in_rounds(self) -> bool:
        """Whether the election has Byzantine members and runs in synchronous rounds."""
        return use_of(self.protocol) is Use.ROUNDS

    def seed(self, seed: int) -> int:
        """The seed of this cell's runs under the figures' seed."""
        return derive(seed, "cell", self.text)

    def digest(self, seed: int) -> str:
        """The name under which the cell's results are stored."""
        return blake2b(f"{seed}\n{self.text}".encode(), digest_size=16).hexdigest()

    def goal(self, runs: int | None = None) -> Goal:
        """How many runs: those requested, those of the paper, or as many as the precision needs."""
        if runs is not None or self.runs is not None:
            return Runs(runs or self.runs or 1)
        fast = self.engine == FAST
        return RelativePrecision(
            aims=self.aims,
            target=FAST_TARGET if fast else TARGET,
            most=FAST_CAP if fast else CAP,
            usual=FAST_USUAL if fast else GROWTH * PILOT,
            block=self.block,
        )

    def player(self, seed: int) -> Player:
        """The player of its runs."""
        experiment = self.experiment(seed)
        engine = engine_of(experiment, self.engine)
        engine.admit(experiment)
        return engine.player(experiment)

    def series(self, seed: int, total: BlockTotal, goal: Goal) -> Series[Player, Block]:
        """Its runs, for the engine of all runs."""
        size = self.block
        return Series(self.player(seed), goal, total, lambda _: size, weight=self.work)

    def play(self, seed: int, first: int, last: int) -> Block:
        """Runs first .. last-1, in this process."""
        return play_block(self.player(seed), first, last)

    def experiment(self, seed: int) -> Experiment:
        """The experiment; the same one that `command` builds."""
        kind = find(self.protocol)
        given: dict[str, object] = {"delta": self.delay} if self.delay > 0 else {}
        described = Experiment(
            kind=kind,
            members=self.members,
            config=kind.Settings.parse(
                {**given, **kind.Settings.for_scenario(self.scenario), **dict(self.settings)}
            ),
            network=Network(
                delay=Fixed(self.delay),
                loss=parse_loss(self.loss_model, self.loss, self.collision),
            ),
            scenario=Scenario(name=self.scenario),
            seed=self.seed(seed),
            until=END_OF_TIME if self.until is None else self.until,
            max_events=MAX_EVENTS,
        )
        return by_rounds(described, limited=True) if self.in_rounds else described

    def command(self, seed: int, runs: int) -> str:
        """The command line whose summary has this cell's numbers."""
        words = ["hustings", "sim", self.protocol, "-n", str(self.members)]
        words += ["--scenario", self.scenario, "--delay", repr(self.delay)]
        if self.loss_model != "none":
            words += ["--loss-model", self.loss_model, "--loss", repr(self.loss)]
        if self.collision:
            words += ["--collision", repr(self.collision)]
        for key, value in self.settings:
            words += ["--set", f"{key}={value}"]
        if self.until is not None:
            words += ["--until", repr(self.until)]
        if self.engine == FAST:
            words += ["--engine", FAST]
        else:
            words += ["--max-events", str(MAX_EVENTS)]
        words += ["--seed", str(self.seed(seed)), "--runs", str(runs), "--json"]
        return shlex.join(words)
