"""A survey of a live group, by an observer that asks its members: see `hustings.net.survey`.

Each member is asked to send trains of probes to some others, in turn. The observer itself sends
only the questions, at a bounded rate. Counts in the answers only grow, so a lost answer loses
nothing. If a member restarts, its counts begin again, and those before stay.

Law: everything runs on the clock of members, so a survey can run in virtual time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle

from hustings.core.choice import MemberId
from hustings.core.digests import blake2b
from hustings.net.clock import fine_time, member_clock, sleep
from hustings.net.control_messages import LinkReport, SurveyMsg, SurveyReplyMsg, WayCounts
from hustings.net.member import Member
from hustings.net.wire import Received

TRAIN = 4  # probes in a row
RATE = 2.0  # trains a second on each way
SETTLE = 3.0  # seconds at the end in which answers come and no new probe leaves
MOST_LINKS = 96  # ways that are measured
_MOST_ENDS = 60  # members between which ways are chosen
_QUESTIONS = 200.0  # a second, to all members
_GLANCE = 0.5  # seconds between two looks at who is there
_STATUS = 4.0  # seconds between two questions to a member that measures no way
_UNANSWERED = 1024  # questions of which the time is kept
_CLOCKS = 4096  # comparisons with one clock that are kept

Way = tuple[MemberId, MemberId]
SiteOf = Callable[[str, Mapping[str, float]], str]  # of an address and attributes; "": none


@dataclass(slots=True)
class SurveyedMember:
    """One member, as it is known to the survey."""

    name: str
    address: str
    site: str
    incarnation: int
    since: float  # when it was first seen
    seen: float  # when it was last seen
    answers: int = 0
    process: SurveyedProcess | None = None  # the latest that has answered
    before: list[SurveyedProcess] = field(default_factory=list)  # former ones that have answered

    @property
    def processes(self) -> list[SurveyedProcess]:
        """Its processes that have answered."""
        return self.before if self.process is None else [*self.before, self.process]


@dataclass(slots=True)
class SurveyedProcess:
    """What one process of a member has told of itself."""

    incarnation: int
    watched_before: float  # the survey: seconds for which it was looked for stalls ...
    stalls_before: int  # ... and stalls
    watched: float = 0.0
    stall_count: int = 0
    stalls: dict[int, float] = field(default_factory=dict)  # seconds, by number
    longest: float = 0.0  # the longest stall since it began
    clocks: list[tuple[float, float, float]] = field(default_factory=list)  # time, offset, trip

    def heard(self, message: SurveyReplyMsg) -> None:
        """Take in an answer; a late one changes nothing."""
        self.watched = max(self.watched, message.watched - self.watched_before)
        self.stall_count = max(self.stall_count, message.stall_count - self.stalls_before)
        self.longest = max(self.longest, message.longest)
        for number, _, seconds in message.stalls:
            if number > self.stalls_before:
                self.stalls[number] = seconds


@dataclass(slots=True)
class MeasuredWay:
    """A way and back, as one member has measured it."""

    incarnation: int  # of the member that measures
    report: LinkReport
    out: WayCounts = field(default_factory=WayCounts)  # of former processes
    back: WayCounts = field(default_factory=WayCounts)
    trips: list[float] = field(default_factory=list)
    unsettled: int = 0

    def hear(self, incarnation: int, report: LinkReport) -> None:
        """A report; one that a later report has overtaken changes nothing."""
        known = self.report
        if incarnation > self.incarnation:
            self.out, self.back = self.counts
            self.unsettled += known.unsettled
            self.incarnation, known = incarnation, nothing(report.target)
        if incarnation < self.incarnation or report.trip_count < known.trip_count:
            return
        if report.out.sent < known.out.sent:
            return
        fresh = min(len(report.trips), report.trip_count - known.trip_count)
        self.trips += report.trips[len(report.trips) - fresh :]
        self.report = report

    @property
    def counts(self) -> tuple[WayCounts, WayCounts]:
        """What became of the probes, and of the echoes."""
        return added(self.out, self.report.out), added(self.back, self.report.back)


def nothing(target: MemberId) -> LinkReport:
    """The report before anything was measured."""
    return LinkReport(target, WayCounts(), WayCounts(), 0, (), 0)


def added(one: WayCounts, other: WayCounts) -> WayCounts:
    """Both counts together."""
    return WayCounts(
        one.sent + other.sent,
        one.lost + other.lost,
        one.after_loss + other.after_loss,
        one.lost_again + other.lost_again,
    )


@dataclass(slots=True)
class SeenCrash:
    """A member that was gone without a farewell; `down` is the time until it was back."""

    member: MemberId
    at: float
    down: float | None = None


@dataclass(slots=True)
class CollectedSurvey:
    """All that a survey has collected."""

    group: str
    seconds: float = 0.0
    members: dict[MemberId, SurveyedMember] = field(default_factory=dict)
    ways: dict[Way, MeasuredWay] = field(default_factory=dict)
    crashes: list[SeenCrash] = field(default_factory=list)
    left: int = 0  # members that said goodbye
    present: list[MemberId] = field(default_factory=list)  # at the end
    stopped: bool = False  # before its time was over

    @property
    def silent(self) -> list[str]:
        """The members that answered no question."""
        return sorted(each.name for each in self.members.values() if not each.answers)


@dataclass(frozen=True, slots=True)
class SurveyProgress:
    """How far a survey has come."""

    seconds: float
    wanted: float
    members: int
    answering: int
    probes: int

    @property
    def share(self) -> float:
        """The part that is done."""
        return min(1.0, self.seconds / self.wanted)


class Survey:
    """One survey. `run` returns what was collected."""

    def __init__(
        self,
        member: Member,
        seconds: float,
        *,
        rate: float = RATE,
        site_of: SiteOf = lambda address, attributes: "",
        tell: Callable[[SurveyProgress], None] = lambda reached: None,
    ) -> None:
        self._member = member
        self._node = member.node
        self._seconds = seconds
        self._rate = rate
        self._site_of = site_of
        self._tell = tell
        self._clock = member_clock()
        self._time = fine_time(self._clock)
        self._series = self._node.runner.rng.below(1 << 53)
        self._number = 0
        self._sent: dict[int, float] = {}
        self._began = self._time()
        self._gone: dict[MemberId, SeenCrash] = {}
        self._plan: Iterator[tuple[MemberId, MemberId | None]] = iter(())
        self._questions = 0.0  # a second
        self.stop = asyncio.Event()  # set it to end the survey early
        self.collected = CollectedSurvey(member.group)

    async def run(self) -> CollectedSurvey:
        """Ask until the time is over, or until `stop` is set."""
        answers = self._node.survey
        answers.replies = self._heard
        try:
            await self._ask(self._seconds - SETTLE, TRAIN)
            self.collected.stopped = self.stop.is_set()
            self.stop.clear()
            await self._ask(self._time() - self._began + SETTLE, 0)
            self.collected.stopped = self.collected.stopped or self.stop.is_set()
        finally:
            answers.replies = None
            self._look()
            self.collected.seconds = self._time() - self._began
        return self.collected

    async def _ask(self, until: float, probes: int) -> None:
        """Ask one question after the other; `until` counts from the beginning."""
        due = looked = self._time()
        end = self._began + until  # a difference of times could be rounded, and never get there
        self._look()
        while self._time() < end and not self.stop.is_set():
            now = self._time()
            if now - looked >= _GLANCE:
                looked = now
                self._look()
                self._tell(self._reached(now))
            asked = next(self._plan, None)
            if asked is not None:
                self._question(*asked, probes)
            due = max(due + 1.0 / self._questions if self._questions else now + _GLANCE, now)
            await self._wait(min(due, end) - now)

    async def _wait(self, seconds: float) -> None:
        if seconds < 0.01 or self._clock is asyncio.get_running_loop():
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, seconds)):
                    await self.stop.wait()
        else:
            await sleep(seconds)

    def _question(self, member: MemberId, target: MemberId | None, probes: int) -> None:
        self._number += 1
        self._sent[self._number] = self._time()
        if len(self._sent) > _UNANSWERED:
            del self._sent[next(iter(self._sent))]
        question = SurveyMsg(self._series, self._number, target, 0 if target is None else probes)
        self._node.transmit(member, question)

    # Who is there

    def _look(self) -> None:
        """See who came, went or began anew; choose other ways then."""
        now, changed = self._time(), False
        circle = self._node.stack.membership.circle
        there = [each for each in self._member.members() if not (each.me or each.observer)]
        for peer in there:
            known = self.collected.members.get(peer.id)
            if known is None:
                site = self._site_of(peer.address, peer.attributes)
                self.collected.members[peer.id] = SurveyedMember(
                    peer.name, peer.address, site, peer.incarnation, now, now
                )
                changed = True
                continue
            changed |= self._is_back(known, peer.id, peer.incarnation, now)
            known.seen = now
        self.collected.present = ids = [peer.id for peer in there]
        for member, known in self.collected.members.items():
            if member in ids or member in self._gone:
                continue
            changed = True
            self._gone[member] = SeenCrash(member, known.seen)
            if circle.entry(member) is None:  # a suspect would still be known
                self.collected.left += 1
            else:
                self.collected.crashes.append(self._gone[member])
        if changed:
            self._choose(ids)

    def _is_back(
        self, known: SurveyedMember, member: MemberId, incarnation: int, now: float
    ) -> bool:
        """Whether a member was gone; one that comes back as it was had not crashed."""
        gone, crashes = self._gone.pop(member, None), self.collected.crashes
        if incarnation == known.incarnation:
            if gone is not None and gone in crashes:
                crashes.remove(gone)
            return gone is not None
        if gone is None:
            gone = SeenCrash(member, known.seen)
            crashes.append(gone)
        gone.down = now - gone.at
        known.incarnation = incarnation
        return True

    def _choose(self, ids: list[MemberId]) -> None:
        sites = {each: self.collected.members[each].site for each in ids}
        most = min(MOST_LINKS, int(_QUESTIONS / self._rate))
        ways = chosen_ways(sites, self._series, most)
        asking = dict.fromkeys(one for one, _ in ways)
        others = [each for each in ids if each not in asking]
        self._plan = mixed(ways, others, self._rate, _STATUS)
        self._questions = min(_QUESTIONS, len(ways) * self._rate + len(others) / _STATUS)

    # What they say

    def _heard(self, got: Received, message: SurveyReplyMsg) -> None:
        known = self.collected.members.get(got.sender)
        if known is None or message.series != self._series:
            return
        now, process = self._time(), known.process
        if process is None or process.incarnation < got.incarnation:
            known.before = known.processes
            process = SurveyedProcess(got.incarnation, message.watched, message.stall_count)
            known.process = process
        if process.incarnation > got.incarnation:
            return
        known.answers += 1
        process.heard(message)
        sent = self._sent.pop(message.number, None)
        if sent is not None:
            offset = message.clock - (sent + now) / 2
            process.clocks.append((now - self._began, offset, now - sent))
            del process.clocks[:-_CLOCKS]
        link = message.link
        if link is not None and link.target in self.collected.members:
            way = (got.sender, link.target)
            if way not in self.collected.ways:
                self.collected.ways[way] = MeasuredWay(got.incarnation, nothing(link.target))
            self.collected.ways[way].hear(got.incarnation, link)

    def _reached(self, now: float) -> SurveyProgress:
        everybody = self.collected.members.values()
        return SurveyProgress(
            seconds=now - self._began,
            wanted=self._seconds,
            members=len(everybody),
            answering=sum(each.answers > 0 for each in everybody),
            probes=sum(each.counts[0].sent for each in self.collected.ways.values()),
        )


def chosen_ways(sites: Mapping[MemberId, str], salt: int, most: int) -> list[Way]:
    """The ways to measure: all if there are few, else as many of each pair of sites.

    >>> chosen_ways({1: "", 2: ""}, 0, 10)
    [(1, 2), (2, 1)]
    """

    def place(*what: object) -> bytes:
        return blake2b(repr((salt, what)).encode(), digest_size=8).digest()

    groups: dict[str, deque[MemberId]] = {}
    for member in sorted(sites, key=place):
        groups.setdefault(sites[member], deque()).append(member)
    ends: list[MemberId] = []
    while len(ends) < min(_MOST_ENDS, len(sites)):  # as many of each site
        ends += [group.popleft() for group in groups.values() if group]
    kinds: dict[tuple[str, str], list[Way]] = {}
    for one in ends:
        for other in ends:
            if one != other:
                kinds.setdefault((sites[one], sites[other]), []).append((one, other))
    queues = [deque(sorted(ways, key=place)) for _, ways in sorted(kinds.items())]
    found: list[Way] = []
    while any(queues) and len(found) < most:
        found += [queue.popleft() for queue in queues if queue][: most - len(found)]
    return sorted(found)


def mixed(
    ways: list[Way], others: list[MemberId], rate: float, pause: float
) -> Iterator[tuple[MemberId, MemberId | None]]:
    """Questions in turn: about each way `rate` times a second, to each other every `pause`."""
    if not ways and not others:
        return
    turn, rest = cycle(ways), cycle(others)
    share = len(ways) * rate / (len(ways) * rate + len(others) / pause)
    credit = 0.0
    while True:
        credit += share
        if credit >= 1.0 - 1e-9:
            credit -= 1.0
            yield next(turn)
        else:
            yield next(rest), None
