"""Byzantine agreement without signatures: phase king and recursive phase king, in batches.

Model      k participants in a public order, in synchronous rounds. f of them are bad: they send
           arbitrary values, different ones to different members. t = floor((k-1)/3) unless given.
Idea       Graded consensus takes two rounds. Vote: send your value to all. Propose: if k-t members
           voted for the same value propose it, else propose nothing; then adopt a value that more
           than t proposed, and be sure of it if k-t did. If one good member is sure, all good ones
           hold its value. A member that is not sure follows another. In phase king it follows the
           king of the phase, and one of t+1 phases has a good king. In recursive phase king it
           follows first one half of the participants, which agreed among itself in the same way,
           then the other half.
Invariant  Once all good members hold the same value they are all sure of it in every later graded
           consensus, so no king and no half, however bad, changes it any more. No two good members
           ever propose different values.
Cost       Phase king: 3(t+1) rounds; every participant sends (t+1)(k-1)(v+v') bits per instance,
           the t+1 kings (k-1)v more, where v bits hold a value and v' a value or nothing.
           Recursive: C(k) = (k-1)(2(v+v')+v) + C(half) bits and R(k) = 6 + R(one half) + R(other)
           rounds down to halves of at most 16, which use phase king: about 14k bits for one bit.
Guarantee  With f <= t: all good participants decide the same, and if all good ones began with the
           same value they decide it. A half with too many bad members does no harm: if 3f < k, then
           less than a third of one of the halves is bad, too. With f > t nothing.
Paper      Scalable Leader Election, section 2, which needs any agreement for k > 3t and takes one
           with O(k^3) bits from its reference [10]; and broadcast made of it. Decided here: what
           does not arrive, or has another size, or is no value, is read as value 0 in votes, from
           kings and in results, and as "nothing" in proposals.

Many instances run at once in one batch: one message to each receiver and round carries the vector
of all of them (see `bits`), and all operations below work on all instances together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hustings.core.choice import MemberId
from hustings.protocols.committee.bits import (
    BitCounts,
    Bits,
    Planes,
    bits_of_planes,
    planes_of,
    planes_of_bits,
    values_of,
    width_of,
    within,
)
from hustings.protocols.committee.lockstep import Inbox, Script, Spoken, Stage, silent, to_all

Method = Literal["king", "recursive"]

BASE = 16  # this many or fewer use phase king; 8 would send a little less, in more rounds


@dataclass(frozen=True, slots=True)
class Seat:
    """One member's seat in one committee: its id, and what all of the committee know."""

    me: MemberId
    members: tuple[MemberId, ...]  # in public order; the first t+1 are kings
    place: int = 0  # the committee's number, which the adversary may use
    method: Method = "recursive"
    t: int | None = None  # how many bad members to tolerate; None: as many as possible

    @property
    def bears(self) -> int:
        """The number of bad members for which the thresholds are made."""
        return tolerated(len(self.members)) if self.t is None else self.t


@dataclass(frozen=True, slots=True)
class Batch:
    """A number of instances of agreement, each on one of this many options."""

    count: int
    options: int
    about: tuple[MemberId, ...] = ()  # the member whose word each instance is about, if any

    @property
    def everything(self) -> int:
        return (1 << self.count) - 1


def tolerated(members: int) -> int:
    """Return the most bad members that a committee of this size can tolerate.

    >>> [tolerated(k) for k in (1, 3, 4, 6, 7, 16, 128)]
    [0, 0, 1, 1, 2, 5, 42]
    """
    return (members - 1) // 3


def agreement_rounds(members: int, method: Method = "recursive", t: int | None = None) -> int:
    """Return how many rounds an agreement of this many members takes.

    >>> agreement_rounds(128), agreement_rounds(1024), agreement_rounds(128, "king")
    (186, 1530, 129)
    """
    if method == "king" or members <= BASE:
        return 3 * ((tolerated(members) if t is None else t) + 1)
    larger, smaller = members - members // 2, members // 2
    return 6 + agreement_rounds(larger) + agreement_rounds(smaller)


def broadcast_rounds(members: int, method: Method = "recursive", t: int | None = None) -> int:
    """Return how many rounds a broadcast takes: send to all, then agree on what arrived."""
    return 1 + agreement_rounds(members, method, t)


# Reading values that may be false


def _read(bits: Bits | None, count: int, options: int) -> Planes:
    """Read a vector of values; a wrong value reads as 0, and so does a vector of another size."""
    width = width_of(options)
    planes = planes_of_bits(bits, width, count)
    if planes is None:
        return (0,) * width
    if options == 1 << width:
        return planes
    valid = within(planes, options, count)
    return tuple(plane & valid for plane in planes)


# Counting

Ballots = Mapping[Planes, int]  # how many members sent this vector: good ones mostly send the same


def _ballots(
    inbox: Inbox, senders: Iterable[MemberId], stage: Stage, mine: Planes | None = None
) -> Ballots:
    """Read the vectors of these members, of the values or proposals of this stage, and my own.

    In a vector of proposals 0 is nothing, and a+1 is value a.
    """
    ballots = Counter[Planes]() if mine is None else Counter((mine,))
    for bits, often in Counter(map(inbox.get, senders)).items():
        ballots[_read(bits, stage.count, stage.options)] += often
    return ballots


def _most(ballots: Ballots, width: int, quorum: int) -> Planes:
    """Return bit by bit what at least `quorum` ballots say: the only value with this support."""
    winner = []
    for bit in range(width):
        tally = BitCounts()
        for ballot, often in ballots.items():
            tally.add(ballot[bit], often)
        winner.append(tally.at_least(quorum))
    return tuple(winner)


def _equal(one: Planes, other: Planes, among: int) -> int:
    """Return in which of these instances two vectors are the same."""
    differ = 0
    for mine, yours in zip(one, other, strict=True):
        differ |= mine ^ yours
    return among & ~differ


def _choose(mask: int, one: Planes, other: Planes) -> Planes:
    """Return one where the mask is set, the other elsewhere."""
    return tuple(b ^ (a ^ b) & mask for a, b in zip(one, other, strict=True))


def _proposing(value: Planes, where: int, width: int) -> Planes:
    """Return value + 1 where the mask is set, 0 elsewhere."""
    proposal = []
    carry = where
    for plane in value:
        proposal.append(plane & where ^ carry)
        carry &= plane
    if width > len(value):
        proposal.append(carry)
    return tuple(proposal)


def _proposed(proposal: Planes, where: int, width: int) -> Planes:
    """Return proposal - 1, valid where the mask is set."""
    value = []
    borrow = where
    for plane in proposal[:width]:
        value.append(plane ^ borrow)
        borrow &= ~plane
    return tuple(value)


# Graded consensus


def graded(seat: Seat, batch: Batch, value: Planes, step: int) -> Script[tuple[Planes, int]]:
    """Vote and propose; return the value, and in which instances this member is sure of it."""
    me, members, k, t = seat.me, seat.members, len(seat.members), seat.bears
    others = [each for each in members if each != me]

    stage = _stage("vote", seat, batch, step)
    inbox = yield Spoken(stage, to_all(members, me, bits_of_planes(value, batch.count)))
    votes = _ballots(inbox, others, stage, value)
    # k-t votes are more than half, so a value that has them has the majority in each of its bits:
    # count the bits, then the votes for the one value that may have enough.
    leading = _most(votes, stage.width, k // 2 + 1)
    support = BitCounts()
    for vote, often in votes.items():
        support.add(_equal(vote, leading, batch.everything), often)
    agreed = support.at_least(k - t)

    stage = _stage("propose", seat, batch, step)
    mine = _proposing(leading, agreed, stage.width)
    inbox = yield Spoken(stage, to_all(members, me, bits_of_planes(mine, batch.count)))
    proposals = _ballots(inbox, others, stage, mine)
    leading, support = _most_proposed(proposals, stage.width)
    adopted = support.at_least(t + 1)
    sure = support.at_least(k - t)
    value = _choose(adopted, _proposed(leading, adopted, len(value)), value)
    return value, sure


def _most_proposed(proposals: Ballots, width: int) -> tuple[Planes, BitCounts]:
    """Return the value with most proposals, and its proposals.

    Good members propose only one value. If, with at most t lies, more than t propose a value, then
    more than half of all that propose anything propose it: so it has the majority bit by bit.
    """
    present = BitCounts()
    for proposal, often in proposals.items():
        present.add(_made(proposal), often)
    leading = []
    for bit in range(width):
        tally = BitCounts()
        for proposal, often in proposals.items():
            tally.add(proposal[bit], often)
        leading.append(tally.exceeds_half_of(present))
    support = BitCounts()
    for proposal, often in proposals.items():
        support.add(_equal(proposal, tuple(leading), _made(proposal)), often)
    return tuple(leading), support


def _made(proposal: Planes) -> int:
    """Return in which instances this proposes anything."""
    something = 0
    for plane in proposal:
        something |= plane
    return something


# The two protocols


def phase_king(seat: Seat, batch: Batch, value: Planes) -> Script[Planes]:
    """Run t+1 phases, each with a king; members that are not sure follow it."""
    me, members = seat.me, seat.members
    for phase in range(seat.bears + 1):
        value, sure = yield from graded(seat, batch, value, phase)
        king = members[phase]
        stage = _stage("king", seat, batch, phase)
        if me == king:
            yield Spoken(stage, to_all(members, me, bits_of_planes(value, batch.count)))
        else:
            inbox = yield Spoken(stage, {})
            value = _choose(sure, value, _read(inbox.get(king), batch.count, batch.options))
    return value


def recursive_king(seat: Seat, batch: Batch, value: Planes) -> Script[Planes]:
    """Run phase king with two phases, whose kings are the two halves of the participants."""
    me, members = seat.me, seat.members
    if len(members) <= BASE:
        return (yield from phase_king(seat, batch, value))
    middle = len(members) - len(members) // 2
    for phase, half in enumerate((members[:middle], members[middle:])):
        value, sure = yield from graded(seat, batch, value, phase)
        stage = _stage("result", seat, batch, phase)
        inbox: Inbox
        if me in half:
            inner = replace(seat, members=half, t=None)
            result = yield from recursive_king(inner, batch, value)
            inbox = yield Spoken(stage, to_all(members, me, bits_of_planes(result, batch.count)))
            results = _ballots(inbox, (each for each in half if each != me), stage, result)
        else:
            yield from silent(agreement_rounds(len(half)))
            inbox = yield Spoken(stage, {})
            results = _ballots(inbox, half, stage)
        advice = _most(results, stage.width, len(half) // 2 + 1)
        value = _choose(sure, value, _valid(advice, batch))
    return value


def _valid(value: Planes, batch: Batch) -> Planes:
    """Replace an invalid value, which mixed bits of several results may give, by 0."""
    return _read(bits_of_planes(value, batch.count), batch.count, batch.options)


def agree(seat: Seat, batch: Batch, value: Planes) -> Script[Planes]:
    """Run the agreement that the seat's committee uses."""
    return (recursive_king if seat.method == "recursive" else phase_king)(seat, batch, value)


def agree_on(seat: Seat, values: Sequence[int], options: int) -> Script[list[int]]:
    """Agree on one of `options` values, in as many instances as there are values."""
    batch = Batch(len(values), options)
    decided = yield from agree(seat, batch, planes_of(values, width_of(options)))
    return values_of(decided, batch.count)


def broadcast(
    seat: Seat,
    senders: Sequence[MemberId],
    value: int,
    options: int,
    *,
    kind: str = "send",
    step: int = 0,
    detail: object = None,
) -> Script[list[int]]:
    """Let all `senders` send one of `options` values, and agree on what each has sent.

    Each sends to all, then all agree on what arrived, all senders in one batch. `value` is this
    member's own word if it is a sender. With f <= t all good members get the same list, and a good
    sender's own word is in it; a sender without a readable word sent 0. `kind`, `step` and `detail`
    tell the adversary what the word is about.
    """
    me, members = seat.me, seat.members
    width = width_of(options)
    about = tuple(senders)
    stage = Stage(kind, seat.place, step, width, 1, options, members, about, seat.bears, detail)
    word = Bits(value, width)
    inbox = yield Spoken(stage, to_all(members, me, word) if me in senders else {})
    came = [
        value if each == me else values_of(_read(inbox.get(each), 1, options), 1)[0]
        for each in senders
    ]
    batch = Batch(len(came), options, about)
    decided = yield from agree(seat, batch, planes_of(came, width))
    return values_of(decided, batch.count)


def _stage(kind: str, seat: Seat, batch: Batch, step: int) -> Stage:
    options = batch.options + 1 if kind == "propose" else batch.options
    return Stage(
        kind,
        seat.place,
        step,
        width_of(options),
        batch.count,
        options,
        seat.members,
        batch.about,
        seat.bears,
    )
