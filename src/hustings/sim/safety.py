"""Checkers of a world with a guard: what must never happen, under any faults.

Unlike most properties, these are about every instant of a run and not about its end. A run that was
cut off has kept them until then: there is no `undecided`. They look at what members declare and at
what the guard granted, not at what members compute.
"""

from __future__ import annotations

from hustings.core.choice import MemberId
from hustings.core.outcome import Elected, Outcome
from hustings.sim.checkers import Checker, Verdict, agreed_leader
from hustings.sim.faults import EMPTY_DISK
from hustings.sim.guarding import Grant, Holder
from hustings.sim.member import SimContext
from hustings.sim.world import Ended, World

# Timers lie on a grid of 1e-8 and clocks are doubles: less than this is no time at all.
NO_TIME = 1e-6


class _Never(Checker):
    """Something that must never happen; the first time is recorded."""

    holds: str

    def __init__(self) -> None:
        self._broken = ""

    def broken(self, world: World, what: str) -> None:
        """It happened."""
        if not self._broken:
            self._broken = f"{what} (at {world.now:g})"

    def judge(self, world: World, ended: Ended) -> tuple[Verdict, str]:
        if self._broken:
            return Verdict.VIOLATED, self._broken
        return Verdict.HOLDS, self.holds


class Holders(_Never):
    """No token ever has two holders, and every token is larger than those granted before.

    If no single place grants, as in a quorum, a grant is seen when its holder declares itself. This
    is the order of granting only if no two windows overlap, which is promised while clocks keep
    their bound. If they do not, the order is not compared (`ordered`).
    """

    name = "holders"
    listens = True
    holds = "every token had one holder and was larger than those before"

    def __init__(self, *, ordered: bool = True) -> None:
        super().__init__()
        self._ordered = ordered
        self._claims: list[Grant] = []  # if no other part keeps a list

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        if not isinstance(outcome, Elected) or outcome.leader != member.id:
            return
        if world.guard is not None:
            return
        claim = Grant(world.now, outcome.term, Holder(member.id, member.incarnation))
        last = self._claims[-1] if self._claims else None
        if last is None or (last.token, last.holder) != (claim.token, claim.holder):
            self._claims.append(claim)

    def grants(self, world: World) -> list[Grant]:
        """All grants, in order."""
        return self._claims if world.guard is None else world.guard.grants

    def judge(self, world: World, ended: Ended) -> tuple[Verdict, str]:
        grants = self.grants(world)
        first: dict[int, Holder] = {}
        for before, grant in zip([None, *grants], grants, strict=False):
            holder = first.setdefault(grant.token, grant.holder)
            if holder != grant.holder:
                self.broken(
                    world, f"token {grant.token} went to {_who(holder)} and to {_who(grant.holder)}"
                )
            ordered = self._ordered or world.guard is not None
            if ordered and before is not None and grant.token <= before.token:
                self.broken(world, f"token {grant.token} was granted after {before.token}")
        return super().judge(world, ended)


class Tokens(_Never):
    """No two members hold different leaders for a token, and none goes back to a smaller one."""

    name = "tokens"
    watches = True
    holds = "every token had one leader, and no member went back to a smaller token"

    def __init__(self) -> None:
        super().__init__()
        self._leader: dict[int, MemberId] = {}
        self._seen: dict[MemberId, int] = {}  # also across restarts

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        if not isinstance(outcome, Elected):
            return
        leader, token = outcome.leader, outcome.term
        first = self._leader.setdefault(token, leader)
        if first != leader:
            self.broken(world, f"token {token} is held for {first}'s and for {leader}'s")
        seen = self._seen.setdefault(member.id, token)
        if token < seen:
            self.broken(world, f"member {member.id} went back from token {seen} to {token}")
        self._seen[member.id] = max(seen, token)

    def changed(self, world: World, member: SimContext) -> None:
        """A member that returns without its disk has seen nothing."""
        if member.up and member.stored is EMPTY_DISK:
            self._seen.pop(member.id, None)


class Grants(_Never):
    """No member declares itself leader without a grant of exactly that token."""

    name = "grants"
    listens = True
    holds = "no member declared itself without a grant"

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        grants = [] if world.guard is None else world.guard.grants
        if (
            isinstance(outcome, Elected)
            and outcome.leader == member.id
            and not any(
                grant.token == outcome.term
                and grant.holder == Holder(member.id, member.incarnation)
                for grant in reversed(grants)
            )
        ):
            self.broken(world, f"member {member.id} leads with token {outcome.term}, not granted")


class Windows(_Never):
    """Two members that are awake never both say at one time that they are confirmed.

    Promised only while clock rates stay within the bound that the members were told.
    """

    name = "windows"
    watches = True
    holds = "never two at one time"

    def __init__(self) -> None:
        super().__init__()
        self._since: dict[MemberId, float] = {}  # the members that lead now, and since when
        self.longest = 0.0  # with two leaders

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        self._note(world, member)

    def changed(self, world: World, member: SimContext) -> None:
        self._note(world, member)

    def _note(self, world: World, member: SimContext) -> None:
        """A paused member does nothing, so its belief does no harm."""
        outcome = member.outcome
        if member.up and isinstance(outcome, Elected) and outcome.leader == member.id:
            self._since.setdefault(member.id, world.now)
        elif member.id in self._since:
            self._compare(world, member.id)
            del self._since[member.id]

    def _compare(self, world: World, one: MemberId) -> None:
        for other, since in self._since.items():
            overlap = world.now - max(since, self._since[one])
            if other != one and overlap > NO_TIME:
                self.longest = max(self.longest, overlap)
                self.broken(world, f"members {one} and {other} both led for {overlap:g}")

    def judge(self, world: World, ended: Ended) -> tuple[Verdict, str]:
        for member in self._since:
            self._compare(world, member)
        return super().judge(world, ended)


class Settles(Checker):
    """A member leads at the end: after the calm there was time enough.

    `confirmed`: it says so itself, within its lease; otherwise all live members hold one live
    leader.
    """

    name = "settles"
    watches = True

    def __init__(self, calm: float, grace: float, *, confirmed: bool) -> None:
        """A leader that stepped down less than `grace` before the end is good enough, too."""
        self._calm = calm
        self._grace = grace
        self._confirmed = confirmed
        self._leading: dict[MemberId, None] = {}
        self._last = -1.0  # when a member led last
        self.after: float | None = None  # time from the calm to a leader

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        self._note(world, member)

    def changed(self, world: World, member: SimContext) -> None:
        self._note(world, member)

    def _note(self, world: World, member: SimContext) -> None:
        outcome = member.outcome
        if member.up and isinstance(outcome, Elected) and outcome.leader == member.id:
            self._leading[member.id] = None
            if self.after is None and world.now >= self._calm:
                self.after = world.now - self._calm
        elif member.id in self._leading:
            del self._leading[member.id]
            self._last = world.now

    def judge(self, world: World, ended: Ended) -> tuple[Verdict, str]:
        if not self._confirmed:
            leader = agreed_leader(world)
            if leader is not None and world.members[leader].up:
                return Verdict.HOLDS, "all held one leader in the end"
            return Verdict.VIOLATED, f"{world.now - self._calm:g} after the calm: no one leader"
        if self._leading or self._last >= world.now - self._grace:
            if self.after is None:
                self.after = 0.0  # a member has led since before the calm
            return Verdict.HOLDS, "a member led at the end"
        return Verdict.VIOLATED, f"no member led {world.now - self._calm:g} after the calm"


def safety_checkers(central: bool = True) -> list[Checker]:
    """New checkers for one run. Without a `central` guard there is no list of grants."""
    return [Holders(), Tokens(), Grants(), Windows()] if central else [Tokens(), Windows()]


def _who(holder: Holder) -> str:
    return f"{holder.member} (incarnation {holder.incarnation})"
