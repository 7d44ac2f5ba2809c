"""Campaigns by themselves: a block that runs while its member leads, and how it ends."""

from __future__ import annotations

import asyncio
from math import inf
from typing import Any

import pytest

from hustings.net.campaign import Campaign
from hustings.net.loss_reason import NO_LEADER, LossReason
from hustings.net.member_state import Leadership, LeadershipLost
from tests.net.kit.virtual import virtually

ENDED = LossReason(kind=NO_LEADER, words="nobody leads")


def state(term: int = 7, *, leading: bool = True) -> Leadership:
    return Leadership(
        group="g", term=term, leader=None, leaders=(), leading=leading, reason="", token=term
    )


class Office:
    """A member that leads at once."""

    name = "a"

    def __init__(self) -> None:
        self.state = state()
        self.remaining = inf
        self.running: list[Campaign] = []

    async def wait_to_lead(self) -> Leadership:
        return state()

    def loss_reason(self, number: int) -> LossReason:
        return LossReason(kind=NO_LEADER, words=f"the lease of term {number} ended")

    def began(self, campaign: Campaign) -> None:
        self.running.append(campaign)

    def ended(self, campaign: Campaign) -> None:
        self.running.remove(campaign)

    def campaign(self, drain: float = 0.0) -> Campaign:
        member: Any = self
        return Campaign(member, drain)


def test_a_block_has_the_term_it_was_entered_in() -> None:
    async def story() -> None:
        office = Office()
        campaign = office.campaign(drain=3.0)
        assert campaign.drain == 3.0
        async with campaign as term:
            assert (term.number, term.token, term.group, term.member) == (7, 7, "g", "a")
            assert repr(term) == "Term(group='g', number=7, token=7)"
            assert office.running == [campaign]
            assert campaign.task is asyncio.current_task()
            assert not campaign.done.is_set()
            assert not term.lost.is_set()
            assert not term.draining.is_set()
            with pytest.raises(RuntimeError, match="entered once"):
                await campaign.__aenter__()
        assert office.running == []
        assert campaign.done.is_set()

    virtually(story())


def test_what_remains_is_read_when_it_is_asked_for() -> None:
    async def story() -> None:
        office = Office()
        async with office.campaign() as term:
            term.check()
            office.remaining = 0.5
            assert term.remaining == 0.5
            term.check()
            office.remaining = 0.0
            with pytest.raises(LeadershipLost, match=r"a leads group 'g' no longer \(term 7\)"):
                term.check()
            office.remaining = 9.0
            term.lost.set()
            assert term.remaining == 0.0
            with pytest.raises(LeadershipLost):
                term.check()

    virtually(story())


def test_a_block_ends_with_the_leadership_and_says_so() -> None:
    async def story() -> None:
        office = Office()
        campaign = office.campaign()

        async def work() -> None:
            async with campaign as term:
                await asyncio.sleep(inf)
                assert term is None, "nobody comes here"

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        campaign.end(ENDED)
        with pytest.raises(LeadershipLost, match=r"a leads group 'g' no longer \(term 7\)") as lost:
            await task
        assert isinstance(lost.value.__cause__, asyncio.CancelledError)
        assert task.cancelling() == 0
        assert office.running == []

    virtually(story())


def test_a_task_that_somebody_else_cancels_too_is_cancelled() -> None:
    async def story(ended: bool) -> None:
        campaign = Office().campaign()

        async def work() -> None:
            async with campaign:
                await asyncio.sleep(inf)

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        if ended:
            campaign.end(ENDED)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    virtually(story(ended=True))
    virtually(story(ended=False))


def test_a_block_within_a_task_that_was_cancelled_before_ends_by_itself() -> None:
    """It counts what came before its beginning as nobody's concern."""

    async def story() -> None:
        campaign = Office().campaign()

        async def work() -> str:
            try:
                await asyncio.sleep(inf)
            except asyncio.CancelledError:
                try:
                    async with campaign:
                        await asyncio.sleep(inf)
                except LeadershipLost:
                    return "lost"
            return "neither"

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        campaign.end(ENDED)
        assert await task == "lost"

    virtually(story())


def test_errors_of_a_block_are_its_own_also_when_it_has_ended() -> None:
    async def story() -> None:
        campaign = Office().campaign()

        async def work() -> None:
            async with campaign:
                try:
                    await asyncio.sleep(inf)
                except asyncio.CancelledError:
                    raise ValueError("clumsy") from None

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        campaign.end(ENDED)
        with pytest.raises(ValueError, match="clumsy"):
            await task
        assert task.cancelling() == 0

    virtually(story())


def test_a_block_that_ends_its_own_leadership_and_then_itself_is_not_disturbed() -> None:
    async def story() -> None:
        campaign = Office().campaign()
        async with campaign as term:
            campaign.end(ENDED)
            assert term.lost.is_set()
        await asyncio.sleep(0.1)
        other = Office().campaign()

        async def linger() -> None:
            async with other:
                other.end(ENDED)
                await asyncio.sleep(0.1)

        with pytest.raises(LeadershipLost):
            await linger()
        await asyncio.sleep(0.1)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    virtually(story())


def test_what_has_ended_or_never_began_cannot_be_ended() -> None:
    async def story() -> None:
        campaign = Office().campaign()
        campaign.end(ENDED)
        campaign.ask_to_finish()
        async with campaign as term:
            pass
        campaign.end(ENDED)
        assert not term.lost.is_set()
        await asyncio.sleep(0.1)
        twice = Office().campaign()

        async def work() -> None:
            async with twice:
                try:
                    await asyncio.sleep(inf)
                finally:
                    await asyncio.sleep(1.0)  # it cleans up

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        twice.end(ENDED)
        await asyncio.sleep(0.5)
        twice.end(ENDED)  # which must not cut its cleaning up short
        with pytest.raises(LeadershipLost):
            await task
        assert asyncio.get_running_loop().time() >= 1.1

    virtually(story())


def test_a_hand_over_that_is_wanted_is_told() -> None:
    async def story() -> None:
        campaign = Office().campaign()
        async with campaign as term:
            campaign.ask_to_finish()
            assert term.draining.is_set()
            assert not term.lost.is_set()

    virtually(story())


def test_a_campaign_holds_in_its_term_and_where_several_lead_in_any() -> None:
    async def story() -> None:
        campaign = Office().campaign()
        assert not campaign.holds(state(), alone=True)
        assert not campaign.holds(state(), alone=False)
        async with campaign:
            assert campaign.holds(state(), alone=True)
            assert not campaign.holds(state(8), alone=True)
            assert campaign.holds(state(8), alone=False)
            assert not campaign.holds(state(leading=False), alone=True)
            assert not campaign.holds(state(leading=False), alone=False)

    virtually(story())
