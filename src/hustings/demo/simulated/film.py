"""The film of a play: the picture of any instant, read from the recording.

The run is over before the first picture. An instant's picture is a function of the recording, so a
slow terminal shows fewer pictures of the same run.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from hustings.core.choice import MemberId
from hustings.core.messages import Role
from hustings.core.outcome import ELECTING, NoLeader
from hustings.demo.simulated.story import Cue, Play, Sides
from hustings.demo.simulated.watch import MemberState, MessageFlight, TickerLine, latest, lines_of
from hustings.sim.member import Status

LOST_FOR = 0.75  # how long a message that met a cut is shown
LONGEST = 1.0  # no message is shown for longer than this


@dataclass(frozen=True, slots=True)
class SeenMember:
    """One member in one picture."""

    id: MemberId
    status: Status
    leader: MemberId | None
    term: int | None
    electing: bool
    doubts: bool  # suspects the leader it holds

    @property
    def leads(self) -> bool:
        return self.leader == self.id


@dataclass(frozen=True, slots=True)
class Moving:
    """One message in one picture, and how much of its way it has covered, from 0 to 1."""

    letter: str
    role: Role
    sender: MemberId
    to: MemberId
    way: float
    lost: bool


@dataclass(frozen=True, slots=True)
class FilmFrame:
    """One picture."""

    t: float
    act: int
    caption: str
    members: tuple[SeenMember, ...]
    moving: tuple[Moving, ...]
    sides: Sides
    leading: tuple[MemberId, ...]
    counts: dict[str, int]  # protocol messages of this act so far, by kind
    heartbeats: int  # of this act so far
    beating: tuple[tuple[MemberId, MemberId, float], ...]  # heartbeats: from, to, share of the way
    lines: tuple[TickerLine, ...]  # the latest events, the newest at the end


class Film:
    """Pictures of a play by time."""

    def __init__(self, play: Play, lines: int = 40) -> None:
        """`lines` says how much of the recent past each picture tells."""
        self.play = play
        self._flights = play.flights
        self._left = [flight.left for flight in self._flights]
        self._beats = play.beats
        self._beat_times = [beat.left for beat in self._beats]
        self._lines = lines_of(play.watcher, play.flights)
        self._line_times = [line.t for line in self._lines]
        self._most = lines
        self._openings = [act.cues[0].t for act in play.acts]
        self._cues = [(cue.t, cue) for act in play.acts for cue in act.cues]
        self.letters = letters(flight.kind for flight in self._flights)
        self.roles = {flight.kind: flight.role for flight in self._flights}
        self.colours: dict[MemberId, int] = {}  # leaders in the order of their first leadership
        for _, leading in play.watcher.leading:
            for member in leading:
                self.colours.setdefault(member, len(self.colours))

    @property
    def end(self) -> float:
        """When the last act ended."""
        return self.play.acts[-1].ended

    def busy(self, start: float, end: float) -> bool:
        """Whether anything but heartbeats can be seen between two instants."""
        first = bisect_left(self._left, start - LONGEST)
        last = bisect_right(self._left, end)
        return any(_shown_until(flight) > start for flight in self._flights[first:last])

    def cue(self, t: float) -> Cue:
        """The sentence below the picture."""
        return latest(self._cues, t)

    def at(self, t: float) -> FilmFrame:
        """The picture of one instant."""
        watcher = self.play.watcher
        act = max(0, bisect_right(self._openings, t) - 1)
        first, now = bisect_left(self._left, self._openings[act]), bisect_right(self._left, t)
        beat = bisect_right(self._beat_times, t)
        seen = bisect_right(self._line_times, t)
        return FilmFrame(
            t=t,
            act=act,
            caption=self.cue(t).text,
            members=tuple(self._member(member, t) for member in watcher.states),
            moving=tuple(self._moving(t, now)),
            sides=latest(self.play.cuts, t),
            leading=tuple(reversed(latest(watcher.leading, t))),
            counts=dict(Counter(flight.kind for flight in self._flights[first:now])),
            heartbeats=beat - bisect_left(self._beat_times, self._openings[act]),
            beating=tuple(self._beating(t, beat)),
            lines=tuple(self._lines[max(0, seen - self._most) : seen]),
        )

    def _member(self, member: MemberId, t: float) -> SeenMember:
        watcher = self.play.watcher
        state: MemberState = latest(watcher.states[member], t)
        up = state.status is Status.UP
        return SeenMember(
            id=member,
            status=state.status,
            leader=state.leader,
            term=getattr(state.outcome, "term", None),
            electing=up and state.outcome == NoLeader(ELECTING),
            doubts=up and state.leader in latest(watcher.suspects[member], t),
        )

    def _moving(self, t: float, now: int) -> Iterator[Moving]:
        for flight in self._flights[bisect_left(self._left, t - LONGEST) : now]:
            if t < _shown_until(flight):
                lost = flight.fate == "cut" and flight.ended == flight.left
                way = (t - flight.left) / (1.0 if lost else flight.ended - flight.left)
                letter = self.letters[flight.kind]
                yield Moving(
                    letter=letter,
                    role=flight.role,
                    sender=flight.sender,
                    to=flight.to,
                    way=min(way, 0.5) if lost else way,
                    lost=lost and way >= 0.5,
                )

    def _beating(self, t: float, now: int) -> Iterator[tuple[MemberId, MemberId, float]]:
        for beat in self._beats[bisect_left(self._beat_times, t - LONGEST) : now]:
            if t < beat.ended:
                yield beat.sender, beat.to, (t - beat.left) / (beat.ended - beat.left)


def _shown_until(flight: MessageFlight) -> float:
    return flight.ended if flight.ended > flight.left else flight.left + LOST_FOR


def letters(kinds: Iterable[str]) -> dict[str, str]:
    """A letter for each kind of message: the first of its letters that is free.

    >>> letters(["ELECTION", "ELECTED", "ELECTION"])
    {'ELECTION': 'E', 'ELECTED': 'L'}
    """
    chosen: dict[str, str] = {}
    for kind in kinds:
        if kind not in chosen:
            free = [letter for letter in kind if letter.isalpha() and letter not in chosen.values()]
            chosen[kind] = free[0] if free else "*"
    return chosen


READING = 0.45  # the part of the show for which the clock stands still
HOLDS = {"opening": 1.0, "suspicion": 0.6, "trust": 0.6, "end": 1.6}
STEP = 0.25
FAST = 3.0  # how much faster quiet times pass
LINGER = 2.0  # how much of the calm after an act is shown


class FilmPace:
    """Maps seconds to simulated time, for a whole show."""

    def __init__(self, film: Film, seconds: float) -> None:
        self.seconds = seconds
        spans = _spans(film)
        reading = sum(weight for weight, start, end in spans if start == end)
        moving = sum(weight for weight, start, end in spans if start != end)
        self._spans = [(start, end) for _, start, end in spans]
        self._lengths = [
            weight / reading * READING * seconds
            if start == end
            else weight / moving * (1.0 - READING) * seconds
            for weight, start, end in spans
        ]
        self._begins = [0.0, *accumulate(self._lengths)]

    def at(self, elapsed: float) -> float:
        """The instant to show after this many seconds."""
        place = min(max(bisect_right(self._begins, elapsed) - 1, 0), len(self._spans) - 1)
        start, end = self._spans[place]
        part = (elapsed - self._begins[place]) / self._lengths[place]
        return start + (end - start) * min(max(part, 0.0), 1.0)


def _spans(film: Film) -> list[tuple[float, float, float]]:
    """Pieces of the show: weight, from, to. The clock stands still where from equals to."""
    spans: list[tuple[float, float, float]] = []
    now = 0.0
    for act in film.play.acts:
        for cue in act.cues:
            spans += _motion(film, now, cue.t)
            spans.append((HOLDS[cue.kind], cue.t, cue.t))
            now = max(now, cue.t)
        end = min(act.ended, now + LINGER)
        spans += _motion(film, now, end)
        now = end
    return spans


def _motion(film: Film, start: float, end: float) -> list[tuple[float, float, float]]:
    spans: list[tuple[float, float, float]] = []
    while start < end:
        stop = min(end, start + STEP)
        weight = stop - start
        spans.append((weight if film.busy(start, stop) else weight / FAST, start, stop))
        start = stop
    return spans
