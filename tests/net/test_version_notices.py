"""Notices about wire versions, among strangers: forged, replayed, flooded, nonsense."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Callable
from contextlib import ExitStack

import msgspec
import pytest

from hustings.net import versions
from hustings.net.control_messages import ConfigMsg
from hustings.net.keys import Key
from hustings.net.member import Member
from hustings.net.versions import VersionNotice
from hustings.net.wire import FIRST, NEWEST, OURS, VERSION, Wire, WireCodec, is_notice, versions_of
from tests.net.kit.crowd import Crowd, dropped, endpoint
from tests.net.kit.loops import run, throughout, until
from tests.net.kit.stranger import datagrams, forged
from tests.net.parts import KEY, OTHER_KEY
from tests.net.test_fuzz import thing

LATER = NEWEST + 1
WAITS = "nobody leads here until members of another wire version have ended"
REFUSES = f"is seen but not understood: it writes wire version {LATER}"
_MANY = 200


def echo(data: bytes) -> bytes:
    return versions._echo(data)


def ahead(data: bytes, peers: tuple[tuple[str, int], ...] = ()) -> bytes:
    """A notice that keeps a newcomer waiting, as an answer to a frame."""
    return msgspec.msgpack.encode(VersionNotice(LATER, LATER, LATER, echo(data), True, peers))


def question(wire: Wire, padding: int = 99) -> bytes:
    """A datagram of a later version, as a newcomer of that version introduces itself."""
    fields = (("padding", "x" * padding, True),)
    made = wire.write_old(ConfigMsg(1, False, False, 1, False, fields), LATER)
    assert made is not None
    return made


class Answerer:
    """A process at an address that a newcomer has for a seed; it answers as a test says."""

    def __init__(self, place: socket.socket, answer: Callable[[bytes], list[bytes]]) -> None:
        place.setblocking(False)
        self._place = place
        self._answer = answer
        self.heard: list[bytes] = []
        asyncio.get_running_loop().add_reader(place, self._hear)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._place.getsockname()[1]}"

    def _hear(self) -> None:
        data, source = self._place.recvfrom(1 << 16)
        self.heard.append(data)
        for each in self._answer(data):
            self._place.sendto(each, source)


def notice_of(
    wire: Wire, peers: tuple[tuple[str, int], ...] = ()
) -> Callable[[bytes], list[bytes]]:
    """Answer frames of members by notices."""
    return lambda data: [wire.write_notice(ahead(data, peers))] if data[1] == VERSION else []


@pytest.mark.parametrize(
    "theirs, waits", [(KEY, True), (OTHER_KEY, False), (None, False)], ids=["key", "other", "none"]
)
def test_only_the_key_of_the_group_makes_a_newcomer_wait(theirs: Key | None, waits: bool) -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            with datagrams() as place:
                like = await crowd.add("like", key=theirs, insecure=theirs is None)
                there = Answerer(place, notice_of(forged(like, 77)))
                new = await crowd.add("new", key=KEY, seeds=[there.address], alone=True)
                if waits:
                    await until(lambda: WAITS in "".join(new.notes), "it is told")
                    await throughout(0.5, lambda: not new.is_leader, "it waits")
                else:
                    await until(lambda: new.is_leader, "it leads")
                    assert dropped(new, "unknown-version")
                    assert not any("wire version" in note for note in new.notes)

    run(story())


def test_a_notice_that_is_repeated_holds_nobody_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "LASTING", 1.0)

    async def story() -> None:
        async with Crowd(key=KEY) as crowd:
            with datagrams() as place:
                wire = forged(await crowd.add("like"), 77)
                kept: list[bytes] = []

                def answer(data: bytes) -> list[bytes]:
                    if not kept and data[1] == VERSION:
                        kept.append(wire.write_notice(ahead(data)))
                    return kept  # the same again and again

                there = Answerer(place, answer)
                new = await crowd.add("new", seeds=[there.address], alone=True)
                await until(lambda: WAITS in "".join(new.notes), "it is told")
                await until(lambda: new.is_leader, "it leads", 15)
                assert len(there.heard) > 3

    run(story())


def test_a_newcomer_that_finds_only_a_waiting_one_is_told_to_wait() -> None:
    """The group that the first one waits for is at no address that the second one knows."""

    async def story() -> None:
        async with Crowd(key=KEY, alone=True) as crowd:
            with datagrams() as place:
                there = Answerer(place, notice_of(forged(await crowd.add("like"), 77)))
                first = await crowd.add("first", seeds=[there.address])
                await until(lambda: WAITS in "".join(first.notes), "it is told")
                second = await crowd.add("second", seeds=[first.address])
                await until(lambda: WAITS in "".join(second.notes), "the second is told")
                assert f"writes version {LATER}" in "".join(second.notes)
                await throughout(0.5, lambda: not (first.is_leader or second.is_leader), "wait")

    run(story())


def test_a_notice_ends_no_leadership() -> None:
    async def story() -> None:
        async with Crowd(key=KEY) as crowd:
            with datagrams() as place:
                leader = await crowd.add("leader")
                await until(lambda: leader.is_leader, "it leads")
                there = Answerer(place, notice_of(forged(leader, 77)))
                host, port = there.address.split(":")
                node = leader.node
                node.introduce((host, int(port)), node.stack.membership.card(asks=False))
                await until(lambda: REFUSES in "".join(leader.notes), "it is told")
                assert node.other_versions.ahead
                await throughout(0.5, lambda: leader.is_leader, "it goes on")

    run(story())


async def replies(member: Member, frames: list[bytes], lasting: float = 0.5) -> list[bytes]:
    """What a stranger gets for its frames, but for what members say unasked."""
    got: list[bytes] = []
    with datagrams() as place:
        place.setblocking(False)
        asyncio.get_running_loop().add_reader(place, lambda: got.append(place.recv(1 << 16)))
        for frame in frames:
            place.sendto(frame, endpoint(member))
            await asyncio.sleep(0)
        await asyncio.sleep(lasting)
        asyncio.get_running_loop().remove_reader(place)
    return got


@pytest.mark.parametrize("key", [KEY, None], ids=["key", "no key"])
def test_an_answer_is_no_longer_than_its_question_and_few_are_sent(key: Key | None) -> None:
    async def story() -> None:
        async with Crowd(key=key, insecure=key is None) as crowd:
            leader = (await crowd.add_all("abcdef"))[0]  # so an answer has others to name
            await crowd.agreed()
            await until(lambda: len(leader.node.address_book.some(9)) == 5, "all have answered")
            frame = question(forged(leader, 77))
            got = await replies(leader, [frame] * _MANY)
            for padding in range(0, 60, 4):
                short = question(forged(leader, 77), padding)
                for each in await replies(leader, [short], 0.05):
                    assert len(each) <= len(short)
            most = 32 if key else 4
            assert most <= len(got) <= most + 10
            assert all(is_notice(each) and len(each) <= len(frame) for each in got)

    run(story())


def test_without_the_key_there_is_no_answer() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            leader = await crowd.add("leader", key=KEY)
            await until(lambda: leader.is_leader, "it leads")
            for other in (OTHER_KEY, None):
                like = await crowd.add("like", key=other, insecure=other is None, seeds=[])
                wire = forged(like, 77)
                before = wire.write_old(ConfigMsg(1, False, True, 1, True, ()), FIRST - 1)
                assert before is not None
                assert await replies(leader, [question(wire), before] * 5) == []

    run(story())


def test_who_asks_in_version_2_is_told_that_it_does_not_fit() -> None:
    async def story() -> None:
        async with Crowd(key=KEY) as crowd:
            leader = await crowd.add("leader")
            await until(lambda: leader.is_leader, "it leads")
            wire = forged(leader, 77)
            assert leader.node.config_check is not None
            asks = leader.node.config_check._message(5, answer=False)
            frame = wire.write_old(asks, FIRST - 1)
            assert frame is not None
            got = await replies(leader, [frame])
            assert got, "an answer"
            answer = wire.read_old(got[0])
            assert answer is not None
            assert (answer.nonce, answer.answer, answer.settled) == (5, True, True)
            told = {name: value for name, value, _ in answer.fields}
            assert told["protocol"] == f"le-s of wire version {VERSION}"

    run(story())


def test_an_observer_is_not_taken_for_a_member_of_version_2() -> None:
    """Its answer is short enough to be sent: newcomers would wait for it as long as it is there."""

    async def story() -> None:
        async with Crowd(key=KEY) as crowd:
            place = await crowd.add("meeting", observer=True, expect=1)
            first, second = [
                await crowd.add(name, seeds=[place.address]) for name in ("one", "two")
            ]
            leader = await crowd.agreed()
            assert leader in (first, second)
            assert not [each for each in first.notes + second.notes if "wire version" in each]

    run(story())


def test_nonsense_in_a_notice_does_no_harm() -> None:
    rng = random.Random(19)

    async def story() -> None:
        async with Crowd(key=KEY) as crowd:
            member = await crowd.add("member")
            await until(lambda: member.is_leader, "it leads")
            node, wire = member.node, forged(member, 77)
            card = node.filter.outgoing(node.stack.membership.card(asks=False))
            assert card is not None
            for number in range(2000):
                node.other_versions.sent(card.data)
                body: list[object] = [LATER, LATER, LATER, echo(card.data), True, [], False]
                for _ in range(rng.randint(0, 3)):
                    body[rng.randrange(len(body))] = thing(rng)
                if rng.random() < 0.3:
                    body[5] = [[f"192.0.2.{number % 250}", rng.randint(-1, 70_000)]] * 20
                if rng.random() < 0.1:
                    del body[rng.randrange(len(body)) :]
                encoded = msgspec.msgpack.encode(body)
                if rng.random() < 0.1:
                    encoded = rng.randbytes(30)
                node.datagram(wire.write_notice(encoded), ("127.0.0.1", 1024 + number))
            others = node.other_versions
            assert 0 < len(others._heard) <= versions._MOST
            assert 0 < len(others._named) <= versions._MOST
            assert len(others._passed_on) <= versions._MOST
            assert len(others._sent) <= versions._SENT
            assert member.is_leader
            assert sum("is seen but not understood" in note for note in member.notes) == 1

    run(story())


def test_what_a_notice_says_about_others_makes_nobody_flood_them() -> None:
    """A liar with the key names addresses of a victim; members ask each time, but few together."""
    seconds = 3.0

    async def story() -> None:
        async with Crowd(key=KEY) as crowd:
            with datagrams() as place, ExitStack() as stack:
                victims = [stack.enter_context(datagrams()) for _ in range(versions._PEERS)]
                named = tuple(each.getsockname() for each in victims)
                there = Answerer(place, notice_of(forged(await crowd.add("like"), 77), named))
                heard = [Answerer(each, lambda _: []) for each in victims]
                new = await crowd.add("new", seeds=[there.address])
                await until(lambda: WAITS in "".join(new.notes), "it is told")
                await until(lambda: all(each.heard for each in heard), "each is asked")
                before = asked(heard)
                await throughout(seconds, lambda: not new.is_leader, "it waits")
                got = asked(heard) - before
                assert 0 < got <= versions._UNPROVEN * (seconds + 1) + versions._UNPROVEN_AT_ONCE
                assert len(there.heard) > seconds  # the liar is asked as often as ever

    run(story())


def asked(heard: list[Answerer]) -> int:
    """How many times members have introduced themselves there."""
    return sum(data[1] == VERSION for each in heard for data in each.heard)


def test_the_versions_of_a_frame() -> None:
    """The head of a frame tells what its sender reads, and no version needs more than a byte."""
    wire = Wire("group", 1, 1, WireCodec("config", (ConfigMsg,)))
    made = wire.write(ConfigMsg(1, False, False, 1, False, ()))
    assert not isinstance(made, str)
    assert versions_of(made.data) == OURS
