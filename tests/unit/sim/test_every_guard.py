"""Every election in every scenario behind every guard: a leader, or a reason why there is none."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from hustings.core.election import Election
from hustings.core.errors import BadInput
from hustings.core.outcome import Elected, Outcome
from hustings.lab.options import electorate
from hustings.protocols.announce.le_a import LeA
from hustings.protocols.announce.le_m import LeM
from hustings.protocols.announce.le_s import LeS
from hustings.protocols.bully import Bully
from hustings.protocols.registry import CATALOGUE, CONSENSUS, PRINTED, classes
from hustings.protocols.ring import Ring
from hustings.protocols.stable import Stable
from hustings.quorum import QuorumLeaseLayer
from hustings.sim.checkers import Verdict
from hustings.sim.delay import Fixed
from hustings.sim.experiment import Description, Experiment, build
from hustings.sim.faults import Heal, Partition
from hustings.sim.member import SimContext
from hustings.sim.network import Network
from hustings.sim.play import play, prepare
from hustings.sim.scenarios import SCENARIOS, Rates, Scenario
from hustings.sim.world import Ended, World

KINDS = [kind for kind in classes(CATALOGUE) if kind not in classes(PRINTED)]
GUARDS: dict[str, dict[str, Any]] = {
    "none": {},
    "memory": {"guard": {}},
    "quorum": {"guard": {}, "voting": partial(electorate, 3)},
}
MOST_EVENTS = 50_000
DISTURBANCES = ("leader-crash", "leader-leave", "join-larger", "join-smaller")


def described(kind: type[Election], scenario: str, guard: str, **given: Any) -> Experiment:
    churn = scenario == "churn"
    rates = Rates(100.0, 100.0) if churn else Rates()
    if churn and not kind.assumptions.announces:
        given.setdefault("detection", "perfect")
    return build(
        Description(
            kind=kind,
            members=5,
            scenario=Scenario(scenario, rates=rates),
            until=300.0 if churn or scenario == "false-departure" else 3_000.0,
            max_events=MOST_EVENTS,
            **GUARDS[guard],
            **given,
        )
    )


class Claims:
    """Who declared itself leader."""

    def __init__(self) -> None:
        self.terms: dict[int, int] = {}

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        if isinstance(outcome, Elected) and outcome.leader == member.id:
            self.terms[outcome.term] = member.id

    def changed(self, world: World, member: SimContext) -> None:
        pass


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.about.name)
def test_a_leader_is_confirmed_or_something_says_why_not(
    kind: type[Election], scenario: str, guard: str
) -> None:
    if kind in classes(CONSENSUS) and guard != "none":
        with pytest.raises(BadInput, match="has a guard already"):
            described(kind, scenario, guard)
        return
    if kind.about.name == "sup" and scenario == "churn":
        with pytest.raises(BadInput, match="needs a --detection"):
            described(kind, scenario, guard)
        return
    experiment = described(kind, scenario, guard)
    if guard != "none":
        world, claims = prepare(experiment, 0), Claims()
        world.watch(claims)
        world.run(experiment.horizon, MOST_EVENTS)
        assert claims.terms, "the guard confirmed nobody"
    if scenario == "churn":
        return
    result = play(experiment, 0)
    assert result.ended is (Ended.UNTIL if experiment.endless else result.ended)
    assert experiment.endless or result.ended in (Ended.STOPPED, Ended.QUIESCENT)
    violated = [
        name for name, (verdict, _) in result.verdicts.items() if verdict is Verdict.VIOLATED
    ]
    if guard != "none":
        assert result.metrics["leader"] is not None
        assert set(violated) <= {"validity"}  # a false suspicion may well depose the best
    elif kind.assumptions.agrees:
        said = [verdict for verdict, _ in result.verdicts.values() if verdict is not Verdict.HOLDS]
        assert result.metrics["leader"] is not None or said


@pytest.mark.parametrize("scenario", DISTURBANCES)
@pytest.mark.parametrize("delay", [0.05, 1.0])
@pytest.mark.parametrize("ttl", [None, 90.0])
@pytest.mark.parametrize("voters", [3, 5])
def test_voters_of_those_who_announce_enrol(
    scenario: str, delay: float, ttl: float | None, voters: int
) -> None:
    """Also where leases are long beside the period of announcements, and the voters are many."""
    experiment = build(
        Description(
            kind=LeS,
            members=7,
            scenario=Scenario(scenario),
            network=Network(delay=Fixed(delay)),
            guard={} if ttl is None else {"ttl": ttl},
            voting=partial(electorate, voters),
            max_events=MOST_EVENTS,
        )
    )
    result = play(experiment, 0)
    assert result.ended is Ended.STOPPED
    # Who joins hears at once who is confirmed, and all agree on that one until it takes over.
    assert result.metrics["leader"] == {"join-larger": 8, "join-smaller": 8}.get(scenario, 6)
    assert result.verdicts["validity"][0] is Verdict.HOLDS
    assert result.metrics["reestablishment_delay"] is not None


@pytest.mark.parametrize("choice", ["highest-id", "lowest-id"])
@pytest.mark.parametrize("scenario", DISTURBANCES)
@pytest.mark.parametrize("kind", [LeS, LeA, LeM, Bully, Ring, Stable])
def test_voters_are_members_that_are_there_from_the_beginning(
    kind: type[Election], scenario: str, choice: str
) -> None:
    """Not who is to join, and not a leader that is dead or gone when the others begin."""
    experiment = described(kind, scenario, "quorum", choice=choice)
    result = play(replace(experiment, until=200.0), 0)
    assert result.ended is Ended.STOPPED
    assert result.metrics["leader"] is not None
    assert result.verdicts["validity"][0] is Verdict.HOLDS


def voters_of(members: int, scenario: Scenario, kind: type[Election] = LeS) -> tuple[int, ...]:
    """Whom a live member takes for the voters."""
    voting = partial(electorate, 3)
    experiment = build(
        Description(kind=kind, members=members, scenario=scenario, guard={}, voting=voting)
    )
    member = prepare(experiment, 0).live()[0]
    assert isinstance(member.election, QuorumLeaseLayer)
    return member.election.electorate.voters


def test_voters_that_were_crashed_on_purpose_stay_voters() -> None:
    assert voters_of(6, Scenario("join-smaller")) == (2, 3, 4)
    assert voters_of(6, Scenario("join-smaller", crashed=(2,))) == (2, 3, 4)


def test_where_too_few_are_there_the_first_members_vote() -> None:
    assert voters_of(3, Scenario("leader-crash"), Bully) == (1, 2, 3)


def test_an_established_leader_leads_when_it_is_confirmed_and_not_before() -> None:
    world = prepare(described(LeS, "false-departure", "memory"), 0)
    assert world.members[5].outcome != Elected(5, 1)
    world.run(10.0)
    assert world.members[5].outcome == world.members[1].outcome == Elected(5, 1)


def test_a_group_whose_voters_are_dead_is_given_up_before_it_is_disturbed() -> None:
    """Nobody can be confirmed, so there is no leader to whom anything could happen."""
    experiment = build(
        Description(
            kind=LeS,
            members=6,
            scenario=Scenario("leader-crash", crashed=(1, 2)),
            guard={},
            voting=partial(electorate, 3),
            until=5_000.0,
        )
    )
    world = prepare(experiment, 0)
    assert world.run(experiment.horizon) is Ended.UNCONFIRMABLE
    assert world.now < 100.0
    assert world.members[6].up


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("detection", ["heartbeat", "accrual", "perfect"])
@pytest.mark.parametrize(
    "kind",
    [kind for kind in KINDS if not kind.assumptions.announces and kind not in classes(CONSENSUS)],
)
def test_a_dead_leader_is_noticed_by_every_detector(
    kind: type[Election], detection: str, guard: str
) -> None:
    result = play(described(kind, "leader-crash", guard, detection=detection), 0)
    assert result.ended in (Ended.STOPPED, Ended.QUIESCENT)
    assert result.metrics["leader"] not in (None, 5.0)


def test_a_detector_knows_the_dead_leader_of_those_whose_views_hold_the_living() -> None:
    watched = prepare(described(Ring, "leader-crash", "none", detection="heartbeat"), 0)
    told = prepare(described(Ring, "leader-crash", "none"), 0)
    assert 5 in watched.members[1].view
    assert 5 not in told.members[1].view


def test_nothing_is_done_to_a_leader_that_is_not_confirmed_yet() -> None:
    """The guard is cut off for a while: the leader crashes after it has led, and not before."""
    cut = (Partition(sides=((0,), (1, 2, 3, 4, 5)), at=0.0), Heal(at=40.0))
    experiment = build(
        Description(kind=LeS, members=5, scenario=Scenario("leader-crash", extra=cut), guard={})
    )
    world, claims = prepare(experiment, 0), Claims()
    world.watch(claims)
    world.run(39.0)
    assert world.members[5].up
    assert not claims.terms
    assert world.run(3_000.0, MOST_EVENTS) is Ended.STOPPED
    assert claims.terms[1] == 5
    assert not world.members[5].up
