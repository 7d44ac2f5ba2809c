"""Never two leaders at one time, whatever is done to the leader, its connections and the engine.

Three processes lead by turns. Each has a way of its own to the engine, and writes down the time
whenever it believes that it leads, by the clock that all processes of a machine share. They are
members of one user on one machine, so that killed ones are succeeded without a wait for the lease:
here it shows if anything else than a killed process were taken for one.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.guard.engines.base import Engine, Server
from tests.guard.engines.stepped import Stepped, SteppedPostgres
from tests.guard.proxy import Proxy
from tests.net.kit.loops import run, until

TTL = 2.0
LONGER = 1.5 * TTL
PATIENCE_S = 90.0  # one that begins anew, on a busy machine, while the engine does, too
STEPS = [3600.0, -600.0]  # seconds of the time of day
END_SESSIONS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
)
MEMBER = """
import asyncio, os, sys, time
import hustings

async def main(group, url, ttl, journal):
    file = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    joining = hustings.join(group, name=f"m{os.getpid()}", guard=url, ttl=ttl, guard_wait="1m")
    async with joining as member:
        while True:
            try:
                async with member.campaign() as term:
                    while True:
                        now = time.monotonic()
                        term.check()  # if it leads now, it also led then
                        os.write(file, f"{os.getpid()} {term.token} {now}\\n".encode())
                        await asyncio.sleep(0.004)
            except hustings.LeadershipLost:
                pass

asyncio.run(main(*sys.argv[1:]))
"""


class Lead(NamedTuple):
    """One leadership: who, with which token, and when it was first and last written down."""

    process: int
    token: int
    first: float
    last: float


class Worker:
    """One process at a time, and its way to the engine."""

    def __init__(self, proxy: Proxy, command: list[str], environment: dict[str, str]) -> None:
        self.proxy = proxy
        self._command, self._environment = command, environment
        self.process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command, env=self._environment, start_new_session=True)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def start_again(self) -> None:
        self.process = self._started()


class Scene:
    """An engine, three workers, and what they wrote down."""

    def __init__(self, engine: Server, journal: Path) -> None:
        self.engine = engine
        self._journal = journal
        self._read = 0  # bytes of it
        self._leads: dict[tuple[int, int], Lead] = {}
        self.workers: list[Worker] = []

    def leads(self) -> list[Lead]:
        """In the order of their tokens; only what is new in the journal is read."""
        fresh = b""
        if self._journal.exists():
            with self._journal.open("rb") as file:
                file.seek(self._read)
                fresh, _, _ = file.read().rpartition(b"\n")
        self._read += len(fresh) + bool(fresh)
        for process, token, now in map(bytes.split, fresh.splitlines()):
            who, which, at = int(process), int(token), float(now)
            known = self._leads.get((which, who), Lead(who, which, at, at))
            self._leads[which, who] = known._replace(
                first=min(known.first, at), last=max(known.last, at)
            )
        return [lead for _, lead in sorted(self._leads.items())]

    async def leader(self, after: int = 0) -> tuple[Worker, int]:
        """The worker that leads with a token above this, and its token."""

        def found() -> list[tuple[Worker, int]]:
            last = self.leads()[-1:]
            return [
                (worker, lead.token)
                for lead in last
                for worker in self.workers
                if worker.process.pid == lead.process and lead.token > after
            ]

        await until(found, f"one leads after token {after}", within=PATIENCE_S)
        return found()[0]

    def overlaps(self) -> list[tuple[Lead, Lead]]:
        """Leaderships that were not over when the next began, or whose tokens do not grow."""
        return [
            (one, other)
            for one, other in itertools.pairwise(self.leads())
            if other.first <= one.last or other.token == one.token
        ]


@asynccontextmanager
async def scene_on(engine: Server, folder: Path) -> AsyncIterator[Scene]:
    group, journal = f"never-{uuid.uuid4().hex[:8]}", folder / "journal"
    scene = Scene(engine, journal)
    told = engine.environment() if isinstance(engine, Stepped) else {}
    # The members get the same time of day as the engine.
    clock = {name: value for name, value in told.items() if name.startswith(("FAKE", "LD_"))}
    async with AsyncExitStack() as stack:
        for _ in range(3):
            proxy = await stack.enter_async_context(Proxy(engine.port))
            url = engine.url(group, at=proxy.port)
            command = [sys.executable, "-c", MEMBER, group, url, f"{TTL}s", str(journal)]
            scene.workers.append(Worker(proxy, command, {**os.environ, **clock}))
        try:
            yield scene
        finally:
            for worker in scene.workers:
                with suppress(ProcessLookupError):
                    worker.kill()


async def stopped(scene: Scene, leader: Worker, token: int) -> None:
    """Longer than its lease: it does not know that another one leads when it goes on."""
    leader.process.send_signal(signal.SIGSTOP)
    await scene.leader(token)
    leader.process.send_signal(signal.SIGCONT)
    await asyncio.sleep(0.5)  # what it would write, it writes now


async def stopped_and_cut(scene: Scene, leader: Worker, token: int) -> None:
    """Its sessions end, but it does not: nothing tells that from its death but the kernel."""
    leader.process.send_signal(signal.SIGSTOP)
    leader.proxy.cut()
    await asyncio.sleep(TTL / 4)
    leader.process.send_signal(signal.SIGCONT)
    await asyncio.sleep(LONGER)


async def cut(scene: Scene, leader: Worker, token: int) -> None:
    """Its connections end, and it makes new ones."""
    leader.proxy.cut()
    await asyncio.sleep(TTL / 2)


async def cut_off(scene: Scene, leader: Worker, token: int) -> None:
    """It lives and cannot reach the engine: it leads to its own bound, and not longer."""
    ways = [leader.proxy.hold(each) for each in (leader.proxy.questions, leader.proxy.answers)]
    leader.proxy.cut()
    await asyncio.sleep(LONGER)
    for way in ways:
        way.set()


async def late(scene: Scene, leader: Worker, token: int) -> None:
    """What it asked arrives when its lease is over."""
    way = leader.proxy.hold_present(leader.proxy.questions)
    await asyncio.sleep(LONGER)
    way.set()


async def sessions_ended(scene: Scene, leader: Worker, token: int) -> None:
    """Of everybody, by the engine, as an administrator or a failover ends them."""
    if isinstance(scene.engine, SteppedPostgres):
        await asyncio.to_thread(scene.engine.execute, END_SESSIONS)
    else:
        for worker in scene.workers:
            worker.proxy.cut()
    await asyncio.sleep(TTL / 2)


async def engine_restarted(scene: Scene, leader: Worker, token: int) -> None:
    await asyncio.to_thread(scene.engine.stop, kill=True)
    await asyncio.to_thread(scene.engine.start)


async def killed(scene: Scene, leader: Worker, token: int) -> None:
    leader.kill()
    await scene.leader(token)
    leader.start_again()


async def killed_without_engine(scene: Scene, leader: Worker, token: int) -> None:
    """Those who see its end cannot give its lease back yet."""
    await asyncio.to_thread(scene.engine.stop, kill=True)
    leader.kill()
    await asyncio.sleep(TTL / 4)
    await asyncio.to_thread(scene.engine.start)
    await scene.leader(token)
    leader.start_again()


async def clocks_stepped(scene: Scene, leader: Worker, token: int) -> None:
    """The time of day of the engine and of the members."""
    assert isinstance(scene.engine, Stepped)
    for step in STEPS:
        scene.engine.step(step)
        await asyncio.sleep(TTL / 2)


async def clocks_stepped_and_killed(scene: Scene, leader: Worker, token: int) -> None:
    assert isinstance(scene.engine, Stepped)
    scene.engine.step(STEPS[0])
    await killed(scene, leader, token)
    scene.engine.step(0.0)


Fault = Callable[[Scene, Worker, int], Awaitable[None]]
EVERYWHERE: list[Fault] = [stopped, stopped_and_cut, cut, cut_off, late, sessions_ended]
EVERYWHERE += [engine_restarted, killed, killed_without_engine]
FAULTS: dict[str, list[Fault]] = {
    "postgres": [*EVERYWHERE, clocks_stepped, clocks_stepped_and_killed],
    "etcd": EVERYWHERE,
    "zookeeper": EVERYWHERE,
}


@pytest.fixture(params=FAULTS)
def played(request: pytest.FixtureRequest, engines: Callable[[str], Engine]) -> Iterator[Server]:
    """An engine that is killed, started again, and told other times."""
    if request.param != "postgres":
        found = engines(request.param)
        assert isinstance(found, Server)
        yield found
        found.start()
        return
    engine = SteppedPostgres()
    try:
        engine.start()
        yield engine
    finally:
        engine.close()


def test_never_two_lead_at_one_time(played: Server, tmp_path: Path) -> None:
    async def story() -> None:
        async with scene_on(played, tmp_path) as scene:
            for fault in FAULTS[played.name]:
                leader, token = await scene.leader()
                await fault(scene, leader, token)
                assert scene.overlaps() == [], f"two led at one time: {fault.__name__}"
        assert scene.overlaps() == []
        led = len(scene.leads())
        assert led > 4, f"kills, stops and cuts end leaderships, and there were {led}"

    run(story(), within=300.0)
