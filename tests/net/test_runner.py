"""A runner by itself: an election on a clock, what leaves it, and what a pause does to it."""

from __future__ import annotations

import asyncio
from math import inf
from typing import ClassVar

import pytest

from hustings.core.context import Context
from hustings.core.errors import ProtocolBug
from hustings.core.messages import Message, Role
from hustings.core.outcome import Elected
from hustings.net.runner import NetContext
from tests.net.kit.stage import ME, PAUSE, Stage, Word, on_stage

# Effects


def test_what_is_kept_goes_before_what_is_said_and_that_before_the_owner_and_the_guard() -> None:
    async def story(stage: Stage) -> None:
        def act(ctx: Context) -> None:
            ctx.release(8)
            ctx.declare(Elected(1, 5))
            ctx.send(2, Word("one"))
            ctx.multicast(Word("all"))
            ctx.persist(term=5)
            ctx.persist(vote=2)
            ctx.acquire(4.0, 9)
            assert dict(ctx.stored) == {"term": 5, "vote": 2}
            assert dict(stage.disk.stored) == {}
            stage.owner.log.append("handled")

        assert stage.runner.run(act)
        assert stage.owner.log == [
            "handled",
            ("sent", 2, Word("one")),
            ("sent", None, Word("all")),
            ("told", Elected(1, 5)),
            ("release", 8),
            ("acquire", 4.0, 9),
            "ran",
        ]
        assert stage.disk.tries == 1, "in one go"
        assert dict(stage.runner.stored) == {"term": 5, "vote": 2}
        stage.runner.run(lambda ctx: None)
        assert stage.disk.tries == 1, "nothing to keep"

    on_stage(story)


def test_a_context_shows_its_member() -> None:
    async def story(stage: Stage) -> None:
        def act(ctx: Context) -> None:
            assert ctx.me == ME
            assert ctx.incarnation == 3
            assert list(ctx.view.ids) == [1]
            assert ctx.rng is stage.runner.rng
            assert ctx.now() == asyncio.get_running_loop().time()
            assert ctx.stored == {}
            for delay in (-1.0, float("nan")):
                with pytest.raises(ProtocolBug, match="member 1 armed timer 'x' with delay"):
                    ctx.set_timer("x", delay)
            ctx.set_timer("x", 0.0)
            ctx.set_timer("y", 1.0)
            ctx.cancel_timer("y")
            ctx.cancel_timer("unknown")

        assert stage.runner.run(act)
        await asyncio.sleep(2.0)
        assert [key for key, _ in stage.election.log] == ["x"]

    on_stage(story)


def test_a_handler_that_raises_fails_the_member_and_nothing_of_it_leaves() -> None:
    async def story(stage: Stage) -> None:
        def act(ctx: Context) -> None:
            ctx.send(2, Word())
            raise ValueError("a bug")

        assert stage.runner.run(act) is False
        assert stage.owner.log == [("failed", "a bug")]

    on_stage(story)


def test_a_message_whose_handler_raises_is_given_up_where_it_raised() -> None:
    """What it did until then is done: the election takes it for done."""

    async def story(stage: Stage) -> None:
        def act(ctx: Context) -> None:
            ctx.persist(term=5)
            ctx.send(2, Word("until then"))
            ctx.declare(Elected(1, 5))
            raise ValueError("what it says cannot be")

        stage.election.react = act
        assert stage.deliver()
        assert stage.owner.log == [
            ("baffled", 2, Word("x"), "what it says cannot be"),
            ("sent", 2, Word("until then")),
            ("told", Elected(1, 5)),
            "ran",
        ]
        assert stage.runner.stored["term"] == 5
        stage.election.react = lambda ctx: None
        assert stage.deliver(), "it goes on"

    on_stage(story)


def test_a_bug_of_the_protocols_own_ends_the_member_whatever_it_was_told() -> None:
    async def story(stage: Stage) -> None:
        stage.election.react = lambda ctx: ctx.set_timer("x", -1.0)
        assert not stage.deliver()
        assert [kind for kind, _ in stage.owner.log] == ["failed"]

    on_stage(story)


# Timers


def test_timers_fire_once_and_the_last_word_on_them_counts() -> None:
    async def story(stage: Stage) -> None:
        stage.arm(a=1.0, b=2.0, never=inf)
        stage.arm(a=3.0)
        stage.runner.disarm("b")
        await asyncio.sleep(10.0)
        assert stage.election.log == [("a", 3.0)]
        stage.arm(a=1.0)
        stage.arm(a=inf)
        await asyncio.sleep(10.0)
        assert len(stage.election.log) == 1

    on_stage(story)


def test_after_its_end_nothing_fires_and_nothing_runs() -> None:
    async def story(stage: Stage) -> None:
        stage.arm(a=1.0)
        stage.disk.full = True
        stage.runner.run(lambda ctx: ctx.persist(term=1))
        tries = stage.disk.tries
        stage.runner.stop()
        stage.arm(b=1.0)
        assert not stage.runner.run(lambda ctx: stage.election.log.append("ran"))
        assert not stage.deliver()
        await asyncio.sleep(10.0)
        assert stage.election.log == []
        assert stage.disk.tries == tries, "it does not try again either"

    on_stage(story)


def test_a_timer_and_a_message_come_too_late_after_its_end() -> None:
    async def story(stage: Stage) -> None:
        stage.arm(a=1.0)
        stage.runner.stop()
        stage.arm(b=1.0)
        assert not stage.runner.run(lambda ctx: stage.election.log.append("ran"))
        assert not stage.deliver()
        await asyncio.sleep(10.0)
        assert stage.election.log == []
        assert stage.owner.log == []

    on_stage(story)


def test_who_ends_as_it_wakes_up_does_nothing_more() -> None:
    async def story(stage: Stage) -> None:
        stage.arm(a=0.2)
        stage.sleep_through(2.0)
        stage.owner.overslept = stage.runner.stop  # type: ignore[method-assign]  # this one
        assert not stage.runner.run(lambda ctx: stage.election.log.append("ran"))
        assert stage.election.log == []
        assert stage.owner.log == []

    on_stage(story)


def test_a_handler_may_end_the_runner_that_runs_it() -> None:
    async def story(stage: Stage) -> None:
        stage.election.react = lambda ctx: stage.runner.stop()
        stage.arm(a=1.0, b=1.0)
        await asyncio.sleep(3.0)
        assert stage.election.log == [("a", 1.0)]

    on_stage(story)


def test_messages_that_nobody_handles_are_not_handled() -> None:
    class Other(Message, frozen=True, tag="OTHER"):
        role: ClassVar[Role] = Role.OTHER

    async def story(stage: Stage) -> None:
        assert stage.runner.deliver(2, Other()) is False
        assert stage.owner.log == [], "that is no mistake of this member's"
        assert stage.deliver("hello") is True
        assert stage.election.log == [(2, "hello")]

    on_stage(story)


# Timers that may be late


def test_a_lax_timer_goes_with_whatever_comes_after_its_time_and_keeps_its_rate() -> None:
    async def story(stage: Stage) -> None:
        def again(ctx: Context) -> None:
            if stage.election.log[-1][0] == "tick":
                ctx.set_timer("tick", 1.0)

        stage.election.react = again
        stage.arm(tick=1.0)
        for _ in range(3):
            await asyncio.sleep(0.7)
            stage.deliver()
        ticks = [round(at, 6) for key, at in stage.election.log if key == "tick"]
        assert ticks == [1.4, 2.1], "with the message after 1.0, and the one after 2.0"
        await asyncio.sleep(5.0)
        ticks = [round(at, 6) for key, at in stage.election.log if key == "tick"]
        assert ticks[2:] == [3.8, 4.8, 5.8, 6.8], "alone it waits for 0.8 of its time, no longer"

    on_stage(story, lax=("tick",), pause=inf)


def test_a_lax_timer_that_is_armed_anew_in_between_counts_from_then() -> None:
    async def story(stage: Stage) -> None:
        stage.arm(tick=1.0)
        await asyncio.sleep(0.9)
        stage.arm(tick=1.0)
        await asyncio.sleep(0.5)
        stage.deliver()
        assert stage.election.log == [(2, "x")]
        await asyncio.sleep(0.5)
        stage.deliver()
        assert [key for key, _ in stage.election.log] == [2, 2, "tick"]

    on_stage(story, lax=("tick",), pause=inf)


def test_a_lax_timer_goes_with_another_that_fires_but_not_with_news_of_a_leader() -> None:
    async def story(stage: Stage) -> None:
        stage.arm(tick=1.0, punctual=1.5)
        await asyncio.sleep(1.6)
        assert stage.election.log == [("punctual", 1.5), ("tick", 1.5)]
        stage.arm(tick=1.0)
        await asyncio.sleep(1.1)
        stage.election.react = lambda ctx: ctx.declare(Elected(2, 5))
        stage.deliver()
        assert stage.election.log[2:] == [(2, "x")], "others here wait for the news, too"
        stage.election.react = lambda ctx: None
        stage.deliver()
        assert [each[0] for each in stage.election.log[3:]] == [2, "tick"]

    on_stage(story, lax=("tick",), pause=inf)


# Pauses


def test_who_stood_still_is_told_before_anything_else_and_old_messages_are_not_heard() -> None:
    async def story(stage: Stage) -> None:
        stage.arm(a=0.2)
        stage.runner.run(lambda ctx: None)
        stage.owner.log.clear()
        stage.sleep_through(2.0)
        assert stage.deliver("old") is False
        assert stage.owner.log == ["overslept", "ran"]
        assert stage.election.log == [("woke", 1.8)], "since it was due"
        assert stage.deliver("new") is True
        await asyncio.sleep(5.0)
        assert stage.election.log[1:] == [(2, "new"), ("a", 2.0)], "what slept counts for no timer"

    on_stage(story)


def test_a_timer_that_was_slept_through_waits_as_long_as_was_slept() -> None:
    async def story(stage: Stage) -> None:
        stage.arm(a=0.2, b=1.0)
        stage.sleep_through(3.0)
        await asyncio.sleep(0.0)
        await asyncio.sleep(0.001)
        assert stage.election.log[0] == ("woke", 2.8)
        await asyncio.sleep(5.0)
        fired = {key: round(at, 2) for key, at in stage.election.log[1:]}
        assert fired == {"a": 3.0, "b": 3.8}

    on_stage(story)


def test_where_nothing_was_due_nobody_was_away() -> None:
    async def story(stage: Stage) -> None:
        stage.sleep_through(100.0)
        assert stage.deliver() is True
        stage.arm(far=1000.0)
        stage.sleep_through(100.0)
        assert stage.deliver() is True
        assert stage.runner.run(lambda ctx: None)
        assert "overslept" not in stage.owner.log

    on_stage(story)


def test_a_pause_as_long_as_allowed_is_none() -> None:
    async def story(stage: Stage) -> None:
        for slept, away in ((PAUSE, False), (PAUSE + 0.125, True)):
            stage.arm(a=0.0)
            stage.sleep_through(slept)
            assert stage.deliver() is not away
        assert [each for each in stage.election.log if each[0] == "woke"] == [("woke", 0.625)]

    on_stage(story)


def test_who_waits_while_others_of_its_process_run_was_not_away() -> None:
    async def story(stage: Stage) -> None:
        stage.arm(a=0.0)
        for _ in range(40):
            stage.sleep_through(0.0625)
            stage.stall_detector.beat(asyncio.get_running_loop().time())
        assert stage.deliver() is True
        assert ("woke", 2.5) not in stage.election.log

    on_stage(story)


def test_contexts_have_nothing_in_common() -> None:
    async def story(stage: Stage) -> None:
        one, other = NetContext(stage.runner), NetContext(stage.runner)
        one.send(2, Word())
        one.persist(term=1)
        assert other.sent == []
        assert other.stored == {}
        assert one.stored == {"term": 1}

    on_stage(story)
