"""What a guard is: it grants a lease to one holder at a time, with a token larger than all before.

    guard = make_guard("etcd://127.0.0.1:2379", "billing")
    async with guard:
        answer = await guard.acquire(Holder("web-1", incarnation=1), ttl=5.0)

An election finds out which member should ask. The guard's answer decides. A holder may act until
`Grant.deadline`, by its own monotonic clock. The deadline counts from before the question was sent,
and is shortened by the drift that two clocks may have. A subclass says how an engine answers. This
module alone decides the deadline for all engines, and that an answer is worthless if it arrives
after its own lease is over.

A member that asks also says the highest token that it knows. An engine whose tokens are below that
token has lost its data. This module also decides what follows: see `Floor` and `Behind`. A known
token must come from the engine, or be close to a token that does. No engine is lifted on hearsay.
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
    """The cancellations that the running task has received since this object was made."""

    def __init__(self) -> None:
        self._task = asyncio.current_task()
        self._before = 0 if self._task is None else self._task.cancelling()

    def heed(self) -> None:
        """Raise `CancelledError` here if a cancellation arrived and some code swallowed it."""
        if self._task is not None and self._task.cancelling() > self._before:
            raise asyncio.CancelledError


DRIFT = 0.001  # the clock rates of two ordinary machines differ by less, unless they are steered
# engines and fences that calculate with doubles know no larger token exactly
LARGEST_TOKEN = 2**53 - 1
HIGHEST_LIFT = 2**52  # no engine is lifted above this number, so that as many tokens are left
DECIDED = (  # a proviso for engines whose tokens members cannot lift
    "grants no lease below a known token until an operator raises its tokens: hustings guards "
    "--recover"
)
LOOK_S = 5.0  # seconds for an engine to say who holds the lease
_WORD = 8  # bytes of an engine's identity
IDENTITY, SUCCESS = "identity", "success"  # the kinds of words that an engine keeps beside a lease


class Unreachable(HustingsError):
    """The engine did not answer, or not in time. It may have acted on the question all the same."""


class NotGranted(HustingsError):
    """The operation needs a lease, and the holder does not hold it, or holds it no longer."""


class MemoryLost(HustingsError):
    """The engine has forgotten tokens that members know. An operator must decide how it goes on.

    Members and fences refuse the token of every lease that the engine would grant now.
    """


class Holder(msgspec.Struct, frozen=True, gc=False):
    """One incarnation of one member. Another incarnation of the member is another holder."""

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

    Where the engine cannot tell how long, `remaining` is the time asked for. `holder` is the name
    that the holder has written. It need not be a member's name. Token 0 means that no member holds
    the lease, and that it cannot be acquired now. It is reserved for `holder`. If `holder` is
    empty, the engine waits after a restart.
    """

    holder: str
    token: int
    remaining: float


class Floor(msgspec.Struct, frozen=True, gc=False):
    """The number that a new token must exceed, and what an engine with smaller tokens must do."""

    known: int = 0  # the highest token that the asking member has heard of
    lift: bool = False  # go on above `known`, in the same step as the grant


class Behind(msgspec.Struct, frozen=True, gc=False):
    """The engine grants nothing: its last token, `last`, is below the token that is known."""

    last: int


class Holding(msgspec.Struct, frozen=True, gc=False):
    """One state of a guard, as an observer sees it. If `holder` is None, the lease is free."""

    holder: str | None
    token: int  # the holder's, or the last token if the engine still knows it, else 0


class Guarantees(msgspec.Struct, frozen=True, kw_only=True):
    """What a guard guarantees, as data."""

    guarantee: Guarantee = Guarantee.LEASED
    drift: float = DRIFT  # exclusive in time while the rates of all clocks lie within 1 +- drift
    # whether every token is larger than all before, whatever failure the engine survives
    monotone: bool
    proviso: str = ""  # if tokens are not always monotone: when they may fall
    clock: str = "server"  # the clock that measures leases: the server's, or the voters'
    unreachable: str = "the holder leads until its lease ends; then there is no leader"
    evidence: str = ""  # if the engine itself was not tested: what was tested instead

    def to_json(self) -> dict[str, object]:
        """As data for scripts."""
        return {
            "guarantee": self.guarantee.value,
            "drift": self.drift,
            "monotone": self.monotone,
            "proviso": self.proviso,
            "clock": self.clock,
            "unreachable": self.unreachable,
            "evidence": self.evidence,
        }


class Guard(ABC):
    """A lease with a token for one group. Open it with `async with`, or with `open` and `close`.

    Subclasses implement the methods that begin with an underscore. All these methods may raise
    `Unreachable`, and must do so within a time that they choose. No call here waits for ever.
    """

    guarantees: Guarantees
    lifts: ClassVar[bool] = False  # whether `_acquire` can lift the engine's tokens
    recovers: ClassVar[bool] = False  # whether `_recover` can lift them
    outlives: ClassVar[bool] = True  # whether the engine goes on when this process ends

    def __init__(self, *, clock: Callable[[], float] | None = None) -> None:
        """`clock` is the monotonic clock of deadlines. The default is the event loop's clock."""
        self._clock = clock
        self.questions = 0  # number sent to the engine, which an election in front keeps small
        self.group = "GROUP"  # for messages to people
        self.known_as = ""  # the engine's identity when the member began
        self.note: Callable[[str], None] = lambda _: None  # receives what an operator should know
        self._noted = ""  # the last message to the operator, until the engine works again
        self._last_grant: Grant | None = None  # the last grant that was not given back
        self._behind_since: float | None = None  # when the engine's loss was noticed
        # longest lease of other holders that this guard heard of; may be longer than its own
        self._longest = 0.0

    @property
    def slack(self) -> float:
        """The factor by which one clock may run faster than another clock."""
        return (1.0 + self.guarantees.drift) / (1.0 - self.guarantees.drift)

    def now(self) -> float:
        """The current time on the clock of the deadlines."""
        return asyncio.get_running_loop().time() if self._clock is None else self._clock()

    def check_ttl(self, ttl: float) -> None:
        """Refuse a lease time that cannot work with this engine; called before any member leads."""
        if not (math.isfinite(ttl) and ttl > 0):
            raise BadInput(f"ttl must be a positive time, not {ttl:g}")

    async def open(self) -> None:
        """Connect, and check what can be checked: credentials, TLS, the schema.

        `BadInput` means that waiting does not help. `Unreachable` means that waiting may help.
        """

    async def install(self) -> None:
        """Create what the engine needs before it can grant leases, such as a table."""
        raise BadInput("this guard's engine needs nothing installed")

    async def identity(self) -> str:
        """The word that tells this engine from all others, at each of its addresses.

        The engine keeps the word beside the lease. A member that finds no word there writes the
        word that it knows, or else draws one. An engine that keeps no word gives "". Then its
        address stands for it.
        """
        return await self._word(IDENTITY, self.known_as or secrets.token_hex(_WORD), instead=False)

    @property
    def keeps_words(self) -> bool:
        """Whether the engine can keep a word beside the lease."""
        return type(self)._word is not Guard._word

    async def success(self) -> str:
        """What was recorded of the work that the group does once; "" if nothing was."""
        return await self._word(SUCCESS, "", instead=False)

    async def record(self, success: str) -> None:
        """Keep `success` beside the lease for good. The caller need not hold the lease."""
        await self._word(SUCCESS, success, instead=True)

    async def close(self) -> None:
        """Close the connections. A lease that is held stays held until its time is over."""

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

        `known` is the highest token that the asking member believes in. No smaller token is
        granted. An engine that has lost its data goes on above `known` if it can be lifted, once
        the leases of all forgotten holders are over. Otherwise this method raises `MemoryLost`.

        `heard` is the highest token that other members report, a little above `known`. An engine
        that is behind `known` also goes on above `heard`: a token that the engine has forgotten
        must not be granted again.
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
        """Hold the lease for `ttl` more, with the same token; `NotGranted` if it is lost."""
        self.check_ttl(ttl)
        sent = self.now()
        self.questions += 1
        cancellations = Cancellations()
        await self._renew(grant.holder, grant.token, ttl)
        cancellations.heed()
        self._last_grant = self._granted(grant.holder, grant.token, sent, ttl)
        return self._last_grant

    async def release(self, grant: Grant, to: str | None = None) -> None:
        """Give the lease back. `to` should hold it next, if the engine can reserve the lease.

        The release of a lease that is no longer held does nothing.
        """
        self.questions += 1
        self._last_grant = None
        cancellations = Cancellations()
        await self._release(grant.holder, grant.token, to)
        cancellations.heed()

    async def release_for(self, holder: Holder, token: int) -> None:
        """Give back the lease of another holder, which has certainly ended (see `witness`).

        This does nothing if `holder` does not hold `token` any more.
        """
        self.questions += 1
        cancellations = Cancellations()
        await self._release_for(holder, token)
        cancellations.heed()

    async def recover(self, above: int) -> None:
        """Make all later tokens larger than `above`. An operator decides this.

        `BadInput` if this engine cannot do it. It costs only numbers. It is safe once every
        forgotten leader has ended: one lease after the engine forgot the leaders.
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
        """Make the engine go on above `known`, which the engine itself has said.

        The engine now grants leases below `known`. `MemoryLost` if an operator has to decide. A
        member that holds the lease meanwhile keeps it.
        """
        await self._name_again()
        if not self.lifts:
            raise self._undecided(answer, known)
        await self.recover(known)
        self._tell("behind", f"{_lost(answer, known)}. Its next tokens are above that")

    @asynccontextmanager
    async def observe(self) -> AsyncIterator[AsyncIterator[Holding]]:
        """The present state, then changes in the engine's order. An observer may miss some states.

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

    # An engine that has lost its data

    async def _ask_above(
        self, holder: Holder, ttl: float, known: int, above: int, now: float
    ) -> int | HeldBy | Behind:
        """Ask. Lift the engine's tokens if that is safe now."""
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
        ):  # The engine did not compare, and no member would believe this token.
            await self._release(holder, answer, None)
            answer = Behind(answer)
        return answer

    async def _name_again(self) -> None:
        """Give an engine that lost its data the identity by which the group knows it.

        The engine lost its identity, too, or got a new one from a new member. With a wrong identity
        every newcomer would be turned away.
        """
        if self.known_as:
            with suppress(Unreachable):
                await self._word(IDENTITY, self.known_as, instead=True)

    def _still_leads(self, holder: Holder, known: int, now: float) -> bool:
        """Whether the asking member is the last leader, within its lease: no other may hold one."""
        held = self._last_grant
        if held is None or (held.holder, held.token) != (holder, known):
            return False
        return now < held.deadline

    def _wait_for_the_forgotten(self, answer: Behind, ttl: float, known: int) -> HeldBy:
        """Wait one more lease, in which a forgotten leader may act.

        Nothing is granted meanwhile.
        """
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
        """Tell the operator if the holder has a token that members and fences refuse."""
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
        """Tell the operator this once, until the engine works again."""
        if what != self._noted:
            self._noted = what
            self.note(sentence)

    # What an engine does

    @abstractmethod
    async def _acquire(self, holder: Holder, ttl: float, floor: Floor) -> int | HeldBy | Behind:
        """The token for `holder`, from now on for at least `ttl` of the engine's time.

        If the engine's last token is below `floor.known`, the engine grants nothing and answers
        `Behind`, also to the holder of such a token. With `floor.lift` it goes on above
        `floor.known` instead, in the same step as the grant. An engine with `lifts` set must be
        able to do this. Another member that holds the lease keeps it, whatever its token is.
        """

    @abstractmethod
    async def _renew(self, holder: Holder, token: int, ttl: float) -> None:
        """Let `holder` keep `token` for `ttl` from now on, or raise `NotGranted`."""

    @abstractmethod
    async def _release(self, holder: Holder, token: int, to: str | None) -> None:
        """Give back `token` if `holder` has it."""

    async def _release_for(self, holder: Holder, token: int) -> None:
        """Give back `token` if `holder` has it, who has asked through another guard."""
        await self._release(holder, token, None)

    @abstractmethod
    def _observe(self) -> AsyncIterator[Holding]:
        """The present state, then each change when it comes, until the iterator is closed."""

    async def _word(self, kind: str, word: str, *, instead: bool) -> str:
        """Write a word of this kind beside the lease if there is none, or `instead` of it.

        Return what is there then. This is one step: two members that find no word both get the same
        one. The lease stays as it is. An engine that keeps no words has "" for all.
        """
        return ""

    async def _recover(self, above: int) -> None:
        """Make all later tokens larger than `above`."""
        raise BadInput("this guard's engine knows no recovery by hand")


def base_of(text: bytes, where: str) -> int:
    """The base that an operator's command wrote at a place; `Unreachable` if it is not a number."""
    if not (text.isdigit() and len(text) <= len(str(LARGEST_TOKEN))):
        raise Unreachable(f"{where} is not a guard's: {text!r}")
    return int(text)


def _lost(answer: Behind, known: int) -> str:
    return (
        f"the engine has lost its memory: its last token is {answer.last}, and token {known} is "
        "known here"
    )
