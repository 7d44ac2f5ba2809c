"""What became of a hand-over: whoever ordered it is told only when the successor has spoken.

The old leader follows its successor from the moment it names it. That says nothing: the message may
be lost, the successor may refuse, somebody else may be elected. So the successor's own word is
waited for, or with a guard its confirmation.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from hustings.core.choice import MemberId
from hustings.net.states import NotLeader, NotTakenOver

if TYPE_CHECKING:
    from hustings.net.member import Member

_LEAST = 3.0  # seconds that a successor has at least
_ROUNDS = 40  # times delta, that it has too
_GLANCE = 0.02  # seconds between two looks


async def taken_over(member: Member, heir: MemberId, name: str, within: float | None) -> None:
    """Until the successor leads; `NotTakenOver` says who does instead."""
    host = member.host
    if within is None:
        lease = None if host.confirmed is None else host.confirmed.lease
        within = max(_LEAST, _ROUNDS * host.stack.membership.config.delta)
        within += 0.0 if lease is None else lease.asked
    end = member.clock() + within
    while not _leads(member, heir):
        left = end - member.clock()
        if member.closed:
            raise NotLeader(f"{member.name} has left group {member.group!r}")
        if left <= 0:
            raise NotTakenOver(
                f"{name!r} has not taken over group {member.group!r} within {within:g} s: "
                f"{_instead(member, heir)}"
            )
        with suppress(TimeoutError):
            async with asyncio.timeout(min(left, _GLANCE)):
                await member.changes()


def _leads(member: Member, heir: MemberId) -> bool:
    host, leader = member.host, member.leader
    if host.stack.seats > 1:
        return heir in host.stack.leaders
    if leader is None or leader.id != heir:
        return False
    return host.confirmed is not None or host.helm.accepted == heir


def _instead(member: Member, heir: MemberId) -> str:
    leader = member.leader
    if not any(peer.id == heir for peer in member.members()):
        return "it is gone"
    if leader is None:
        return "nobody leads now"
    return "it has not answered" if leader.id == heir else f"{leader.name} leads"
