"""What the agent asks of a member: less than there is, so that a test can put another one there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Protocol

from hustings.net.keys import Key
from hustings.net.member_state import Leadership, Metrics, Peer


class AgentMember(Protocol):
    """One member, as far as an agent needs it; `net.member` says what each of these does."""

    name: str
    group: str
    address: str
    state: Leadership

    @property
    def closed(self) -> bool:
        """Whether it has left, or had to."""

    @property
    def is_leader(self) -> bool:
        """Whether it leads now, by the clock too."""

    def members(self) -> tuple[Peer, ...]:
        """Everybody it knows."""

    def metrics(self) -> Metrics:
        """Its figures."""

    def observe(self) -> AsyncIterator[Leadership]:
        """The present state, then each change."""

    async def elect(self) -> None:
        """Call an election."""

    async def resign(self) -> None:
        """Lead no more."""

    async def stand(self) -> None:
        """Be eligible again."""

    async def transfer(self, to: str, drain: float | None = None) -> None:
        """Hand over."""

    async def update(self, attributes: Mapping[str, float]) -> None:
        """Change attributes."""

    def rekey(self, keys: Iterable[Key]) -> None:
        """Have exactly these keys."""

    async def leave(self) -> None:
        """Depart in good order."""
