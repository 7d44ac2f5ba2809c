"""How groups work whose members know a part of them: real members, a virtual clock or sockets.

    python scripts/measure_partial_views.py 10 50 200 --views 4 log 2log --loss 0 0.1 --rest 60
    python scripts/measure_partial_views.py 50 --views log --sockets --rest 30

Members join one after the other. When all agree they rest; then the leader ends without a word.
`leaderships` counts who began to lead until then, so 1 is a leader that stayed. `split` is the part
of the time at rest at which some member held another leader, or none, looked at every half second.
`replaced` counts those that began to lead afterwards. `log` is the natural logarithm of the number
of members, rounded up, plus 1. Messages are counted at rest, by member and second, and from the
end of the leader until all agree, by member.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple

import hustings
from hustings.net.member import Member
from hustings.testing import Group

COLUMNS = (
    "members",
    "view",
    "loss",
    "one leader, s",
    "leaderships",
    "split",
    "failover, s",
    "replaced",
    "messages/s",
    "for a failover",
)
_LOOK = 0.5  # seconds between two looks
_LONG = 300.0  # seconds in which a group should agree
_AFTER = 20.0  # seconds for which a new leader is watched


class Case(NamedTuple):
    """One line of the table."""

    members: int
    view: int
    loss: float
    multicast: str
    rest: float
    seed: int

    @property
    def options(self) -> dict[str, Any]:
        """Return the options for `join`."""
        return {
            "protocol": "probabilistic",
            "multicast": self.multicast,
            "gossip_settings": {"view_size": self.view},
        }


class Row(NamedTuple):
    """The results of one case."""

    settled: float
    leaderships: int
    split: float
    failover: float
    replaced: int
    resting: float
    electing: float


def sent(members: Sequence[Member]) -> int:
    """Count the messages that these members have sent."""
    return sum(sum(each.node.traffic.sent.values()) for each in members)


def virtual(case: Case) -> Row:
    """Run the case on a virtual clock and a network in memory."""
    with Group(
        seed=case.seed,
        loss=case.loss,
        delay=(0.001, 0.02),
        most_callbacks=10**10,
        **case.options,
    ) as group:
        for number in range(case.members):
            group.join(f"m{number}")
        return group.run(story(case, Virtual(group)))


class Virtual:
    """A group on a virtual clock, as `story` needs it."""

    def __init__(self, group: Group) -> None:
        self._group = group

    def up(self) -> list[Member]:
        """Return the members that take part."""
        return [self._group.member(name) for name in self._group.up]

    async def end(self, member: Member) -> None:
        """End a member as if its machine had crashed."""
        self._group.inside.kill(member.name, machine=True)


class Real:
    """Members on the sockets of this machine, in one process."""

    def __init__(self, members: list[Member]) -> None:
        self._members = members

    def up(self) -> list[Member]:
        """Return the members that take part."""
        return [each for each in self._members if not each.closed]

    async def end(self, member: Member) -> None:
        """End a member as if its process had crashed; its machine reports that to senders."""
        await member.kill()


@asynccontextmanager
async def opened(case: Case) -> AsyncIterator[Real]:
    """This many members on loopback."""
    async with AsyncExitStack() as stack:
        members: list[Member] = []
        for number in range(case.members):
            seeds = [each.address for each in members[:5]]
            joining = hustings.join(
                "views", name=f"m{number}", seeds=seeds, local=False, **case.options
            )
            members.append(await joining.open())
            stack.push_async_callback(members[-1].kill)
        yield Real(members)


async def on_sockets(case: Case) -> Row:
    """Run the case on loopback, with no loss but that of the sockets."""
    async with opened(case) as real:
        return await story(case, real)


def agreed(members: Sequence[Member]) -> Member | None:
    """Return the leader that all members follow, itself too."""
    names = {None if each.leader is None else each.leader.name for each in members}
    leading = [each for each in members if each.is_leader]
    return leading[0] if len(names) == 1 and [each.name for each in leading] == [*names] else None


class Watched:
    """Looks at a group from time to time and counts the members that begin to lead."""

    def __init__(self, group: Virtual | Real) -> None:
        self._group = group
        self._led: set[tuple[str, int]] = set()
        self.leaders: list[str] = []
        self.looks = self.split = 0

    def look(self) -> Member | None:
        """Look once."""
        members = self._group.up()
        for each in members:
            if each.is_leader and (self.leaders or [""])[-1] != each.name:
                self.leaders.append(each.name)
        found = agreed(members)
        self.looks += 1
        self.split += found is None
        return found

    async def until_agreed(self) -> Member:
        """Look until all agree."""
        loop = asyncio.get_running_loop()
        limit = loop.time() + _LONG
        while (found := self.look()) is None:
            if loop.time() > limit:
                raise SystemExit(f"no agreement in {_LONG:g} s")
            await asyncio.sleep(_LOOK / 5)
        return found

    async def rest(self, seconds: float) -> None:
        """Look from time to time for this long."""
        for _ in range(math.ceil(seconds / _LOOK)):
            await asyncio.sleep(_LOOK)
            self.look()


async def story(case: Case, group: Virtual | Real) -> Row:
    """Agree, rest, lose the leader, agree again."""
    loop = asyncio.get_running_loop()
    began, watched = loop.time(), Watched(group)
    await watched.until_agreed()
    settled = loop.time() - began
    watched.looks = watched.split = 0
    before = sent(group.up())
    await watched.rest(case.rest)
    resting = (sent(group.up()) - before) / case.members / case.rest
    leaderships, split = len(watched.leaders), watched.split / max(1, watched.looks)
    leader = await watched.until_agreed()
    count, ended = len(watched.leaders), loop.time()
    others = [each for each in group.up() if each is not leader]
    before = sent(others)
    await group.end(leader)
    await watched.until_agreed()
    failover, electing = loop.time() - ended, (sent(others) - before) / len(others)
    await watched.rest(_AFTER)
    replaced = len(watched.leaders) - count
    return Row(settled, leaderships, split, failover, replaced, resting, electing)


def view_of(text: str, members: int) -> int:
    """A number, or `log` or `2log` of the members."""
    if text.isdigit():
        return int(text)
    if text not in ("log", "2log"):
        raise SystemExit(f"a view is a number, log or 2log, not {text!r}")
    return (2 if text == "2log" else 1) * (math.ceil(math.log(members)) + 1)


def shown(case: Case, row: Row) -> str:
    """Format one line."""
    cells = (
        f"{case.members}",
        f"{case.view}",
        f"{case.loss:g}",
        f"{row.settled:.1f}",
        f"{row.leaderships}",
        f"{row.split:.3f}",
        f"{row.failover:.1f}",
        f"{row.replaced}",
        f"{row.resting:.1f}",
        f"{row.electing:.0f}",
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("members", type=int, nargs="+")
    parser.add_argument("--views", nargs="+", default=["log"])
    parser.add_argument("--loss", type=float, nargs="+", default=[0.0])
    parser.add_argument("--rest", type=float, default=60.0)
    parser.add_argument("--multicast", default="gossip")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sockets", action="store_true")
    asked = parser.parse_args()
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    for members in asked.members:
        for view in asked.views:
            for loss in [0.0] if asked.sockets else asked.loss:
                case = Case(
                    members, view_of(view, members), loss, asked.multicast, asked.rest, asked.seed
                )
                began = time.monotonic()
                row = asyncio.run(on_sockets(case)) if asked.sockets else virtual(case)
                print(f"{shown(case, row)} {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
