"""What members tell each other about the leader."""

from __future__ import annotations

from typing import ClassVar

from hustings.core.choice import MemberId
from hustings.core.messages import LayerMessage, Role, Term

MAX_TERM = 2**62  # a forged term beyond it has no effect
MAX_LEADERS = 64
MAX_ID = 1 << 63


class HandOverMsg(LayerMessage, frozen=True, tag="TRANSFER-LEADER"):
    """`to` leads from now on, in this term. A leader that insists names itself."""

    role: ClassVar[Role] = Role.COORDINATOR
    to: MemberId
    term: Term


class LeaderInfoMsg(LayerMessage, frozen=True, tag="LEADER-INFO"):
    """These are the leaders that I know, the best first, and their term."""

    role: ClassVar[Role] = Role.DETECTOR
    leaders: tuple[MemberId, ...]
    term: Term


class LeaderQueryMsg(LayerMessage, frozen=True, tag="LEADER-QUERY"):
    """Which member leads? I know of none, and have heard of no term later than this."""

    role: ClassVar[Role] = Role.DETECTOR
    term: Term


LeadershipMsg = HandOverMsg | LeaderInfoMsg | LeaderQueryMsg


def sound(message: LeadershipMsg) -> bool:
    """Whether all numbers are numbers that a member would send."""
    if isinstance(message, LeaderQueryMsg):
        return 0 <= message.term <= MAX_TERM
    if not 0 < message.term <= MAX_TERM:
        return False
    named = (message.to,) if isinstance(message, HandOverMsg) else message.leaders
    return 0 < len(named) <= MAX_LEADERS and all(-MAX_ID <= each < MAX_ID for each in named)
