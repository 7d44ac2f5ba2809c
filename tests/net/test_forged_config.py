"""Lies about configurations, told to real groups: nobody is held back or turned away by a claim."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

import msgspec
import pytest

from hustings.core.names import member_id
from hustings.net.agreed_config import BARRED
from hustings.net.control_messages import (
    ConfigMsg,
    NameTakenMsg,
    OldIncarnationMsg,
    ProbeMsg,
    ProbeReplyMsg,
)
from hustings.net.member import Member
from hustings.net.transport import Endpoint
from hustings.net.wire import Direction, Received, Wire
from tests.net.kit.crowd import Crowd, dropped, endpoint
from tests.net.kit.loops import background, run, throughout, until
from tests.net.kit.stranger import datagrams, forged, frame
from tests.net.parts import KEY

FORGED = 700  # the first id that a liar goes by
READER = 699
LIFE = 5  # of who wants to join
OTHER_GUARD = (("guard", "redis", True), ("guard engine", "elsewhere:6379", True))
NO_GUARD = (("guard", "", True),)
Fields = tuple[tuple[str, str, bool], ...]


class Liars:
    """Processes that speak a member's dialect: who asks one how it is configured hears a lie."""

    def __init__(self, like: Member, sockets: list[socket.socket], fields: Fields) -> None:
        self.like, self.sockets = like, sockets
        self.said = ConfigMsg(1, True, True, 1000, True, fields, tuple(self.places))
        self.answers = 0
        self.duplicate: Wire | None = None  # in whose name it answers probes

    @property
    def places(self) -> list[Endpoint]:
        return [each.getsockname() for each in self.sockets]

    def wire(self, number: int, life: int = 1) -> Wire:
        return forged(self.like, FORGED + number, life)

    def ask(self, member: Member) -> None:
        """Be noticed: whoever hears of another configuration asks back."""
        question = ConfigMsg(7, False, True, 1000, True, self.said.fields)
        for number, each in enumerate(self.sockets):
            each.sendto(frame(self.wire(number), question), endpoint(member))

    async def keep_asking(self, *members: Member) -> None:
        while True:
            for member in members:
                self.ask(member)
            await asyncio.sleep(0.1)

    async def answer(self, number: int) -> None:
        reader, wire = forged(self.like, READER), self.wire(number)
        loop, own = asyncio.get_running_loop(), self.sockets[number]
        while True:
            data, source = await loop.sock_recvfrom(own, 2000)
            got = reader.read(data, Direction.DATAGRAM)
            match got.message if isinstance(got, Received) else None:
                case ConfigMsg(nonce, False):
                    lie = msgspec.structs.replace(self.said, nonce=nonce)
                    own.sendto(frame(wire, lie), source)
                    self.answers += 1
                case ProbeMsg(nonce) if self.duplicate is not None:
                    own.sendto(frame(self.duplicate, ProbeReplyMsg(nonce)), source)


@asynccontextmanager
async def liars(like: Member, count: int = 1, fields: Fields = OTHER_GUARD) -> AsyncIterator[Liars]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(datagrams()) for _ in range(count)]
        for each in sockets:
            each.setblocking(False)
        made = Liars(like, sockets, fields)
        async with background(*(made.answer(number) for number in range(count))):
            yield made


@pytest.mark.parametrize("sealed", [False, True], ids=["clear", "sealed"])
def test_one_process_that_claims_a_larger_group_holds_nobody_back(sealed: bool) -> None:
    async def story() -> None:
        guard = {"guard": "memory://lied-to", "ttl": 2.0}
        async with Crowd(key=KEY if sealed else None, insecure=not sealed, **guard) as crowd:
            members = await crowd.add_all(["a", "b", "c"])
            await crowd.known(3)
            leader = await crowd.agreed()
            token = leader.state.token
            async with liars(leader) as liar, background(liar.keep_asking(*members)):
                await until(lambda: liar.answers > 2, "it was asked, and has lied")
                await throughout(2.0, lambda: leader.state.token == token, "it was held back")
            assert any("has another configuration" in note for note in leader.notes), "it is said"

    run(story())


def test_as_many_liars_as_there_are_members_hold_a_group_back_while_they_answer() -> None:
    """So that it is evidence that counts above, and not that nothing does."""

    async def story() -> None:
        async with Crowd(guard="memory://outnumbered", ttl=2.0) as crowd:
            await crowd.add_all(["a", "b"])
            leader = await crowd.agreed()
            async with liars(leader, 2) as many, background(many.keep_asking(leader)):
                await until(lambda: leader.state.reason == BARRED, lambda: f"{leader.state}")
            await crowd.agreed(within=30.0)

    run(story())


def test_a_group_with_a_guard_yields_to_none_without() -> None:
    async def story() -> None:
        async with Crowd(guard="memory://guarded", ttl=2.0) as crowd:
            await crowd.add_all(["a", "b"])
            leader = await crowd.agreed()
            token = leader.state.token
            async with liars(leader, 5, NO_GUARD) as many, background(many.keep_asking(leader)):
                await until(lambda: many.answers > 5, "they were asked")
                await throughout(2.0, lambda: leader.state.token == token, "it has yielded")
            assert any("does not yield to it" in note for note in leader.notes)

    run(story())


@pytest.mark.parametrize("sealed", [False, True], ids=["clear", "sealed"])
def test_nobody_but_a_seed_turns_a_newcomer_away(sealed: bool) -> None:
    """Its seed is dead, and a stranger has a lot to say."""

    async def story() -> None:
        async with Crowd(key=KEY if sealed else None, insecure=not sealed) as crowd:
            like = await crowd.add("like")
            new = member_id("new")
            with datagrams() as dead:  # it never answers
                dead.setblocking(False)
                async with liars(like, fields=(("choice", "x", True),)) as liar:
                    liar.duplicate = forged(like, new, LIFE + 5)

                    async def speak() -> None:
                        _, source = await asyncio.get_running_loop().sock_recvfrom(dead, 2000)
                        own, place = liar.sockets[0], "{}:{} new".format(*liar.places[0])
                        for number in itertools.count():
                            wire = liar.wire(number)
                            for said in (
                                ConfigMsg(7, False, True, 9, True, liar.said.fields),
                                OldIncarnationMsg(LIFE + 9, LIFE),
                                NameTakenMsg(place, LIFE + 9, LIFE),
                            ):
                                own.sendto(frame(wire, said, new), source)
                            await asyncio.sleep(0.05)

                    async with background(speak()):
                        seed = "{}:{}".format(*dead.getsockname())
                        newcomer = await crowd.add("new", seeds=[seed], incarnation=LIFE)
                    assert newcomer.metrics().messages_received["NAME-TAKEN"] > 0
                    assert newcomer.metrics().messages_received["OLD-INCARNATION"] > 0
                    assert liar.answers > 0, "it asked, and was lied to"
                    assert newcomer.node.filter.wire.incarnation == LIFE
                    assert newcomer.error is None

    run(story())


def test_frames_of_a_former_life_that_come_from_a_seed_turn_nobody_away() -> None:
    """Who has no key may have recorded them, and may forge where they come from."""

    async def story() -> None:
        async with Crowd(key=KEY) as crowd:
            like = await crowd.add("like")
            recorded = forged(like, member_id("new"), LIFE - 1)
            with datagrams() as seed:
                seed.setblocking(False)

                async def play() -> None:
                    loop = asyncio.get_running_loop()
                    while True:
                        _, source = await loop.sock_recvfrom(seed, 2000)
                        for message in (ProbeMsg(5), ProbeReplyMsg(5)):
                            seed.sendto(frame(recorded, message), source)

                async with background(play()):
                    address = "{}:{}".format(*seed.getsockname())
                    new = await crowd.add("new", seeds=[address], incarnation=LIFE)
                    assert dropped(new, "duplicate-name") > 2
                assert new.error is None

    run(story())


# What is written about it


def test_a_name_that_is_said_to_be_taken_again_and_again_is_noted_once() -> None:
    async def story() -> None:
        async with Crowd(insecure=True) as crowd:
            a, _ = await crowd.add_all(["a", "b"])
            await crowd.known(2)
            mine, proofs = a.node.filter.wire.incarnation, 0
            namesake, loop = forged(a, a.id, mine + 9), asyncio.get_running_loop()
            with datagrams() as stranger:
                stranger.setblocking(False)
                place = "{}:{} a".format(*stranger.getsockname())
                reader = forged(a, READER)
                while proofs < 8:
                    said = NameTakenMsg(place, mine + 9, mine)
                    stranger.sendto(frame(forged(a, FORGED + proofs), said, a.id), endpoint(a))
                    async with asyncio.timeout(5.0):
                        data, source = await loop.sock_recvfrom(stranger, 2000)
                    got = reader.read(data, Direction.DATAGRAM)
                    if isinstance(got, Received) and isinstance(got.message, ProbeMsg):
                        stranger.sendto(frame(namesake, ProbeReplyMsg(got.message.nonce)), source)
                        proofs += 1
                    await asyncio.sleep(0.06)
                await until(
                    lambda: dropped(a, "duplicate-name") >= proofs, "all of its answers are read"
                )
            told = [note for note in a.notes if "uses this member's name too" in note]
            assert len(told) == 1
            assert not a.closed

    run(story())


def test_what_is_said_of_configurations_is_within_a_rate_and_noted_seldom() -> None:
    async def story() -> None:
        async with Crowd(insecure=True, limits={"rate": 50, "burst": 100}) as crowd:
            a, b = await crowd.add_all(["a", "b"])
            await crowd.known(2)
            wire, loop = forged(a, b.id, 2), asyncio.get_running_loop()
            with datagrams() as stranger:
                stranger.setblocking(False)
                own = await fields_of(a, stranger)
                names = [name for name, _, must in own if not must]
                several = [
                    set(each) for size in (1, 2, 3) for each in itertools.combinations(names, size)
                ]
                for number, changed in zip(range(600), itertools.cycle(several), strict=False):
                    fields = tuple((n, "x" if n in changed else v, must) for n, v, must in own)
                    question = ConfigMsg(number, False, True, 1, True, fields)
                    await loop.sock_sendto(stranger, frame(wire, question), endpoint(a))
                    if not number % 50:
                        await asyncio.sleep(0.01)
                await until(lambda: dropped(a, "rate") > 100, "it says more than it may")
            told = [note for note in a.notes if "is configured otherwise" in note]
            assert 0 < len(told) <= 10, told

    run(story())


async def fields_of(member: Member, stranger: socket.socket) -> Fields:
    """What a member says of itself to who asks."""
    reader, loop = forged(member, READER), asyncio.get_running_loop()
    question = ConfigMsg(7, False, True, 1, True, ())
    stranger.sendto(frame(forged(member, FORGED), question), endpoint(member))
    async with asyncio.timeout(5.0):
        while True:
            got = reader.read(await loop.sock_recv(stranger, 2000), Direction.DATAGRAM)
            if isinstance(got, Received) and isinstance(got.message, ConfigMsg):
                if got.message.answer:
                    return got.message.fields
