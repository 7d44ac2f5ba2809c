"""The stable election on the real stack: one member that errs does not replace a living leader."""

from __future__ import annotations

import pytest

from hustings.testing import Group
from tests.net.kit.crowd import Crowd, endpoint, faults, heal
from tests.net.kit.loops import run, throughout, until

NAMES = ["ada", "ben", "cleo", "dan", "eve"]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("belief, stays", [("told", True), ("silent", False)])
def test_a_leader_that_one_member_cannot_hear(seed: int, belief: str, stays: bool) -> None:
    """The paper's rule asks for all to agree on the crash; without it one notice is enough."""
    with Group(seed=seed, protocol="stable", settings={"belief": belief}) as group:
        for name in NAMES:
            group.join(name)
        leader = group.settle(steady=2.0)
        other = NAMES[(NAMES.index(leader) + 1 + seed % 4) % 5]
        group.cut(leader, other)
        seen = len(group.log)
        group.advance(20.0)
        led = {each.state.leader.name for each in group.log[seen:] if each.state.leader}
        assert (group.leaders == [leader] and led <= {leader}) is stays
        group.heal()
        assert (group.settle() == leader) is stays


@pytest.mark.parametrize("seed", range(6))
def test_a_crash_that_all_notice_is_one_change_to_the_best(seed: int) -> None:
    with Group(seed=seed, protocol="stable", choice="highest:rank") as group:
        for rank, name in enumerate(NAMES):
            group.join(name, attributes={"rank": rank})
        leader = group.settle(steady=2.0)
        seen = len(group.log)
        group.kill(leader, machine=seed % 2 == 0)
        best = max(group.up, key=NAMES.index)
        assert group.settle(steady=5.0) == best
        led = {
            (each.state.leader.name, each.state.term)
            for each in group.log[seen:]
            if each.state.leader is not None and each.state.leader.name != leader
        }
        assert len(led) == 1


def test_on_sockets_a_leader_stays_that_one_member_cannot_hear() -> None:
    async def story() -> None:
        async with Crowd(protocol="stable") as crowd:
            await crowd.add_all(NAMES[:4])
            leader = await crowd.seated()
            other = next(each for each in crowd.open() if each is not leader)
            faults(other).cut([endpoint(leader)], to=False)
            await until(lambda: other.leader is None, "it misses the leader")
            await throughout(
                2.0,
                lambda: leader.is_leader and sum(each.is_leader for each in crowd.open()) == 1,
                "nobody else takes its place",
            )
            heal([other])
            assert await crowd.agreed() is leader

    run(story())
