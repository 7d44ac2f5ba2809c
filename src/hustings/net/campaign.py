"""Campaigns: code that runs only while its member leads.

    async with member.campaign() as term:      # waits until this member leads
        ...                                    # cancelled when it leads no longer

A campaign works like `asyncio.timeout`: when leadership is lost, the task that entered the block is
cancelled, and the block turns that cancellation, and no other, into `LeadershipLost`.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING

from hustings.net.loss_reason import LossReason
from hustings.net.member_state import Leadership, LeadershipLost

if TYPE_CHECKING:
    from hustings.net.member import Member


class Term:
    """One term of leadership, as the code inside a campaign sees it."""

    __slots__ = ("_of", "draining", "group", "lost", "member", "number", "reason", "token")

    def __init__(self, state: Leadership, member: Member) -> None:
        self.number = state.term
        self.token = state.token  # given by a guard: the resource refuses smaller tokens
        self.group = state.group
        self.member = member.name
        self._of = member
        self.reason: LossReason | None = None  # why leadership is over, once it is
        self.lost = asyncio.Event()  # set when leadership is over
        self.draining = asyncio.Event()  # set before a transfer: finish your work

    @property
    def remaining(self) -> float:
        """Seconds for which this member leads without a renewal; infinite without a guard.

        The clock is read now: right after a pause this may be 0 before any code was told. It is 0
        as long as a member that stood still asks whether another one leads.
        """
        return 0.0 if self.lost.is_set() or not self._of.state.leading else self._of.remaining

    def check(self) -> None:
        """Raise `LeadershipLost` unless this member leads now, by the clock at this moment."""
        if self.remaining <= 0:
            raise self.loss()

    def loss(self) -> LeadershipLost:
        """The error that says that this term is over, and why."""
        reason = self.reason or self._of.loss_reason(self.number)
        return LeadershipLost.of(self.member, self.group, self.number, reason)

    def __repr__(self) -> str:
        return f"Term(group={self.group!r}, number={self.number}, token={self.token})"


class Campaign:
    """One use of `member.campaign()`."""

    def __init__(self, member: Member, drain: float) -> None:
        self.drain = drain
        self._member = member
        self.task: asyncio.Task[object] | None = None
        self._term: Term | None = None
        self._cancelling = 0
        self._cancelled = False
        self.done = asyncio.Event()

    async def __aenter__(self) -> Term:
        if self._term is not None:
            raise RuntimeError("a campaign is entered once: call member.campaign() again")
        state = await self._member.wait_to_lead()
        self.task = asyncio.current_task()
        self._cancelling = 0 if self.task is None else self.task.cancelling()
        self._term = Term(state, self._member)
        self._member.began(self)
        return self._term

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.done.set()
        self._member.ended(self)
        term, task = self._term, self.task
        if not self._cancelled or term is None or task is None:
            return
        outer = task.uncancel() > self._cancelling  # other code has cancelled the task too
        if not outer and kind is not None and issubclass(kind, asyncio.CancelledError):
            raise term.loss() from error

    def holds(self, state: Leadership, *, alone: bool) -> bool:
        """Whether this campaign may go on.

        A sole leader of a later term may not: another member may have led in between.
        """
        if not state.leading or self._term is None:
            return False
        return not alone or self._term.number == state.term

    def ask_to_finish(self) -> None:
        """Tell the block that a transfer of leadership is wanted."""
        if self._term is not None:
            self._term.draining.set()

    def end(self, reason: LossReason) -> None:
        """End the block now, because leadership is over."""
        term, task = self._term, self.task
        if term is None or task is None or term.lost.is_set() or self.done.is_set():
            return
        term.reason = reason
        term.lost.set()
        if task is asyncio.current_task():
            # The block's own code ended the leadership, and may finish before it awaits anything.
            asyncio.get_running_loop().call_soon(self._cancel)
        else:
            self._cancel()

    def forked(self, reason: LossReason) -> None:
        """This process is a forked child: the block stayed in the parent."""
        term = self._term
        if term is not None and not term.lost.is_set():
            term.reason = reason
            term.lost.set()

    def _cancel(self) -> None:
        if self.task is not None and not self.done.is_set():
            self._cancelled = True
            self.task.cancel()
