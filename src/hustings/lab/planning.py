"""Which knobs to take: a search on the compiled engine, with the evidence for what it proposes.

Candidates are the profiles and networks around them. Each is first met by every attack a few times;
those that another one beats in both success and cost are dropped; who is left is played more often.
All runs of a plan have the same numbers, so candidates meet the same luck. A plan depends on its
seed and effort alone, not on how long it took.

Success is the chance of a good leader given who sits in the root, under the worst of the attacks:
attacks here bound the adversary from below, and a cleverer one may do better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hustings.core.errors import BadInput
from hustings.lab.byzantine.large import check, play_large
from hustings.protocols.committee.profiles import Knobs
from hustings.protocols.committee.settings import CommitteeConfig, knobs_of
from hustings.sim.metrics import Summary, summarise

AWARE = ("random", "greedy", "cluster", "leaf", "mixed", "second", "tree")
EFFORTS = {"quick": (1, 4), "usual": (2, 12), "thorough": (4, 60)}  # runs: first look, then
NEARLY = 0.02  # of success: as good as the best

COSTS = ("informed", "bits_mean", "bits_max", "rounds")

Settings = tuple[tuple[str, object], ...]
Tell = Callable[[int, int], None]  # done, of how many


@dataclass(frozen=True, slots=True)
class Trial:
    """One candidate and what came of it."""

    settings: Settings  # beyond n, b and the adversary
    success: dict[str, Summary]  # by attack
    informed: float  # under the worst attack
    bits_mean: float
    bits_max: float
    rounds: float
    runs: int

    @property
    def worst(self) -> str:
        """The attack that hurts it most."""
        return min(self.success, key=lambda attack: (self.success[attack].mean, attack))

    @property
    def score(self) -> float:
        """Success under that attack."""
        return self.success[self.worst].mean


@dataclass(frozen=True, slots=True)
class CommitteePlan:
    """What was tried, the best of it, and what to take."""

    members: int
    b: float
    attacks: tuple[str, ...]
    tried: int
    front: tuple[Trial, ...]  # none of these is beaten in both success and cost; by cost
    proposed: Trial | None  # None: nothing elects a good leader


def attacks_of(adversary: str) -> tuple[str, ...]:
    """The adversaries that a plan must stand: `aware` is every corruption with all behaviours.

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
    """The attacks without those that are only others by another name in this network."""
    idle = []
    if len(knobs.layers) < 2:
        idle.append("second")
    if knobs.single < knobs.members or knobs.endgame != "full":
        idle.append("tree")
    kept = [attack for attack in attacks if not any(word in idle for word in attack.split("+"))]
    return tuple(kept or attacks)


def candidates(n: int) -> Iterator[Settings]:
    """Settings worth a look in a group of this size: profiles, and networks around them."""
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
    tell: Tell | None = None,
) -> CommitteePlan:
    """Search; `given` are settings that are fixed, as b."""
    if "profile" in given:
        raise BadInput("a plan looks through the profiles by itself: fix single knobs instead")
    search = _Search(dict(given), n, tuple(attacks), seed)
    b = search.config((), "random").b
    first, then = EFFORTS[effort]
    found = search.candidates()
    if not found:
        raise BadInput(f"no network of the search fits a group of {n} with these settings")
    trials = []
    for number, settings in enumerate(found):
        trials.append(search.play(settings, first))
        if tell is not None:
            tell(number + 1, 2 * len(found))
    left = _front(_within(trials, most_bits))
    front = []
    for number, trial in enumerate(left):
        front.append(search.play(trial.settings, then))
        if tell is not None:
            tell(len(found) + (number + 1) * len(found) // len(left), 2 * len(found))
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
    """What all trials of a plan share."""

    given: dict[str, object]
    members: int
    attacks: tuple[str, ...]
    seed: int

    def config(self, settings: Settings, adversary: str) -> CommitteeConfig:
        return CommitteeConfig.parse({**dict(settings), **self.given, "adversary": adversary})

    def candidates(self) -> list[Settings]:
        """Those that fit the group, each network once."""
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

    def play(self, settings: Settings, runs: int) -> Trial:
        """Meet every attack so many times."""
        success: dict[str, Summary] = {}
        costs: dict[str, dict[str, float]] = {}
        knobs = knobs_of(self.config(settings, "random"), self.members)
        for attack in concerning(knobs, self.attacks):
            config = self.config(settings, attack)
            played = play_large(config, self.members, self.seed, 0, runs).metrics
            success[attack] = summarise(played["p_good"].tolist())
            costs[attack] = {name: float(played[name].mean()) for name in COSTS}
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
    """Those that no other one beats in both success and bits, the cheapest first."""
    kept: list[Trial] = []
    for trial in sorted(trials, key=lambda each: (each.bits_mean, -each.score)):
        if not kept or trial.score > kept[-1].score:
            kept.append(trial)
    return kept


def _propose(front: Sequence[Trial]) -> Trial | None:
    """The cheapest of those nearly as good as the best."""
    best = max((trial.score for trial in front), default=0.0)
    if best <= 0:
        return None
    return next(trial for trial in front if trial.score >= best - NEARLY)
