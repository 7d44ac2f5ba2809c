"""What the conformance suite works with: guards on one engine, for a group of their own.

A test is written once and runs for every engine in `tests.guard.engines`. `every` takes them all,
`remote` those that other processes reach, `strict` those that have something to be wrong about.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hustings.guard import Grant, Guard, Holder, Holding, Unreachable, make_guard
from tests.guard.engines import ENGINES, kind_of
from tests.guard.engines.base import Engine

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 30.0  # for what must come, however busy the machine is
LOOK_S = 0.02

NAMES = list(ENGINES)
every = pytest.mark.parametrize("engine", NAMES, indirect=True)
remote = pytest.mark.parametrize(
    "engine", [name for name in NAMES if kind_of(name).remote], indirect=True
)
strict = pytest.mark.parametrize(
    "engine",
    [name for name in NAMES if kind_of(name).wrong_urls is not Engine.wrong_urls],
    indirect=True,
)


class Rig:
    """Guards of one group that nobody else uses."""

    def __init__(self, engine: Engine, ends: AsyncExitStack) -> None:
        self.engine = engine
        self.group = f"group-{uuid.uuid4().hex[:12]}"
        self._ends = ends

    def url(self, *, at: int | None = None, timeout: float | None = None) -> str:
        url = self.engine.url(self.group, at)
        if timeout is not None:
            url += f"{'&' if '?' in url else '?'}timeout={timeout:g}"
        return url

    async def guard(self, *, at: int | None = None, timeout: float | None = None) -> Guard:
        """A member's guard, open until the test is over."""
        guard = make_guard(self.url(at=at, timeout=timeout), self.group)
        return await self._ends.enter_async_context(guard)

    async def observed(self, guard: Guard) -> list[Holding]:
        """What an observer of this guard sees, as it comes; the present state is there."""
        seen: list[Holding] = []
        task = asyncio.create_task(_collect(guard, seen))
        self._ends.push_async_callback(_end, task)
        await reached(lambda: seen, "an observer sees the present state", task)
        return seen


@asynccontextmanager
async def rig_on(engine: Engine) -> AsyncIterator[Rig]:
    async with AsyncExitStack() as ends:
        yield Rig(engine, ends)


async def _collect(guard: Guard, seen: list[Holding]) -> None:
    async with guard.observe() as states:
        async for state in states:
            seen.append(state)


async def _end(task: asyncio.Task[None]) -> None:
    """Observing ends because it is ended, not because it has failed."""
    assert not task.done(), f"the observer gave up: {task}"
    task.cancel()
    await asyncio.wait([task])


async def reached(condition: Callable[[], object], what: str, *tasks: asyncio.Task[None]) -> None:
    """Wait for a condition; in vain is a failure, and so is a task that ends meanwhile."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        for task in tasks:
            assert not task.done(), f"{what}: {task}"
        await asyncio.sleep(LOOK_S)


async def granted(guard: Guard, holder: Holder, ttl: float, known: int = 0) -> Grant:
    """Ask until it is granted; refusals and outages pass."""
    deadline = time.monotonic() + PATIENCE_S
    said: object = "nothing"
    while time.monotonic() < deadline:
        try:
            answer = await guard.acquire(holder, ttl, known)
        except Unreachable as error:
            said = error
        else:
            if isinstance(answer, Grant):
                return answer
            said = answer
        await asyncio.sleep(LOOK_S)
    raise AssertionError(f"{holder} is not granted within {PATIENCE_S:g} s: {said!r}")


async def lapsed(guard: Guard, grant: Grant) -> None:
    """Wait until the holder itself sees that its time is over."""
    while guard.now() < grant.deadline:
        await asyncio.sleep(LOOK_S)


async def does_not_answer(asking: Awaitable[object], within_s: float = 10.0) -> None:
    """A question is not answered, and says so in bounded time."""
    began = time.monotonic()
    with pytest.raises(Unreachable):
        await asking
    assert time.monotonic() - began < within_s


def with_clock(guard: Guard, rate: float, drift: float) -> None:
    """Give a guard a clock of this rate, and let it know how far rates may be off."""
    guard._clock = lambda: rate * time.monotonic()
    guard.guarantees = msgspec.structs.replace(guard.guarantees, drift=drift)


class Client:
    """A holder in a process of its own: see `tests.guard.client`."""

    def __init__(self, process: subprocess.Popen[bytes], output: Path) -> None:
        self._process = process
        self._output = output

    def told(self, *what: str) -> list[dict[str, Any]]:
        """What it has said of these kinds, complete lines only."""
        lines = self._output.read_bytes().split(b"\n")[:-1]
        return [each for each in map(json.loads, lines) if each["said"] in what]

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)


@contextmanager
def client_on(rig: Rig, name: str, ttl: float, folder: Path) -> Iterator[Client]:
    output, errors = folder / f"{name}.out", folder / f"{name}.err"
    with output.open("wb") as out, errors.open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.guard.client", rig.url(), rig.group, name, "1", f"{ttl}"],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )
    try:
        yield Client(process, output)
        assert not errors.read_text(), errors.read_text()
    finally:
        process.kill()
        process.wait()
