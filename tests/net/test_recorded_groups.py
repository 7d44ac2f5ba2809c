"""A stranger without the key plays back the frames of members that have ended: nobody is misled."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from hustings.core.choice import Candidate
from hustings.core.messages import Message
from hustings.core.names import member_id
from hustings.layers.gossip.messages import Entry, JoinMsg, WelcomeMsg
from hustings.layers.leadership.messages import LeaderInfoMsg, LeaderQueryMsg
from hustings.net.control_messages import ProbeMsg, ProbeReplyMsg
from hustings.net.keys import new_key
from hustings.net.limits import Reason
from hustings.net.peer_addresses import SMALL
from hustings.net.transport import Endpoint
from hustings.net.wire import Direction, Frame, Wire
from hustings.testing import Group
from tests.net.kit.crowd import Crowd, endpoint, note_of
from tests.net.kit.loops import run
from tests.net.kit.recordings import STRANGER, Answerer, Heard, Recording, play_back
from tests.net.kit.stranger import Tap, forged, frame

KEY = new_key()
LASTS = 8.0  # seconds of a recording
OLD, NEW = "abcde", "vwxyz"


def recorded(group: Group, names: str) -> list[Heard]:
    """A group from its start, which fails over once; then all its members end."""
    with Recording(group) as recording:
        for name in names:
            group.join(name)
        first = group.settle()
        group.advance(LASTS / 2)
        if len(names) > 2:
            group.kill(first)
            group.settle()
        group.advance(LASTS / 2)
        for name in list(group.up):
            group.kill(name)
    return recording.once()


class Watch:
    """What members say about the leader while something happens."""

    def __init__(self, group: Group, names: str) -> None:
        self._members = [group.member(name) for name in names]
        self.leaders: set[str | None] = set()
        self.terms: set[int] = set()
        self.known: set[str] = set()

    def look(self) -> None:
        for member in self._members:
            self.leaders.add(None if member.leader is None else member.leader.name)
            self.terms.add(member.term)
            self.known |= {each.name for each in member.members()}


@pytest.mark.parametrize("stranger", ["former-port", "own-port", "accepting"])
@pytest.mark.parametrize("members", [2, 3, 5])
@pytest.mark.parametrize("protocol", ["le-s", "bully", "probabilistic", "stable", "ring"])
def test_a_new_group_does_not_follow_a_former_one(
    protocol: str, members: int, stranger: str
) -> None:
    with Group(seed=members, protocol=protocol, key=KEY) as group:
        heard, new = recorded(group, OLD[:members]), NEW[:members]
        for name in new:
            group.join(name, observer=members == 5 and name == new[-1])
        leader = group.settle()
        group.advance(2.0)
        if stranger == "accepting":
            for name in OLD[:members]:
                Answerer(group, endpoint(group.member(name)))
        watch = Watch(group, new)
        group.run(play_back(group, heard, new, spoofed=stranger != "own-port", look=watch.look))
        assert watch.leaders == {leader}
        assert len(watch.terms) == 1
        assert watch.known == set(new), "nor do they count as members"
        node = group.member(new[0]).node
        assert node.filter.counters[Reason.UNANSWERED] > 0
        notes = group.member(new[0]).notes
        assert any("does not answer: it is not heard" in note for note in notes)


def test_members_with_a_guard_do_not_follow_it_either() -> None:
    with Group(seed=4, key=KEY, guard="memory://recorded") as group:
        heard = recorded(group, "abc")
        for name in "xyz":
            group.join(name)
        leader = group.settle()
        watch = Watch(group, "xyz")
        group.run(play_back(group, heard, "xyz", look=watch.look))
        assert (watch.leaders, watch.known) == ({leader}, set("xyz"))


@pytest.mark.parametrize("protocol", ["le-s", "bully", "probabilistic"])
def test_members_that_are_back_under_their_names_do_not_follow_the_one_that_is_not(
    protocol: str,
) -> None:
    """So the stranger has frames that are addressed to them, and answers among these."""
    with Group(seed=2, protocol=protocol, key=KEY) as group:
        with Recording(group) as recording:
            for name in "abc":
                group.join(name)
            dead = group.settle()
            group.advance(LASTS)
            for name in "abc":
                group.kill(name)
        there = "abc".replace(dead, "")
        for name in there:
            group.restart(name)
        leader = group.settle()
        Answerer(group, endpoint(group.member(dead)))
        watch = Watch(group, there)
        group.run(play_back(group, recording.heard, there, look=watch.look))
        assert (watch.leaders, watch.known) == ({leader}, set(there))


@pytest.mark.parametrize("protocol", ["le-s", "bully", "probabilistic"])
def test_what_a_member_missed_while_it_was_cut_off_is_not_played_back_to_it(protocol: str) -> None:
    """Its leader went on elsewhere, and ended there: the numbers of these frames are new to it."""
    with Group(seed=5, protocol=protocol, key=KEY) as group:
        for name in "abc":
            group.join(name)
        dead = group.settle()
        group.advance(2.0)
        alone, other = (name for name in "abc" if name != dead)
        with Recording(group) as recording:
            group.partition([alone], [dead, other])
            group.settle([dead, other])
            group.settle([alone])
            group.advance(LASTS)
            group.kill(dead)
            group.kill(other)
        group.heal()
        Answerer(group, endpoint(group.member(dead)))
        heard = [each for each in recording.once() if each.source != endpoint(group.member(alone))]
        watch = Watch(group, alone)
        group.run(play_back(group, heard, alone, look=watch.look))
        assert (watch.leaders, watch.known) == ({alone}, {alone})


def test_a_recorded_answer_is_none() -> None:
    """The question was this process's own; but its member has left the view since."""
    with Group(seed=6, key=KEY) as group:
        with Recording(group) as recording:
            for name in "ab":
                group.join(name)
            group.settle()
            group.advance(2.0)
        b = group.member("b")
        a = group.member("a").node
        assert a.presence.has(b.id)
        group.kill("b")
        group.advance(1.0)
        assert group.leaders == ["a"]
        assert not a.presence.has(b.id)
        watch = Watch(group, "a")
        group.run(play_back(group, recording.heard, "a", look=watch.look))
        assert not a.presence.has(b.id)
        assert (watch.leaders, watch.known) == ({"a"}, {"a"})


def test_a_recorded_answer_that_was_held_up_is_soon_none() -> None:
    """Of a member that has ended meanwhile, to a question that is still open."""
    for held_up, counts in ((1.9, True), (4.1, False)):
        with Group(seed=6, key=KEY) as group:
            group.join("a")
            group.settle()
            a, b = group.member("a"), member_id("b")
            wire = forged(a, b)
            nonce = said(group, wire, LeaderInfoMsg((b,), 9))
            group.advance(held_up)
            said(group, wire, ProbeReplyMsg(nonce))
            assert a.node.presence.has(b) is counts


def said(group: Group, wire: Wire, message: Message, at: Endpoint = STRANGER) -> int:
    """Let member a read a datagram; the number that it asks of its sender at that time."""
    node = group.member("a").node

    async def read() -> int:
        node.datagram(frame(wire, message), at)
        return node.address_validation._nonce(wire.me, at, node._clock.time())

    return group.run(read())


def test_another_incarnation_has_to_answer_for_itself() -> None:
    with Group(seed=6, key=KEY) as group:
        for name in "ab":
            group.join(name)
        group.settle()
        group.advance(2.0)
        a, b = group.member("a"), group.member("b").id
        assert a.node.presence.has(b)
        term, later = a.term, forged(a, b, 2)
        group.kill("b", machine=True)  # it is still in view, and does not say that it lives
        said(group, later, LeaderInfoMsg((b,), term + 7))
        assert a.node.filter.counters[Reason.UNVERIFIED] == 1, "it is asked first"
        group.advance(0.6)
        assert a.node.filter.incarnation(b) == 2, "it has not answered, so this one may"
        assert b in a.node.stack.membership.view
        assert len(a.node.presence._unheard[b].kept) == 1, "and has to answer, too"
        nonce = said(group, later, LeaderInfoMsg((b,), term + 7))
        assert a.term == term
        said(group, later, ProbeReplyMsg(nonce))
        assert a.node.presence._present[b].incarnation == 2


def test_old_frames_of_a_member_that_lives_are_refused() -> None:
    """Those that came before its answer, and those that come after."""
    with Group(seed=6, key=KEY) as group:
        group.join("a")
        group.settle()
        a, b = group.member("a"), member_id("b")
        wire = forged(a, b)
        info = LeaderInfoMsg((b,), 9)
        said(group, wire, joining(b, "b", STRANGER))
        nonce = said(group, wire, info)
        wire._number = 5000
        said(group, wire, ProbeReplyMsg(nonce))
        assert a.node.presence.has(b)
        assert (a.term, len(a.members())) == (1, 1)
        wire._number = 5000 - a.node.filter.wire.limits.replay_window - 1
        refused = a.node.filter.counters[Reason.TOO_LATE]
        said(group, wire, info)
        assert a.node.filter.counters[Reason.TOO_LATE] == refused + 1
        wire._number = 5001
        said(group, wire, joining(b, "b", STRANGER))
        assert len(a.members()) == 2, "the next one is heard"
        wire._number = 9000
        said(group, wire, info)
        for number in (5002, 5003, 5004, 5005, 5006):  # so many that it is asked for its number
            wire._number = number
            said(group, wire, info)
        wire._number = 5000
        said(group, wire, ProbeReplyMsg(nonce))
        refused = a.node.filter.counters[Reason.TOO_LATE]
        wire._number = 5500
        said(group, wire, info)
        assert a.node.filter.counters[Reason.TOO_LATE] == refused + 1, "an answer sets nothing back"


def test_a_false_source_gets_no_more_than_the_stranger_sends() -> None:
    with Group(seed=6, key=KEY) as group:
        group.join("a")
        group.settle()
        a, victim = group.member("a"), ("127.0.0.1", 4444)
        got: list[bytes] = []
        sent = 0
        send = a.node.transport.send

        def noted(to: Endpoint, data: bytes) -> None:
            if to == victim:
                got.append(data)
            send(to, data)

        with patch.object(a.node.transport, "send", noted):
            for number in range(500):
                wire = forged(a, member_id(f"old-{number % 50}"))
                wire._number = number
                message = LeaderQueryMsg(1) if number % 2 else ProbeMsg(number)
                said(group, wire, message, victim)
                sent += len(frame(wire, message))
        assert len(got) >= 50
        assert sum(map(len, got)) < 2 * sent


def test_a_flood_of_recorded_frames_keeps_no_member_out() -> None:
    """Of more former members than the table holds, on the machine of all true ones."""
    with Group(seed=7, key=KEY) as group:
        for name in "ab":
            group.join(name)
        leader = group.settle()
        group.advance(2.0)
        node = group.member("a").node
        wires = [forged(group.member("a"), member_id(f"old-{n}")) for n in range(400)]
        flooded = ["a", "b"]
        sent = 0

        async def flood() -> None:
            nonlocal sent
            while True:
                for number, wire in enumerate(wires):
                    source = ("127.0.0.1", 1000 + number)
                    for data in (
                        frame(wire, LeaderInfoMsg((wire.me,), 9)),
                        frame(wire, ProbeMsg(number + 1)),
                        frame(wire, joining(wire.me, f"old-{number}", source)),
                    ):
                        for name in flooded:
                            if name in group.up:
                                group.network._ports[endpoint(group.member(name))].arrive(
                                    data, source
                                )
                                sent += 1
                    await asyncio.sleep(0.002)

        flooding = group.run(started(flood))
        group.advance(4.0)  # after so many questions without an answer a window is narrow
        group.join("c")
        flooded.append("c")
        assert group.settle(within=3.0) == leader
        group.advance(2.0)
        for name in "abc":
            assert {each.name for each in group.member(name).members()} == set("abc")
        group.kill(leader)
        group.settle(within=5.0)
        assert sent > 15_000
        assert node.presence.is_strict, "former members make no group large"
        assert len(node.presence._unheard) <= 4 * SMALL
        assert node.presence._bytes <= 2 * 1024 * 1024
        flooding.cancel()


def joining(member: int, name: str, at: Endpoint) -> Message:
    """What a member says that wants to be let in."""
    return JoinMsg(Entry(Candidate(member), 1, 1, f"{at[0]}:{at[1]} {name}"), False, True)


async def started(work: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(work())


def test_the_kept_messages_have_a_bound_in_bytes() -> None:
    with Group(seed=8, key=KEY) as group:
        group.join("a")
        group.settle()
        node = group.member("a").node
        entries = tuple(
            Entry(Candidate(member_id(f"n{n}")), 1, 1, f"10.0.0.{n % 250}:{7000 + n} n{n}")
            for n in range(3000)
        )

        async def send() -> int:
            most = 0
            for number in range(100):
                wire = forged(group.member("a"), member_id(f"old-{number}"))
                data = wire.write(WelcomeMsg(entries, 1, (), None), None, Direction.QUESTION)
                assert isinstance(data, Frame)
                node.frame(data.data, ("127.0.0.1", 5000 + number), Direction.QUESTION)
                most = max(most, node.presence._bytes)
            return most

        assert 1_000_000 < group.run(send()) <= 2 * 1024 * 1024
        assert len(group.member("a").members()) == 1


@pytest.mark.parametrize("protocol", ["le-s", "bully"])
def test_a_link_that_begins_to_work_one_way_only_changes_nothing(protocol: str) -> None:
    """A follower that its leader no longer hears follows on: the leader had answered it."""
    with Group(seed=3, protocol=protocol) as group:
        for name in "abc":
            group.join(name)
        leader = group.settle()
        group.advance(3.0)
        follower = "abc".replace(leader, "")[0]
        group.cut(follower, leader)
        before = len(group.log)
        group.advance(60.0)
        assert group.log[before:] == []


def test_a_member_that_is_heard_and_gets_nothing_is_named() -> None:
    with Group(seed=3) as group:
        group.join("a")
        group.settle()
        group.network.cut(("127.0.0.1", 7401), ("127.0.0.1", 7402))
        group.join("b")
        group.advance(10.0)
        a, b = group.member("a"), group.member("b")
        assert note_of(a, "b speaks from 127.0.0.1:7402 and does not answer: it is not heard")
        assert [each.name for each in a.members()] == ["a"]
        assert b.leader is None
        group.heal()
        group.settle(within=5.0)


def test_real_members_do_not_follow_it() -> None:
    """Over real sockets, from the ports of the former members, which accept connections."""

    async def story() -> None:
        async with Crowd(key=KEY, protocol="le-s") as crowd:
            former = await crowd.add_all("abc")
            taps = [Tap(each) for each in former]
            await crowd.agreed()
            await asyncio.sleep(1.5)
            recordings = [[data for _, data in tap.sent] for tap in taps]
            places = [endpoint(each) for each in former]
            for each in former:
                await each.kill()
            new = await crowd.add_all("xyz")
            leader = await crowd.agreed()
            leaders = set()
            with sockets_at(places) as strangers:
                longest = max(map(len, recordings))
                for step in range(longest):
                    for stranger, recording in zip(strangers, recordings, strict=True):
                        if step < len(recording):
                            for each in new:
                                stranger.sendto(recording[step], endpoint(each))
                    await asyncio.sleep(1.5 / longest)
                    leaders |= {None if each.leader is None else each.leader.name for each in new}
            assert longest > 20
            assert leaders == {leader.name}
            assert all(len(each.members()) == 3 for each in new)
            assert sum(each.metrics().drops["unanswered"] for each in new) > 0

    run(story())


@contextmanager
def sockets_at(places: list[Endpoint]) -> Iterator[list[socket.socket]]:
    """A socket for datagrams at each place, and one that accepts connections beside it."""
    with ExitStack() as stack:
        made = []
        for place in places:
            accepting = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            accepting.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            accepting.bind(place)
            accepting.listen()
            made.append(stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)))
            made[-1].bind(place)
        yield made
