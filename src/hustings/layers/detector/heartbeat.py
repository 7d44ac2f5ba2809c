"""Heartbeats: silence for longer than T + D is taken for a crash.

    p  HB ----- T ----- HB --x             x: p crashes
        `--,             `--,
    q       *                *------- T + D -------! suspects p

Model      Synchronous for the promise: D bounds the one-way delay and no heartbeat is lost.
Idea       p sends a heartbeat every T. q restarts a timer of T + D at each heartbeat that it
           receives, and suspects p when the timer has run out. An arrival at that very instant is
           in time.
Promise    In the model complete (every crash is noticed) and accurate (no live member is
           suspected). From crash to suspicion it takes more than D and at most T + 2D. Outside the
           model both fail: a late heartbeat is a false alarm, and a heartbeat still under way at a
           crash hides the crash longer.
Cost       By the pattern, see `detector`.
Paper      Elections lecture, "How to Detect Failure?"

The slide gives the timer, not the latency. The latency is shortest when p crashes just before a
heartbeat is due and the last one came at once. It is longest when p crashes right after a heartbeat
that needs all of D.

This file is the pure part, with time as an argument and no timer inside; `detector` runs it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Annotated, ClassVar, Literal, NamedTuple

from msgspec import Meta

from hustings.core.choice import MemberId
from hustings.core.config import Config
from hustings.core.messages import Count, Incarnation, LayerMessage, Role
from hustings.layers.detector.health import Health


class HeartbeatMsg(LayerMessage, frozen=True, tag="HEARTBEAT"):
    """I am alive. The numbers tell a new heartbeat from a copy, and a restart from a pause.

    `heir` is the member that hears from me at the pace of `successor_period`, if there is one.
    """

    role: ClassVar[Role] = Role.DETECTOR
    incarnation: Incarnation
    number: Count
    heir: MemberId | None = None


class WatchMsg(LayerMessage, frozen=True, tag="WATCH"):
    """I watch you: send me heartbeats too, as long as I keep asking."""

    role: ClassVar[Role] = Role.DETECTOR


class PingMsg(LayerMessage, frozen=True, tag="DETECTOR-PING"):
    """I have not heard you for long: are you there?"""

    role: ClassVar[Role] = Role.DETECTOR
    number: int


class PongMsg(LayerMessage, frozen=True, tag="DETECTOR-PONG"):
    """I am here. The number is that of the question."""

    role: ClassVar[Role] = Role.DETECTOR
    number: int


class Pace(NamedTuple):
    """How often a member sends heartbeats, and how much later than that one may arrive."""

    period: float
    margin: float

    @property
    def timeout(self) -> float:
        return self.period + self.margin


class Monitor(ABC):
    """The members that one member watches, and until when each may be silent."""

    __slots__ = ("deadlines",)

    def __init__(self) -> None:
        self.deadlines: dict[MemberId, float] = {}

    @abstractmethod
    def patience(self, member: MemberId, now: float, pace: Pace | None = None) -> float:
        """How long `member`, heard now, may be silent before it is suspected.

        `pace` is the pace that `member` announced for its next heartbeats, where paces differ.
        """

    def watch(self, member: MemberId, now: float, wait: float) -> None:
        """Watch `member` from now on. It has `wait` for its first heartbeat."""
        self.deadlines[member] = now + wait

    def heard(self, member: MemberId, now: float, pace: Pace | None = None) -> float:
        """A new heartbeat arrived. Return how long the next one may take."""
        wait = self.patience(member, now, pace)
        self.deadlines[member] = now + wait
        return wait

    def pardon(self, member: MemberId) -> None:
        """Learn nothing from the present gap: it comes from the watcher's own sleep."""

    def reborn(self, member: MemberId) -> None:
        """Forget what was learned about a member, because it came back from a crash."""

    def forget(self, member: MemberId) -> None:
        """Stop watching a member. It is no error if the member is not watched."""
        self.deadlines.pop(member, None)

    def overdue(self, now: float) -> list[MemberId]:
        """The members whose time is over. An arrival at this very instant is still in time."""
        return [member for member, deadline in self.deadlines.items() if now > deadline]


class HeartbeatMonitor(Monitor):
    """The lecture's rule: the same patience with all members.

    >>> monitor = HeartbeatMonitor(timeout=1.25)
    >>> monitor.heard(7, now=10.0)
    1.25
    >>> monitor.overdue(now=11.25), monitor.overdue(now=11.26)
    ([], [7])
    """

    __slots__ = ("timeout",)

    def __init__(self, timeout: float) -> None:
        super().__init__()
        self.timeout = timeout

    def patience(self, member: MemberId, now: float, pace: Pace | None = None) -> float:
        return self.timeout if pace is None else pace.timeout


class HeartbeatConfig(Config, frozen=True, kw_only=True):
    """A detector's settings. The defaults are multiples of delta, as in the lecture.

    A detector of your own is a subclass: it says its `name`, adds fields, and `monitor` makes its
    rule. `registry` finds it.
    """

    name: ClassVar[str] = "heartbeat"

    T: (
        Annotated[float, Meta(gt=0, description="period of the heartbeats; default 4 delta")] | None
    ) = None
    D: (
        Annotated[
            float,
            Meta(ge=0, description="the allowance for the delay of a heartbeat; default delta"),
        ]
        | None
    ) = None
    grace: (
        Annotated[
            float, Meta(gt=0, description="wait for a member's first heartbeat; default T + D")
        ]
        | None
    ) = None
    pattern: Annotated[
        Literal["all-to-all", "ring", "leader-to-all", "to-leader"],
        Meta(description="which members send heartbeats, and which members watch them"),
    ] = "all-to-all"
    first_beat_delay: Annotated[
        float,
        Meta(ge=0, description="the time that a member waits before its first heartbeat"),
    ] = 0.0
    successor_period: (
        Annotated[
            float,
            Meta(
                gt=0,
                description="pattern leader-to-all: the period of the heartbeats from the leader "
                "to its successor; the other members get one every T; default T",
            ),
        ]
        | None
    ) = None
    beat: Annotated[
        Literal["send", "multicast"],
        Meta(
            description="multicast: one multicast replaces the heartbeats to each member, where "
            "the pattern has them sent to all"
        ),
    ] = "send"
    liveness: Annotated[
        Literal["heartbeats", "messages"],
        Meta(
            description="what shows that a watched member is alive; for a suspected member every "
            "message does"
        ),
    ] = "heartbeats"
    ping_timeout: Annotated[
        float,
        Meta(
            ge=0,
            description="a silent member is asked first, and suspected when it has not answered "
            "for this time; 0: it is not asked",
        ),
    ] = 0.0
    successor_head_start: Annotated[
        float,
        Meta(
            ge=0,
            description="the time for which all members but the successor hold back a suspicion "
            "of the leader; 0: none",
        ),
    ] = 0.0
    health_max: Annotated[
        float,
        Meta(
            ge=1,
            le=100,
            description="the largest factor by which a member's own lateness multiplies its "
            "timeouts; 1: none",
        ),
    ] = 8.0
    health_half: (
        Annotated[
            float,
            Meta(
                gt=0,
                description="the time in which a member's distrust of itself halves; default 10 "
                "T, or 6 (successor_period + D)",
            ),
        ]
        | None
    ) = None
    slack: (
        Annotated[
            float, Meta(gt=0, description="the lateness that is normal; default T/8, at most D/2")
        ]
        | None
    ) = None

    @property
    def period(self) -> float:
        return 4 * self.delta if self.T is None else self.T

    @property
    def margin(self) -> float:
        return self.delta if self.D is None else self.D

    @property
    def timeout(self) -> float:
        return self.period + self.margin

    def pace(self, hasty: bool) -> Pace | None:
        """The pace of heartbeats to the heir, or to the others; None where all have the same.

        The other members give the heir a period's time before they look for the leader themselves.
        """
        if self.successor_period is None:
            return None
        if hasty:
            return Pace(self.successor_period, self.margin)
        return Pace(self.period, max(self.margin, self.period))

    @property
    def first(self) -> float:
        return self.timeout if self.grace is None else self.grace

    @property
    def usual_lateness(self) -> float:
        if self.slack is None:
            return min(self.period / 8, self.margin / 2 or self.period)
        return self.slack

    def health(self) -> Health:
        """A new judgement of one member's own timing."""
        # A member that may be the heir judges itself by that pace: the cause of its distrust is
        # over sooner, too.
        pace = self.pace(hasty=True)
        half_life = 10 * self.period if pace is None else 6 * pace.timeout
        if self.health_half is not None:
            half_life = self.health_half
        unit = self.timeout if pace is None else pace.timeout
        return Health(self.health_max, half_life, unit, self.usual_lateness)

    def monitor(self) -> Monitor:
        """A new monitor for one member's detector."""
        return HeartbeatMonitor(self.timeout)

    def broken_rules(self) -> list[str]:
        times = {
            "T": self.period,
            "D": self.margin,
            "grace": self.first,
            "ping_timeout": self.ping_timeout,
            "first_beat_delay": self.first_beat_delay,
            "successor_head_start": self.successor_head_start,
            "health_half": self.health_half or 0.0,
        }
        found = [
            f"{name} must be finite, or no crash is ever noticed"
            for name, value in times.items()
            if value == math.inf
        ]
        if self.successor_period is not None and self.successor_period > self.period:
            found.append(
                f"successor_period = {self.successor_period:g} must not exceed T = "
                f"{self.period:g}: the member that is to lead next hears the leader more often "
                "than the others"
            )
        if self.successor_period is not None and self.pattern != "leader-to-all":
            found.append(f"successor_period needs pattern leader-to-all, not {self.pattern}")
        return found

    def warnings(self) -> list[str]:
        found = []
        if self.margin < self.delta:
            found.append(
                f"D = {self.margin:g} is shorter than the delay bound ({self.delta:g}): a "
                "heartbeat may come after its timer and a live member be suspected; set D >= delta"
            )
        if self.first < self.timeout:
            found.append(
                f"grace = {self.first:g} is shorter than T + D ({self.timeout:g}): a member may be "
                "suspected before its first heartbeat was due; set grace >= T + D"
            )
        if self.beat == "multicast" and self.pattern in ("ring", "to-leader"):
            found.append(
                f"beat = multicast changes nothing with pattern {self.pattern}, where heartbeats "
                "go to one member; use leader-to-all or all-to-all"
            )
        if self.pattern == "to-leader":
            found.append(
                "pattern to-leader leaves the leader unwatched: its crash starts no election; "
                "use leader-to-all to notice it"
            )
        return found
