"""Processes that are none, on a clock that is none: for tests of what the demo makes of them."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from hustings.demo.live.channel import (
    CutOrder,
    Failed,
    FiguresReport,
    FollowingReport,
    HandOver,
    HealOrder,
    Opened,
    Order,
    RefusedReport,
    Report,
)
from hustings.demo.live.member_process import MemberPlan
from hustings.demo.live.processes import MemberEnded
from hustings.demo.live.scene import LiveScene

SOON = 0.010  # seconds until members that are told of a new leader follow it


class Clock:
    """Time that passes only while somebody waits for reports."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Obedient:
    """Members that always agree on somebody 10 ms later; the subclass decides on whom."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.parts: dict[str, list[MemberPlan]] = {}
        self.running: dict[str, int] = {}  # and their ports
        self.deeds: list[str] = []
        self.away: dict[str, CutOrder] = {}
        self.leader = ""
        self.term = 0
        self.dismissed = False
        self._due: list[tuple[float, int, str, Report]] = []
        self._count = 0

    # What acts call

    def start(self, part: MemberPlan) -> int:
        self.deeds.append(f"start {part.name}")
        self.parts.setdefault(part.name, []).append(part)
        self.running[part.name] = 7000 + self._count
        self.report(part.name, Opened(self.clock.now, self.endpoint(part.name)))
        if not self.leader:
            self.elect(part.name)
        else:
            self.report(
                part.name, FollowingReport(self.clock.now + SOON, self.leader, self.term), SOON
            )
        self.tick()
        return 4000 + self._count

    def order(self, name: str, order: Order) -> None:
        match order:
            case CutOrder():
                self.away[name] = order
                if len(self.away) == len(self.running):
                    self.cut()
            case HealOrder():
                self.away.pop(name)
                if not self.away:
                    self.heal()
            case HandOver(to):
                self.deeds.append(f"hand over from {name} to {to}")
                self.hand_over(name, to)

    def kill(self, name: str) -> None:
        self.deeds.append(f"kill {name}")
        del self.running[name]
        self.lose()

    def pause(self, name: str) -> None:
        self.deeds.append(f"pause {name}")
        self.paused = (name, self.running.pop(name))
        self.lose()

    def resume(self, name: str) -> None:
        self.deeds.append(f"resume {name}")
        self.running[name] = self.paused[1]
        self.report(name, FollowingReport(self.clock.now + SOON, self.leader, self.term), SOON)

    def hear(self, patience: float) -> list[tuple[str, Report]]:
        until = self.clock.now + patience
        if self._due and self._due[0][0] <= until:
            at, _, name, report = heappop(self._due)
            self.clock.now = max(self.clock.now, at)
            if isinstance(report, Failed):
                raise MemberEnded(f"member {name} ended: {report.sentence}")
            return [(name, report)]
        self.clock.now = until
        return []

    def dismiss(self) -> None:
        self.dismissed = True

    # What happens then

    def lose(self) -> None:
        """The leader is gone."""
        self.elect(max(self.running))

    def cut(self) -> None:
        """Who cannot reach the leader follows another."""
        far = [
            name for name, cut in self.away.items() if self.endpoint(self.leader) in cut.endpoints
        ]
        self.elect(max(far), far)

    def heal(self) -> None:
        self.elect(max(self.running))

    def hand_over(self, name: str, to: str) -> None:
        self.elect(to)

    # Small matters

    def elect(self, leader: str, members: list[str] | None = None) -> None:
        self.term += 1
        if members is None:
            self.leader = leader
        for name in members or list(self.running):
            self.report(name, FollowingReport(self.clock.now + SOON, leader, self.term), SOON)

    def tick(self) -> None:
        """Everybody sends 8 messages a second."""
        for name in self.running:
            for later in (0.0, 1.0):
                at = self.clock.now + later
                self.report(name, FiguresReport(at, round(8 * at), len(self.running)), later)

    def report(self, name: str, report: Report, later: float = 0.0) -> None:
        self._count += 1
        heappush(self._due, (self.clock.now + later, self._count, name, report))

    def endpoint(self, name: str) -> tuple[str, int]:
        return ("127.0.0.1", self.running[name])


class Stubborn(Obedient):
    """Whoever leads is the last: nobody follows anybody else."""

    def lose(self) -> None:
        for name in self.running:
            self.report(name, FollowingReport(self.clock.now + SOON, "", self.term), SOON)


class Reluctant(Obedient):
    """The leader does not hand over."""

    def hand_over(self, name: str, to: str) -> None:
        self.report(name, RefusedReport(f"{to!r} only observes and cannot lead"))


class Notebook:
    """An audience that remembers."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.looks = 0
        self.each: Callable[[LiveScene], None] | None = None

    def hear(self, scene: LiveScene) -> None:
        self.lines.append(scene.sentence)

    def look(self, scene: LiveScene) -> None:
        self.looks += 1
        if self.each is not None:
            self.each(scene)
