"""Whether a leader stays where it should, and what its staying costs: members on a virtual clock.

    python -m scripts.measure_incumbency
    python -m scripts.measure_incumbency le-s bully --sizes 5 25 --delays 0.001 --seeds 6
    python -m scripts.measure_incumbency --cases newcomers --loss 0.2 --json before.json

Members are those of `hustings.join` with its defaults, in memory (`hustings.testing`). The better
member is the one with the higher rank. Each line is the mean of all seeds, sizes and delays.

cases      newcomers   better members join a group that has a leader, one after the other
           partition   the leader and some members are cut off for 15 s, three times
           loss        30 s in which four of ten datagrams are lost, and nobody fails
           failover    the leader's process ends, three times; it comes back later
           transfer    the leader hands over to the worst member, then that one to another

led        how often the leader changed, by the members' own word that they lead
needed     how many the case needs
terms      how far the highest term grew
grew       how far it grew beyond the changes of leader: terms that were taken for nothing
told       changes of the leader that a member's owner was told, for each member
seconds    until all agree: after a heal, a crash or a hand-over
datagrams  sent by a member in a second
failed     runs in which the members did not agree in time
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from hustings.protocols.registry import JOINED
from hustings.testing import Group, NotSettled

STEADY = 2.0  # seconds for which an agreement must last
APART = 15.0
LOSSY = 30.0
TRIES = 3
COLUMNS = ("led", "needed", "terms", "grew", "told", "seconds", "datagrams")


class Run(NamedTuple):
    """One run to play."""

    case: str
    protocol: str
    members: int
    delay: float
    loss: float
    seed: int


class Played:
    """One group, and what was seen of it since it had its first leader."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.seconds: list[float] = []
        self.needed = 0
        delay = run.delay
        self.group = Group(
            seed=run.seed,
            protocol=run.protocol,
            choice="highest:rank",
            delay=(delay / 2, delay),
            loss=run.loss,
        )

    def name(self, number: int) -> str:
        return f"m{number:02d}"

    def join(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self.group.join(self.name(number), attributes={"rank": number})

    def begin(self, numbers: Iterable[int]) -> str:
        """All have a leader: what is counted begins."""
        self.join(numbers)
        leader = self.group.settle(steady=STEADY)
        self.group.advance(2.0)
        self.seen, self.since = len(self.group.log), self.group.now
        self.sent = self.group.network.tally["sent"]
        self.first = self.term = self.group.member(leader).term
        return leader

    def settle(self, needed: int = 0, since: float | None = None) -> str:
        """All agree again; note how long it took, from now or from the given time."""
        self.needed += needed
        before = self.group.now if since is None else since
        leader = self.group.settle(steady=STEADY, within=60.0)
        self.seconds.append(self.group.now - before - STEADY)
        self.term = max(self.term, self.group.member(leader).term)
        return leader

    def result(self) -> dict[str, float]:
        group = self.group
        led, told, last = list[str](), 0, dict[str, str]()
        for each in group.log[self.seen :]:
            leader = each.state.leader
            if leader is None:
                continue
            if leader.name == each.member and (not led or led[-1] != leader.name):
                led.append(leader.name)
            if last.get(each.member, leader.name) != leader.name:
                told += 1
            last[each.member] = leader.name
        time = group.now - self.since
        terms = self.term - self.first
        return {
            "led": len(led),
            "needed": self.needed,
            "terms": terms,
            "grew": max(0, terms - len(led)),
            "told": told / len(last) if last else 0.0,
            "seconds": statistics.fmean(self.seconds) if self.seconds else 0.0,
            "datagrams": (group.network.tally["sent"] - self.sent) / time / len(group.up),
        }


def newcomers(played: Played) -> None:
    half = (played.run.members + 1) // 2
    played.begin(range(half))
    for number in range(half, played.run.members):
        played.join([number])
        played.settle()


def partition(played: Played) -> None:
    names = [played.name(number) for number in range(played.run.members)]
    leader = played.begin(range(played.run.members))
    for _ in range(TRIES):
        others = [name for name in names if name != leader]
        cut = len(names) // 2
        played.group.partition([leader, *others[: cut - 1]], others[cut - 1 :])
        played.group.advance(APART)
        played.group.heal()
        leader = played.settle(1)


def loss(played: Played) -> None:
    played.begin(range(played.run.members))
    played.group.weather(loss=0.4)
    played.group.advance(LOSSY)
    played.group.weather(loss=played.run.loss)
    played.settle()


def failover(played: Played) -> None:
    leader = played.begin(range(played.run.members))
    for _ in range(TRIES):
        played.group.kill(leader)
        following = played.settle(1)
        played.group.restart(leader)
        played.group.settle(steady=STEADY)
        leader = following


def transfer(played: Played) -> None:
    group, leader = played.group, played.begin(range(played.run.members))
    for number in range(2):
        heir = played.name(number)
        if heir != leader:
            since = group.now
            group.run(group.member(leader).transfer(heir))
            leader = played.settle(1, since)
            group.advance(5.0)
    played.term = max(played.term, group.member(leader).term)


CASES: dict[str, Callable[[Played], None]] = {
    each.__name__: each for each in (newcomers, partition, loss, failover, transfer)
}


def play(run: Run) -> dict[str, float] | None:
    """What was seen, or None if the members did not agree."""
    played = Played(run)
    with played.group:
        try:
            CASES[run.case](played)
            return played.result()
        except NotSettled:
            return None


def line(found: Sequence[dict[str, float] | None]) -> dict[str, float]:
    held = [each for each in found if each is not None]
    row = {name: statistics.fmean(each[name] for each in held) for name in COLUMNS if held}
    return {**row, "failed": float(len(found) - len(held))}


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.measure_incumbency",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("protocols", nargs="*", metavar="PROTOCOL", help="default: all to join")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--sizes", nargs="+", type=int, default=[5, 12])
    parser.add_argument("--delays", nargs="+", type=float, default=[0.001, 0.05], help="seconds")
    parser.add_argument("--loss", type=float, default=0.0)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.protocols if name not in JOINED]
    if unknown:
        parser.error(f"no protocol to join with: {', '.join(unknown)}")
    if min(options.sizes) < 3 or options.seeds < 1 or options.jobs < 1:
        parser.error("--sizes must be at least 3, --seeds and --jobs at least 1")
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    asked = parse(arguments)
    rows: dict[str, dict[str, dict[str, float]]] = {}
    with ProcessPoolExecutor(asked.jobs) as pool:
        for case in asked.cases:
            print(f"\n{case:18}" + "".join(f"{name:>10}" for name in (*COLUMNS, "failed")))
            runs = partial(_runs, asked, case)
            protocols = asked.protocols or JOINED
            found = {name: pool.map(play, runs(name)) for name in protocols}
            for name, each in found.items():
                row = rows.setdefault(case, {})[name] = line(list(each))
                cells = (row.get(column, float("nan")) for column in (*COLUMNS, "failed"))
                print(f"  {name:16}" + "".join(f"{cell:10.2f}" for cell in cells), flush=True)
    if asked.json is not None:
        asked.json.write_text(json.dumps(rows, indent=1) + "\n")


def _runs(asked: argparse.Namespace, case: str, protocol: str) -> list[Run]:
    return [
        Run(case, protocol, members, delay, asked.loss, seed)
        for members in asked.sizes
        for delay in asked.delays
        for seed in range(asked.seeds)
    ]


if __name__ == "__main__":
    main()
