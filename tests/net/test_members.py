"""What an owner does with a member: observe, elect, resign, stand, transfer, update, leave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from itertools import pairwise

import pytest

import hustings
from hustings.net.member import Member
from hustings.net.member_state import Leadership
from tests.net.kit.crowd import Crowd, one_leader
from tests.net.kit.loops import background, run, throughout, until

three_kinds = pytest.mark.parametrize("protocol", ["le-s", "bully", "probabilistic"])


def others(crowd: Crowd, leader: Member) -> list[Member]:
    return [each for each in crowd.open() if each is not leader]


def test_observing_begins_with_the_present_and_brings_each_change_in_order() -> None:
    async def story() -> None:
        async with Crowd(protocol="bully") as crowd:
            await crowd.add_all(["a", "b", "c"])
            await crowd.known(3)
            first = await crowd.agreed()
            watcher = others(crowd, first)[0]
            seen: list[Leadership] = []

            async def watch() -> None:
                async for state in watcher.observe():
                    seen.append(state)

            async with background(watch()) as (task,):
                await until(lambda: seen, "the present state")
                assert seen[0].leader is not None
                assert seen[0].leader.name == first.name
                leader = first
                for _ in range(4):
                    heir = next(each for each in others(crowd, leader))
                    await leader.transfer(heir.name)
                    leader = await crowd.agreed(but=leader.name)
                await until(lambda: seen[-1] == watcher.state, "the newest state")
                terms = [state.term for state in seen]
                assert terms == sorted(terms)
                assert all(a != b for a, b in pairwise(seen))
                await watcher.leave()
                await until(task.done, "observing ends with the member")
            assert (seen[-1].leader, seen[-1].reason) == (None, "left")

    run(story())


def test_who_reads_slowly_sees_the_newest_only() -> None:
    async def story() -> None:
        async with Crowd(protocol="bully") as crowd:
            await crowd.add_all(["a", "b"])
            await crowd.known(2)
            leader = await crowd.agreed()
            states = leader.observe()
            assert (await anext(states)).leading
            other = others(crowd, leader)[0]
            await leader.transfer(other.name)
            await crowd.agreed(but=leader.name)
            await other.transfer(leader.name)
            assert await crowd.agreed(but=other.name) is leader
            state = await anext(states)
            assert state == leader.state
            assert state.leading
            assert isinstance(states, AsyncGenerator)
            await states.aclose()

    run(story())


def test_peers_carry_what_is_known_of_them() -> None:
    async def story() -> None:
        async with Crowd(protocol="bully") as crowd:
            await crowd.add("web-1", attributes={"cpu": 8})
            await crowd.add("web-2", attributes={"cpu": 4, "disk": 1.5})
            await crowd.add("eyes", observer=True)
            await crowd.known(3)
            leader = await crowd.agreed(among=[crowd.named("web-1"), crowd.named("web-2")])
            for member in crowd.open():
                peers = member.members()
                assert [peer.name for peer in peers] == ["eyes", "web-1", "web-2"]
                assert [peer.observer for peer in peers] == [True, False, False]
                assert [peer.attributes for peer in peers] == [
                    {},
                    {"cpu": 8.0},
                    {"cpu": 4.0, "disk": 1.5},
                ]
                assert [peer.name for peer in peers if peer.me] == [member.name]
                assert [peer.address for peer in peers] == [
                    crowd.named(peer.name).address for peer in peers
                ]

            def marked() -> bool:
                names = [
                    [peer.name for peer in each.members() if peer.leader] for each in crowd.open()
                ]
                return names == [[leader.name]] * 3

            await until(marked, "everybody marks the leader, the observer too")

    run(story())


@three_kinds
def test_transfer_makes_the_named_member_the_leader_and_it_stays(protocol: str) -> None:
    async def story() -> None:
        async with Crowd(protocol=protocol) as crowd:
            await crowd.add_all(["a", "b", "c", "d"])
            await crowd.known(4)
            leader = await crowd.agreed()
            for heir in others(crowd, leader):
                before = leader.term
                await leader.transfer(heir.name)
                assert await crowd.agreed() is heir
                assert heir.term > before
                leader = heir
            await throughout(1.0, lambda: one_leader(crowd.open()) is leader, "it stays")

    run(story())


def test_transfer_refuses_what_cannot_be() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            await crowd.add_all(["a", "b"])
            await crowd.add("eyes", observer=True)
            await crowd.known(3)
            leader = await crowd.agreed(among=crowd.open()[:2])
            other = next(each for each in crowd.open()[:2] if each is not leader)
            with pytest.raises(hustings.BadInput, match="'nobody'"):
                await leader.transfer("nobody")
            with pytest.raises(hustings.BadInput, match="is this member itself"):
                await leader.transfer(leader.name)
            with pytest.raises(hustings.BadInput, match="only observes"):
                await leader.transfer("eyes")
            with pytest.raises(hustings.NotLeader, match="does not lead"):
                await other.transfer(leader.name)
            with pytest.raises(hustings.NotLeader):
                await crowd.named("eyes").transfer("a")
            assert leader.is_leader

    run(story())


@three_kinds
def test_who_resigned_is_chosen_again_only_if_nobody_else_is_there(protocol: str) -> None:
    async def story() -> None:
        async with Crowd(protocol=protocol) as crowd:
            await crowd.add_all(["a", "b", "c"])
            await crowd.known(3)
            first = await crowd.agreed()
            await first.resign()
            second = await crowd.agreed(but=first.name)
            await second.elect()
            await throughout(0.3, lambda: not first.is_leader, "it stands back in elections")
            third = (await crowd.agreed(but=first.name)).name
            await crowd.named(third).kill()
            last = await crowd.agreed(but=third)
            assert last is not first
            await last.kill()
            assert await crowd.agreed(but=last.name) is first, "nobody else is there"

    run(story())


def test_who_stands_again_after_resigning_is_eligible() -> None:
    async def story() -> None:
        async with Crowd(protocol="bully") as crowd:
            await crowd.add_all(["a", "b", "c"])
            await crowd.known(3)
            first = await crowd.agreed()
            await first.resign()
            second = await crowd.agreed(but=first.name)
            await first.stand()
            await throughout(0.2, lambda: second.is_leader, "nobody is displaced")
            await second.transfer(first.name)
            assert await crowd.agreed() is first

    run(story())


def test_resigning_alone_leaves_nobody_until_it_stands_or_somebody_comes() -> None:
    async def story() -> None:
        async with Crowd(protocol="bully") as crowd:
            member = await crowd.add("a")
            await until(lambda: member.is_leader, "alone it leads")
            await member.resign()
            await until(lambda: not member.is_leader, "nobody leads")
            assert member.state.reason == "resigned"
            await throughout(0.5, lambda: not member.is_leader, "it stands back")
            newcomer = await crowd.add("b")
            assert await crowd.agreed() is newcomer
            await newcomer.kill()
            await member.stand()
            await until(lambda: member.is_leader, "it leads again")

    run(story())


def test_calling_an_election_ends_with_one_leader() -> None:
    async def story() -> None:
        async with Crowd(protocol="bully") as crowd:
            members = await crowd.add_all(["a", "b", "c", "d"])
            await crowd.known(4)
            await crowd.agreed()
            await asyncio.gather(*(each.elect() for each in members))
            await crowd.agreed()

    run(story())


def test_an_observer_knows_the_leader_and_never_leads() -> None:
    async def story() -> None:
        async with Crowd(protocol="bully") as crowd:
            eyes = await crowd.add("eyes", observer=True)
            await throughout(0.5, lambda: not eyes.is_leader, "it never leads, even alone")
            voters = await crowd.add_all(["a", "b"])
            leader = await crowd.agreed(among=voters)
            await until(lambda: eyes.leader and eyes.leader.name == leader.name, "it knows")
            await eyes.elect()
            await leader.kill()
            other = next(each for each in voters if each is not leader)
            await until(lambda: eyes.leader and eyes.leader.name == other.name, "it learns")
            await other.kill()
            await until(lambda: eyes.leader is None, "and knows when there is none", within=20)
            assert not eyes.is_leader

    run(story())


def test_attributes_that_are_updated_reach_everybody() -> None:
    async def story() -> None:
        async with Crowd(protocol="bully", choice="highest:cpu") as crowd:
            await crowd.add("a", attributes={"cpu": 1})
            await crowd.add("b", attributes={"cpu": 2, "disk": 7})
            await crowd.known(2)
            a, b = crowd.members
            await a.update({"cpu": 9})
            await until(
                lambda: (
                    {peer.name: peer.attributes for peer in b.members()}
                    == {"a": {"cpu": 9.0}, "b": {"cpu": 2.0, "disk": 7.0}}
                ),
                lambda: str(b.members()),
            )
            with pytest.raises(hustings.BadInput, match="finite"):
                await a.update({"cpu": float("inf")})
            with pytest.raises(hustings.BadInput, match="are taken"):
                await a.update({"~standing": -2})
            await crowd.agreed()

    run(story())


def test_an_observer_that_changes_its_attributes_remains_one() -> None:
    async def story() -> None:
        async with Crowd(protocol="bully") as crowd:
            await crowd.add("a")
            eyes = await crowd.add("eyes", observer=True)
            await crowd.known(2)
            a = crowd.members[0]
            await eyes.update({"disk": 7})
            await until(
                lambda: (
                    [peer.attributes for peer in a.members() if peer.name == "eyes"]
                    == [{"disk": 7.0}]
                ),
                lambda: str(a.members()),
            )
            assert [peer.name for peer in a.members() if peer.observer] == ["eyes"]
            assert list(a.node.leadership.electors.view) == [a.id]

    run(story())


def test_the_better_member_takes_over_when_it_has_been_up_so_long() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        async with Crowd(protocol="bully", choice="highest:cpu", preempt_after="500ms") as crowd:
            weak = await crowd.add("weak", attributes={"cpu": 1})
            assert await crowd.seated() is weak, "alone it leads"
            began = loop.time()
            strong = await crowd.add("strong", attributes={"cpu": 2})
            await crowd.known(2)
            assert await crowd.agreed() is weak, "not at once"
            await until(lambda: one_leader(crowd.open()) is strong, "but later")
            assert loop.time() - began > 0.45

    run(story())


@pytest.mark.parametrize("preempt", [False, True])
@pytest.mark.parametrize("protocol", ["bully", "bully-map", "ring", "le-s", "stable"])
def test_with_the_word_a_better_member_displaces_the_leader(protocol: str, preempt: bool) -> None:
    """One that joins, and one that led, ended and returns; never where the paper has it not so."""
    taken = preempt and protocol != "stable"

    async def story() -> None:
        options = {"choice": "highest:cpu", "preempt": preempt}
        async with Crowd(protocol=protocol, **options) as crowd:
            weak = await crowd.add("weak", attributes={"cpu": 1})
            await until(lambda: weak.is_leader, "alone it leads")
            if not preempt:
                await crowd.seated()
            strong = await crowd.add("strong", attributes={"cpu": 2})
            await crowd.known(2)
            if not taken:
                await crowd.agreed()
                await throughout(1.0, lambda: weak.is_leader, "it is not displaced")
                return
            await until(lambda: one_leader(crowd.open()) is strong, "the better one leads")
            await strong.kill()
            await until(lambda: weak.is_leader, "the other one leads")
            back = await crowd.add("strong", attributes={"cpu": 2})
            await until(lambda: one_leader(crowd.open()) is back, "it leads again")

    run(story())


@three_kinds
def test_leaving_hands_over_within_moments(protocol: str) -> None:
    async def story() -> None:
        async with Crowd(protocol=protocol) as crowd:
            await crowd.add_all(["a", "b", "c"])
            await crowd.known(3)
            leader = await crowd.agreed()
            await leader.leave()
            await crowd.agreed(but=leader.name, within=1.0)
            await until(
                lambda: all(len(each.members()) == 2 for each in crowd.open()),
                "who left is forgotten at once",
                within=1.0,
            )

    run(story())


def test_metrics_count_what_happened() -> None:
    async def story() -> None:
        async with Crowd(protocol="bully") as crowd:
            await crowd.add_all(["a", "b"])
            await crowd.known(2)
            leader = await crowd.agreed()
            other = others(crowd, leader)[0]
            before = other.metrics()
            assert (before.is_leader, before.members, before.leader_changes) == (False, 2, 1)
            await leader.kill()
            assert await crowd.agreed() is other
            after = other.metrics()
            assert after.is_leader
            assert after.term == other.term > before.term
            assert after.leader_changes == 2
            assert after.election_count == len(after.election_durations) == 2
            assert after.leaderless_seconds >= after.election_seconds > 0
            assert after.frames_sent > 0 < after.frames_received
            assert after.bytes_sent > 40 * after.frames_sent
            assert sum(after.messages_received.values()) <= after.frames_received
            assert after.health >= 1.0
            await other.kill()

    run(story())
