"""A fault that was asked for happens before a run ends, or something says that it did not."""

from __future__ import annotations

import json
from math import inf
from typing import Any

import pytest

from hustings.core.election import Election
from hustings.lab.simulation import run_all
from hustings.protocols.announce.le_s import LeS
from hustings.protocols.announce.settings import LeSConfig
from hustings.protocols.registry import (
    ANNOUNCING,
    BASELINES,
    CATALOGUE,
    CONSENSUS,
    PRINTED,
    classes,
)
from hustings.sim.delay import Fixed
from hustings.sim.experiment import Description, Experiment, build
from hustings.sim.faults import Call, Crash, Happening, Heal, Partition, Pause, Restart, Resume
from hustings.sim.member import Status
from hustings.sim.network import Network
from hustings.sim.play import play, prepare
from hustings.sim.scenarios import Scenario
from hustings.sim.world import Ended
from tests.unit.cli.commands import in_process

TENTH = Network(delay=Fixed(0.1))
LEFT_OUT = (
    *classes(CONSENSUS),
    *classes(PRINTED),
)  # leases are renewed for ever; programs with errors may hang
ANNOUNCERS = [kind for kind in classes(ANNOUNCING) if kind not in classes(BASELINES)]


def faulty(kind: type[Election], *faults: Happening, **given: Any) -> Experiment:
    name = given.pop("scenario", "start")
    scenario = Scenario(name, extra=faults)
    return build(Description(kind=kind, scenario=scenario, network=TENTH, digest=True, **given))


@pytest.mark.parametrize("at", [0.3, 5.0, 77.0])
@pytest.mark.parametrize("member", [6, 8])
@pytest.mark.parametrize("kind", [kind for kind in classes(CATALOGUE) if kind not in LEFT_OUT])
def test_a_crash_happens_whenever_it_is_scheduled(
    kind: type[Election], member: int, at: float
) -> None:
    world = prepare(faulty(kind, Crash(member=member, at=at)), 0)
    assert world.run(max_events=50_000) in (Ended.STOPPED, Ended.QUIESCENT)
    assert world.now >= at
    assert world.members[member].status is Status.CRASHED


@pytest.mark.parametrize("kind", ANNOUNCERS, ids=lambda kind: kind.about.name)
@pytest.mark.parametrize("scenario", ["start", "leader-crash", "leader-leave", "join-larger"])
def test_a_group_agrees_again_after_the_last_fault(kind: type[Election], scenario: str) -> None:
    """The leader that the run was about, then everybody but 1 and 2, dies long after."""
    faults = [Crash(member=one, at=500.0 + one) for one in range(3, 9)]
    result = play(faulty(kind, *faults, scenario=scenario), 0)
    assert result.ended is Ended.STOPPED
    assert result.unplayed == ()
    assert result.metrics["leader"] in (1.0, 2.0, *([9.0] if scenario == "join-larger" else []))
    assert not any(verdict.value == "violated" for verdict, _ in result.verdicts.values())


def test_several_faults_in_any_order_all_happen() -> None:
    faults = (
        Heal(at=60.0),
        Restart(member=8, at=90.0),
        Partition(sides=((1, 2, 3), (4, 5, 6, 7, 8)), at=30.0),
        Crash(member=8, at=40.0),
        Pause(member=2, at=70.0),
        Resume(member=2, at=80.0),
    )
    experiment = faulty(LeS, *faults)
    world = prepare(experiment, 0)
    assert world.run() is Ended.STOPPED
    assert world.now > 90.0
    result = play(experiment, 0)
    assert (result.metrics["leader"], result.unplayed) == (8.0, ())


def test_what_a_start_measures_is_the_same_with_a_fault_long_after_it() -> None:
    alone = play(faulty(LeS, settings={"T_L": "inf"}), 0).metrics
    crash = play(faulty(LeS, Crash(member=6, at=50.0), settings={"T_L": "inf"}), 0).metrics
    for name in ("tmax", "num_msgs", "leadership_delay", "rounds", "first_round"):
        assert crash[name] == alone[name]


def test_a_fault_before_the_natural_end_does_not_prolong_a_run() -> None:
    """It ends where it would have ended before: what is put off is a stop that comes too early."""
    early = faulty(LeS, Crash(member=1, at=0.0), settings={"T_L": "inf"})
    world = prepare(early, 0)
    assert world.run() is Ended.STOPPED
    assert world.now < 2.0


@pytest.mark.parametrize(
    "faults, limits, told",
    [
        ((Crash(member=8, at=50.0),), {"max_events": 40}, ("crash:8 at 50",)),
        ((Crash(member=8, after_sends=90, at=0.0),), {}, ("crash:8+90 at 0",)),
        ((Crash(member=8, after_sends=1, at=0.0),), {}, ()),
        ((Crash(member=8, at=50.0),), {"until": 20.0}, ("crash:8 at 50",)),
    ],
)
def test_a_fault_that_did_not_happen_is_named(
    faults: tuple[Happening, ...], limits: dict[str, Any], told: tuple[str, ...]
) -> None:
    experiment = faulty(LeS, *faults, **limits)
    assert play(experiment, 0).unplayed == told
    assert run_all(experiment, 3).unplayed == dict.fromkeys(told, 3)


@pytest.mark.parametrize(
    "typed, sentence",
    [
        ("--fault crash:8@5", None),
        ("--fault crash:8@5 --until 2", "crash:8 at 5 never happens: the time limit is 2"),
        ("--fault crash:8@5 --max-events 20", "crash:8 at 5 did not happen: the run ended before"),
        (
            "--fault crash:8@5 --max-events 20 --runs 3",
            "crash:8 at 5 did not happen in 3 of 3 runs: the run ended before",
        ),
        ("--fault crash:8+900@0", "crash:8+900 at 0 did not happen: the run ended before"),
        (
            "--fault crash:8@5 --fault crash:8@6",
            "crash:8 at 6 has no effect: member 8 is down by then",
        ),
        (
            "--fault crash:8@7 --fault pause:8@6 --fault crash:8@5 --fault restart:8@5.5",
            None,
        ),
        ("--fault crash:8@5 --fault restart:8@6 --fault crash:8@7", None),
    ],
)
def test_the_command_line_says_so(
    typed: str, sentence: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    result = in_process(capsys)("sim", "le-s", "--delay", "0.1", "--json", *typed.split())
    warnings = json.loads(result.out)["warnings"]
    found = [one for one in warnings if one.startswith("crash:")]
    assert found == ([] if sentence is None else [sentence])
    assert [line for line in result.err.splitlines() if "crash:" in line] == [
        f"hustings: note: {one}" for one in found
    ]


def test_a_fault_that_is_to_come_much_later_happens() -> None:
    """By then the leader has announced itself more often than one whom nobody hears may."""
    experiment = faulty(LeS, Call(member=2, at=12_000.0), members=2)
    result = play(experiment, 0)
    assert result.ended is Ended.STOPPED
    assert not result.unplayed


def test_a_leader_can_be_missed_where_it_is_to_crash() -> None:
    """A start is measured with T_L=inf; where faults are to happen that is not set."""
    for faults, listen in (((), inf), ((Crash(member=8, at=5.0),), 3.0)):
        config = faulty(LeS, *faults).config
        assert isinstance(config, LeSConfig)
        assert config.listen == listen
