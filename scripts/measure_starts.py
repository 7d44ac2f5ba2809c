"""How often a failover starts the group's job twice, on seeds of the virtual clock.

    python -m scripts.measure_starts --seconds 120                  # a share of the full table
    python -m scripts.measure_starts --protocols le-s --members 5 --delays 2ms --failovers 30000
    python -m scripts.measure_starts --guards with --json

Real members on a network in memory, and every member runs one job with `member.run`. In each
failover the leader's process or its whole machine ends, by turns, and another member must start the
job once. Any other start until the next failover is one too many, whichever member it is: the
failover counts as double. The member that was killed is back after a second.

A cell of the table is a protocol, with or without a guard, a number of members and a delay: each
datagram takes between half of the delay and all of it. `boots` counts the groups that started the
job more than once when all members began together. `gap` is the time from the end of a leader to
the next start of the job: the median after the end of a process and of a machine. `at most` is the
exact upper bound of Clopper and Pearson for the share of doubles, which is too low with a
probability of 5 %. For none among n it is about 3/n: 1 in 10,000 takes 29,956 failovers.
`--failovers` holds for each cell; with `--seconds` the cells get their groups by turns until the
time is over. The last lines sum up.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from math import exp, lgamma, log, log1p
from statistics import median
from typing import Any, NamedTuple

from hustings.core.durations import parse_duration, show_duration
from hustings.core.errors import BadInput
from hustings.core.streams import derive
from hustings.net.campaign import Term
from hustings.net.member import Member
from hustings.testing import AsyncGroup, Group, NotSettled

PROTOCOLS = ("le-s", "le-a", "le-m", "bully", "probabilistic")
MEMBERS = (3, 5, 10, 25)
DELAYS = ("0ms", "1ms", "2ms", "5ms", "10ms", "20ms")
GUARDS = ("without", "with")
LEASE_S = 2.0
ROUNDS = 10  # failovers in one group
AWAY_S = 1.0  # seconds from the end of a member until it is back
WATCHED_S = 2.0  # seconds from the first start of the job in which another one counts
WITHIN_S = 30.0  # seconds in which a group must have one leader
ERROR = 0.05  # one-sided: a stated bound is too low with this probability
MOST_FAILOVERS = 1_000_000
SHOWN = 20  # failovers with more than one start that are printed


class Cell(NamedTuple):
    """One row of the table."""

    protocol: str
    guard: bool
    members: int
    delay: float


class Block(NamedTuple):
    """What was counted in one group of a cell."""

    cell: Cell
    failovers: int
    doubles: int
    boots: int  # 1: the job was started more than once at the beginning
    unsettled: int  # 1: the members did not agree on a leader in time
    process: tuple[float, ...]  # seconds without the job after the end of a process
    machine: tuple[float, ...]
    found: tuple[str, ...]  # the failovers with more than one start


class Start(NamedTuple):
    """The job has started."""

    at: float
    member: str
    term: int


@dataclass
class Sum:
    """What was counted in many groups."""

    groups: int = 0
    failovers: int = 0
    doubles: int = 0
    boots: int = 0
    unsettled: int = 0
    process: list[float] = field(default_factory=list)
    machine: list[float] = field(default_factory=list)

    def add(self, block: Block) -> None:
        """One more group."""
        self.groups += 1
        self.failovers += block.failovers
        self.doubles += block.doubles
        self.boots += block.boots
        self.unsettled += block.unsettled
        self.process += block.process
        self.machine += block.machine


def play(cell: Cell, seed: int, rounds: int) -> Block:
    """Play one group of a cell through some failovers."""
    options: dict[str, Any] = {"protocol": cell.protocol}
    if cell.guard:
        options |= {"guard": f"memory://starts-{seed}", "ttl": LEASE_S}
    delay = (cell.delay / 2, cell.delay)
    with Group(seed=seed, delay=delay, most_seconds=100.0 * (rounds + 1), **options) as group:
        return group.run(Play(group.inside, cell, seed).play(rounds))


class Play:
    """One group, and when its job was started."""

    def __init__(self, group: AsyncGroup, cell: Cell, seed: int) -> None:
        self._group = group
        self._cell = cell
        self._seed = seed
        self._starts: list[Start] = []

    async def play(self, rounds: int) -> Block:
        """Start all members together; then end the leader, again and again."""
        group, cell = self._group, self._cell
        gaps: tuple[list[float], list[float]] = ([], [])
        failovers, found = 0, []
        # A name decides on a rank: other names in each group.
        names = [f"m{number}-{self._seed % 10_000}" for number in range(cell.members)]
        await asyncio.gather(*(group.start([name], self._program) for name in names))
        boots, unsettled = 0, 0
        try:
            await self._quiet(0)
            boots = int(len(self._starts) > 1)
            for turn in range(rounds):
                seen = len(self._starts)
                took = await self._fail_over(machine=turn % 2 == 1)
                failovers += 1
                gaps[turn % 2].append(took)
                if len(self._starts) > seen + 1:
                    found.append(self._told(turn, seen))
        except NotSettled:
            unsettled = 1
        process, machine = map(tuple, gaps)
        return Block(cell, failovers, len(found), boots, unsettled, process, machine, tuple(found))

    async def _program(self, member: Member) -> None:
        async def job(term: Term) -> None:
            self._starts.append(Start(self._group.now, member.name, term.number))
            await asyncio.Event().wait()

        await member.run(job)

    async def _fail_over(self, *, machine: bool) -> float:
        """End the leader; how long the job did not run."""
        group, seen = self._group, len(self._starts)
        began, leader = group.now, group.leaders[0]
        group.kill(leader, machine=machine)
        await group.advance(AWAY_S)
        await group.restart(leader)
        await self._quiet(seen)
        return self._starts[seen].at - began

    async def _quiet(self, seen: int) -> None:
        """Wait until one member leads and runs the job, and then some more."""
        group = self._group
        end = group.now + WITHIN_S
        while not self._runs(group.leaders, self._starts[seen:]):
            if group.now > end:
                raise NotSettled("no single leader runs the job")
            await group.advance(0.1)
        await group.settle(within=WITHIN_S)
        await group.advance(max(0.0, self._starts[seen].at + WATCHED_S - group.now))

    @staticmethod
    def _runs(leaders: Sequence[str], starts: Sequence[Start]) -> bool:
        """Whether there is one leader, and it has started the job."""
        return len(leaders) == 1 and leaders[0] in {each.member for each in starts}

    def _told(self, turn: int, seen: int) -> str:
        first = self._starts[seen].at
        starts = ", ".join(
            f"{each.member} in term {each.term} after {each.at - first:.3f} s"
            for each in self._starts[seen:]
        )
        return f"{named(self._cell)} seed {self._seed} failover {turn}: {starts}"


def named(cell: Cell) -> str:
    """A cell in words."""
    guard = "with a guard" if cell.guard else "without a guard"
    return f"{cell.protocol} {guard}, {cell.members} members, {show_duration(cell.delay)}"


def upper(doubles: int, failovers: int, error: float = ERROR) -> float:
    """The exact upper bound of Clopper and Pearson for a probability.

    Were the probability larger, so few doubles would have a probability below `error`.

    >>> round(upper(0, 29_956) * 10_000, 3), round(upper(3, 100), 4), upper(2, 2), upper(0, 0)
    (1.0, 0.0757, 1.0, 1.0)
    """
    if doubles >= failovers:
        return 1.0
    ways = [
        lgamma(failovers + 1) - lgamma(k + 1) - lgamma(failovers - k + 1)
        for k in range(doubles + 1)
    ]
    low, high = doubles / failovers, 1.0
    for _ in range(60):
        p = (low + high) / 2
        if p >= 1.0:
            break
        tail = sum(
            exp(way + k * log(p) + (failovers - k) * log1p(-p)) for k, way in enumerate(ways)
        )
        low, high = (p, high) if tail > error else (low, p)
    return high


# Many groups


def work(task: tuple[Cell, int, int]) -> Block:
    """Play one group, in a process of the pool."""
    return play(*task)


def tasks(
    cells: Sequence[Cell], failovers: int, seed: int, rounds: int
) -> Iterator[tuple[Cell, int, int]]:
    """The groups of all cells, by turns, so that a run that is cut short has some of each."""
    for number in range(-(-failovers // rounds)):
        for cell in cells:
            text = f"{cell.protocol}-{cell.guard}-{cell.members}-{cell.delay}"
            some = min(rounds, failovers - number * rounds)
            yield cell, derive(seed, text, number), some


def measure(
    cells: Sequence[Cell], failovers: int, seed: int, jobs: int, seconds: float
) -> tuple[dict[Cell, Sum], list[str]]:
    """Play the groups of all cells until each has its failovers, or the time is over."""
    sums = {cell: Sum() for cell in cells}
    found: list[str] = []
    end, shown = time.monotonic() + seconds, 0.0
    groups = len(cells) * -(-failovers // ROUNDS)
    done = 0

    def pending() -> Iterator[tuple[Cell, int, int]]:
        for task in tasks(cells, failovers, seed, ROUNDS):
            if time.monotonic() > end:
                return
            yield task

    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        # Few at once: `imap` would draw all tasks before the time is over.
        waiting = pending()
        under_way = [pool.apply_async(work, (task,)) for task in islice(waiting, 4 * jobs)]
        while under_way:
            block = under_way.pop(0).get()
            following = next(waiting, None)
            if following is not None:
                under_way.append(pool.apply_async(work, (following,)))
            sums[block.cell].add(block)
            found += block.found
            done += 1
            if time.monotonic() > shown + 5.0:
                shown = time.monotonic()
                print(f"{done:,} of {groups:,} groups", file=sys.stderr)
    return sums, found


def row(name: dict[str, object], counted: Sum) -> dict[str, object]:
    """What is printed of a sum."""
    return {
        **name,
        "groups": counted.groups,
        "boots": counted.boots,
        "failovers": counted.failovers,
        "doubles": counted.doubles,
        "at_most": upper(counted.doubles, counted.failovers),
        "unsettled": counted.unsettled,
        "gap_process": median(counted.process) if counted.process else None,
        "gap_machine": median(counted.machine) if counted.machine else None,
    }


def rows(sums: dict[Cell, Sum]) -> list[dict[str, object]]:
    """The rows of all cells, and one for each protocol with and without a guard."""
    told = []
    totals: dict[tuple[str, bool], Sum] = {}
    for cell, counted in sums.items():
        told.append(row(cell._asdict(), counted))
        total = totals.setdefault((cell.protocol, cell.guard), Sum())
        for each in ("groups", "failovers", "doubles", "boots", "unsettled"):
            setattr(total, each, getattr(total, each) + getattr(counted, each))
        total.process += counted.process
        total.machine += counted.machine
    for (protocol, guard), total in totals.items():
        name = {"protocol": protocol, "guard": guard, "members": None, "delay": None}
        told.append(row(name, total))
    return told


COLUMNS = "{:<14}{:<6}{:>8}{:>7}{:>8}{:>7}{:>11}{:>9}{:>10}{:>10}{:>13}{:>13}"
HEADS = (
    "protocol",
    "guard",
    "members",
    "delay",
    "groups",
    "boots",
    "failovers",
    "doubles",
    "at most",
    "unsettled",
    "gap process",
    "gap machine",
)


def line(told: dict[str, Any]) -> str:
    """One row for people."""
    gaps = [
        "-" if told[each] is None else f"{told[each]:.3f} s"
        for each in ("gap_process", "gap_machine")
    ]
    delay = "all" if told["delay"] is None else show_duration(told["delay"])
    return COLUMNS.format(
        told["protocol"],
        "yes" if told["guard"] else "no",
        told["members"] or "all",
        delay,
        told["groups"],
        told["boots"],
        told["failovers"],
        told["doubles"],
        f"{told['at_most']:.2g}",
        told["unsettled"],
        *gaps,
    )


def main(words: Sequence[str]) -> int:
    """Measure, and print one line for each cell."""
    assert __doc__
    parser = argparse.ArgumentParser(
        prog="python -m scripts.measure_starts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--protocols", nargs="+", choices=PROTOCOLS, default=PROTOCOLS)
    parser.add_argument("--guards", nargs="+", choices=GUARDS, default=GUARDS)
    parser.add_argument("--members", type=int, nargs="+", default=MEMBERS)
    parser.add_argument("--delays", nargs="+", default=DELAYS, help="such as 0ms 2ms")
    parser.add_argument("--failovers", type=int, default=10_000, help="in each cell")
    parser.add_argument("--seconds", type=float, default=3600.0, help="at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--json", action="store_true", help="one JSON object for each row")
    given = parser.parse_args(words)
    try:
        cells = _cells(given)
    except BadInput as refusal:
        print(f"measure_starts: {refusal}", file=sys.stderr)
        return 2
    sums, found = measure(cells, given.failovers, given.seed, given.jobs, given.seconds)
    if not given.json:
        print(COLUMNS.format(*HEADS))
    for told in rows(sums):
        print(json.dumps(told) if given.json else line(told))
    for each in found[:SHOWN]:
        print(each, file=sys.stderr)
    return 0


def _cells(given: argparse.Namespace) -> list[Cell]:
    if not 1 <= given.failovers <= MOST_FAILOVERS:
        raise BadInput(f"failovers must lie between 1 and {MOST_FAILOVERS:,}")
    if not 1 <= given.jobs <= 64:
        raise BadInput(f"jobs must lie between 1 and 64, not {given.jobs}")
    if not 0 < given.seconds <= 86_400:
        raise BadInput(f"seconds must lie between 0 and 86,400, not {given.seconds:g}")
    if not all(2 <= number <= 100 for number in given.members):
        raise BadInput("a group has between 2 and 100 members here")
    delays = [parse_duration(each, "delays") for each in given.delays]
    if not all(each <= 1.0 for each in delays):
        raise BadInput("a delay is at most 1s here")
    guards = [each == "with" for each in given.guards]
    return [Cell(*each) for each in product(given.protocols, guards, given.members, delays)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
