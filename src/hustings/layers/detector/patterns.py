"""Patterns: who sends heartbeats to whom, and who watches whom.

A pattern is a function from what a member knows (its view, itself, its leader, its suspects) to its
duties. It keeps nothing, so a member only asks again when one of the four has changed.

    pattern        heartbeats each period    a crash is noticed by
    all-to-all     N(N-1)                    everybody
    ring           N                         the next live member before it
    leader-to-all  N-1                       everybody, if it was the leader's
    to-leader      N-1                       the leader, if it was another's

The counts are those of a group in which nobody is suspected. A pattern says who sends heartbeats
unasked. In a ring, when a member falls silent, the one after it knows nothing of that and would
never beat to its new watcher; and a leader that was suspected, lost its office and lives would be
suspected for ever. So a detector asks for heartbeats, each period, those whom it watches or
suspects and who would not send it any. With f members in a row down, a ring's period costs the
heartbeats of the live, one more, and f questions; and each of the f after the first is noticed
T + 2D later than the one before, having been asked in vain.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass

from hustings.core.choice import MemberId
from hustings.core.view import View


@dataclass(frozen=True, slots=True)
class Duties:
    """What one member does each period, and what others do for it."""

    beats: tuple[MemberId, ...] = ()  # to whom it sends a heartbeat
    watches: tuple[MemberId, ...] = ()  # whose silence it takes for a crash
    hears: tuple[MemberId, ...] = ()  # who, if alive, sends it heartbeats unasked


Pattern = Callable[[View, MemberId, MemberId | None, Container[MemberId]], Duties]

IDLE = Duties()


def all_to_all(
    view: View, me: MemberId, leader: MemberId | None, suspects: Container[MemberId]
) -> Duties:
    """Everybody watches everybody; suspects too, since they may be back or never have gone."""
    others = _others(view, me)
    return Duties(beats=others, watches=others, hears=others)


def ring(
    view: View, me: MemberId, leader: MemberId | None, suspects: Container[MemberId]
) -> Duties:
    """Beat to the member before me, dead or alive; watch the next live one after me."""
    ids = view.ids
    place = bisect_left(ids, me)
    before, after = ids[place - 1], ids[(place + 1) % len(ids)]
    if after == me:
        return IDLE
    watched = view.successor(me, suspects)
    return Duties(beats=(before,), watches=() if watched is None else (watched,), hears=(after,))


def leader_to_all(
    view: View, me: MemberId, leader: MemberId | None, suspects: Container[MemberId]
) -> Duties:
    """The leader beats, all others watch it: what an election needs, and no more.

    A silent leader may be alive and not know that it leads: it must be asked, like any suspect.
    """
    if leader == me:
        return Duties(beats=_others(view, me))
    if leader is None or leader not in view:
        return IDLE
    return Duties(watches=(leader,), hears=() if leader in suspects else (leader,))


def to_leader(
    view: View, me: MemberId, leader: MemberId | None, suspects: Container[MemberId]
) -> Duties:
    """All others beat, the leader watches them; nobody watches the leader.

    Here too a silent member may be alive, and not know who leads.
    """
    if leader == me:
        others = _others(view, me)
        return Duties(watches=others, hears=tuple(m for m in others if m not in suspects))
    return Duties(beats=(leader,)) if leader is not None and leader in view else IDLE


PATTERNS: Mapping[str, Pattern] = {
    "all-to-all": all_to_all,
    "ring": ring,
    "leader-to-all": leader_to_all,
    "to-leader": to_leader,
}


def _others(view: View, me: MemberId) -> tuple[MemberId, ...]:
    return tuple(member for member in view.ids if member != me)
