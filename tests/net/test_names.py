"""Words that end a member, or make it begin anew: they count only for the life they are said to."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

import hustings
from hustings.core.messages import Message
from hustings.core.names import member_id
from hustings.net.control_messages import NameTakenMsg, OldIncarnationMsg, ProbeMsg, ProbeReplyMsg
from hustings.net.member import Member
from hustings.net.wire import Direction, Received, Wire
from tests.net.kit.crowd import Crowd, dropped, endpoint
from tests.net.kit.loops import background, run, throughout, until
from tests.net.kit.stranger import Tap, datagrams, forged, frame
from tests.net.parts import KEY

LIFE = 5  # of a member that joins
STRANGER = 666


def incarnation(member: Member) -> int:
    """Which of its lives a member lives."""
    return member.node.filter.wire.incarnation


def received(member: Member, kind: str) -> int:
    """How many messages of a kind a member has read."""
    return member.metrics().messages_received.get(kind, 0)


async def trio(crowd: Crowd) -> tuple[Member, Member, Member]:
    """Three members that know each other and have a leader."""
    a, b, c = await crowd.add_all(["a", "b", "c"])
    await crowd.known(3)
    await crowd.seated()
    return a, b, c


# Members


def test_an_answer_to_a_former_life_ends_nobody_else() -> None:
    """Whoever has no key records a frame, plays it back, and passes the answer on."""

    async def story() -> None:
        async with Crowd(key=KEY) as crowd:
            b, c = await crowd.add_all(["b", "c"])
            a = await crowd.add("a")
            await crowd.known(3)
            tap = Tap(a)
            a.node.introduce(endpoint(b), ProbeMsg(7), b.id)
            recorded = [data for to, data in tap.sent if to == endpoint(b)]
            await a.leave()
            again = await crowd.add("a")
            await crowd.known(3)
            loop = asyncio.get_running_loop()
            with datagrams() as stranger:
                stranger.setblocking(False)
                stranger.sendto(recorded[-1], endpoint(b))
                async with asyncio.timeout(3):
                    answer = await loop.sock_recv(stranger, 2000)
                for victim in (b, c, again):
                    stranger.sendto(answer, endpoint(victim))
            await throughout(0.3, lambda: len(crowd.open()) == 3, "somebody was ended")
            assert dropped(c, "misdirected") == 1

    run(story())


@asynccontextmanager
async def namesake_of(member: Member, life: int) -> AsyncIterator[str]:
    """The place of a process that has a member's name and says so to whoever asks it there."""
    wire, loop = forged(member, member.id, life), asyncio.get_running_loop()

    async def answer(stranger: socket.socket) -> None:
        reader = forged(member, STRANGER)
        while True:
            data, source = await loop.sock_recvfrom(stranger, 2000)
            got = reader.read(data, Direction.DATAGRAM)
            if isinstance(got, Received) and isinstance(got.message, ProbeMsg):
                stranger.sendto(frame(wire, ProbeReplyMsg(got.message.nonce)), source)

    with datagrams() as stranger:
        stranger.setblocking(False)
        host, port = stranger.getsockname()
        async with background(answer(stranger)):
            yield f"{host}:{port} {member.name}"


@pytest.mark.parametrize("sealed", [False, True], ids=["clear", "sealed"])
def test_a_member_is_ended_by_no_word_alone(sealed: bool) -> None:
    """That its name is taken it finds out itself; and without a key not even that ends it."""

    async def story() -> None:
        async with Crowd(protocol="bully", key=KEY if sealed else None, insecure=True) as crowd:
            a, _, c = await trio(crowd)
            mine, later = incarnation(c), incarnation(c) + 1000
            liars: list[int] = []
            with datagrams() as stranger:

                def say(place: str, yours: int, to: Member) -> None:
                    liars.append(STRANGER + len(liars))
                    wire = forged(c, liars[-1])
                    message = NameTakenMsg(place, later, yours)
                    stranger.sendto(frame(wire, message, to.id), endpoint(c))

                for place in ("127.0.0.1:9 c", f"{a.address} c", f"{c.address} c", "nowhere c"):
                    say(place, mine, c)
                await until(lambda: received(c, "NAME-TAKEN") == 4, "all are read")
                say("127.0.0.1:9 c", mine, a)
                await until(lambda: dropped(c, "misdirected") == 1, "the last is not c's")
                await throughout(0.7, lambda: not c.closed, "it believed what was only said")
                async with namesake_of(c, later) as place:
                    say(place, mine - 1, c)
                    say(place, mine + 1, c)
                    await throughout(0.3, lambda: not c.closed, "it was said to another life")
                    say(place, mine, c)
                    if sealed:
                        await until(lambda: c.closed, "somebody with the key has its name")
                        assert isinstance(c.error, hustings.BadInput)
                    else:
                        await until(
                            lambda: any("uses this member's name too" in each for each in c.notes),
                            lambda: f"it says so: {c.notes}",
                        )
                        assert not c.closed
            assert not a.closed

    run(story())


def test_who_is_in_the_group_lives_on_whatever_life_it_is_said_to_have_had() -> None:
    async def story() -> None:
        async with Crowd(protocol="bully") as crowd:
            _, _, c = await trio(crowd)
            mine = incarnation(c)
            with datagrams() as stranger:
                message = OldIncarnationMsg(mine + 1000, mine)
                stranger.sendto(frame(forged(c, STRANGER), message, c.id), endpoint(c))
            await until(lambda: received(c, "OLD-INCARNATION") == 1, "it is read")
            await throughout(0.2, lambda: not c.closed, "it was ended")

    run(story())


# Newcomers


@asynccontextmanager
async def seed_that_says(wire: Wire, message: Message, to: int) -> AsyncIterator[str]:
    """The address of a seed that answers whatever comes with one message to one member."""
    loop = asyncio.get_running_loop()

    async def answer(stranger: socket.socket) -> None:
        while True:
            _, source = await loop.sock_recvfrom(stranger, 2000)
            stranger.sendto(frame(wire, message, to), source)

    with datagrams() as stranger:
        stranger.setblocking(False)
        host, port = stranger.getsockname()
        async with background(answer(stranger)):
            yield f"{host}:{port}"


def taken(yours: int) -> Message:
    return NameTakenMsg("127.0.0.1:9 new", LIFE + 1000, yours)


def lived_later(yours: int) -> Message:
    return OldIncarnationMsg(LIFE + 1000, yours)


@pytest.mark.parametrize("said", [taken, lived_later])
def test_a_newcomer_believes_nothing_that_was_said_to_another_life(
    said: Callable[[int], Message],
) -> None:
    """As when what was said to a former life is played back at each start."""

    async def story() -> None:
        async with Crowd(protocol="bully") as crowd:
            other = await crowd.add("other")
            wire, mine = forged(other, STRANGER), member_id("new")
            async with seed_that_says(wire, said(LIFE - 1), mine) as address:
                new = await crowd.add("new", seeds=[address], incarnation=LIFE)
                assert sum(new.metrics().messages_received.values()) > 0
            assert incarnation(new) == LIFE
            assert new.error is None

    run(story())


def test_a_newcomer_believes_in_no_life_beyond_the_date() -> None:
    """Everybody would refuse it there, and it would lead itself."""

    async def story() -> None:
        async with Crowd(protocol="bully") as crowd:
            other = await crowd.add("other")
            wire, mine = forged(other, STRANGER), member_id("new")
            old = OldIncarnationMsg((1 << 53) - 3, LIFE)
            async with seed_that_says(wire, old, mine) as address:
                new = await crowd.add("new", seeds=[address], incarnation=LIFE)
                assert new.metrics().messages_received.get("OLD-INCARNATION", 0) > 0
            assert incarnation(new) == LIFE
            assert new.error is None

    run(story())


@pytest.mark.parametrize("said", [taken, lived_later])
def test_a_newcomer_believes_nothing_that_was_said_to_another_member(
    said: Callable[[int], Message],
) -> None:
    async def story() -> None:
        async with Crowd(protocol="bully") as crowd:
            other = await crowd.add("other")
            wire = forged(other, STRANGER)
            async with seed_that_says(wire, said(LIFE), other.id) as address:
                new = await crowd.add("new", seeds=[address], incarnation=LIFE)
                assert dropped(new, "misdirected") > 0
            assert incarnation(new) == LIFE

    run(story())


def test_a_newcomer_believes_what_is_said_to_it() -> None:
    """Else what it ignores above would prove nothing. That a name is taken it finds out itself."""

    async def story() -> None:
        async with Crowd(protocol="bully") as crowd:
            other = await crowd.add("other")
            wire, mine = forged(other, STRANGER), member_id("new")
            async with seed_that_says(wire, taken(LIFE), mine) as address:
                new = await crowd.add("new", seeds=[address], incarnation=LIFE)
                assert received(new, "NAME-TAKEN") > 0
                await new.kill()
            async with seed_that_says(wire, lived_later(LIFE), mine) as address:
                new = await crowd.add("new", seeds=[address], incarnation=LIFE)
            assert incarnation(new) > LIFE + 1000

    run(story())
