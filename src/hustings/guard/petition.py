"""Between a member and its guard: questions out, verdicts in, one at a time, the newest first.

The member asks without waiting and may ask again before an answer is there; a guard's client does
one thing after another. So only the newest question is kept. What the member counts from is when it
asked, which is never later than when the engine was: waiting here shortens a lease and does not
lengthen it.

Who was refused is told when the guard is free, so that a hand-over does not wait for the next try.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from hustings.core.choice import MemberId
from hustings.core.errors import HustingsError
from hustings.core.guard import Freed, Granted, Held, Verdict
from hustings.guard.seam import Grant, Guard, HeldBy, Holder, NotGranted

_FAREWELL = 2.0  # seconds for giving back what is held when the member leaves
_AGAIN = 1.0  # seconds before a stream of news that broke is opened again
_MOST_NAMES = 1000


class Petitioner:
    """One member's questions to one guard. `answer` gets the verdicts, `note` what is odd."""

    def __init__(
        self,
        guard: Guard,
        holder: Holder,
        id_of: Callable[[str], MemberId],
        note: Callable[[str], None],
        heir: Callable[[], str | None] = lambda: None,
    ) -> None:
        """`id_of` gives the id that goes with a name, `heir` whom this member would see next."""
        self.guard = guard
        self.holder = holder
        self._heir = heir
        self.answer: Callable[[Verdict], None] = lambda _: None
        self.names: dict[MemberId, str] = {}  # of holders, who need not be members
        self._id_of = id_of
        self._note = note
        self._wanted: tuple[float, int] | None = None
        self._returning = False  # what is held is to be given back, before anything is asked for
        self._stirred = asyncio.Event()
        self._grant: Grant | None = None
        self._token = 0  # the last one heard of
        self._away = False  # the last question was not answered
        self._refused = asyncio.Event()  # somebody else holds, and this member waits
        self._closing = False
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._work()), loop.create_task(self._watch())]

    # What a host calls

    def propose(self, ttl: float, request: int) -> None:
        self._wanted = (ttl, request)
        self._stirred.set()

    def relinquish(self, request: int) -> None:
        self._wanted, self._returning = None, True
        self._refused.clear()
        self._stirred.set()

    async def close(self) -> None:
        """Give back what is held, if that goes quickly, and let go of the guard."""
        self._closing = True
        self._stirred.set()
        work, watch = self._tasks
        watch.cancel()
        try:
            await asyncio.wait({work}, timeout=_FAREWELL)
        finally:
            work.cancel()
            await asyncio.gather(work, watch, return_exceptions=True)
            with suppress(HustingsError, TimeoutError):
                async with asyncio.timeout(_FAREWELL):
                    await self.guard.close()

    # Inside

    async def _work(self) -> None:
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            wanted, self._wanted = self._wanted, None
            returning, self._returning = self._returning, False
            try:
                if returning:
                    await self._give_back()
                if wanted is not None:
                    await self._ask(*wanted)
                if returning or wanted is not None:
                    self._reached()
            except Exception as error:  # also what a client was not expected to raise
                self._missed(error)
            if self._closing and not self._stirred.is_set():
                return

    async def _ask(self, ttl: float, request: int) -> None:
        answer: Grant | HeldBy | None = None
        if self._grant is not None:
            try:
                answer = await self.guard.renew(self._grant, ttl)
            except NotGranted:
                self._grant = None  # as if it had never been held
        if answer is None:
            answer = await self.guard.acquire(self.holder, ttl)
        self._token = answer.token
        if isinstance(answer, Grant):
            self._grant = answer
            self._refused.clear()
            self.answer(Granted(request, answer.token, ttl))
        else:
            self._refused.set()
            self.answer(Held(request, self._id(answer.holder), answer.token, answer.remaining))

    async def _give_back(self) -> None:
        if self._grant is not None:
            grant, self._grant = self._grant, None
            await self.guard.release(grant, to=self._heir())

    async def _watch(self) -> None:
        """While this member waits, hear when nobody holds any more."""
        while True:
            await self._refused.wait()
            try:
                async with self.guard.observe() as states:
                    async for state in states:
                        if not self._refused.is_set():
                            break
                        if state.holder is None:
                            self.answer(Freed(max(state.token, self._token)))
            except Exception as error:
                self._missed(error)
            await asyncio.sleep(_AGAIN)  # asking again after a while does it, too

    def _id(self, name: str) -> MemberId:
        member = self._id_of(name)
        self.names.pop(member, None)
        self.names[member] = name
        if len(self.names) > _MOST_NAMES:
            del self.names[next(iter(self.names))]
        return member

    def _missed(self, error: Exception) -> None:
        if not self._away:
            what = str(error) if isinstance(error, HustingsError) else repr(error)
            self._note(f"the guard does not confirm anybody now: {what}")
        self._away = True

    def _reached(self) -> None:
        if self._away:
            self._note("the guard answers again")
        self._away = False
