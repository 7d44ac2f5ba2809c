"""What is known of each member, when all agreed, and how long it took. No process in here.

Members report when they took a member for the leader, by the clock that all processes of a machine
share. So a time is exact whenever the report arrives: all agree from the moment when the last
member took the leader for its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from hustings.demo.live.channel import Endpoint, FiguresReport, FollowingReport, Opened, Report

_SAMPLES = 5  # of figures, for computing a rate

Sides = tuple[tuple[str, ...], ...]


class ProcessState(Enum):
    """What has been done to a member's process."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    KILLED = "killed"


@dataclass(slots=True)
class Sight:
    """One member as the demo sees it."""

    name: str
    pid: int
    standing: ProcessState = ProcessState.STARTING
    endpoint: Endpoint = ("", 0)
    leader: str = ""  # the leader it follows; empty: none
    term: int = 0
    since: float = 0.0  # when it began to follow that leader
    knows: int = 0  # members, including itself
    samples: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_SAMPLES))

    @property
    def up(self) -> bool:
        """Whether it must agree with the others."""
        return self.standing in (ProcessState.STARTING, ProcessState.RUNNING)

    @property
    def leads(self) -> bool:
        """Whether it takes itself for the leader; False if its process cannot be asked."""
        return self.standing is ProcessState.RUNNING and self.leader == self.name

    @property
    def rate(self) -> float:
        """Messages that it sent per second, recently."""
        if len(self.samples) < 2 or not self.up:
            return 0.0
        (first, less), (last, more) = self.samples[0], self.samples[-1]
        return (more - less) / (last - first) if last > first else 0.0


class Board:
    """All members, and the sides that cannot reach each other.

    >>> board = Board()
    >>> for name in ("a", "b"):
    ...     board.start(name, pid=1)
    ...     board.hear(name, Opened(1.0, ("127.0.0.1", 1)))
    >>> board.hear("a", FollowingReport(1.1, "a", 1)); board.leaders()
    ()
    >>> board.hear("b", FollowingReport(1.3, "a", 1)); board.leaders(), board.agreed_at()
    (('a',), 1.3)
    """

    def __init__(self) -> None:
        self.members: dict[str, Sight] = {}
        self.sides: Sides = ()  # none: the group is whole
        self.noticed: float | None = None  # when the first member changed its leader
        self._began = 0.0

    # Events

    def begin(self, at: float) -> None:
        """Something is done to the group now; wait for the first member to notice."""
        self._began = at
        self.noticed = None

    def start(self, name: str, pid: int) -> None:
        """A process was started; what was known of an earlier one is void."""
        self.members[name] = Sight(name, pid)

    def put(self, name: str, standing: ProcessState) -> None:
        """Something was done to a process."""
        self.members[name].standing = standing

    def hear(self, name: str, report: Report) -> None:
        """A member reported; the last words of a killed member do not count."""
        sight = self.members[name]
        if sight.standing is ProcessState.KILLED:
            return
        match report:
            case Opened(_, endpoint):
                sight.endpoint = endpoint
                if sight.standing is ProcessState.STARTING:
                    sight.standing = ProcessState.RUNNING
            case FollowingReport(at, leader, term):
                if leader != sight.leader:
                    sight.since = at
                    if at >= self._began and (self.noticed is None or at < self.noticed):
                        self.noticed = at
                sight.leader, sight.term = leader, term
            case FiguresReport(at, sent, knows):
                sight.samples.append((at, sent))
                sight.knows = knows

    # Questions

    def up(self) -> list[Sight]:
        """Members that must agree."""
        return [sight for sight in self.members.values() if sight.up]

    def leading(self) -> tuple[str, ...]:
        """Running members that take themselves for the leader."""
        return tuple(sight.name for sight in self.members.values() if sight.leads)

    def leaders(self) -> tuple[str, ...]:
        """The leader of each side, if every side has a running leader of its own; else nothing."""
        found: list[str] = []
        for side in self._sides():
            followed = {sight.leader for sight in side}
            leader = side[0].leader if side else ""
            if len(followed) != 1 or leader not in [s.name for s in side if s.leads]:
                return ()
            found.append(leader)
        return tuple(found)

    def agreed_at(self) -> float:
        """When the last member began to follow its leader."""
        return max((sight.since for sight in self.up()), default=0.0)

    def acquainted(self) -> bool:
        """Whether every member knows as many members as its side has."""
        return all(sight.knows >= len(side) for side in self._sides() for sight in side)

    def term(self, leaders: Sequence[str]) -> int:
        """The highest term of these leaders."""
        return max((self.members[name].term for name in leaders), default=0)

    def rate(self) -> float:
        """Messages per second, of all members together."""
        return sum(sight.rate for sight in self.up())

    def rate_each(self) -> float:
        """The same for one member, on average."""
        return self.rate() / max(1, len(self.up()))

    def _sides(self) -> list[list[Sight]]:
        if not self.sides:
            return [self.up()]
        sides = [[self.members[name] for name in side] for side in self.sides]
        return [[sight for sight in side if sight.up] for side in sides]
