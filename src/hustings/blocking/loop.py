"""An event loop in a thread of its own, and calls to it from other threads.

Law: a thread that waits here may be interrupted at any instruction (Ctrl-C), and this must not harm
the loop. So both sides meet only at locks and queues that the interpreter takes in one step. They
never meet at conditions, events or futures of the standard library, which an interrupt can leave
locked.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from hustings.net.member_state import NotLeader

ROUNDS = 5  # of a loop that is about to end: a connection opens or closes within as many

T = TypeVar("T")


class Flag(threading.Event):
    """An event that an interrupted waiter cannot leave locked."""

    def __init__(self) -> None:
        super().__init__()
        self._up = False
        self.waiting: deque[threading.Lock] = deque()

    def is_set(self) -> bool:
        """Whether the flag is set."""
        return self._up

    def set(self) -> None:
        """Set the flag for ever; all waiting threads go on."""
        self._up = True
        while self.waiting:
            try:
                self.waiting.popleft().release()
            except IndexError:
                break  # two threads set it at once
            except RuntimeError:
                continue  # the waiter waits for another flag, too, and that one was set

    def clear(self) -> None:
        raise TypeError("what has happened stays so")

    def wait(self, timeout: float | None = None) -> bool:
        """Whether the flag was set in that time."""
        return wait_for_any((self,), timeout)


def wait_for_any(flags: Sequence[Flag], timeout: float | None = None) -> bool:
    """Whether one of the flags was set in that time."""
    mine = threading.Lock()
    mine.acquire()
    for flag in flags:
        flag.waiting.append(mine)
    try:
        if any(flag.is_set() for flag in flags):
            return True
        return mine.acquire(timeout=-1 if timeout is None else max(0.0, timeout))
    finally:
        for flag in flags:
            with suppress(ValueError):  # a flag that was set has removed it
                flag.waiting.remove(mine)


class Asked(Generic[T]):
    """Work on the loop for another thread, which gets the result through a queue."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self.results: SimpleQueue[T | BaseException] = SimpleQueue()
        self._work = work
        self._task: asyncio.Task[T] | None = None
        self._cancelled = False

    def begin(self) -> None:
        """Start the work. Called on the loop."""
        if self._cancelled:
            return
        self._task = asyncio.get_running_loop().create_task(self._work())
        self._task.add_done_callback(self._done)

    def cancel(self) -> None:
        """Cancel the work. Called on the loop."""
        self._cancelled = True
        if self._task is not None:
            self._task.cancel()
        else:
            self.results.put(NotLeader("it was not waited for"))

    def result(self, timeout: float | None = None) -> T:
        """What the work returned; raises what it raised."""
        try:
            result = self.results.get(timeout=timeout)
        except Empty:
            raise TimeoutError("it took longer") from None
        if isinstance(result, BaseException):
            raise result
        return result

    def _done(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self.results.put(NotLeader("this member was closed meanwhile"))
        else:
            self.results.put(task.exception() or task.result())


class LoopThread:
    """An event loop in a thread of its own, and calls to it from other threads."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._process = os.getpid()
        self._lock = threading.Lock()  # between a call to the loop and its stop
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def here(self) -> bool:
        """Whether the calling thread is the loop's."""
        return threading.current_thread() is self._thread

    @property
    def elsewhere(self) -> bool:
        """Whether this process is a fork: the thread exists only in the parent process."""
        return os.getpid() != self._process

    def start(self, asked: Asked[T]) -> None:
        """Start work on the loop."""
        if self.elsewhere:
            raise NotLeader("this member stayed in the process that was forked: join again")
        if not self.soon(asked.begin):
            raise NotLeader("this member is closed: join again")

    def call(self, work: Callable[[], Coroutine[Any, Any, T]], timeout: float | None = None) -> T:
        """Run work on the loop; return what it returns, or raise what it raises."""
        if self.here:
            raise RuntimeError("a member's own thread cannot wait for it: use another thread")
        asked = Asked(work)
        try:
            self.start(asked)
            return asked.result(timeout)
        except BaseException:
            self.soon(asked.cancel)  # too late or interrupted; no effect on ended work
            raise

    def read(self, function: Callable[[], T]) -> T:
        """The result of a function on the loop; called directly if no other code can run there."""
        if self.here or self.elsewhere or self._stopped:
            return function()

        async def there() -> T:
            return function()

        return self.call(there)

    def soon(self, act: Callable[[], object]) -> bool:
        """Call something on the loop, without waiting; False if the loop has stopped."""
        if self.elsewhere:  # the fork may have copied a locked lock
            return False
        with self._lock:
            if not self._stopped:
                self._loop.call_soon_threadsafe(act)
            return not self._stopped

    def stop(self, timeout: float | None = None) -> None:
        """End the loop, the tasks on it, and the thread."""
        if self.elsewhere:
            return
        with self._lock:
            if not self._stopped:
                self._stopped = True
                self._loop.call_soon_threadsafe(self._loop.stop)
        if not self.here:
            self._thread.join(timeout)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(_wind_up())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            asyncio.set_event_loop(None)
            self._loop.close()


async def _wind_up() -> None:
    """End every task. A task that was just created first starts, so that it can clean up."""
    await _some_rounds()
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    await _some_rounds()


async def _some_rounds() -> None:
    for _ in range(ROUNDS):
        await asyncio.sleep(0)
