"""What a guard is: it grants a lease to one holder at a time, with a token larger than all before.

    guard = make_guard("etcd://127.0.0.1:2379", "billing")
    async with guard:
        answer = await guard.acquire(Holder("web-1", incarnation=1), ttl=5.0)

An election finds out who should ask; the guard's answer is what counts. A holder may act until
`Grant.deadline`, by its own monotonic clock. The deadline is counted from before the question was
sent, and shortened by what two clocks may differ. A subclass says what an engine answers. The
deadline, and that an answer later than its own lease is worthless, are decided here once for all
engines.

A member that asks also says the highest token that it knows. An engine whose tokens are below that
has lost its memory. What follows is decided here, too: see `Floor` and `Behind`. A known token must
come from the engine, or be close to one that does: no engine is lifted on hearsay.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import ClassVar, Self

import msgspec

from hustings.core.errors import BadInput, HustingsError
from hustings.core.outcome import Guarantee

# Cancellation


class Cancellations:
    """Those that the running task has been asked for since this was made."""

    def __init__(self) -> None:
        self._task = asyncio.current_task()
        self._before = 0 if self._task is None else self._task.cancelling()

    def heed(self) -> None:
        """End here if one came and was swallowed."""
        if self._task is not None and self._task.cancelling() > self._before:
            raise asyncio.CancelledError


DRIFT = 0.001  # rates of two clocks of ordinary machines differ by less, unless they are steered
LARGEST_TOKEN = 2**53 - 1  # engines and fences that reckon with doubles know no larger ones exactly
HIGHEST_LIFT = 2**52  # no engine is lifted above this, so that it has as many tokens left
DECIDED = (  # a proviso for engines whose tokens members cannot lift
    "grants no lease below a known token until an operator raises its tokens: hustings guards "
    "--recover"
)
LOOK_S = 5.0  # for an engine to say who holds
_WORD = 8  # bytes of an engine's identity


class Unreachable(HustingsError):
    """The engine did not answer, or not in time. It may have acted on the question all the same."""


class NotGranted(HustingsError):
    """A lease is not held, or no longer: what was asked for needs one."""


class MemoryLost(HustingsError):
    """The engine has forgotten tokens that are known, and an operator must decide how it goes on.

    Whatever it would grant now has a token that members and fences refuse.
    """


class Holder(msgspec.Struct, frozen=True, gc=False):
    """One incarnation of one member: another incarnation of it is another holder."""

    name: str
    incarnation: int

    def __str__(self) -> str:
        return f"{self.name}#{self.incarnation}"


class Grant(msgspec.Struct, frozen=True, gc=False):
    """`holder` holds `token` and may act until `deadline`, by its own monotonic clock."""

    holder: Holder
    token: int
    deadline: float


class HeldBy(msgspec.Struct, frozen=True, gc=False):
    """Another holder has `token`, for `remaining` at most by the engine's clock.

    Where the engine cannot tell how long, `remaining` is the time asked for. `holder` is a name as
    the holder has written it, and need not be a member's. Token 0: nobody holds the lease, and it
    cannot be had now either. It is reserved for `holder`, or, if that is empty, the engine waits
    after a restart.
    """

    holder: str
    token: int
    remaining: float


class Floor(msgspec.Struct, frozen=True, gc=False):
    """What a new token must be larger than, and what an engine with smaller ones is to do."""

    known: int = 0  # the highest token that the asker has heard of
    lift: bool = False  # go on above `known`, in the same step as the grant


class Behind(msgspec.Struct, frozen=True, gc=False):
    """Nothing is granted: the engine's last token, `last`, is below the one that is known."""

    last: int


class Holding(msgspec.Struct, frozen=True, gc=False):
    """One state of a guard, as an observer sees it; nobody holds when `holder` is None."""

    holder: str | None
    token: int  # of the holder, or the last one if the engine still knows it, else 0


class Guarantees(msgspec.Struct, frozen=True, kw_only=True):
    """What a guard guarantees, as data."""

    guarantee: Guarantee = Guarantee.LEASED
    drift: float = DRIFT  # exclusive in time while all clocks' rates lie within 1 +- drift
    monotone: bool  # whether every token is larger than all before, whatever the engine survives
    proviso: str = ""  # if it is not, or not always: when tokens may fall
    clock: str = "server"  # whose clock measures leases: of the server, or of the voters
    unreachable: str = "the holder leads until its lease ends; then there is no leader"
    evidence: str = ""  # where it was not tested on the engine itself: what was tested instead


class Guard(ABC):
    """A lease with a token for one group. Open it with `async with`, or `open` and `close`.

    Subclasses fill in the methods with an underscore. All of them may raise `Unreachable`, and must
    within a time they choose: no call here waits for ever.
    """

    guarantees: Guarantees
    lifts: ClassVar[bool] = False  # whether `_acquire` can lift the engine's tokens
    recovers: ClassVar[bool] = False  # whether `_recover` can

    def __init__(self, *, clock: Callable[[], float] | None = None) -> None:
        """`clock` is the monotonic clock of deadlines; else the event loop's."""
        self._clock = clock
        self.questions = 0  # sent to the engine: what an election in front is to keep small
        self.group = "GROUP"  # for sentences
        self.known_as = ""  # what the engine was called when the member began
        self.note: Callable[[str], None] = lambda _: None  # told what an operator should know
        self._noted = ""  # what was told last, until the engine is well again
        self._last_grant: Grant | None = None  # what was granted last, and not given back
        self._behind_since: float | None = None  # when the engine's loss was noticed
        self._longest = 0.0  # lease of others that was heard of, which may be longer than ours

    @property
    def slack(self) -> float:
        """By which factor one clock may run faster than another."""
        return (1.0 + self.guarantees.drift) / (1.0 - self.guarantees.drift)

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

    async def identity(self) -> str:
        """What tells this engine from all others, at whichever of its addresses it is asked.

        A word that is kept in it beside the lease. Who finds none there leaves the one that it
        knows, or else draws one. "" where an engine keeps none: then its address stands for it.
        """
        return await self._name(self.known_as or secrets.token_hex(_WORD), instead=False)

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

    async def acquire(
        self, holder: Holder, ttl: float, known: int = 0, heard: int = 0
    ) -> Grant | HeldBy:
        """Ask for the lease. A holder that asks again keeps its token, and renews.

        `known` is the highest token that the asker believes in. Nothing smaller is granted: an
        engine that has lost its memory goes on above `known` if it can be lifted, once the leases
        of all holders that it has forgotten are over. Otherwise this raises `MemoryLost`.

        `heard` is what others say, a little above it. An engine that is behind `known` goes on
        above that, too: a token that it has forgotten must not be granted again.
        """
        self.check_ttl(ttl)
        sent = self.now()
        self.questions += 1
        cancellations = Cancellations()
        above = max(known, heard)
        answer = await self._ask_above(holder, ttl, known, above, sent)
        cancellations.heed()
        if isinstance(answer, Behind):
            return self._wait_for_the_forgotten(answer, ttl, above)
        if isinstance(answer, HeldBy):
            self._longest = max(self._longest, answer.remaining)
            self._compare(answer, known)
            return answer
        if self._behind_since is not None:
            self._tell("lifted", f"the engine's tokens go on above {above}: {answer} is granted")
        self._behind_since, self._noted = None, ""
        self._last_grant = self._granted(holder, answer, sent, ttl)
        return self._last_grant

    async def renew(self, grant: Grant, ttl: float) -> Grant:
        """Hold on for `ttl` more, with the same token; `NotGranted` if it is held no longer."""
        self.check_ttl(ttl)
        sent = self.now()
        self.questions += 1
        cancellations = Cancellations()
        await self._renew(grant.holder, grant.token, ttl)
        cancellations.heed()
        self._last_grant = self._granted(grant.holder, grant.token, sent, ttl)
        return self._last_grant

    async def release(self, grant: Grant, to: str | None = None) -> None:
        """Give the lease back; `to` should be next, where the engine can reserve the lease.

        Releasing a lease that is not held any more does nothing.
        """
        self.questions += 1
        self._last_grant = None
        cancellations = Cancellations()
        await self._release(grant.holder, grant.token, to)
        cancellations.heed()

    async def recover(self, above: int) -> None:
        """Let all tokens from now on be larger than `above`: for an operator, who has decided.

        `BadInput` where this engine knows no such thing. It costs nothing but numbers, and is safe
        once every leader that the engine has forgotten has ended: a lease after it forgot them.
        """
        if not 0 < above <= HIGHEST_LIFT:
            raise BadInput(f"a token is a number from 1 to {HIGHEST_LIFT} here, not {above}")
        self.questions += 1
        await self._recover(above)

    async def look(self) -> Holding:
        """The present state."""
        try:
            async with asyncio.timeout(LOOK_S), self.observe() as states:
                return await anext(states)
        except (TimeoutError, StopAsyncIteration):
            raise Unreachable("the engine did not say who holds") from None

    async def remind(self, answer: Behind, known: int) -> None:
        """The engine has said `known` itself, and lets somebody in below: let it go on above that.

        `MemoryLost` where somebody has to decide. Whoever holds meanwhile holds.
        """
        await self._name_again()
        if not self.lifts:
            raise self._undecided(answer, known)
        await self.recover(known)
        self._tell("behind", f"{_lost(answer, known)}. Its next tokens are above that")

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

    # An engine that has lost its memory

    async def _ask_above(
        self, holder: Holder, ttl: float, known: int, above: int, now: float
    ) -> int | HeldBy | Behind:
        """Ask; lift the engine's tokens if that is safe now."""
        if above > LARGEST_TOKEN:
            raise MemoryLost(f"token {above} is known here, and no engine counts that far")
        lifts = self.lifts and above <= HIGHEST_LIFT
        since = self._behind_since
        waited = since is not None and now >= since + max(ttl, self._longest)
        floor = Floor(above, lift=True) if lifts and waited else Floor(known)
        answer = await self._acquire(holder, ttl, floor)
        if isinstance(answer, Behind):
            await self._name_again()
        if isinstance(answer, Behind) and lifts and self._still_leads(holder, known, now):
            self._tell("behind", f"{_lost(answer, above)}. It goes on above that at once")
            self._behind_since = now
            answer = await self._acquire(holder, ttl, Floor(above, lift=True))
        if (
            isinstance(answer, int) and answer < known
        ):  # it did not compare; nobody would believe it
            await self._release(holder, answer, None)
            answer = Behind(answer)
        return answer

    async def _name_again(self) -> None:
        """An engine that lost its memory lost its identity, too, or got one from a newcomer.

        It gets back the one that the group goes by: else whoever comes would be turned away.
        """
        if self.known_as:
            with suppress(Unreachable):
                await self._name(self.known_as, instead=True)

    def _still_leads(self, holder: Holder, known: int, now: float) -> bool:
        """Whether the asker is the last leader, in its lease: no other to wait for."""
        held = self._last_grant
        if held is None or (held.holder, held.token) != (holder, known):
            return False
        return now < held.deadline

    def _wait_for_the_forgotten(self, answer: Behind, ttl: float, known: int) -> HeldBy:
        """A forgotten leader may act for one more lease; nothing is granted meanwhile."""
        if not self.lifts or known > HIGHEST_LIFT:
            raise self._undecided(answer, known)
        now, lease = self.now(), max(ttl, self._longest)
        if self._behind_since is None:
            self._behind_since = now
        self._tell(
            "behind",
            f"{_lost(answer, known)}. A leader that it has forgotten may act for {lease:g} s yet: "
            f"nobody is let in until then, and then its tokens go on above {known}",
        )
        return HeldBy("", 0, max(self._behind_since + lease - now, 0.0))

    def _compare(self, held: HeldBy, known: int) -> None:
        """Say so if the holder has a token that members and fences refuse."""
        if held.token == 0:
            return
        if held.token >= known:
            self._behind_since, self._noted = None, ""
            return
        who = held.holder or "somebody"
        self._tell(
            "below",
            f"{_lost(Behind(held.token), known)}. {who} holds that token, and members and fences "
            f"refuse it: let {who} give it back, or end it",
        )

    def _undecided(self, answer: Behind, known: int) -> MemoryLost:
        return MemoryLost(
            f"{_lost(answer, known)}. Members and fences refuse smaller tokens, so nobody can lead "
            f"until somebody decides: {self._remedy(known)}"
        )

    def _remedy(self, known: int) -> str:
        if known > HIGHEST_LIFT:
            return f"no engine is lifted above {HIGHEST_LIFT}, so let the group have another name"
        if not self.recovers:
            return f"let the engine count on above {known}"
        return (
            f"run `hustings guards URL --group {self.group} --recover --above {known}` with the "
            "members' URL (guide, chapter 3)"
        )

    def _tell(self, what: str, sentence: str) -> None:
        """Once, until the engine is well again."""
        if what != self._noted:
            self._noted = what
            self.note(sentence)

    # What an engine does

    @abstractmethod
    async def _acquire(self, holder: Holder, ttl: float, floor: Floor) -> int | HeldBy | Behind:
        """The token for `holder`, from now on for `ttl` of the engine's time at least.

        An engine whose last token is below `floor.known` grants nothing and answers `Behind`, also
        to who holds such a token. With `floor.lift` it goes on above `floor.known` instead, in the
        same step as it grants; it must be able to if `lifts` is set. Somebody else who holds, with
        whichever token, holds.
        """

    @abstractmethod
    async def _renew(self, holder: Holder, token: int, ttl: float) -> None:
        """`holder` keeps `token` for `ttl` from now on, or `NotGranted`."""

    @abstractmethod
    async def _release(self, holder: Holder, token: int, to: str | None) -> None:
        """`holder` gives `token` back, if it has it."""

    @abstractmethod
    def _observe(self) -> AsyncIterator[Holding]:
        """The present state, then changes as they come, until it is closed."""

    async def _name(self, word: str, *, instead: bool) -> str:
        """Keep `word` in the engine where there is none yet, or `instead`; the one that is there.

        In one step: of two who find none, both are told the same one.
        """
        return ""

    async def _recover(self, above: int) -> None:
        """All tokens from now on are larger than `above`."""
        raise BadInput("this guard's engine knows no recovery by hand")


def base_of(text: bytes, where: str) -> int:
    """The base at a place that an operator's command writes to; `Unreachable` if it is none."""
    if not (text.isdigit() and len(text) <= len(str(LARGEST_TOKEN))):
        raise Unreachable(f"{where} is not a guard's: {text!r}")
    return int(text)


def _lost(answer: Behind, known: int) -> str:
    return (
        f"the engine has lost its memory: its last token is {answer.last}, and token {known} is "
        "known here"
    )
