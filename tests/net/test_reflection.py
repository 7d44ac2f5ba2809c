"""No group can be made to send to somebody else: what a victim gets for what an attacker sends."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import pytest

from hustings.core.choice import Candidate
from hustings.core.messages import Message
from hustings.core.names import member_id
from hustings.layers.gossip.messages import Entry, GossipMsg, JoinMsg, PullMsg, WelcomeMsg
from hustings.net.control_messages import ProbeMsg, ProbeReplyMsg, ProcessEndedMsg
from hustings.net.keys import Key
from hustings.net.member import Member
from hustings.net.peer_addresses import Place, Window
from hustings.net.wire import Direction
from hustings.protocols.announce.messages import AnnounceMsg
from hustings.testing import Group
from tests.net.kit.crowd import Crowd, dropped, endpoint
from tests.net.kit.loops import run, throughout, until
from tests.net.kit.stranger import believed, datagrams, forged, frame
from tests.net.parts import KEY

LIFE = 5
MOST = 2.0  # bytes that reach a victim for each byte that an attacker sends


@pytest.fixture(autouse=True)
def attackers_answer() -> Iterator[None]:
    """They have the key, or the group has none: so they can answer as members do."""
    with believed():
        yield


class Victim:
    """Sockets that are no member's: what comes to them, and who connects."""

    def __init__(self, sockets: Sequence[socket.socket], door: socket.socket) -> None:
        self._sockets, self._door = sockets, door
        self.bytes = self.packets = self.connections = 0

    @property
    def places(self) -> list[tuple[str, int]]:
        return [each.getsockname() for each in self._sockets]

    def looked(self) -> int:
        """Packets so far."""
        self.look()
        return self.packets

    def look(self) -> None:
        for each in self._sockets:
            with suppress(BlockingIOError):
                while True:
                    self.bytes += len(each.recv(65_536))
                    self.packets += 1
        with suppress(BlockingIOError):
            while True:
                self._door.accept()[0].close()
                self.connections += 1


@contextmanager
def victims(count: int) -> Iterator[Victim]:
    """So many ports of one victim; streams can be opened to the first."""
    door = socket.create_server(("127.0.0.1", 0))
    door.setblocking(False)
    sockets = []
    try:
        for number in range(count):
            each = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sockets.append(each)
            each.bind(("127.0.0.1", door.getsockname()[1] if not number else 0))
            each.setblocking(False)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        yield Victim(sockets, door)
    finally:
        door.close()
        for each in sockets:
            each.close()


def fake(number: int, at: tuple[str, int], counter: int = 1) -> Entry:
    name = f"fake-{number}"
    return Entry(Candidate(member_id(name)), LIFE, counter, Place(at, name).text())


def frames(like: Member, how: str, places: Sequence[tuple[str, int]], turn: int) -> Iterator[bytes]:
    """What an attacker says in one turn: of up to 300 fakes, all of them at the victim's."""
    codes = like.node.stack.membership.sizing.codes
    entries = [
        fake(number, places[number % len(places)], turn)
        for number in range(300 * (turn - 1), 300 * turn)
    ]
    match how:
        case "one teller" | "many tellers":
            for number in range(0, len(entries), 10):
                teller = 666 if how == "one teller" else 1000 + number
                said: Message = GossipMsg(tuple(entries[number : number + 10]), 1, codes, None)
                yield frame(forged(like, teller, LIFE + turn), said)
        case "state transfers":
            for number in range(0, len(entries), 10):
                said = WelcomeMsg(tuple(entries[number : number + 10]), 1, codes, None, 4000)
                yield frame(forged(like, 666 + number, LIFE + turn), said)
        case "newcomers":
            for each in entries[:100]:
                wire = forged(like, each.who.id, LIFE)
                yield frame(wire, JoinMsg(each, to_all=False, asks=True))
        case "questions":
            for each in entries[:50]:
                wire = forged(like, each.who.id, LIFE)
                yield frame(wire, PullMsg(each))
                yield frame(wire, GossipMsg((each,), 1, codes, None, asks=True, known=1))
        case "leaders":
            for each in entries[:50]:
                wire = forged(like, each.who.id, LIFE)
                yield frame(wire, GossipMsg((each,), 1, codes, None))
                yield frame(wire, AnnounceMsg(10 + turn, 1, each.who))
                yield frame(wire, ProcessEndedMsg(each.who.id, LIFE))


HOW = ["one teller", "many tellers", "state transfers", "newcomers", "questions", "leaders"]


@pytest.mark.parametrize("ports", [1, 300], ids=["one port", "many ports"])
@pytest.mark.parametrize("how", HOW)
def test_a_victim_gets_little_more_than_an_attacker_sends(how: str, ports: int) -> None:
    """99 KB of gossip once drew 47 MB to one address."""
    if ports > 1 and how in ("questions", "leaders"):
        ports = 50
    key: Key | None = KEY if how in ("many tellers", "leaders") else None

    async def story() -> None:
        async with Crowd(key=key, insecure=key is None) as crowd:
            members = await crowd.add_all(["a", "b", "c"])
            await crowd.known(3)
            await crowd.agreed()
            with victims(ports) as victim, datagrams() as attacker:
                sent = 0
                for turn in (1, 2, 3):
                    for member in members:
                        for data in frames(member, how, victim.places, turn):
                            attacker.sendto(data, endpoint(member))
                            sent += len(data)
                        await asyncio.sleep(0.02)
                    for _ in range(10):
                        await asyncio.sleep(0.05)
                        victim.look()
                assert victim.bytes <= MOST * sent, f"{victim.packets} packets for {sent} bytes"
                assert victim.bytes <= 200_000
                assert victim.connections == 0

                def quiet() -> bool:
                    victim.look()
                    return True

                before = victim.bytes
                await throughout(0.5, quiet, "")
                assert victim.bytes - before <= 10_000, "it goes on when the attack does not"

    run(story())


def test_an_address_that_answers_is_spoken_to() -> None:
    """Else what is measured above would prove nothing."""

    async def story() -> None:
        async with Crowd() as crowd:
            a = await crowd.add("a")
            with datagrams() as socket_of_x, datagrams() as teller:
                socket_of_x.setblocking(False)
                x = fake(1, socket_of_x.getsockname())
                wire = forged(a, x.who.id, LIFE)
                codes = a.node.stack.membership.sizing.codes
                said = frame(forged(a, 666, LIFE), GossipMsg((x,), 1, codes, None))
                teller.sendto(said, endpoint(a))
                loop = asyncio.get_running_loop()
                async with asyncio.timeout(5):
                    question = wire.read(
                        await loop.sock_recv(socket_of_x, 2000), Direction.DATAGRAM
                    )
                assert not isinstance(question, str)
                assert isinstance(question.message, ProbeMsg)
                with suppress(BlockingIOError):
                    while True:
                        socket_of_x.recv(2000)
                # Somebody else answers with another number, and it with the right one.
                nonce = question.message.nonce
                teller.sendto(frame(wire, ProbeReplyMsg(nonce + 1), a.id), endpoint(a))
                await until(
                    lambda: a.metrics().messages_received.get("PROBE-REPLY") == 1, "it is read"
                )
                assert not a.node.address_validation.reached(x.who.id, socket_of_x.getsockname())
                teller.sendto(frame(wire, ProbeReplyMsg(nonce), a.id), endpoint(a))
                there = socket_of_x.getsockname()
                proofs = a.node.address_validation
                await until(lambda: proofs.reached(x.who.id, there), "proven")
                async with asyncio.timeout(5):
                    data = await loop.sock_recv(socket_of_x, 2000)
                got = wire.read(data, Direction.DATAGRAM)
                assert not isinstance(got, str)
                assert not isinstance(got.message, ProbeMsg)

    run(story())


def test_a_member_that_is_said_to_have_moved_is_reached_where_it_was() -> None:
    """Hearsay with a newer counter must not cut a member off, nor send what is its to others."""

    async def story() -> None:
        async with Crowd() as crowd:
            a = await crowd.add("a")
            b = await crowd.add("b")
            await crowd.known(2)
            await crowd.agreed()
            with victims(1) as victim, datagrams() as attacker:
                entry = a.node.stack.membership.circle.entry(b.id)
                assert entry is not None
                moved = Entry(
                    entry.who,
                    entry.incarnation,
                    entry.counter + 50,
                    Place(victim.places[0], "b").text(),
                )
                codes = a.node.stack.membership.sizing.codes
                said = frame(forged(a, 666, LIFE), GossipMsg((moved,), 1, codes, None))
                attacker.sendto(said, endpoint(a))
                await until(victim.looked, "it is asked there")

                def steady() -> bool:
                    victim.look()
                    leaders = {each.leader.name for each in (a, b) if each.leader is not None}
                    return len(leaders) == 1 and victim.bytes < 400

                await throughout(1.5, steady, "b was cut off, or the victim got what is b's")

    run(story())


def test_a_group_forms_and_loses_its_leader_where_only_answers_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a key and between machines nothing but an answer proves where a member is."""
    monkeypatch.setattr("hustings.net.peer_addresses.is_loopback", lambda host: False)
    with Group(seed=3, delay=(0.001, 0.02), loss=0.2) as group:
        for name in "abcdefgh":
            group.join(name)
        leader = group.settle(within=20.0)
        group.advance(20.0)  # every fifth datagram is lost, and whoever is spoken to is asked again
        for name in group.up:
            host = group.member(name).node
            assert len(host.address_book.known) == 7
            assert not host.address_validation._spoke
            known = host.address_book.known.items()
            assert sum(host.address_validation.reached(*each) for each in known) >= 6
        group.kill(leader)
        assert group.settle(within=20.0) != leader


def test_the_window_grows_with_answers_and_shrinks_without() -> None:
    window = Window(3)
    for member in (1, 2, 3):
        assert window.has_room(0.0)
        window.ask(member, 0.0)
    assert not window.has_room(0.5)
    window.answered(1)
    assert window.width == 7
    assert window.has_room(0.5)
    assert window.has_room(5.0)
    assert window.width == 5, "two were not answered"
    for turn in range(20):
        window.ask(turn, 10.0 * turn)
        window.has_room(10.0 * turn + 5)
    assert window.width == 2


def test_what_is_held_back_is_bounded_and_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hustings.net.peer_addresses._FRESH", 0.3)
    monkeypatch.setattr("hustings.net.peer_addresses._ANSWER", 0.2)
    monkeypatch.setattr("hustings.net.peer_addresses._BYTES", 100_000)

    async def story() -> None:
        async with Crowd() as crowd:
            a = await crowd.add("a")
            with victims(1) as victim:
                proofs = a.node.address_validation
                for number in range(1000):
                    for _ in range(10):
                        proofs.put(number, victim.places[0], bytes(500), streamed=False)
                assert 90_000 < proofs._bytes <= 100_000
                assert max(map(len, proofs._held.values())) == 8
                assert dropped(a, "outbox") > 5000
                await until(lambda: not proofs._held, "it is given up")
                assert proofs._bytes == 0
                victim.look()
                assert victim.bytes < 10_000

    run(story())


def test_what_is_held_back_goes_out_once_when_the_address_is_proven() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            a = await crowd.add("a")
            with victims(1) as there:
                proofs, to = a.node.address_validation, there.places[0]
                a.node.address_book.heard(7, to)
                proofs.put(7, to, b"first", streamed=False)
                proofs.put(7, to, b"second", streamed=False)
                proofs.heard(7, to)
                assert not proofs._held
                assert proofs._bytes == 0
                proofs.put(7, to, b"third", streamed=False)
                await until(lambda: there.looked() == 4, "a question and three")
                assert there.bytes < 300

    run(story())
