"""The ends of others, by themselves: when it is knocked, believed, told, and watched for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from hustings.net.control_messages import ProbeMsg, ProcessEndedMsg
from hustings.net.crash_watch import CrashWatch
from tests.net.kit.fake_node import ME, FakeNode, at
from tests.net.kit.virtual import virtually

Story = Callable[[FakeNode, CrashWatch], Coroutine[Any, Any, None]]


def played(story: Story, lot: float = 0.0) -> None:
    async def on_loop() -> None:
        host = FakeNode()
        for member in (2, 3, 4):
            host.circle.put(member)
        host.lot.drawn = lot
        it: Any = host
        await story(host, CrashWatch(it))

    virtually(on_loop())


# Refusals


def test_the_second_refusal_within_a_while_is_looked_into() -> None:
    async def story(host: FakeNode, endings: CrashWatch) -> None:
        endings.refused(("127.0.0.1", 9))
        assert host.sent == [], "nobody is there"
        endings.refused(at(2))
        assert host.sent == [(2, ProbeMsg(0))], "asked once more"
        assert host.transport.knocks == []
        await asyncio.sleep(3.0)
        endings.refused(at(2))
        assert [to for to, _ in host.transport.knocks] == [at(2)]
        assert len(host.sent) == 1
        endings.refused(at(3))
        await asyncio.sleep(3.5)
        endings.refused(at(3))
        assert len(host.transport.knocks) == 1, "that was too long ago"
        await asyncio.sleep(1.0)
        endings.refused(at(3))
        assert len(host.transport.knocks) == 2

    played(story)


def test_a_knock_that_is_refused_is_an_end_and_is_told() -> None:
    async def story(host: FakeNode, endings: CrashWatch) -> None:
        for _ in range(2):
            endings.refused(at(2))
        (_, refused) = host.transport.knocks[0]
        refused()
        assert host.suspected == [2]
        assert host.sent[-1] == (None, ProcessEndedMsg(2, 5))
        refused()
        assert host.sent.count((None, ProcessEndedMsg(2, 5))) == 1, "once"
        host.circle.dead.add(2)
        refused()
        assert host.suspected == [2, 2], "who is dead already is not suspected again"

    played(story)


@pytest.mark.parametrize(
    "size, leads, told", [(4, False, True), (64, False, True), (65, False, False), (65, True, True)]
)
def test_in_a_large_group_only_a_leaders_end_is_told_to_all(
    size: int, leads: bool, told: bool
) -> None:
    async def story(host: FakeNode, endings: CrashWatch) -> None:
        host.stack.membership.size = size
        host.stack.leaders = (2,) if leads else (3,)
        for _ in range(2):
            endings.refused(at(2))
        host.transport.knocks[0][1]()
        assert host.suspected == [2]
        assert ((None, ProcessEndedMsg(2, 5)) in host.sent) is told

    played(story)


def test_one_door_is_knocked_at_once_a_second() -> None:
    async def story(host: FakeNode, endings: CrashWatch) -> None:
        endings.gone(ProcessEndedMsg(2, 5))
        await asyncio.sleep(0.9)
        endings.gone(ProcessEndedMsg(2, 5))
        assert len(host.transport.knocks) == 1
        await asyncio.sleep(0.1)
        endings.gone(ProcessEndedMsg(2, 5))
        assert len(host.transport.knocks) == 2
        endings.gone(ProcessEndedMsg(3, 5))
        assert len(host.transport.knocks) == 3

    played(story)


def test_nobody_knocks_where_nobody_was_proven_to_be() -> None:
    async def story(host: FakeNode, endings: CrashWatch) -> None:
        host.reached = False
        endings.gone(ProcessEndedMsg(2, 5))
        host.reached = True
        host.circle.put(3, place="nowhere")
        endings.gone(ProcessEndedMsg(3, 5))
        assert host.transport.knocks == []

    played(story)


# What others say


def test_an_end_that_others_tell_of_is_believed_only_of_the_life_that_is_known() -> None:
    async def story(host: FakeNode, endings: CrashWatch) -> None:
        host.circle.put(ME)
        host.circle.dead.add(3)
        for message in (
            ProcessEndedMsg(2, 4),
            ProcessEndedMsg(2, 6),
            ProcessEndedMsg(99, 5),
            ProcessEndedMsg(ME, 5),
            ProcessEndedMsg(3, 5),
        ):
            endings.gone(message)
        assert host.transport.knocks == []
        endings.gone(ProcessEndedMsg(2, 5))
        assert [to for to, _ in host.transport.knocks] == [at(2)]
        host.transport.knocks[0][1]()
        assert host.suspected == [2]
        assert host.sent == [], "whoever said so has told the others"

    played(story, lot=0.0)


def test_who_follows_another_leader_looks_into_an_end_later() -> None:
    async def story(host: FakeNode, endings: CrashWatch) -> None:
        host.stack.leaders = (3,)
        endings.gone(ProcessEndedMsg(2, 5))
        endings.gone(ProcessEndedMsg(3, 5))
        assert [to for to, _ in host.transport.knocks] == [at(3)], "the leader's at once"
        await asyncio.sleep(0.099)
        assert len(host.transport.knocks) == 1
        await asyncio.sleep(0.002)
        assert [to for to, _ in host.transport.knocks] == [at(3), at(2)]
        endings.gone(ProcessEndedMsg(4, 5))
        endings.stop()
        await asyncio.sleep(1.0)
        assert len(host.transport.knocks) == 2, "not after its end"

    played(story, lot=0.5)


# Streams to leaders


async def watched(host: FakeNode, endings: CrashWatch, *leaders: int) -> Any:
    """The stream to the last leader, once it is opened."""
    host.stack.leaders = leaders
    endings.follow(leaders)
    await asyncio.sleep(0.2)
    return host.transport.watches[-1] if host.transport.watches else None


def test_a_stream_is_kept_to_each_leader_but_oneself_and_opened_unhurriedly() -> None:
    async def story(host: FakeNode, endings: CrashWatch) -> None:
        endings.follow((ME, 2, 3))
        assert endings.following
        await asyncio.sleep(0.04)
        assert host.transport.watches == []
        await asyncio.sleep(0.02)
        assert [each.to for each in host.transport.watches] == [at(2), at(3)]
        assert host.transport.watches[0].hello() == b"hello to 2"
        endings.follow((3,))
        assert [each.open for each in host.transport.watches] == [False, True]
        host.circle.put(3, place="127.0.0.1:7 m3")
        endings.follow((3,))
        await asyncio.sleep(0.1)
        assert not host.transport.watches[1].open
        assert host.transport.watches[2].to == ("127.0.0.1", 7), "it has moved"
        assert len(host.transport.watches) == 3
        endings.follow((2,))
        endings.stop()
        await asyncio.sleep(0.2)
        assert len(host.transport.watches) == 3
        assert not any(each.open for each in host.transport.watches)

    played(story, lot=0.0)


def test_streams_are_kept_to_eight_leaders_at_most() -> None:
    async def story(host: FakeNode, endings: CrashWatch) -> None:
        for member in range(10, 20):
            host.circle.put(member)
        await watched(host, endings, *range(10, 20))
        watches = host.transport.watches
        assert [each.to for each in watches] == [at(member) for member in range(10, 18)]

    played(story)


def test_who_is_not_proven_to_be_there_is_asked_and_looked_at_again() -> None:
    async def story(host: FakeNode, endings: CrashWatch) -> None:
        host.reached = False
        assert await watched(host, endings, 2) is None
        assert host.asked == [(2, at(2))]
        following = [endings.following]
        host.reached = True
        assert await watched(host, endings, 2) is not None
        following.append(endings.following)
        endings.follow((99,))
        following.append(endings.following)
        assert following == [False, True, False], "gossip may say later where that one is"
        assert len(host.asked) == 1

    played(story)


@pytest.mark.parametrize(
    "size, lot, deference, watches",
    [
        (64, 0.99, 0.0, True),
        (128, 0.49, 0.0, True),
        (128, 0.5, 0.0, False),
        (16, 0.49, 1.0, True),
        (16, 0.5, 1.0, False),
    ],
)
def test_in_a_large_group_some_watch_for_all(
    size: int, lot: float, deference: float, watches: bool
) -> None:
    async def story(host: FakeNode, endings: CrashWatch) -> None:
        host.stack.membership.size, host.deference = size, deference
        assert (await watched(host, endings, 2) is not None) is watches

    played(story, lot=lot)


def test_without_a_head_start_nobody_is_to_lead_next() -> None:
    async def story(host: FakeNode, endings: CrashWatch) -> None:
        host.stack.membership.size, host.ranking = 1000, [2, ME, 3]
        assert await watched(host, endings, 2) is None

    played(story, lot=0.9)


def test_whoever_is_to_lead_next_watches_and_looks_at_once() -> None:
    async def story(host: FakeNode, endings: CrashWatch) -> None:
        host.stack.membership.size, host.deference = 1000, 0.7
        host.ranking = [2, ME, 3]
        watch = await watched(host, endings, 2)
        assert watch.leisure() == 0.0
        host.ranking = [2, 3, ME]
        assert watch.leisure() == 0.7
        host.stack.leaders = (2, 3)
        assert watch.leisure() == 0.0
        host.deference = 0.0
        assert watch.leisure() == 0.0

    played(story, lot=0.9)


def test_a_stream_that_certainly_ended_is_an_end_and_one_that_broke_is_a_question() -> None:
    async def story(host: FakeNode, endings: CrashWatch) -> None:
        watch = await watched(host, endings, 2)
        watch.gone(False)
        assert host.sent == [(2, ProbeMsg(0))]
        assert host.suspected == []
        assert watch.open
        watch.gone(True)
        assert host.suspected == [2]
        assert not watch.open
        assert not endings.following
        watch.gone(True)
        watch.gone(False)
        assert host.suspected == [2], "that is over"
        assert len([each for each in host.sent if each[0] == 2]) == 1

    played(story)


@pytest.mark.parametrize(
    "lot, deference, following, told",
    [
        (0.99, 0.0, 4, True),
        (0.62, 0.0, 8, True),
        (0.63, 0.0, 8, False),
        (0.07, 0.0, 999, True),
        (0.08, 0.0, 999, False),
        (0.99, 1.0, 4, True),
        (0.62, 1.0, 999, True),
        (0.63, 1.0, 999, False),
    ],
)
def test_of_those_that_notice_some_tell(
    lot: float, deference: float, following: int, told: bool
) -> None:
    """About five of them, whatever the size of the group; fewer watch where the next acts first."""

    async def story(host: FakeNode, endings: CrashWatch) -> None:
        host.deference = deference
        host.stack.membership.view = range(following)
        host.ranking = [2, 3, ME]
        watch = await watched(host, endings, 2)
        host.lot.drawn = lot
        watch.gone(True)
        assert host.suspected == [2]
        assert ((None, ProcessEndedMsg(2, 5)) in host.sent) is told

    played(story)


def test_who_leads_now_tells_later_why() -> None:
    async def story(host: FakeNode, endings: CrashWatch) -> None:
        host.deference, host.ranking = 1.0, [2, ME]
        watch = await watched(host, endings, 2)
        host.stack.on_suspect = lambda ctx, member: setattr(host.stack, "leaders", (ME,))
        watch.gone(True)
        assert host.sent == []
        await asyncio.sleep(0.2)
        assert host.sent == [(None, ProcessEndedMsg(2, 5))]

    played(story)


def test_of_many_ends_the_latest_are_not_told_again() -> None:
    async def story(host: FakeNode, endings: CrashWatch) -> None:
        def end(member: int) -> list[Any]:
            """What is told when nobody is there any more."""
            host.sent.clear()
            for _ in range(2):
                endings.refused(at(member))
            host.transport.knocks[-1][1]()
            return [message for to, message in host.sent if to is None]

        for member in range(10, 10 + 257):
            host.circle.put(member)
            assert end(member) == [ProcessEndedMsg(member, 5)]
        await asyncio.sleep(1.0)
        assert end(10 + 256) == end(11) == [], "these are remembered"
        assert end(10) == [ProcessEndedMsg(10, 5)], "this one is not"

    played(story)


def test_who_hears_of_too_many_remembers_the_latest() -> None:
    async def story(host: FakeNode, endings: CrashWatch) -> None:
        for member in range(10, 10 + 258):
            host.circle.put(member)
            endings.gone(ProcessEndedMsg(member, 5))
        assert len(host.transport.knocks) == 258
        endings.gone(ProcessEndedMsg(10 + 257, 5))
        endings.gone(ProcessEndedMsg(12, 5))
        assert len(host.transport.knocks) == 258, "these are remembered"
        endings.gone(ProcessEndedMsg(10, 5))
        assert len(host.transport.knocks) == 259, "this one is not"
        limits: Any = host.filter.wire
        limits.limits = type("Few", (), {"members": 2})()
        for member in (2, 3, 4):
            endings.refused(at(member))
        endings.refused(at(2))
        await asyncio.sleep(1.0)
        before = len(host.transport.knocks)
        endings.refused(at(4))
        assert len(host.transport.knocks) == before + 1

    played(story)
