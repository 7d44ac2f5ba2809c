"""A runner by itself: what happens while its state cannot be written, and after."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from hustings.core.context import Context
from hustings.core.outcome import Elected, NoLeader, Outcome
from hustings.net.runner import UNWRITABLE
from tests.net.kit.stage import Stage, Word, on_stage


def say(ctx: Context, outcome: Outcome | None) -> None:
    if outcome is not None:
        ctx.declare(outcome)


def test_what_cannot_be_kept_is_not_said_until_it_can_be() -> None:
    async def story(stage: Stage) -> None:
        def act(ctx: Context) -> None:
            ctx.persist(term=7)
            ctx.send(2, Word("promise"))
            ctx.declare(Elected(2, 7))

        stage.arm(a=1.5)
        stage.disk.full = True
        stage.runner.run(act)
        assert stage.owner.log == [
            ("note", "the disk is full; this member is silent until it can be"),
            ("told", NoLeader(UNWRITABLE)),
        ]
        assert stage.deliver() is False
        assert stage.runner.run(lambda ctx: None) is False
        assert stage.runner.dropped == 2
        stage.owner.log.clear()
        await asyncio.sleep(2.2)
        assert stage.disk.tries == 3, "every second"
        assert stage.owner.log == []
        stage.disk.full = False
        await asyncio.sleep(1.0)
        assert stage.owner.log[:4] == [
            ("note", "the state can be written again"),
            ("sent", 2, Word("promise")),
            ("told", Elected(2, 7)),
            "ran",
        ]
        assert stage.runner.stalled is None
        assert dict(stage.disk.stored) == {"term": 7}
        key, at = stage.election.log[0]
        assert key == "a"
        assert 3.0 <= at <= 3.06, "a timer that came meanwhile is late by little"
        assert stage.deliver() is True
        tries = stage.disk.tries
        await asyncio.sleep(5.0)
        assert stage.disk.tries == tries, "that is over"

    on_stage(story, pause=10.0)


def test_after_a_short_stall_the_owner_hears_again_what_it_knew() -> None:
    async def story(stage: Stage) -> None:
        for before, within, told in (
            (None, None, []),
            (Elected(2, 6), None, [Elected(2, 6)]),
            (None, None, [Elected(2, 6)]),
            (None, Elected(3, 7), [Elected(3, 7)]),
        ):
            await asyncio.sleep(20.0)  # however long it had been well
            stage.runner.run(partial(say, outcome=before))
            stage.disk.full = True

            def act(ctx: Context, within: Outcome | None = within) -> None:
                ctx.persist(term=7)
                say(ctx, within)

            stage.runner.run(act)
            stage.disk.full = False
            stage.owner.log.clear()
            await asyncio.sleep(1.5)
            assert stage.owner.log == [
                ("note", "the state can be written again"),
                *[("told", each) for each in told],
                "ran",
            ]

    on_stage(story, pause=10.0)


@pytest.mark.parametrize(
    "before, within, woken, told",
    [
        (Elected(2, 6), None, None, [Elected(2, 6)]),
        (Elected(1, 6), None, None, [Elected(1, 6)]),
        (Elected(1, 6), None, NoLeader("paused"), [NoLeader("paused")]),
        (Elected(2, 6), Elected(1, 7), None, [Elected(1, 7)]),
        (Elected(2, 6), Elected(1, 7), NoLeader("paused"), [NoLeader("paused")]),
        (Elected(1, 6), Elected(3, 7), None, [Elected(3, 7)]),
        (Elected(1, 6), NoLeader("none"), None, [NoLeader("none")]),
        (None, None, None, []),
    ],
)
def test_after_a_long_stall_what_was_held_back_is_old(
    before: Outcome | None, within: Outcome | None, woken: Outcome | None, told: list[Outcome]
) -> None:
    """Whether this member still leads is for its election to say, which hears of the stall."""

    async def story(stage: Stage) -> None:
        stage.runner.run(partial(say, outcome=before))
        stage.election.react = partial(say, outcome=woken)
        stage.disk.full = True

        def act(ctx: Context) -> None:
            ctx.persist(term=7)
            ctx.send(2, Word("old promise"))
            say(ctx, within)

        stage.runner.run(act)
        await asyncio.sleep(2.5)
        stage.disk.full = False
        stage.owner.log.clear()
        await asyncio.sleep(1.0)
        assert stage.owner.log[:2] == [("note", "the state can be written again"), "overslept"]
        assert [each[1] for each in stage.owner.log if each[0] == "told"] == told
        assert stage.election.log == [("woke", 3.0)]
        assert not [each for each in stage.owner.log if each[0] == "sent"]

    on_stage(story)


def test_what_was_said_last_is_said_again_after_the_next_stall() -> None:
    async def story(stage: Stage) -> None:
        stage.runner.run(lambda ctx: ctx.declare(Elected(2, 6)))
        stage.disk.full = True

        def act(ctx: Context) -> None:
            ctx.persist(term=7)
            ctx.declare(Elected(3, 7))

        stage.runner.run(act)
        await asyncio.sleep(2.5)
        stage.disk.full = False
        await asyncio.sleep(1.0)
        stage.disk.full = True
        stage.runner.run(lambda ctx: ctx.persist(term=8))
        stage.disk.full = False
        stage.owner.log.clear()
        await asyncio.sleep(0.9999)
        await asyncio.sleep(0.01)
        assert ("told", Elected(3, 7)) in stage.owner.log

    on_stage(story, pause=2.0)
