"""Which settings an election among Byzantine members needs, by a search on the compiled engine.

Candidates are the profiles and networks around them. At first every attack meets each candidate a
few times. A candidate is dropped if another one beats it in both success and cost. The others are
played more often. All runs of a plan have the same run numbers, so candidates meet the same random
draws. A plan depends on its seed and effort alone, not on how long it took.

Success is the chance of a good leader given the members of the root, under the worst of the
attacks. The attacks here bound the adversary from below; a better one may do more harm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np

from hustings.core.errors import BadInput
from hustings.lab.byzantine.engines import LargePlayer
from hustings.lab.byzantine.large import check
from hustings.lab.runs.engines import (
    QUIESCENT,
    ColumnsTotal,
    LargeElections,
    Player,
    Summary,
    play_in_full,
    summarise,
)
from hustings.lab.runs.executors import THREADS, Pool, open_pool
from hustings.lab.runs.playing import Runs, Series, Tell, play_all
from hustings.lab.tables import Table, plotted
from hustings.protocols.committee.profiles import Knobs
from hustings.protocols.committee.settings import CommitteeConfig, knobs_of

AWARE = ("random", "greedy", "cluster", "leaf", "mixed", "second", "tree")
EFFORTS = {"quick": (1, 4), "usual": (2, 12), "thorough": (4, 60)}  # runs: at first, and then
MOST_MEMBERS = 10_000_000
NEARLY = 0.02  # of success: as good as the best

COSTS = ("informed", "bits_mean", "bits_max", "rounds")

Settings = tuple[tuple[str, object], ...]
PLANNED = ("committee",)


@dataclass(frozen=True, slots=True)
class Trial:
    """One candidate and its results."""

    settings: Settings  # beyond n, b and the adversary
    success: dict[str, Summary]  # by attack
    informed: float  # under the worst attack
    bits_mean: float
    bits_max: float
    rounds: float
    runs: int

    @property
    def worst(self) -> str:
        """The attack under which its success is lowest."""
        return min(self.success, key=lambda attack: (self.success[attack].mean, attack))

    @property
    def score(self) -> float:
        """Success under that attack."""
        return self.success[self.worst].mean

    def to_json(self) -> dict[str, object]:
        """The trial as data for scripts."""
        return {
            "settings": dict(self.settings),
            "success": self.score,
            "worst_attack": self.worst,
            "by_attack": {name: each.to_json() for name, each in self.success.items()},
            "informed": self.informed,
            "bits_mean": self.bits_mean,
            "bits_max": self.bits_max,
            "rounds": self.rounds,
            "runs": self.runs,
        }


@dataclass(frozen=True, slots=True)
class CommitteePlan(Table):
    """What was tried, the best trials, and the proposal."""

    members: int
    b: float
    attacks: tuple[str, ...]
    tried: int
    front: tuple[Trial, ...]  # not beaten in both success and cost by any other; by cost
    proposed: Trial | None  # None: no candidate elects a good leader
    command: str = ""  # the same as a command line

    def rows(self) -> list[dict[str, object]]:
        """One row for each trial that no other trial beats in both success and cost, by cost."""
        return [
            {
                **each.to_json(),
                "settings": " ".join(f"{name}={value}" for name, value in each.settings),
                "by_attack": ", ".join(f"{k} {v.mean:.3g}" for k, v in each.success.items()),
                "proposed": each is self.proposed,
            }
            for each in self.front
        ]

    def to_json(self) -> dict[str, object]:
        """As `hustings plan --json` prints it."""
        return {
            "election": "committee",
            "members": self.members,
            "b": self.b,
            "attacks": list(self.attacks),
            "tried": self.tried,
            "proposed": None if self.proposed is None else self.proposed.to_json(),
            "front": [trial.to_json() for trial in self.front],
        }

    def plot(self) -> dict[str, bytes]:
        """Success against bits for each trial of the front, as PNG and SVG."""
        return plotted("plan", self._draw)

    def _draw(self, axes: Any) -> None:
        bits, scores = zip(*((each.bits_mean, each.score) for each in self.front), strict=True)
        axes.plot(bits, scores, "o-")
        if self.proposed is not None:
            axes.plot([self.proposed.bits_mean], [self.proposed.score], "s", label="proposed")
            axes.legend()
        axes.set_xscale("log")
        axes.set_xlabel("bits that a good member sends")
        axes.set_ylabel("P(good leader), under the worst attack")
        axes.set_title(f"{self.members:,} members, b = {self.b:g}", fontsize=9)


def attacks_of(adversary: str) -> tuple[str, ...]:
    """The adversaries that a plan must withstand: `aware` is every corruption with all behaviours.

    >>> attacks_of("greedy+pack")
    ('greedy+pack',)
    >>> attacks_of("aware+pack")[1]
    'greedy+pack'
    """
    words = adversary.split("+")
    if "aware" not in words:
        return (adversary,)
    others = [word for word in words if word != "aware"]
    return tuple("+".join((corruption, *others)) for corruption in AWARE)


def concerning(knobs: Knobs, attacks: Sequence[str]) -> tuple[str, ...]:
    """The attacks, without those that equal another one in this network."""
    idle = []
    if len(knobs.layers) < 2:
        idle.append("second")
    if knobs.single < knobs.members or knobs.endgame != "full":
        idle.append("tree")
    kept = [attack for attack in attacks if not any(word in idle for word in attack.split("+"))]
    return tuple(kept or attacks)


def candidates(n: int) -> Iterator[Settings]:
    """Settings worth trying in a group of this size: profiles, and networks around them."""
    for name in ("lean", "robust", "tuned", "high-b", "single"):
        yield (("profile", name),)
    yield (("profile", "single"), ("endgame", "baton"))
    yield (("profile", "single"), ("size", n))
    for c0 in (16, 32):
        for size in (128, 256, 512, 1024, 2048):
            q = size // c0
            for d0 in (1, 2, 4, 8):
                if q < 2 or q > d0 * (n // c0):
                    continue
                for h in (1, 2, 3, 4):
                    if size >> h >= 64:
                        layers = f"{q}:{q}:{h}"
                        yield (("c0", c0), ("d0", d0), ("layers", layers))


def make_plan(
    given: Mapping[str, object],
    n: int,
    attacks: Sequence[str],
    *,
    seed: int = 0,
    effort: str = "usual",
    most_bits: float | None = None,
    jobs: int = 1,
    on: str | Executor | None = None,
    tell: Tell | None = None,
) -> CommitteePlan:
    """Search for settings; `given` are fixed settings, for example b."""
    if "profile" in given:
        raise BadInput("a plan looks through the profiles by itself: fix single knobs instead")
    search = _Search(dict(given), n, tuple(attacks), seed)
    b = search.config((), "random").b
    first, then = EFFORTS[effort]
    found = search.candidates()
    if not found:
        raise BadInput(f"no network of the search fits a group of {n} with these settings")
    with open_pool(THREADS if on is None else on, jobs, play_in_full) as pool:
        trials = search.play(found, first, pool, tell)
        left = [trial.settings for trial in _front(_within(trials, most_bits))]
        front = search.play(left, then, pool, tell)
    kept = _front(_within(front, most_bits))
    return CommitteePlan(n, b, search.attacks, len(found), tuple(kept), _propose(kept))


def _within(trials: Sequence[Trial], most_bits: float | None) -> list[Trial]:
    if most_bits is None:
        return list(trials)
    kept = [trial for trial in trials if trial.bits_mean <= most_bits]
    if not kept:
        least = min(trial.bits_mean for trial in trials)
        raise BadInput(
            f"no candidate sends {most_bits:g} bits or less per member: the cheapest sends "
            f"{least:.3g}"
        )
    return kept


@dataclass(frozen=True, slots=True)
class _Search:
    """What all trials of a plan have in common."""

    given: dict[str, object]
    members: int
    attacks: tuple[str, ...]
    seed: int

    def config(self, settings: Settings, adversary: str) -> CommitteeConfig:
        return CommitteeConfig.parse({**dict(settings), **self.given, "adversary": adversary})

    def candidates(self) -> list[Settings]:
        """The candidates that fit the group, each network once."""
        seen: dict[Knobs, Settings] = {}
        for settings in candidates(self.members):
            try:
                made = self.config(settings, "random")
                knobs = knobs_of(made, self.members)
                check(made, self.members)
            except BadInput:
                continue
            seen.setdefault(knobs, settings)
        return list(seen.values())

    def play(
        self, every: Sequence[Settings], runs: int, pool: Pool[Player, Any], tell: Tell | None
    ) -> list[Trial]:
        """Play every candidate against every attack that concerns it, `runs` times."""
        totals: list[dict[str, ColumnsTotal]] = []
        series: list[Series[Player, Any]] = []
        for settings in every:
            knobs = knobs_of(self.config(settings, "random"), self.members)
            totals.append({})
            for attack in concerning(knobs, self.attacks):
                total = totals[-1][attack] = ColumnsTotal(runs, QUIESCENT)
                player = LargePlayer(self.config(settings, attack), self.members, self.seed)
                work = LargeElections(player)
                series.append(Series(work, Runs(runs), total, lambda _: runs))
        play_all(series, pool, tell=tell)
        pairs = zip(every, totals, strict=True)
        return [_trial(settings, runs, attacks) for settings, attacks in pairs]


def _trial(settings: Settings, runs: int, totals: Mapping[str, ColumnsTotal]) -> Trial:
    played = {attack: total.values() for attack, total in totals.items()}
    success = {attack: summarise(values["p_good"]) for attack, values in played.items()}
    costs = {
        attack: {name: float(np.mean(values[name])) for name in COSTS}
        for attack, values in played.items()
    }
    worst = min(success, key=lambda attack: (success[attack].mean, attack))
    return Trial(
        settings=settings,
        success=success,
        informed=costs[worst]["informed"],
        bits_mean=max(each["bits_mean"] for each in costs.values()),
        bits_max=max(each["bits_max"] for each in costs.values()),
        rounds=max(each["rounds"] for each in costs.values()),
        runs=runs,
    )


def _front(trials: Sequence[Trial]) -> list[Trial]:
    """The trials that no other trial beats in both success and bits, the cheapest first."""
    kept: list[Trial] = []
    for trial in sorted(trials, key=lambda each: (each.bits_mean, -each.score)):
        if not kept or trial.score > kept[-1].score:
            kept.append(trial)
    return kept


def _propose(front: Sequence[Trial]) -> Trial | None:
    """The cheapest of the trials that are nearly as good as the best."""
    best = max((trial.score for trial in front), default=0.0)
    if best <= 0:
        return None
    return next(trial for trial in front if trial.score >= best - NEARLY)
