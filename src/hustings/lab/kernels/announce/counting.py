"""What kernels of announcing members count during a run, and what they report."""

from __future__ import annotations

from hustings.lab.kernels.announce import columns as col
from hustings.lab.kernels.compiling import compiled
from hustings.lab.kernels.results import Floats, Ints

# Counters of a run.
NOW = 0
SENT = 1
BEFORE = 2  # messages sent before this tick
ARRIVED = 3
LANDED = 4  # messages that have landed by the time of the last send, this tick included
FIRSTS = 5  # members that have announced
FIRSTS_BEFORE = 6
LEADING = 7  # members that lead by their own announcement
MOST = 8
AREA = 9
LAST_FIRST = 10
HEARD = 11
ROUND = 12  # of the last announcement by which a member first heard the leader
REPEAT = 13  # messages whose sender has repeated them, or will not
SHARED = 14  # how many there are


@compiled
def tick(c: Ints, now: int) -> None:
    """Advance the time."""
    if c[NOW] != now:
        c[NOW] = now
        c[BEFORE] = c[SENT]
        c[FIRSTS_BEFORE] = c[FIRSTS]


@compiled
def lead(c: Ints) -> None:
    """Count one more member that leads by its own announcement."""
    c[AREA] -= c[NOW]
    c[LEADING] += 1
    c[MOST] = max(c[MOST], c[LEADING])


@compiled
def defer(c: Ints, members: int) -> None:
    """Count this many fewer such members."""
    c[AREA] += members * c[NOW]
    c[LEADING] -= members


@compiled
def report(c: Ints, D: int, leader: int, row: Floats) -> None:
    """Report a run in which all members have heard the leader."""
    row[col.TMAX] = c[NOW] - D
    row[col.COMPLETE] = c[NOW]
    row[col.NUM_MSGS] = c[BEFORE] if D else c[SENT]
    row[col.FIRST_ROUND] = c[FIRSTS_BEFORE] if D else c[FIRSTS]
    row[col.SENT_BY_TMAX] = c[ARRIVED]
    row[col.ROUNDS] = c[ROUND]
    row[col.HEARD] = c[HEARD]
    row[col.MESSAGES] = c[SENT]
    row[col.FIRST_ROUND_TIME] = c[LAST_FIRST]
    row[col.LEADING] = c[AREA] + c[LEADING] * c[NOW]
    row[col.LEADING_MOST] = c[MOST]
    row[col.WATCHED] = c[NOW]
    row[col.LEADER] = leader + 1
