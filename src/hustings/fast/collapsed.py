"""What the collapsed probabilistic election keeps of a run, and how it is looked up.

Nothing about a member depends on its identity until somebody reads it. So members are counted by
class (whom they hold, whom they ever held, whether they are certain to hear of the next round), and
only those that matter one by one are tracked: whoever has passed the filter, dead or deaf members
included, because messages go to them; and whoever was named as a leader. A member that is tracked
for the first time is drawn from the classes without replacement.

Who knows whom is a coin keyed by the run, the one and the other, tossed when it is asked for: the
same answer in every round, and no memory. Identities are ranks: 0 is the best candidate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hustings.fast.compiling import compiled
from hustings.fast.counter import S11, branch, word
from hustings.fast.draws import Stream, below, binomial

TRACKED = 2048  # members tracked in one run
LEADERS = 61  # named in one run: a set of them is a word
CLASSES = 512
QUEUE = 1 << 21  # messages of one relay phase

NOBODY = -1
ALIVE_FOR_GOOD = np.inf

# What a run has run into; 0 is none.
TOO_MANY_TRACKED, TOO_MANY_LEADERS, TOO_MANY_CLASSES, TOO_MANY_MESSAGES = 1, 2, 3, 4


# A tracked member. Records, not an array per field: every array that a compiled function is given
# costs it a count of references.
MEMBER = np.dtype(
    [
        ("rank", np.int64),
        ("row", np.uint64),  # the key of whom it knows
        ("crash", np.float64),  # when in this round, or infinite
        ("hash", np.float64),
        ("size", np.float64),  # N_i, where it is the size of the view
        ("holds", np.int64),  # which leader, by its number, or NOBODY
        ("ever", np.uint64),  # all leaders that it ever held, as a set
        ("number", np.int64),  # its own number as a leader, or NOBODY
        ("best", np.int64),  # the rank that it prefers
        ("alive", np.int64),  # at the beginning of the round; this and the rest are 0 or 1
        ("forced", np.int64),  # has opened the coming round, or heard that it will come
        ("aware", np.int64),  # has heard of the round
        ("near", np.int64),  # may pass the filter by somebody's reckoning
        ("passes", np.int64),  # does by its own
        ("relays", np.int64),
    ]
)

# Members that are not tracked, alive, by what they have in common.
CLASS = np.dtype(
    [("count", np.int64), ("holds", np.int64), ("ever", np.uint64), ("forced", np.int64)]
)

Records = NDArray[Any]  # of either kind


class Run(NamedTuple):
    """All of a run."""

    members: Records
    met: NDArray[np.int64]  # [i, j]: the last round in which j contacted i
    now: Records
    then: Records  # classes as they come out of the round
    sizes: NDArray[np.int64]  # how many of each, in the order of the names below
    leaders: NDArray[np.int64]  # places of the tracked members that were named
    finals: NDArray[np.int64]  # of this round, by leader
    queue: NDArray[np.int64]  # sender, receiver, preference, step


MEMBERS, NOW, THEN, DEAD, NAMED, TROUBLE = 0, 1, 2, 3, 4, 5  # the dead are those not tracked


def new_run() -> Run:
    """Room for a run, to be used again for the next."""
    return Run(
        np.zeros(TRACKED, MEMBER),
        np.zeros((TRACKED, TRACKED), np.int64),
        np.zeros(CLASSES, CLASS),
        np.zeros(CLASSES, CLASS),
        np.zeros(6, np.int64),
        np.zeros(LEADERS, np.int64),
        np.zeros(LEADERS, np.int64),
        np.zeros((QUEUE, 4), np.int64),
    )


@compiled
def reset(run: Run, members: int) -> None:
    """Nobody tracked, everybody in one class."""
    used = run.sizes[MEMBERS]
    run.met[:used, :used] = 0
    run.sizes[:] = 0
    everybody = run.now[0]
    everybody.count = members
    everybody.holds = NOBODY
    everybody.ever = np.uint64(0)
    everybody.forced = 0
    run.sizes[NOW] = 1


@compiled
def place_of(members: Records, tracked: int, rank: int) -> int:
    """Where a member is tracked, or NOBODY."""
    for place in range(tracked):
        if members[place].rank == rank:
            return place
    return NOBODY


@compiled
def untracked(run: Run) -> int:
    """How many members are not tracked, the dead included."""
    total = run.sizes[DEAD]
    for place in range(run.sizes[NOW]):
        total += run.now[place].count
    return int(total)


@compiled
def track(
    run: Run, stream: Stream, views: np.uint64, rank: int, group: int, view_prob: float
) -> int:
    """Begin to track a member; what class it was in is drawn. NOBODY if there is no room."""
    place = run.sizes[MEMBERS]
    if place >= TRACKED:
        run.sizes[TROUBLE] = TOO_MANY_TRACKED
        return NOBODY
    run.sizes[MEMBERS] += 1
    member = run.members[place]
    member.rank = rank
    member.row = branch(views, np.uint64(rank))
    member.crash = ALIVE_FOR_GOOD
    member.number = NOBODY
    member.size = 1.0
    if view_prob > 0.0:
        member.size = 1.0 + binomial(stream, group - 1, view_prob)
    member.aware = member.near = member.passes = member.relays = 0
    draw = below(stream, untracked(run))
    for each in range(run.sizes[NOW]):
        found = run.now[each]
        if draw < found.count:
            found.count -= 1
            member.alive = 1
            member.holds = found.holds
            member.ever = found.ever
            member.forced = found.forced
            return int(place)
        draw -= found.count
    run.sizes[DEAD] -= 1
    member.alive = 0
    member.holds = NOBODY
    member.ever = np.uint64(0)
    member.forced = 0
    return int(place)


@compiled
def new_rank(run: Run, stream: Stream, group: int) -> int:
    """The identity of a member that is not tracked yet: any of them."""
    while True:
        rank = below(stream, group)
        if place_of(run.members, run.sizes[MEMBERS], rank) == NOBODY:
            return rank


@compiled
def knows(members: Records, owner: int, rank: int, bar: np.uint64) -> bool:
    """Whether a rank is in a tracked member's original view."""
    member = members[owner]
    return bool(member.rank == rank or (word(member.row, np.uint64(rank)) >> S11) < bar)


@compiled
def has_learnt(members: Records, met: NDArray[np.int64], owner: int, other: int) -> bool:
    """Whether a tracked member came to know another one later: by contact, or as a leader."""
    if met[owner, other] > 0:
        return True
    number = members[other].number
    if number < 0:
        return False
    return bool((members[owner].ever >> np.uint64(number)) & np.uint64(1))


@compiled
def preference(
    members: Records, met: NDArray[np.int64], tracked: int, owner: int, bar: np.uint64
) -> int:
    """The best rank that a tracked member knows."""
    best = members[owner].rank
    for other in range(tracked):
        if members[other].rank < best and has_learnt(members, met, owner, other):
            best = members[other].rank
    rank = 0
    while rank < best and not knows(members, owner, rank, bar):
        rank += 1
    return rank


@compiled
def put(run: Run, count: int, holds: int, ever: np.uint64, forced: int) -> None:
    """So many members more come out of the round like this."""
    if count <= 0:
        return
    for each in range(run.sizes[THEN]):
        found = run.then[each]
        if found.holds == holds and found.ever == ever and found.forced == forced:
            found.count += count
            return
    place = run.sizes[THEN]
    if place >= CLASSES:
        run.sizes[TROUBLE] = TOO_MANY_CLASSES
        return
    run.sizes[THEN] += 1
    new = run.then[place]
    new.count = count
    new.holds = holds
    new.ever = ever
    new.forced = forced


@compiled
def turn_over(run: Run) -> None:
    """The classes that came out of a round go into the next."""
    for each in range(run.sizes[THEN]):
        run.now[each] = run.then[each]
    run.sizes[NOW] = run.sizes[THEN]
    run.sizes[THEN] = 0
