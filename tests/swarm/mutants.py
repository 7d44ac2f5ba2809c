"""Guards with one part switched off, each a subclass or a setting of the real ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hustings.core.choice import MemberId
from hustings.core.context import Context
from hustings.core.election import Election
from hustings.lab.swarming import ENTRIES, votes, with_quorum
from hustings.layers.lease import LeaseConfig, LeaseLayer
from hustings.quorum import QuorumConfig, QuorumLeaseLayer
from hustings.quorum.acceptor import Acceptor
from hustings.quorum.messages import Ballot
from hustings.quorum.proposer import Proposer
from hustings.quorum.recovery import AcceptorRecovery
from hustings.sim.swarm import QUORUM, Asking, Elect, Swarm

# What the swarm does not find is for the unit tests: tokens kept too long, votes of former lives.
RIGHT = Swarm(tuple(ENTRIES.values()), (QUORUM,), with_quorum=with_quorum, votes=votes)
RANDOM_ELECTION = replace(RIGHT, entries=(ENTRIES["random-election"],))


class UnwrittenPromise(Acceptor):
    """Promises and does not write it down."""

    def keep_promise(self, ctx: Context) -> None:
        pass


class UnwrittenLease(Acceptor):
    """Accepts and does not write it down."""

    def keep_lease(self, ctx: Context) -> None:
        pass


class Hasty(Acceptor):
    """Takes what it accepted before a restart for over."""

    def restart_wait(self, lasting: float) -> float:
        return 0.0


class AnyRound(Acceptor):
    """Compares no rounds, and so no tokens."""

    def is_outdone(self, ballot: Ballot) -> bool:
        return False


class Minority(Proposer):
    """Takes half of the voters for enough."""

    def majority(self) -> int:
        return len(self.electorate.voters) // 2


class Dateless(Acceptor):
    """Begins with the first round, whatever was promised before all disks were lost."""

    def begin_above(self, number: int) -> None:
        pass


class Impatient(AcceptorRecovery):
    """Takes an electorate without memory for one that never was."""

    def _begin_with_all(self, ctx: Context) -> None:
        self.ready = min(self.ready, ctx.now())
        super()._begin_with_all(ctx)


class Driftless(LeaseConfig, frozen=True, kw_only=True):
    """Takes all clocks for equal."""

    @property
    def slack(self) -> float:
        return 1.0


def without_margin(inner: Election, lease: LeaseConfig) -> LeaseLayer:
    """Counts a lease to its last moment."""
    return LeaseLayer(inner, Driftless(ttl=lease.ttl, drift=lease.drift))


class _UnwrittenPromises(QuorumLeaseLayer):
    acceptor_class = UnwrittenPromise


class _UnwrittenLeases(QuorumLeaseLayer):
    acceptor_class = UnwrittenLease


class _HastyVoters(QuorumLeaseLayer):
    acceptor_class = Hasty


class _AnyRounds(QuorumLeaseLayer):
    acceptor_class = AnyRound


class _Minorities(QuorumLeaseLayer):
    proposer_class = Minority


class _Dateless(QuorumLeaseLayer):
    acceptor_class = Dateless


class _Impatient(QuorumLeaseLayer):
    recovery_class = Impatient


def around(
    kind: type[QuorumLeaseLayer],
) -> Callable[[Asking, tuple[MemberId, ...], LeaseConfig], Elect]:
    """How a broken quorum goes round elections."""

    def go_round(elect: Asking, voters: tuple[MemberId, ...], lease: LeaseConfig) -> Elect:
        config = QuorumConfig(delta=lease.delta, voters=voters, max_ttl=lease.asked)
        return lambda: kind(elect(), config)

    return go_round


@dataclass(frozen=True)
class Mutant:
    """A part that is switched off, and the first seed of the swarm that misses it."""

    part: str
    swarm: Swarm
    first: int  # of seeds 0, 1, 2, ...
    missed: str  # the property that breaks there
    begin: int = 0  # seeds before this one are left out


MUTANTS = [
    Mutant(
        "durable promise",
        replace(RIGHT, with_quorum=around(_UnwrittenPromises)),
        667,
        "holders",
        begin=640,
    ),
    Mutant("durable lease", replace(RIGHT, with_quorum=around(_UnwrittenLeases)), 5, "windows"),
    Mutant("majority", replace(RIGHT, with_quorum=around(_Minorities)), 5, "windows"),
    Mutant(
        "clock margin", replace(RANDOM_ELECTION, wrap=without_margin), 2_319, "windows", begin=2_300
    ),
    Mutant("comparison of rounds", replace(RIGHT, with_quorum=around(_AnyRounds)), 2, "holders"),
    Mutant("wait after a restart", replace(RIGHT, with_quorum=around(_HastyVoters)), 1, "windows"),
    Mutant("wait without memory", replace(RIGHT, with_quorum=around(_Impatient)), 117, "windows"),
    Mutant("date without memory", replace(RIGHT, with_quorum=around(_Dateless)), 16, "holders"),
    Mutant("comparison at the resource", replace(RIGHT, fenced=False), 4, "register"),
]
