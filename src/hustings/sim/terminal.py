"""The space-time diagram as text: time downwards, one column per member, one row per event.

Messages of one kind that a member sends, or receives, in one go share a row. Columns draw together
when the group grows; when even then they leave no room for words, the rows are words alone. Nothing
from the trace reaches the terminal but printable characters one cell wide.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from unicodedata import combining, east_asian_width

from hustings.core.choice import MemberId
from hustings.core.outcome import Elected, GaveUp
from hustings.sim.selection import (
    Chosen,
    Drawing,
    Options,
    choose,
    cut,
    ids_text,
    outcome_text,
    told_text,
)
from hustings.sim.spacetime import Cut, Sort, sort_of_change
from hustings.sim.trace import Changed, Declared, Fired, Linked, Lost, Received, Sent, Told
from hustings.sim.trace_read import Event, Said, Trace, kind

WIDTH = 100
_NARROWEST = 40
_WORDS = 30  # cells that the words need
_PITCHES = (5, 4, 3, 2)  # cells from one column to the next

_STATUS_WORDS = {
    Sort.STARTED: ("starts", "start"),
    Sort.RESTARTED: ("restarts", "restart"),
    Sort.RESUMED: ("goes on", "go on"),
    Sort.CRASHED: ("crashes", "crash"),
    Sort.PAUSED: ("pauses", "pause"),
    Sort.LEFT: ("leaves", "leave"),
}


@dataclass(frozen=True, slots=True)
class _Signs:
    """The characters of a diagram."""

    line: dict[str, str]  # by status; "leads" is one more
    sort: dict[Sort, str]
    sent: str
    left: str
    right: str
    dash: str
    cross: str
    received: str
    lost: str
    cut: str


_UNICODE = _Signs(
    line={"up": "│", "leads": "║", "paused": "┊", "crashed": "·", "left": " ", "out": " "},
    sort={
        Sort.TIMER: "t",
        Sort.TOLD: "!",
        Sort.LEADS: "★",
        Sort.FOLLOWS: "☆",
        Sort.NO_LEADER: "○",
        Sort.GAVE_UP: "■",
        Sort.STARTED: "△",
        Sort.RESTARTED: "▲",
        Sort.RESUMED: "▲",
        Sort.CRASHED: "✖",
        Sort.PAUSED: "=",
        Sort.LEFT: "□",
    },
    sent="●",
    left="◂",
    right="▸",
    dash="─",
    cross="┼",
    received="▾",
    lost="\N{MULTIPLICATION SIGN}",
    cut="~",
)

_ASCII = _Signs(
    line={"up": "|", "leads": "H", "paused": ":", "crashed": ".", "left": " ", "out": " "},
    sort={
        Sort.TIMER: "t",
        Sort.TOLD: "!",
        Sort.LEADS: "*",
        Sort.FOLLOWS: "f",
        Sort.NO_LEADER: "0",
        Sort.GAVE_UP: "#",
        Sort.STARTED: "^",
        Sort.RESTARTED: "^",
        Sort.RESUMED: "^",
        Sort.CRASHED: "X",
        Sort.PAUSED: "=",
        Sort.LEFT: "_",
    },
    sent="o",
    left="<",
    right=">",
    dash="-",
    cross="+",
    received="v",
    lost="x",
    cut="~",
)


def draw_text(
    trace: Trace, options: Options | None = None, *, width: int = WIDTH, plain: bool = False
) -> Drawing:
    """The run log of a trace, at most `width` cells wide; `plain` keeps to ASCII."""
    options = options or Options()
    chosen = choose(trace, options)
    log = _Log(chosen, max(width, _NARROWEST), _ASCII if plain else _UNICODE)
    lines = log.head()
    for group in _bursts(chosen):
        row = log.row(group)
        if group[0].t >= options.since and row is not None:
            lines.append(row)
    lines += [f"left out: {sentence}" for sentence in chosen.left_out]
    lines.append(f"ended: {cut(trace.footer.ended)} at t = {trace.footer.t:g}")
    safe = [_one_cell_each(line, plain) for line in lines]
    return Drawing("\n".join(safe) + "\n", tuple(chosen.left_out))


def _one_cell_each(text: str, plain: bool) -> str:
    return "".join(
        char
        if char.isascii() or not (plain or combining(char) or east_asian_width(char) in "WF")
        else "?"
        for char in text
    )


def _bursts(chosen: Chosen) -> Iterator[list[Event]]:
    """Events that share a row: neighbours at one instant that say the same."""
    burst: list[Event] = []
    for event in chosen.events:
        if burst and _same(burst[-1], event, chosen.sent):
            burst.append(event)
            continue
        if burst:
            yield burst
        burst = [event]
    if burst:
        yield burst


def _same(one: Event, other: Event, sent: dict[int, Sent[Said]]) -> bool:
    if one.t != other.t:
        return False
    if isinstance(one, Changed) and isinstance(other, Changed):
        return (one.status, one.incarnation) == (other.status, other.incarnation)
    if isinstance(one, Sent | Received) and type(one) is type(other):
        assert isinstance(other, Sent | Received)
        first, second = sent[one.n], sent[other.n]
        single = first.to is not None and second.to is not None
        return single and one.m == other.m and kind(first) == kind(second)
    return False


class _Log:
    """Follows the members from event to event and writes the rows."""

    def __init__(self, chosen: Chosen, width: int, signs: _Signs) -> None:
        self._chosen = chosen
        self._signs = signs
        self._width = width
        count = len(chosen.members)
        whole = all(event.t == int(event.t) for event in chosen.events)
        self._places = 0 if whole else 3  # of times, after the point
        self._margin = max(6, len(self._time(chosen.end))) + 2
        self._pitch = next((p for p in _PITCHES if self._margin + p * count + _WORDS <= width), 0)
        self._column = {member: i * self._pitch for i, member in enumerate(chosen.members)}
        self._status = dict.fromkeys(chosen.members, "out")
        self._leads = dict.fromkeys(chosen.members, False)
        self._told: float | None = None  # the time written last
        self._room = width - self._margin - self._pitch * count

    def _time(self, t: float) -> str:
        return f"{t:.{self._places}f}" if t < 1e12 else f"{t:.6g}"

    def head(self) -> list[str]:
        """The members' ids above their columns, written downwards where they are too long."""
        if not self._pitch:
            return [self._stamped("time", "")]
        names = [str(member) for member in self._chosen.members]
        high = max(map(len, names))
        if high < self._pitch:
            ids = "".join(f"{name:<{self._pitch}}" for name in names)
            return [self._stamped("time", ids)]
        lines = []
        for place in range(high):
            cells = "".join(f"{name.rjust(high)[place]:<{self._pitch}}" for name in names)
            lines.append(self._stamped("time" if place == high - 1 else "", cells))
        return lines

    def row(self, burst: list[Event]) -> str | None:
        """One row; none when it concerns only members that are not drawn."""
        cells, words = self._cells(burst)
        if not words:
            return None
        t = burst[0].t
        stamp = "" if t == self._told else self._time(t)
        self._told = t
        return self._stamped(stamp, "".join(cells) + cut(words, self._room))

    def _stamped(self, stamp: str, rest: str) -> str:
        return f"{stamp:>{self._margin - 2}}  {rest}".rstrip()

    # What happened

    def _cells(self, burst: list[Event]) -> tuple[list[str], str]:
        event = burst[0]
        match event:
            case Sent():
                return self._sends([one for one in burst if isinstance(one, Sent)])
            case Received(_, member):
                senders = [self._chosen.sent[one.n].m for one in burst if isinstance(one, Received)]
                name = cut(kind(self._chosen.sent[event.n]), 24)
                words = f"{member} receives {name} from {ids_text(senders)}"
                return self._marked([member], self._signs.received, words)
            case Lost():
                return self._loses(event)
            case Changed():
                return self._changes([one for one in burst if isinstance(one, Changed)])
            case Declared():
                return self._declares(event)
            case Fired(_, member, key):
                return self._marked([member], self._sign(Sort.TIMER), f"{member}: timer {cut(key)}")
            case Told(_, member):
                return self._marked([member], self._sign(Sort.TOLD), f"{member} {told_text(event)}")
            case Linked(t, what, name, sides):
                text = Cut(cut(name, 24), what, sides, t, t).text
                cells = self._blank()
                for place in range(max(0, len(cells) - self._pitch)):
                    cells[place] = self._signs.cut if cells[place] == " " else cells[place]
                return cells, f"links healed: {text}" if what == "heal" else f"links cut: {text}"

    def _sends(self, burst: list[Sent[Said]]) -> tuple[list[str], str]:
        sender, name = burst[0].m, cut(kind(burst[0]), 24)
        targets = [one.to for one in burst if one.to is not None]
        to = ids_text(targets) if targets else "all"
        words = f"{sender} sends {name} to {to}"
        cells, words = self._marked([sender], self._signs.sent, words)
        if not words or not self._pitch:
            return cells, words
        home = self._column[sender]
        reached = [self._column[member] for member in targets if member in self._column]
        if not targets:
            reached = [column for column in self._column.values() if column != home]
        for place in range(min([home, *reached]), max([home, *reached])):
            if cells[place] == " ":
                cells[place] = self._signs.dash
            elif place != home:
                cells[place] = self._signs.cross
        for column in reached:
            if column != home:
                cells[column] = self._signs.left if column < home else self._signs.right
        return cells, words

    def _loses(self, event: Lost) -> tuple[list[str], str]:
        sent = self._chosen.sent[event.n]
        to = "all" if event.to is None else str(event.to)
        words = f"lost: {cut(kind(sent), 24)} from {sent.m} to {to} ({cut(event.why, 24)})"
        return self._marked([sent.m if event.to is None else event.to], self._signs.lost, words)

    def _changes(self, burst: list[Changed]) -> tuple[list[str], str]:
        first = burst[0]
        sort = sort_of_change(self._status.get(first.m, "out"), first)
        members = [one.m for one in burst if one.m in self._status]
        one, several = _STATUS_WORDS[sort]
        words = f"{ids_text(members)} {several if len(members) > 1 else one}"
        if sort is Sort.RESTARTED:
            words += cut(f" as incarnation {first.incarnation}")
        for member in members:
            self._status[member] = first.status
            self._leads[member] &= sort in (Sort.PAUSED, Sort.RESUMED)
        return self._marked(members, self._sign(sort), words)

    def _declares(self, event: Declared) -> tuple[list[str], str]:
        member, outcome = event.m, event.outcome
        leads = isinstance(outcome, Elected) and outcome.leader == member
        self._leads[member] = leads
        sort = Sort.GAVE_UP if isinstance(outcome, GaveUp) else Sort.NO_LEADER
        if isinstance(outcome, Elected):
            sort = Sort.LEADS if leads else Sort.FOLLOWS
        return self._marked([member], self._sign(sort), f"{member} {outcome_text(member, outcome)}")

    # Cells

    def _sign(self, sort: Sort) -> str:
        return self._signs.sort[sort]

    def _blank(self) -> list[str]:
        """All lifelines as they stand now."""
        cells = [" "] * (self._pitch * len(self._column))
        if self._pitch:
            for member, column in self._column.items():
                status = self._status[member]
                leads = status == "up" and self._leads[member]
                cells[column] = self._signs.line["leads" if leads else status]
        return cells

    def _marked(self, members: list[MemberId], sign: str, words: str) -> tuple[list[str], str]:
        """The lifelines with a sign at these members; no words if none of them is drawn."""
        drawn = [member for member in members if member in self._column]
        cells = self._blank()
        if self._pitch:
            for member in drawn:
                cells[self._column[member]] = sign
        return cells, words if drawn else ""
