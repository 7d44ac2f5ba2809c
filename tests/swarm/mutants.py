"""Guards with one part switched off, each a subclass or a setting of the real ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hustings.cli.swarm import ENTRIES, quorate, votes
from hustings.core.choice import MemberId
from hustings.core.context import Context
from hustings.core.election import Election
from hustings.protocols.quorum import Quorate, QuorumConfig
from hustings.protocols.quorum.messages import Ballot
from hustings.protocols.quorum.petition import Petition
from hustings.protocols.quorum.voter import Voter
from hustings.sim.swarm import QUORUM, Asking, Elect, Swarm
from hustings.substrate.confirmed import Confirmed, GuardConfig

RIGHT = Swarm(tuple(ENTRIES.values()), (QUORUM,), quorate=quorate, votes=votes)


class UnwrittenPromise(Voter):
    """Promises and does not write it down."""

    def keep_promise(self, ctx: Context) -> None:
        pass


class UnwrittenLease(Voter):
    """Accepts and does not write it down."""

    def keep_lease(self, ctx: Context) -> None:
        pass


class Hasty(Voter):
    """Takes what it accepted before a restart for over."""

    def restart_wait(self, lasting: float) -> float:
        return 0.0


class AnyRound(Voter):
    """Compares no rounds, and so no tokens."""

    def is_outdone(self, ballot: Ballot) -> bool:
        return False


class Minority(Petition):
    """Takes half of the voters for enough."""

    def majority(self) -> int:
        return len(self.electorate.voters) // 2


class Clinging(Petition):
    """Keeps its token whoever has held a higher one since."""

    def _may_keep_token(self) -> bool:
        return bool(self.token)


class Driftless(GuardConfig, frozen=True, kw_only=True):
    """Takes all clocks for equal."""

    @property
    def slack(self) -> float:
        return 1.0


def without_margin(inner: Election, lease: GuardConfig) -> Confirmed:
    """Counts a lease to its last moment."""
    return Confirmed(inner, Driftless(ttl=lease.ttl, drift=lease.drift))


class _UnwrittenPromises(Quorate):
    Voting = UnwrittenPromise


class _UnwrittenLeases(Quorate):
    Voting = UnwrittenLease


class _HastyVoters(Quorate):
    Voting = Hasty


class _AnyRounds(Quorate):
    Voting = AnyRound


class _Minorities(Quorate):
    Petitioning = Minority


class _Clinging(Quorate):
    Petitioning = Clinging


def around(kind: type[Quorate]) -> Callable[[Asking, tuple[MemberId, ...], GuardConfig], Elect]:
    """How a broken quorum goes round elections."""

    def go_round(elect: Asking, voters: tuple[MemberId, ...], lease: GuardConfig) -> Elect:
        config = QuorumConfig(delta=lease.delta, voters=voters, longest=lease.asked)
        return lambda: kind(elect(), config)

    return go_round


@dataclass(frozen=True)
class Mutant:
    """A part that is switched off, and the first seed of the swarm that misses it."""

    part: str
    swarm: Swarm
    first: int  # of seeds 0, 1, 2, ...
    missed: str  # the property that breaks there


MUTANTS = [
    Mutant("durable promise", replace(RIGHT, quorate=around(_UnwrittenPromises)), 53, "holders"),
    Mutant("durable lease", replace(RIGHT, quorate=around(_UnwrittenLeases)), 180, "windows"),
    Mutant("majority", replace(RIGHT, quorate=around(_Minorities)), 0, "windows"),
    Mutant("clock margin", replace(RIGHT, wrap=without_margin), 380, "windows"),
    Mutant("comparison of rounds", replace(RIGHT, quorate=around(_AnyRounds)), 43, "holders"),
    Mutant("comparison of kept tokens", replace(RIGHT, quorate=around(_Clinging)), 435, "holders"),
    Mutant("wait after a restart", replace(RIGHT, quorate=around(_HastyVoters)), 180, "windows"),
    Mutant("comparison at the resource", replace(RIGHT, fenced=False), 0, "register"),
]
