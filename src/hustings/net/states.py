"""What a member's owner sees: peers, leadership, figures. Plain values, ready for JSON."""

from __future__ import annotations

import msgspec

from hustings.core.choice import MemberId
from hustings.core.errors import HustingsError

JOINING = "joining"
LEFT = "left"


class LeadershipLost(HustingsError):
    """This member leads no longer: what only the leader may do must stop."""


class NotLeader(HustingsError):
    """Only the leader can do that, and this member is not."""


class Unable(HustingsError):
    """The member cannot do that now, as while its state cannot be written. Trying again is fine."""


class NotTakenOver(HustingsError):
    """The member that was named has not taken over in time: somebody else leads, or nobody."""


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """A member as another one knows it."""

    id: MemberId
    name: str
    address: str
    attributes: dict[str, float]
    incarnation: int
    observer: bool
    me: bool
    leader: bool


class Leadership(msgspec.Struct, frozen=True, kw_only=True):
    """Who leads, as far as one member knows. It is an opinion unless there is a token.

    Where a group has several leaders, one of them need not know of those that are worse.
    """

    group: str
    term: int
    leader: Peer | None
    leaders: tuple[Peer, ...]
    leading: bool  # this member is one of them
    reason: str = ""  # why there is no leader
    risk: float | None = None  # that some other member leads too, where the protocol can tell
    token: int | None = None  # given by a guard


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """A member's figures, counted since it joined."""

    is_leader: bool
    term: int
    members: int
    leader_changes: int
    leaderless_seconds: float
    election_count: int
    election_seconds: float
    election_durations: tuple[float, ...]  # the latest
    messages_sent: dict[str, int]
    messages_received: dict[str, int]
    frames_sent: int
    frames_received: int
    bytes_sent: int
    bytes_received: int
    drops: dict[str, int]
    stale_bound: float  # the longest time a leader that is cut off goes on; infinite: no guard
    health: float  # 1 is well; above, this member distrusts itself, and is so much more patient
    token: int | None = None  # the highest that is known here; None: no guard
    guard_silence: float | None = None  # seconds that questions to the guard wait for an answer
    guard_answers: bool | None = None  # whether none has waited for longer than it may
