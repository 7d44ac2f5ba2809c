"""`transfer` says what became of it: the successor leads, or who does instead."""

from __future__ import annotations

from pathlib import Path

import pytest

import hustings
from hustings.core.choice import candidate
from hustings.core.context import Context
from hustings.layers.gossip.messages import Entry, GossipMsg
from hustings.net.peer_addresses import Place
from hustings.net.state_file import StateFile
from hustings.net.validation import bounds
from hustings.testing import Group
from tests.net.kit.crowd import Crowd
from tests.net.kit.loops import run, until
from tests.net.kit.ports import free_port

PROTOCOLS = ["le-s", "bully", "ring", "probabilistic"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_when_it_returns_the_successor_leads(protocol: str) -> None:
    with Group(seed=1, protocol=protocol) as group:
        for name in ("a", "b", "c"):
            group.join(name)
        leader = group.settle(steady=1.0)
        heir = next(name for name in group.up if name != leader)
        group.run(group.member(leader).transfer(heir))
        assert group.member(heir).is_leader
        assert not group.member(leader).is_leader


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_successor_that_hears_nothing_has_not_taken_over(protocol: str) -> None:
    with Group(seed=1, protocol=protocol) as group:
        for name in ("a", "b", "c"):
            group.join(name)
        leader = group.settle(steady=1.0)
        heir = next(name for name in group.up if name != leader)
        group.cut(leader, heir)
        group.cut(heir, leader)
        with pytest.raises(hustings.NotTakenOver, match=rf"{heir!r} has not taken over .* within"):
            group.run(group.member(leader).transfer(heir, within=0.2))
        group.heal()
        group.settle(steady=1.0, within=60)
        assert len(group.leaders) == 1


def test_a_successor_that_is_paused_has_not_taken_over() -> None:
    with Group(seed=1) as group:
        for name in ("a", "b", "c"):
            group.join(name)
        leader = group.settle(steady=1.0)
        heir = next(name for name in group.up if name != leader)
        group.pause(heir)
        with pytest.raises(hustings.NotTakenOver):
            group.run(group.member(leader).transfer(heir))
        group.resume(heir)
        group.settle(steady=1.0, within=60)
        assert len(group.leaders) == 1


def test_with_a_guard_it_is_the_confirmation_that_counts(tmp_path: Path) -> None:
    with Group(seed=1, guard="quorum://a,b,c", ttl=2.0) as group:
        for name in ("a", "b", "c"):
            group.join(name, state=tmp_path)
        leader = group.settle(steady=1.0)
        heir = next(name for name in group.up if name != leader)
        group.run(group.member(leader).transfer(heir))
        assert group.member(heir).is_leader
        assert group.member(leader).leader is not None
        assert group.member(leader).state.token == group.member(heir).state.token


def test_a_campaign_that_hands_over_itself_is_not_kept_waiting(tmp_path: Path) -> None:
    with Group(seed=1, guard="quorum://a,b,c", ttl=2.0) as group:
        for name in ("a", "b", "c"):
            group.join(name, state=tmp_path)
        leader = group.settle(steady=1.0)
        heir = next(name for name in group.up if name != leader)
        member = group.member(leader)

        async def work() -> float:
            began = member.clock()
            try:
                async with member.campaign():
                    await member.transfer(heir)
            except hustings.LeadershipLost:
                pass
            return member.clock() - began

        assert group.run(work()) < 1.0
        assert group.settle(steady=1.0) == heir


# A store that was poisoned


@pytest.mark.parametrize(
    "name, value",
    [("term", 2**63 - 1), ("term", 2**62), ("epoch", 2**53), ("sequence", 2**48), ("token", 2**62)],
)
def test_a_poisoned_store_is_refused_with_a_way_out(tmp_path: Path, name: str, value: int) -> None:
    with Group(seed=1, protocol="bully") as group:
        member = group.join("a", state=tmp_path)
        group.kill("a")
        group.advance(0.1)
        (path,) = tmp_path.glob("*.state")
        with StateFile(path, "test", member.id) as state:
            state.persist({name: value})
        with pytest.raises(hustings.BadInput, match=rf"{name} {value}.* move the file away"):
            group.restart("a")
        path.rename(tmp_path / "poisoned")
        group.restart("a")
        assert group.settle() == "a"


def test_a_term_that_is_within_the_bounds_is_no_poison(tmp_path: Path) -> None:
    with Group(seed=1, protocol="bully") as group:
        member = group.join("a", state=tmp_path)
        group.kill("a")
        group.advance(0.1)
        (path,) = tmp_path.glob("*.state")
        with StateFile(path, "test", member.id) as state:
            state.persist({"term": bounds(0.0, 1).jump})
        group.restart("a")
        group.join("b", state=tmp_path)
        assert group.member(group.settle(steady=1.0)).term > bounds(0.0, 1).jump


def test_a_leader_that_leaves_does_not_hand_over_to_one_of_which_it_has_only_been_told() -> None:
    """A newcomer that missed the goodbye of a member tells others of it: nobody answers there."""

    async def story() -> None:
        async with Crowd() as crowd:
            await crowd.add_all(["a", "b", "c"])
            leader = await crowd.agreed()
            others = [each for each in crowd.open() if each is not leader]
            node = leader.node
            await until(lambda: all(node.address_validation.met(each.id) for each in others), "met")
            ghost = candidate(max(each.id for each in crowd.members) + 1)
            place = Place(("127.0.0.1", free_port()), "ghost").text()
            entry = Entry(ghost, others[0].node.filter.wire.incarnation, 1, place)
            gossip = GossipMsg((entry,), 0, (), None, False, 0)
            membership = node.stack.membership

            def tell(ctx: Context) -> None:
                membership.on_news(ctx, others[0].id, gossip)

            node.runner.run(tell)
            assert ghost.id in membership.view
            await leader.leave()
            await until(lambda: any(each.is_leader for each in others), "another one leads")
            assert [each.handed for each in others].count(True) == 1

    run(story())
