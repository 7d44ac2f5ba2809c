"""With a guard, whatever happens: one holder per token, tokens grow, never two at one time.

Over several inner elections, which may be as wrong as they like; and each part of the guard that is
taken out is missed by the checker it belongs to.
"""

from __future__ import annotations

import pytest

from hustings.core.choice import MemberId
from hustings.core.context import Context
from hustings.core.election import Election
from hustings.core.guard import Granted, Held, Verdict
from hustings.core.outcome import Elected
from hustings.layers.lease import LeaseConfig, LeaseLayer
from hustings.protocols.registry import find
from hustings.sim.guarding import Holder, MemoryGuard
from tests.swarm.draws import reliable
from tests.swarm.guarded import Guarding, Played, RandomElection, Wrap, held, turmoil

SEEDS = 100
ENOUGH_SEEDS = 400  # to find what is broken
MANY_SEEDS = 10_000
SHOWN = 5

CASES: list[tuple[type[Election], dict[str, object]]] = [
    (RandomElection, {}),
    (find("bully"), {}),
    (find("le-s"), {}),
    (find("le-a"), {"query": "query", "bye": 2}),
    (find("probabilistic"), {"K": 3}),
]
every_case = pytest.mark.parametrize(
    "kind, settings", CASES, ids=[kind.about.name for kind, _ in CASES]
)


def check(kind: type[Election], settings: dict[str, object], seeds: range) -> list[Played]:
    played = {seed: turmoil(kind, settings, seed) for seed in seeds}
    wrong = [f"seed {seed}: {run.wrong}" for seed, run in played.items() if run.wrong]
    assert not wrong, f"{len(wrong)} of {len(seeds)} seeds fail:\n" + "\n".join(wrong[:SHOWN])
    return list(played.values())


@every_case
def test_never_two(kind: type[Election], settings: dict[str, object]) -> None:
    played = check(kind, settings, range(SEEDS))
    # A swarm in which nothing happens proves nothing.
    assert sum(len(run.guard.grants) for run in played) > SEEDS
    assert sum(run.lapses for run in played) > SEEDS / 10
    assert sum(len(run.guard.grants) >= 3 for run in played) > SEEDS / 10
    assert sum(run.resource.refused > 0 for run in played) > 0
    assert sum(len(run.resource.executed) for run in played) > 5 * SEEDS


@pytest.mark.soak
@pytest.mark.timeout(900)
@every_case
@pytest.mark.parametrize("first", range(SEEDS, SEEDS + MANY_SEEDS, 1_000))
def test_never_two_for_very_many_seeds(
    kind: type[Election], settings: dict[str, object], first: int
) -> None:
    check(kind, settings, range(first, first + 1_000))


def test_when_calm_comes_back_all_hold_one_confirmed_leader() -> None:
    """Progress is the inner election's: one that heals itself gets a confirmed leader, too."""
    for seed in range(SEEDS // 2):
        run = turmoil(find("le-s"), {}, seed, network=reliable, calm=60.0)
        said = held(run.group)
        assert not run.wrong
        if said:
            (outcome,) = set(said.values())
            assert isinstance(outcome, Elected), f"seed {seed}: {outcome}"
            assert run.group.world.members[outcome.leader].up, f"seed {seed}"
            assert outcome.term == run.guard.token, f"seed {seed}"
            assert outcome.leader == run.group.best_alive(), f"seed {seed}"


# Each part of the guard is needed: without it, the swarm finds what it prevents


class FromReceipt(LeaseLayer):
    """Counts a grant from when the answer came."""

    def on_verdict(self, ctx: Context, verdict: Verdict) -> None:
        if isinstance(verdict, Granted | Held) and verdict.request in self.pending:
            self.pending[verdict.request] = ctx.now()
        super().on_verdict(ctx, verdict)


class Timeless(LeaseLayer):
    """Leads until somebody tells it otherwise."""

    def _look(self, ctx: Context) -> None:
        pass

    def _step_down(self, ctx: Context) -> None:
        pass


class AnyToken(LeaseLayer):
    """Believes whatever it heard last."""

    def _accept(self, ctx: Context, leader: MemberId, token: int) -> None:
        self.term = 0
        super()._accept(ctx, leader, token)


class Hasty(LeaseLayer):
    """Leads as soon as it is nominated."""

    def _nominate(self, ctx: Context) -> None:
        super()._nominate(ctx)
        if self.until is None:
            self._hold(ctx, ctx.me.id, self.term + 1)


class Driftless(LeaseConfig, frozen=True, kw_only=True):
    """Takes all clocks for equal."""

    @property
    def slack(self) -> float:
        return 1.0


def driftless(inner: Election, lease: LeaseConfig) -> LeaseLayer:
    """An election that does."""
    return LeaseLayer(inner, Driftless(ttl=lease.ttl, drift=lease.drift))


class ForgetfulGuard(MemoryGuard):
    """Begins its tokens anew when it is free."""

    def decide(self, who: Holder, ttl: float, request: int) -> Verdict:
        if self.is_free():
            self.token = 0
        return super().decide(who, ttl, request)


class FriendlyGuard(MemoryGuard):
    """Takes a new incarnation of its holder for the old one."""

    def decide(self, who: Holder, ttl: float, request: int) -> Verdict:
        if self.holder is not None and self.holder.member == who.member:
            self.holder = who
        return super().decide(who, ttl, request)


class OpenGuard(MemoryGuard):
    """Never refuses anybody."""

    def is_free(self) -> bool:
        return True


class DisorderlyGuard(MemoryGuard):
    """Acts on requests in whatever order they come."""

    def _is_outdated(self, member: MemberId, incarnation: int, request: int) -> bool:
        return False


BROKEN = [
    ("windows", FromReceipt, MemoryGuard),
    ("windows", Timeless, MemoryGuard),
    ("windows", driftless, MemoryGuard),
    ("tokens", AnyToken, MemoryGuard),
    ("grants", Hasty, MemoryGuard),
    ("holders", LeaseLayer, ForgetfulGuard),
    ("holders", LeaseLayer, FriendlyGuard),
    ("windows", LeaseLayer, OpenGuard),
    ("windows", LeaseLayer, DisorderlyGuard),
]


@pytest.mark.parametrize(
    "checker, wrap, guarding",
    BROKEN,
    ids=[f"{wrap.__name__}-{guarding.__name__}" for _, wrap, guarding in BROKEN],
)
def test_a_part_that_is_missing_is_missed(checker: str, wrap: Wrap, guarding: Guarding) -> None:
    runs = (
        turmoil(RandomElection, {}, seed, wrap=wrap, guarding=guarding)
        for seed in range(ENOUGH_SEEDS)
    )
    assert any(checker in run.wrong for run in runs)


def test_beyond_the_bound_two_may_lead_and_the_resource_still_holds() -> None:
    """Clocks four times worse than members were told: tokens need no clock."""
    overlaps = 0
    for seed in range(SEEDS):
        wrong = turmoil(RandomElection, {}, seed, beyond=4.0).wrong
        overlaps += "windows" in wrong
        assert not wrong.keys() - {"windows"}, f"seed {seed}: {wrong}"
    assert overlaps > 0


def test_a_resource_that_compares_no_tokens_is_not_safe() -> None:
    """Operations that were under way when the lease ran out arrive after the next holder's."""
    runs = (turmoil(RandomElection, {}, seed, fenced=False) for seed in range(SEEDS))
    assert any("resource" in run.wrong for run in runs)
