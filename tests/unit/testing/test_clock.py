"""The virtual clock: time jumps, order is fixed, every run ends, and nothing real takes part."""

from __future__ import annotations

import asyncio
import math
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator

import pytest

from hustings.testing.clock import MemberProcess, NotVirtual, RanTooLong, Stuck, VirtualLoop


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    made = VirtualLoop(most_seconds=1000, most_callbacks=10_000)
    yield made
    made.close()


class Broken(Exception):
    pass


def fail() -> None:
    raise Broken


# Time


def test_an_hour_passes_at_once(loop: VirtualLoop) -> None:
    began = time.monotonic()
    loop.run_until_complete(asyncio.sleep(900))
    assert loop.time() == 900.0
    assert time.monotonic() - began < 5


def test_timers_fire_by_deadline_and_then_as_they_were_armed(loop: VirtualLoop) -> None:
    seen: list[tuple[float, int]] = []
    for number, when in enumerate([3.0, 1.0, 2.0, 1.0, 3.0, 1.0, 2.0, 1.0]):
        loop.call_at(when, lambda it: seen.append((loop.time(), it)), number)
    loop.run_until_complete(asyncio.sleep(3))
    assert seen == [(1, 1), (1, 3), (1, 5), (1, 7), (2, 2), (2, 6), (3, 0), (3, 4)]


def test_a_timer_fires_at_its_very_deadline_and_none_before(loop: VirtualLoop) -> None:
    seen: list[float] = []
    first = 0.1 + 0.2
    second = math.nextafter(first, 1)
    loop.call_at(first, lambda: seen.append(loop.time()))
    loop.call_at(second, lambda: seen.append(loop.time()))
    loop.run_until_complete(asyncio.sleep(1))
    assert seen == [first, second]


def test_what_is_ready_runs_before_time_moves(loop: VirtualLoop) -> None:
    seen: list[str] = []

    def chain(left: int) -> None:
        seen.append(f"{left} at {loop.time():g}")
        if left:
            loop.call_soon(chain, left - 1)

    loop.call_at(5.0, seen.append, "timer")
    loop.call_soon(chain, 2)
    loop.run_until_complete(asyncio.sleep(5))
    assert seen == ["2 at 0", "1 at 0", "0 at 0", "timer"]


def test_a_cancelled_timer_neither_fires_nor_moves_time(loop: VirtualLoop) -> None:
    seen: list[str] = []
    timers = [loop.call_at(50.0 + number, seen.append, "no") for number in range(200)]
    for timer in timers:
        timer.cancel()
    loop.run_until_complete(asyncio.sleep(1))
    with pytest.raises(Stuck):
        loop.run_until_complete(loop.create_future())
    assert (seen, loop.time()) == ([], 1.0)


def test_time_outs_and_queues_work(loop: VirtualLoop) -> None:
    async def main() -> list[object]:
        queue: asyncio.Queue[str] = asyncio.Queue()
        told: list[object] = []
        loop.call_later(2.0, queue.put_nowait, "late")
        try:
            async with asyncio.timeout(1.5):
                await queue.get()
        except TimeoutError:
            told.append(loop.time())
        told.append(await queue.get())
        told.append(loop.time())
        return told

    assert loop.run_until_complete(main()) == [1.5, "late", 2.0]


def test_a_runner_takes_it() -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(asyncio.sleep(7))
        assert runner.get_loop().time() == 7.0


# Every run ends


def test_waiting_for_nothing_is_told(loop: VirtualLoop) -> None:
    loop.run_until_complete(asyncio.sleep(2.5))
    with pytest.raises(Stuck, match=r"stuck at 2\.5 s .* no callback and no timer is left$"):
        loop.run_until_complete(asyncio.Event().wait())


def test_who_is_held_back_is_told(loop: VirtualLoop) -> None:
    process = MemberProcess("web-1")
    done = loop.create_future()
    loop.hold(process)
    loop.call_at(1.0, done.set_result, None, context=process.context())
    with pytest.raises(Stuck, match="what web-1 would do, which is held back"):
        loop.run_until_complete(done)


def test_virtual_time_is_bounded_for_each_run(loop: VirtualLoop) -> None:
    loop.run_until_complete(asyncio.sleep(900))
    loop.run_until_complete(asyncio.sleep(900))
    with pytest.raises(RanTooLong, match="1000 s of virtual time have passed"):
        loop.run_until_complete(asyncio.sleep(1001))
    assert loop.time() == 1800.0


def test_callbacks_are_bounded_even_if_time_stands_still(loop: VirtualLoop) -> None:
    def again() -> None:
        loop.call_soon(again)

    again()
    with pytest.raises(RanTooLong, match=r"10,000 callbacks have run .* stands at 0 s"):
        loop.run_until_complete(loop.create_future())


def test_a_callback_that_fails_ends_the_run(loop: VirtualLoop) -> None:
    loop.call_at(1.0, fail)
    with pytest.raises(Broken):
        loop.run_until_complete(asyncio.sleep(5))
    assert loop.time() == 1.0
    loop.run_until_complete(asyncio.sleep(1))  # it is told once


def test_a_failure_in_the_last_round_is_not_lost(loop: VirtualLoop) -> None:
    done = loop.create_future()
    loop.call_soon(done.set_result, None)
    loop.call_at(0.0, loop.call_soon, fail)
    with pytest.raises(Broken):
        loop.run_until_complete(done)


# Lives


def test_a_held_life_waits_and_then_catches_up_in_order(loop: VirtualLoop) -> None:
    seen: list[str] = []
    process = MemberProcess("a")
    context = process.context()

    def tick(name: str, left: int) -> None:
        seen.append(f"{name} at {loop.time():g}")
        if left:
            loop.call_later(1.0, tick, name, left - 1)

    loop.call_at(1.0, tick, "held", 2, context=context)
    loop.call_at(1.5, tick, "second", 0, context=context)
    loop.call_at(1.0, tick, "free", 2)
    loop.hold(process)
    loop.call_at(2.25, loop.release, process)
    loop.run_until_complete(asyncio.sleep(6))
    assert seen == [
        "free at 1",
        "free at 2",
        "held at 2.25",
        "second at 2.25",
        "free at 3",
        "held at 3.25",
        "held at 4.25",
    ]


def test_tasks_of_a_held_life_wait_too(loop: VirtualLoop) -> None:
    seen: list[float] = []

    async def worker() -> None:
        while True:
            await asyncio.sleep(1)
            seen.append(loop.time())

    process = MemberProcess("a")

    async def main() -> None:
        task = loop.create_task(worker(), context=process.context())
        await asyncio.sleep(2.5)
        loop.hold(process)
        loop.hold(process)
        await asyncio.sleep(3)
        loop.release(process)
        loop.release(process)
        await asyncio.sleep(1.5)
        task.cancel()

    loop.run_until_complete(main())
    assert seen == [1.0, 2.0, 5.5, 6.5]


def test_what_is_cancelled_while_held_does_not_run(loop: VirtualLoop) -> None:
    seen: list[str] = []
    process = MemberProcess("a")
    loop.hold(process)
    timer = loop.call_at(1.0, seen.append, "no", context=process.context())
    loop.run_until_complete(asyncio.sleep(2))
    timer.cancel()
    loop.release(process)
    loop.run_until_complete(asyncio.sleep(2))
    assert seen == []


# Nothing real


async def open_endpoint() -> None:
    loop = asyncio.get_running_loop()
    await loop.create_datagram_endpoint(asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0))


async def add_reader() -> None:
    asyncio.get_running_loop().add_reader(0, print)


@pytest.mark.parametrize(
    "attempt, what",
    [
        (lambda: asyncio.to_thread(time.monotonic), "a thread"),
        (lambda: asyncio.open_connection("127.0.0.1", 9), "a socket"),
        (lambda: asyncio.start_server(print, "127.0.0.1", 0), "a socket"),
        (lambda: asyncio.create_subprocess_exec("true"), "a process"),
        (open_endpoint, "a socket"),
        (add_reader, "a file descriptor"),
    ],
)
def test_the_real_world_is_refused(
    loop: VirtualLoop, attempt: Callable[[], Coroutine[object, object, object]], what: str
) -> None:
    with pytest.raises(NotVirtual, match=f"^{what} cannot be used on a virtual clock"):
        loop.run_until_complete(attempt())


def test_numbers_are_resolved_and_names_refused(loop: VirtualLoop) -> None:
    found = loop.run_until_complete(
        loop.getaddrinfo("127.0.0.1", 7400, family=socket.AF_INET, type=socket.SOCK_DGRAM)
    )
    assert [each[4] for each in found] == [("127.0.0.1", 7400)]
    with pytest.raises(NotVirtual, match=r"'a\.example' cannot be looked up"):
        loop.run_until_complete(loop.getaddrinfo("a.example", 7400))


def test_another_thread_is_refused(loop: VirtualLoop) -> None:
    told: list[Exception] = []

    def outside() -> None:
        try:
            loop.call_soon_threadsafe(print)
        except NotVirtual as error:
            told.append(error)

    async def main() -> None:
        thread = threading.Thread(target=outside)
        thread.start()
        thread.join()

    loop.run_until_complete(main())
    assert len(told) == 1


def test_a_closed_loop_takes_nothing(loop: VirtualLoop) -> None:
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_soon(print)
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_later(1.0, print)
