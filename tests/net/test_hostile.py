"""What others send: with another key or none, damaged, again, too much, too large, never ending."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

import hustings
from hustings.net.control_messages import ProbeMsg
from hustings.net.keys import new_key, write_key
from hustings.net.member import Member
from hustings.net.tcp import on_stream
from hustings.net.wire import VERSION
from tests.net.kit.crowd import Crowd, dropped, endpoint, one_leader
from tests.net.kit.loops import run, throughout, until
from tests.net.kit.stranger import Tap, datagrams, forged, frame
from tests.net.parts import KEY, OTHER_KEY


async def trio(crowd: Crowd) -> tuple[Member, Member, Member]:
    """Three members that know each other and their leader, which comes first."""
    await crowd.add_all(["a", "b", "c"])
    await crowd.known(3)
    leader = await crowd.agreed()
    b, c = (each for each in crowd.open() if each is not leader)
    return leader, b, c


# Keys


def test_a_group_with_a_key_elects(tmp_path: Path) -> None:
    path = tmp_path / "key"
    write_key(path, new_key())

    async def story() -> None:
        async with Crowd(key=path) as crowd:
            leader, b, _ = await trio(crowd)
            tap = Tap(b)
            await until(lambda: tap.sent, "something is said")
            assert all(b"crowd" not in data and b"GOSSIP" not in data for _, data in tap.sent)
            await leader.kill()
            await crowd.agreed(but=leader.name)

    run(story())


@pytest.mark.parametrize(
    "mine, yours, counted, told",
    [
        (KEY, OTHER_KEY, "unknown-key", "has a key that this member has not"),
        (KEY, None, "not-sealed", "speaks without a key"),
        (None, KEY, "sealed", "speaks sealed and this member has no key"),
    ],
    ids=["another key", "no key there", "no key here"],
)
def test_who_has_another_key_is_seen_but_not_understood(
    mine: object, yours: object, counted: str, told: str
) -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            here = await crowd.add("here", key=mine, insecure=mine is None)
            there = await crowd.add("there", key=yours, insecure=yours is None)
            await until(lambda: dropped(here, counted), f"{counted} is counted")
            await until(lambda: here.is_leader, "it is alone and leads")
            assert len(here.members()) == len(there.members()) == 1
            notes = [note for note in here.notes if "seen but not understood" in note]
            assert len(notes) == 1
            assert told in notes[0]
            assert there.address in notes[0]
            assert there.leader is None, "its seed has not answered it"

    run(story())


def test_keys_are_exchanged_without_a_pause() -> None:
    async def story() -> None:
        async with Crowd(key=KEY) as crowd:
            members = await trio(crowd)
            leader = members[0]

            def steady() -> bool:
                return one_leader(crowd.open()) is leader

            for keys in ([KEY, OTHER_KEY], [OTHER_KEY, KEY], [OTHER_KEY]):
                for member in members:
                    member.rekey(keys)
                    await throughout(0.1, steady, "the leader changed while keys were exchanged")
                await throughout(0.4, steady, "the leader changed after keys were exchanged")
            assert all(dropped(member, "unknown-key") == 0 for member in members)
            await crowd.add("d", key=OTHER_KEY)
            await crowd.known(4)

    run(story())


def test_a_member_without_a_key_cannot_be_given_one() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            member = await crowd.add("a")
            with pytest.raises(hustings.BadInput, match="let it rejoin"):
                member.rekey([KEY])

    run(story())


def test_another_protocol_in_the_same_group_is_told() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            here = await crowd.add("here", protocol="le-s")
            with pytest.raises(hustings.BadInput, match="protocol is bully here and le-s there"):
                await crowd.add("there", protocol="bully")
            assert dropped(here, "other-protocol")
            assert any("runs another protocol" in note for note in here.notes)

    run(story())


# Datagrams


@pytest.mark.parametrize("key", [None, KEY], ids=["clear", "sealed"])
def test_a_replayed_datagram_counts_once(key: object) -> None:
    async def story() -> None:
        async with Crowd(protocol="bully", key=key) as crowd:
            leader, b, _ = await trio(crowd)
            tap = Tap(leader)
            await until(lambda: len(tap.sent) > 5, "something to record")
            mine = [data for to, data in tap.sent if to == endpoint(b)]
            assert mine
            before = b.metrics()
            with datagrams() as stranger:
                for data in mine * 3:
                    stranger.sendto(data, endpoint(b))
            await until(
                lambda: dropped(b, "replayed") >= before.drops["replayed"] + 3 * len(mine),
                lambda: str(b.metrics().drops),
            )
            assert one_leader(crowd.open()) is leader

    run(story())


def test_a_former_life_of_a_member_is_not_believed_again() -> None:
    async def story() -> None:
        async with Crowd(protocol="bully") as crowd:
            leader, b, c = await trio(crowd)
            tap = Tap(b)
            await until(lambda: len(tap.sent) > 3, "something to record")
            await b.kill()
            again = await crowd.add(b.name)
            await crowd.known(3)
            await crowd.agreed()
            refused = dropped(c, "old-incarnation") + dropped(c, "misdirected")
            old = [data for to, data in tap.sent if to == endpoint(c)] or [tap.sent[0][1]]
            with datagrams() as stranger:
                for data in old:
                    stranger.sendto(data, endpoint(c))
            await until(
                lambda: (
                    dropped(c, "old-incarnation") + dropped(c, "misdirected") >= refused + len(old)
                ),
                lambda: str(c.metrics().drops),
            )

            def place() -> str:
                return {peer.name: peer.address for peer in c.members()}[again.name]

            await until(lambda: place() == again.address, place)
            assert one_leader(crowd.open()) is leader

    run(story())


@pytest.mark.parametrize("key", [None, KEY], ids=["clear", "sealed"])
def test_truncated_and_changed_datagrams_are_counted_and_nothing_else(key: object) -> None:
    async def story() -> None:
        async with Crowd(protocol="bully", key=key) as crowd:
            leader, b, _ = await trio(crowd)
            tap = Tap(leader)
            await until(lambda: len(tap.sent) > 3, "something to record")
            data = tap.sent[0][1]
            pieces = [data[:cut] for cut in range(len(data))]
            changed = [
                data[:at] + bytes((data[at] ^ 0x55,)) + data[at + 1 :] for at in range(len(data))
            ]
            pieces += changed if key else changed[:7]  # without a seal some changes are messages
            before = sum(b.metrics().drops.values())
            with datagrams() as stranger:
                for piece in pieces:
                    stranger.sendto(piece, endpoint(b))
            # A datagram of another group's tag, or of no bytes, is refused like all the others.
            await until(
                lambda: sum(b.metrics().drops.values()) >= before + len(pieces),
                lambda: f"{len(pieces)} sent; {b.metrics().drops}",
            )
            assert b.error is None
            assert one_leader(crowd.open()) is leader

    run(story())


def test_noise_is_counted_by_reason() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            member = await crowd.add("a")
            with datagrams() as stranger:
                for data in (b"", b"x" * 40, b"H\x01", b"H\x09\x00" + bytes(9), b"y" * 3000):
                    stranger.sendto(data, endpoint(member))
            wanted = {"not-a-frame": 3, "unknown-version": 1, "too-large": 1}
            await until(
                lambda: {name: dropped(member, name) for name in wanted} == wanted,
                lambda: str(member.metrics().drops),
            )
            said = "writes wire version 9 and this member reads version 3: upgrade this member"
            assert any(said in note for note in member.notes), member.notes

    run(story())


@pytest.mark.parametrize("streamed", [False, True], ids=["datagram", "stream"])
def test_a_frame_of_the_former_wire_version_is_refused_and_the_log_says_what_to_do(
    streamed: bool,
) -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            member = await crowd.add("a")
            former = forged(member, me=7).write_old(ProbeMsg(1), VERSION - 1)
            assert former is not None
            if streamed:
                _, writer = await asyncio.open_connection(*endpoint(member))
                writer.write(on_stream(former))
                await writer.drain()
            else:
                with datagrams() as stranger:
                    stranger.sendto(former, endpoint(member))
            said = "writes wire version 2 and this member reads version 3: upgrade that member"
            await until(
                lambda: any(said in note for note in member.notes), lambda: str(member.notes)
            )
            assert dropped(member, "unknown-version") == 1
            if streamed:
                writer.close()

    run(story())


def test_a_flooder_is_limited_and_the_election_does_not_notice() -> None:
    """Somebody with the key sends all it can: its own rate is used up, nobody else's."""

    async def story() -> None:
        async with Crowd(protocol="bully", limits={"rate": 100, "burst": 50}) as crowd:
            leader, b, c = await trio(crowd)
            flooder = forged(b, me=666)
            stop = asyncio.get_running_loop().time() + 1.0
            with datagrams() as stranger:
                stranger.setblocking(False)
                while asyncio.get_running_loop().time() < stop:
                    for victim in (leader, b, c):
                        for _ in range(20):
                            data = frame(flooder, ProbeMsg(1))
                            stranger.sendto(data, endpoint(victim))
                    await asyncio.sleep(0.001)
                    assert one_leader(crowd.open()) is leader
            assert all(dropped(each, "rate") > 500 for each in (leader, b, c))
            handled = b.metrics().messages_received["PROBE"]
            assert handled <= 50 + 100 * 1.5
            await leader.kill()
            await crowd.agreed(but=leader.name)

    run(story())


def test_a_flood_of_noise_does_not_stop_an_election() -> None:
    async def story() -> None:
        async with Crowd(protocol="le-s") as crowd:
            leader, b, c = await trio(crowd)
            sent = 0
            loop = asyncio.get_running_loop()
            stop = loop.time() + 1.0
            with datagrams() as stranger:
                stranger.setblocking(False)
                await leader.kill()
                while one_leader([b, c], leader.name) is None or loop.time() < stop:
                    assert loop.time() < stop + 10, "no leader under a flood of noise"
                    for victim in (b, c):
                        for _ in range(20):
                            stranger.sendto(b"H\x03\x00" + bytes(200), endpoint(victim))
                            sent += 1
                    await asyncio.sleep(0.001)
            assert dropped(b, "other-group") + dropped(c, "other-group") > sent / 2

    run(story())


# Streams


def test_what_no_datagram_holds_goes_over_a_stream() -> None:
    async def story() -> None:
        many = {f"{'ä' * 61}{number:03}": number / 7 for number in range(12)}  # 1.5 KB
        async with Crowd(protocol="bully", attributes=many) as crowd:
            a = await crowd.add("a")
            b = await crowd.add("b")
            tap = Tap(b)
            c = await crowd.add("c", seeds=[b.address])
            await crowd.known(3)
            leader = await crowd.agreed()
            assert {peer.name: peer.attributes for peer in a.members()}["c"] == many
            assert max(len(data) for _, data in tap.streamed) > 1200
            assert dropped(a, "unsendable") == dropped(c, "too-large") == 0
            await leader.kill()
            await crowd.agreed(but=leader.name)

    run(story())


async def closed_by(member: Member, data: bytes) -> bytes:
    """Connect to a member, say something, and read until it hangs up."""
    reader, writer = await asyncio.open_connection(*endpoint(member))
    try:
        writer.write(data)
        async with asyncio.timeout(10):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def test_garbage_on_a_stream_is_counted_and_the_stream_closed() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            member = await crowd.add("a")
            for data, reason in (
                (b"GET / HTTP/1.1\r\n\r\n", "too-large"),
                (b"\x00\x00\x00\x00", "not-a-frame"),
                (on_stream(b"hello"), "not-a-frame"),
                (on_stream(b"H\x03\x00" + bytes(40)), "other-group"),
            ):
                before = dropped(member, reason)
                assert await closed_by(member, data) == b""
                assert dropped(member, reason) == before + 1

    run(story())


def test_half_a_frame_on_a_stream_is_counted() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            member = await crowd.add("a")
            _, writer = await asyncio.open_connection(*endpoint(member))
            writer.write(on_stream(frame(forged(member, me=666), ProbeMsg(1)))[:-1])
            await writer.drain()
            writer.close()
            await until(lambda: dropped(member, "truncated") == 1, "it is counted")

    run(story())


def test_who_connects_and_says_nothing_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hustings.net.tcp._FIRST_FRAME", 0.3)

    async def story() -> None:
        loop = asyncio.get_running_loop()
        async with Crowd() as crowd:
            member = await crowd.add("a")
            began = loop.time()
            assert await closed_by(member, b"") == b""
            assert loop.time() - began < 3
            reader, writer = await asyncio.open_connection(*endpoint(member))

            async def drip() -> None:
                """A byte now and then never makes a frame."""
                for byte in on_stream(b"H" * 10_000):
                    writer.write(bytes((byte,)))
                    await asyncio.sleep(0.05)

            dripping = asyncio.create_task(drip())
            try:
                async with asyncio.timeout(5):
                    await reader.read()
            except ConnectionError:
                pass
            finally:
                dripping.cancel()
                await asyncio.gather(dripping, return_exceptions=True)
                writer.close()

    run(story())


def test_too_many_connections_are_counted_and_closed_and_datagrams_go_on() -> None:
    async def story() -> None:
        async with Crowd(protocol="bully", limits={"connections": 4}) as crowd:
            leader, b, c = await trio(crowd)
            writers = []
            try:
                for _ in range(12):
                    _, writer = await asyncio.open_connection(*endpoint(leader))
                    writers.append(writer)
                await until(
                    lambda: dropped(leader, "connections") >= 8,
                    lambda: str(leader.metrics().drops),
                )
                assert one_leader(crowd.open()) is leader
                await throughout(0.5, lambda: leader.is_leader, "it leads on")
            finally:
                for writer in writers:
                    writer.close()
            await leader.kill()
            await crowd.agreed(but=leader.name, among=[b, c])

    run(story())


def test_a_full_group_counts_who_does_not_fit() -> None:
    async def story() -> None:
        async with Crowd(protocol="bully", limits={"members": 3, "view": 3}) as crowd:
            await crowd.add_all(["a", "b", "c"])
            await crowd.known(3)
            await crowd.agreed()
            await crowd.add("d")
            await until(
                lambda: any(dropped(each, "members") for each in crowd.open()[:3]),
                lambda: str([each.metrics().drops for each in crowd.open()]),
            )
            assert all(len(each.members()) <= 3 for each in crowd.open())

    run(story())


def test_a_refused_connection_of_a_socket_that_is_not_a_member_harms_nobody() -> None:
    async def story() -> None:
        async with Crowd(protocol="bully") as crowd:
            leader, _, _ = await trio(crowd)
            for _ in range(50):
                with socket.create_connection(endpoint(leader), timeout=5):
                    pass
            await throughout(0.3, lambda: one_leader(crowd.open()) is leader, "it leads on")

    run(story())
