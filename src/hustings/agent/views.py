"""What the agent says of its members, as JSON: the one place where these shapes are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hustings.agent.parts import AgentMember
from hustings.net.member_state import Leadership, Peer

Json = dict[str, Any]


def peer(one: Peer) -> Json:
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


def leadership(state: Leadership) -> Json:
    """Who leads, or why nobody does."""
    return {
        "group": state.group,
        "term": state.term,
        "leader": None if state.leader is None else peer(state.leader),
        "leaders": [peer(one) for one in state.leaders],
        "leading": state.leading,
        "reason": state.reason,
        "risk": state.risk,
        "token": state.token,
    }


def summary(member: AgentMember) -> Json:
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


def groups(members: Mapping[str, AgentMember]) -> Json:
    """All groups, by name."""
    return {"groups": [summary(members[name]) for name in sorted(members)]}


def roll(member: AgentMember) -> Json:
    """Everybody in a group that its member knows of."""
    return {"group": member.group, "members": [peer(one) for one in member.members()]}


def standing(member: AgentMember) -> Json:
    """Whether this agent's member leads, by the clock as it is now where a guard is asked."""
    return {
        "group": member.group,
        "member": member.name,
        "leading": member.is_leader,
        "term": member.state.term,
    }
