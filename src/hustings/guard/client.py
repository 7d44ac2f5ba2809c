"""The lease client: between a member and its guard. One question at a time, the newest first.

The member asks without waiting, and may ask again before an answer arrives. The client sends the
guard one question after another, so only the newest question is kept. The member counts its lease
from the time when it asked. The engine was asked at that time or later. So waiting in the client
can shorten a lease, and never lengthens one.

The client tells a refused member when the guard is free. So a hand-over does not wait for the next
try.

When a member hears something that it does not believe, the client looks at the engine (`check`).
Looks do not wait for questions. There is at most one look per second, however much the member
hears. If the engine has forgotten its own token, the client reminds the engine.

Where another process of this machine holds the lease, the client waits for its end (`witness`). If
that process is killed, the client gives its lease back, and says that the guard is free.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress

from hustings.core.choice import MemberId
from hustings.core.errors import BadInput, HustingsError
from hustings.core.guard import Freed, Granted, Held, Observed, Verdict
from hustings.guard.base import (
    Behind,
    Cancellations,
    Grant,
    Guard,
    HeldBy,
    Holder,
    MemoryLost,
    NotGranted,
)
from hustings.guard.witness import Pipe, Witness, end_of

_FAREWELL = 2.0  # seconds for giving back a lease when the member leaves
_AGAIN = 1.0  # seconds before a broken stream is opened again, or before the next look
_MOST_NAMES = 1000


class LeaseClient:
    """One member's client of one guard. `answer` gets the verdicts, `note` the oddities."""

    def __init__(
        self,
        guard: Guard,
        holder: Holder,
        id_of: Callable[[str], MemberId],
        note: Callable[[str], None],
        successor: Callable[[], str | None] = lambda: None,
        known: Callable[[], tuple[int, int]] = lambda: (0, 0),
        witness: Witness | None = None,
    ) -> None:
        """`id_of` maps a name to its id. `successor` gives the member that should hold next.

        `known` has two tokens: the highest that this member has from the engine, and the highest
        that it has heard of. `witness` sees the end of processes on this machine.
        """
        self.guard = guard
        guard.note = note
        self.holder = holder
        self._successor = successor
        self._known = known
        self.answer: Callable[[Verdict], None] = lambda _: None
        self.names: dict[MemberId, str] = {}  # names of holders, which need not be members
        self._id_of = id_of
        self._note = note
        self._wanted: tuple[float, int] | None = None
        self._returning = False  # the lease must be given back before the next question
        self._stirred = asyncio.Event()
        self._grant: Grant | None = None
        self._token = 0  # the last token heard of
        self._trouble: type[Exception] | None = None  # why the last question had no answer
        self._refused = asyncio.Event()  # another member holds the lease, and this member waits
        self._entered = asyncio.Event()  # a lease was granted anew
        self._doubtful = asyncio.Event()  # the member wants to know the engine's state
        # the engine gives smaller tokens now, and must be reminded
        self._forgotten: Behind | None = None
        self._witness = witness
        self._unseen = ""  # why the others will not see the end of this process
        self._mentioned = ""  # the same, as far as the log has it
        self._followed: tuple[str, int] | None = None  # a holder and its token
        self._following: asyncio.Task[None] | None = None  # waits for the end of its process
        # holders whose processes have ended, with the token of the lease that they may hold
        self._ended: list[tuple[Pipe, int]] = []
        self._owed = False  # a release was sent, and not confirmed
        self._closing = False
        loop = asyncio.get_running_loop()
        self._work_task = loop.create_task(self._work())
        readers = (self._watch, self._look, self._confirm)
        self._readers = [loop.create_task(each()) for each in readers]

    # What a node calls

    def acquire(self, ttl: float, request: int) -> None:
        self._wanted = (ttl, request)
        self._stirred.set()

    def release(self, request: int) -> None:
        self._wanted, self._returning = None, True
        self._refused.clear()
        self._stirred.set()

    def check(self) -> None:
        """Look at the engine soon, because the member wants to know its state."""
        self._doubtful.set()

    def inherited(self) -> AbstractContextManager[tuple[int, ...]]:
        """The descriptors that a process inherits which is started meanwhile, for the lease."""
        return nullcontext(()) if self._witness is None else self._witness.inherited()

    async def close(self) -> None:
        """Give back the lease, if that goes quickly, and close the guard."""
        self._closing = True
        self._stirred.set()
        self._follow(None)
        work = self._work_task
        for reader in self._readers:
            reader.cancel()
        try:
            await asyncio.wait({work}, timeout=_FAREWELL)
        finally:
            work.cancel()
            await asyncio.gather(work, *self._readers, return_exceptions=True)
            await self._let_go()

    async def abandon(self) -> None:
        """End like a crash: give nothing back, and wait for nothing that is under way."""
        self._follow(None)
        for task in (self._work_task, *self._readers):
            task.cancel()
        await self._let_go()

    # Inside

    async def _let_go(self) -> None:
        if self._witness is not None:
            # Where the lease may still be held, the end of this process ends it.
            self._witness.close(keep=self._owed or self._grant is not None)
        with suppress(HustingsError, TimeoutError):
            async with asyncio.timeout(_FAREWELL):
                await self.guard.close()

    async def _work(self) -> None:
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            wanted, self._wanted = self._wanted, None
            returning, self._returning = self._returning, False
            forgotten, self._forgotten = self._forgotten, None
            ended, self._ended = self._ended, []
            try:
                for each in ended:
                    await self._release_for(*each)
                if returning:
                    await self._release()
                counts = wanted is not None and await self._ask(*wanted)
                if forgotten is not None:
                    await self.guard.remind(forgotten, max(self._known()))
                if counts or self._trouble is not MemoryLost:
                    self._reached()
            except Exception as error:  # also an error that a client was not expected to raise
                self._missed(error)
            if self._closing and not self._stirred.is_set():
                return

    async def _ask(self, ttl: float, request: int) -> bool:
        """Ask the guard, and tell the member the answer. Return whether the answer had a token."""
        answer: Grant | HeldBy | None = None
        if self._grant is not None:
            try:
                answer = await self.guard.renew(self._grant, ttl)
            except NotGranted:
                self._grant = None  # as if the lease had never been held
        if answer is None:
            self._attest()
            answer = await self.guard.acquire(self.holder, ttl, *self._known())
            if isinstance(answer, Grant):
                self._entered.set()
        before, self._token = self._token, answer.token
        if isinstance(answer, Grant):
            self._grant = answer
            self._refused.clear()
            self._follow(None)
            self.answer(Granted(request, answer.token, ttl))
            self._mention()
            if answer.token != before and self._witness is not None:
                self._witness.sweep()
        else:
            self._refused.set()
            self.answer(Held(request, self._id(answer.holder), answer.token, answer.remaining))
            self._follow((answer.holder, answer.token))
        return answer.token > 0

    async def _release(self) -> None:
        if self._grant is not None:
            grant, self._grant = self._grant, None
            self._owed = True
            await self.guard.release(grant, to=self._successor())
            self._owed = False

    async def _watch(self) -> None:
        """While this member waits, observe when the lease becomes free."""
        cancellations = Cancellations()  # an engine's client may swallow one
        while True:
            cancellations.heed()
            await self._refused.wait()
            try:
                async with self.guard.observe() as states:
                    async for state in states:
                        if not self._refused.is_set():
                            break
                        if state.holder is None:
                            self.answer(Freed(max(state.token, self._token)))
                        else:
                            self._follow((state.holder, state.token))
            except Exception as error:
                self._missed(error)
            await asyncio.sleep(_AGAIN)  # asking again after a while has the same effect

    # Holders on this machine

    def _follow(self, held: tuple[str, int] | None) -> None:
        """Wait for the end of the process of this holder, if it runs on this machine."""
        if self._witness is None or held == self._followed:
            return
        if self._following is not None:
            self._following.cancel()
            self._following = None
        self._followed = held
        if held is not None and held[1] > 0:
            self._following = asyncio.get_running_loop().create_task(self._outlive(*held))

    async def _outlive(self, name: str, token: int) -> None:
        assert self._witness is not None
        pipes = self._witness.holders(name)
        await asyncio.gather(*(self._see_end(each, token) for each in pipes))

    async def _see_end(self, pipe: Pipe, token: int) -> None:
        if await end_of(pipe):
            self._ended.append((pipe, token))
            self._stirred.set()

    async def _release_for(self, pipe: Pipe, token: int) -> None:
        """Give back the lease of a holder whose process has ended."""
        assert self._witness is not None
        try:
            await self.guard.release_for(pipe.holder, token)
        except BaseException:
            self._followed = None  # the next answer that names this holder tries again
            raise
        self._witness.forget(pipe)
        self._note(
            f"process {pipe.process} of {pipe.holder.name} has ended: if it held the lease with "
            f"token {token}, the lease is given back"
        )
        self.answer(Freed(token))

    def _attest(self) -> None:
        """Show the end of this process to the others from now on."""
        if self._witness is None or self._witness.is_shown:
            return
        try:
            self._unseen = self._witness.attest(self.holder)
        except BadInput as error:
            self._witness, self._unseen = None, str(error)

    def _mention(self) -> None:
        """Say once why the others will not see the end of this holder."""
        reason = self._unseen
        if self._witness is not None and not (reason or self._witness.is_shown):
            reason = "this process has started another one that has not inherited member.witness()"
        if reason and reason != self._mentioned:
            self._note(f"{reason}: if this process is killed, its lease runs out")
        self._mentioned = reason

    async def _look(self) -> None:
        """When this member is in doubt, look at the engine's state."""
        cancellations = Cancellations()
        while True:
            cancellations.heed()
            await self._doubtful.wait()
            self._doubtful.clear()
            try:
                state = await self.guard.look()
                holder = None if state.holder is None else self._id(state.holder)
                if holder is not None and state.token < self._known()[0]:
                    self._forgotten = Behind(state.token)
                    self._stirred.set()
                self.answer(Observed(holder, state.token))
            except Exception as error:
                self._missed(error)
            await asyncio.sleep(_AGAIN)

    async def _confirm(self) -> None:
        """After each new grant, check that the engine is the one that the member began with.

        An engine that lost its data unnoticed has no identity. This check gives the identity back.
        """
        known, told = self.guard.known_as, ""
        cancellations = Cancellations()
        while known:
            cancellations.heed()
            await self._entered.wait()
            self._entered.clear()
            with suppress(Exception):  # the next grant asks again
                found = await self.guard.identity()
                if found not in (known, told):
                    told = found
                    self._note(
                        f"the engine is called {found} now, and was {known} when this member "
                        "began: it is another one, or has lost its memory; whoever comes now is "
                        "turned away until all members are restarted"
                    )

    def _id(self, name: str) -> MemberId:
        member = self._id_of(name)
        self.names.pop(member, None)
        self.names[member] = name
        if len(self.names) > _MOST_NAMES:
            del self.names[next(iter(self.names))]
        return member

    def _missed(self, error: Exception) -> None:
        if type(error) is not self._trouble:  # the next failure may be another one
            what = str(error) if isinstance(error, HustingsError) else repr(error)
            self._note(f"the guard does not confirm anybody now: {what}")
        self._trouble = type(error)

    def _reached(self) -> None:
        if self._trouble is not None:
            self._note("the guard answers again")
        self._trouble = None
