"""Which elections hold in mobile ad hoc groups: random waypoint, a leader for each component.

    python -m scripts.measure_mobile
    python -m scripts.measure_mobile bully-map le-s --ways alone --speeds 1-2 10-30 --ranges 150 300
    python -m scripts.measure_mobile le-s al --links direct --members 20 --until 600 --runs 20

A way is how members run: `alone` is the election by itself, with a heartbeat detector if it does
not announce; `composed` puts it together as `join` does; `preempt` is that, and a better member
takes over. Elections that are not for use run alone only, unless they are named.

Shares are those of a random member's time. `one leader`: all members of its component hold one
leader, and that is one of them. `best`: and it is the best of them. `none`, `several`: this many
lead by their own word. `after split` and `after merger`: mean seconds to one leader, for components
that began without one; in brackets the share of them that changed again before. `relapses`
(components at rest that lost their leader) and `changes` (of the leader that a member holds) are
counted by the minute. `messages`: per member and second, with heartbeats. `holds`: runs in which no
component lacked one leader for longer than `--settle`, of those in which two members stayed
together so long.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hustings.core.errors import BadInput
from hustings.lab.runs.engines import Report, Summary
from hustings.lab.simulation import run_all
from hustings.protocols.registry import BASELINES, CATALOGUE, PRINTED, find
from hustings.sim.checkers import Verdict
from hustings.sim.delay import Fixed
from hustings.sim.experiment import Description, Experiment, build
from hustings.sim.mobility import parse_mobility
from hustings.sim.network import Network
from hustings.sim.scenarios import Scenario
from hustings.testing.composed import compose_members

EVERY = CATALOGUE
# For use; the others are for study, or show how they fail.
USED = tuple(name for name in CATALOGUE if name not in (*BASELINES, *PRINTED))
WAYS = ("alone", "composed", "preempt")
DELAY = 0.05  # seconds: with it composed members have the defaults of `join`
HEARD = 1.0  # seconds between two heartbeats, as between two announcements
MINUTE = 60.0
COLUMNS = (
    *("protocol", "way", "range", "speed", "one leader", "best", "none", "several"),
    *("after split", "after merger", "relapses", "changes", "messages", "holds"),
)


class Case(NamedTuple):
    """One line of the table."""

    protocol: str
    way: str
    reach: str
    speed: str

    def experiment(self, asked: argparse.Namespace) -> Experiment:
        """Return the experiment to play."""
        kind, alone = find(self.protocol), self.way == "alone"
        detected = alone and not kind.assumptions.announces
        slow, dash, fast = self.speed.partition("-")
        settings = {
            "range": self.reach,
            "speed_min": slow,
            "speed_max": fast if dash else slow,
            "side": asked.side,
            "pause": asked.pause,
            "links": asked.links,
            "settle": asked.settle,
        }
        return build(
            Description(
                kind=kind,
                members=asked.members,
                network=Network(delay=Fixed(DELAY)),
                scenario=Scenario(mobility=parse_mobility("random-waypoint", settings)),
                seed=asked.seed,
                detection="heartbeat" if detected else "scripted",
                detection_settings={"T": HEARD} if detected else {},
                composer=None if alone else compose_members,
                leadership_settings={"preempt_after": 0} if self.way == "preempt" else {},
                until=asked.until,
            )
        )


def cases(asked: argparse.Namespace) -> Iterator[Case]:
    """Return the cases asked for, place by place."""
    for reach in asked.ranges:
        for speed in asked.speeds:
            for way in asked.ways:
                for protocol in asked.protocols or (EVERY if way == "alone" else USED):
                    yield Case(protocol, way, reach, speed)


def shown(case: Case, report: Report, until: float) -> str:
    """Format one line."""
    found = report.metrics
    verdicts = report.verdicts["components"]
    holds = verdicts[Verdict.HOLDS.value]
    cells = (
        *case,
        *(number(found[name], 3) for name in ("one_leader", "best_leader")),
        *(number(found[name], 3) for name in ("no_leader", "several_leaders")),
        *(delay(found, name) for name in ("split", "merge")),
        *(number(found[name], 1, MINUTE / until) for name in ("relapses", "leader_changes")),
        number(found["message_rate"], 2),
        f"{holds} of {holds + verdicts[Verdict.VIOLATED.value]}",
    )
    return f"| {' | '.join(cells)} |"


def number(value: Summary | None, digits: int, factor: float = 1.0) -> str:
    """Format a mean over runs."""
    return "-" if value is None else f"{value.mean * factor:.{digits}f}"


def delay(found: dict[str, Summary | None], cause: str) -> str:
    """Format how long it took to one leader, and how often there was none."""
    took, missed = number(found[f"{cause}_delay"], 1), number(found[f"{cause}_unsettled"], 2)
    return f"{took} ({missed})"


def options() -> argparse.ArgumentParser:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(prog="measure_mobile", description=__doc__.partition("\n")[0])
    parser.add_argument("protocols", nargs="*", metavar="PROTOCOL", help="by default every one")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--ranges", nargs="+", default=["250"], metavar="RANGE")
    parser.add_argument("--speeds", nargs="+", default=["1-10"], metavar="MIN-MAX")
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--side", default="1000")
    parser.add_argument("--pause", default="0")
    parser.add_argument("--links", default="routed", help="routed or direct")
    parser.add_argument("--settle", default="15")
    parser.add_argument("--until", type=float, default=300.0)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table in Markdown."""
    parser = options()
    asked = parser.parse_args(arguments)
    try:
        made = [(case, case.experiment(asked)) for case in cases(asked)]
        print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
        for case, experiment in made:
            report = run_all(experiment, asked.runs, asked.jobs)
            print(shown(case, report, asked.until), flush=True)
    except BadInput as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
