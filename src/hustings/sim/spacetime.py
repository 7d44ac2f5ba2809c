"""The content of a space-time diagram, before it is drawn: lifelines, arrows, marks, time scale.

There is one lifeline per member. There is an arrow for every message that a member received or
lost, or whose fate the trace does not show. There is a mark for everything else that happened to a
member. There is a reign for every stretch of time in which a member held one leader of one term.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from enum import Enum
from statistics import median

from hustings.core.choice import MemberId
from hustings.core.outcome import Elected, NoLeader, Outcome
from hustings.sim.selection import (
    Chosen,
    Heartbeats,
    Options,
    choose,
    cut,
    ids_text,
    message_text,
    of_detector,
    outcome_text,
    told_text,
)
from hustings.sim.trace import Changed, Declared, Fired, Linked, Lost, Received, Sent, Told
from hustings.sim.trace_read import Event, Trace, kind


class Fate(Enum):
    """The fate of a message."""

    ARRIVED = "arrived"
    LOST = "lost"
    UNKNOWN = "unknown"  # the drawn part of the run ends before it is known


@dataclass(frozen=True, slots=True)
class Arrow:
    """One message on its way to one member, or (None) to all of them."""

    number: int
    kind: str
    text: str
    sender: MemberId
    receiver: MemberId | None
    left: float
    ended: float
    fate: Fate
    why: str = ""
    dim: bool = False


class Sort(Enum):
    """The kinds of marks."""

    TIMER = "timer"
    TOLD = "told"
    LEADS = "leads"
    FOLLOWS = "follows"
    NO_LEADER = "no leader"
    GAVE_UP = "gave up"
    STARTED = "started"
    RESTARTED = "restarted"
    CRASHED = "crashed"
    PAUSED = "paused"
    RESUMED = "resumed"
    LEFT = "left"


def sort_of_change(before: str, event: Changed) -> Sort:
    """The mark for a change of status, given the status before."""
    if event.status != "up":
        return Sort(event.status)
    if before == "paused":
        return Sort.RESUMED
    return Sort.RESTARTED if event.incarnation > 1 else Sort.STARTED


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened to one member."""

    t: float
    member: MemberId
    sort: Sort
    text: str
    dim: bool = False


@dataclass(frozen=True, slots=True)
class Life:
    """A stretch of one member's time with one status."""

    member: MemberId
    begin: float
    end: float
    status: str


@dataclass(frozen=True, slots=True)
class Reign:
    """A stretch of time in which `member` held `leader` as the leader of `term`."""

    member: MemberId
    begin: float
    end: float
    leader: MemberId
    term: int


@dataclass(frozen=True, slots=True)
class Cut:
    """A stretch of time in which links were cut."""

    name: str
    what: str
    sides: tuple[tuple[MemberId, ...], ...]
    begin: float
    end: float

    @property
    def text(self) -> str:
        """The cut's name, and which members cannot reach which."""
        between = " > " if self.what == "one-way" else " | "
        sides = between.join(ids_text(list(side)) for side in self.sides)
        return cut(f"{self.name}: {sides}" if sides else self.name)


@dataclass(slots=True)
class Layout:
    """Everything that a diagram shows."""

    members: list[MemberId]
    begin: float
    end: float
    arrows: list[Arrow] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    lives: list[Life] = field(default_factory=list)
    reigns: list[Reign] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


# --- laying out -----------------------------------------------------------------------------------


def lay_out(trace: Trace, options: Options | None = None) -> Layout:
    """Everything that a diagram of this trace shows."""
    options = options or Options()
    chosen = choose(trace, options)
    layout = Layout(chosen.members, min(options.since, chosen.end), chosen.end)
    layout.left_out = chosen.left_out
    builder = _Builder(chosen, options)
    for event in chosen.events:
        builder.take(event)
    builder.finish(layout)
    return layout


class _Builder:
    """Walks through the events and remembers what is still open."""

    def __init__(self, chosen: Chosen, options: Options) -> None:
        self._chosen = chosen
        self._members = frozenset(chosen.members)
        self._dim = options.heartbeats is Heartbeats.DIMMED
        self._since = options.since
        self._arrows: dict[int, list[Arrow]] = {}
        self._marks: list[Mark] = []
        self._lives: list[Life] = []
        self._reigns: list[Reign] = []
        self._cuts: list[Cut] = []
        self._status: dict[MemberId, tuple[float, str]] = {}
        self._belief: dict[MemberId, tuple[float, MemberId, int]] = {}
        self._open_cuts: dict[str, Linked] = {}

    def take(self, event: Event) -> None:
        match event:
            case Sent():
                self._arrows[event.n] = []
            case Received(t, member, number):
                self._fly(number, member, t, Fate.ARRIVED)
            case Lost(t, number, to, why):
                self._fly(number, to, t, Fate.LOST, cut(why))
            case Fired(t, member, key):
                dim = self._dim and of_detector(event, self._chosen.sent)
                self._marks.append(Mark(t, member, Sort.TIMER, cut(key), dim))
            case Told(t, member):
                self._mark(t, member, Sort.TOLD, told_text(event))
            case Declared(t, member, outcome):
                self._declare(t, member, outcome)
            case Changed():
                self._change(event)
            case Linked():
                self._link(event)

    def finish(self, layout: Layout) -> None:
        """Close what is open, and return what lies in the drawn part."""
        end = layout.end
        for number, arrows in self._arrows.items():
            if not arrows:
                self._fly(number, self._chosen.sent[number].to, end, Fate.UNKNOWN)
        for member, (begin, status) in self._status.items():
            self._lives.append(Life(member, begin, end, status))
        for member in list(self._belief):
            self._depose(member, end)
        for name in list(self._open_cuts):
            self._heal(name, end)
        since, members = layout.begin, self._members
        layout.arrows = [
            arrow
            for arrows in self._arrows.values()
            for arrow in arrows
            if arrow.ended >= since
            and arrow.sender in members
            and (arrow.receiver is None or arrow.receiver in members)
        ]
        layout.marks = [mark for mark in self._marks if mark.t >= since and mark.member in members]
        layout.lives = [
            life for life in self._lives if life.end >= since and life.member in members
        ]
        layout.reigns = [one for one in self._reigns if one.end >= since and one.member in members]
        layout.cuts = [one for one in self._cuts if one.end >= since]

    def _fly(self, number: int, to: MemberId | None, t: float, fate: Fate, why: str = "") -> None:
        sent = self._chosen.sent[number]
        name = kind(sent)
        dim = self._dim and of_detector(sent, self._chosen.sent)
        arrow = Arrow(
            number, cut(name, 24), message_text(sent), sent.m, to, sent.t, t, fate, why, dim
        )
        self._arrows.setdefault(number, []).append(arrow)

    def _mark(self, t: float, member: MemberId, sort: Sort, text: str) -> None:
        self._marks.append(Mark(t, member, sort, text))

    def _declare(self, t: float, member: MemberId, outcome: Outcome) -> None:
        self._depose(member, t)
        sort = Sort.NO_LEADER if isinstance(outcome, NoLeader) else Sort.GAVE_UP
        if isinstance(outcome, Elected):
            sort = Sort.LEADS if outcome.leader == member else Sort.FOLLOWS
            self._belief[member] = (t, outcome.leader, outcome.term)
        self._mark(t, member, sort, outcome_text(member, outcome))

    def _depose(self, member: MemberId, t: float) -> None:
        belief = self._belief.pop(member, None)
        if belief is not None:
            begin, leader, term = belief
            self._reigns.append(Reign(member, begin, t, leader, term))

    def _change(self, event: Changed) -> None:
        t, member, status = event.t, event.m, event.status
        before = self._status.get(member, (0.0, "out"))
        if before[1] != "out":
            self._lives.append(Life(member, before[0], t, before[1]))
        self._status[member] = (t, status)
        if status in ("crashed", "left"):
            self._depose(member, t)
        sort = sort_of_change(before[1], event)
        text = f"incarnation {event.incarnation}" if sort is Sort.RESTARTED else sort.value
        self._mark(t, member, sort, cut(text))

    def _link(self, event: Linked) -> None:
        self._heal(event.name, event.t)
        if event.what != "heal":
            self._open_cuts[event.name] = event

    def _heal(self, name: str, t: float) -> None:
        began = self._open_cuts.pop(name, None)
        if began is not None:
            self._cuts.append(Cut(cut(name, 24), began.what, began.sides, began.t, t))


# --- time -----------------------------------------------------------------------------------------


class Scale:
    """Places instants along the time axis, in steps of one usual message delay.

    The axis is true to time with two exceptions: long empty stretches are shortened (`breaks`), and
    instants that differ are kept a little apart.
    """

    NEAR = 0.08
    FAR = 2.0

    def __init__(self, layout: Layout) -> None:
        instants = [layout.begin, layout.end]
        instants += [t for arrow in layout.arrows for t in (arrow.left, arrow.ended)]
        instants += [mark.t for mark in layout.marks]
        instants += [t for one in layout.cuts for t in (one.begin, one.end)]
        shown = sorted(t for t in instants if layout.begin <= t <= layout.end)
        self.instants = list(dict.fromkeys(shown))
        gaps = [b - a for a, b in zip(self.instants, self.instants[1:], strict=False)]
        delays = [arrow.ended - arrow.left for arrow in layout.arrows if arrow.fate is Fate.ARRIVED]
        usual = [delay for delay in delays if delay > 0] or gaps or [1.0]
        self.step = median(usual)
        self.places = [0.0]
        self.breaks: list[tuple[float, float]] = []  # instants between which time was shortened
        for begin, gap in zip(self.instants, gaps, strict=False):
            width = gap / self.step
            if width > self.FAR * 2:
                self.breaks.append((begin, begin + gap))
                width = self.FAR
            self.places.append(self.places[-1] + max(width, self.NEAR))

    @property
    def length(self) -> float:
        """The place of the last instant."""
        return self.places[-1]

    def place(self, t: float) -> float:
        """Where an instant lies; an instant outside the drawn part lies beyond the ends."""
        instants, places = self.instants, self.places
        at = bisect_right(instants, t) - 1
        if at < 0:
            return -min((instants[0] - t) / self.step, self.FAR)
        if at + 1 == len(instants):
            return places[at] + min((t - instants[at]) / self.step, self.FAR)
        share = (t - instants[at]) / (instants[at + 1] - instants[at])
        return places[at] + share * (places[at + 1] - places[at])
