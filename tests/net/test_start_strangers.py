"""Strangers that speak to a member before its first election are no answer to it."""

from __future__ import annotations

import asyncio
import socket

import pytest

from hustings.core.choice import Candidate
from hustings.core.messages import Message, kind_of
from hustings.core.names import member_id
from hustings.layers.gossip.messages import Entry, JoinMsg
from hustings.layers.leadership.messages import LeaderInfoMsg
from hustings.net.control_messages import ProbeMsg, ProbeReplyMsg
from hustings.net.keys import new_key
from hustings.net.member import Member
from hustings.net.wire import Direction, Received
from hustings.protocols.bully import CoordinatorMsg, ElectionMsg
from tests.net.kit.crowd import Crowd, endpoint, gives, leads_not, note_of
from tests.net.kit.loops import run, until
from tests.net.kit.ports import free_address
from tests.net.kit.stranger import Tap, datagrams, forged, frame

KEY = new_key()


def test_what_a_stranger_says_or_plays_back_is_no_answer() -> None:
    """The recorded frames of a whole group, from its address, in a later start of one member."""

    async def story() -> None:
        async with Crowd(key=KEY, protocol="le-s") as crowd:
            a, b = await crowd.add_all("ab")
            await crowd.agreed()
            tap, place, own = Tap(b), endpoint(b), endpoint(a)

            def taped() -> list[bytes]:
                return [data for to, data in tap.sent if to == own]

            await until(lambda: len(taped()) > 5, "b speaks to a")
            recorded = taped()
            await a.kill()
            await b.kill()
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
                stranger.bind(place)
                adding = asyncio.create_task(
                    crowd.add("a", bind=f"{own[0]}:{own[1]}", seeds=[f"{place[0]}:{place[1]}"])
                )
                for _ in range(30):
                    for data in (*recorded, b"", b"H" * 40, b"x" * 1200):
                        stranger.sendto(data, own)
                    await asyncio.sleep(0.1)
                again = await adding
                assert sum(again.metrics().messages_received.values()) > 0, "some were read"
                assert again.leader is None
                assert again.state.reason.startswith("waiting for other members")

    run(story())


def test_its_own_frames_that_come_back_are_no_answer() -> None:
    """From the address of its seed, and from another address."""

    async def story() -> None:
        async with Crowd(key=KEY) as crowd:
            with datagrams() as mirror, datagrams() as beside:
                mirror.setblocking(False)
                loop = asyncio.get_running_loop()
                reflected = 0

                async def reflect() -> None:
                    nonlocal reflected
                    while True:
                        data, source = await loop.sock_recvfrom(mirror, 2048)
                        reflected += 1
                        mirror.sendto(data, source)
                        beside.sendto(data, source)

                reflecting = asyncio.create_task(reflect())
                host, port = mirror.getsockname()
                member = await crowd.add("a", seeds=[f"{host}:{port}"])
                await until(lambda: reflected > 3, "the mirror works")
                await until(lambda: note_of(member, "nobody leads here"), "why")
                await leads_not(member)
                reflecting.cancel()

    run(story())


def test_a_stranger_does_not_keep_members_from_electing() -> None:
    async def story() -> None:
        here, there = free_address(), free_address()
        async with Crowd(key=KEY) as crowd:
            with datagrams() as stranger:

                async def flood() -> None:
                    while True:
                        for each in (here, there):
                            host, _, port = each.partition(":")
                            for data in (b"", b"H\x02\x01" + bytes(60), b"x" * 1200):
                                stranger.sendto(data, (host, int(port)))
                        await asyncio.sleep(0.005)

                flooding = asyncio.create_task(flood())
                a = crowd.add("a", bind=here, seeds=[there])
                b = crowd.add("b", bind=there, seeds=[here])
                await asyncio.gather(a, b)
                await crowd.agreed()
                flooding.cancel()

    run(story())


class Liar:
    """A process that knows the key, and speaks and answers in the name of several members.

    If it `tells` something, it answers nothing: so does one that writes a false source address.
    """

    def __init__(self, like: Member, names: list[str], tells: Message | None = None) -> None:
        self._wires = {each: forged(like, member_id(each)) for each in names}
        self._victim = endpoint(like)
        self._tells = tells
        self.answered = 0

    async def answer(self) -> None:
        with datagrams() as self_socket:
            self_socket.setblocking(False)
            host, port = self_socket.getsockname()
            loop = asyncio.get_running_loop()
            period = 0
            while True:
                period += 1
                for name, wire in self._wires.items():
                    own = Entry(Candidate(member_id(name)), 1, period, f"{host}:{port} {name}")
                    hello = JoinMsg(own, to_all=False, asks=False)
                    self_socket.sendto(frame(wire, hello), self._victim)
                    if self._tells is not None:
                        self_socket.sendto(frame(wire, self._tells), self._victim)
                over = loop.time() + 0.2
                while loop.time() < over:
                    try:
                        data = self_socket.recv(2048)
                    except BlockingIOError:
                        await asyncio.sleep(0.01)
                        continue
                    for wire in () if self._tells else self._wires.values():
                        got = wire.read(data, Direction.DATAGRAM)
                        if isinstance(got, Received) and isinstance(got.message, ProbeMsg):
                            self.answered += 1
                            reply = frame(wire, ProbeReplyMsg(got.message.nonce))
                            self_socket.sendto(reply, self._victim)


def test_a_process_counts_once_under_however_many_names_it_answers() -> None:
    async def story() -> None:
        async with Crowd(insecure=True) as crowd:
            member = await crowd.add("a", seeds=[], expect=3)
            liar = Liar(member, ["b", "c", "d"])
            answering = asyncio.create_task(liar.answer())
            await until(
                lambda: (
                    sum(
                        member.node.address_validation.answered(member_id(each)) is not None
                        for each in "bcd"
                    )
                    == 3
                ),
                lambda: f"all three have answered: {liar.answered}",
            )
            await until(lambda: len(member.members()) == 4, "all three are known")
            await until(lambda: note_of(member, "3 members are in touch, 2 so far"), "")
            await leads_not(member)
            answering.cancel()

    run(story())


@pytest.mark.parametrize(
    "tells", [ElectionMsg(1), CoordinatorMsg(5), LeaderInfoMsg((member_id("b"),), 5)]
)
def test_an_election_of_one_that_does_not_answer_is_not_heard(tells: Message) -> None:
    """Of one that answers it would end the wait."""

    async def story() -> None:
        async with Crowd(insecure=True, protocol="bully") as crowd:
            member = await crowd.add("a", seeds=[free_address()])
            liar = Liar(member, ["b"], tells)
            lying = asyncio.create_task(liar.answer())
            await until(
                lambda: kind_of(tells) in member.metrics().messages_received, "its message is read"
            )
            await leads_not(member)
            assert member.leader is None
            assert len(member.members()) == 1, "nor is it in view"
            await gives(member, "b speaks from 127.0.0.1:")
            words = ("b speaks from", "and does not answer: it is not heard")
            await until(lambda: note_of(member, *words), "why")
            lying.cancel()

    run(story())


def test_another_program_at_the_address_of_a_seed_is_no_answer() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            with datagrams() as program:
                program.setblocking(False)
                loop = asyncio.get_running_loop()

                async def answer() -> None:
                    while True:
                        _, source = await loop.sock_recvfrom(program, 2048)
                        program.sendto(b"what?", source)

                answering = asyncio.create_task(answer())
                host, port = program.getsockname()
                member = await crowd.add("a", seeds=[f"{host}:{port}"])
                await gives(member, f"{host}:{port}: it does not speak as hustings does")
                await leads_not(member)
                answering.cancel()

    run(story())
