"""Campaigns: code that runs while its member leads, and ends when it does not."""

from __future__ import annotations

import asyncio
from collections.abc import Sized
from functools import partial

import pytest

import hustings
from hustings.net.loss_reason import NO_LEADER, LossReason
from hustings.net.member import Member
from tests.net.kit.crowd import Crowd
from tests.net.kit.loops import background, run, throughout, until

ENDED = LossReason(kind=NO_LEADER, words="nobody leads")


def reached(what: Sized, size: int) -> bool:
    """Whether something has grown to a size, and no further."""
    return len(what) == size


async def leading_pair(crowd: Crowd) -> tuple[Member, Member]:
    """Two members: the leader and the other one."""
    await crowd.add_all(["a", "b"])
    await crowd.known(2)
    leader = await crowd.agreed()
    return leader, next(each for each in crowd.open() if each is not leader)


def test_a_campaign_waits_for_leadership_and_says_its_term() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            leader, other = await leading_pair(crowd)
            entered = asyncio.Event()

            async def work() -> tuple[int, str, str]:
                async with other.campaign() as term:
                    entered.set()
                    return term.number, term.group, term.member

            task = asyncio.create_task(work())
            await throughout(0.1, lambda: not entered.is_set(), "only the leader campaigns")
            await leader.leave()
            number, group, name = await task
            assert (number, group, name) == (other.term, other.group, other.name)
            assert not other.campaigns

    run(story())


def test_a_body_is_cancelled_when_leadership_is_lost() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            leader, other = await leading_pair(crowd)
            cleaned: list[str] = []

            async def work() -> None:
                async with leader.campaign() as term:
                    try:
                        await asyncio.Event().wait()
                    except asyncio.CancelledError:
                        assert term.lost.is_set()
                        cleaned.append("up")
                        raise

            task = asyncio.create_task(work())
            await until(lambda: leader.campaigns, "the body runs")
            await leader.transfer(other.name)
            with pytest.raises(hustings.LeadershipLost, match="leads group 'crowd' no longer"):
                await task
            assert cleaned == ["up"]
            assert task.cancelling() == 0
            assert await crowd.agreed() is other

    run(story())


def test_a_member_may_campaign_again_and_again() -> None:
    async def story() -> None:
        async with Crowd(protocol="bully") as crowd:
            leader, other = await leading_pair(crowd)
            terms: list[int] = []

            async def work(member: Member) -> None:
                while True:
                    try:
                        async with member.campaign() as term:
                            terms.append(term.number)
                            await asyncio.Event().wait()
                    except hustings.LeadershipLost:
                        continue

            async with background(work(leader), work(other)):
                here, there = leader, other
                for turn in range(1, 5):
                    await until(partial(reached, terms, turn), lambda: str(terms))
                    await crowd.agreed()
                    await here.transfer(there.name)
                    here, there = there, here
                await until(partial(reached, terms, 5), lambda: str(terms))
                assert terms == sorted(set(terms)), "each leadership has a term of its own"

    run(story())


def test_cancelling_from_outside_is_not_swallowed() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            leader, _ = await leading_pair(crowd)

            async def work() -> None:
                async with leader.campaign():
                    await asyncio.Event().wait()

            task = asyncio.create_task(work())
            await until(lambda: leader.campaigns, "the body runs")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert task.cancelled()
            assert not leader.campaigns

    run(story())


def test_cancelling_from_outside_at_the_moment_of_the_loss_is_not_swallowed_either() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            leader, _ = await leading_pair(crowd)

            async def work() -> None:
                async with leader.campaign():
                    await asyncio.Event().wait()

            task = asyncio.create_task(work())
            await until(lambda: leader.campaigns, "the body runs")
            for campaign in list(leader.campaigns):
                campaign.end(ENDED)
            task.cancel()  # before the task has had a chance to run
            with pytest.raises(asyncio.CancelledError):
                await task
            assert task.cancelled()

    run(story())


def test_a_timeout_around_a_campaign_is_a_timeout() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            leader, other = await leading_pair(crowd)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05), leader.campaign():
                    await asyncio.Event().wait()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05), other.campaign():
                    raise AssertionError("it does not lead")
            assert not leader.campaigns
            assert not other.campaigns

    run(story())


def test_a_body_that_ends_leaves_the_office_as_it_is() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            leader, _ = await leading_pair(crowd)
            async with leader.campaign() as term:
                assert not term.lost.is_set()
            assert leader.is_leader
            assert "token=None" in repr(term)

    run(story())


def test_errors_of_a_body_come_out_unchanged() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            leader, other = await leading_pair(crowd)
            with pytest.raises(ZeroDivisionError):
                async with leader.campaign():
                    raise ZeroDivisionError
            assert not leader.campaigns
            assert leader.is_leader

            async def stubborn() -> None:
                async with leader.campaign():
                    try:
                        await asyncio.Event().wait()
                    finally:
                        raise LookupError("while cleaning up")

            task = asyncio.create_task(stubborn())
            await until(lambda: leader.campaigns, "the body runs")
            await leader.transfer(other.name)
            with pytest.raises(LookupError):
                await task
            assert task.cancelling() == 0

    run(story())


def test_campaigns_within_campaigns_all_end() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            leader, other = await leading_pair(crowd)

            async def work() -> None:
                async with leader.campaign(), leader.campaign():
                    await asyncio.Event().wait()

            task = asyncio.create_task(work())
            await until(lambda: len(leader.campaigns) == 2, "both run")
            await leader.transfer(other.name)
            with pytest.raises(hustings.LeadershipLost):
                await task
            assert task.cancelling() == 0
            assert not leader.campaigns

    run(story())


def test_an_inner_campaign_that_is_caught_does_not_keep_the_outer_one_alive() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            leader, other = await leading_pair(crowd)

            async def work() -> None:
                async with leader.campaign():
                    try:
                        async with leader.campaign():
                            await asyncio.Event().wait()
                    except hustings.LeadershipLost:
                        pass
                    await asyncio.Event().wait()  # the office is lost: this must not last

            task = asyncio.create_task(work())
            await until(lambda: len(leader.campaigns) == 2, "both run")
            await leader.transfer(other.name)
            with pytest.raises(hustings.LeadershipLost):
                async with asyncio.timeout(2):
                    await task

    run(story())


def test_several_tasks_of_one_member_are_all_ended() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            leader, _ = await leading_pair(crowd)

            async def work() -> None:
                async with leader.campaign():
                    await asyncio.Event().wait()

            tasks = [asyncio.create_task(work()) for _ in range(5)]
            await until(lambda: len(leader.campaigns) == 5, "all run")
            await leader.leave()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert [type(each) for each in results] == [hustings.LeadershipLost] * 5

    run(story())


def test_a_body_that_ignores_its_end_is_still_told() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            leader, other = await leading_pair(crowd)
            seen: list[bool] = []

            async def work() -> None:
                async with leader.campaign() as term:
                    try:
                        await asyncio.Event().wait()
                    except asyncio.CancelledError:
                        seen.append(term.lost.is_set())

            task = asyncio.create_task(work())
            await until(lambda: leader.campaigns, "the body runs")
            await leader.transfer(other.name)
            await task
            assert seen == [True]
            assert task.cancelling() == 0

    run(story())


def test_entering_one_campaign_twice_is_refused() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            leader, _ = await leading_pair(crowd)
            campaign = leader.campaign()
            async with campaign:
                pass
            with pytest.raises(RuntimeError, match="entered once"):
                async with campaign:
                    pass

    run(story())


def test_a_campaign_of_a_member_that_leaves_ends_before_it_leads() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            _, other = await leading_pair(crowd)

            async def work() -> None:
                async with other.campaign():
                    raise AssertionError("it never leads")

            task = asyncio.create_task(work())
            await asyncio.sleep(0)
            await other.leave()
            with pytest.raises(hustings.NotLeader, match="has left group"):
                await task

    run(story())


def test_a_hand_over_lets_the_body_finish_within_its_drain() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            leader, other = await leading_pair(crowd)
            log: list[str] = []

            async def work() -> None:
                async with leader.campaign() as term:
                    await term.draining.wait()
                    log.append(f"asked, leading {leader.is_leader}")
                    await asyncio.sleep(0.05)
                    log.append(f"done, leading {leader.is_leader}, other {other.is_leader}")

            task = asyncio.create_task(work())
            await until(lambda: leader.campaigns, "the body runs")
            await leader.transfer(other.name, drain=5)
            await task
            assert log == ["asked, leading True", "done, leading True, other False"]
            assert await crowd.agreed() is other

    run(story())


def test_a_body_that_does_not_finish_is_cancelled_after_the_drain() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            leader, other = await leading_pair(crowd)
            loop = asyncio.get_running_loop()

            async def work() -> None:
                async with leader.campaign(drain=60):
                    await asyncio.Event().wait()

            task = asyncio.create_task(work())
            await until(lambda: leader.campaigns, "the body runs")
            began = loop.time()
            await leader.transfer(other.name, drain=0.1)
            assert 0.1 <= loop.time() - began < 2
            with pytest.raises(hustings.LeadershipLost):
                await task
            assert await crowd.agreed() is other

    run(story())


def test_the_campaigns_own_drain_counts_when_nobody_says_otherwise() -> None:
    async def story() -> None:
        async with Crowd() as crowd:
            leader, other = await leading_pair(crowd)
            log: list[str] = []

            async def work() -> None:
                async with leader.campaign(drain=5) as term:
                    await term.draining.wait()
                    await asyncio.sleep(0.05)
                    log.append("finished")

            for last in (False, True):
                task = asyncio.create_task(work())
                await until(lambda: leader.campaigns, "the body runs")
                await (leader.leave() if last else leader.transfer(other.name))
                await task
                await crowd.agreed(but=leader.name)
                if not last:
                    await other.transfer(leader.name)
                    assert await crowd.agreed() is leader
            assert log == ["finished"] * 2

    run(story())


def test_no_two_bodies_run_at_once_through_many_hand_overs() -> None:
    async def story() -> None:
        async with Crowd(protocol="bully") as crowd:
            members = await crowd.add_all(["a", "b", "c"])
            await crowd.known(3)
            await crowd.settled()
            running: list[str] = []
            most = 0

            async def work(member: Member) -> None:
                nonlocal most
                while True:
                    try:
                        async with member.campaign():
                            running.append(member.name)
                            most = max(most, len(running))
                            try:
                                await asyncio.Event().wait()
                            finally:
                                await asyncio.sleep(0.01)  # cleaning up takes its time
                                running.remove(member.name)
                    except hustings.LeadershipLost:
                        continue

            async with background(*map(work, members)):
                for turn in range(9):
                    leader = await crowd.agreed()
                    await until(partial(running.count, leader.name), "its body runs")
                    heir = members[(members.index(leader) + 1 + turn % 2) % 3]
                    await leader.transfer(heir.name)
            assert most == 1

    run(story())
