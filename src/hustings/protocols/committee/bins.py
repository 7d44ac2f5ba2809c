"""Lightest bin: a committee elects a part of itself, and liars gain little.

Model      k participants who can broadcast (by agreement), fewer than a third of them bad; the bad
           choose last, with full knowledge of what the good ones chose.
Idea       Every candidate throws itself into one of B bins. The bin with the fewest in it is
           elected. Good candidates spread evenly, so every bin has about its share of them; bad
           ones who crowd into a bin make it heavy, and a heavy bin does not win.
Invariant  All good participants know the same candidates: choices are broadcast to, and agreed on
           by, all who took part from the beginning, not only those still elected.
Cost       One broadcast of ceil(log2 B) bits by every candidate at a time, all in one batch: in
           one shot k instances; with h halvings k, then at most k/2, ... of one bit each.
Guarantee  At most k/B are elected (one, if that is less than one), unless all sit in one bin. Of g
           good candidates the elected bin keeps g/B less a few times sqrt(g/B).
Paper      Scalable Leader Election, section 2: ELECT-SUBCOMMITTEE in one shot, HEAVYWEIGHT by
           repetition. Decided here, where the paper is silent: of equally light bins the first
           wins; an empty bin does not count; who says nothing readable is in bin 0; a member is a
           candidate once, however often it was elected below. Nobody is added to an elected bin:
           the paper pads it "arbitrarily", which the adversary can make all bad. `pad` does it as
           printed, by the lowest ids that were not elected.

Halving h times instead of throwing into 2^h bins at once loses slightly less to the adversary, and
its values are one bit long.
"""

from __future__ import annotations

from collections.abc import Sequence

from hustings.core.choice import MemberId
from hustings.core.streams import Stream
from hustings.protocols.committee.agreement import Seat, broadcast, broadcast_rounds
from hustings.protocols.committee.lockstep import Script

STALLS = 8  # rounds without anybody out after which HEAVYWEIGHT ends

Members = tuple[MemberId, ...]


def loads(choices: Sequence[int], bins: int) -> list[int]:
    """How many chose each bin.

    >>> loads([0, 2, 2, 1, 2], 4)
    [1, 1, 3, 0]
    """
    counts = [0] * bins
    for choice in choices:
        counts[choice] += 1
    return counts


def lightest(choices: Sequence[int], bins: int) -> int:
    """The bin that wins: the first of the lightest that are not empty.

    >>> lightest([0, 2, 2, 1, 2], 4), lightest([3, 3], 4)
    (0, 3)
    """
    counts = loads(choices, bins)
    return min((count, place) for place, count in enumerate(counts) if count)[1]


def elected(candidates: Sequence[MemberId], choices: Sequence[int], bins: int) -> Members:
    """Who sits in the lightest bin.

    >>> elected([4, 5, 6, 7, 8], [0, 1, 1, 0, 1], 2)
    (4, 7)
    """
    bin_ = lightest(choices, bins)
    return tuple(each for each, choice in zip(candidates, choices, strict=True) if choice == bin_)


def padded(chosen: Members, members: Sequence[MemberId], size: int) -> Members:
    """The elected and the lowest ids besides, up to this many: as printed, not as advised.

    >>> padded((5, 9), [9, 1, 2, 5], 3)
    (5, 9, 1)
    """
    rest = [each for each in sorted(members) if each not in chosen]
    return (*chosen, *rest[: max(0, size - len(chosen))])


# Scripts: what a participant says


def throw(
    seat: Seat, candidates: Members, bins: int, rng: Stream, step: int = 0
) -> Script[Members]:
    """One election with this many bins: who of the candidates is left."""
    mine = rng.below(bins) if seat.me in candidates else 0
    choices = yield from broadcast(seat, candidates, mine, bins, kind="bin", step=step)
    return elected(candidates, choices, bins)


def throw_rounds(seat: Seat, times: int = 1) -> int:
    """How many rounds this many elections take."""
    return times * broadcast_rounds(len(seat.members), seat.method, seat.t)


def halving(
    seat: Seat, times: int, rng: Stream, candidates: Members | None = None
) -> Script[Members]:
    """This many elections with two bins each."""
    left = seat.members if candidates is None else candidates
    for step in range(times):
        left = yield from throw(seat, left, 2, rng, step)
    return left


def one_shot(
    seat: Seat, bins: int, rng: Stream, candidates: Members | None = None
) -> Script[Members]:
    """One election with this many bins."""
    return (yield from throw(seat, seat.members if candidates is None else candidates, bins, rng))


def halvings_to(candidates: int, most: int) -> int:
    """How often to halve so that at most `most` are left.

    >>> [halvings_to(k, 128) for k in (100, 128, 129, 512, 513)]
    [0, 0, 1, 2, 2]
    """
    times = 0
    while candidates > most:
        candidates //= 2
        times += 1
    return times


def heavyweight(
    seat: Seat, rng: Stream, most: int = 1, candidates: Members | None = None
) -> Script[Members]:
    """HEAVYWEIGHT-LEADER-ELECTION: two bins again and again, until at most `most` are left.

    Where all candidates throw into one bin nobody is out; after `STALLS` such elections what is
    left is cut to its first `most`.
    """
    left = seat.members if candidates is None else candidates
    stalls = step = 0
    while len(left) > most and stalls < STALLS:
        before = len(left)
        left = yield from throw(seat, left, 2, rng, step)
        stalls += len(left) == before
        step += 1
    return left[:most]


def heavyweight_rounds(seat: Seat, candidates: int, most: int = 1) -> int:
    """The most rounds that it may take."""
    return (
        throw_rounds(seat, halvings_to(candidates, most) + STALLS - 1) if candidates > most else 0
    )
