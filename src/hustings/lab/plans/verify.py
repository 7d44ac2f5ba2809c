"""Predictions, tried on real processes: measured beside predicted, in one table.

The processes run on this machine, each in a network namespace (`real_group.py`). The network
between them has the delays, losses and bursts of the environment. For most of the time the leader
ends again and again: its process alone, its machine, and its site where the environment has
outages, by turns. Then nobody is killed, and processes are stopped (SIGSTOP) for as long as the
environment's pauses last, but more often: a wrong failover that comes once a month is not seen in
minutes. The rate that is seen then is scaled back.

Law: a measured number agrees with a prediction only if it lies in the interval that a sample of its
size would have, at 99 %. What real processes add (a busy machine, the resolution of its clocks) is
allowed for by `SLACK`, and said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

from hustings.core.durations import show_duration
from hustings.core.errors import BadInput
from hustings.core.streams import Stream, derive
from hustings.lab.plans.goals import show_rate
from hustings.lab.plans.history import History
from hustings.lab.plans.intervals import Interval, poisson_rate, quantile, rank
from hustings.lab.plans.real_group import MOST_MEMBERS, NotVerified, RealGroup, RealMember
from hustings.lab.plans.virtual import (
    CUT_OFF,
    MACHINE,
    PROCESS,
    SITE,
    WARM,
    observe,
    period_of,
)
from hustings.sim.environment import CUT, Environment
from hustings.sim.sites import SiteDelay, SiteLoss, Sites
from hustings.testing.surroundings import StreamRandom

if TYPE_CHECKING:
    from hustings.lab.plans.configuration import Configuration
    from hustings.lab.plans.virtual import ObservedGroup

LEAST = 10.0  # seconds of a verification
SLACK = 0.1  # seconds that a failover may take longer or shorter on a real machine ...
LATE = 5.0  # ... or so many times what the switch was late with 99 % of its packets
BYTES_SLACK = 0.25  # part by which bytes may differ: connections have heads that datagrams lack
CONFIDENCE = 0.99
MEDIAN, TAIL = 0.5, 0.99
_WATCHED = 0.5  # seconds after a failover in which a second leader still belongs to it
_WITHIN = 60.0  # seconds until members must agree
_PAUSED = 0.1  # part of the time in which somebody is paused, where pauses are made frequent
_SEEDS = 12  # groups on the virtual clock, where there is no prediction of this size
_FAILOVERS = 10  # of each of them
_CALM = 60.0
_FEWEST = 2  # failovers of a kind that are judged
# The time is divided: bytes are counted, leaders killed, nothing is done, and processes stopped.
_QUIET, _FAILING, _CALM_AGAIN = 0.1, 0.65, 0.75

_WORDS = {PROCESS: "a dead process", MACHINE: "a dead machine", SITE: "a failed site"}

Tell = Callable[[float, str], None]  # the part that is done, and what happens


@dataclass(frozen=True, slots=True)
class VerifiedRow:
    """One number: as predicted, and as measured."""

    what: str
    unit: str  # s, /s or B/s
    predicted: Interval
    measured: float
    samples: str  # what the measured number rests on
    agrees: bool

    def cells(self) -> tuple[str, str, str, str, str]:
        """The row of a table."""
        low, high = (shown(each, self.unit) for each in (self.predicted.low, self.predicted.high))
        predicted = f"{shown(self.predicted.value, self.unit)} ({low} to {high})"
        verdict = "agrees" if self.agrees else "DISAGREES"
        return self.what, predicted, shown(self.measured, self.unit), self.samples, verdict


@dataclass(frozen=True, slots=True)
class Verification:
    """What real processes did, beside what was predicted."""

    members: int
    seconds: float
    failovers: int
    pauses: int
    rows: tuple[VerifiedRow, ...]
    notes: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """Whether every number agrees with its prediction."""
        return all(row.agrees for row in self.rows)

    def to_json(self) -> dict[str, object]:
        """The same for scripts."""
        return {
            "members": self.members,
            "seconds": self.seconds,
            "failovers": self.failovers,
            "pauses": self.pauses,
            "agrees": self.agrees,
            "notes": list(self.notes),
            "rows": [
                {
                    "what": row.what,
                    "unit": row.unit,
                    "predicted": row.predicted.value,
                    "low": row.predicted.low,
                    "high": row.predicted.high,
                    "measured": row.measured,
                    "samples": row.samples,
                    "agrees": row.agrees,
                }
                for row in self.rows
            ],
        }


def shown(value: float, unit: str) -> str:
    """A number with its unit.

    >>> shown(1.2345, "s"), shown(0.0, "/s"), shown(1234.5, "B/s"), shown(math.inf, "s")
    ('1.23s', 'never', '1,234 B/s', 'no end')
    """
    if math.isinf(value):
        return "no end"
    if not unit:
        return f"{value:g}"
    if unit == "B/s":
        return f"{value:,.0f} B/s"
    if unit == "/s":
        return show_rate(value) if value > 0 else "never"
    return show_duration(float(f"{value:.3g}"))


def verify(
    configuration: Configuration,
    environment: Environment,
    predicted: ObservedGroup | None = None,
    *,
    seconds: float,
    seed: int = 0,
    members: int = 0,
    wrong: Interval | None = None,
    tell: Tell = lambda share, what: None,
) -> Verification:
    """Try a configuration on real processes for so many seconds.

    `predicted` is what members on the virtual clock did (`observe`); without it, or if it is of
    another size, they play now. At most 60 processes run: a larger group is tried at that size.
    `wrong` predicts the rate of wrong failovers, if there is more than a count of them.
    `members` counts if the environment leaves their number open. `NotVerified` says why processes
    could not be run.
    """
    if not LEAST <= seconds < math.inf:
        raise BadInput(f"a verification takes {LEAST:g} s or more, not {seconds:g}")
    wanted = environment.members or members
    if wanted < 2:
        raise BadInput("a verification needs two members or more: say how many")
    notes: list[str] = []
    smaller, few = reduced(configuration, environment, wanted)
    if few < wanted:
        notes.append(
            f"{few} processes stand for {wanted} members: that is how many one machine runs; the "
            "prediction beside them is for this size"
        )
    with RealGroup(configuration, smaller, few, seed) as group:
        if predicted is None or predicted.members != few:
            tell(0.0, "the group plays on the virtual clock")
            predicted = observe(
                configuration,
                smaller,
                seeds=range(_SEEDS),
                failovers_per_seed=_FAILOVERS,
                calm=_CALM,
                members=few,
            )
        tell(0.0, f"{few} processes start")
        group.start(group.members)
        kinds = [kind for kind in predicted.kinds if _ends(predicted, kind)]
        trial = _Trial(group, configuration, smaller, kinds, seconds, seed, tell)
        trial.play()
    rows = tuple(trial.rows(predicted, wrong or predicted.wrong_rate))
    if trial.faster > 1.0:
        notes.append(
            f"pauses came {trial.faster:,.0f} times as often as in the environment, and the rate "
            "of wrong failovers is scaled back by that"
        )
    allowed = show_duration(float(f"{trial.late:.2g}"))
    notes.append(f"a failover may differ by {allowed} more, as this machine is not always in time")
    notes += trial.notes
    return Verification(few, seconds, len(trial.ended), trial.pauses, rows, tuple(notes))


def reduced(
    configuration: Configuration, environment: Environment, members: int
) -> tuple[Environment, int]:
    """The environment with as many members as one machine runs, at all of its sites."""
    if members <= MOST_MEMBERS:
        return environment, members
    sites = environment.sites
    if max(configuration.voters, default=0) > MOST_MEMBERS or (
        sites is not None and configuration.voters
    ):
        raise NotVerified(
            f"a group of {members} members with voters is too large for one machine: verify it "
            f"with {MOST_MEMBERS} members at most"
        )
    if sites is None:
        return replace(environment, members=MOST_MEMBERS), MOST_MEMBERS
    part = MOST_MEMBERS / members
    sizes = tuple(max(1, int(size * part)) for size in sites.sizes)
    fewer = Sites(sites.names, sizes)
    delay, loss = environment.network.delay, environment.network.loss
    assert isinstance(delay, SiteDelay)
    network = replace(environment.network, delay=replace(delay, sites=fewer))
    if isinstance(loss, SiteLoss):
        network = replace(network, loss=SiteLoss.of(fewer, loss.within, loss.between))
    return replace(environment, network=network, sites=fewer, members=None), sum(sizes)


def scaled_back(calm: tuple[int, float], paused: tuple[int, float], faster: float) -> Interval:
    """The rate of events at the usual rate of pauses.

    Both are numbers of events and their time: with hardly any pause, and with pauses so many times
    as often. What pauses cause is what comes in addition.

    >>> scaled_back((0, 100.0), (20, 100.0), 10.0).value
    0.02
    """
    usual = poisson_rate(calm[0], max(calm[1], 1e-3), CONFIDENCE)
    if paused[1] <= 0.0:
        return usual
    often = poisson_rate(paused[0], paused[1], CONFIDENCE)
    more = max(0.0, often.value - usual.value) / faster
    # The usual rate is at most that with more pauses, and at least its part.
    low, high = max(usual.low, often.low / faster), min(usual.high, often.high)
    return Interval(usual.value + more, low, max(low, high), "scaled back")


class _NotAgreed(Exception):
    """The members did not agree on a leader in time."""


def _ends(predicted: ObservedGroup, kind: str) -> bool:
    """Whether most failovers of a kind are predicted to end: others would take all the time."""
    times = [each.until_all_follow for each in predicted.of_kind(kind)]
    return sum(map(math.isfinite, times)) * 2 > len(times)


def _most(late: Sequence[float]) -> float:
    """What 99 % of these are below; 0 if there are none."""
    values = sorted(late)
    return values[rank(TAIL, len(values)) - 1] if values else 0.0


@dataclass(frozen=True, slots=True)
class _Ended:
    """One leader's end, to be looked up in the history."""

    kind: str
    others: tuple[str, ...]
    successor: str | None
    begin: float
    end: float


class _Trial:
    """What is done to the processes, and what is read from their reports."""

    def __init__(
        self,
        group: RealGroup,
        configuration: Configuration,
        environment: Environment,
        kinds: Sequence[str],
        seconds: float,
        seed: int,
        tell: Tell,
    ) -> None:
        self._group = group
        self._kinds = kinds
        self._environment = environment
        self._seconds = seconds
        self._tell = tell
        self._chance = Stream(derive(seed, "verify"))
        self._laws = StreamRandom()
        self._phase = min(10.0, period_of(configuration))
        self._began = 0.0
        self._calm: list[tuple[float, float]] = []  # when nothing was done to anybody
        self._pausing = (0.0, 0.0)
        self._guarded = configuration.guard is not None
        self._bytes: dict[str, float] = {}  # of each member, per second
        self._leader = ""
        self.ended: list[_Ended] = []
        self.pauses = 0
        self.faster = 1.0
        self.notes: list[str] = []
        self.stuck = False  # members did not agree on a leader in time
        self.late = SLACK

    @property
    def _share(self) -> float:
        return min(1.0, (self._group.now - self._began) / self._seconds)

    def play(self) -> None:
        """Calm for the bytes, then failovers, then pauses."""
        group = self._group
        self._agreed(group.there)
        group.advance(WARM)
        self._began = group.now
        try:
            self._quiet(self._seconds * _QUIET)
            turn = 0
            while self._kinds and group.now < self._began + self._seconds * _FAILING:
                self._fail_over(self._kinds[turn % len(self._kinds)])
                turn += 1
            self._tell(self._share, "nothing is done to anybody")
            self._rest(self._began + self._seconds * _CALM_AGAIN)
            self._pause_some(self._began + self._seconds)
        except _NotAgreed:
            self.stuck = True
        self.late = max(SLACK, LATE * _most(self._group.switch.late))

    def _agreed(self, among: Sequence[RealMember]) -> RealMember:
        group = self._group
        if not group.holds(lambda: group.leader_of(among) is not None, _WITHIN):
            group.check()
            raise _NotAgreed
        leader = group.leader_of(among)
        assert leader is not None
        return leader

    def _quiet(self, seconds: float) -> None:
        """Count bytes while nothing is done to anybody."""
        self._tell(self._share, "bytes are counted")
        group = self._group
        self._leader = self._agreed(group.there).name
        before, began = group.bytes(), group.now
        self._rest(began + seconds)
        lasted, after = group.now - began, group.bytes()
        self._bytes = {name: (after[name] - before[name]) / lasted for name in before}

    def _rest(self, until: float) -> None:
        """Do nothing to anybody."""
        begin = self._group.now
        self._group.advance(max(0.0, until - begin))
        self._calm.append((begin, self._group.now))

    # Failovers

    def _fail_over(self, kind: str) -> None:
        """End the leader, and start its process again when all others have followed another."""
        group = self._group
        group.advance(self._phase * self._chance.random())
        leader = self._agreed(group.there)
        hit = self._site_of(leader) if kind == SITE else [leader]
        others = [each for each in group.there if each not in hit]
        outages = self._environment.outages
        cut = kind == SITE and (outages is None or outages.kind == CUT)
        begin = group.now
        if cut:
            group.cut(hit, others)
        else:
            for each in hit:
                group.kill(each, machine=kind != PROCESS)
        followed = group.holds(lambda: group.leader_of(others) is not None, _WITHIN)
        successor = group.leader_of(others) if followed else None
        group.advance(CUT_OFF if cut else _WATCHED)
        end = group.now
        if cut:
            group.heal()
        else:
            group.start(hit)
        self._agreed(group.there)
        names = tuple(each.name for each in others)
        found = None if successor is None else successor.name
        # Two leaders of two sites find each other only when the cut has ended.
        self.ended.append(_Ended(kind, names, found, begin, group.now if cut else end))
        self._tell(self._share, f"{len(self.ended)} leaders have ended")

    def _site_of(self, leader: RealMember) -> list[RealMember]:
        """The members at the leader's site."""
        sites = self._environment.sites
        assert sites is not None
        of = sites.of
        return [each for each in self._group.there if of(each.number) == of(leader.number)]

    # Pauses

    def _pause_some(self, until: float) -> None:
        """Stop processes for as long as the environment's pauses last."""
        group, law = self._group, self._environment.pauses
        if law is None:
            self._rest(until)
            return
        begin = group.now
        rng = self._laws.upon(self._chance)
        usual = fmean(law.draw(rng, 1) for _ in range(200))
        own = law.rate * len(group.members)  # of all members together
        rate = max(own, min(0.5, _PAUSED / max(usual, 0.02)))
        self.faster = rate / own
        ends: dict[str, float] = {}
        following = group.now + self._chance.expovariate(rate)
        while group.now < until:
            group.check()
            now = group.now
            for member in group.there:
                if member.name in ends and ends[member.name] <= now:
                    del ends[member.name]
                    group.resume(member)
            if now >= following:
                following = now + self._chance.expovariate(rate)
                running = [each for each in group.there if not each.paused]
                if running:
                    member = running[self._chance.below(len(running))]
                    group.pause(member)
                    ends[member.name] = now + law.draw(rng, member.number)
                    self.pauses += 1
                    self._tell(self._share, f"{self.pauses} processes were stopped for a while")
            soonest = min([following, until, *ends.values()])
            group.turn(max(0.0, min(0.05, soonest - group.now)))
        for member in group.there:
            if member.paused:
                group.resume(member)
        group.holds(lambda: not any(each.paused for each in group.there), _WITHIN)
        self._pausing = (begin, group.now)

    # What follows from it

    def rows(self, predicted: ObservedGroup, wrong: Interval) -> list[VerifiedRow]:
        """Each prediction beside what was measured."""
        history = History(self._group.log, self._group.changes, self._group.now)
        rows = [self._agreement(predicted)]
        for kind in self._kinds:
            rows += self._failovers(kind, history, predicted)
        rows.append(self._wrong(history, wrong))
        rows.append(self._two_leaders(history, predicted))
        return rows + self._traffic(predicted)

    def _agreement(self, predicted: ObservedGroup) -> VerifiedRow:
        """Whether members agreed on a leader each time, as they are predicted to."""
        runs = len(predicted.failovers) + len(predicted.calm)
        unsettled = float(len(predicted.unsettled))
        expected = Interval(unsettled, 0.0, unsettled, f"of {runs} runs")
        samples = f"{len(self.ended)} failovers"
        fits = not (self.stuck and not unsettled)
        what = f"no agreement within {_WITHIN:.0f} s"
        return VerifiedRow(what, "", expected, float(self.stuck), samples, fits)

    def _failovers(
        self, kind: str, history: History, predicted: ObservedGroup
    ) -> list[VerifiedRow]:
        mine = [each for each in self.ended if each.kind == kind]
        theirs = predicted.of_kind(kind)
        if len(mine) < _FEWEST or not theirs:
            self.notes.append(
                f"{len(mine)} failovers after {_WORDS[kind]} are too few to judge: verify for "
                "longer"
            )
            return []
        times = [
            math.inf
            if each.successor is None
            else history.all_follow(each.begin, each.end, each.others, each.successor) - each.begin
            for each in mine
        ]
        values = [each.until_all_follow for each in theirs]
        seeds = [each.seed for each in theirs]
        found = []
        for p, word in ((MEDIAN, "half"), (TAIL, "99 %")):
            expected = quantile(values, p, clusters=seeds, future=len(times), confidence=CONFIDENCE)
            measured = sorted(times)[rank(p, len(times)) - 1]
            fits = expected.low - self.late <= measured <= expected.high + self.late
            what = f"failover after {_WORDS[kind]}, {word} within"
            samples = f"{len(times)} failovers"
            found.append(VerifiedRow(what, "s", expected, measured, samples, fits))
        return found

    def _wrong(self, history: History, expected: Interval) -> VerifiedRow:
        calm = (sum(history.lost(*each) for each in self._calm), sum(e - b for b, e in self._calm))
        begin, end = self._pausing
        paused = (history.lost(begin, end), end - begin)
        found = scaled_back(calm, paused, self.faster)
        fits = found.low <= expected.high and expected.low <= found.high
        samples = f"{calm[0]} in {calm[1]:.0f} s of calm"
        if self.pauses:
            samples += f", {paused[0]} in {paused[1]:.0f} s with {self.pauses} pauses"
        samples += f": at most {shown(found.high, '/s')}"
        return VerifiedRow("wrong failovers", "/s", expected, found.value, samples, fits)

    def _two_leaders(self, history: History, predicted: ObservedGroup) -> VerifiedRow:
        seen = [history.most_at_once(each.begin, each.end) for each in self.ended]
        seen += [history.most_at_once(*each) for each in self._calm]
        if self._guarded:  # else frequent pauses bring more than the prediction speaks of
            seen.append(history.most_at_once(*self._pausing))
        longest = max(seen, default=0.0)
        values = [each.two_leaders for each in predicted.failovers] or [predicted.two_leaders]
        high = max(predicted.two_leaders, *values)
        expected = Interval(predicted.two_leaders, 0.0, high, "longest of all")
        # One that is never seen on the virtual clock must not be seen here, but for a late report.
        samples = f"{len(self.ended)} failovers"
        if self._guarded and self.pauses:
            samples += f", {self.pauses} pauses"
        fits = longest <= high + self.late / 2
        return VerifiedRow("two leaders at once, longest", "s", expected, longest, samples, fits)

    def _traffic(self, predicted: ObservedGroup) -> list[VerifiedRow]:
        if not self._bytes or not predicted.calm:
            return []
        others = [rate for name, rate in self._bytes.items() if name != self._leader]
        pairs = [
            ("bytes of the leader", predicted.bytes_leader, self._bytes[self._leader]),
            ("bytes of another member", predicted.bytes_member, fmean(others)),
        ]
        rows = []
        for what, expected, measured in pairs:
            low, high = (1.0 - BYTES_SLACK) * expected.low, (1.0 + BYTES_SLACK) * expected.high
            samples = f"{self._seconds * _QUIET:.0f} s of calm"
            rows.append(
                VerifiedRow(what, "B/s", expected, measured, samples, low <= measured <= high)
            )
        return rows
