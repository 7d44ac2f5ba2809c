"""Where a sweep is played, by name: threads, processes, a cluster here, or one elsewhere.

Everything that is started here listens on loopback only, and is gone when the block is left.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from multiprocessing import active_children, get_context, resource_tracker
from typing import Any

from hustings.core.errors import BadInput, UnknownName
from hustings.lab.sweeps.crew import KEPT, Alone, Crew, Hands, Job, R, W
from hustings.sim.runs import end_workers, no_interrupts

THREADS, PROCESSES, LOCAL = "threads", "processes", "local-cluster"
ELSEWHERE = "dask://host:8786"
PLACES = (THREADS, PROCESSES, LOCAL, ELSEWHERE)
CONNECTING = 10.0  # seconds for a scheduler to answer
PATIENCE = 60.0  # seconds for a cluster that has lost all its workers to find new ones
_ADDRESS = re.compile(r"dask://((?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5}))")


def check_place(where: str) -> None:
    """Refuse a name that is none, before anything starts."""
    if where in PLACES[:-1]:
        return
    if not where.startswith("dask:"):
        raise UnknownName("place", where, PLACES)
    address = _ADDRESS.fullmatch(where)
    if address is None or not 0 < int(address[2]) < 1 << 16:
        raise BadInput(f"{where!r} is no address of a Dask scheduler: write {ELSEWHERE}")


@contextmanager
def crew_on(where: str, jobs: int, job: Job[W, R]) -> Iterator[Crew[W, R]]:
    """A crew for a while; nothing is left of it afterwards, whatever happens."""
    check_place(where)
    if where in (THREADS, PROCESSES) and jobs == 1:
        yield Alone(job)
        return
    made: AbstractContextManager[Crew[W, R]]
    if where == THREADS:
        made = _threads(jobs, job)
    elif where == PROCESSES:
        made = _processes(jobs, job)
    else:
        made = _dask(None if where == LOCAL else where, jobs, job)
    with made as crew:
        yield crew


@contextmanager
def _threads(jobs: int, job: Job[W, R]) -> Iterator[Crew[W, R]]:
    pool = ThreadPoolExecutor(jobs)
    try:
        yield Hands(job, pool, lambda: jobs)
    finally:
        pool.shutdown(cancel_futures=True)  # a block under way takes a second or so


@contextmanager
def _processes(jobs: int, job: Job[W, R]) -> Iterator[Crew[W, R]]:
    others = {child.pid for child in active_children()}  # the caller's, not ours to end
    pools: list[Executor] = []
    resource_tracker.ensure_running()  # its start lets interrupts through to the first worker

    def renew() -> Executor:
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)
        # "spawn" starts clean processes: no lock or thread of the parent comes along.
        pools.append(ProcessPoolExecutor(jobs, mp_context=get_context("spawn")))
        return pools[-1]

    try:
        yield Hands(job, renew(), lambda: jobs, renew=renew)
    except BaseException:
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)
        end_workers(others)  # nobody waits for the blocks under way
        raise
    pools[-1].shutdown()


@contextmanager
def _dask(where: str | None, jobs: int, job: Job[W, R]) -> Iterator[Crew[W, R]]:
    """On a Dask cluster: at an address, or one with so many workers on this machine."""
    try:
        distributed: Any = import_module("distributed")  # an extra, and slow to import
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] not in ("distributed", "dask"):
            raise
        raise BadInput("a Dask cluster needs distributed: pip install 'hustings[dask]'") from None
    _silence()
    with ExitStack() as stack:
        if where is None:
            resource_tracker.ensure_running()  # which would let interrupts through again
            with no_interrupts():  # its workers and threads inherit it: Ctrl-C is for us
                cluster: Any = stack.enter_context(_cluster(distributed, jobs))
            client = stack.enter_context(distributed.Client(cluster))
        else:
            client = stack.enter_context(_connected(distributed, where))
        executor = client.get_executor(pure=False)
        yield Hands(job, executor, _strength(client), look=_Watch(client))


def _silence() -> None:
    """We say ourselves what is wrong; its own loggers, each with a level, tell it at length."""
    for name in ("distributed", *logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL)


def _cluster(distributed: Any, jobs: int) -> Any:
    return distributed.LocalCluster(
        n_workers=jobs,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    )


def _connected(distributed: Any, where: str) -> Any:
    address = _ADDRESS.fullmatch(where)
    assert address is not None
    try:
        client = distributed.Client(f"tcp://{address[1]}", timeout=CONNECTING)
    except (OSError, TimeoutError, ValueError):
        raise BadInput(
            f"no Dask scheduler answers at {address[1]} within {CONNECTING:g} s: {KEPT}"
        ) from None
    return client


def _strength(client: Any) -> Callable[[], int]:
    """How many blocks the cluster plays at once: workers come and go, and asking takes time."""
    asked = found = 0.0

    def strength() -> int:
        nonlocal asked, found
        if time.monotonic() - asked > 1.0 or not asked:
            asked = time.monotonic()
            found = sum(_workers(client))
        return max(1, int(found))

    return strength


def _workers(client: Any) -> list[int]:
    """Threads of each worker, by what the scheduler told last; a lost one has told nothing."""
    info: dict[str, Any] = client.scheduler_info(n_workers=-1)
    return [worker["nthreads"] for worker in info.get("workers", {}).values()]


class _Watch:
    """Raises when the scheduler is gone, or all workers for too long: else we would wait on."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._seen = time.monotonic()

    def __call__(self) -> None:
        if self._client.status != "running":
            raise BadInput(f"the Dask scheduler is gone: {KEPT}")
        if _workers(self._client):
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > PATIENCE:
            raise BadInput(f"the Dask cluster has had no worker for {PATIENCE:g} s: {KEPT}")
