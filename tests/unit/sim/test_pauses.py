"""Members that pause at random: how often, for how long, and what it does to them."""

from __future__ import annotations

from math import sqrt

import pytest

from hustings.core.errors import BadInput
from hustings.lab import simulate
from hustings.sim.agenda import Agenda
from hustings.sim.delay import Exponential, Fixed, Uniform
from hustings.sim.faults import Crash, Restart
from hustings.sim.member import Status
from hustings.sim.pauses import Pauses, Pausing, parse_pauses
from tests.unit.sim.worlds import Ear, Script, Stage, arm, cry, ping

LONG = 4_000.0
TICK: Script = {"timer tick": arm("tick", LONG)}


def pausing_in(stage: Stage, pauses: Pauses) -> Pausing:
    agenda = Agenda(stage)
    pausing = Pausing(pauses, stage, agenda, 0.0)
    agenda.arm()
    return pausing


def paused(pauses: Pauses, members: int = 5, until: float = LONG) -> tuple[Pausing, list[float]]:
    """The pauses of a world in which something is always left to happen, and each length."""
    stage = Stage(members, TICK)
    arm("tick", LONG)(stage.members[1])
    ear = Ear()
    stage.watch(ear)
    pausing = pausing_in(stage, pauses)
    stage.run(until)
    since: dict[int, float] = {}
    lengths = []
    for at, member, status, _ in ear.changes:
        if status == "paused":
            since[member] = at
        elif status == "up" and member in since:
            lengths.append(at - since.pop(member))
    return pausing, lengths


def test_members_pause_at_the_given_rate() -> None:
    """A member pauses `rate` times in a unit of time in which it runs."""
    rate, length, members = 0.1, 2.0, 5
    pausing, _ = paused(Pauses(rate, Fixed(length)), members)
    expected = members * LONG / (1 / rate + length)
    assert pausing.pauses == pytest.approx(expected, abs=5 * sqrt(expected))


def test_pauses_follow_their_law_and_none_exceeds_the_longest() -> None:
    _, lengths = paused(Pauses(0.2, Exponential(2.0), longest=5.0))
    assert max(lengths) == pytest.approx(5.0, abs=1e-6)
    cut = sum(length > 4.999 for length in lengths) / len(lengths)
    assert cut == pytest.approx(0.0821, abs=0.03)  # exp(-5 / 2)
    mean = 2.0 * (1 - 0.0821)
    assert sum(lengths) / len(lengths) == pytest.approx(mean, abs=0.2)


def test_the_report_counts_pauses_and_their_length() -> None:
    pausing, lengths = paused(Pauses(0.1, Uniform(1.0, 3.0)))
    found = pausing.metrics()
    assert found["pauses"] == pausing.pauses >= len(lengths) > 100
    assert found["pause_length"] == pytest.approx(sum(lengths) / len(lengths), abs=0.02)


def test_a_paused_member_handles_nothing_until_it_goes_on() -> None:
    stage = Stage(2)
    pausing_in(stage, Pauses(1.0, Fixed(50.0)))
    for number in range(60):
        stage.let(float(number), 1, ping(number, 2))
    stage.run()
    ear = [at for at, _ in stage.heard(2)]
    assert any(ear.count(at) > 20 for at in ear)  # what had waited is read at one instant


def test_pauses_alone_keep_no_run_going() -> None:
    stage = Stage(3)
    pausing_in(stage, Pauses(1.0, Fixed(0.5)))
    stage.let(10.0, 1, ping(1, 2))
    stage.run()
    assert 10.0 < stage.now < 30.0
    assert all(member.status is Status.UP for member in stage.members.values())


def test_a_crash_in_a_pause_is_a_crash() -> None:
    stage = Stage(1, TICK)
    arm("tick", 100.0)(stage.members[1])
    ear = Ear()
    stage.watch(ear)
    pausing_in(stage, Pauses(1.0, Fixed(30.0)))
    stage.plan(Crash(member=1, at=15.0), Restart(member=1, at=16.0))
    stage.let(90.0, 1, cry(1))  # until then something is left to happen
    stage.run(100.0)
    told = [(status, incarnation) for _, _, status, incarnation in ear.changes]
    assert told[:3] == [("paused", 1), ("crashed", 1), ("up", 2)]
    assert told[3] == ("paused", 2)


def test_a_whole_member_is_told_that_it_stood_still() -> None:
    """Longer than the stall bound: a leader that wakes up steps down first."""
    plain = simulate("le-s", members=4, composed=True, delay=0.05, seed=3, until=200)
    study = simulate(
        "le-s",
        members=4,
        composed=True,
        delay=0.05,
        seed=3,
        until=200,
        faults=["call:1@150"],
        pause=0.05,
        pause_settings={"length": 10},
    )
    assert plain["step_downs"].mean == 0
    assert study["pauses"].mean > 5
    assert study["step_downs"].mean > 0


def test_the_same_seed_pauses_at_the_same_instants() -> None:
    def digest(seed: int, rate: float) -> str | None:
        study = simulate(
            "bully", members=6, scenario="leader-crash", seed=seed, pause=rate, digest=True
        )
        return study.report.digest

    assert digest(1, 0.2) == digest(1, 0.2)
    assert len({digest(1, 0.2), digest(2, 0.2), digest(1, 0.3)}) == 3


@pytest.mark.parametrize(
    "rate, settings, sentence",
    [
        (0.0, {}, "rate of pauses must be a number > 0"),
        (0.1, {"longest": "0"}, "longest pause must be a time > 0"),
        (0.1, {"longest": "soon"}, "longest pause must be a number"),
        (0.1, {"length": "gauss:1"}, "unknown delay model 'gauss'"),
        (0.1, {"shortest": "1"}, "unknown pause setting 'shortest'"),
    ],
)
def test_what_makes_no_sense_is_refused(
    rate: float, settings: dict[str, str], sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence):
        parse_pauses(rate, settings)
