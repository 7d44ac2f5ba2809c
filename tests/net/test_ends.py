"""The ends of others: dead ones are noticed at once, living ones are not talked to death.

And whoever moved, or is known under two addresses, is still one member.
"""

from __future__ import annotations

import asyncio
import socket

import pytest

from hustings.core.choice import Candidate
from hustings.layers.gossip.config import GossipConfig
from hustings.layers.gossip.membership import Membership
from hustings.layers.gossip.messages import Entry
from hustings.net.addresses import Address
from hustings.net.control_messages import ProcessEndedMsg
from hustings.net.member import Member
from hustings.net.node import MemberNode
from hustings.net.peer_addresses import AddressBook
from hustings.net.transport import Endpoint
from hustings.net.udp import resolve
from tests.net.kit.crowd import Crowd, endpoint, standing
from tests.net.kit.loops import run, throughout, until

AT_ONCE = 1.5  # seconds; by silence alone it takes gossip twice as long
PROTOCOLS = ("le-s", "bully")


async def quartet(crowd: Crowd) -> tuple[Member, list[Member]]:
    """Four members: the leader, past its probation, and the others."""
    await crowd.add_all(["a", "b", "c", "d"])
    await crowd.known(4)
    leader = await crowd.seated()
    return leader, [each for each in crowd.open() if each is not leader]


def opinions(crowd: Crowd) -> list[tuple[str | None, int, int]]:
    """Whom each member follows, in which term, and of how many."""
    return [
        (each.leader.name if each.leader else None, each.term, len(each.members()))
        for each in crowd.open()
    ]


async def unmoved(crowd: Crowd, seconds: float = 0.7) -> None:
    """Nobody changes its mind."""
    before = opinions(crowd)
    await throughout(seconds, lambda: opinions(crowd) == before, "somebody changed its mind")


def incarnation(member: Member) -> int:
    """Which of its lives a member lives."""
    return member.node.filter.wire.incarnation


# Living ones


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_refusals_that_somebody_forged_change_nothing(protocol: str) -> None:
    async def story() -> None:
        async with Crowd(protocol=protocol) as crowd:
            leader, (follower, *_) = await quartet(crowd)
            for _ in range(2):
                follower.node.refused(endpoint(leader))
            await unmoved(crowd)
            assert all(
                "PROCESS-ENDED" not in each.metrics().messages_received for each in crowd.open()
            )

    run(story())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_who_is_said_to_be_gone_and_is_not_stays(protocol: str) -> None:
    async def story() -> None:
        async with Crowd(protocol=protocol) as crowd:
            leader, (liar, *others) = await quartet(crowd)
            about = others[0]
            liar.node.transmit(None, ProcessEndedMsg(leader.id, incarnation(leader)))
            liar.node.transmit(None, ProcessEndedMsg(about.id, incarnation(about)))
            await unmoved(crowd)
            assert all(each.metrics().messages_received["PROCESS-ENDED"] == 2 for each in others)

    run(story())


# Dead ones


async def noticed_by_all(crowd: Crowd, dead: Member) -> None:
    """Everybody else knows at once that a member has ended."""
    await dead.kill()
    await until(
        lambda: all(
            dead.name not in [peer.name for peer in each.members()] for each in crowd.open()
        ),
        lambda: f"{dead.name} is gone; {standing(crowd.open())}",
        within=AT_ONCE,
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_leader_that_ends_is_noticed_by_its_closed_connections_alone(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemberNode, "refused", lambda host, to: None)

    async def story() -> None:
        async with Crowd(protocol=protocol) as crowd:
            leader, _ = await quartet(crowd)
            await noticed_by_all(crowd, leader)
            await crowd.agreed(but=leader.name, within=AT_ONCE)

    run(story())


def watching(crowd: Crowd, leader: Member) -> set[str]:
    """Who keeps a stream to the leader, or is about to."""
    return {each.name for each in crowd.open() if leader.id in each.node.crash_watch._watches}


def test_few_keep_streams_where_whoever_is_next_acts_first() -> None:
    async def watches(crowd: Crowd, heir: Member, leader: Member) -> None:
        await until(
            lambda: heir.name in watching(crowd, leader),
            lambda: f"{heir.name} watches {leader.name}",
        )

    async def story() -> None:
        async with Crowd(protocol="bully") as crowd:
            await crowd.add_all("abcdefghijklmnopqrst")
            await crowd.known(20)
            leader = await crowd.seated()
            ranking = leader.node.leadership.electors.view.ranking(leader.node.stack.choice).ids
            for place in (1, 2):  # the next one, and the one after it if that one stands back
                heir = next(each for each in crowd.open() if each.id == ranking[place])
                await watches(crowd, heir, leader)
                assert len(watching(crowd, leader)) < 19, "not all of them"
                await heir.resign()

    run(story())


@pytest.mark.parametrize(
    "bind",
    [{}, {"bind": "[::]:0", "advertise": "127.0.0.1:0", "insecure": True}],
    ids=["one family", "both families"],
)
def test_a_follower_that_ends_is_noticed_by_refusals_and_told(bind: dict[str, object]) -> None:
    async def story() -> None:
        async with Crowd(protocol="bully", **bind) as crowd:
            leader, (follower, *_) = await quartet(crowd)
            await noticed_by_all(crowd, follower)
            assert await crowd.agreed() is leader

    run(story())


# Other addresses


def test_an_address_book_follows_a_member_that_moved() -> None:
    membership = Membership(GossipConfig())
    membership.circle.begin(Entry(Candidate(1), 1, 0, "127.0.0.1:1 me"), 7)
    book = AddressBook(1, membership)
    old, new = ("192.0.2.1", 7400), ("192.0.2.2", 7400)
    membership.circle.hear([Entry(Candidate(2), 5, 0, "192.0.2.1:7400 other")], 0.0)
    assert (book.everybody(), book.endpoint(2), book.owner(old)) == ([old], old, 2)
    membership.circle.hear([Entry(Candidate(2), 6, 0, "192.0.2.2:7400 other")], 1.0)
    assert (book.everybody(), book.endpoint(2)) == ([new], new)
    assert (book.owner(old), book.owner(new)) == (None, 2)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_multicasts_reach_a_member_where_it_is_now(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its old address is silent, so nothing but what the member says of itself tells."""
    monkeypatch.setattr(MemberNode, "refused", lambda host, to: None)

    async def story() -> None:
        async with Crowd(protocol=protocol) as crowd:
            leader, (mover, *others) = await quartet(crowd)
            term, old = leader.term, endpoint(mover)
            await mover.kill()
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as hole:
                hole.bind(old)
                again = await crowd.add(mover.name)
                books = [each.node.address_book for each in (leader, *others)]
                await until(
                    lambda: all(endpoint(again) in book.everybody() for book in books),
                    "all multicast to the new address",
                    within=AT_ONCE,
                )
                assert not any(old in book.everybody() for book in books)
                await until(lambda: again.leader and again.leader.name == leader.name, "it follows")
                await unmoved(crowd)
                assert (leader.is_leader, leader.term) == (True, term)

    run(story())


def test_a_seed_known_under_another_address_is_not_approached_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hustings.net.discovery._COMPANY", 0.1)

    async def story() -> None:
        async with Crowd(insecure=True) as crowd:
            a = await crowd.add("a", bind="0.0.0.0:0", advertise="127.0.0.1:0", insecure=True)
            alias = f"127.0.0.2:{endpoint(a)[1]}"
            await crowd.add_all(["b", "c"], seeds=[alias])
            await crowd.known(3)
            await crowd.agreed()
            await asyncio.sleep(0.5)  # each asks once whether it knows who is there

            def asked() -> tuple[int, int]:
                figures = a.metrics()
                return figures.messages_received["JOIN"], figures.messages_sent["STATE-TRANSFER"]

            before = asked()
            await throughout(1.0, lambda: asked() == before, "a is asked to let in whom it knows")

    run(story())


def test_a_seed_whose_name_hangs_does_not_hold_up_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    async def slow(address: Address) -> list[Endpoint]:
        if address.ip is None:
            asked.append(address.host)
            await asyncio.sleep(60)
        return await resolve(address)

    monkeypatch.setattr("hustings.joining.resolve", slow)

    async def story() -> None:
        async with Crowd() as crowd:
            a = await crowd.add("a")
            await until(lambda: a.is_leader, "it leads alone")
            began = asyncio.get_running_loop().time()
            b = await crowd.add("b", seeds=["nowhere.example:7400", a.address])
            assert asyncio.get_running_loop().time() - began < 0.8, "it gave up on its seeds"
            assert [peer.name for peer in b.members()] == ["a", "b"]
            assert not b.is_leader
            assert asked == ["nowhere.example"]

    run(story())
