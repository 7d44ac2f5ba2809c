"""Every election that may be joined elects, loses and re-elects on real sockets."""

from __future__ import annotations

import pytest

import hustings
from hustings.core.election import Election
from hustings.protocols.registry import BASELINES, CATALOGUE, CONSENSUS, PRINTED, classes
from tests.net.kit.crowd import Crowd, cut, heal, one_leader
from tests.net.kit.loops import run, throughout, until

JOINED = [
    kind
    for kind in classes(CATALOGUE)
    if kind not in (*classes(PRINTED), *classes(BASELINES), *classes(CONSENSUS))
]
SLOW_TO_TRY = ("broadcast", "bully-assistant", "bully-grant", "bully-group", "le-a", "le-m")
every_protocol = pytest.mark.parametrize("kind", JOINED, ids=lambda kind: kind.about.name)
# Of each family one with every change, all with `make soak`.
each_family = pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.soak) if kind.about.name in SLOW_TO_TRY else kind
        for kind in JOINED
    ],
    ids=lambda kind: kind.about.name,
)
NAMES = ["ada", "ben", "cleo", "dan", "eve"]


def test_all_but_the_printed_the_baselines_and_consensus_are_here() -> None:
    assert len(JOINED) == 12


@every_protocol
def test_elects_loses_and_re_elects(kind: type[Election]) -> None:
    async def story() -> None:
        async with Crowd(protocol=kind.about.name) as crowd:
            await crowd.add_all(NAMES)
            await crowd.known(5)
            first = await crowd.agreed()
            await first.kill()
            second = await crowd.agreed(but=first.name)
            assert second.term > first.term
            second = await crowd.seated()
            back = await crowd.add(first.name)
            await crowd.known(5)
            again = await crowd.agreed()
            assert again.name == second.name, "who leads is not displaced by who comes back"
            await again.leave()
            third = await crowd.agreed(but=again.name)
            assert third.term >= second.term
            assert back.metrics().drops["malformed"] == 0

    run(story())


@each_family
def test_one_leader_stays_while_nothing_happens(kind: type[Election]) -> None:
    async def story() -> None:
        async with Crowd(protocol=kind.about.name) as crowd:
            await crowd.add_all(NAMES[:3])
            await crowd.known(3)
            leader = await crowd.agreed()
            await throughout(
                0.7, lambda: one_leader(crowd.open()) is leader, "the leader changed at rest"
            )

    run(story())


@each_family
def test_two_sides_of_a_cut_have_a_leader_each_and_one_after_it_heals(
    kind: type[Election],
) -> None:
    async def story() -> None:
        async with Crowd(protocol=kind.about.name) as crowd:
            members = await crowd.add_all(NAMES)
            await crowd.known(5)
            leader = await crowd.agreed()
            far = [each for each in members if each is not leader][:3]
            near = [each for each in members if each not in far]
            cut(near, far)
            other = await crowd.agreed(but=leader.name, among=far, within=15)
            assert other in far
            assert leader.is_leader
            heal(members)
            await crowd.known(5, within=20)
            await crowd.agreed(within=20)

    run(story())


@pytest.mark.parametrize(
    "name", ["al", "sup", "ring-printed", "bully-map-printed", "le-s-printed", "sup-al"]
)
def test_what_is_only_for_study_cannot_be_joined(name: str) -> None:
    with pytest.raises(hustings.BadInput, match="is for study"):
        hustings.join("billing", protocol=name)


def test_several_leaders_where_the_election_has_several() -> None:
    async def story() -> None:
        async with Crowd(protocol="le-s", settings={"leaders": 2}) as crowd:
            await crowd.add_all(NAMES)
            await crowd.known(5)

            def two() -> bool:
                """A leader itself need not know of those that it outranks."""
                leading = sorted(each.name for each in crowd.open() if each.is_leader)
                followers = [each for each in crowd.open() if not each.is_leader]
                seen = [sorted(peer.name for peer in each.state.leaders) for each in followers]
                return len(leading) == 2 and all(each == leading for each in seen)

            def told() -> str:
                return str([(each.name, each.state.leaders) for each in crowd.open()])

            await until(two, told)
            gone = next(each for each in crowd.open() if each.is_leader)
            await gone.kill()
            await until(two, told)
            follower = next(each for each in crowd.open() if not each.is_leader)
            assert gone.name not in {peer.name for peer in follower.state.leaders}

    run(story())
