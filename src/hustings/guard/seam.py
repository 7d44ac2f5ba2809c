"""What a guard is: it grants one holder at a time a lease, with a token larger than all before.

    guard = make_guard("etcd://127.0.0.1:2379", "billing")
    async with guard:
        answer = await guard.acquire(Holder("web-1", life=1), ttl=5.0)

An election finds out who should ask; the guard's answer is what counts. Whoever is granted a lease
may act until `Grant.deadline`, on its own monotonic clock: counted from before the question was
sent, and shortened by what two clocks may differ. A subclass says what an engine answers; that the
deadline is reckoned so, and that an answer later than its own lease is worthless, is decided here
once for all engines.
"""

from __future__ import annotations

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

import msgspec

from hustings.core.errors import BadInput, HustingsError
from hustings.core.outcome import Guarantee
from hustings.guard.cancelling import Cancellations

DRIFT = 0.001  # rates of two clocks of ordinary machines differ by less, unless they are steered


class Unreachable(HustingsError):
    """The engine did not answer, or not in time. It may have acted on the question all the same."""


class NotGranted(HustingsError):
    """A lease is not held, or no longer: what was asked for needs one."""


class Holder(msgspec.Struct, frozen=True, gc=False):
    """One life of one member: another life of the same member is another holder."""

    name: str
    life: int

    def __str__(self) -> str:
        return f"{self.name}#{self.life}"


class Grant(msgspec.Struct, frozen=True, gc=False):
    """`holder` holds `token` and may act until `deadline`, by its own monotonic clock."""

    holder: Holder
    token: int
    deadline: float


class HeldBy(msgspec.Struct, frozen=True, gc=False):
    """Somebody else holds `token`, perhaps for `remaining` more by the engine's clock.

    Where the engine cannot tell how long, `remaining` is the time asked for. `holder` is a name as
    the holder has written it: it need not be one of hustings'. Token 0: nobody holds, and yet it is
    not to be had now, because it is kept for `holder`, or, without a name, because the engine waits
    after a restart.
    """

    holder: str
    token: int
    remaining: float


class Holding(msgspec.Struct, frozen=True, gc=False):
    """One state of a guard, as an observer sees it; nobody holds when `holder` is None."""

    holder: str | None
    token: int  # of the holder, or the last one if the engine still knows it, else 0


class Promise(msgspec.Struct, frozen=True, kw_only=True):
    """What a guard guarantees, as data."""

    guarantee: Guarantee = Guarantee.LEASED
    drift: float = DRIFT  # exclusive in time while all clocks' rates lie within 1 +- drift
    monotone: bool  # whether every token is larger than all before, whatever the engine survives
    proviso: str = ""  # if it is not, or not always: when tokens may fall
    clock: str = "server"  # whose clock measures leases: of the server, or of the voters
    unreachable: str = "the holder leads until its lease ends, then nobody leads"
    evidence: str = ""  # where it was not tested on the engine itself: what was tested instead


class Guard(ABC):
    """A lease with a token for one group. Open it with `async with`, or `open` and `close`.

    Subclasses fill in the methods with an underscore. All of them may raise `Unreachable`, and must
    within a time they choose: no call here waits for ever.
    """

    promise: Promise

    def __init__(self, *, clock: Callable[[], float] | None = None) -> None:
        """`clock` is the monotonic clock of deadlines; else the event loop's."""
        self._clock = clock
        self.questions = 0  # sent to the engine: what an election in front is to keep small

    @property
    def slack(self) -> float:
        """By which factor one clock may run faster than another."""
        return (1.0 + self.promise.drift) / (1.0 - self.promise.drift)

    def now(self) -> float:
        """The clock on which deadlines are given."""
        return asyncio.get_running_loop().time() if self._clock is None else self._clock()

    def check_ttl(self, ttl: float) -> None:
        """Refuse what cannot work with this engine; called before anybody leads."""
        if not (math.isfinite(ttl) and ttl > 0):
            raise BadInput(f"ttl must be a positive time, not {ttl:g}")

    async def open(self) -> None:
        """Connect, and check what can be checked: credentials, TLS, the schema.

        `BadInput` is for what waiting does not cure, `Unreachable` for what it may.
        """

    async def close(self) -> None:
        """Let go of connections. What is held stays held until its time is over."""

    async def __aenter__(self) -> Self:
        cancellations = Cancellations()
        await self.open()
        try:
            cancellations.heed()
        except asyncio.CancelledError:
            await self.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def acquire(self, holder: Holder, ttl: float) -> Grant | HeldBy:
        """Ask for the lease; who holds it already keeps its token, and has it renewed."""
        self.check_ttl(ttl)
        sent = self.now()
        self.questions += 1
        cancellations = Cancellations()
        answer = await self._acquire(holder, ttl)
        cancellations.heed()
        if isinstance(answer, HeldBy):
            return answer
        return self._granted(holder, answer, sent, ttl)

    async def renew(self, grant: Grant, ttl: float) -> Grant:
        """Hold on for `ttl` more, with the same token; `NotGranted` if it is held no longer."""
        self.check_ttl(ttl)
        sent = self.now()
        self.questions += 1
        cancellations = Cancellations()
        await self._renew(grant.holder, grant.token, ttl)
        cancellations.heed()
        return self._granted(grant.holder, grant.token, sent, ttl)

    async def release(self, grant: Grant, to: str | None = None) -> None:
        """Hold no more; `to` is who should be next, where the engine can favour somebody.

        Releasing what is not held any more does nothing.
        """
        self.questions += 1
        cancellations = Cancellations()
        await self._release(grant.holder, grant.token, to)
        cancellations.heed()

    @asynccontextmanager
    async def observe(self) -> AsyncIterator[AsyncIterator[Holding]]:
        """The present state, then changes in the engine's order; an observer may miss some.

        `async with guard.observe() as states: async for state in states: ...`
        """
        states = self._observe()
        try:
            yield states
        finally:
            close = getattr(states, "aclose", None)
            if close is not None:
                await close()

    def _granted(self, holder: Holder, token: int, sent: float, ttl: float) -> Grant:
        deadline = sent + ttl / self.slack
        if deadline <= self.now():
            raise Unreachable("the answer took longer than the lease it grants")
        return Grant(holder, token, deadline)

    # What an engine does

    @abstractmethod
    async def _acquire(self, holder: Holder, ttl: float) -> int | HeldBy:
        """The token for `holder`, from now on for `ttl` of the engine's time at least."""

    @abstractmethod
    async def _renew(self, holder: Holder, token: int, ttl: float) -> None:
        """`holder` keeps `token` for `ttl` from now on, or `NotGranted`."""

    @abstractmethod
    async def _release(self, holder: Holder, token: int, to: str | None) -> None:
        """`holder` gives `token` back, if it has it."""

    @abstractmethod
    def _observe(self) -> AsyncIterator[Holding]:
        """The present state, then changes as they come, until it is closed."""
