"""A group that does not agree comes to agree within a few periods, whatever the election.

Heartbeats go from all to all here, so no suspicion helps: what heals is the comparing of notes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pytest

from hustings.core.choice import Candidate, MemberId
from hustings.core.context import Context
from hustings.core.election import Claim, Election
from hustings.core.outcome import Elected, GaveUp
from hustings.layers.detector.heartbeat import HeartbeatConfig
from hustings.layers.gossip.layer import GossipContext, GossipLayer
from hustings.layers.leadership.incumbency import Heard, Incumbency
from hustings.layers.leadership.layer import LeadershipConfig, LeadershipLayer
from hustings.layers.leadership.messages import LeaderInfoMsg
from hustings.layers.leadership.reconciliation import Reconciliation
from hustings.layers.leadership.standing import OBSERVER, with_standing
from hustings.protocols.announce.le_s import LeS
from hustings.protocols.bully import Bully
from hustings.protocols.registry import ANNOUNCING, BASELINES, COMPARED, LARGE, classes
from hustings.sim.faults import Crash, Restart
from hustings.sim.world import World
from tests.swarm.leaderships import PUMP, SMOOTH, leadership_of, stacked

ELECTORS = (1, 2, 3, 4, 5)
WATCHER = 9  # an observer
SETTLED = 60.0
HELM = LeadershipConfig()
SOON = 8 * HELM.period
BEATS = HeartbeatConfig(T=2.0, D=7.0, pattern="all-to-all")

WITH_DETECTOR = [*classes(COMPARED), *classes(LARGE)]
AGREEING = [kind for kind in classes(ANNOUNCING) if kind not in classes(BASELINES)]
MARK = partial(pytest.mark.parametrize, "kind", ids=lambda kind: kind.about.name)
WITH_NOTES = MARK(WITH_DETECTOR)
WITH_ANNOUNCEMENTS = MARK(AGREEING)
EVERY_PROTOCOL = MARK([*WITH_DETECTOR, *AGREEING])


class Calm:
    """Five electors and an observer that have agreed."""

    def __init__(
        self,
        kind: type[Election],
        leadership: LeadershipConfig = HELM,
        roof: type[LeadershipLayer] = LeadershipLayer,
        late: Mapping[MemberId, float] | None = None,
    ) -> None:
        people = [Candidate(member) for member in ELECTORS]
        people.append(with_standing(Candidate(WATCHER), OBSERVER))
        self.world = World(
            lambda: stacked(kind, leadership, roof, BEATS), people, seed=7, network=SMOOTH
        )
        self.world.be_careful()
        self.world.at(0.0, self.pump)
        for member in self.world.members:
            at = 0.0 if late is None else late.get(member, 0.0)
            self.world.at(at, partial(self.world.start, member))
        self.world.run(until=SETTLED)
        self.first = self.agreed()

    def pump(self) -> None:
        for ctx in self.world.live():
            ctx.me = leadership_of(ctx).shown(ctx.me)
        self.world.at(self.world.now + PUMP, self.pump)

    def within(self, member: MemberId) -> tuple[LeadershipLayer, Context]:
        ctx = self.world.members[member]
        assert isinstance(ctx.election, GossipLayer)
        return leadership_of(ctx), GossipContext(ctx, ctx.election)

    def believe(self, member: MemberId, leader: MemberId, term: int) -> None:
        """Let a member be wrong."""
        leadership, ctx = self.within(member)
        leadership.assume_leader(ctx, leader, term)

    def despair(self, member: MemberId) -> None:
        leadership, ctx = self.within(member)
        leadership.inner.give_up(leadership.within(ctx), "nobody answers")

    def run(self, time: float = SOON) -> Elected:
        self.world.run(until=self.world.now + time)
        return self.agreed()

    def agreed(self) -> Elected:
        said = {ctx.id: ctx.outcome for ctx in self.world.live()}
        outcome = said[min(said)]
        assert isinstance(outcome, Elected), said
        assert {
            (each.leader, each.term) for each in said.values() if isinstance(each, Elected)
        } == {(outcome.leader, outcome.term)}, said
        assert all(isinstance(each, Elected) for each in said.values()), said
        return outcome


def two_leaders(group: Calm, one_term: int, other_term: int) -> Elected:
    for member in (1, 2):
        group.believe(member, 2, one_term)
    for member in (3, 4, 5):
        group.believe(member, 5, other_term)
    return group.run()


@WITH_NOTES
def test_two_leaders_in_one_term_become_one(kind: type[Election]) -> None:
    group = Calm(kind)
    term = group.first.term + 1
    assert two_leaders(group, term, term).term > term


@WITH_NOTES
def test_of_two_leaders_the_later_stays(kind: type[Election]) -> None:
    group = Calm(kind)
    assert two_leaders(group, 9, 7).leader == 2


@WITH_ANNOUNCEMENTS
@pytest.mark.parametrize("terms", [(9, 7), (7, 9), (9, 9)])
def test_two_leaders_that_announce_themselves_become_one(
    kind: type[Election], terms: tuple[int, int]
) -> None:
    """Each comes first for those that follow it, and none of them outbids the other for long."""
    group = Calm(kind)
    after = two_leaders(group, *terms)
    assert after.term <= max(terms) + 2
    if kind.assumptions.displaces:  # else the one that woke first leads
        assert after.leader == (2 if terms[0] > terms[1] else 5)
    assert group.run() == after


@WITH_NOTES
def test_who_follows_somebody_that_does_not_lead_finds_out(kind: type[Election]) -> None:
    group = Calm(kind)
    group.believe(1, 3, group.first.term)
    assert group.run().leader == group.first.leader


@EVERY_PROTOCOL
def test_who_has_given_up_is_told(kind: type[Election]) -> None:
    group = Calm(kind)
    group.despair(1)
    assert isinstance(group.world.members[1].outcome, GaveUp)
    assert group.run() == group.first


@WITH_NOTES
def test_a_group_that_has_given_up_elects(kind: type[Election]) -> None:
    group = Calm(kind)
    for member in ELECTORS:
        group.despair(member)
    assert group.run(2 * SOON).term > group.first.term


@EVERY_PROTOCOL
def test_a_better_newcomer_does_not_take_over(kind: type[Election]) -> None:
    group = Calm(kind, late={5: 40.0})
    assert group.first.leader != 5
    assert group.run(3 * SOON) == group.first


@WITH_NOTES
def test_with_preempt_after_0_it_does_where_the_election_has_it_so(kind: type[Election]) -> None:
    group = Calm(kind, LeadershipConfig(preempt_after=0.0), late={5: 30.0})
    assert (group.run().leader == 5) == kind.assumptions.displaces


@EVERY_PROTOCOL
def test_with_preempt_after_it_does_after_a_while(kind: type[Election]) -> None:
    group = Calm(kind, LeadershipConfig(preempt_after=40.0), late={5: 40.0})
    assert group.first.leader == 4
    assert group.run(15.0) == group.first
    assert group.run(15.0).leader == 5


@EVERY_PROTOCOL
def test_a_hand_over_takes_two_delays_and_lasts(kind: type[Election]) -> None:
    group = Calm(kind)
    leadership, ctx = group.within(group.first.leader)
    heir = 2 if group.first.leader != 2 else 3
    assert leadership.hand_over(ctx, heir)
    assert group.run(2.0) == Elected(heir, group.first.term + 1)
    assert group.run(3 * SOON) == Elected(heir, group.first.term + 1)


@EVERY_PROTOCOL
def test_a_crash_ends_the_incumbency(kind: type[Election]) -> None:
    group = Calm(kind)
    leadership, ctx = group.within(group.first.leader)
    leadership.hand_over(ctx, 1)
    group.run()
    Crash(member=1).happen(group.world)
    second = group.run(2 * SOON)
    assert second.leader not in (1, WATCHER)
    Restart(member=1).happen(group.world)
    assert group.run(2 * SOON).leader == second.leader


def test_one_of_several_leaders_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    several = {"T_A": 2.0, "T_L": 9.0, "leaders": 2}
    monkeypatch.setattr("tests.swarm.leaderships.settings", lambda kind: several)
    group = Calm(LeS)

    def leaders() -> list[MemberId]:
        return [ctx.id for ctx in group.world.live() if leadership_of(ctx).leads(ctx.id)]

    assert leaders() == [4, 5]
    leadership, ctx = group.within(4)
    assert leadership.hand_over(ctx, 1)
    group.run()
    assert leaders() == [1, 5]
    leadership, ctx = group.within(5)
    leadership.stand_back(ctx)
    group.run()
    assert leaders() == [1, 4]


class Deaf(Reconciliation):
    """Hears nothing that others say of the leader."""

    def compare(self, ctx: Context, sender: MemberId, info: LeaderInfoMsg) -> None:
        """Never mind."""


class Aloof(LeadershipLayer):
    """Listens to nobody."""

    Reconciling = Deaf


def test_without_notes_it_does_not_heal() -> None:
    group = Calm(Bully, roof=Aloof)
    with pytest.raises(AssertionError):
        two_leaders(group, 9, 7)


class Outbidding(Incumbency):
    """Lets the election hear all claims, so that two leaders answer each other."""

    def judge(self, ctx: Context, sender: MemberId, claim: Claim) -> Heard:
        return Heard.YES


class Unyielding(LeadershipLayer):
    """Each leader stays, whatever the other one's term."""

    Staying = Outbidding


def test_two_leaders_that_do_not_go_by_terms_outbid_each_other() -> None:
    group = Calm(LeS, roof=Unyielding)
    with pytest.raises(AssertionError):
        two_leaders(group, 9, 7)
    known = [leadership_of(ctx).term for ctx in group.world.live()]
    assert max(known) > 15
