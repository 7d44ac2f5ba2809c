"""How often the interval of a predicted failover covers what later groups show.

    python -m scripts.measure_plan                   # 30 environments; large ones take minutes
    python -m scripts.measure_plan --quick           # two small ones, for tests
    python -m scripts.measure_plan --seed 2 --environments 10 --json

A seed draws environments (3 to 500 members, one to three sites, laws of delay, losses alone or in
bursts, pauses) and a configuration for each (protocol, times, no guard, voters or an engine). Each
is played twice on the virtual clock with different seeds (`lab.observe`): one half predicts, the
other is measured. In each failover the leader's machine is gone. The predicted value is the p-th
quantile of the time until all members follow a new leader, with the interval in which the same
quantile of the other half lies with 95 % (`plans/intervals.py`). `covered` says whether it does.

Large groups have few failovers, and the 99th percentile of few lies beyond them: `method` says by
which rule the interval has an end. The median needs no such rule. The last line counts how many
intervals cover, with the interval of Clopper and Pearson for the share.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from hustings.core.errors import BadInput
from hustings.core.streams import Stream, derive
from hustings.lab.plans.configuration import Configuration
from hustings.lab.plans.intervals import Interval, proportion, rank
from hustings.lab.plans.virtual import MACHINE, ObservedGroup, observe
from hustings.sim.environment import Environment, parse_environment

MEMBERS = (3, 500)
QUICK = (3, 8)
QUANTILES = (0.5, 0.99)
# Up to so many members: groups, and failovers of each. The last are few: such a group takes long.
EFFORTS = ((12, 6, 6), (40, 3, 6), (120, 2, 5), (500, 1, 6))
MOST_ENVIRONMENTS = 1000
# Where no group has agreed on a leader in time, no failover ends: that is predicted, too.
NEVER = Interval(math.inf, math.inf, math.inf, "no group has settled")


@dataclass(frozen=True)
class Drawn:
    """One environment, and what is played in it."""

    number: int
    environment: Environment
    configuration: Configuration

    @property
    def members(self) -> int:
        """How many members there are."""
        return self.environment.members or 0


@dataclass(frozen=True)
class Row:
    """What was predicted of one environment, and what was measured."""

    environment: int
    members: int
    sites: int
    loss: str
    pauses: bool
    protocol: str
    guard: str
    quantile: float
    failovers: int  # in each half
    predicted: float
    low: float
    high: float
    measured: float
    covered: bool
    method: str


def draw(seed: int, number: int, members: tuple[int, int] = MEMBERS) -> Drawn:
    """The environment of a number, and a configuration that may be used in it."""
    chance = Stream(derive(seed, "environment", number))
    low, high = (math.log(each) for each in members)
    size = round(math.exp(chance.uniform(low, high)))
    sites = 1 + chance.below(3) if size >= 6 else 1
    within = chance.choice(["500us", "uniform:200us,2ms", "lognormal:1ms,0.5"])
    apart = round(chance.uniform(5.0, 60.0), 1)
    parts = size // sites
    sizes = [size - parts * (sites - 1), *[parts] * (sites - 1)]
    lines = ["[delay]", f'within = "{within}"']
    if sites > 1:
        names = "abc"[:sites]
        pairs = [f"{a},{b}" for a in names for b in names if a < b]
        lines += [f'between."{pair}" = "lognormal:{apart}ms,0.1"' for pair in pairs]
        lines = ["[sites]", *(f"{n} = {s}" for n, s in zip(names, sizes, strict=True)), *lines]
    else:
        lines = [f"members = {size}", *lines]
    rate = chance.choice([0.0, 0.2, 1.0, 3.0])
    if rate:
        lines += ["[loss]", f'rate = "{rate}%"']
        if chance.below(2):
            lines.append(f"burst = {2 + chance.below(5)}")
    if chance.below(2):
        lines += ["[pauses]", f'rate = "{1 + chance.below(20)}/h"']
        lines += ['length = "exponential:80ms"', 'longest = "800ms"']
    environment = parse_environment("\n".join(lines))
    return Drawn(number, environment, _configuration(chance, size, 0.001 * apart * (sites > 1)))


def _configuration(chance: Stream, members: int, apart: float) -> Configuration:
    """A configuration with times that fit the delays."""
    delta = max(0.02, 2.0 * apart)
    protocol = chance.choice(["le-s", "le-s", "le-a", "bully"])
    settings: dict[str, float] = {"delta": delta}
    if protocol != "bully":
        period = round(chance.uniform(0.15, 0.6), 2)
        settings |= {"T_A": period, "T_L": round(period * (4 + chance.below(5)), 2)}
    guard = chance.choice([None, None, "quorum", "etcd"])
    if guard is None:
        return Configuration(protocol=protocol, settings=settings)
    ttl = round(max(chance.uniform(2.0, 6.0), 20 * delta), 2)
    voters = tuple(sorted(chance.sample(range(1, members + 1), 3))) if guard == "quorum" else ()
    return Configuration(protocol=protocol, settings=settings, guard=guard, voters=voters, ttl=ttl)


def measure(drawn: Drawn, seed: int, jobs: int, effort: float = 1.0) -> list[Row]:
    """Predict and measure in one environment."""
    _, groups, failovers = next(each for each in EFFORTS if drawn.members <= each[0])
    groups = max(1, round(groups * effort))
    seeds = [
        [derive(seed, half, drawn.number, group) for group in range(groups)]
        for half in ("predicted", "measured")
    ]
    found = observe(
        drawn.configuration,
        drawn.environment,
        seeds=[*seeds[0], *seeds[1]],
        failovers_per_seed=failovers,
        calm=0.0,
        kinds=[MACHINE],
        jobs=jobs,
    )
    halves = [
        replace(found, failovers=tuple(each for each in found.failovers if each.seed in half))
        for half in seeds
    ]
    return [_row(drawn, halves, p) for p in QUANTILES]


def _row(drawn: Drawn, halves: Sequence[ObservedGroup], p: float) -> Row:
    predicting, measuring = halves
    found = sorted(each.until_all_follow for each in measuring.failovers)
    measured = found[rank(p, len(found)) - 1] if found else math.inf
    interval = NEVER
    if predicting.failovers:
        interval = predicting.failover(p, future=len(found) or None)
    environment = drawn.environment
    return Row(
        environment=drawn.number,
        members=drawn.members,
        sites=1 if environment.sites is None else len(environment.sites.names),
        loss=loss_of(environment),
        pauses=environment.pauses is not None,
        protocol=drawn.configuration.protocol,
        guard=drawn.configuration.guard or "none",
        quantile=p,
        failovers=len(found),
        predicted=interval.value,
        low=interval.low,
        high=interval.high,
        measured=measured,
        covered=measured in interval,
        method=interval.method,
    )


def loss_of(environment: Environment) -> str:
    """The loss of an environment in words."""
    loss = environment.network.loss
    length = getattr(loss, "length", 1.0)
    share = f"{100 * loss.p:g} %"
    return share if length == 1.0 or not loss.p else f"{share} in {length:g}s"


# Telling

HEADS = (
    "#",
    "members",
    "sites",
    "loss",
    "pauses",
    "protocol",
    "guard",
    "quantile",
    "failovers",
    "predicted",
    "interval",
    "measured",
    "covered",
    "by",
)


def cells(row: Row) -> list[str]:
    """One row for people."""
    method = "tail" if row.method.startswith("extrapolated") else "order"
    method = "never" if row.method == NEVER.method else method
    return [
        f"{row.environment}",
        f"{row.members}",
        f"{row.sites}",
        row.loss,
        "yes" if row.pauses else "no",
        row.protocol,
        row.guard,
        f"{row.quantile:g}",
        f"{row.failovers}",
        f"{row.predicted:.2f} s",
        f"{row.low:.2f} to {row.high:.2f} s",
        f"{row.measured:.2f} s",
        "yes" if row.covered else "**no**",
        method,
    ]


def summary(rows: Sequence[Row], p: float) -> str:
    """How many intervals of one quantile cover."""
    some = [row for row in rows if row.quantile == p]
    covered = sum(row.covered for row in some)
    share = proportion(covered, len(some))
    return (
        f"quantile {p:g}: {covered} of {len(some)} intervals cover ({100 * share.value:.0f} %, "
        f"interval {100 * share.low:.0f} to {100 * share.high:.0f} %)"
    )


def main(words: Sequence[str]) -> int:
    """Measure, and print one line for each environment and quantile."""
    assert __doc__
    parser = argparse.ArgumentParser(
        prog="python -m scripts.measure_plan",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--environments", type=int, default=30)
    parser.add_argument("--members", type=int, nargs=2, default=MEMBERS, metavar=("LEAST", "MOST"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--quick", action="store_true", help="2 small environments, few failovers")
    parser.add_argument("--json", action="store_true", help="one JSON object for each row")
    given = parser.parse_args(words)
    try:
        _check(given)
    except BadInput as refusal:
        print(f"measure_plan: {refusal}", file=sys.stderr)
        return 2
    count = 2 if given.quick else given.environments
    members = QUICK if given.quick else tuple(given.members)
    if not given.json:
        print("| " + " | ".join(HEADS) + " |\n|" + "---|" * len(HEADS))
    rows: list[Row] = []
    for number in range(1, count + 1):
        drawn = draw(given.seed, number, members)
        found = measure(drawn, given.seed, given.jobs, 0.25 if given.quick else 1.0)
        rows += found
        for row in found:
            told = json.dumps(asdict(row)) if given.json else "| " + " | ".join(cells(row)) + " |"
            print(told, flush=True)
        print(f"{number} of {count} environments", file=sys.stderr)
    for p in QUANTILES:
        print(summary(rows, p), file=sys.stderr if given.json else sys.stdout)
    return 0


def _check(given: argparse.Namespace) -> None:
    if not 1 <= given.environments <= MOST_ENVIRONMENTS:
        raise BadInput(f"environments must lie between 1 and {MOST_ENVIRONMENTS}")
    if not 3 <= given.members[0] <= given.members[1] <= MEMBERS[1]:
        raise BadInput(f"members must lie between 3 and {MEMBERS[1]}, the least first")
    if not 1 <= given.jobs <= 64:
        raise BadInput(f"jobs must lie between 1 and 64, not {given.jobs}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
