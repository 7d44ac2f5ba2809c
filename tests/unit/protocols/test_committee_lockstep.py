"""Synchronous rounds: who hears what, when, and what is not heard."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hustings.core.choice import HighestId, MemberId, candidate
from hustings.core.config import Config
from hustings.core.context import Context
from hustings.core.election import About
from hustings.core.outcome import Elected, GaveUp, Guarantee
from hustings.protocols.committee.bits import Bits, SlateMsg, pack, slate
from hustings.protocols.committee.lockstep import (
    Inbox,
    Lockstep,
    Program,
    Script,
    Spoken,
    Stage,
    silent,
    to_all,
    together,
)
from hustings.sim.world import Ended, World

Heard = list[dict[MemberId, int]]


def chat(me: MemberId, group: tuple[MemberId, ...], rounds: int) -> Script[Heard]:
    """Says 10 * id + round to everybody, and writes down what it hears."""
    heard: Heard = []
    for number in range(rounds):
        outbox = to_all(group, me, pack([(10 * me + number, 8)]))
        inbox = yield Spoken(Stage("chat", step=number), outbox)
        assert list(inbox) == sorted(inbox)
        heard.append({sender: bits.value for sender, bits in inbox.items()})
    return heard


class Chat(Lockstep):
    """Two channels of chat: 5 with all, 6 among odd ids only and shorter."""

    __slots__ = ("heard",)
    about = About("chat", "test", "", "", "", Guarantee.ADVISORY, "", "")

    def script(self, ctx: Context) -> Program[dict[int, Heard]]:
        me, group = ctx.me.id, tuple(ctx.view.ids)
        odd = tuple(each for each in group if each % 2)
        scripts = {5: chat(me, group, 3)}
        if me % 2:
            scripts[6] = chat(me, odd, 2)
        first = yield from together(scripts)
        yield from together({0: silent(2)})
        last = yield from together({7: chat(me, group, 1)} if me == 1 else {}, rounds=1)
        return {**first, **last}

    def conclude(self, ctx: Context, result: object) -> None:
        assert isinstance(result, dict)
        self.heard: dict[int, Heard] = result
        self.elect(ctx, 1, 1)


def room(members: int, *, debug: bool = False) -> World:
    people = [candidate(each) for each in range(1, members + 1)]
    return World(lambda: Chat(Config(), HighestId()), people, debug=debug)


def member(world: World, who: MemberId) -> Chat:
    election = world.members[who].election
    assert isinstance(election, Chat)
    return election


def test_everybody_hears_everybody_once_a_round() -> None:
    for debug in (False, True):  # in debug mode a context that is kept raises
        world = room(5, debug=debug)
        world.start()
        assert world.run() is Ended.QUIESCENT
        assert world.now == 2 * 6  # three rounds, two of silence, one more
        for who in range(1, 6):
            it = member(world, who)
            others = [each for each in range(1, 6) if each != who]
            assert it.heard[5] == [{o: 10 * o + r for o in others} for r in range(3)]
            odd = [each for each in others if each % 2]
            if who % 2:
                assert it.heard[6] == [{o: 10 * o + r for o in odd} for r in range(2)]
            assert it.rounds == 6
            assert it.ended
            sent = 4 * 3 + (2 * 2 if who % 2 else 0) + (4 if who == 1 else 0)
            assert (it.said, it.bits) == (sent, 8 * sent)
            assert it.wire > it.bits
            assert world.members[who].outcome == Elected(1, 1)
        assert member(world, 1).heard[7] == [{}]  # it spoke alone; the others did not listen


def test_what_is_not_awaited_is_not_heard() -> None:
    world = room(3)
    world.start()
    it, ctx = member(world, 1), world.members[1]
    for message in (slate(9, Bits(1, 8)), SlateMsg(5, b""), SlateMsg(5, bytes(4))):
        it.on_slate(ctx, 2, message)  # another channel, no mark
    it.on_slate(ctx, 77, slate(5, Bits(1, 8)))  # a stranger
    it.on_slate(ctx, 2, slate(5, Bits(3, 8)))
    it.on_slate(ctx, 2, slate(5, Bits(4, 8)))  # twice in one round: the first word counts
    world.run()
    assert it.heard[5][0] == {2: 3, 3: 30}
    assert it.heard[5][1] == {2: 21, 3: 31}
    it.on_slate(ctx, 2, slate(5, Bits(4, 8)))  # after the end
    it.on_timer(ctx, "round")
    assert it.rounds == 6


def test_invented_receivers_get_nothing() -> None:
    world = room(3)
    world.start()
    it, ctx = member(world, 2), world.members[2]
    before = it.said
    it.say(ctx, 5, {1: Bits(0, 3), 2: Bits(0, 3), 44: Bits(0, 3), -1: Bits(0, 3)})
    assert it.said == before + 1


def test_who_comes_back_sits_out() -> None:
    world = room(3)
    world.start()
    world.run(until=3)
    ctx = world.members[3]
    world.revive(ctx)
    world.invoke(ctx, ctx.election.start)
    world.run()
    assert isinstance(ctx.outcome, GaveUp)
    assert member(world, 3).said == 0
    assert member(world, 1).heard[5][1] == {2: 21, 3: 31}
    assert member(world, 1).heard[5][2] == {2: 22}


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(-2, 9), st.binary(max_size=6))))
@settings(max_examples=30, deadline=None)
def test_nothing_that_arrives_raises(said: list[tuple[int, int, bytes]]) -> None:
    world = room(3)
    world.start()
    it, ctx = member(world, 1), world.members[1]
    for sender, channel, payload in said:
        it.on_slate(ctx, sender, SlateMsg(channel, payload))
    assert world.run() is Ended.QUIESCENT
    assert it.ended


def test_together_takes_as_long_as_its_longest() -> None:
    def count(rounds: int) -> Script[int]:
        for _ in range(rounds):
            heard: Inbox = yield Spoken(Stage("count"), {})
            assert heard == {}
        return rounds

    for rounds, least in ((4, 0), (4, 3), (4, 9), (0, 2)):
        program = together({2: count(rounds), 1: count(1), 3: count(0)}, least)
        spoken = next(program)
        for _ in range(max(rounds, 1, least) - 1):
            spoken = program.send({channel: {} for channel in spoken})
        with pytest.raises(StopIteration) as end:
            program.send({channel: {} for channel in spoken})
        assert list(end.value.value.items()) == [(1, 1), (2, rounds), (3, 0)]
