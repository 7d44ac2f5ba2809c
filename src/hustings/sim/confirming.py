"""Whether anybody can be confirmed as things are: who is up, who reaches the guard.

Only what is certain counts as an obstacle. A message may get lost and the next one arrive, so any
chance of arriving is enough; a member that is not in the group yet may be the one that is needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hustings.core.choice import MemberId
from hustings.core.election import Election
from hustings.layers.layer import find
from hustings.sim.guarding import GUARD
from hustings.sim.member import Status
from hustings.sim.world import World

if TYPE_CHECKING:
    from hustings.quorum.layer import VotesNeeded


def obstacle(world: World) -> str | None:
    """Why nobody can be confirmed; None if somebody may be, or if nobody needs to."""
    if any(member.status is Status.OUT for member in world.members.values()):
        return None
    if world.guard is None:
        return _no_majority(world)
    if any(_meet(world, member.id, GUARD) for member in world.live()):
        return None
    return "no live member reaches the guard"


def _meet(world: World, one: MemberId, other: MemberId) -> bool:
    """Whether a question may arrive there and an answer here."""
    if one == other:
        return True
    cut = world.cuts.between(one, other) or world.cuts.between(other, one)
    return not cut and world.network.loss.p < 1.0


def _votes_needed(election: Election) -> VotesNeeded | None:
    """Whose votes this member needs; None where nobody votes."""
    # Few worlds have voters, and the others do not load them.
    from hustings.quorum.layer import QuorumLeaseLayer  # noqa: PLC0415

    layer = find(QuorumLeaseLayer, election)
    return None if layer is None else layer.votes_needed()


def _no_majority(world: World) -> str | None:
    first: VotesNeeded | None = None
    for member in world.live():
        needed = _votes_needed(member.election)
        if needed is None:
            return None
        first = first or needed
        able = [each for each in needed.voters if _may_vote(world, needed, each)]
        if sum(_meet(world, member.id, each) for each in able) >= needed.enough:
            return None
    return None if first is None else _reason(world, first)


def _may_vote(world: World, needed: VotesNeeded, voter: MemberId) -> bool:
    """Whether a voter votes, or may yet be let in.

    Voters that remember no vote begin when all of them have met; later one that votes lets others
    in.
    """
    own = _voting(world, voter)
    if own is None:
        return False
    others = [each for each in needed.voters if each != voter]
    met = [each for each in others if _voting(world, each) is not None]
    met = [each for each in met if _meet(world, voter, each)]
    return own or len(met) == len(others) or any(_voting(world, each) for each in met)


def _voting(world: World, voter: MemberId) -> bool | None:
    """Whether a voter votes now; None if it is not up."""
    member = world.members.get(voter)
    if member is None or not member.up:
        return None
    own = _votes_needed(member.election)
    return own is not None and own.votes


def _reason(world: World, needed: VotesNeeded) -> str:
    voters = needed.voters
    up = [each for each in voters if _voting(world, each) is not None]
    said = f"{needed.enough} of the voters {_listed(voters)} have to be up and to reach each other"
    if len(up) >= needed.enough and not any(_voting(world, each) for each in up):
        said = f"the voters {_listed(voters)} have never voted, and to begin all have to meet"
    down = [each for each in voters if each not in up]
    return said + (f": {_listed(down)} {'is' if len(down) == 1 else 'are'} down" if down else "")


def _listed(members: Iterable[MemberId]) -> str:
    return ", ".join(str(each) for each in members)
