"""The ways that messages take: IPv6, IP multicast, epidemics; and networks that go wrong."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

import pytest

import hustings
from hustings.net.addresses import Address
from hustings.net.limits import Counters, Limits
from hustings.net.udp import open_udp, resolve
from tests.net.kit.crowd import Crowd, cut, endpoint, faults, heal
from tests.net.kit.loops import run, until
from tests.net.kit.ports import free_port

NAMES = ["a", "b", "c", "d", "e"]
# Every change is tried with two families, `make soak` with the third as well.
LARGE = pytest.param("probabilistic", marks=pytest.mark.soak)
three_kinds = pytest.mark.parametrize("protocol", ["le-s", "bully", LARGE])


async def loses_and_re_elects(crowd: Crowd, count: int) -> None:
    """A group that is complete elects, loses its leader and elects again."""
    await crowd.known(count)
    leader = await crowd.agreed()
    await leader.kill()
    await crowd.agreed(but=leader.name)


@three_kinds
def test_ipv6(protocol: str) -> None:
    async def story() -> None:
        async with Crowd(protocol=protocol, bind="[::1]:0") as crowd:
            await crowd.add_all(NAMES[:3])
            assert all(each.address.startswith("[::1]:") for each in crowd.open())
            await loses_and_re_elects(crowd, 3)

    run(story())


def test_all_addresses_of_both_families_at_once() -> None:
    """A member that listens everywhere is reached under its IPv4 number as under its IPv6 one."""

    async def story() -> None:
        async with Crowd(insecure=True) as crowd:
            await crowd.add("a", bind="[::]:0", advertise="127.0.0.1:0")
            await crowd.add("b", bind="127.0.0.1:0")
            await loses_and_re_elects(crowd, 2)

    run(story())


@three_kinds
def test_ip_multicast_on_one_machine(protocol: str) -> None:
    async def story() -> None:
        way = f"ip:239.77.{free_port() % 250}.7:{free_port()}"
        async with Crowd(protocol=protocol, multicast=way) as crowd:
            await crowd.add("a", seeds=[])
            await crowd.add_all(NAMES[1:3])
            await loses_and_re_elects(crowd, 3)
            packets = [each.metrics() for each in crowd.open()]
            assert all(each.frames_received for each in packets)

    run(story())


@pytest.mark.parametrize(
    "bind, group, told",
    [
        ("[::1]:0", "239.1.2.3:7400", "needs an IPv4 address to be bound"),
        ("127.0.0.1:0", "[ff02::77]:7400", "needs an IPv6 address to be bound"),
        ("[::1]:0", "[ff02::77%nowhere]:7400", "interface 'nowhere', which this machine has not"),
    ],
)
def test_a_multicast_group_that_cannot_be_joined(bind: str, group: str, told: str) -> None:
    async def story() -> None:
        with pytest.raises(hustings.BadInput, match=told):
            await hustings.join("group", bind=bind, multicast=f"ip:{group}").open()

    run(story())


def test_with_ip_multicast_no_seeds_are_needed() -> None:
    async def story() -> None:
        way = f"ip:239.77.{free_port() % 250}.8:{free_port()}"
        async with Crowd(protocol="le-s", multicast=way, seeds=[]) as crowd:
            await crowd.add_all(NAMES[:3])
            await crowd.known(3)
            await crowd.agreed()

    run(story())


@three_kinds
@pytest.mark.parametrize("multicast", ["bimodal", "gossip"])
def test_epidemic_multicast(protocol: str, multicast: str) -> None:
    async def story() -> None:
        async with Crowd(protocol=protocol, multicast=multicast) as crowd:
            await crowd.add_all(NAMES)
            await loses_and_re_elects(crowd, 5)

    run(story())


@three_kinds
def test_bind_and_advertised_address_may_differ(protocol: str) -> None:
    async def story() -> None:
        async with Crowd(protocol=protocol, insecure=True) as crowd:
            for name in NAMES[:3]:
                await crowd.add(name, bind="0.0.0.0:0", advertise="127.0.0.1:0")
            assert all(each.address.startswith("127.0.0.1:") for each in crowd.open())
            await loses_and_re_elects(crowd, 3)

    run(story())


# Networks that go wrong


@three_kinds
@pytest.mark.parametrize(
    "wrong",
    [
        {"loss": 0.3},
        {"copies": 0.5},
        {"delay": 0.001, "jitter": 0.03},
        {"loss": 0.1, "copies": 0.2, "jitter": 0.02},
    ],
    ids=["30 % loss", "copies", "out of order", "all at once"],
)
def test_elects_and_re_elects_in_bad_weather(protocol: str, wrong: dict[str, float]) -> None:
    async def story() -> None:
        async with Crowd(protocol=protocol) as crowd:
            for name in NAMES:
                member = await crowd.add(name)
                for what, value in wrong.items():
                    setattr(faults(member), what, value)
            await crowd.known(5, within=20)
            leader = await crowd.agreed(within=20)
            await leader.kill()
            await crowd.agreed(but=leader.name, within=20)
            assert all(each.error is None for each in crowd.open())

    run(story())


@three_kinds
def test_a_leader_that_hears_nobody_is_followed_no_longer_than_it_is_heard(protocol: str) -> None:
    """A one-way cut: the leader's messages arrive nowhere, those of the others reach it."""

    async def story() -> None:
        async with Crowd(protocol=protocol) as crowd:
            members = await crowd.add_all(NAMES)
            await crowd.known(5)
            leader = await crowd.agreed()
            others = [each for each in members if each is not leader]
            faults(leader).cut(map(endpoint, others), by=False)
            for other in others:
                faults(other).cut([endpoint(leader)], to=False)
            await crowd.agreed(but=leader.name, among=others, within=20)
            heal(members)
            await crowd.known(5, within=30)
            await crowd.agreed(within=30)

    run(story())


@three_kinds
def test_a_deaf_leader_leaves_one_leader_in_the_end(protocol: str) -> None:
    """The other way round: the leader is heard and hears nothing."""

    async def story() -> None:
        async with Crowd(protocol=protocol) as crowd:
            members = await crowd.add_all(NAMES)
            await crowd.known(5)
            leader = await crowd.agreed()
            others = [each for each in members if each is not leader]
            faults(leader).cut(map(endpoint, others), to=False)
            for other in others:
                faults(other).cut([endpoint(leader)], by=False)
            await asyncio.sleep(1)  # it may go on or not; what counts is what comes of it
            heal(members)
            await crowd.known(5, within=30)
            await crowd.agreed(within=30)

    run(story())


def test_a_cut_into_single_members_heals_into_one_group() -> None:
    async def story() -> None:
        async with Crowd(protocol="bully") as crowd:
            members = await crowd.add_all(NAMES)
            await crowd.known(5)
            await crowd.agreed()
            for member in members:
                cut([member], [each for each in members if each is not member])
            await until(
                lambda: all(each.is_leader for each in members), "each alone leads", within=20
            )
            heal(members)
            await crowd.known(5, within=30)
            await crowd.settled()

    run(story())


# The port itself


def test_a_port_binds_datagrams_and_streams_at_one_number() -> None:
    async def story() -> None:
        wanted = free_port()
        port = await open_udp(Address("127.0.0.1", wanted))
        try:
            host, number = port.endpoint
            assert (host, number, port.reaches_all) == ("127.0.0.1", wanted, False)
            _, writer = await asyncio.open_connection(host, number)
            writer.close()
            with pytest.raises(hustings.BadInput, match="is in use by another process"):
                await open_udp(Address(host, number))
        finally:
            await port.close()
        await port.close()
        again = await open_udp(Address(host, number))
        await again.close()

    run(story())


@pytest.mark.parametrize("turns", range(6))
def test_a_stream_that_arrives_while_a_port_closes_is_closed_too(turns: int) -> None:
    async def story() -> None:
        port = await open_udp(Address("127.0.0.1", 0))
        with socket.create_connection(port.endpoint, timeout=5) as stranger:
            stranger.setblocking(False)
            for _ in range(turns):
                await asyncio.sleep(0)
            await port.close()
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(2):
                with suppress(ConnectionError):  # reset: closed before it was accepted
                    assert await loop.sock_recv(stranger, 1) == b""

    run(story())


def test_a_full_outbox_is_counted() -> None:
    async def story() -> None:
        counters = Counters()
        port = await open_udp(Address("127.0.0.1", 0), Limits(outbox=3), counters)
        try:
            for _ in range(5):
                port._queue(("127.0.0.1", 9), b"data")
            assert counters.mapping()["outbox"] == 2
        finally:
            await port.close()

    run(story())


def test_a_refused_datagram_is_told_with_its_address() -> None:
    async def story() -> None:
        class Listener:
            def __init__(self) -> None:
                self.refusals: list[tuple[str, int]] = []

            def datagram(self, data: bytes, source: tuple[str, int]) -> None:
                raise AssertionError("nobody speaks")

            def frame(self, data: bytes, source: tuple[str, int], direction: object) -> bool:
                raise AssertionError("nobody speaks")

            def head(self, data: bytes, source: tuple[str, int]) -> bool:
                raise AssertionError("nobody speaks")

            def refused(self, to: tuple[str, int]) -> None:
                self.refusals.append(to)

        for address in ("127.0.0.1", "::1"):
            port = await open_udp(Address(address, 0))
            gone = await open_udp(Address(address, 0))
            nobody = gone.endpoint
            await gone.close()
            listener = Listener()
            port.attach(b"tag!", listener)
            try:
                port.send(nobody, b"hello")
                heard = await until(listener.refusals.copy, "the kernel says so")
                assert heard[0] == nobody
            finally:
                await port.close()

    run(story())


def test_names_are_resolved_and_unknown_ones_are_nobody() -> None:
    async def story() -> None:
        assert ("127.0.0.1", 7400) in await resolve(Address("localhost", 7400))
        assert await resolve(Address("nowhere.invalid", 7400)) == []
        assert await resolve(Address("192.0.2.7", 7400)) == [("192.0.2.7", 7400)]
        with pytest.raises(hustings.BadInput, match="cannot be resolved"):
            await open_udp(Address("nowhere.invalid", 0))

    run(story())


def test_a_name_with_several_numbers_gives_seeds_of_both_families() -> None:
    """`localhost` is ::1 and 127.0.0.1 on many machines: a member is found behind either."""

    async def story() -> None:
        async with Crowd(protocol="bully") as crowd:
            first = await crowd.add("a", bind="127.0.0.1:0")
            port = endpoint(first)[1]
            await crowd.add("b", seeds=[f"localhost:{port}"])
            await crowd.known(2)
            await crowd.agreed()

    run(story())
