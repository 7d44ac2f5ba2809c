"""A campaign whose block runs in another thread than the loop."""

from __future__ import annotations

import asyncio
import threading
from queue import Empty, SimpleQueue

from hustings.blocking.loop import Flag
from hustings.core.errors import HustingsError
from hustings.net import campaign as asynchronous
from hustings.net.logs import WARNING, MemberLog
from hustings.net.loss_reason import LossReason
from hustings.net.member import Member
from hustings.net.member_state import LeadershipLost, NotLeader

LATE_S = 10.0  # seconds after a loss in which a block should have ended


class Term:
    """One term of leadership, as the code inside a campaign sees it."""

    def __init__(self, term: asynchronous.Term) -> None:
        self.number = term.number
        self.token = term.token
        self.group = term.group
        self.member = term.member
        self._theirs = term
        self.lost = Flag()  # set when leadership is over
        self.draining = Flag()  # set before a transfer: finish your work

    @property
    def remaining(self) -> float:
        """Seconds for which this member leads without a renewal; infinite without a guard."""
        return 0.0 if self.lost.is_set() else self._theirs.remaining

    def check(self) -> None:
        """Raise `LeadershipLost` if leadership is over, by the clock at this moment."""
        if self.remaining <= 0:
            raise self._theirs.loss()

    @property
    def reason(self) -> LossReason | None:
        """Why leadership is over, once it is."""
        return self._theirs.reason

    def __repr__(self) -> str:
        return f"Term(group={self.group!r}, number={self.number}, token={self.token})"


class Campaign:
    """A campaign on the loop that stands for a block in another thread.

    It ends only when the block has ended: a transfer waits for the block as it would for a
    coroutine.
    """

    def __init__(self) -> None:
        self.owner = threading.get_ident()
        self.entered: SimpleQueue[Term | HustingsError] = SimpleQueue()
        self.term: Term | None = None
        self._over = asyncio.Event()

    async def hold(self, member: Member, drain: float) -> None:
        """Wait until the block has ended."""
        try:
            async with member.campaign(drain) as theirs:
                await self._stand_for_block(theirs, member.log)
        except LeadershipLost:
            pass  # the block was told
        except HustingsError as error:
            self.entered.put(error)
        finally:
            self.entered.put(NotLeader("this member was closed meanwhile"))

    async def _stand_for_block(self, theirs: asynchronous.Term, log: MemberLog) -> None:
        self.term = term = Term(theirs)
        telling = asyncio.create_task(_pass_on(theirs.draining, term.draining))
        self.entered.put(term)
        try:
            await self._over.wait()
        except asyncio.CancelledError:
            term.lost.set()
            late = asyncio.get_running_loop().call_later(LATE_S, _say_late, log, theirs)
            await self._over.wait()
            late.cancel()
            raise
        finally:
            term.lost.set()
            telling.cancel()

    def enter(self, timeout: float | None) -> Term:
        """Called in the block's thread."""
        try:
            entered = self.entered.get(timeout=timeout)
        except Empty:
            raise TimeoutError("this member did not lead in that time") from None
        if isinstance(entered, HustingsError):
            raise entered
        return entered

    def end(self) -> None:
        """The block has ended. Called on the loop."""
        self._over.set()


def _say_late(log: MemberLog, term: asynchronous.Term) -> None:
    said = (
        f"the block of a campaign goes on {LATE_S:g} s after its leadership was lost "
        f"({term.reason}): it must check term.lost"
    )
    log.say(WARNING, "job-late", said, term=term.number, token=term.token)


async def _pass_on(theirs: asyncio.Event, ours: threading.Event) -> None:
    await theirs.wait()
    ours.set()
