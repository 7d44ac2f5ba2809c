"""Lightest bin: a committee elects a part of itself, and bad members gain little.

Model      k participants that can broadcast (by agreement), fewer than a third of them bad. Bad
           members choose last, and know what the good ones chose.
Idea       Every candidate throws itself into one of B bins. The bin with the fewest candidates is
           elected. Good candidates spread evenly, so every bin has about its share of them. Bad
           candidates that crowd into a bin make it heavy, and a heavy bin does not win.
Invariant  All good participants know the same candidates. All members that took part from the
           beginning get the broadcast choices and agree on them, not only those still elected.
Cost       One broadcast of ceil(log2 B) bits by every candidate at a time, all in one batch: in
           one shot k instances; with h halvings k, then at most k/2, ... of one bit each.
Guarantee  At most k/B are elected (one, if that is less than one), unless all sit in one bin. Of g
           good candidates the elected bin keeps g/B less a few times sqrt(g/B).
Paper      Scalable Leader Election, section 2: ELECT-SUBCOMMITTEE in one shot, HEAVYWEIGHT by
           repetition. Decided here, since the paper does not say: of equally light bins the first
           wins; an empty bin does not count; a member without a readable choice is in bin 0; a
           member is a candidate once, however often it was elected below. No member is added to an
           elected bin: the paper pads it "arbitrarily", so the adversary could add only bad ones.
           `pad` does it as printed, by the lowest ids that were not elected.

To halve h times, instead of one throw into 2^h bins, loses slightly less to the adversary, and its
values are one bit long.
"""

from __future__ import annotations

from collections.abc import Sequence

from hustings.core.choice import MemberId
from hustings.core.streams import Stream
from hustings.protocols.committee.agreement import Seat, broadcast, broadcast_rounds
from hustings.protocols.committee.lockstep import Script

STALLS = 8  # rounds in which no candidate drops out, after which HEAVYWEIGHT ends

Members = tuple[MemberId, ...]


def loads(choices: Sequence[int], bins: int) -> list[int]:
    """Count how many chose each bin.

    >>> loads([0, 2, 2, 1, 2], 4)
    [1, 1, 3, 0]
    """
    counts = [0] * bins
    for choice in choices:
        counts[choice] += 1
    return counts


def lightest(choices: Sequence[int], bins: int) -> int:
    """Return the bin that wins: the first of the lightest that are not empty.

    >>> lightest([0, 2, 2, 1, 2], 4), lightest([3, 3], 4)
    (0, 3)
    """
    counts = loads(choices, bins)
    return min((count, place) for place, count in enumerate(counts) if count)[1]


def elected(candidates: Sequence[MemberId], choices: Sequence[int], bins: int) -> Members:
    """Return the candidates in the lightest bin.

    >>> elected([4, 5, 6, 7, 8], [0, 1, 1, 0, 1], 2)
    (4, 7)
    """
    bin_ = lightest(choices, bins)
    return tuple(each for each, choice in zip(candidates, choices, strict=True) if choice == bin_)


def padded(chosen: Members, members: Sequence[MemberId], size: int) -> Members:
    """Return the elected and further lowest ids, up to this many: as printed, not as advised.

    >>> padded((5, 9), [9, 1, 2, 5], 3)
    (5, 9, 1)
    """
    rest = [each for each in sorted(members) if each not in chosen]
    return (*chosen, *rest[: max(0, size - len(chosen))])


# Scripts: what a participant sends


def throw(
    seat: Seat, candidates: Members, bins: int, rng: Stream, step: int = 0
) -> Script[Members]:
    """Run one election with this many bins and return the remaining candidates."""
    mine = rng.below(bins) if seat.me in candidates else 0
    choices = yield from broadcast(seat, candidates, mine, bins, kind="bin", step=step)
    return elected(candidates, choices, bins)


def throw_rounds(seat: Seat, times: int = 1) -> int:
    """Return how many rounds this many elections take."""
    return times * broadcast_rounds(len(seat.members), seat.method, seat.t)


def halving(
    seat: Seat, times: int, rng: Stream, candidates: Members | None = None
) -> Script[Members]:
    """Run this many elections with two bins each."""
    left = seat.members if candidates is None else candidates
    for step in range(times):
        left = yield from throw(seat, left, 2, rng, step)
    return left


def one_shot(
    seat: Seat, bins: int, rng: Stream, candidates: Members | None = None
) -> Script[Members]:
    """Run one election with this many bins."""
    return (yield from throw(seat, seat.members if candidates is None else candidates, bins, rng))


def halvings_to(candidates: int, most: int) -> int:
    """Return how often to halve so that at most `most` are left.

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
    """Run HEAVYWEIGHT-LEADER-ELECTION: two bins repeatedly, until at most `most` are left.

    If all candidates throw into one bin, none drops out. After `STALLS` such elections the first
    `most` of the rest are taken.
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
    """Return the most rounds that it may take."""
    return (
        throw_rounds(seat, halvings_to(candidates, most) + STALLS - 1) if candidates > most else 0
    )
