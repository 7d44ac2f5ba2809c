"""What is said about members: texts that have no place in a log, and members that are none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

import hustings
from hustings.core.choice import Candidate
from hustings.core.messages import Message
from hustings.core.names import is_attribute_name, is_member_name, member_id
from hustings.layers.gossip.messages import (
    Entry,
    GossipMsg,
    JoinMsg,
    PullMsg,
    WelcomeMsg,
    presentable,
)
from hustings.net.addresses import Address
from hustings.net.control_messages import ConfigConflictMsg
from hustings.net.member import Member, checked_attributes
from hustings.net.peer_addresses import Place, read_place
from hustings.protocols.announce.messages import AnnounceMsg
from tests.net.kit.crowd import Crowd, dropped, endpoint
from tests.net.kit.loops import run, until
from tests.net.kit.stranger import believed, datagrams, forged, frame

LIFE = 5
BAD = {
    "line end": "web\n1",
    "carriage return": "web\r1",
    "escape": "web\x1b[2J1",
    "zero": "web\x001",
    "delete": "web\x7f1",
    "C1": "web\x9b1",
    "turned round": "web\u202e1",
    "isolated": "web\u20661",
    "no width": "web\u200b1",
    "line separator": "web\u20281",
    "byte order mark": "\ufeffweb1",
    "surrogate": "web\udcff1",
    "private": "web\ue0001",
    "too long": "w" * 65,
    "blank before": " web1",
    "two ways to write it": "webe\u0301",
}


@pytest.fixture(autouse=True)
def liars_answer() -> Iterator[None]:
    """Only a process that has the key, or any one without a key, can lie so; it can answer, too."""
    with believed():
        yield


def minima(member: Member) -> tuple[int, ...]:
    return member.node.stack.membership.sizing.codes


def entry(name: str, place: str | None = None, **more: object) -> Entry:
    at = Place(("127.0.0.1", 9), name).text() if place is None else place
    attributes = tuple(sorted((key, float(str(value))) for key, value in more.items()))
    return Entry(Candidate(member_id(name), attributes), LIFE, 1, at)


def news(kind: str, said: Entry, like: Member) -> Message:
    """An entry on each of the ways on which entries come."""
    match kind:
        case "JOIN":
            return JoinMsg(said, to_all=False, asks=False)
        case "STATE-REQUEST":
            return PullMsg(said)
        case "STATE-TRANSFER":
            return WelcomeMsg((said,), 1, minima(like), None)
        case _:
            return GossipMsg((said,), 1, minima(like), None)


KINDS = ["JOIN", "STATE-REQUEST", "STATE-TRANSFER", "GOSSIP"]


def names(member: Member) -> set[str]:
    return {peer.name for peer in member.members()}


# Texts


@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
def test_one_rule_for_names_from_here_and_from_elsewhere(text: str) -> None:
    assert not is_member_name(text)
    assert not is_attribute_name(text)
    with pytest.raises(hustings.BadInput, match="does not do"):
        checked_attributes({text: 1.0})
    with pytest.raises(hustings.BadInput, match="does not do"):
        hustings.join("group", name=text)
    assert not presentable(Candidate(1, ((text, 1.0),)))
    assert read_place(f"127.0.0.1:7400 {text}") is None


def test_what_may_be_given_here_may_come_from_elsewhere() -> None:
    for text in ("cpu", "cpu load", "dur\u00e9e", "\u6e2c\u5b9a", "x" * 64):
        assert checked_attributes({text: 1.0})
        assert presentable(Candidate(1, ((text, 1.0),)))
    assert presentable(Candidate(1, (("cpu", 1.0), ("~standing", -2.0))))
    assert not presentable(Candidate(1, (("cpu", 1.0), ("cpu", 2.0)))), "which of the two?"


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1:7400\n web-1",
        "\n127.0.0.1:7400 web-1",
        "127.0.0.1:07400 web-1",
        "127.0.0.1:7400  web-1",
        "127.0.0.1:7400 web-1 ",
        "224.0.0.1:7400 web-1",
        "0.0.0.0:7400 web-1",
        "localhost:7400 web-1",
        "[fe80::1%\x1b]:7400 web-1",
        "web-1",
        "",
    ],
)
def test_a_place_is_written_in_one_way(text: str) -> None:
    assert read_place(text) is None


@pytest.mark.parametrize("kind", KINDS)
def test_texts_that_have_no_place_in_a_log_are_refused_and_counted(kind: str) -> None:
    texts = [text for name, text in BAD.items() if name != "surrogate"]  # no frame can hold it

    async def story() -> None:
        async with Crowd() as crowd:
            a = await crowd.add("a")
            good = member_id("good")
            bad = [
                said
                for text in texts
                for said in (
                    Entry(Candidate(member_id("web1")), LIFE, 1, f"127.0.0.1:9 {text}"),
                    Entry(Candidate(good, ((text, 1.0),)), LIFE, 1, "127.0.0.1:9 good"),
                    Entry(Candidate(good), LIFE, 1, f"127.0.0.1{text}:9 good"),
                )
            ]
            with datagrams() as stranger:
                for life, said in enumerate(bad, 1):
                    wire = forged(a, said.who.id, life)
                    stranger.sendto(frame(wire, news(kind, said, a)), endpoint(a))
                await until(
                    lambda: dropped(a, "bad-name") == len(bad), lambda: str(a.metrics().drops)
                )
                assert names(a) == {"a"}
                # The same message with nothing wrong with it is believed.
                wire = forged(a, good, len(bad) + 1)
                here = f"127.0.0.1:{stranger.getsockname()[1]} good"
                stranger.sendto(frame(wire, news(kind, entry("good", here, cpu=1), a)), endpoint(a))
                await until(lambda: names(a) == {"a", "good"}, lambda: str(names(a)))
            assert all(note.isprintable() for note in a.notes)

    run(story())


def test_who_is_known_gets_no_bad_name_later() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            a = await crowd.add("a")
            with datagrams() as stranger:
                good = entry("good", f"127.0.0.1:{stranger.getsockname()[1]} good")
                wire = forged(a, good.who.id, LIFE)
                stranger.sendto(frame(wire, news("GOSSIP", good, a)), endpoint(a))
                await until(lambda: names(a) == {"a", "good"}, lambda: str(names(a)))
                worse = Entry(Candidate(good.who.id, (("\x1b[2J", 1.0),)), LIFE, 2, good.place)
                other = Entry(good.who, LIFE, 3, "127.0.0.1:9 \x1b[2J")
                for said in (worse, other):
                    stranger.sendto(frame(wire, news("GOSSIP", said, a)), endpoint(a))
                await until(lambda: dropped(a, "bad-name") == 2, lambda: str(a.metrics().drops))
            assert [peer.attributes for peer in a.members() if peer.name == "good"] == [{}]

    run(story())


def test_nobody_goes_by_the_name_of_another() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            a = await crowd.add("a")
            wrong = Entry(Candidate(666), LIFE, 1, "127.0.0.1:9 good")
            with datagrams() as stranger:
                stranger.sendto(frame(forged(a, 666, LIFE), news("GOSSIP", wrong, a)), endpoint(a))
                await until(lambda: dropped(a, "bad-name") == 1, lambda: str(a.metrics().drops))
            assert names(a) == {"a"}

    run(story())


def test_candidates_in_an_elections_own_messages_are_held_to_the_rule_too() -> None:
    async def story() -> None:
        async with Crowd(protocol="le-s") as crowd:
            a = await crowd.add("a")
            said = AnnounceMsg(1, 1, Candidate(666, (("\x1b]0;", 1.0),)))
            with datagrams() as stranger:
                stranger.sendto(frame(forged(a, 666, LIFE), said), endpoint(a))
                await until(lambda: dropped(a, "bad-name") == 1, lambda: str(a.metrics().drops))

    run(story())


# Numbers


def test_one_teller_brings_so_many_newcomers_a_second() -> None:
    async def story() -> None:
        async with Crowd(limits={"newcomers": 5}) as crowd:
            a = await crowd.add("a")
            wire = forged(a, 666, LIFE)
            loop = asyncio.get_running_loop()
            began = loop.time()
            with datagrams() as stranger:
                for each in range(100):
                    at = str(Address("127.0.0.1", 10_000 + each))
                    said = entry(f"fake-{each}", f"{at} fake-{each}")
                    stranger.sendto(frame(wire, news("GOSSIP", said, a)), endpoint(a))
                await until(lambda: dropped(a, "newcomers") > 50, lambda: str(a.metrics().drops))
            taken = len(a.members()) - 1
            assert 20 <= taken <= 20 + 5 * (loop.time() - began + 1)

    run(story())


def test_many_tellers_together_bring_no_more_than_twice_as_many() -> None:
    async def story() -> None:
        async with Crowd(limits={"newcomers": 5}) as crowd:
            a = await crowd.add("a")
            loop = asyncio.get_running_loop()
            began = loop.time()
            with datagrams() as stranger:
                for each in range(200):
                    at = str(Address("127.0.0.1", 10_000 + each))
                    said = entry(f"fake-{each}", f"{at} fake-{each}")
                    wire = forged(a, 1000 + each, LIFE)
                    stranger.sendto(frame(wire, news("GOSSIP", said, a)), endpoint(a))
                await until(lambda: dropped(a, "newcomers") > 50, lambda: str(a.metrics().drops))
            taken = len(a.members()) - 1
            assert 40 <= taken <= 40 + 10 * (loop.time() - began + 1)

    run(story())


def test_one_address_belongs_to_one_member() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            a = await crowd.add("a")
            b = await crowd.add("b")
            await crowd.known(2)
            wire = forged(a, 666, LIFE)
            with datagrams() as stranger:
                said = entry("fake", f"{b.address} fake")
                stranger.sendto(frame(wire, news("GOSSIP", said, a)), endpoint(a))
                await until(lambda: dropped(a, "address-taken") == 1, "it is b's")
                many = tuple(entry(f"fake-{each}", f"127.0.0.1:9 fake-{each}") for each in range(9))
                message = GossipMsg(many, 1, minima(a), None)
                stranger.sendto(frame(wire, message), endpoint(a))
                await until(lambda: dropped(a, "address-taken") == 9, lambda: str(names(a)))
            assert names(a) == {"a", "b", "fake-0"}

    run(story())


@pytest.mark.parametrize(
    "host, port",
    [
        ("slow.example", 7400),
        ("127.0.0.1\x1b[2J", 7400),
        ("", 7400),
        ("0.0.0.0", 7400),
        ("224.0.0.1", 7400),
        ("127.0.0.1", 0),
        ("127.0.0.1", 70_000),
        ("127.0.0.1", -1),
    ],
)
def test_where_another_group_is_said_to_be_is_an_address(host: str, port: int) -> None:
    """A name would be resolved while everything else waits."""

    async def story() -> None:
        async with Crowd() as crowd:
            a = await crowd.add("a")
            await until(lambda: a.is_leader, "it leads")
            with datagrams() as stranger:
                said = frame(forged(a, 666, LIFE), ConfigConflictMsg(host, port))
                stranger.sendto(said, endpoint(a))
                await until(lambda: dropped(a, "bad-name") == 1, lambda: str(a.metrics().drops))
            assert "CONFIG" not in a.metrics().messages_sent

    run(story())
