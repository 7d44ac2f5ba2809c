"""Local health: a member that slept or is overloaded distrusts itself before it distrusts others.

    p  HB ----- HB ----- HB ----- HB          p is well
        `--,     `--,     `--,     `--,
    q       *  zzzzzzzzzzzzzzzzzzzzzzz !?     q slept: its timer fires late, the heartbeats are
                                              there, unread

Idea       A timer that fires well after its time says something about the member itself: it was
           paused, or it does not get the processor. The silence that it saw meanwhile proves
           nothing. So the silence does not count, and the member gets as much time again to read
           the messages that have come. And a member that was late recently will be late again: its
           patience with all others is multiplied by a factor that grows with the lateness and
           halves its way back to 1.
Promise    Completeness stays: the factor is bounded. All excuses for one silence together are
           bounded, too, in multiples of the patience. With timers that fire in time nothing
           changes.
Cost       Nothing on the wire, no timer of its own; some numbers for each watched member.
Paper      None. The aim is that of Dadgar, Phillips and Currey 2018, arXiv:1707.00788: there a
           member's score counts probes that failed, here its own lateness is measured.

Pure, with time as an argument; `detector` runs it.
"""

from __future__ import annotations

import math

_LENIENCE = 16.0  # patiences that all excuses for one silence together may add


class Health:
    """How much a member trusts its own timing: 1 is fully, 2 is half as much.

    >>> health = Health(most=8.0, half_life=10.0, unit=1.25, slack=0.1)
    >>> health.factor(0.0), health.late(0.0, by=0.05), health.late(5.0, by=2.5)
    (1.0, False, True)
    >>> health.factor(5.0), health.factor(15.0)
    (3.0, 2.0)
    """

    __slots__ = ("_at", "_half_life", "_level", "_most", "_seen", "_unit", "latest", "slack")

    def __init__(self, most: float, half_life: float, unit: float, slack: float) -> None:
        """Lateness of one `unit` adds 1. `most` = 1 switches all of this off."""
        self._most = most
        self._half_life = half_life
        self._unit = unit
        self.slack = slack  # usual lateness
        self.latest = 1.0  # the last factor that was returned
        self._level = 0.0  # the factor's excess over 1, at the instant `_at`
        self._at = 0.0
        self._seen = -math.inf  # lateness up to this instant is counted

    def factor(self, now: float) -> float:
        """The factor on the patience."""
        if self._level:
            passed = max(0.0, now - self._at)
            self._level *= 0.5 ** (passed / self._half_life)
            if self._level < 1e-3:
                self._level = 0.0
        self._at = now
        self.latest = 1.0 + self._level
        return self.latest

    def late(self, now: float, by: float) -> bool:
        """Note that a timer fires `by` after its time. Return whether the lateness counts.

        If one sleep has made several timers late, it counts once.
        """
        if by <= self.slack or self._most <= 1.0:
            return False
        fresh = min(by, now - self._seen)
        self._seen = now
        grown = self.factor(now) - 1.0 + max(0.0, fresh) / self._unit
        self._level = min(grown, self._most - 1.0)
        self.latest = 1.0 + self._level
        return True


class Vigil:
    """The watch over one member's silence: its start, its end, and its excuses so far."""

    __slots__ = ("asked", "due", "granted", "hasty", "questions", "sign", "since", "wait")

    def __init__(self) -> None:
        self.sign = -math.inf  # when the last message came that was no heartbeat
        self.hasty = False  # whether the next heartbeat should come sooner than after a period
        self.begin(0.0, 0.0, 1.0)

    def begin(self, now: float, wait: float, factor: float) -> float:
        """Begin a silence. It is no reason for suspicion until `wait` times `factor` is over."""
        self.since = now
        self.wait = wait
        self.due = now + wait * factor
        self.granted = 0.0  # what excuses have added
        self.asked = 0  # the number of the open question
        self.questions = 0  # so far
        return wait * factor

    def grant(self, now: float, since: float, factor: float) -> bool:
        """Count the silence only from `since` on, if that gives more time and is not too much."""
        since = min(now, max(since, self.since))
        due = since + self.wait * factor
        more = due - max(now, self.due)
        if more <= 0.0 or self.granted + more > _LENIENCE * self.wait:
            return False
        self.granted += more
        self.since = since
        self.due = due
        return True

    def ask(self, now: float, number: int, wait: float, factor: float) -> None:
        """Note that a question was sent. Its answer may take `wait` times `factor`."""
        self.asked = number
        self.questions += 1
        self.due = now + wait * factor
        self.since = self.due - self.wait * factor
