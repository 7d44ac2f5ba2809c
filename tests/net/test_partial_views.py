"""Members that know a part of the group only: what works with that, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import hustings
from hustings.protocols.registry import JOINED, find
from hustings.testing import Group
from tests.net.kit.crowd import Crowd
from tests.net.kit.loops import run

PARTIAL: dict[str, Any] = {"gossip_settings": {"view_size": 4}}


@pytest.mark.parametrize(
    "protocol",
    [name for name in JOINED if name != "probabilistic"],
)
def test_protocols_that_need_the_whole_group_refuse_partial_views(protocol: str) -> None:
    assert not find(protocol).assumptions.partial_views
    with pytest.raises(hustings.BadInput, match=f"^{protocol} needs members that know the whole"):
        hustings.join("billing", protocol=protocol, multicast="gossip", **PARTIAL)
    hustings.join("billing", protocol=protocol, gossip_settings={"view_size": 4095})
    hustings.join(
        "billing", protocol=protocol, limits={"members": 5}, gossip_settings={"view_size": 4}
    )


def test_a_multicast_that_reaches_the_view_alone_is_refused_with_partial_views() -> None:
    with pytest.raises(hustings.BadInput, match="'fan-out' reaches the members in view alone"):
        hustings.join("billing", protocol="probabilistic", **PARTIAL)
    for multicast in ("gossip", "bimodal", "ip:239.1.2.3:7400"):
        hustings.join("billing", protocol="probabilistic", multicast=multicast, **PARTIAL)


def test_members_that_vote_must_know_each_other() -> None:
    with pytest.raises(hustings.BadInput, match="members that vote must know each other"):
        hustings.join(
            "billing",
            name="a",
            protocol="probabilistic",
            multicast="gossip",
            guard="quorum://a,b,c",
            state="never-made",
            **PARTIAL,
        )


# Members that know four others each, on a virtual clock


def group_of(members: int, multicast: str, view: int = 4, **options: Any) -> Group:
    """A group on a virtual clock that has not settled yet."""
    group = Group(
        protocol="probabilistic",
        multicast=multicast,
        delay=(0.001, 0.02),
        gossip_settings={"view_size": view},
        **options,
    )
    for number in range(members):
        group.join(f"m{number}")
    return group


def leaderships(group: Group, since: int = 0) -> list[str]:
    """Who began to lead, in order."""
    return [each.member for each in group.log[since:] if each.state.leading]


@pytest.mark.parametrize("multicast, loss", [("gossip", 0.1), ("bimodal", 0.1), ("gossip", 0)])
def test_a_group_settles_on_one_leader_stays_with_it_and_replaces_it_once(
    multicast: str, loss: float
) -> None:
    with group_of(10, multicast, loss=loss, seed=3) as group:
        leader = group.settle()
        group.advance(30.0)
        assert leaderships(group) == [leader]
        for name in group.up:
            known = group.member(name)
            assert known.leader is not None
            assert known.leader.address == group.member(leader).address
            assert len(known.members()) <= 5
        before = len(group.log)
        group.kill(leader, machine=True)  # nobody hears of it but by its silence
        successor = group.settle()
        group.advance(30.0)
        assert set(leaderships(group, before)) == {successor} == {group.settle()}


def test_whoever_comes_later_learns_who_leads_and_where() -> None:
    with group_of(10, "gossip", seed=5) as group:
        leader = group.settle()
        group.join("late")
        group.join("onlooker", observer=True)
        assert group.settle(steady=20.0) == leader
        for name in ("late", "onlooker"):
            known = group.member(name).leader
            assert known is not None
            assert known.address == group.member(leader).address
        assert leaderships(group) == [leader]


def test_a_hand_over_reaches_members_that_have_the_new_leader_not_in_view() -> None:
    with group_of(10, "gossip", seed=2) as group:
        leader = group.member(group.settle())
        group.advance(5.0)
        to = next(peer.name for peer in leader.members() if not peer.me)
        group.run(leader.transfer(to))
        assert group.settle(steady=20.0) == to
        assert leaderships(group) == [leader.name, to]


def test_both_sides_of_a_cut_have_one_leader_again_when_it_has_healed() -> None:
    with group_of(10, "gossip", seed=4) as group:
        group.settle()
        group.partition([f"m{i}" for i in range(5)], [f"m{i}" for i in range(5, 10)])
        group.advance(40.0)
        group.heal()
        group.settle(within=300.0, steady=30.0)


# Larger groups that lose every tenth datagram


def unreached(group: Group) -> int:
    """How many members are in somebody's view and have not shown there where they are."""
    hosts = [group.member(name).node for name in group.up]
    return sum(
        not host.address_validation.reached(member, endpoint)
        for host in hosts
        for member, endpoint in host.address_book.known.items()
    )


def suspected(group: Group) -> int:
    """How many members are taken for dead by somebody."""
    return sum(len(group.member(name).node.stack.membership.circle.suspects) for name in group.up)


def test_members_of_whom_there_is_no_news_are_reached_though_questions_are_lost() -> None:
    """Who could not be reached was suspected; a fifth of the questions, or answers, are lost."""
    with group_of(60, "gossip", view=8, loss=0.1, seed=1) as group:
        leader = group.settle()
        group.advance(20.0)
        assert unreached(group) <= 5  # of 480; there were 15 when each was asked once
        assert suspected(group) == 0  # and 4
        assert leaderships(group) == [leader]


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("members, view, rest", [(500, 8, 30.0), (50, 5, 600.0)])
def test_a_large_group_stays_with_its_leader_and_replaces_it_once(
    members: int, view: int, rest: float
) -> None:
    with group_of(members, "gossip", view=view, loss=0.1, seed=1, most_callbacks=10**9) as group:
        leader = group.settle()
        before = len(group.log)
        group.advance(rest)
        assert group.log[before:] == []  # nobody held another one, or none
        group.kill(leader, machine=True)
        successor = group.settle(within=120.0, steady=20.0)
        assert leaderships(group, before) == [successor]


# On sockets


def test_ten_members_on_sockets_settle_and_replace_a_leader_that_ended() -> None:
    async def story() -> None:
        options: dict[str, Any] = {"protocol": "probabilistic", "multicast": "gossip", **PARTIAL}
        async with Crowd(**options) as crowd:
            for number in range(10):
                await crowd.add(f"m{number}")
            leader = await crowd.agreed(within=60.0)
            await leader.kill()
            successor = await crowd.agreed(within=60.0)
            assert successor is not leader
            assert all(len(each.members()) <= 5 for each in crowd.open())

    run(story())
