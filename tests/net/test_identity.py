"""Whoever speaks in another member's name, or repeats its own past, shuts nobody out for good.

The groups have no key, so that anybody on the machine can do all that is done here.
"""

from __future__ import annotations

import asyncio
import time

import pytest

from hustings.core.messages import Message
from hustings.layers.detector.heartbeat import HeartbeatMsg
from hustings.layers.gossip.messages import LeaveMsg
from hustings.layers.leadership.messages import LeaderQueryMsg
from hustings.net.control_messages import ProbeMsg, ProbeReplyMsg
from hustings.net.filter import LEAP, ReplayProtection
from hustings.net.member import Member
from hustings.net.validation import bounds
from hustings.net.wire import MAX_NUMBER, Wire
from tests.net.kit.crowd import Crowd, cut, dropped, endpoint, heal, one_leader
from tests.net.kit.loops import run, throughout, until
from tests.net.kit.stranger import datagrams, forged, frame

PROTOCOLS = ["le-s", "bully"]


def say(
    member: Member, to: Member, message: Message, number: int = 0, incarnation: int = 0
) -> None:
    """One datagram in a member's name, from somewhere else."""
    real = member.node.filter.wire
    wire = forged(member, member.id, incarnation or real.incarnation)
    wire._number = min(number or real._number + 100, MAX_NUMBER) - 1
    with datagrams() as stranger:
        stranger.sendto(frame(wire, message, to.id), endpoint(to))


def forged_next(member: Member) -> Wire:
    """Somebody who goes on from where a member is."""
    wire = forged(member, member.id, member.node.filter.wire.incarnation)
    wire._number = member.node.filter.wire._number + 100
    return wire


async def trio(crowd: Crowd) -> tuple[Member, list[Member]]:
    await crowd.add_all(["a", "b", "c"])
    await crowd.known(3)
    leader = await crowd.seated()
    return leader, [each for each in crowd.open() if each is not leader]


async def whole(crowd: Crowd) -> None:
    """All know all, they agree, and what the leader says is heard by everybody from now on."""
    await crowd.known(3)
    leader = await crowd.settled(lasting=1.0)
    others = [each for each in crowd.open() if each is not leader]
    before = {each.name: sum(each.metrics().messages_received.values()) for each in others}
    await until(
        lambda: all(
            sum(each.metrics().messages_received.values()) > before[each.name] + 5
            for each in others
        ),
        "everybody hears",
    )
    await throughout(0.5, lambda: one_leader(crowd.open()) is leader, "the leader changed")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("number", [MAX_NUMBER, 1 << 40, LEAP * 4, 3000])
def test_a_number_far_ahead_in_a_members_name(protocol: str, number: int) -> None:
    async def story() -> None:
        async with Crowd(protocol=protocol, insecure=True) as crowd:
            leader, others = await trio(crowd)
            ahead = min(leader.node.filter.wire._number + number, MAX_NUMBER)
            for other in others:
                say(leader, other, LeaderQueryMsg(1), number=ahead)
                say(other, leader, LeaderQueryMsg(1), number=ahead)
            await whole(crowd)

    run(story())


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("later", ["2^53", "the bound", "now", "one more"])
def test_another_life_in_a_members_name(protocol: str, later: str) -> None:
    async def story() -> None:
        async with Crowd(protocol=protocol, insecure=True) as crowd:
            leader, others = await trio(crowd)
            for other in others:
                for victim, to in ((leader, other), (other, leader)):
                    real = victim.node.filter.wire.incarnation
                    life = {
                        "2^53": MAX_NUMBER,
                        "the bound": bounds(time.time(), 1024).end,
                        "now": int(time.time() * 1000) * 1024,
                        "one more": real + 1,
                    }[later]
                    say(victim, to, LeaderQueryMsg(1), number=1, incarnation=life)
                    say(victim, to, HeartbeatMsg(life, 1 << 40), number=2, incarnation=life)
            await whole(crowd)
            refused = dropped(leader, "unverified") + dropped(leader, "future-incarnation")
            assert refused >= 2
            told = [note for note in leader.notes if "refused a message" in note]
            assert later != "2^53" or any("future-incarnation" in note for note in told)

    run(story())


@pytest.mark.parametrize("insecure", [True, False], ids=["without a key", "by a member"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_farewell_in_the_leaders_name(protocol: str, insecure: bool) -> None:
    async def story() -> None:
        async with Crowd(protocol=protocol, insecure=insecure) as crowd:
            leader, others = await trio(crowd)
            for other in others:
                say(leader, other, LeaveMsg(leader.node.filter.wire.incarnation))
            await whole(crowd)

    run(story())


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("lives", [(0, 0), (-1, 5), (0, -1, 5, 0)], ids=str)
def test_several_farewells_in_the_leaders_name(lives: tuple[int, ...], protocol: str) -> None:
    """The first draws the question whether it has left; the next come before another is asked."""

    async def story() -> None:
        async with Crowd(protocol=protocol) as crowd:
            leader, others = await trio(crowd)
            real, number = leader.node.filter.wire.incarnation, leader.node.filter.wire._number
            for more, days in enumerate(lives):
                life = 1 if days < 0 else real + days * 86_400_000 * 1024
                for other in others:
                    say(leader, other, LeaveMsg(life), number=number + 50 + 2 * more)
                await asyncio.sleep(0.05)
            await whole(crowd)

    run(story())


def test_a_farewell_of_which_the_question_is_lost() -> None:
    """It is asked again when it is heard again."""

    async def story() -> None:
        async with Crowd(protocol="bully", insecure=True) as crowd:
            leader, others = await trio(crowd)
            cut([leader], others)
            for other in others:
                other.node.datagram(
                    frame(forged_next(leader), LeaveMsg(leader.node.filter.wire.incarnation)),
                    endpoint(leader),
                )
            await asyncio.sleep(1.0)
            heal(crowd.open())
            await whole(crowd)

    run(story())


def test_a_machine_restored_from_a_snapshot_counts_again_from_there() -> None:
    """Its numbers have been used already."""

    async def story() -> None:
        async with Crowd(protocol="bully") as crowd:
            leader, others = await trio(crowd)
            for member in (leader, others[0]):
                wire = member.node.filter.wire
                wire._number += 2_000_000
                await whole(crowd)
                wire._number -= 1_000_000
            await whole(crowd)

    run(story())


def test_who_plays_back_what_was_recorded_moves_nothing() -> None:
    """The question whether a sender has lost count helps nobody to be heard twice."""
    replays = ReplayProtection(64, 10)
    for number in range(1, 200):
        assert replays.check(7, 1, number) is None
    for number in range(100, 120):
        assert replays.check(7, 1, number) is not None
    assert replays.lost_count(7)
    replays.confirm(7, 1, 200)  # it is where it was expected
    assert replays.check(7, 1, 150) is not None
    assert replays.check(7, 1, 201) is None


def test_whatever_came_before_counts_as_seen_when_a_sender_begins_again() -> None:
    replays = ReplayProtection(64, 10)
    assert replays.check(7, 2, 1_000) is None
    for number in (10, 11, 12, 13):
        assert replays.check(7, 2, number) is not None
    replays.confirm(7, 2, 14)
    for number in (10, 13, 14):
        assert replays.check(7, 2, number) is not None
    assert replays.check(7, 2, 15) is None
    assert replays.check(7, 2, 900) is None


def test_an_answer_that_nobody_asked_for_proves_nothing() -> None:
    async def story() -> None:
        async with Crowd(insecure=True) as crowd:
            leader, others = await trio(crowd)
            other = others[0]
            life = leader.node.filter.wire.incarnation + 1000
            for nonce in (0, 1, 7, 1 << 53):
                say(leader, other, ProbeReplyMsg(nonce), incarnation=life)
                say(leader, other, ProbeMsg(nonce), incarnation=life)
            await whole(crowd)
            assert other.node.filter.incarnation(leader.id) < life

    run(story())
