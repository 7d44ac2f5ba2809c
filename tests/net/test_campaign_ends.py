"""How campaigns begin and end where their own bodies, or somebody's impatience, have a part."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack, suppress

import pytest

import hustings
from hustings.net.member import Member
from hustings.testing import Group
from tests.net.kit.crowd import Crowd, dropped, endpoint
from tests.net.kit.loops import run, until


async def leading_pair(crowd: Crowd) -> tuple[Member, Member]:
    """Two members: the leader and the other one."""
    await crowd.add_all(["a", "b"])
    await crowd.known(2)
    leader = await crowd.seated()
    return leader, next(each for each in crowd.open() if each is not leader)


# Bodies that give up their office


async def give_up(member: Member, how: str, to: Member) -> None:
    """Resign, or hand over."""
    await (member.resign() if how == "resign" else member.transfer(to.name))


@pytest.mark.parametrize("how", ["resign", "transfer"])
@pytest.mark.parametrize("protocol", ["le-s", "bully"])
def test_a_body_may_give_up_its_office_as_its_last_act(protocol: str, how: str) -> None:
    async def story() -> None:
        async with Crowd(protocol=protocol) as crowd:
            leader, other = await leading_pair(crowd)

            async def work() -> str:
                async with leader.campaign() as term:
                    await give_up(leader, how, other)
                    assert term.lost.is_set()
                await asyncio.sleep(0)  # nothing is left over that would hit this
                await asyncio.sleep(0.05)
                return "went on"

            task = asyncio.create_task(work())
            assert await task == "went on"
            assert task.cancelling() == 0
            assert not leader.campaigns
            assert await crowd.agreed() is other

    run(story())


@pytest.mark.parametrize("how", ["resign", "transfer"])
def test_a_body_that_goes_on_after_giving_up_its_office_is_ended(how: str) -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            leader, other = await leading_pair(crowd)

            async def campaign() -> None:
                async with leader.campaign():
                    await give_up(leader, how, other)
                    await asyncio.Event().wait()

            async def work() -> str:
                with pytest.raises(hustings.LeadershipLost):
                    await campaign()
                await asyncio.sleep(0.05)
                return "went on"

            task = asyncio.create_task(work())
            assert await task == "went on"
            assert task.cancelling() == 0
            assert await crowd.agreed() is other

    run(story())


# Leaving in a hurry


def test_leaving_that_is_cancelled_closes_the_member_all_the_same() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            member = await crowd.add("a")
            address = member.address
            running = asyncio.Event()

            async def work() -> None:
                with suppress(hustings.LeadershipLost):
                    async with member.campaign(drain=30):
                        running.set()
                        await asyncio.Event().wait()

            task = asyncio.create_task(work())
            await running.wait()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await member.leave()
            assert member.closed
            assert not member.is_leader
            async with asyncio.timeout(2):
                await task
            again = await crowd.add("a", bind=address)  # so nothing of it is open
            assert again.address == address

    run(story())


# Not before one is sure


def steady_of(protocol: str, **settings: int) -> tuple[float, float]:
    """How long a member of a protocol must lead, and how long it did before its campaign began."""
    with Group(seed=3, protocol=protocol, settings=settings) as group:
        member = group.join("a")

        async def work() -> float:
            async with member.campaign():
                return group.now

        entered = group.run(group.spawn("a", work()))
        led = next(at for at, _, state in group.log if state.leading)
        return member.steady, entered - led


def test_a_campaign_begins_only_after_a_while_where_several_announce_themselves() -> None:
    steady, waited = steady_of("le-s", leaders=2)
    assert steady > 0.0
    assert waited == pytest.approx(steady)


@pytest.mark.parametrize("protocol", ["bully", "le-s"])
def test_elsewhere_it_begins_at_once(protocol: str) -> None:
    """One that announces itself leads only when no better one has spoken: test_failover_once.py."""
    assert steady_of(protocol) == (0.0, 0.0)


def test_a_campaign_begins_with_a_hand_over_and_ends_with_the_next() -> None:
    with Group(seed=3, protocol="le-s") as group:
        for name in ("a", "b"):
            group.join(name)
        first = group.settle(steady=1.0)
        second = "b" if first == "a" else "a"
        told: list[str] = []

        async def work() -> None:
            with suppress(hustings.LeadershipLost):
                async with group.member(second).campaign():
                    told.append("begun")
                    await asyncio.Event().wait()
            told.append("over")

        group.spawn(second, work())
        group.advance(2.0)
        assert told == []
        group.run(group.member(first).transfer(second))
        group.settle()
        assert (group.leaders, told) == ([second], ["begun"])
        group.run(group.member(second).transfer(first))
        group.advance(2.0)
        assert (group.leaders, told) == ([first], ["begun", "over"])


# Streams


def is_open(stream: socket.socket) -> bool:
    """Whether the other end has not hung up."""
    try:
        return stream.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


def connect(streams: list[socket.socket], to: Member) -> None:
    """All at once, without a word."""
    for stream in streams:
        stream.setblocking(False)
        with suppress(BlockingIOError):
            stream.connect(endpoint(to))


def test_the_limit_of_connections_holds_in_a_burst() -> None:
    most, burst = 8, 60

    async def story() -> None:
        async with Crowd(limits={"connections": most}) as crowd:
            member = await crowd.add("a")
            with ExitStack() as opened:
                streams: list[socket.socket] = []

                def remaining() -> int:
                    return sum(map(is_open, streams))

                for _ in range(2):
                    new = [opened.enter_context(socket.socket()) for _ in range(burst)]
                    connect(new, member)
                    streams.extend(new)
                    await until(
                        lambda: dropped(member, "connections") == len(streams) - most,
                        lambda: str(member.metrics().drops),
                    )
                    await until(
                        lambda: remaining() == most,
                        lambda: f"{remaining()} are open",
                        within=2.0,  # less than it takes to hang up on who says nothing
                    )
            assert not member.closed

    run(story())
