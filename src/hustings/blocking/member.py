"""The member, for use from threads."""

from __future__ import annotations

import asyncio
import atexit
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Generic, ParamSpec, TypeVar

from hustings import joining
from hustings.blocking.campaign import Campaign, Term
from hustings.blocking.loop import Asked, LoopThread, wait_for_any
from hustings.blocking.observing import Newest, Observation
from hustings.core.choice import MemberId
from hustings.core.outcome import Guarantee
from hustings.net import member as asynchronous
from hustings.net.fork import tell_of_forks
from hustings.net.job import (
    JobOptions,
    Tries,
    check_plain_function,
    job_options,
    tell_late,
    tell_restart,
)
from hustings.net.logs import MemberLog
from hustings.net.member_state import Leadership, LeadershipLost, Metrics, NotLeader, Peer

EXIT_S = 2.0  # seconds for a goodbye when the interpreter exits

P = ParamSpec("P")
T = TypeVar("T")


class Member:
    """One member of one group. `hustings.blocking.join` makes it."""

    def __init__(self, thread: LoopThread, member: asynchronous.Member) -> None:
        self._thread = thread
        self._member = member
        self._campaigns: dict[Campaign, None] = {}
        self._closing = threading.Lock()  # a second closer waits for the first
        self._leaving: asyncio.Task[None] | None = None
        atexit.register(self._say_goodbye)
        tell_of_forks(self)

    def forked(self) -> None:
        """This process is a forked child: the blocks of this member stayed in the parent."""
        for campaign in self._campaigns:
            if campaign.term is not None:
                campaign.term.lost.set()

    # What is known

    @property
    def name(self) -> str:
        """The member's name, unique in the group."""
        return self._member.name

    @property
    def group(self) -> str:
        """The group's name."""
        return self._member.group

    @property
    def id(self) -> MemberId:
        """The number that stands for the member's name."""
        return self._member.id

    @property
    def address(self) -> str:
        """The address where others reach this member."""
        return self._member.address

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about exclusivity."""
        return self._member.guarantee

    @property
    def bound(self) -> float:
        """Seconds within which `term.lost` is set after leadership was lost."""
        return self._member.bound

    @property
    def state(self) -> Leadership:
        """Who leads, as far as this member knows."""
        return self._member.state

    @property
    def leader(self) -> Peer | None:
        """The leader, if one is known."""
        return self.state.leader

    @property
    def is_leader(self) -> bool:
        """Whether this member leads. Without a guard this is only its own opinion."""
        return self._member.is_leader

    @property
    def term(self) -> int:
        """The highest known term."""
        return self.state.term

    @property
    def closed(self) -> bool:
        """Whether the member has left, or had to leave."""
        return self._member.closed

    @property
    def notes(self) -> list[str]:
        """Sentences worth a log line."""
        return list(self._member.notes)

    @property
    def log(self) -> MemberLog:
        """Writes records about this member."""
        return self._member.log

    def members(self) -> tuple[Peer, ...]:
        """All known members, this one too, by name."""
        return self._thread.read(self._member.members)

    def metrics(self) -> Metrics:
        """Figures since the member joined."""
        return self._thread.read(self._member.metrics)

    # What an owner does

    def observe(self, timeout: float | None = None) -> Observation:
        """The present state, then each change; `TimeoutError` when none comes in that time."""
        newest = Newest()
        following = Asked(lambda: newest.follow(self._member))
        observation = Observation(newest, timeout)
        weakref.finalize(observation, self._thread.soon, following.cancel).atexit = False
        self._thread.start(following)
        return observation

    @contextmanager
    def campaign(self, timeout: float | None = None, drain: float = 0.0) -> Iterator[Term]:
        """A block that is entered when this member leads; `TimeoutError` if that takes longer.

        `drain`: seconds that a transfer gives the block to finish, once `draining` is set.
        """
        campaign = Campaign()
        holding = Asked(lambda: campaign.hold(self._member, drain))
        try:
            self._thread.start(holding)
            term = campaign.enter(timeout)
            self._campaigns[campaign] = None
            yield term
        except BaseException:
            self._thread.soon(holding.cancel)  # it may still wait to be entered
            raise
        finally:
            self._campaigns.pop(campaign, None)
            if self._thread.soon(campaign.end):
                with suppress(NotLeader):
                    holding.result()

    def run(
        self,
        job: Callable[[Term], T],
        *,
        every: str | float | None = None,
        restart: str = "on-failure",
        restart_delay: str | float | None = None,
        max_restarts: int | None = None,
        drain: str | float = 0.0,
    ) -> T:
        """Run `job(term)` in this thread whenever this member leads, until it has finished.

        As `run` of `hustings.join`, but a thread cannot be cancelled. A job that takes long looks
        at `term.lost`, or calls `term.check()`, and returns when leadership is over. Then it begins
        again when this member leads again.
        """
        options = job_options(every, restart, restart_delay, max_restarts, drain, grace=0.0)
        return ThreadJob(self, job, options).run()

    def elect(self) -> None:
        """Call an election."""
        self._thread.call(self._member.elect)

    def resign(self, drain: float | None = None) -> None:
        """Give leadership up: the best other member takes over, and this one is not eligible.

        It is chosen again only if no other member is there, or after `stand`.
        """
        self._end_own()
        self._thread.call(lambda: self._member.resign(drain))

    def stand(self) -> None:
        """Be eligible again, after `resign`."""
        self._thread.call(self._member.stand)

    def transfer(self, to: str, drain: float | None = None) -> None:
        """Hand leadership over to the member of this name, after campaigns have ended."""
        self._end_own()
        self._thread.call(lambda: self._member.transfer(to, drain))

    def update(self, attributes: Mapping[str, float]) -> None:
        """Change some of this member's attributes; the group is told."""
        self._thread.call(lambda: self._member.update(attributes))

    def leave(self) -> None:
        """Leave in good order: hand over, say goodbye, close. A second call does nothing."""
        self.close()

    def close(self, timeout: float | None = None) -> None:
        """Do as `leave` does, but stop without a goodbye after `timeout` seconds."""
        if self._thread.elsewhere:
            return
        if self._thread.here:  # as in a callback: waiting here would block the loop
            self._leaving = asyncio.get_running_loop().create_task(self._leave_and_stop())
            return
        self._end_own()
        until = None if timeout is None else time.monotonic() + timeout
        if not self._closing.acquire(timeout=-1 if timeout is None else timeout):
            return
        try:
            with suppress(NotLeader, TimeoutError):  # closed already, or not in that time
                self._thread.call(self._member.leave, timeout)
            self._thread.stop(None if until is None else max(0.0, until - time.monotonic()))
        finally:
            self._closing.release()
        atexit.unregister(self._say_goodbye)

    def __enter__(self) -> Member:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # Inside

    def _end_own(self) -> None:
        """End the calling thread's own blocks, which a close inside a block must not wait for."""
        me = threading.get_ident()
        for campaign in [each for each in list(self._campaigns) if each.owner == me]:
            if campaign.term is not None:
                campaign.term.lost.set()
            self._thread.soon(campaign.end)

    async def _leave_and_stop(self) -> None:
        await self._member.leave()
        self._thread.stop()

    def _say_goodbye(self) -> None:
        self.close(EXIT_S)


class ThreadJob(Generic[T]):
    """One call of `member.run` in a thread; `net.job` says what a job is."""

    def __init__(self, member: Member, job: Callable[[Term], T], options: JobOptions) -> None:
        check_plain_function(job)
        self._member = member
        self._job = job
        self._options = options
        self._tries = Tries(options)

    def run(self) -> T:
        """Run the job until it has finished; return its result, or raise its error."""
        while True:
            with self._member.campaign(drain=self._options.drain_s) as term:
                finished = self._runs(term)
            if finished is not None:
                return finished[0]

    def _runs(self, term: Term) -> tuple[T] | None:
        first = time.monotonic()
        while True:
            began = time.monotonic()
            error: Exception | None = None
            try:
                result = self._job(term)
            except LeadershipLost as lost:
                if term.remaining <= 0:
                    return None
                error = lost
            except Exception as caught:
                error = caught
            if term.lost.is_set() or term.draining.is_set():
                tell_late(self._member.log, term, error)
                return None
            now = time.monotonic()
            start = self._tries.after(error, first, began, now)
            if start is None and error is not None:
                raise error
            if start is None:
                return (result,)
            tell_restart(self._member.log, term, error, start - now)
            if wait_for_any((term.lost, term.draining), start - time.monotonic()):
                return None


class Joining:
    """A member to be: open it with `with`, or with `open`."""

    def __init__(self, wanted: joining.Joining) -> None:
        self._wanted = wanted
        self._member: Member | None = None

    def open(self) -> Member:
        """Return a member that has found its group, or is alone for now and goes on looking."""
        thread = LoopThread(f"hustings {self._wanted.wanted.group} {self._wanted.wanted.name}")
        try:
            return Member(thread, thread.call(self._wanted.open))
        except BaseException:
            thread.stop()
            raise

    def __enter__(self) -> Member:
        self._member = self.open()
        return self._member

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._member is not None:
            self._member.close()


def _for_threads(join: Callable[P, joining.Joining]) -> Callable[P, Joining]:
    def joined(*arguments: P.args, **options: P.kwargs) -> Joining:
        """Join a group, from a thread: everything as in `hustings.join`, without `async`."""
        return Joining(join(*arguments, **options))

    return joined


join = _for_threads(joining.join)
