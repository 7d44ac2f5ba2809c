"""Many members at once: they join by few seeds, elect, and lose a whole process.

On a virtual clock and a network in memory: what counts is what is said, not how busy a machine is.
"""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from hustings.net.node import MemberNode
from hustings.testing import Group

CROWD = 150
DELTA = 0.2


def hosts(group: Group) -> list[MemberNode]:
    return [group.member(name).node for name in group.up]


def sent(group: Group) -> Counter[str]:
    total: Counter[str] = Counter()
    for host in hosts(group):
        total.update(host.traffic.sent)
    return total


async def flock(group: Group, count: int) -> None:
    """All of them join at the same moment, by the same few of them."""
    names = [f"m{number:03d}" for number in range(count)]
    await asyncio.gather(*(group.inside.join(name) for name in names))


def crowd(protocol: str, seed: int = 1) -> Group:
    group = Group(seed=seed, protocol=protocol, delay=(0.001, 0.02), settings={"delta": DELTA})
    group.run(flock(group, CROWD))
    return group


def test_a_crowd_elects_learns_of_all_and_loses_many_without_a_flood() -> None:
    with crowd("le-s") as group:
        leader = group.settle(within=30 * DELTA, steady=1.0)
        said = sent(group)
        assert said["STATE-TRANSFER"] <= 4 * CROWD
        assert said["JOIN"] <= 40 * CROWD
        group.advance(100 * DELTA)  # those who lack a few wait for longer than the others
        assert group.settle() == leader
        sizes = [len(host.stack.membership.view) for host in hosts(group)]
        assert sum(size == CROWD for size in sizes) >= 0.95 * CROWD
        watching = sum(bool(host.crash_watch._watches) for host in hosts(group))
        assert 30 <= watching <= 100, "a part of the group keeps streams to the leader"
        before = sent(group)["PROCESS-ENDED"]
        gone = [leader, *[name for name in group.up if name != leader][:20]]
        for name in gone:
            group.kill(name)
        assert group.settle(within=60 * DELTA) not in gone
        assert sent(group)["PROCESS-ENDED"] - before <= 40, "not each end is told to all by all"


@pytest.mark.soak
def test_a_crowd_elects_by_the_probabilistic_election_too() -> None:
    with crowd("probabilistic") as group:
        group.settle(within=90 * DELTA, steady=1.0)
