"""Why a leadership ended: as data, and in words.

A reason is made once, when the leadership ends. The error of a campaign, the log and the metrics
have the same one.
"""

from __future__ import annotations

import msgspec

from hustings.core.outcome import ELECTING, PAUSED
from hustings.layers.leadership.layer import RESIGNED
from hustings.net.runner import UNWRITABLE

STALLED = "stalled"
LEASE_ENDED = "lease-ended"
UNWRITABLE_STATE = "state-unwritable"
MEMBER_FAILED = "member-failed"
OTHER_LEADER = "other-leader"
LATER_TERM = "later-term"
HANDED_OVER = "handed-over"
STOOD_BACK = "resigned"
LEFT_GROUP = "left"
FORKED = "forked"
NO_LEADER = "no-leader"

# Kinds that somebody has to look at. The others are the ordinary course of things.
_ALARMING = (STALLED, LEASE_ENDED, UNWRITABLE_STATE, MEMBER_FAILED)


class LossReason(msgspec.Struct, frozen=True, kw_only=True):
    """Why a leadership ended. `str()` says it in words."""

    kind: str  # for example "stalled" or "other-leader"
    words: str
    leader: str | None = None  # the member that leads instead
    term: int | None = None  # in which it leads
    seconds: float | None = None  # how long the process stood still, or the guard did not answer
    bound: float | None = None  # the longest such time after which a leader goes on

    def __str__(self) -> str:
        return self.words

    @property
    def alarming(self) -> bool:
        """Whether somebody should look. A transfer, for example, is no alarm."""
        return self.kind in _ALARMING or self.seconds is not None


def stalled(seconds: float, bound: float) -> LossReason:
    """The process stood still for longer than a leader may.

    >>> print(stalled(0.41, 0.25))
    this process stood still for 0.41 s; its bound is 0.25 s
    """
    words = f"{_stood(seconds)}; its bound is {in_seconds(bound)}"
    return LossReason(kind=STALLED, words=words, seconds=seconds, bound=bound)


def lease_ended(guard: str, silence: float, stall: float) -> LossReason:
    """The lease of the guard ran out.

    >>> print(lease_ended("etcd", silence=3.2, stall=0.0))
    the lease ended: etcd did not answer for 3.2 s
    >>> print(lease_ended("quorum", silence=3.2, stall=0.0))
    the lease ended: no majority of the voters answered for 3.2 s
    >>> print(lease_ended("etcd", silence=0.0, stall=7.5))
    the lease ended: this process stood still for 7.5 s
    """
    seconds: float | None = None
    if stall:
        why, seconds = _stood(stall), stall
    elif silence:
        voters = guard == "quorum"
        who = "no majority of the voters answered" if voters else f"{guard} did not answer"
        why, seconds = f"{who} for {in_seconds(silence)}", silence
    else:
        why = f"{guard} did not renew it in time"
    return LossReason(kind=LEASE_ENDED, words=f"the lease ended: {why}", seconds=seconds)


def other_leader(leader: str, term: int, stall: float) -> LossReason:
    """Another member leads.

    >>> print(other_leader("b", 7, stall=0.0))
    b leads in term 7
    >>> print(other_leader("b", 7, stall=1.4))
    this process stood still for 1.4 s, and b leads in term 7
    """
    words = f"{leader} leads in term {term}"
    if not stall:
        return LossReason(kind=OTHER_LEADER, words=words, leader=leader, term=term)
    words = f"{_stood(stall)}, and {words}"
    return LossReason(kind=OTHER_LEADER, words=words, leader=leader, term=term, seconds=stall)


def later_term(member: str, term: int) -> LossReason:
    """The member leads again, and another member may have led in between."""
    words = f"{member} leads again, in term {term}: another member may have led in between"
    return LossReason(kind=LATER_TERM, words=words, leader=member, term=term)


def no_leader(reason: str) -> LossReason:
    """No member leads, as far as this one knows.

    >>> print(no_leader("electing"))
    an election has begun
    """
    kind = {RESIGNED: STOOD_BACK, UNWRITABLE: UNWRITABLE_STATE}.get(reason, NO_LEADER)
    words = _WORDS.get(reason, reason or "no member leads")
    return LossReason(kind=kind, words=words)


def gave_way(kind: str, words: str) -> LossReason:
    """The owner wanted it: a transfer, a resignation, or the member's leave."""
    return LossReason(kind=kind, words=words)


_WORDS = {
    ELECTING: "an election has begun",
    RESIGNED: "this member resigned",
    UNWRITABLE: "the state of this member cannot be written",
    PAUSED: "this process stood still for too long",
}


def _stood(seconds: float) -> str:
    return f"this process stood still for {in_seconds(seconds)}"


def in_seconds(seconds: float) -> str:
    """A measured time in words."""
    return f"{seconds:.3g} s" if seconds < 1000.0 else f"{seconds:.0f} s"
