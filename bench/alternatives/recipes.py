"""One function for each way: wait until this worker leads, work, and stop when it leads no more.

Each is what the documents of that library advise, with the checks of its own that they mention, and
nothing that they do not. A function returns, or raises, when leadership is lost, and is then called
again. SIGTERM raises SystemExit in it, or cancels it, and it gives its leadership back.

A piece of work takes `WORK_S`, and its result is one line. The check comes before the work and the
result after it, as in a real job: a worker that is paused is paused between them.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from bench.alternatives.journal import Journal

Recipe = Callable[[str, str, str, Journal], None]  # group, url, name, journal

WORK_S = 0.01
LEASE_S = 5  # of every lock and lease: the default of hustings
LOOK_S = 1.0  # how often a leader looks at its session, where the library does not do it
ADVISORY_KEY = 20_261_119


def _work(journal: Journal) -> None:
    time.sleep(WORK_S)
    journal.beat()


def _run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run it in an event loop until it ends or SIGTERM cancels it."""

    async def until_told() -> None:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        await main()

    try:
        asyncio.run(until_told())
    except asyncio.CancelledError:
        raise SystemExit(0) from None


def _hustings(group: str, url: str, name: str, journal: Journal) -> None:
    """`member.run`, and before each piece of work `term.check`."""
    import hustings  # noqa: PLC0415  # each worker loads its own library only

    state = journal.folder / name if url.startswith("quorum:") else None

    async def job(term: hustings.Term) -> None:
        while True:
            term.check()
            await asyncio.sleep(WORK_S)
            journal.beat(term.token)

    async def main() -> None:
        async with hustings.join(group, name=name, guard=url or None, state=state) as member:
            journal.waits()
            await member.run(job)

    _run(main)


def _advisory(group: str, url: str, _name: str, journal: Journal) -> None:
    """A session holds a lock, and a leader looks at its session every second."""
    import asyncpg  # noqa: PLC0415  # as above

    key = ADVISORY_KEY + int.from_bytes(group.encode()[-6:], "big")

    async def main() -> None:
        session = await asyncpg.connect(url)
        journal.waits()
        try:
            await session.execute("SELECT pg_advisory_lock($1)", key)
            looked = time.monotonic()
            while True:
                if time.monotonic() - looked > LOOK_S:
                    await session.execute("SELECT 1", timeout=LOOK_S)
                    looked = time.monotonic()
                await asyncio.sleep(WORK_S)
                journal.beat()
        finally:
            await session.close(timeout=LOOK_S)

    _run(main)


def _redis(group: str, url: str, _name: str, journal: Journal) -> None:
    """`redis.lock.Lock` with a timeout, set back to it (`reacquire`) after each third of it."""
    import redis  # noqa: PLC0415  # as above

    place = urlsplit(url)
    client = redis.Redis(host="127.0.0.1", port=place.port or 0, password=place.password)
    journal.waits()
    with client.lock(group, timeout=LEASE_S) as lock:
        renewed = time.monotonic()
        while True:
            if time.monotonic() - renewed > LEASE_S / 3:
                lock.reacquire()
                renewed = time.monotonic()
            _work(journal)


def _aetcd(group: str, url: str, _name: str, journal: Journal) -> None:
    """`client.lock(...)`, refreshed after each third of its time, and then asked for its holder."""
    import aetcd  # noqa: PLC0415  # as above

    async def main() -> None:
        place = urlsplit(url)
        async with aetcd.Client(
            "127.0.0.1", place.port or 0, username=place.username, password=place.password
        ) as client:
            lock = client.lock(group.encode(), ttl=LEASE_S)
            journal.waits()
            # As a block, the lock is given up on after ten seconds, and the block runs without it.
            await lock.acquire(timeout=None)
            renewed = time.monotonic()
            try:
                while True:
                    if time.monotonic() - renewed > LEASE_S / 3:
                        await lock.refresh()
                        if not await lock.is_acquired():
                            return
                        renewed = time.monotonic()
                    await asyncio.sleep(WORK_S)
                    journal.beat()
            finally:
                await lock.release()

    _run(main)


def _kazoo(group: str, url: str, name: str, journal: Journal) -> None:
    """`Election.run`, with a listener: a leader whose connection is not sure stops."""
    from kazoo.client import KazooClient, KazooState  # noqa: PLC0415  # as above

    unsure = threading.Event()

    def listen(state: str) -> None:
        if state != KazooState.CONNECTED:
            unsure.set()

    client = KazooClient(hosts=f"127.0.0.1:{urlsplit(url).port}", timeout=LEASE_S)
    client.add_listener(listen)
    client.start()

    def lead() -> None:
        while not unsure.is_set():
            _work(journal)

    try:
        journal.waits()
        client.Election(f"/{group}", name).run(lead)
    finally:
        client.stop()
        client.close()


def _tooz(group: str, url: str, name: str, journal: Journal) -> None:
    """`watch_elected_as_leader` over Redis, with heartbeats by tooz's own thread.

    `run_watchers` is called ten times a second, as in its tutorial. With Redis there is no way to
    ask who leads (`get_leader`), and no event says that leadership is lost.
    """
    from tooz import coordination  # noqa: PLC0415  # as above

    place = urlsplit(url)
    coordinator = coordination.get_coordinator(
        f"redis://:{place.password}@127.0.0.1:{place.port}"
        f"?lock_timeout={LEASE_S}&membership_timeout={LEASE_S}",
        f"{name}-{os.getpid()}".encode(),  # a member that was killed stays in the group
    )
    coordinator.start(start_heart=True)
    try:
        room = group.encode()
        with suppress(coordination.GroupAlreadyExist):
            coordinator.create_group(room).get()
        coordinator.join_group(room).get()
        leads = threading.Event()
        coordinator.watch_elected_as_leader(room, lambda _event: leads.set())
        journal.waits()
        while True:
            coordinator.run_watchers()
            again = time.monotonic() + 0.1
            while leads.is_set() and time.monotonic() < again:
                _work(journal)
            time.sleep(max(0.0, again - time.monotonic()))
    finally:
        coordinator.stop()


def _pysyncobj(group: str, url: str, name: str, journal: Journal) -> None:
    """`ReplLockManager` over Raft among the workers; `url` lists their addresses."""
    from pysyncobj import SyncObj, SyncObjException  # noqa: PLC0415  # as above
    from pysyncobj.batteries import ReplLockManager  # noqa: PLC0415  # as above

    addresses = url.split(",")
    own = addresses[int(name.removeprefix("w"))]
    lock = ReplLockManager(autoUnlockTime=LEASE_S)
    node = SyncObj(own, [each for each in addresses if each != own], consumers=[lock])
    try:
        while not node.isReady():
            time.sleep(0.05)
        journal.waits()
        while True:
            with suppress(SyncObjException):  # no majority answered in time
                lock.tryAcquire(group, sync=True, timeout=LEASE_S)
            while lock.isAcquired(group):
                _work(journal)
            time.sleep(0.1)
    finally:
        with suppress(SyncObjException):
            lock.release(group, sync=True, timeout=LEASE_S)
        lock.destroy()
        node.destroy()


def _redbeat(group: str, url: str, _name: str, journal: Journal) -> None:
    """`celery beat -S redbeat.RedBeatScheduler`, whose turns of the schedule are the work."""
    from celery import Celery  # noqa: PLC0415  # as above
    from celery.beat import Service  # noqa: PLC0415  # as above
    from redbeat import RedBeatScheduler  # noqa: PLC0415  # as above

    class Turns(RedBeatScheduler):  # type: ignore[misc, unused-ignore]  # without types
        def tick(self, *words: Any, **named: Any) -> float:
            super().tick(*words, **named)  # extends the lock, or raises
            _work(journal)
            return 0.0

    place = urlsplit(url)
    redis_url = f"redis://:{place.password}@127.0.0.1:{place.port}/0"
    app = Celery(group, broker=redis_url)
    app.conf.redbeat_redis_url = redis_url
    app.conf.redbeat_key_prefix = f"{group}:"
    # The lock lasts five times as long, by default 25 minutes, and is asked for this often.
    app.conf.beat_max_loop_interval = LEASE_S / 5
    journal.waits()
    Service(app, scheduler_cls=Turns).start()  # waits for the lock first


RECIPES: Mapping[str, Recipe] = {
    "hustings": _hustings,
    "advisory": _advisory,
    "redis": _redis,
    "aetcd": _aetcd,
    "kazoo": _kazoo,
    "tooz": _tooz,
    "pysyncobj": _pysyncobj,
    "redbeat": _redbeat,
}
