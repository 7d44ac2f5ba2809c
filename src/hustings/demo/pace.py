"""Pace: which simulated instant is shown after so many seconds.

A watcher needs time to read a new sentence and to see messages fly, and none to watch nothing
happen. So the clock stands still at each sentence, runs slowly while an election is under way, and
fast while there are only heartbeats.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from hustings.demo.film import Film

READING = 0.45  # the part of the show for which the clock stands still
HOLDS = {"opening": 1.0, "suspicion": 0.6, "trust": 0.6, "end": 1.6}
STEP = 0.25
FAST = 3.0  # how much faster quiet times pass
LINGER = 2.0  # how much of the calm after an act is shown


class Pace:
    """From seconds to simulated time, once for a whole show."""

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
        """The instant to show after so many seconds."""
        place = min(max(bisect_right(self._begins, elapsed) - 1, 0), len(self._spans) - 1)
        start, end = self._spans[place]
        part = (elapsed - self._begins[place]) / self._lengths[place]
        return start + (end - start) * min(max(part, 0.0), 1.0)


def _spans(film: Film) -> list[tuple[float, float, float]]:
    """Pieces of the show: weight, from, to. Where both are the same, the clock stands still."""
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
