"""Endgames: from a committee to one leader.

Model      As for lightest bins: r candidates in a public order, x of them bad, in a committee that
           can broadcast. Bad members choose last and know all that is known, but not future coins.
Idea       Three games. Feige: lightest bin with two bins, down to one. Baton: the first candidate
           holds a baton and passes it to one that has not had it; the last to get it leads. Path: a
           public binary tree has a candidate at every node; the one at the root chooses a branch,
           then the one at that node, D times; the member at the end leads.
Invariant  All good participants see the same position of the game, since moves are broadcast.
Cost       Feige about log2(r) broadcasts by all left; baton r-2 and path D by one member each, of
           ceil(log2 of those left) and of one bit.
Guarantee  A good leader with a probability that falls with x/r; `theory` has it exactly. Feige
           loses most. Baton is good for x below r/log r and holds against any adversary. Path is
           the best of them, if the adversary cannot choose its members after the tree: a hash of
           the agreed candidates labels the tree, and D >= 128 is meant for an adversary that can
           try at most 2^80 of them (assumed, and outside the paper's model).
Paper      Scalable Leader Election, section 2 and reference [2]; the paper takes Feige's, [12].
           Decided here: a holder without a readable move moves to the first place that it could.

`style` says how a committee gets there. "feige"; "full": a path among all; "small": halve to at
most r_end, then a path among the rest; "baton": the same, then the baton.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

from hustings.core.choice import MemberId
from hustings.core.streams import Stream
from hustings.protocols.committee.agreement import Seat, broadcast, broadcast_rounds
from hustings.protocols.committee.bins import (
    Members,
    halving,
    halvings_to,
    heavyweight,
    heavyweight_rounds,
    throw_rounds,
)
from hustings.protocols.committee.bits import Bits, width_of
from hustings.protocols.committee.lockstep import Outbox, Script, Spoken, Stage, silent, to_all
from hustings.protocols.committee.tree import plurality

Style = Literal["full", "small", "baton", "feige"]

DEPTH = 128
R_END = 128


# Positions of the games


@dataclass(frozen=True, slots=True)
class Baton:
    """The member that holds the baton, and the members that have not had it."""

    holder: MemberId
    waiting: Members

    @classmethod
    def begin(cls, candidates: Members) -> Baton:
        """Begin with the lowest id as the holder."""
        first, *rest = sorted(candidates)
        return cls(first, tuple(rest))

    def passed(self, place: int) -> Baton:
        """Pass the baton to the member at this place among the waiting.

        >>> Baton.begin((4, 2, 3)).passed(1)
        Baton(holder=4, waiting=(3,))
        """
        waiting = self.waiting
        return Baton(waiting[place], waiting[:place] + waiting[place + 1 :])


@dataclass(frozen=True, slots=True)
class Walk:
    """A position on the way down the public tree; a node's number is 1 and then its branches."""

    candidates: Members
    key: bytes
    left: int  # steps
    node: int = 1

    @classmethod
    def begin(cls, candidates: Members, depth: int) -> Walk:
        """Begin at the root of the tree that belongs to these candidates."""
        text = ",".join(str(each) for each in sorted(candidates))
        return cls(candidates, blake2b(text.encode(), digest_size=32).digest(), depth)

    @property
    def holder(self) -> MemberId:
        """Return the member that chooses here, or that leads if this is the end."""
        path = self.node.to_bytes(self.node.bit_length() // 8 + 1, "big")
        label = blake2b(path, key=self.key, digest_size=16).digest()
        return self.candidates[int.from_bytes(label, "big") % len(self.candidates)]

    def step(self, branch: int) -> Walk:
        """Take one step down; branch is 0 or 1."""
        return Walk(self.candidates, self.key, self.left - 1, 2 * self.node + branch)


# Scripts: what a participant sends


def pass_baton(seat: Seat, candidates: Members, rng: Stream) -> Script[MemberId]:
    """Pass the baton until every candidate has had it; return the last one."""
    game = Baton.begin(candidates)
    # The last pass needs no word: only one candidate is left.
    for step in range(len(candidates) - 2):
        places = len(game.waiting)
        mine = rng.below(places) if game.holder == seat.me else 0
        (place,) = yield from broadcast(
            seat, (game.holder,), mine, places, kind="baton", step=step, detail=game
        )
        game = game.passed(place)
    return game.waiting[0] if game.waiting else game.holder


def walk_down(seat: Seat, candidates: Members, depth: int, rng: Stream) -> Script[MemberId]:
    """Walk from the root of the public tree; return the member at the end."""
    game = Walk.begin(candidates, depth)
    for step in range(depth):
        holder = game.holder
        mine = rng.below(2) if holder == seat.me else 0
        (branch,) = yield from broadcast(
            seat, (holder,), mine, 2, kind="path", step=step, detail=game
        )
        game = game.step(branch)
    return game.holder


def leader_of(
    seat: Seat,
    style: Style,
    rng: Stream,
    *,
    depth: int = DEPTH,
    r_end: int = R_END,
    candidates: Members | None = None,
    apart: bool = False,
) -> Script[Members]:
    """Elect the one leader of a committee by the game of this style; None if no word of it came.

    The whole committee follows every move. With `apart` only those that are left after halving play
    on, which is cheaper, and tell the others. They tolerate only a third of bad ones among the
    rest.
    """
    among = seat.members if candidates is None else candidates
    if style == "feige":
        return (yield from heavyweight(seat, rng, 1, among))
    if style != "full":
        among = yield from halving(seat, halvings_to(len(among), r_end), rng, among)
        among = among[:r_end]  # more only if all threw into one bin
    if not apart or len(among) == len(seat.members):
        return ((yield from _play(seat, among, style, depth, rng)),)
    winner: MemberId | None = None
    if seat.me in among:
        inner = Seat(seat.me, among, seat.place, seat.method)
        winner = yield from _play(inner, among, style, depth, rng)
    else:
        once = broadcast_rounds(len(among), seat.method)
        yield from silent(_moves(style, len(among), depth) * once)
    return (yield from _announce(seat, among, winner))


def _play(
    seat: Seat, candidates: Members, style: Style, depth: int, rng: Stream
) -> Script[MemberId]:
    if style == "baton":
        return (yield from pass_baton(seat, candidates, rng))
    return (yield from walk_down(seat, candidates, depth, rng))


def _moves(style: Style, candidates: int, depth: int) -> int:
    return max(0, candidates - 2) if style == "baton" else depth


def _announce(seat: Seat, left: Members, winner: MemberId | None) -> Script[Members]:
    """Send the winner from the players to the other participants, which believe the most."""
    members, width = seat.members, width_of(len(seat.members))
    outbox: Outbox = {}
    if winner is not None:
        others = [each for each in members if each not in left]
        outbox = to_all(others, seat.me, Bits(members.index(winner), width))
    stage = Stage("announce", seat.place, 0, width, 1, len(members), left, members)
    heard = yield Spoken(stage, outbox)
    if winner is not None:
        return (winner,)
    words = (heard.get(each) for each in left)
    places = (word.value for word in words if word is not None and word.length == width)
    said = plurality((place,) for place in places if place < len(members))
    return () if said is None else (members[said[0]],)


def leader_rounds(
    seat: Seat,
    style: Style,
    *,
    depth: int = DEPTH,
    r_end: int = R_END,
    candidates: int | None = None,
    apart: bool = False,
) -> int:
    """Return the most rounds that `leader_of` takes with these numbers."""
    among = len(seat.members) if candidates is None else candidates
    once = broadcast_rounds(len(seat.members), seat.method, seat.t)
    if style == "feige":
        return heavyweight_rounds(seat, among)
    if style == "full":
        return depth * once
    before = throw_rounds(seat, halvings_to(among, r_end))
    most = min(among, r_end)
    if not apart:
        return before + _moves(style, most, depth) * once
    inner = (
        _moves(style, left, depth) * broadcast_rounds(left, seat.method)
        for left in range(1, most + 1)
    )
    return before + 1 + max(inner)
