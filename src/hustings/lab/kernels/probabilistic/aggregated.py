"""What the aggregated probabilistic election keeps of a run, and how to look it up.

Nothing about a member depends on its identity until it is read. So members are counted by class:
the leader they hold, the leaders they ever held, whether they are certain to hear of the next
round. Only members that matter individually are tracked: a member that has passed the filter, dead
or deaf members included, because messages go to them; and a member that was named as a leader. A
member that is tracked for the first time is drawn from the classes without replacement.

Whether one member knows another is a coin keyed by the run and the two, tossed when it is asked
for: the same answer in every round, and no memory. Identities are ranks: 0 is the best candidate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hustings.lab.kernels.compiling import PLAIN, compiled
from hustings.lab.kernels.counter import S11, branch, limit, word
from hustings.lab.kernels.draws import below, binomial
from hustings.lab.kernels.probabilistic.rules import METRICS, WHOLE_GROUP

TRACKED = 2048  # members tracked in one run
WORD = 64  # of a set of them, place by place
PARTS = TRACKED // WORD
LEADERS = 61  # named in one run: a set of them is a word
CLASSES = 512
QUEUE = 1 << 21  # messages of one relay phase
PLACE = 16  # bits for a place in one

NOBODY = -1
ALIVE_FOR_GOOD = np.inf

# The trouble of a run; 0 is none.
TOO_MANY_TRACKED, TOO_MANY_LEADERS, TOO_MANY_CLASSES, TOO_MANY_MESSAGES = 1, 2, 3, 4


# A tracked member. Records, here and for the run: every array that a compiled function is given
# costs it a count of references, which is most of the time of a small one.
MEMBER = np.dtype(
    [
        ("rank", np.int64),
        ("row", np.uint64),  # the key of the members it knows
        ("crash", np.float64),  # when in this round, or infinite
        ("hash", np.float64),  # read where N_i is the size of the view
        ("size", np.float64),  # N_i, where it is the size of the view
        ("holds", np.int64),  # which leader, by its number, or NOBODY
        ("ever", np.uint64),  # all leaders that it ever held, as a set
        ("number", np.int64),  # its own number as a leader, or NOBODY
        ("best", np.int64),  # the rank that it prefers
        ("late", np.int64),  # by how many delays it has begun the round after the others
        ("alive", np.int64),  # at the beginning of the round; this and the rest are 0 or 1
        ("forced", np.int64),  # has opened the coming round, or heard that it will come
        ("aware", np.int64),  # has heard of the round
        ("passes", np.int64),  # the filter, by its own reckoning
        ("relays", np.int64),
    ]
)

# Members that are not tracked, alive, by what they have in common.
CLASS = np.dtype(
    [("count", np.int64), ("holds", np.int64), ("ever", np.uint64), ("forced", np.int64)]
)

Records = NDArray[Any]  # of either kind

ONE = np.uint64(1)
# Any six bits of it that follow one another are found there only once, so where a lone bit stands
# can be read off the top of a product.
_SEQUENCE = np.uint64(0x03F79D71B4CB0A89)
_NUMBERS = np.zeros(64, np.int64)
for _place in range(64):
    _NUMBERS[((0x03F79D71B4CB0A89 << _place) % (1 << 64)) >> 58] = _place


MEMBERS, NOW, THEN, DEAD, NAMED, TROUBLE = 0, 1, 2, 3, 4, 5  # the dead are those not tracked
NEAR, SENT = 6, 7  # unicasts of this round
DECIDED, FALLEN = 8, 9  # in this round: those that knew of it at its end; those that died untracked
SIZES = 10
RING = 256

# All of a run: one record, whose parts are views without owners.
RUN = np.dtype(
    [
        ("stream", np.uint64, (2,)),
        ("views", np.uint64),  # the key of the views
        ("last", np.float64),  # when a unicast was last there, after the first Init of the round
        ("row", np.float64, (len(METRICS),)),
        ("sizes", np.int64, (SIZES,)),  # how many of each, in the order of the names above
        ("leaders", np.int64, (LEADERS,)),  # places of the tracked members that were named
        ("finals", np.int64, (LEADERS,)),  # of this round, by leader
        ("missed", np.float64, (LEADERS,)),  # the chance to hear none of a leader's finals
        # The chance to hear finals of this leader and of no other.
        ("alone", np.float64, (LEADERS,)),
        # The number of holders, by leader; the last counts members without a leader.
        ("held", np.int64, (LEADERS + 1,)),
        ("arrivals", np.float64, (RING,)),  # of Inits under way, a ring
        ("now", CLASS, (CLASSES,)),
        ("then", CLASS, (CLASSES,)),  # classes as they come out of the round
        # Members that may pass the filter by another member's computation.
        ("near", np.int64, (TRACKED,)),
        ("members", MEMBER, (TRACKED,)),
        # The members that ever contacted each, as a set of places.
        ("met", np.uint64, (TRACKED, PARTS)),
        # The members that each relay member tells, likewise.
        ("links", np.uint64, (TRACKED, PARTS)),
        ("queue", np.int64, (QUEUE, 2)),  # preference; step, sender and receiver in one
    ]
)
Run = Any  # a record of this kind


def new_run() -> Records:
    """Make room for a run, to be used again for the next."""
    room = np.zeros(1, RUN)
    return room.view(np.recarray) if PLAIN else room


@compiled
def parts(tracked: int) -> int:
    """Return how many words a set of places takes."""
    return (tracked + WORD - 1) // WORD


@compiled
def bit(place: int) -> np.uint64:
    """Return a place within its word."""
    return ONE << np.uint64(place & (WORD - 1))


@compiled
def lowest(word: np.uint64) -> int:
    """Return the number of the lowest bit of a word that is not 0."""
    alone = word & (~word + ONE)
    return int(_NUMBERS[(alone * _SEQUENCE) >> np.uint64(58)])


@compiled
def reset(run: Run, members: int) -> None:
    """Reset a run: no member tracked, all in one class."""
    used = run.sizes[MEMBERS]
    for place in range(used):
        for part in range(parts(used)):
            run.met[place, part] = 0
    for each in range(SIZES):
        run.sizes[each] = 0
    everybody = run.now[0]
    everybody.count = members
    everybody.holds = NOBODY
    everybody.ever = np.uint64(0)
    everybody.forced = 0
    run.sizes[NOW] = 1


@compiled
def place_of(run: Run, rank: int) -> int:
    """Return where a member is tracked, or NOBODY."""
    for place in range(run.sizes[MEMBERS]):
        if run.members[place].rank == rank:
            return place
    return NOBODY


@compiled
def untracked(run: Run) -> int:
    """Count the members that are not tracked, the dead included."""
    total = run.sizes[DEAD]
    for place in range(run.sizes[NOW]):
        total += run.now[place].count
    return int(total)


@compiled
def view_of(run: Run, row: np.uint64, rank: int, group: int, view_prob: float) -> int:
    """Return how many others a member knows: counted in a small group, drawn in a large one."""
    if group > WHOLE_GROUP:
        return binomial(run.stream, group - 1, view_prob)
    bar, found = limit(view_prob), 0
    for other in range(group):
        found += other != rank and knows(row, other, bar)
    return found


@compiled
def track(run: Run, rank: int, group: int, view_prob: float) -> int:
    """Begin to track a member; its class is drawn. NOBODY if there is no room."""
    place = run.sizes[MEMBERS]
    if place >= TRACKED:
        run.sizes[TROUBLE] = TOO_MANY_TRACKED
        return NOBODY
    run.sizes[MEMBERS] += 1
    member = run.members[place]
    member.rank = rank
    member.row = branch(run.views, np.uint64(rank))
    member.crash = ALIVE_FOR_GOOD
    member.number = NOBODY
    member.size = 1.0
    if view_prob > 0.0:
        member.size += view_of(run, member.row, rank, group, view_prob)
    member.aware = member.passes = member.relays = member.late = 0
    kinds = run.sizes[NOW]
    draw = 0
    if kinds > 1 or run.sizes[DEAD] > 0:
        draw = below(run.stream, untracked(run))
    for each in range(kinds):
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
def new_rank(run: Run, group: int) -> int:
    """Draw the identity of a member that is not tracked yet."""
    while True:
        rank = below(run.stream, group)
        if place_of(run, rank) == NOBODY:
            return rank


@compiled
def knows(row: np.uint64, rank: int, bar: np.uint64) -> bool:
    """Whether a rank is in the original view of the other member that has this row."""
    return bool((word(row, np.uint64(rank)) >> S11) < bar)


@compiled
def preference(run: Run, owner: int, bar: np.uint64) -> int:
    """Return the best rank that a tracked member knows: at first, by contact, as a leader."""
    member = run.members[owner]
    best = member.rank
    for part in range(parts(run.sizes[MEMBERS])):
        left = run.met[owner, part]
        while left:
            best = min(best, run.members[part * WORD + lowest(left)].rank)
            left &= left - ONE
    left = member.ever
    while left:
        best = min(best, run.members[run.leaders[lowest(left)]].rank)
        left &= left - ONE
    rank = 0
    while rank < best and not knows(member.row, rank, bar):
        rank += 1
    return rank


@compiled
def put(run: Run, count: int, holds: int, ever: np.uint64, forced: int) -> None:
    """Let this many more members come out of the round like this."""
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
    """Move the classes that came out of a round into the next."""
    for each in range(run.sizes[THEN]):
        run.now[each] = run.then[each]
    run.sizes[NOW] = run.sizes[THEN]
    run.sizes[THEN] = 0
