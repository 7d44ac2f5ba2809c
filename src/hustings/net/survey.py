"""The answering side of `hustings measure`: what a member does when a survey asks it.

    observer --SURVEY--> a            a sends a train of numbered probes to b, and answers
    a --SURVEY-PROBE--> b, four times in a row
    b --SURVEY-ECHO--> a, once each   with the numbers of the probes that have come
    a --SURVEY-REPLY--> observer      what a knows by now: losses of each way, round trips, stalls

An echo tells which probes have come. So a lost probe and a lost echo are told apart, and the two
ways have counts of their own. Within a train no other message comes between two probes. So the
share of losses right after a loss says how long bursts are. Before anything is counted, `_SETTLE`
seconds pass: a probe that was overtaken is not lost.

What a stall delays or drops says nothing about the network. An echo tells how often its process has
stood still. When that number changes, the trains under way are not counted.

Bounds     A member answers members of its view at addresses that are proven, and nobody else. One
           question causes one train, of at most `MOST_PROBES` probes. All surveys together cause at
           most `_PROBES` probes and `_ECHOES` echoes a second. Every table has a limit.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from hustings.core.choice import MemberId
from hustings.net.clock import fine_time, member_clock
from hustings.net.control_messages import (
    MOST_PROBES,
    MOST_TRIPS,
    LinkReport,
    SurveyEchoMsg,
    SurveyMsg,
    SurveyProbeMsg,
    SurveyReplyMsg,
    WayCounts,
)
from hustings.net.limits import Rates
from hustings.net.transport import Endpoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from hustings.net.node import MemberNode
    from hustings.net.wire import Received

KEEP = 12.0  # seconds for which a member watches itself after a question
_PROBES = 100.0  # probes per second, for all surveys; as many at once
_ECHOES = 400.0  # echoes per second, to all members; as many at once
_SETTLE = 2.0  # seconds after which a probe without an echo is lost
_GIVE_UP = 10.0  # seconds after which it stays unknown what became of a probe
_WINDOW = 62  # probes that an echo tells of: bits of a number on the wire
_LINKS = 64  # ways that are measured for surveys at a time
_SERIES = 1024  # senders of probes that are remembered
_LARGEST = 1 << 53


@dataclass(slots=True)
class SentProbe:
    """A probe that went out, and what is known of it."""

    at: float
    heard: bool = False  # it has come
    told: bool = False  # an echo of a later train has told whether
    trip: float | None = None  # seconds until its own echo came


@dataclass(slots=True)
class MeasuredLink:
    """What is known of the way to one member and back, for one survey."""

    target: MemberId
    incarnation: int = 0  # of the target
    stalls: tuple[int, int] = (-1, -1)  # of the target and of this process, as last known
    number: int = 0
    trains: deque[dict[int, SentProbe]] = field(default_factory=deque)  # not counted yet
    out: WayCounts = field(default_factory=WayCounts)
    back: WayCounts = field(default_factory=WayCounts)
    unsettled: int = 0
    trips: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_TRIPS))
    trip_count: int = 0

    def train(self, now: float, probes: int) -> list[int]:
        """The numbers of the next train."""
        numbers = [self.number + each for each in range(probes)]
        self.number += probes
        self.trains.append({number: SentProbe(now) for number in numbers})
        return numbers

    def echoed(self, message: SurveyEchoMsg, incarnation: int, stalls: int, now: float) -> None:
        """An echo has come; `stalls` of this process."""
        known = (message.stalls, stalls)
        if (self.incarnation, self.stalls) != (incarnation, known):
            if self.stalls[0] >= 0:
                self.trains.clear()  # what a stall did is not the network's doing
            self.incarnation, self.stalls = incarnation, known
        for train in self.trains:
            for number, probe in train.items():
                if 0 <= (back := message.number - number) < _WINDOW:
                    probe.heard = probe.heard or bool(message.heard >> back & 1)
                    # An echo of the same train may have overtaken a probe of it.
                    probe.told = probe.told or message.number not in train
                if number == message.number and probe.trip is None:
                    probe.trip = now - probe.at

    def settle(self, now: float) -> None:
        """Count the trains of which everything is known."""
        while self.trains:
            probes = list(self.trains[0].values())
            age = now - probes[-1].at
            if age < _SETTLE or (age < _GIVE_UP and not all(each.told for each in probes)):
                return
            self.trains.popleft()
            if all(each.told for each in probes):
                self._count(probes)
            else:
                self.unsettled += len(probes)

    def _count(self, probes: list[SentProbe]) -> None:
        came = [each for each in probes if each.heard]
        self.out = counted(self.out, [not each.heard for each in probes])
        # Echoes leave in the order in which probes came, which is not known: no bursts there.
        lost = sum(each.trip is None for each in came)
        self.back = WayCounts(self.back.sent + len(came), self.back.lost + lost)
        # One of each train: the others of a train are no further sample.
        first = next((each.trip for each in came if each.trip is not None), None)
        if first is not None:
            self.trips.append(first)
            self.trip_count += 1

    def report(self) -> LinkReport:
        """What is known, as it is told."""
        trips = tuple(self.trips)
        return LinkReport(self.target, self.out, self.back, self.unsettled, trips, self.trip_count)


def counted(counts: WayCounts, lost: list[bool]) -> WayCounts:
    """The counts after one more train, of which these were lost.

    >>> counted(WayCounts(), [False, True, True, False])
    WayCounts(sent=4, lost=2, after_loss=2, lost_again=1)
    """
    following = [after for before, after in pairwise(lost) if before]
    return WayCounts(
        counts.sent + len(lost),
        counts.lost + sum(lost),
        counts.after_loss + len(following),
        counts.lost_again + sum(following),
    )


class SurveyAnswers:
    """One node's part in surveys."""

    def __init__(self, node: MemberNode) -> None:
        self._node = node
        self._clock = member_clock()
        self._time = fine_time(self._clock)
        self._links: dict[
            tuple[MemberId, int, MemberId], MeasuredLink
        ] = {}  # asker, survey, target
        # Of each sender and survey: its incarnation, the highest number, and the window's bits.
        self._heard: dict[tuple[MemberId, int], tuple[int, int, int]] = {}
        self._probes = Rates(_PROBES, round(_PROBES), 1)
        self._echoes = Rates(_ECHOES, round(_ECHOES), 1)
        # Of a member that asks: gets the answers.
        self.replies: Callable[[Received, SurveyReplyMsg], None] | None = None

    def heard(self, got: Received, source: Endpoint) -> None:
        """A message of a survey has come."""
        message, now = got.message, self._time()
        self._node.runner.stall_detector.watch.look(self._clock.time())
        match message:
            case SurveyMsg():
                if self._answers(got.sender, source):
                    self._asked(got.sender, message, now)
            case SurveyProbeMsg():
                if self._answers(got.sender, source) and self._echoes.allow(None, now):
                    self._echo(got, message)
            case SurveyEchoMsg():
                self._echoed(got, message, now)
            case SurveyReplyMsg() if self.replies is not None:
                self.replies(got, message)

    def _answers(self, sender: MemberId, source: Endpoint) -> bool:
        """Whether the sender is a member that is known to be there; else it is asked first."""
        node = self._node
        if node.stack.membership.circle.entry(sender) is None:
            return False  # a suspect is answered: silence would look like loss
        if node.address_validation.reached(sender, source):
            return True
        if node.address_book.endpoint(sender) == source:
            node.address_validation.ask(sender, source)
        return False

    def _asked(self, asker: MemberId, message: SurveyMsg, now: float) -> None:
        node, link = self._node, None
        watch = node.runner.stall_detector.watch
        watch.keep(self._clock, KEEP)
        if message.target is not None and message.target != node.runner.me.id:
            link = self._link((asker, message.series, message.target))
            link.settle(now)
            self._send_train(link, message, now)
        node.transmit(
            asker,
            SurveyReplyMsg(
                series=message.series,
                number=message.number,
                clock=now,
                watched=watch.watched,
                stalls=tuple(
                    (watch.count - back, max(0.0, self._clock.time() - ended), length)
                    for back, (ended, length) in enumerate(reversed(watch.recent))
                ),
                stall_count=watch.count,
                longest=watch.longest,
                link=None if link is None else link.report(),
            ),
        )

    def _link(self, key: tuple[MemberId, int, MemberId]) -> MeasuredLink:
        link = self._links.pop(key, None) or MeasuredLink(key[2])
        self._links[key] = link
        if len(self._links) > _LINKS:
            del self._links[next(iter(self._links))]
        return link

    def _send_train(self, link: MeasuredLink, message: SurveyMsg, now: float) -> None:
        """Send the probes, if the target's address is proven and the rate allows them."""
        node, target = self._node, link.target
        endpoint = node.address_book.endpoint(target)
        if endpoint is None or node.stack.membership.circle.entry(target) is None:
            return
        if not node.address_validation.reached(target, endpoint):
            node.address_validation.ask(target, endpoint)
            return
        probes = min(message.probes, MOST_PROBES)
        allowed = sum(self._probes.allow(None, now) for _ in range(probes))
        if allowed and link.number + allowed < _LARGEST:
            for number in link.train(now, allowed):
                node.transmit(target, SurveyProbeMsg(message.series, number))

    def _echo(self, got: Received, message: SurveyProbeMsg) -> None:
        key = (got.sender, message.series)
        incarnation, highest, bits = self._heard.pop(key, (0, 0, 0))
        if incarnation != got.incarnation or abs(message.number - highest) > _LARGEST:
            highest, bits = message.number, 0
        ahead = message.number - highest
        if ahead > 0:
            bits = bits << ahead if ahead < _WINDOW else 0
            highest, ahead = message.number, 0
        if -ahead < _WINDOW:
            bits |= 1 << -ahead
        bits &= (1 << _WINDOW) - 1
        self._heard[key] = (got.incarnation, highest, bits)
        if len(self._heard) > _SERIES:
            del self._heard[next(iter(self._heard))]
        watch = self._node.runner.stall_detector.watch
        heard = bits >> -ahead | 1
        echo = SurveyEchoMsg(message.series, message.number, heard, watch.count)
        self._node.transmit(got.sender, echo)

    def _echoed(self, got: Received, message: SurveyEchoMsg, now: float) -> None:
        stalls = self._node.runner.stall_detector.watch.count
        for (_, series, target), link in self._links.items():
            if series == message.series and target == got.sender and message.number < link.number:
                link.echoed(message, got.incarnation, stalls, now)
