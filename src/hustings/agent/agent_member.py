"""A member as its agent sees it, and as JSON: the one place where these shapes are made.

The agent asks less of a member than there is, so that a test can put another one there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Protocol

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


Json = dict[str, Any]


def peer_json(one: Peer) -> Json:
    """A member. Its id has 62 bits, more than a number in JSON is safe with, so it is text."""
    return {
        "name": one.name,
        "id": str(one.id),
        "address": one.address,
        "attributes": one.attributes,
        "incarnation": one.incarnation,
        "observer": one.observer,
        "me": one.me,
        "leader": one.leader,
    }


def leadership_json(state: Leadership) -> Json:
    """Who leads, or why nobody does."""
    return {
        "group": state.group,
        "term": state.term,
        "leader": None if state.leader is None else peer_json(state.leader),
        "leaders": [peer_json(one) for one in state.leaders],
        "leading": state.leading,
        "reason": state.reason,
        "risk": state.risk,
        "token": state.token,
    }


def summary_json(member: AgentMember) -> Json:
    """A group in one line."""
    state = member.state
    return {
        "group": member.group,
        "member": member.name,
        "address": member.address,
        "term": state.term,
        "leader": None if state.leader is None else state.leader.name,
        "leading": state.leading,
        "members": len(member.members()),
    }


def groups_json(members: Mapping[str, AgentMember]) -> Json:
    """All groups, by name."""
    return {"groups": [summary_json(members[name]) for name in sorted(members)]}


def members_json(member: AgentMember) -> Json:
    """Everybody in a group that its member knows of."""
    return {"group": member.group, "members": [peer_json(one) for one in member.members()]}


def is_leader_json(member: AgentMember) -> Json:
    """Whether this agent's member leads, by the clock as it is now where a guard is asked."""
    return {
        "group": member.group,
        "member": member.name,
        "leading": member.is_leader,
        "term": member.state.term,
    }
