"""What a member's owner sees: peers, leadership, metrics. Plain values, ready for JSON."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

import msgspec

from hustings.core.choice import MemberId
from hustings.core.errors import HustingsError
from hustings.net.limits import Reason
from hustings.net.loss_reason import NO_LEADER, LossReason

if TYPE_CHECKING:
    from hustings.net.node import MemberNode

JOINING = "joining"
LEFT = "left"


class LeadershipLost(HustingsError):
    """This member leads no longer: what only the leader may do must stop. `reason` says why."""

    def __init__(self, sentence: str = "", reason: LossReason | None = None) -> None:
        super().__init__(sentence)
        self.reason = reason or LossReason(kind=NO_LEADER, words=sentence)

    @classmethod
    def of(cls, member: str, group: str, term: int, reason: LossReason) -> Self:
        """The error for the code of one term."""
        said = f"{member} leads group {group!r} no longer (term {term}): {reason}"
        return cls(said, reason)

    def __reduce__(self) -> tuple[type[LeadershipLost], tuple[str, LossReason]]:
        """Support pickling: the error may have to return from a worker process."""
        return type(self), (str(self), self.reason)


class NotLeader(HustingsError):
    """Only the leader can do that, and this member does not lead."""


class Unable(HustingsError):
    """The member cannot do that now, for example because its state cannot be written. Try again."""


class NotTakenOver(HustingsError):
    """The named member has not taken over in time: another member leads, or none does."""


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """A member as another member knows it."""

    id: MemberId
    name: str
    address: str
    attributes: dict[str, float]
    incarnation: int
    observer: bool
    me: bool
    leader: bool


class Leadership(msgspec.Struct, frozen=True, kw_only=True):
    """Who leads, as far as one member knows. Without a token it is an opinion.

    Where a group has several leaders, a leader need not know the leaders that rank below it.
    """

    group: str
    term: int
    leader: Peer | None
    leaders: tuple[Peer, ...]
    leading: bool  # this member is one of them
    reason: str = ""  # why there is no leader
    risk: float | None = None  # that another member leads too, where the protocol can tell
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
    election_durations: tuple[float, ...]  # seconds; the latest ones
    messages_sent: dict[str, int]
    messages_received: dict[str, int]
    frames_sent: int
    frames_received: int
    bytes_sent: int
    bytes_received: int
    drops: dict[str, int]
    stale_bound: float  # the longest time a leader that is cut off goes on; infinite: no guard
    health: float  # 1 is well; above, this member distrusts itself, and waits so much longer
    token: int | None = None  # the highest that is known here; None: no guard
    guard_silence: float | None = None  # seconds that the oldest question to the guard has waited
    guard_answers: bool | None = None  # whether no question has waited too long; None: no guard


_KEPT = 1000  # durations that are kept


class MetricsRecorder:
    """Counts events as the states change."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._leaderless_since: float | None = clock()
        self._leaderless = 0.0
        self._changes = 0
        self._last: int | None = None
        self._elections = 0
        self._seconds = 0.0
        self._durations: deque[float] = deque(maxlen=_KEPT)

    def changed(self, before: Leadership, now: Leadership) -> None:
        """The state has changed; the two may be equal."""
        if now.leader is None:
            if self._leaderless_since is None:
                self._leaderless_since = self._clock()
            return
        if self._leaderless_since is not None:
            took = self._clock() - self._leaderless_since
            self._leaderless_since = None
            self._leaderless += took
            self._elections += 1
            self._seconds += took
            self._durations.append(took)
        elif before.leader is not None and before.leader.id != now.leader.id:
            self._elections += 1
            self._durations.append(0.0)  # handed over without a gap
        if self._last != now.leader.id:
            self._changes += 1
            self._last = now.leader.id

    def metrics(self, node: MemberNode, state: Leadership) -> Metrics:
        """All figures, those of the traffic too."""
        waiting = 0.0
        if self._leaderless_since is not None:
            waiting = self._clock() - self._leaderless_since
        traffic, counters = node.traffic, node.filter.counters
        drops = counters.mapping()
        drops[Reason.INBOX.value] = max(drops[Reason.INBOX.value], node.runner.dropped)
        guard = node.lease_layer
        silence = None if guard is None else guard.silence(node.runner.now())
        return Metrics(
            is_leader=state.leading,
            term=state.term,
            members=len(node.stack.membership.view),
            leader_changes=self._changes,
            leaderless_seconds=self._leaderless + waiting,
            election_count=self._elections,
            election_seconds=self._seconds,
            election_durations=tuple(self._durations),
            messages_sent=dict(sorted(traffic.sent.items())),
            messages_received=dict(sorted(traffic.received.items())),
            frames_sent=traffic.frames_out,
            frames_received=traffic.frames_in,
            bytes_sent=traffic.bytes_out,
            bytes_received=traffic.bytes_in,
            drops=drops,
            stale_bound=node.stale_bound,
            health=node.health(),
            token=None if guard is None else guard.term,
            guard_silence=silence,
            guard_answers=None
            if guard is None or silence is None
            else silence <= guard.lease.patience,
        )
