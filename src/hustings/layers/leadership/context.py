"""The context of an election at the helm: its view holds the electors, and what it declares passes
through the helm."""

from __future__ import annotations

from typing import Protocol

from hustings.core.choice import Candidate, MemberId
from hustings.core.context import Context, ForwardingContext
from hustings.core.messages import Message
from hustings.core.outcome import Outcome
from hustings.core.view import View


class Bridge(Protocol):
    """What the context asks of the helm."""

    def standing(self, me: Candidate) -> Candidate:
        """This member as it wants to be seen."""

    def electorate(self, ctx: Context) -> View:
        """Who may be elected."""

    def declared(self, ctx: Context, outcome: Outcome) -> None:
        """The election declares something."""


class LeadershipContext(ForwardingContext):
    """What changes for the election at the helm."""

    __slots__ = ("_bridge", "_muted", "_quiet", "_silent")

    def __init__(
        self,
        below: Context,
        bridge: Bridge,
        *,
        muted: bool = False,
        quiet: bool = False,
        silent: bool = False,
    ) -> None:
        """`muted`: declarations are dropped; `silent`: messages are, too.

        `quiet`: a member that is back seems to be new.
        """
        super().__init__(below)
        self._bridge = bridge
        self._muted = muted or silent
        self._silent = silent
        self._quiet = quiet

    @property
    def me(self) -> Candidate:
        return self._bridge.standing(self._below.me)

    @property
    def view(self) -> View:
        return self._bridge.electorate(self._below)

    @property
    def incarnation(self) -> int:
        return 1 if self._quiet else self._below.incarnation

    def send(self, to: MemberId, message: Message) -> None:
        if not self._silent:
            self._below.send(to, message)

    def multicast(self, message: Message) -> None:
        if not self._silent:
            self._below.multicast(message)

    def declare(self, outcome: Outcome) -> None:
        if not self._muted:
            self._bridge.declared(self._below, outcome)
