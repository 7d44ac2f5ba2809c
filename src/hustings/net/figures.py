"""What a member counts about its group: changes of leader, time without one, how long it took."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from hustings.net.host import Host
from hustings.net.limits import Reason
from hustings.net.states import Leadership, Metrics

_KEPT = 1000  # durations


class Figures:
    """Counts as the states pass by."""

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
        """One state gave way to another; it may be the same."""
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

    def metrics(self, host: Host, state: Leadership) -> Metrics:
        """All figures, those of the traffic too."""
        waiting = 0.0
        if self._leaderless_since is not None:
            waiting = self._clock() - self._leaderless_since
        traffic, counters = host.traffic, host.gate.counters
        drops = counters.mapping()
        drops[Reason.INBOX.value] = max(drops[Reason.INBOX.value], host.runner.dropped)
        guard = host.confirmed
        silence = None if guard is None else guard.silence(host.runner.now())
        return Metrics(
            is_leader=state.leading,
            term=state.term,
            members=len(host.stack.membership.view),
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
            stale_bound=host.stale_bound,
            health=host.health(),
            token=None if guard is None else guard.term,
            guard_silence=silence,
            guard_answers=None
            if guard is None or silence is None
            else silence <= guard.lease.patience,
        )
