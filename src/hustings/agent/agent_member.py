"""A member as its agent sees it, and as JSON: all JSON shapes of members are made here.

The agent uses only a part of a member's methods, so that a test can put in another member.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Protocol

from hustings.net.keys import Key
from hustings.net.member_state import Leadership, Metrics, Peer


class AgentMember(Protocol):
    """One member, as far as an agent needs it; `net.member` describes each method."""

    name: str
    group: str
    address: str
    state: Leadership

    @property
    def closed(self) -> bool:
        """Whether the member has left, or had to leave."""

    @property
    def is_leader(self) -> bool:
        """Whether it leads now, by the clock too."""

    def members(self) -> tuple[Peer, ...]:
        """All members that it knows."""

    def metrics(self) -> Metrics:
        """The member's figures."""

    def observe(self) -> AsyncIterator[Leadership]:
        """The present state, then each change."""

    async def elect(self) -> None:
        """Call an election."""

    async def resign(self) -> None:
        """Give leadership up."""

    async def stand(self) -> None:
        """Be eligible again."""

    async def transfer(self, to: str, drain: float | None = None) -> None:
        """Hand leadership over."""

    async def update(self, attributes: Mapping[str, float]) -> None:
        """Change attributes."""

    def rekey(self, keys: Iterable[Key]) -> None:
        """Install exactly these keys."""

    async def leave(self) -> None:
        """Leave in good order."""


Json = dict[str, Any]


def peer_json(one: Peer) -> Json:
    """A member. Its id is text: it has 62 bits, more than numbers in JSON hold safely."""
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
    """The leader, or the reason why there is none."""
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
    """A summary of one group."""
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
    """All members of a group that this agent's member knows."""
    return {"group": member.group, "members": [peer_json(one) for one in member.members()]}


def is_leader_json(member: AgentMember) -> Json:
    """Whether this agent's member leads; with a guard, by the clock at this moment."""
    return {
        "group": member.group,
        "member": member.name,
        "leading": member.is_leader,
        "term": member.state.term,
    }
