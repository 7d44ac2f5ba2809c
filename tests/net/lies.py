"""Somebody who speaks in members' names to a group in memory; there is no key to get past."""

from __future__ import annotations

from hustings.core.choice import MemberId
from hustings.net.member import Member
from hustings.net.wire import Wire
from hustings.testing import Group
from tests.net.kit.stranger import believed

STRANGER = 666
ELSEWHERE = ("127.0.0.1", 9)

_lies = [500]  # so that no frame of theirs has the number of another


def liar(like: Member, me: MemberId) -> Wire:
    """Somebody who speaks in a member's name, with numbers that its own soon reach."""
    real = like.node.filter.wire
    wire = Wire(real.group, me, real.incarnation, real.codec, real.ring, real.limits)
    _lies[0] += 40
    wire._number = real._number + _lies[0]
    return wire


def tell(group: Group, victim: Member, data: bytes) -> None:
    """A datagram that comes from nowhere. Whoever lies so can answer, and so it is heard."""

    async def arrive() -> None:
        victim.node.datagram(data, ELSEWHERE)

    with believed():
        group.run(arrive())
