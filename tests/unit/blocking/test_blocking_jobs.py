"""Jobs in threads, on real sockets: they run while their member leads."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from hustings import blocking
from hustings.blocking.loop import Flag, wait_for_any
from hustings.core.errors import BadInput
from hustings.net.member_state import NotLeader
from tests.waiting import PATIENCE_S, until


def leader_of(member: blocking.Member) -> str:
    return "" if member.leader is None else member.leader.name


@pytest.fixture
def pair() -> Iterator[list[blocking.Member]]:
    group = uuid.uuid4().hex[:12]
    with ExitStack() as stack:
        first = stack.enter_context(blocking.join(group, name="one"))
        second = stack.enter_context(blocking.join(group, name="two", seeds=[first.address]))
        until(lambda: leader_of(first) and leader_of(first) == leader_of(second), "they agree")
        yield sorted([first, second], key=lambda each: not each.is_leader)


def test_a_job_runs_in_the_calling_thread_and_returns_its_result(
    pair: list[blocking.Member],
) -> None:
    leader = pair[0]

    def job(term: blocking.Term) -> tuple[int, str]:
        return threading.get_ident(), term.member

    assert leader.run(job) == (threading.get_ident(), leader.name)
    assert leader.is_leader


def test_a_job_that_raises_begins_again(pair: list[blocking.Member]) -> None:
    tries: list[int] = []

    def job(term: blocking.Term) -> str:
        tries.append(term.number)
        if len(tries) < 3:
            raise ValueError("not yet")
        return "done"

    assert pair[0].run(job, restart_delay="1ms") == "done"
    assert len(tries) == 3
    tries.clear()
    with pytest.raises(ValueError, match="not yet"):
        pair[0].run(job, restart="never")


def test_a_job_moves_with_the_leadership(pair: list[blocking.Member]) -> None:
    leader, other = pair
    begun: list[str] = []
    ended: list[BaseException] = []

    def job(term: blocking.Term) -> None:
        begun.append(term.member)
        term.lost.wait()
        assert term.reason is not None

    def run(member: blocking.Member) -> None:
        try:
            member.run(job)
        except NotLeader as error:
            ended.append(error)

    threads = [threading.Thread(target=run, args=(each,), daemon=True) for each in pair]
    for thread in threads:
        thread.start()
    until(lambda: begun == [leader.name], "the leader's job runs")
    leader.transfer(other.name)
    until(lambda: begun == [leader.name, other.name], "the job has moved")
    other.transfer(leader.name)
    until(lambda: begun == [leader.name, other.name, leader.name], "and comes back")
    for member in pair:
        member.close()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    assert len(ended) == 2, "a member that left runs nothing"


def test_a_periodic_job_ends_between_two_runs_when_it_is_asked_to(
    pair: list[blocking.Member],
) -> None:
    leader, other = pair
    runs: list[str] = []

    def run() -> None:
        with pytest.raises(NotLeader):
            leader.run(lambda term: runs.append(term.member), every="1h", drain="60s")

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    until(lambda: runs, "it runs at once")
    leader.transfer(other.name)  # and does not take the whole drain
    leader.close()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert runs == [leader.name]


def test_a_periodic_job_runs_again_and_again(pair: list[blocking.Member]) -> None:
    runs: list[float] = []

    def job(term: blocking.Term) -> None:
        runs.append(time.monotonic())
        if len(runs) == 4:
            raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        pair[0].run(job, every="20ms", restart="never")
    assert len(runs) == 4
    assert runs[-1] - runs[0] >= 0.06


def test_a_coroutine_function_is_refused(pair: list[blocking.Member]) -> None:
    async def job(term: blocking.Term) -> None:
        raise AssertionError("nobody awaits it")

    with pytest.raises(BadInput, match="is a coroutine function"):
        pair[0].run(job)  # type: ignore[unused-coroutine]  # it is not made
    with pytest.raises(BadInput, match="cannot be called"):
        pair[0].run("job")  # type: ignore[arg-type]  # that is what is refused


def test_one_wait_for_two_flags() -> None:
    first, second = Flag(), Flag()
    assert not wait_for_any((first, second), 0.001)
    assert not first.waiting
    threading.Timer(0.01, second.set).start()
    assert wait_for_any((first, second), PATIENCE_S)
    assert not first.waiting, "nothing is left behind, however often a job waits"
    assert wait_for_any((first, second), 0.0)
    first.set()
    assert wait_for_any((first, second))


def test_a_blocked_event_loop_does_not_hold_the_member_up(pair: list[blocking.Member]) -> None:
    """As the guide has it: the program's loop stands still, the member's own goes on."""
    leader, begun = pair[0], threading.Event()
    terms: list[blocking.Term] = []

    def job(term: blocking.Term) -> None:
        terms.append(term)
        begun.set()
        term.lost.wait()

    async def program() -> None:
        running = asyncio.create_task(asyncio.to_thread(leader.run, job))
        await asyncio.to_thread(begun.wait, PATIENCE_S)
        sent = leader.metrics().frames_sent
        until(lambda: leader.metrics().frames_sent > sent + 5, "the loop's thread waits here")
        terms[0].check()
        await asyncio.to_thread(leader.close)
        (ended,) = await asyncio.gather(running, return_exceptions=True)
        assert isinstance(ended, NotLeader)

    asyncio.run(program())
    assert len(terms) == 1
    assert terms[0].lost.is_set()
