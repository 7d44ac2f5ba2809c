"""Jobs of members: they run while the member leads, and end, begin again and finish in order."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from hustings.core.errors import BadInput, UnknownName
from hustings.net.campaign import Term
from hustings.net.job import JobCancelled, job_options
from hustings.net.member import Member
from hustings.net.member_state import LeadershipLost, NotLeader
from hustings.testing import Group

NAMES = ("a", "b", "c")


@pytest.fixture
def group() -> Iterator[Group]:
    with Group(seed=7, delay=(0.001, 0.005)) as made:
        for name in NAMES:
            made.join(name)
        made.settle(steady=2.0)
        yield made


class Diary:
    """What a job did, and when."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self.lines: list[tuple[float, str, str]] = []

    def write(self, term: Term, said: str) -> None:
        self.lines.append((round(self._group.now, 3), term.member, said))

    def said(self, word: str) -> list[str]:
        return [member for _, member, said in self.lines if said == word]

    async def long(self, term: Term) -> None:
        self.write(term, "begins")
        try:
            await asyncio.Event().wait()
        finally:
            self.write(term, "ends")


def everywhere(group: Group, job: Callable[[Term], Awaitable[Any]], **options: Any) -> None:
    for name in NAMES:
        group.spawn(name, quietly(group.member(name), job, **options))


async def quietly(member: Member, job: Callable[[Term], Awaitable[Any]], **options: Any) -> None:
    """Run a job; the member's leave ends it."""
    with contextlib.suppress(NotLeader):
        await member.run(job, **options)


def test_a_job_returns_its_result(group: Group) -> None:
    leader = group.member(group.settle())

    async def job(term: Term) -> tuple[str, int]:
        await asyncio.sleep(1.0)
        return term.member, term.number

    assert group.run(leader.run(job)) == (leader.name, leader.term)
    assert not leader.campaigns
    assert leader.is_leader, "the leadership lasts longer than the job"


def test_a_job_runs_at_one_member_and_moves_with_the_leadership(group: Group) -> None:
    diary = Diary(group)
    everywhere(group, diary.long)
    first = group.settle(steady=1.0)
    assert diary.said("begins") == [first]
    group.kill(first)
    second = group.settle(steady=1.0)
    assert diary.said("begins") == [first, second]
    third = next(name for name in group.up if name != second)
    group.run(group.member(second).transfer(third))
    group.advance(1.0)
    assert diary.said("begins") == [first, second, third]
    assert diary.said("ends") == [second]
    group.run(group.member(third).transfer(second))
    group.advance(1.0)
    assert diary.said("begins") == [first, second, third, second], "a member leads again"


def test_a_job_that_raises_begins_again_after_growing_delays(group: Group) -> None:
    leader = group.member(group.settle())
    starts: list[float] = []

    async def job(term: Term) -> str:
        starts.append(group.now)
        if len(starts) < 5:
            raise ValueError("not yet")
        return "done"

    assert group.run(leader.run(job, restart_delay="2s")) == "done"
    gaps = [round(b - a, 6) for a, b in itertools.pairwise(starts)]
    assert gaps == [2.0, 4.0, 8.0, 16.0]
    assert len({leader.term}) == 1, "the member led on"


@pytest.mark.parametrize(
    "options, runs", [({"restart": "never"}, 1), ({"max_restarts": 2}, 3), ({"max_restarts": 0}, 1)]
)
def test_a_job_that_goes_on_raising_is_given_up(
    group: Group, options: dict[str, Any], runs: int
) -> None:
    leader = group.member(group.settle())
    starts: list[float] = []

    async def job(term: Term) -> None:
        starts.append(group.now)
        raise ValueError("never")

    with pytest.raises(ValueError, match="never"):
        group.run(leader.run(job, **options))
    assert len(starts) == runs
    assert not leader.campaigns


def test_a_job_can_begin_again_whenever_it_ends(group: Group) -> None:
    leader = group.member(group.settle())
    starts: list[float] = []

    async def job(term: Term) -> None:
        starts.append(group.now)

    task = group.spawn(leader.name, leader.run(job, restart="always", restart_delay=5.0))
    group.advance(100.0)
    task.cancel()
    assert [round(each - starts[0]) for each in starts] == [0, 5, 15, 35, 75]


def test_a_periodic_job_keeps_its_period_and_leaves_out_what_it_missed(group: Group) -> None:
    leader = group.member(group.settle())
    starts: list[float] = []
    lasting = iter([0.0, 4.0, 25.0, 1.0])

    async def job(term: Term) -> None:
        starts.append(group.now)
        await asyncio.sleep(next(lasting, 0.0))

    task = group.spawn(leader.name, leader.run(job, every="10s"))
    group.advance(65.0)
    task.cancel()
    # The run at 20 lasts until 45: those of 30 and 40 are left out.
    assert [round(each - starts[0]) for each in starts] == [0, 10, 20, 50, 60]


def test_a_periodic_job_that_raises_runs_again_in_its_next_period(group: Group) -> None:
    leader = group.member(group.settle())
    starts: list[float] = []

    async def job(term: Term) -> None:
        starts.append(group.now)
        if len(starts) != 2:
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        group.run(leader.run(job, every="10s", max_restarts=2))
    # A run that succeeds begins the count of failures anew.
    assert [round(each - starts[0]) for each in starts] == [0, 10, 20, 30, 40]


def test_a_periodic_job_begins_at_once_at_the_next_leader(group: Group) -> None:
    diary = Diary(group)

    async def job(term: Term) -> None:
        diary.write(term, "runs")

    everywhere(group, job, every="1h")
    first = group.settle(steady=1.0)
    group.kill(first)
    second = group.settle(steady=1.0)
    assert diary.said("runs") == [first, second]


def test_a_job_that_gives_way_has_not_finished(group: Group) -> None:
    diary = Diary(group)

    async def job(term: Term) -> None:
        diary.write(term, "begins")
        await term.draining.wait()
        await asyncio.sleep(2.0)  # it finishes what it has begun
        diary.write(term, "gives way")

    everywhere(group, job, drain="5s")
    first = group.settle(steady=1.0)
    second = next(name for name in NAMES if name != first)
    group.run(group.member(first).transfer(second))
    group.advance(1.0)
    assert diary.said("begins") == [first, second]
    assert diary.said("gives way") == [first]


def test_a_transfer_does_not_wait_for_a_job_between_two_runs(group: Group) -> None:
    first = group.settle()
    second = next(name for name in NAMES if name != first)

    async def job(term: Term) -> None:
        return

    everywhere(group, job, every="1h", drain="30s")
    group.advance(1.0)
    began = group.now
    group.run(group.member(first).transfer(second))
    assert group.now - began < 1.0


def test_a_job_may_hand_over_itself(group: Group) -> None:
    first = group.settle()
    second = next(name for name in NAMES if name != first)
    diary = Diary(group)

    async def job(term: Term) -> None:
        diary.write(term, "begins")
        if term.member == first:
            await group.member(first).transfer(second)
            diary.write(term, "goes on")
        await asyncio.Event().wait()

    everywhere(group, job)
    group.advance(2.0)
    assert diary.said("begins") == [first, second]


def test_a_cancelled_caller_waits_for_the_clean_up_of_the_job(group: Group) -> None:
    leader = group.member(group.settle())
    cleaned: list[float] = []

    async def job(term: Term) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(3.0)
            cleaned.append(group.now)

    async def story() -> float:
        task = asyncio.ensure_future(leader.run(job, grace="5s"))
        await asyncio.sleep(1.0)
        began = asyncio.get_running_loop().time()
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        return asyncio.get_running_loop().time() - began

    assert group.run(story()) == pytest.approx(3.0)
    assert len(cleaned) == 1


def test_a_job_that_does_not_end_is_waited_for_within_the_grace(
    group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    leader = group.member(group.settle())
    free = asyncio.Event()

    async def job(term: Term) -> None:
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue  # it must not do this

    async def story() -> float:
        task = asyncio.ensure_future(leader.run(job, grace="5s"))
        await asyncio.sleep(1.0)
        began = asyncio.get_running_loop().time()
        task.cancel()
        await asyncio.wait({task})
        took = asyncio.get_running_loop().time() - began
        assert leader.campaigns, "its campaign lasts as long as the job"
        free.set()
        await asyncio.sleep(1.0)
        assert not leader.campaigns
        return took

    with caplog.at_level(logging.WARNING, "hustings"):
        assert group.run(story()) == pytest.approx(5.0)
    (told,) = [each for each in caplog.records if each.__dict__.get("event") == "job-late"]
    assert "goes on 5s after it was cancelled" in told.getMessage()


def test_no_second_job_begins_beside_one_that_does_not_end(
    group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    first = group.settle()
    second = next(name for name in NAMES if name != first)
    running: list[str] = []
    free = asyncio.Event()

    async def job(term: Term) -> None:
        running.append(term.member)
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue

    task = group.spawn(first, quietly(group.member(first), job, grace="2s"))
    group.advance(1.0)
    with caplog.at_level(logging.WARNING, "hustings"):
        group.run(group.member(first).transfer(second))
        group.run(group.member(second).transfer(first))
        group.advance(10.0)
    assert group.member(first).is_leader
    assert running == [first]
    assert any("goes on 2s after its leadership was lost" in each for each in caplog.messages)
    free.set()
    group.advance(1.0)
    assert running == [first, first]
    assert not task.done() or task.exception() is None


def test_what_a_job_raises_while_it_ends_is_told_and_counts_for_nothing(
    group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    first = group.settle()
    second = next(name for name in NAMES if name != first)
    starts: list[str] = []

    async def job(term: Term) -> None:
        starts.append(term.member)
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("the clean-up failed")

    with caplog.at_level(logging.WARNING, "hustings"):
        everywhere(group, job, restart="never")
        group.advance(1.0)
        group.run(group.member(first).transfer(second))
        group.advance(1.0)
        group.run(group.member(second).transfer(first))
        group.advance(1.0)
    assert starts == [first, second, first]
    told = [each for each in caplog.messages if "the clean-up failed" in each]
    assert len(told) == 2
    assert all("while it was ended" in each for each in told)


def test_a_job_that_cancels_itself_has_failed(group: Group) -> None:
    leader = group.member(group.settle())

    async def job(term: Term) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(1.0)

    with pytest.raises(JobCancelled, match="cancelled by other code"):
        group.run(leader.run(job, restart="never"))


def test_a_job_that_says_lost_without_reason_has_failed(group: Group) -> None:
    leader = group.member(group.settle())
    starts: list[float] = []

    async def job(term: Term) -> None:
        starts.append(group.now)
        raise LeadershipLost("of something else")

    with pytest.raises(LeadershipLost, match="of something else"):
        group.run(leader.run(job, max_restarts=2))
    assert len(starts) == 3, "and it does not spin"


def test_run_ends_when_the_member_leaves(group: Group) -> None:
    first = group.settle()
    member = group.member(first)
    diary = Diary(group)

    async def story() -> None:
        task = asyncio.ensure_future(member.run(diary.long))
        await asyncio.sleep(1.0)
        await member.leave()
        with pytest.raises(NotLeader, match=f"{first} has left group"):
            await task

    group.run(story())
    assert diary.said("ends") == [first]


@pytest.mark.parametrize(
    "options, said",
    [
        ({"restart": "sometimes"}, "unknown restart 'sometimes'"),
        ({"max_restarts": -1}, "max_restarts -1 is not a number"),
        ({"max_restarts": True}, "max_restarts True is not a number"),
        ({"every": "often"}, "every 'often' is not a duration"),
        ({"every": 0}, "every 0 is too short"),
        ({"every": "1m", "restart_delay": "1s"}, "no restart_delay"),
        ({"restart_delay": -1}, "restart_delay -1 is not a duration"),
        ({"drain": "x"}, "drain 'x' is not a duration"),
        ({"grace": None}, "grace None is not a duration"),
    ],
)
def test_wrong_options_are_refused_before_anything_runs(
    options: dict[str, Any], said: str, group: Group
) -> None:
    leader = group.member(group.settle())

    async def job(term: Term) -> None:
        raise AssertionError("it must not begin")

    with pytest.raises((BadInput, UnknownName), match=said):
        group.run(leader.run(job, **options))


def test_what_is_no_coroutine_function_is_refused_before_it_is_called(group: Group) -> None:
    leader = group.member(group.settle())

    def plain(term: Term) -> Any:
        raise AssertionError("it must not be called")

    class Called:
        async def __call__(self, term: Term, word: str = "called") -> str:
            return word

    with pytest.raises(BadInput, match=r"plain is no coroutine function: write `async def`"):
        group.run(leader.run(plain))
    assert group.run(leader.run(Called())) == "called"
    assert group.run(leader.run(functools.partial(Called().__call__, word="x"))) == "x"


def test_defaults_need_no_words() -> None:
    options = job_options(None, "on-failure", None, None, 0.0, "10s")
    assert (options.restarts.delay_s, options.restarts.most) == (1.0, None)
    assert (options.every_s, options.drain_s, options.grace_s) == (None, 0.0, 10.0)
