"""Where blocks of runs are played: this process, threads, processes, any executor, Dask.

An executor may break because a worker was killed. Then it is replaced, where that is possible, and
unfinished blocks are played again, a bounded number of times. A block's numbers depend on its runs
alone, so a result does not show that its block was lost before. Everything that is started here
listens on loopback only, and ends when the pool is closed.
"""

from __future__ import annotations

import logging
import re
import signal
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import active_children, get_context, resource_tracker
from typing import Any, Generic, Protocol, TypeVar

from hustings.core.errors import BadInput, UnknownName
from hustings.extras import install_command
from hustings.lab.runs.checkpoint import code_digest

MAX_JOBS = 256
MOST_LOSSES = 5  # times that one block may be lost with its worker
KEPT = "what is finished is kept"
LOOK = 0.5  # seconds between two checks for live workers
UNTOLD = 64  # tasks at once, on an executor that does not say how many it plays

THREADS, PROCESSES, LOCAL = "threads", "processes", "local-cluster"
ELSEWHERE = "dask://host:8786"
PLACES = (THREADS, PROCESSES, LOCAL, ELSEWHERE)
CONNECTING = 10.0  # seconds for a scheduler to answer
PATIENCE = 60.0  # seconds for a cluster that has lost all its workers to find new ones
_ADDRESS = re.compile(r"dask://((?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5}))")


@dataclass(frozen=True, slots=True)
class Task:
    """Runs first .. last-1 to play, of the series with this index."""

    place: int
    first: int
    last: int
    name: str = ""  # the name of the series in a sentence

    @property
    def runs(self) -> tuple[int, int]:
        """Its first run, and the first run after it."""
        return self.first, self.last


W = TypeVar("W")  # the work to play
R = TypeVar("R")  # the result of some of its runs
W_contra = TypeVar("W_contra", contravariant=True)
Job = Callable[[W, int, int], R]  # plays runs first .. last-1


class Pool(Protocol[W_contra, R]):
    """Takes tasks and gives results back, in any order."""

    @property
    def workers(self) -> int:
        """How many tasks are played at once."""

    @property
    def idle(self) -> bool:
        """Whether one more task would soon begin."""

    def submit(self, task: Task, work: W_contra) -> None:
        """Add one more block to play."""

    def collect(self) -> list[tuple[Task, R]]:
        """Finished blocks; waits for them, but returns often enough for progress reports."""


class InProcess(Generic[W, R]):
    """Plays in this process, when asked for the result."""

    workers = 1

    def __init__(self, job: Job[W, R]) -> None:
        self._job = job
        self._waiting: list[tuple[Task, W]] = []

    @property
    def idle(self) -> bool:
        return not self._waiting

    def submit(self, task: Task, work: W) -> None:
        self._waiting.append((task, work))

    def collect(self) -> list[tuple[Task, R]]:
        task, work = self._waiting.pop()
        try:
            return [(task, self._job(work, *task.runs))]
        except BadInput as error:
            raise _told(task, error) from None


class OnExecutor(Generic[W, R]):
    """Plays on an executor; a few tasks are queued for each worker, so that none is idle."""

    def __init__(
        self,
        job: Job[W, R],
        executor: Executor,
        workers: Callable[[], int],
        *,
        renew: Callable[[], Executor] | None = None,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self._job = job
        self._executor = executor
        self._workers = workers
        self._renew = renew
        self._look = look  # raises when there is no worker left to wait for
        self._waiting: dict[Future[tuple[str, R]], tuple[Task, W]] = {}
        self._losses: dict[Task, int] = {}

    @property
    def workers(self) -> int:
        return self._workers()

    @property
    def idle(self) -> bool:
        return len(self._waiting) < self._workers() + 1

    def submit(self, task: Task, work: W) -> None:
        try:
            with no_interrupts():  # a worker that is started here inherits the signal mask
                future = self._executor.submit(_signed, self._job, work, task.first, task.last)
        except BrokenExecutor:
            self._replace([(task, work)])
        else:
            self._waiting[future] = (task, work)

    def collect(self) -> list[tuple[Task, R]]:
        finished, _ = wait(self._waiting, timeout=LOOK, return_when=FIRST_COMPLETED)
        found: list[tuple[Task, R]] = []
        lost: list[tuple[Task, W]] = []
        for future in finished:
            task, work = self._waiting.pop(future)
            try:
                found.append((task, _judged(*future.result())))
            except BrokenExecutor:
                lost.append((task, work))
            except CancelledError:
                self._look()  # this may raise a more precise error
                raise BadInput(f"whoever was to play gave up: {KEPT}") from None
            except BadInput as error:
                raise _told(task, error) from None
            except ModuleNotFoundError as error:
                raise BadInput(
                    f"a worker lacks {error.name}: install the same hustings there; {KEPT}"
                ) from None
        if lost:
            self._replace(lost)
        if not found:
            self._look()
        return found

    def _replace(self, lost: list[tuple[Task, W]]) -> None:
        """A new executor in place of a broken one; all blocks under way are lost, too."""
        for future in list(self._waiting):
            if not future.done() or isinstance(future.exception(), BrokenExecutor):
                lost.append(self._waiting.pop(future))
        for task, _ in lost:
            self._losses[task] = self._losses.get(task, 0) + 1
        if self._renew is None or max(self._losses[task] for task, _ in lost) > MOST_LOSSES:
            raise BadInput(
                "workers were ended from outside again and again, perhaps for want of memory: "
                f"{KEPT}, try fewer jobs"
            )
        self._executor = self._renew()
        for task, work in lost:
            self.submit(task, work)


def _told(task: Task, error: BadInput) -> BadInput:
    return BadInput(f"{task.name}: {error}") if task.name else error


def _signed(job: Job[W, R], work: W, first: int, last: int) -> tuple[str, R]:
    """Called by a worker: the result with the digest of the code that played the runs."""
    return code_digest(), job(work, first, last)


def _judged(code: str, result: R) -> R:
    """Refuse numbers of other code."""
    if code != code_digest():
        raise BadInput(f"a worker runs another version of hustings or Python: {KEPT}")
    return result


# Places


def check_place(where: str) -> None:
    """Refuse an unknown name, before anything starts."""
    if where in PLACES[:-1]:
        return
    if not where.startswith("dask:"):
        raise UnknownName("place", where, PLACES)
    address = _ADDRESS.fullmatch(where)
    if address is None or not 0 < int(address[2]) < 1 << 16:
        raise BadInput(f"{where!r} is no address of a Dask scheduler: write {ELSEWHERE}")


@contextmanager
def open_pool(where: str | Executor, jobs: int, job: Job[W, R]) -> Iterator[Pool[W, R]]:
    """A pool for a while; nothing of it is left afterwards, whatever happens.

    An executor that the caller passes in stays open.
    """
    if isinstance(where, Executor):
        yield OnExecutor(job, where, lambda: UNTOLD)
        return
    check_place(where)
    if where in (THREADS, PROCESSES) and jobs == 1:
        yield InProcess(job)
        return
    made: AbstractContextManager[Pool[W, R]]
    if where == THREADS:
        made = _threads(jobs, job)
    elif where == PROCESSES:
        made = _processes(jobs, job)
    else:
        made = _dask(None if where == LOCAL else where, jobs, job)
    with made as pool:
        yield pool


@contextmanager
def _threads(jobs: int, job: Job[W, R]) -> Iterator[Pool[W, R]]:
    pool = ThreadPoolExecutor(jobs)
    try:
        yield OnExecutor(job, pool, lambda: jobs)
    finally:
        pool.shutdown(cancel_futures=True)  # a block under way takes about a second


@contextmanager
def _processes(jobs: int, job: Job[W, R]) -> Iterator[Pool[W, R]]:
    others = {child.pid for child in active_children()}  # the caller's: do not end these
    pools: list[Executor] = []
    resource_tracker.ensure_running()  # a later start would unblock interrupts for a worker

    def renew() -> Executor:
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)
        # "spawn" starts clean processes: no lock or thread of the parent comes along.
        pools.append(ProcessPoolExecutor(jobs, mp_context=get_context("spawn")))
        return pools[-1]

    try:
        yield OnExecutor(job, renew(), lambda: jobs, renew=renew)
    except BaseException:
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)
        end_workers(others)  # the blocks under way are not needed any more
        raise
    pools[-1].shutdown()


@contextmanager
def _dask(where: str | None, jobs: int, job: Job[W, R]) -> Iterator[Pool[W, R]]:
    """On a Dask cluster: at an address, or one with this many workers on this machine."""
    try:
        distributed: Any = import_module("distributed")  # an extra, and slow to import
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] not in ("distributed", "dask"):
            raise
        raise BadInput(f"a Dask cluster needs distributed: {install_command('dask')}") from None
    _silence()
    with ExitStack() as stack:
        if where is None:
            resource_tracker.ensure_running()  # a later start would unblock interrupts
            with no_interrupts():  # its workers inherit this: Ctrl-C is for this process
                cluster: Any = stack.enter_context(_cluster(distributed, jobs))
            client = stack.enter_context(distributed.Client(cluster))
        else:
            client = stack.enter_context(_connected(distributed, where))
        executor = client.get_executor(pure=False)
        yield OnExecutor(job, executor, _strength(client), look=_Watch(client))


def _silence() -> None:
    """Silence Dask's loggers, each with its level: this module reports errors itself."""
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
    """How many blocks the cluster plays at once; asked once a second, since asking takes time."""
    asked = found = 0.0

    def strength() -> int:
        nonlocal asked, found
        if time.monotonic() - asked > 1.0 or not asked:
            asked = time.monotonic()
            found = sum(_workers(client))
        return max(1, int(found))

    return strength


def _workers(client: Any) -> list[int]:
    """Threads of each worker, by the scheduler's latest information; a lost worker is not in it."""
    info: dict[str, Any] = client.scheduler_info(n_workers=-1)
    return [worker["nthreads"] for worker in info.get("workers", {}).values()]


class _Watch:
    """Raises when the scheduler is gone, or all workers for too long, to end a useless wait."""

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


# Signals


def end_workers(others: Collection[int | None]) -> None:
    """End all child processes except `others`, within a few seconds."""
    # Repeatedly: the pool's own thread waits for the same processes. The second of two waiters
    # learns that a process has ended only after the first has had its turn. So this thread sleeps.
    for _ in range(500):
        left = [worker for worker in active_children() if worker.pid not in others]
        if not left:
            return
        for worker in left:
            worker.terminate()
        time.sleep(0.01)


@contextmanager
def no_interrupts() -> Iterator[None]:
    """Ctrl-C is for the parent alone: workers would print tracebacks."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
