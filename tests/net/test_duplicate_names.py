"""Two processes under one name, by themselves: who is asked, who is believed, who is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from hustings.core.choice import Candidate
from hustings.core.errors import BadInput
from hustings.core.messages import Message
from hustings.layers.gossip.messages import Entry, JoinMsg, LeaveMsg
from hustings.net.control_messages import NameTakenMsg, OldIncarnationMsg, ProbeMsg, ProbeReplyMsg
from hustings.net.duplicate_names import DuplicateNames, NewerIncarnation
from hustings.net.limits import Reason
from tests.net.kit.fake_node import LIFE, ME, OWN, FakeNode, at, place_of
from tests.net.kit.virtual import virtually

ELSEWHERE = ("127.0.0.1", 7)
LEAVE = LeaveMsg(5)
Story = Callable[[FakeNode, DuplicateNames], Coroutine[Any, Any, None]]


def join(member: int, life: int, place: str) -> Any:
    return JoinMsg(Entry(Candidate(member), life, 1, place), to_all=False, asks=True)


def received(sender: int, message: Message, life: int = 6, number: int = 1) -> Any:
    return SimpleNamespace(sender=sender, message=message, incarnation=life, number=number)


def played(story: Story) -> None:
    async def on_loop() -> None:
        host = FakeNode()
        host.circle.put(2)
        it: Any = host
        await story(host, DuplicateNames(it))

    virtually(on_loop())


def probe(host: FakeNode) -> int:
    """The number of the question that went to member 2 last."""
    to, message = host.sent[-1]
    assert to == 2
    assert isinstance(message, ProbeMsg)
    return message.nonce


NEW = "127.0.0.1:7 m2"


# Doubts


def test_a_newcomer_under_the_name_of_a_living_member_elsewhere_is_doubted() -> None:
    async def story(host: FakeNode, namesakes: DuplicateNames) -> None:
        assert namesakes.doubts(received(2, join(2, 6, NEW)))
        assert not namesakes.doubts(received(2, join(2, 5, NEW))), "the life that is known"
        assert not namesakes.doubts(received(2, join(2, 6, place_of(2)))), "where it was"
        assert not namesakes.doubts(received(2, join(3, 6, NEW))), "it speaks of another"
        assert not namesakes.doubts(received(2, LEAVE))
        assert not namesakes.doubts(received(3, join(3, 6, NEW))), "nobody has that name"
        host.circle.dead.add(2)
        assert not namesakes.doubts(received(2, join(2, 6, NEW)))
        host.circle.dead.clear()
        host.circle.put(2, place="nowhere")
        assert not namesakes.doubts(received(2, join(2, 6, NEW)))

    played(story)


def test_numbers_that_leap_are_doubted_but_in_probes() -> None:
    async def story(host: FakeNode, namesakes: DuplicateNames) -> None:
        host.filter.leaping = True
        assert namesakes.doubts(received(2, LEAVE))
        assert namesakes.doubts(received(2, join(2, 5, place_of(2))))
        assert not namesakes.doubts(received(2, ProbeMsg(1)))
        assert not namesakes.doubts(received(2, ProbeReplyMsg(1)))
        assert not namesakes.doubts(received(3, LEAVE)), "nobody knows that one"

    played(story)


def test_who_is_in_doubt_is_let_in_if_the_one_that_was_there_is_silent() -> None:
    async def story(host: FakeNode, namesakes: DuplicateNames) -> None:
        said = received(2, join(2, 6, NEW))
        namesakes.challenge(said)
        assert host.filter.counters[Reason.UNVERIFIED] == 1
        assert probe(host) > 0
        await asyncio.sleep(0.49)
        assert host.accepted == []
        await asyncio.sleep(0.02)
        assert host.accepted == [(said, at(2))]
        assert host.filter.admitted == [said]
        host.filter.admits = False
        namesakes.challenge(said)
        await asyncio.sleep(1.0)
        assert len(host.accepted) == 1, "it was refused for another reason"

    played(story)


def test_the_one_that_was_there_answers_and_the_newcomer_is_told() -> None:
    async def story(host: FakeNode, namesakes: DuplicateNames) -> None:
        said = received(2, join(2, 6, NEW))
        namesakes.challenge(said)
        nonce = probe(host)
        answer = received(2, ProbeReplyMsg(nonce), life=5)
        namesakes.present(nonce + 1, answer)
        namesakes.present(nonce, received(3, ProbeReplyMsg(nonce)))
        assert host.filter.confirmed == [], "another number, or another member"
        namesakes.present(nonce, answer)
        assert host.filter.confirmed == [answer]
        assert host.circle.recalled == [2]
        assert host.told == [(ELSEWHERE, NameTakenMsg(place_of(2), 5, 6), 2)]
        namesakes.present(nonce, answer)
        assert len(host.filter.confirmed) == 1, "once"
        await asyncio.sleep(1.0)
        assert host.accepted == []

    played(story)


def test_the_newcomer_itself_answers_and_is_let_in_unless_it_still_leaps() -> None:
    async def story(host: FakeNode, namesakes: DuplicateNames) -> None:
        said = received(2, join(2, 6, NEW))
        for leaping in (True, False):
            namesakes.challenge(said)
            host.filter.leaping = leaping
            namesakes.present(probe(host), received(2, ProbeReplyMsg(1), life=6))
            assert host.accepted == ([] if leaping else [(said, at(2))])
            await asyncio.sleep(1.0)
        assert host.told == []

    played(story)


def test_who_only_leaps_and_is_of_another_life_is_told_nothing() -> None:
    async def story(host: FakeNode, namesakes: DuplicateNames) -> None:
        namesakes.challenge(received(2, LEAVE, life=6))
        namesakes.present(probe(host), received(2, ProbeReplyMsg(1), life=5))
        namesakes.challenge(received(2, join(2, 6, "nowhere")))
        await asyncio.sleep(0.3)
        namesakes.challenge(received(2, join(2, 6, "nowhere")))
        namesakes.present(probe(host), received(2, ProbeReplyMsg(1), life=5))
        assert host.told == []
        assert host.accepted == []

    played(story)


def test_one_member_is_asked_once_at_a_time_and_not_too_often() -> None:
    async def story(host: FakeNode, namesakes: DuplicateNames) -> None:
        namesakes.ask(2)
        namesakes.ask(2)
        assert len(host.sent) == 1
        namesakes.present(probe(host), received(2, ProbeReplyMsg(1), life=5))
        assert host.circle.recalled == [2]
        namesakes.ask(2)
        assert len(host.sent) == 1, "it was asked just now"
        await asyncio.sleep(0.3)
        namesakes.ask(2)
        assert len(host.sent) == 2
        await asyncio.sleep(0.3)
        namesakes.ask(2)
        assert len(host.sent) == 2, "that question waits for its answer"
        namesakes.ask(99)
        assert len(host.sent) == 2, "nobody knows where that one is"
        await asyncio.sleep(0.3)
        namesakes.ask(2)
        assert len(host.sent) == 3
        assert host.accepted == []

    played(story)


def test_so_many_are_in_doubt_at_most_and_none_after_the_end() -> None:
    async def story(host: FakeNode, namesakes: DuplicateNames) -> None:
        for member in range(100, 400):
            host.circle.put(member)
            namesakes.challenge(received(member, join(member, 6, "127.0.0.1:7 x")))
        assert len(host.sent) == 256
        assert host.filter.counters[Reason.UNVERIFIED] == 300
        namesakes.stop()
        await asyncio.sleep(1.0)
        assert host.accepted == []
        namesakes.ask(399)
        assert len(host.sent) == 257, "there is room again"

    played(story)


def test_who_says_that_it_leaves_is_asked_and_gossip_is_held_to_the_date() -> None:
    async def story(host: FakeNode, namesakes: DuplicateNames) -> None:
        namesakes.precede(received(2, ProbeMsg(1)))
        assert host.sent == []
        assert not any(host.circle.latest)
        namesakes.precede(received(2, join(2, 6, NEW)))
        assert host.circle.latest == host.filter.latest
        assert host.sent == []
        namesakes.precede(received(2, LEAVE))
        assert probe(host)

    played(story)


def test_who_is_said_to_have_left_and_speaks_is_asked_again_and_again() -> None:
    async def story(host: FakeNode, namesakes: DuplicateNames) -> None:
        host.circle.gone.add(2)
        for count in range(1, 4):
            namesakes.precede(received(2, join(2, 5, place_of(2))))
            assert len(host.sent) == count
            await asyncio.sleep(0.6)

    played(story)


def test_who_keeps_a_member_busy_with_farewells_does_not_keep_it_from_asking() -> None:
    async def story(host: FakeNode, namesakes: DuplicateNames) -> None:
        for _ in range(20):
            namesakes.precede(received(2, LEAVE))
            if host.sent:
                namesakes.present(probe(host), received(2, ProbeReplyMsg(1), life=5))
            await asyncio.sleep(0.1)
        assert len(host.sent) >= 6

    played(story)


# One's own name


def taken(there: str = NEW, life: int = LIFE + 1, yours: int = LIFE) -> NameTakenMsg:
    return NameTakenMsg(there.replace("m2", "me"), life, yours)


def test_that_its_name_is_taken_a_member_asks_there() -> None:
    async def story(host: FakeNode, namesakes: DuplicateNames) -> None:
        for message in (
            taken(yours=LIFE - 1),
            taken(yours=LIFE + 1),
            taken("nowhere"),
            taken("127.0.0.1:1000 me"),
            taken(life=LIFE),
        ):
            namesakes.taken(message, at(2))
        assert host.told == []
        namesakes.taken(taken(), at(2))
        to, question, member = host.told[-1]
        assert (to, member) == (ELSEWHERE, None)
        assert isinstance(question, ProbeMsg)
        namesakes.taken(taken(), at(2))
        assert len(host.told) == 1, "it waits for the answer"
        namesakes.met(ELSEWHERE, received(ME, ProbeReplyMsg(question.nonce + 1)))
        namesakes.met(at(3), received(ME, ProbeReplyMsg(question.nonce)))
        assert host.notes == []
        namesakes.met(ELSEWHERE, received(ME, ProbeReplyMsg(question.nonce)))
        assert "a process at 127.0.0.1:7 uses this member's name too" in host.notes[0]
        namesakes.met(ELSEWHERE, received(ME, ProbeReplyMsg(question.nonce)))
        assert len(host.notes) == 1
        assert host.errors == [], "without a key anybody can say so"
        await asyncio.sleep(0.6)
        namesakes.taken(taken(), at(2))
        assert len(host.told) == 2

    played(story)


def test_where_nobody_answers_it_asks_again_but_not_at_once() -> None:
    async def story(host: FakeNode, namesakes: DuplicateNames) -> None:
        await asyncio.sleep(10.0)
        asked = []
        for _ in range(4):
            namesakes.taken(taken(), at(2))
            asked.append(len(host.told))
            await asyncio.sleep(0.2)
        assert asked == [1, 1, 1, 2]

    played(story)


@pytest.mark.parametrize("settled, sealed", [(False, False), (False, True), (True, True)])
def test_where_it_is_proven_the_member_gives_up(settled: bool, sealed: bool) -> None:
    async def story(host: FakeNode, namesakes: DuplicateNames) -> None:
        if not settled:
            host.settled.clear()
        host.filter.wire.ring = object() if sealed else None
        host.seed_at.add(at(2))
        if not settled:
            namesakes.taken(taken(), at(3))
            assert host.told == [], "only who lets it in may refuse it"
        namesakes.taken(taken(life=LIFE - 1 if not settled else LIFE + 1), at(2))
        question = host.told[-1][1]
        assert isinstance(question, ProbeMsg)
        namesakes.met(ELSEWHERE, received(ME, ProbeReplyMsg(question.nonce)))
        (error,) = host.errors
        assert isinstance(error, BadInput)
        assert "'me' is the name of a member of group 'g' at 127.0.0.1:7" in str(error)
        assert host.notes == []

    played(story)


def test_in_the_group_a_namesake_is_answered_so_that_it_knows() -> None:
    async def story(host: FakeNode, namesakes: DuplicateNames) -> None:
        namesakes.met(ELSEWHERE, received(ME, ProbeMsg(77)))
        namesakes.met(ELSEWHERE, received(ME, LEAVE))
        namesakes.met(ELSEWHERE, None)
        assert [(to, said) for to, said, _ in host.told] == [
            (ELSEWHERE, ProbeReplyMsg(77)),
            (ELSEWHERE, ProbeReplyMsg(0)),
            (ELSEWHERE, ProbeReplyMsg(0)),
        ]
        namesakes.met(OWN, received(ME, ProbeMsg(77)))
        namesakes.met(ELSEWHERE, received(ME, ProbeReplyMsg(77)))
        assert len(host.told) == 3, "an answer is not answered"
        for _ in range(100):
            namesakes.met(ELSEWHERE, received(ME, ProbeMsg(77)))
        assert len(host.told) == 4, "so many at once"
        await asyncio.sleep(0.05)
        for _ in range(100):
            namesakes.met(ELSEWHERE, received(ME, ProbeMsg(77)))
        assert len(host.told) == 5

    played(story)


def test_a_newcomer_that_finds_its_name_at_a_seed_asks_there() -> None:
    async def story(host: FakeNode, namesakes: DuplicateNames) -> None:
        host.settled.clear()
        host.seed_at.add(at(2))
        namesakes.met(at(3), received(ME, ProbeMsg(1)))
        assert host.told == []
        namesakes.met(at(2), received(ME, LEAVE))
        to, question, _ = host.told[0]
        assert to == at(2)
        assert isinstance(question, ProbeMsg)
        assert host.errors == []
        namesakes.met(at(2), received(ME, ProbeReplyMsg(question.nonce)))
        assert len(host.errors) == 1

    played(story)


# Lives that are over


def test_who_speaks_in_a_life_that_is_over_is_told() -> None:
    async def story(host: FakeNode, namesakes: DuplicateNames) -> None:
        host.filter.unheard = None
        namesakes.out_of_date(ELSEWHERE)
        host.filter.unheard = received(2, join(2, 4, NEW), life=4)
        namesakes.out_of_date(ELSEWHERE)
        assert host.told == [(ELSEWHERE, OldIncarnationMsg(77, 4), 2)]
        for message in (join(2, 4, "nowhere"), join(3, 4, NEW)):
            host.filter.unheard = received(2, message, life=4)
            namesakes.out_of_date(ELSEWHERE)
        assert len(host.told) == 1
        host.filter.unheard = received(2, LEAVE, life=4)
        namesakes.out_of_date(at(2))
        assert len(host.told) == 1, "it is where the later life is"
        namesakes.out_of_date(ELSEWHERE)
        assert host.told[1] == (ELSEWHERE, NameTakenMsg(place_of(2), 5, 4), 2)
        host.circle.dead.add(2)
        namesakes.out_of_date(ELSEWHERE)
        host.circle.dead.clear()
        host.circle.put(2, place="nowhere")
        namesakes.out_of_date(ELSEWHERE)
        host.filter.unheard = received(99, LEAVE, life=4)
        namesakes.out_of_date(ELSEWHERE)
        assert len(host.told) == 2

    played(story)


def test_a_newcomer_begins_after_a_later_life_that_a_seed_tells_of() -> None:
    async def story(host: FakeNode, namesakes: DuplicateNames) -> None:
        host.seed_at.add(at(2))
        good = OldIncarnationMsg(LIFE + 9, LIFE)
        namesakes.lived_later(good, at(2))
        assert host.errors == [], "it is in the group"
        host.settled.clear()
        for message, source in (
            (good, at(3)),
            (OldIncarnationMsg(LIFE + 9, LIFE - 1), at(2)),
            (OldIncarnationMsg(LIFE, LIFE), at(2)),
            (OldIncarnationMsg(1_000_000, LIFE), at(2)),
        ):
            namesakes.lived_later(message, source)
        assert host.errors == []
        namesakes.lived_later(good, at(2))
        (error,) = host.errors
        assert isinstance(error, NewerIncarnation)
        assert error.incarnation == LIFE + 9
        assert str(LIFE + 9) in str(error)

    played(story)
