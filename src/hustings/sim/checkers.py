"""Checkers: they stand outside the protocols, see everything, and judge a finished run.

A verdict has three values. `VIOLATED` means that the checker saw a counterexample. `HOLDS` means
that the run came to its end without one. `UNDECIDED` means that the run was cut off, or that the
property needs something that did not happen.

An election that announces never rests, so its run ends when an observer has seen enough. A
property that does not hold at that moment may hold at the next, so this is no counterexample.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum

from hustings.core.choice import Choice, MemberId
from hustings.core.outcome import ELECTING, Elected, GaveUp, NoLeader, Outcome
from hustings.sim.guarding import obstacle
from hustings.sim.member import SimContext
from hustings.sim.world import Ended, World


class Verdict(Enum):
    """What a checker says."""

    HOLDS = "holds"
    UNDECIDED = "undecided"
    VIOLATED = "violated"


class Checker(ABC):
    """One property of elections."""

    name: str
    listens = False  # whether it hears of each election, or judges only the end
    watches = False  # whether it hears of everything that members declare and do
    restless = False  # whether the election goes on for ever, so that a stop is not an end

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        """A member declared something; most properties look only at the end."""

    def changed(self, world: World, member: SimContext) -> None:
        """A member came up or went down."""

    @abstractmethod
    def judge(self, world: World, ended: Ended) -> tuple[Verdict, str]:
        """The verdict on a run and the reason in a sentence."""

    def final(self, ended: Ended, reason: str) -> tuple[Verdict, str]:
        """A violation seen at the stop counts only if the run had come to its end."""
        if ended is Ended.QUIESCENT or (ended is Ended.STOPPED and not self.restless):
            return Verdict.VIOLATED, reason
        return Verdict.UNDECIDED, reason


def beliefs(world: World) -> dict[MemberId, MemberId | None]:
    """The leader that each live member holds."""
    held: dict[MemberId, MemberId | None] = {}
    for member in world.members.values():  # like world.live() and held_by, inlined
        if member.awake:
            outcome = member.outcome
            held[member.id] = outcome.leader if outcome.__class__ is Elected else None
    return held


def agreed_leader(world: World) -> MemberId | None:
    """The leader that all live members agree on, if they do."""
    leaders = set(beliefs(world).values())
    return leaders.pop() if len(leaders) == 1 else None


class Uniqueness(Checker):
    """In the end at most one live member leads."""

    name = "uniqueness"

    def judge(self, world: World, ended: Ended) -> tuple[Verdict, str]:
        leading = [member for member, leader in beliefs(world).items() if leader == member]
        if len(leading) > 1:
            return self.final(ended, f"members {_list(leading)} all lead in the end")
        return Verdict.HOLDS, "at most one live member leads"


class Terms(Checker):
    """A term never has two leaders, and in the end no member is ahead of its leader.

    A member is wrong if it follows a leader in a later term than the leader leads in, or in a term
    that another member led in: it confuses two leaderships. A member in an earlier term has missed
    that its leader was elected again. That is undecided, since the member may still hear of it.

    An advisory protocol cannot promise this: a leader that returns and resumes without asking any
    other member may take the number that its successor took.
    """

    name = "terms"
    listens = True

    def __init__(self) -> None:
        self._leaders: dict[int, MemberId] = {}
        self._clash = ""

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        if isinstance(outcome, Elected):
            first = self._leaders.setdefault(outcome.term, outcome.leader)
            if first != outcome.leader and not self._clash:
                self._clash = (
                    f"members {first} and {outcome.leader} both lead in term {outcome.term} "
                    f"(the second at {world.now:g}, says {member.id})"
                )

    def judge(self, world: World, ended: Ended) -> tuple[Verdict, str]:
        if self._clash:
            return Verdict.VIOLATED, self._clash
        held = {each.id: each.outcome for each in world.live() if type(each.outcome) is Elected}
        behind = ""
        for member, outcome in held.items():
            own = held.get(outcome.leader, outcome)
            if own.leader == outcome.leader and own.term != outcome.term:
                reason = (
                    f"member {member} holds {own.leader} in term {outcome.term}, which itself "
                    f"leads in term {own.term}"
                )
                if outcome.term > own.term:
                    return self.final(ended, reason)
                behind = behind or reason
        if behind:
            return Verdict.UNDECIDED, behind
        return Verdict.HOLDS, "no term had two leaders"


class Agreement(Checker):
    """In the end no two live members hold different leaders."""

    name = "agreement"

    def judge(self, world: World, ended: Ended) -> tuple[Verdict, str]:
        held = beliefs(world)
        leaders = sorted({leader for leader in held.values() if leader is not None})
        if len(leaders) > 1:
            return self.final(ended, f"leaders {_list(leaders)} are held at once")
        without = [member for member, leader in held.items() if leader is None]
        if without:
            return Verdict.UNDECIDED, f"members {_list(without)} hold no leader"
        return Verdict.HOLDS, "all live members hold one leader"


class Validity(Checker):
    """In the end every leader held is alive and the best of the live members.

    A protocol that never displaces a live leader has to show only that the leader is alive.
    """

    name = "validity"

    def __init__(self, choice: Choice, *, displaces: bool = True) -> None:
        self._choice = choice
        self._displaces = displaces

    def judge(self, world: World, ended: Ended) -> tuple[Verdict, str]:
        live = world.live()
        if not live:
            return Verdict.UNDECIDED, "no member is alive"
        best = max(live, key=lambda member: self._choice.key(member.me)).id
        for member, leader in beliefs(world).items():
            alive = leader is not None and world.members[leader].up
            if leader is not None and leader != best and (self._displaces or not alive):
                state = "not the best alive" if world.members[leader].up else "dead"
                return self.final(ended, f"member {member} holds {leader}, which is {state}")
        if not self._displaces:
            return Verdict.HOLDS, "no member holds a dead leader"
        return Verdict.HOLDS, f"no member holds any other than {best}, the best alive"


class Termination(Checker):
    """The run ends, and every live member has decided.

    `unheard`: messages may get lost and no member repeats them, so a member that never declared
    anything may not have heard of the election. Then the verdict is open.
    """

    name = "termination"

    def __init__(self, *, unheard: bool = False) -> None:
        self._unheard = unheard

    def judge(self, world: World, ended: Ended) -> tuple[Verdict, str]:
        if ended in (Ended.UNTIL, Ended.MAX_EVENTS, Ended.MAX_ROUNDS):
            return Verdict.UNDECIDED, f"the run was cut off by its limit ({ended.value})"
        if ended is Ended.UNCONFIRMABLE:
            return Verdict.UNDECIDED, f"no member can be confirmed: {obstacle(world)}"
        live = world.live()
        unheard = [member.id for member in live if member.outcome is None]
        hung = [member.id for member in live if member.outcome == NoLeader(ELECTING)]
        if not self._unheard:
            hung = sorted([*hung, *unheard])
        if hung and ended is Ended.STOPPED and self.restless:
            return Verdict.UNDECIDED, f"members {_list(hung)} had not decided at the stop"
        if hung:
            return Verdict.VIOLATED, f"members {_list(hung)} never decided and nothing is left"
        if unheard:
            return Verdict.UNDECIDED, f"members {_list(unheard)} heard nothing of the election"
        without = [member for member in live if isinstance(member.outcome, GaveUp | NoLeader)]
        if without:
            reason = getattr(without[0].outcome, "reason", "")
            ids = [member.id for member in without]
            return Verdict.UNDECIDED, f"members {_list(ids)} ended without a leader: {reason}"
        return Verdict.HOLDS, "every live member decided"


class LastBit(Checker):
    """Consensus by an election: all members that decide, decide the same bit.

    The lecture's reduction: elect a process and use the last bit of its id. A member decides when
    it first learns of a leader, and never again, as consensus asks. So a displaced leader, or a
    second one, may have made members decide differently, even if all agree in the end. Crashed
    members count too: they may have acted upon their decisions.
    """

    name = "consensus"
    listens = True

    def __init__(self) -> None:
        self._decided: dict[MemberId, MemberId] = {}  # the leader whose bit each member decided

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        if isinstance(outcome, Elected):
            self._decided.setdefault(member.id, outcome.leader)

    def judge(self, world: World, ended: Ended) -> tuple[Verdict, str]:
        bits = {leader & 1: member for member, leader in self._decided.items()}
        if len(bits) > 1:
            zero, one = (f"member {bits[bit]} by {self._decided[bits[bit]]}" for bit in (0, 1))
            return Verdict.VIOLATED, f"decided 0: {zero}; decided 1: {one}"
        without = [member.id for member in world.live() if member.id not in self._decided]
        if without:
            return Verdict.UNDECIDED, f"members {_list(without)} have not decided"
        return Verdict.HOLDS, f"all decided {next(iter(bits), 0)}"


def attach(checkers: list[Checker], world: World) -> None:
    """Register the checkers that listen or watch."""
    for checker in checkers:
        if checker.watches:
            world.watch(checker)
        elif checker.listens:
            world.claims.append(checker)


def all_checkers(
    choice: Choice,
    *,
    displaces: bool = True,
    announces: bool = False,
    agrees: bool = True,
    unheard: bool = False,
) -> list[Checker]:
    """New checkers for one run: one for each property of this kind of election.

    Members that announce claim a term side by side until they hear the best of them. That is how
    they elect, so they do not promise one leader for each term. Some of them do not even aim at
    agreement. `unheard`: see Termination.
    """
    checkers: list[Checker] = [Termination(unheard=unheard)]
    if agrees:
        judges = [Uniqueness(), Agreement(), Validity(choice, displaces=displaces)]
        checkers = [*judges, *checkers]
    for checker in checkers:
        checker.restless = announces
    return checkers if announces else [*checkers, Terms()]


def _list(members: list[MemberId]) -> str:
    shown = ", ".join(str(member) for member in members[:8])
    return shown + (f" and {len(members) - 8} more" if len(members) > 8 else "")
