"""Numbers for Prometheus, read from the members at each request.

A member keeps only its last elections' durations, and a histogram must never shrink. So the
durations that are new since the last reading are added to counts that are kept here.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from hustings._version import __version__
from hustings.agent.agent_member import AgentMember
from hustings.agent.events import Broadcast
from hustings.net.member_state import Metrics

KEPT_S = 1.0  # how long a page is served again: making one takes as long as many answers
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
LABELS = ("group", "member")


class Durations:
    """A histogram of one member's election durations.

    >>> durations = Durations()
    >>> durations.read((0.2, 0.3), count=2)
    >>> durations.read((0.2, 0.3, 40.0), count=3)
    >>> durations.buckets()[-3:]
    [('10.0', 2.0), ('30.0', 2.0), ('+Inf', 3.0)]
    """

    def __init__(self) -> None:
        self._seen = 0
        self._counts = [0] * (len(BOUNDS) + 1)

    def read(self, last: tuple[float, ...], count: int) -> None:
        """Add the last durations, newest at the end, of `count` elections so far.

        Durations that were dropped before a reading count as longer than every bound, since they
        are not known.
        """
        new = count - self._seen
        for seconds in last[-new:] if new > 0 else ():
            self._counts[bisect_left(BOUNDS, seconds)] += 1
        self._counts[-1] += max(0, new - len(last))
        self._seen = count

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulative counts, by upper bound."""
        total = 0
        rows = []
        for bound, count in zip([*map(str, BOUNDS), "+Inf"], self._counts, strict=True):
            total += count
            rows.append((bound, float(total)))
        return rows


class Members(Collector):
    """Collects from all members of one agent, at the moment of the request."""

    def __init__(
        self,
        members: Mapping[str, AgentMember],
        broadcast: Broadcast,
        drops: Callable[[], Mapping[str, int]],
        refused: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        self._members = members
        self._broadcast = broadcast
        self._drops = drops
        self._refused = refused
        self._durations: dict[str, Durations] = {}

    def collect(self) -> Iterable[Metric]:
        """Every family, in a fixed order."""
        rows = [
            ([name, self._members[name].name], self._members[name].metrics())
            for name in sorted(self._members)
        ]
        yield from _gauges(rows)
        yield from _counters(rows)
        yield self._elections(rows)
        refused = CounterMetricFamily(
            "hustings_transport_dropped",
            "What the port refused before it was any member's, by reason",
            labels=("reason",),
        )
        for reason, times in sorted(self._drops().items()):
            if times:  # most reasons are a member's and never a port's
                refused.add_metric([reason], times)
        yield refused
        http = CounterMetricFamily(
            "hustings_http_connections_refused",
            "Connections of HTTP that were closed or refused, by reason",
            labels=("reason",),
        )
        for reason, times in sorted(self._refused().items()):
            http.add_metric([reason], times)
        yield http
        build = GaugeMetricFamily("hustings_build_info", "The release", labels=("version",))
        build.add_metric([__version__], 1)
        yield build
        listeners = "Streams of /v1/events that are open"
        yield GaugeMetricFamily("hustings_event_streams", listeners, value=len(self._broadcast))

    def _elections(self, rows: list[Row]) -> Metric:
        family = HistogramMetricFamily(
            "hustings_election_duration_seconds",
            "From the start of an election, or the loss of the leader, to a leader",
            labels=LABELS,
        )
        for labels, metrics in rows:
            durations = self._durations.setdefault(labels[0], Durations())
            durations.read(metrics.election_durations, metrics.election_count)
            family.add_metric(labels, durations.buckets(), sum_value=metrics.election_seconds)
        return family


Row = tuple[list[str], Metrics]


class Exposition:
    """The page that `/metrics` serves."""

    def __init__(
        self,
        members: Mapping[str, AgentMember],
        broadcast: Broadcast,
        drops: Callable[[], Mapping[str, int]],
        refused: Callable[[], Mapping[str, int]] = dict,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registry = CollectorRegistry()  # our own: without this process's memory and threads
        self._registry.register(Members(members, broadcast, drops, refused))
        self._clock = clock
        self._page = b""
        self._made_at = -KEPT_S

    def page(self) -> bytes:
        """The page as it is now, or was a moment ago."""
        now = self._clock()
        if now >= self._made_at + KEPT_S:
            self._page, self._made_at = bytes(generate_latest(self._registry)), now
        return self._page


def _gauges(rows: list[Row]) -> Iterator[Metric]:
    told: tuple[tuple[str, str, Callable[[Metrics], float | None]], ...] = (
        ("hustings_is_leader", "Whether this member leads", lambda m: m.is_leader),
        ("hustings_term", "The term that this member is in", lambda m: m.term),
        ("hustings_members", "Members that this one knows, itself included", lambda m: m.members),
        (
            "hustings_stale_leader_bound_seconds",
            "For how long a leader that is cut off may go on believing that it leads; +Inf without "
            "a guard",
            lambda m: m.stale_bound,
        ),
        (
            "hustings_guard_reachable",
            "0 while the guard leaves a question of this member unanswered for longer than retry; "
            "only who is to lead asks",
            lambda m: m.guard_answers,
        ),
        (
            "hustings_guard_silence_seconds",
            "For how long the guard has answered none of this member's questions",
            lambda m: m.guard_silence,
        ),
        (
            "hustings_fencing_token",
            "The highest token that this member knows of; the leader's own if it leads",
            lambda m: m.token,
        ),
        (
            "hustings_health_multiplier",
            "How much more patient than usual the member is, having been slow itself; 1 is fine",
            lambda m: m.health,
        ),
    )
    for name, help_text, value in told:
        family = GaugeMetricFamily(name, help_text, labels=LABELS)
        for labels, metrics in rows:
            found = value(metrics)
            if found is not None:  # a figure about a guard is missing where there is none
                family.add_metric(labels, float(found))
        yield family


def _counters(rows: list[Row]) -> Iterator[Metric]:
    changes = CounterMetricFamily(
        "hustings_leader_changes", "How often the leader was another one", labels=LABELS
    )
    leaderless = CounterMetricFamily(
        "hustings_leaderless_seconds", "Time in which this member knew no leader", labels=LABELS
    )
    messages = CounterMetricFamily(
        "hustings_messages", "Messages by kind", labels=(*LABELS, "direction", "kind")
    )
    packets = CounterMetricFamily(
        "hustings_frames", "Datagrams and frames", labels=(*LABELS, "direction")
    )
    octets = CounterMetricFamily(
        "hustings_network_bytes", "Bytes in datagrams and frames", labels=(*LABELS, "direction")
    )
    drops = CounterMetricFamily(
        "hustings_messages_dropped",
        "What was refused or dropped, by reason",
        labels=(*LABELS, "reason"),
    )
    for labels, metrics in rows:
        changes.add_metric(labels, metrics.leader_changes)
        leaderless.add_metric(labels, metrics.leaderless_seconds)
        for kind, times in sorted(metrics.messages_sent.items()):
            messages.add_metric([*labels, "sent", kind], times)
        for kind, times in sorted(metrics.messages_received.items()):
            messages.add_metric([*labels, "received", kind], times)
        packets.add_metric([*labels, "sent"], metrics.frames_sent)
        packets.add_metric([*labels, "received"], metrics.frames_received)
        octets.add_metric([*labels, "sent"], metrics.bytes_sent)
        octets.add_metric([*labels, "received"], metrics.bytes_received)
        for reason, times in sorted(metrics.drops.items()):
            drops.add_metric([*labels, reason], times)
    yield from (changes, leaderless, messages, packets, octets, drops)
