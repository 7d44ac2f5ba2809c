"""`swarm`: worlds drawn by seeds, with many kinds of faults, and a verdict."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from hustings.core.choice import MemberId
from hustings.core.errors import BadInput, UnknownName
from hustings.lab.options import environment_word, named
from hustings.lab.runs.block import Column
from hustings.lab.runs.executors import PROCESSES, open_pool
from hustings.lab.runs.playing import Series, Tell, play_all
from hustings.lab.simulation import check_jobs, check_whole
from hustings.lab.tables import Table, as_html, plotted
from hustings.layers.lease import LeaseConfig
from hustings.protocols.registry import CATALOGUE, Protocol, Use, find, use_of
from hustings.sim.checkers import Verdict
from hustings.sim.environment import Environment, environment_of
from hustings.sim.random_election import RandomElection
from hustings.sim.swarm import GUARDS, Asking, Elect, Entry, Played, Swarm, play

MAX_SEEDS = 100_000_000
MAX_FIRST = 2**63 - 1
SHOWN = 10  # violations shown; the others are counted
LARGEST = 64  # worlds that are sent to a worker together

Counts = dict[str, dict[str, int]]

# The random election is no protocol for users. A guard must keep its promise even with it.
ENTRIES: dict[str, Entry] = {
    "random-election": Entry(RandomElection, weight=3),
    "bully": Entry(find("bully")),
    "le-s": Entry(find("le-s")),
    "le-a": Entry(find("le-a"), (("query", "query"), ("bye", 2))),
    "probabilistic": Entry(find("probabilistic"), (("K", 3),)),
}


@dataclass(slots=True)
class SwarmTotal:
    """The results of all worlds so far."""

    seeds: int = 0
    verdicts: Counts = field(default_factory=dict)  # by property
    worlds: Counts = field(default_factory=dict)  # by guard, and within it by protocol
    counts: Counter[str] = field(default_factory=Counter)
    failed: int = 0  # seeds that violate what is promised
    failures: list[tuple[int, dict[str, str]]] = field(default_factory=list)  # the first of them
    overlaps: int = 0  # seeds in which two led at one time
    first_overlap: int | None = None
    slowest: float = 0.0  # time to a confirmed leader after the calm, ...
    used: float = 0.0  # ... and the largest part of its limit that any world needed

    @property
    def metrics(self) -> Mapping[str, Column]:
        """None: worlds are judged, not measured."""
        return {}

    def add(self, block: Sequence[Played]) -> None:
        """Add more worlds; they come in the order of their seeds."""
        for played in block:
            self._count(played)

    def _count(self, played: Played) -> None:
        self.seeds += 1
        for name, (verdict, _) in played.verdicts.items():
            counts = self.verdicts.setdefault(name, {each.value: 0 for each in Verdict})
            counts[verdict.value] += 1
        protocols = self.worlds.setdefault(played.guard, {})
        protocols[played.protocol] = protocols.get(played.protocol, 0) + 1
        self.counts.update(played.counts)
        if played.verdicts.get("windows", (Verdict.HOLDS, ""))[0] is Verdict.VIOLATED:
            self.overlaps += 1
            if self.first_overlap is None:
                self.first_overlap = played.seed
        if played.wrong:
            self.failed += 1
            if len(self.failures) < SHOWN:
                self.failures.append((played.seed, played.wrong))
        if played.settled is not None and not played.excused:
            self.slowest = max(self.slowest, played.settled)
            self.used = max(self.used, played.settled / played.patience)


@dataclass(frozen=True, slots=True)
class Swarmed(Table):
    """The results of all worlds."""

    tally: SwarmTotal
    first: int
    beyond: bool
    replays: list[str]  # for each failure, a command line that plays and draws it again
    command: str = ""  # the same as a command line; "" for a class that it cannot name

    @property
    def failed(self) -> int:
        """Worlds that violate what is promised."""
        return self.tally.failed

    def rows(self) -> list[dict[str, object]]:
        """One row for each property."""
        return [{"property": name, **counts} for name, counts in self.tally.verdicts.items()]

    def _repr_html_(self) -> str:
        replays = "".join(f"<pre>{escape(each)}</pre>" for each in self.replays)
        worlds = f"<p><b>{self.tally.seeds:,} worlds</b></p>{as_html(self.rows())}"
        return f"{worlds}{replays}<pre>{escape(self.command)}</pre>"

    def plot(self) -> dict[str, bytes]:
        """How many worlds kept, broke or left open each property, as PNG and SVG."""
        return plotted("swarm", self._draw)

    def _draw(self, axes: Any) -> None:
        verdicts = self.tally.verdicts
        left = dict.fromkeys(verdicts, 0)
        for each in Verdict:
            counts = [found[each.value] for found in verdicts.values()]
            axes.barh(list(verdicts), counts, left=list(left.values()), label=each.value)
            left = {name: left[name] + found[each.value] for name, found in verdicts.items()}
        axes.invert_yaxis()
        axes.set_xlabel("worlds")
        axes.set_title(f"{self.tally.seeds:,} worlds from seed {self.first}", fontsize=9)
        axes.legend()

    def to_json(self) -> dict[str, object]:
        """As `hustings swarm --json` prints it."""
        tally, replays = self.tally, self.replays
        return {
            "first": self.first,
            "seeds": tally.seeds,
            "beyond": self.beyond,
            "verdicts": tally.verdicts,
            "worlds": {guard: dict(sorted(found.items())) for guard, found in tally.worlds.items()},
            "counts": dict(tally.counts),
            "overlaps": tally.overlaps,
            "first_overlap": tally.first_overlap,
            "slowest_settling": tally.slowest,
            "share_of_limit": tally.used,
            "failed": tally.failed,
            "failures": [
                {"seed": seed, "wrong": wrong, "replay": again}
                for (seed, wrong), again in zip(tally.failures, replays, strict=True)
            ],
        }


def swarm(
    *,
    seeds: int = 1_000,
    first: int = 0,
    guards: Sequence[str] = (),
    protocols: Sequence[Protocol] = (),
    beyond: bool = False,
    environment: str | Path | Environment | None = None,
    jobs: int = 1,
    on: str | Executor | None = None,
    tell: Tell | None = None,
) -> Swarmed:
    """Draw whole worlds with many faults from seeds, and judge them: as `hustings swarm`.

    In an `environment` (a value, a file, or the text of one) the network, pauses and the drift of
    clocks are its own, and sites fail. Time counts in its longest delay.

    >>> swarm(protocols=["bully"], seeds=3).failed
    0
    """
    worlds = drawn(guards, protocols, beyond=beyond, environment=environment)
    tally = play_worlds(worlds, first, seeds, jobs, on, tell)
    names = [_word(each) for each in protocols]
    around = [] if environment is None else [f"--environment={environment_word(environment)}"]
    replays = [
        replay(seed, tuple(guards), tuple(names), beyond, around) for seed, _ in tally.failures
    ]
    words = [f"--seeds={seeds}", f"--first={first}", *(f"--guard={each}" for each in guards)]
    words += [f"--protocol={each}" for each in names] + (["--beyond"] if beyond else []) + around
    command = shlex.join(["hustings", "swarm", *words]) if all(map(_named, protocols)) else ""
    return Swarmed(tally, first, beyond, replays, command)


@dataclass(frozen=True, slots=True)
class _Seeds:
    """A number of worlds; it may exceed the limit of runs, because no result is stored."""

    first: int

    @property
    def guess(self) -> int:
        return self.first

    def next(self, runs: int, metrics: Mapping[str, Column]) -> int:
        return runs


def play_worlds(
    swarm: Swarm,
    first: int,
    seeds: int,
    jobs: int = 1,
    on: str | Executor | None = None,
    tell: Tell | None = None,
) -> SwarmTotal:
    """Play the worlds of seeds `first`, `first` + 1, ... and count their results."""
    check_whole("seeds", seeds, 1, MAX_SEEDS)
    check_whole("first", first, 0, MAX_FIRST)
    check_jobs(jobs, on)
    total = SwarmTotal()
    with open_pool(PROCESSES if on is None else on, jobs, play_block) as pool:
        size = 1 if pool.workers == 1 else max(1, min(LARGEST, seeds // (pool.workers * 4)))
        series: Series[Swarm, list[Played]] = Series(
            swarm, _Seeds(seeds), total, lambda _: size, first
        )
        play_all([series], pool, tell=tell)
    return total


def play_block(swarm: Swarm, first: int, last: int) -> list[Played]:
    """The worlds of seeds first .. last-1, in one process."""
    return [play(swarm, seed) for seed in range(first, last)]


def drawn(
    guards: Sequence[str],
    protocols: Sequence[Protocol],
    *,
    beyond: bool,
    environment: str | Path | Environment | None = None,
) -> Swarm:
    """What worlds are drawn from."""
    return Swarm(
        entries=tuple(entry(name) for name in protocols or tuple(ENTRIES)),
        guards=guards_of(tuple(guards)),
        with_quorum=with_quorum,
        votes=votes,
        beyond=beyond,
        environment=None if environment is None else environment_of(environment),
    )


def _named(protocol: Protocol) -> bool:
    """Whether a command line can name the class."""
    return isinstance(protocol, str) or named(protocol, protocol) is not None


def _word(protocol: Protocol) -> str:
    if isinstance(protocol, str):
        return protocol
    return named(protocol, protocol) or protocol.about.name


def with_quorum(elect: Asking, voters: tuple[MemberId, ...], lease: LeaseConfig) -> Elect:
    """A quorum of these voters round elections; the longest lease is the requested one."""
    from hustings.quorum import QuorumConfig  # noqa: PLC0415 (few need it)
    from hustings.quorum import with_quorum as go_round  # noqa: PLC0415 (likewise)

    config = QuorumConfig(delta=lease.delta, voters=voters, max_ttl=lease.asked)
    return go_round(elect, config)


def votes(stored: Mapping[str, object]) -> bool:
    """Whether a voter with this storage has begun to vote."""
    return stored.get("quorum-votes") is True


def entry(name: Protocol) -> Entry:
    """An election of the swarm: one that it draws by default, or any other."""
    if isinstance(name, str) and (known := ENTRIES.get(name.replace("_", "-"))) is not None:
        return known
    try:
        kind = find(name)
        if use_of(kind) is Use.GUARD:
            raise BadInput(f"{name} needs no guard: try the same voters with --guard quorum")
        if use_of(kind) is Use.ROUNDS:
            raise BadInput(f"{name} has an adversary of its own: hustings sim {name}")
        return Entry(kind)
    except UnknownName:
        every = tuple(dict.fromkeys((*ENTRIES, *CATALOGUE)))
        raise UnknownName("protocol", str(name), every) from None


def guards_of(typed: tuple[str, ...]) -> tuple[str, ...]:
    for name in typed:
        if name not in GUARDS:
            raise UnknownName("guard", name, GUARDS)
    return typed or ("memory", "quorum")


def replay(
    seed: int,
    guards: tuple[str, ...],
    protocols: tuple[str, ...],
    beyond: bool,
    around: Sequence[str] = (),
) -> str:
    """A command line that plays one seed again and draws it."""
    chosen = [f"--guard {name}" for name in guards] + [f"--protocol {name}" for name in protocols]
    words = [
        "hustings swarm",
        *chosen,
        *(["--beyond"] if beyond else []),
        *map(shlex.quote, around),
    ]
    return " ".join([*words, f"--first {seed} --seeds 1 --trace"])
