"""A guarded run that can never be confirmed is given up soon, and no other run is."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from hustings.core.election import Election
from hustings.lab.options import electorate
from hustings.protocols.announce.le_a import LeA
from hustings.protocols.announce.le_s import LeS
from hustings.protocols.broadcast import Broadcast
from hustings.protocols.bully import Bully
from hustings.protocols.ring import Ring
from hustings.protocols.stable import Stable
from hustings.quorum.election import Quorum
from hustings.sim.checkers import Verdict
from hustings.sim.experiment import Description, build
from hustings.sim.faults import (
    Crash,
    Happening,
    Heal,
    OneWay,
    Partition,
    Pause,
    Restart,
    Resume,
)
from hustings.sim.loss import Uncorrelated
from hustings.sim.network import Network
from hustings.sim.play import RunResult, play
from hustings.sim.scenarios import Scenario
from hustings.sim.world import Ended

KINDS = [Bully, Broadcast, Ring, Stable, LeA, LeS]
EVERYBODY = (1, 2, 3, 4, 5)
CUT_OFF = Partition(sides=((0,), EVERYBODY))
FEW = 5_000  # events: the limit of a run without one is 2,000,000


def played(
    kind: type[Election],
    *faults: Happening,
    guard: str = "memory",
    crashed: tuple[int, ...] = (),
    scenario: str = "start",
    **given: Any,
) -> RunResult:
    guards: dict[str, Any] = {} if guard == "none" else {"guard": {}}
    if guard == "quorum":
        guards["voting"] = partial(electorate, 3)
    return play(
        build(
            Description(
                kind=kind,
                members=5,
                scenario=Scenario(scenario, crashed=crashed, extra=faults),
                max_events=FEW,
                **guards,
                **given,
            )
        ),
        0,
    )


def given_up(result: RunResult) -> str:
    """The reason."""
    assert result.ended is Ended.UNCONFIRMABLE
    assert result.metrics["leader"] is None
    verdict, reason = result.verdicts["termination"]
    assert verdict is Verdict.UNDECIDED
    assert all(each is not Verdict.VIOLATED for each, _ in result.verdicts.values())
    return reason


def confirmed(result: RunResult) -> None:
    assert result.ended is Ended.STOPPED
    assert result.metrics["leader"] is not None


@pytest.mark.parametrize("kind", KINDS)
def test_a_register_cut_off_for_good(kind: type[Election]) -> None:
    assert "no live member reaches the guard" in given_up(played(kind, CUT_OFF))


@pytest.mark.parametrize("kind", KINDS)
def test_a_register_cut_off_for_a_while(kind: type[Election]) -> None:
    confirmed(played(kind, CUT_OFF, Heal(at=120.0)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_majority_of_the_voters_dead_for_good(kind: type[Election]) -> None:
    reason = given_up(played(kind, guard="quorum", crashed=(2, 3)))
    assert "2 of the voters 1, 2, 3 have to be up" in reason
    assert reason.endswith(": 2, 3 are down")


@pytest.mark.parametrize("kind", KINDS)
def test_voters_that_come_later(kind: type[Election]) -> None:
    late = (Restart(member=2, at=150.0), Restart(member=3, at=180.0))
    confirmed(played(kind, *late, guard="quorum", crashed=(2, 3)))


@pytest.mark.parametrize("crashed", [(3,), (2, 3), (3, 4, 5)])
def test_voters_that_never_voted_must_all_meet(crashed: tuple[int, ...]) -> None:
    given_up(played(Quorum, guard="none", crashed=crashed))
    late = [Restart(member=each, at=100.0) for each in crashed]
    confirmed(played(Quorum, *late, guard="none", crashed=crashed))


def test_one_voter_of_those_that_have_voted_may_go() -> None:
    confirmed(played(Quorum, Crash(member=3, at=50.0), guard="none"))
    both = Crash(member=3, at=50.0), Crash(member=2, at=60.0)
    assert "2, 3 are down" in given_up(played(Quorum, *both, guard="none"))
    confirmed(played(Quorum, *both, Restart(member=2, at=300.0), guard="none"))


def test_a_leader_keeps_its_lease_to_the_end() -> None:
    """The register goes out of reach when somebody leads: first that one steps down."""
    late = Partition(sides=((0,), EVERYBODY), at=20.0)
    result = played(Bully, late)
    given_up(result)
    assert 20.0 < (result.metrics["time"] or 0.0) <= 20.0 + 30.0


@pytest.mark.parametrize(
    "cut",
    [OneWay(senders=EVERYBODY, to=(0,)), OneWay(senders=(0,), to=EVERYBODY)],
    ids=["questions", "answers"],
)
def test_one_direction_is_enough_to_be_cut_off(cut: OneWay) -> None:
    given_up(played(Bully, cut))
    confirmed(played(Bully, cut, Heal(name="one-way", at=90.0)))


def test_a_partition_replaces_the_one_before() -> None:
    confirmed(played(Bully, CUT_OFF, Partition(sides=((1,), (2,)), at=90.0)))


def test_a_paused_voter_is_out_of_reach_until_it_goes_on() -> None:
    pauses = [Pause(member=each, at=0.0) for each in (2, 3)]
    given_up(played(Bully, *pauses, guard="quorum"))
    resumes = [Resume(member=each, at=80.0) for each in (2, 3)]
    confirmed(played(Bully, *pauses, *resumes, guard="quorum"))


def test_a_network_that_loses_everything() -> None:
    given_up(played(Bully, network=Network(loss=Uncorrelated(1.0))))


@pytest.mark.parametrize("kind", [Bully, LeS])
@pytest.mark.parametrize("guard", ["memory", "quorum"])
def test_a_loss_that_leaves_a_chance_gives_nobody_up(kind: type[Election], guard: str) -> None:
    lossy = Network(loss=Uncorrelated(0.6))
    assert played(kind, guard=guard, network=lossy).ended is not Ended.UNCONFIRMABLE


def test_the_joiner_may_be_the_voter_that_is_missing() -> None:
    experiment = Description(
        kind=Quorum, members=2, settings={"voters": 3}, scenario=Scenario("join-larger")
    )
    assert play(build(experiment), 0).metrics["leader"] is not None


@pytest.mark.parametrize("scenario", ["leader-crash", "leader-leave", "false-departure"])
@pytest.mark.parametrize("kind", [Bully, LeS])
def test_established_groups_are_given_up_as_well(kind: type[Election], scenario: str) -> None:
    given_up(played(kind, scenario=scenario, guard="quorum", crashed=(1, 2)))
