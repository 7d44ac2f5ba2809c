"""Play one run: start the engine and the workers, do things to them, and audit the bank.

Each worker reaches the engine by a way of its own, which can be cut or held.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

from tests.guard.engines import started
from tests.guard.engines.base import Server
from tests.guard.proxy import Proxy
from tests.guard.workload.banks import BANKS, Audit, Lost
from tests.guard.workload.judging import Event, Report, judge, stale_writes

ROOT = Path(__file__).resolve().parents[3]
TTL_S = 1.0
WORKERS = 3
MOST_PAUSES = 40
END_S = 20.0  # for a worker to end by itself


class Worker:
    """A worker's lives, one process after the other."""

    def __init__(self, name: str, arguments: Callable[[int], list[str]], proxy: Proxy) -> None:
        self.name = name
        self.proxy = proxy
        self.lives: list[tuple[list[Event], float | None]] = []
        self._arguments = arguments
        self._process: asyncio.subprocess.Process | None = None
        self._ear: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "tests.guard.workload.worker"),
            *self._arguments(len(self.lives) + 1),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        events: list[Event] = []
        self.lives.append((events, None))
        self._ear = asyncio.create_task(self._listen(self._process, events))

    async def _listen(self, process: asyncio.subprocess.Process, events: list[Event]) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            if line.endswith(b"\n"):
                events.append(json.loads(line))

    @property
    def holds_until(self) -> float:
        """The deadline of what it holds, as far as it has said; 0 if it holds nothing."""
        for event in reversed(self.lives[-1][0]):
            if event["what"] in ("granted", "renewed"):
                return float(event["deadline"])
            if event["what"] in ("released", "lost", "refused"):
                break
        return 0.0

    def send(self, number: signal.Signals) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def kill(self) -> None:
        events, _ = self.lives[-1]
        self.send(signal.SIGKILL)
        await self._ended()
        self.lives[-1] = (events, time.monotonic())

    async def end(self) -> bool:
        """Whether it ended by itself."""
        self.send(signal.SIGCONT)
        self.send(signal.SIGTERM)
        try:
            async with asyncio.timeout(END_S):
                await self._ended()
        except TimeoutError:
            await self.kill()
            return False
        return True

    async def _ended(self) -> None:
        if self._process is not None and self._ear is not None:
            await self._process.wait()
            await self._ear


class Scene:
    """An engine, its workers, and chance."""

    def __init__(self, engine: Server, workers: Sequence[Worker], seed: int) -> None:
        self.engine = engine
        self.workers = workers
        self.rng = random.Random(seed)

    def somebody(self) -> Worker:
        """Who holds the lease, as a rule; else anybody."""
        best = max(self.workers, key=lambda each: each.holds_until)
        return best if self.rng.random() < 0.85 else self.rng.choice(list(self.workers))

    async def rest(self, least: float, most: float) -> None:
        """Some time, in leases."""
        await asyncio.sleep(TTL_S * self.rng.uniform(least, most))


Fault = Callable[[Scene], Awaitable[None]]


async def kill(scene: Scene) -> None:
    worker = scene.somebody()
    await worker.kill()
    await scene.rest(0.0, 0.5)
    await worker.start()


async def stop(scene: Scene) -> None:
    """Beyond its lease: somebody else holds when it goes on."""
    worker = scene.somebody()
    worker.send(signal.SIGSTOP)
    try:
        await scene.rest(1.8, 3.0)
    finally:
        worker.send(signal.SIGCONT)


async def stop_in_transfer(scene: Scene) -> None:
    """Between its look at the clock and its write, until somebody else has written."""
    worker = max(scene.workers, key=lambda each: each.holds_until)
    heard = worker.lives[-1][0]
    since = len(heard)  # what it says from now on

    def stopped_with() -> int:
        return next((e["token"] for e in heard[since:] if e["what"] == "stopped"), 0)

    def is_succeeded() -> bool:
        said = [e for each in scene.workers for e in each.lives[-1][0][-5:]]
        return any(e["what"] == "done" and e["token"] > stopped_with() for e in said)

    worker.send(signal.SIGUSR1)
    try:
        if await _within(END_S, lambda: stopped_with() > 0):
            await _within(END_S, is_succeeded)
    finally:
        worker.send(signal.SIGCONT)


async def _within(seconds: float, condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end:
        await asyncio.sleep(0.02)
    return found


async def cut(scene: Scene) -> None:
    scene.somebody().proxy.cut()


async def hold_questions(scene: Scene) -> None:
    """What it sent arrives when its lease is long over."""
    proxy = scene.somebody().proxy
    opening = proxy.hold_present(proxy.questions)
    try:
        await scene.rest(1.8, 3.0)
    finally:
        opening.set()


async def hold_answers(scene: Scene) -> None:
    proxy = scene.somebody().proxy
    opening = proxy.hold(proxy.answers)
    try:
        await scene.rest(1.2, 2.0)
    finally:
        opening.set()


async def restart_engine(scene: Scene) -> None:
    await asyncio.to_thread(scene.engine.stop, kill=True)
    await scene.rest(0.0, 0.8)
    await asyncio.to_thread(scene.engine.start)


async def pause_engine(scene: Scene) -> None:
    scene.engine.pause()
    try:
        await scene.rest(0.5, 2.0)
    finally:
        scene.engine.resume()


FAULTS: Mapping[str, Fault] = {
    each.__name__.replace("_", "-"): each
    for each in (kill, stop, cut, hold_questions, hold_answers, restart_engine, pause_engine)
}
MEANT: Mapping[str, Fault] = {**FAULTS, "stop-in-transfer": stop_in_transfer}
# A stopped process and late questions are what a fence is for.
WEIGHTS: Mapping[str, int] = {"stop": 4, "hold-questions": 3}


def plan(seed: int) -> AsyncIterator[str]:
    """Faults for ever, each kind once before chance takes over."""
    rng = random.Random(f"plan {seed}")
    names = list(FAULTS)

    async def endless() -> AsyncIterator[str]:
        for name in rng.sample(names, len(names)):
            yield name
        while True:
            yield rng.choices(names, [WEIGHTS.get(each, 1) for each in names])[0]

    return endless()


@asynccontextmanager
async def scenery(name: str, fenced: bool, seed: int, workers: int) -> AsyncIterator[Scene]:
    """An engine with a new bank, and workers that have started."""
    async with AsyncExitStack() as ends:
        engine = await asyncio.to_thread(ends.enter_context, started(name))
        assert isinstance(engine, Server)
        bank = BANKS[name](engine.url(), fenced=fenced, patience=END_S)
        await bank.found()
        await bank.close()
        team = []
        for number in range(workers):
            proxy = await ends.enter_async_context(Proxy(engine.port))
            called = f"w{number}"

            def arguments(life: int, called: str = called, port: int = proxy.port) -> list[str]:
                url = engine.url(at=port)
                return [name, url, called, str(life), str(TTL_S), "yes" if fenced else "no"]

            team.append(Worker(called, arguments, proxy))
        try:
            for worker in team:
                await worker.start()
            yield Scene(engine, team, seed)
        finally:
            for worker in team:
                await worker.kill()


async def audited(scene: Scene, name: str) -> Audit:
    """What the bank holds, once it is quiet."""
    bank = BANKS[name](scene.engine.url(), fenced=False, patience=END_S)
    try:
        for _ in range(50):
            with suppress(Lost):
                return await bank.audit()
            await asyncio.sleep(0.1)
        raise AssertionError("the bank cannot be read")
    finally:
        await bank.close()


async def play(
    name: str,
    *,
    fenced: bool,
    seconds: float,
    seed: int = 0,
    faults: AsyncIterator[str] | None = None,
    enough: Callable[[Audit], bool] | None = None,
    workers: int = WORKERS,
) -> Report:
    """One run of so many seconds, or until faults run out or the bank shows `enough`."""
    counted: dict[str, int] = {}
    async with scenery(name, fenced, seed, workers) as scene:
        await settled(scene)
        began = time.monotonic()
        async for fault in plan(seed) if faults is None else faults:
            if time.monotonic() - began >= seconds:
                break
            counted[fault] = counted.get(fault, 0) + 1
            await MEANT[fault](scene)
            await scene.rest(0.5, 2.0)
            if enough is not None and enough(await audited(scene, name)):
                break
        ended = time.monotonic()
        await settled(scene)
        calm = await asyncio.gather(*(each.end() for each in scene.workers))
        assert all(calm), "a worker did not end"
        audit = await audited(scene, name)
        lives = [life for worker in scene.workers for life in worker.lives]
        return judge(name, fenced, lives, audit, counted, (began, ended))


async def unfenced(name: str, *, seconds: float, seed: int = 0) -> Report:
    """Without the fence, and with what it is for, until a former holder's write was accepted.

    Chance stops a worker just there now and then; here it is stopped just there.
    """

    async def pauses() -> AsyncIterator[str]:
        for number in range(MOST_PAUSES):
            yield "hold-questions" if number % 3 == 2 else "stop-in-transfer"

    def violated(audit: Audit) -> bool:
        return stale_writes(entry.token for entry in audit.journal) > 0

    return await play(
        name, fenced=False, seconds=seconds, seed=seed, faults=pauses(), enough=violated
    )


async def settled(scene: Scene) -> None:
    """Until somebody transfers money again: after calm there is a leader, in bounded time."""
    begin = time.monotonic()
    while time.monotonic() < begin + END_S:
        for worker in scene.workers:
            if any(e["what"] == "done" and e["at"] > begin for e in worker.lives[-1][0][-5:]):
                return
        await asyncio.sleep(0.05)
    raise AssertionError(f"nobody has transferred anything for {END_S:g} s, undisturbed")
