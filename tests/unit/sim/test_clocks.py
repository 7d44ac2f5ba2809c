"""Clocks that run fast, slow or behind: timers and `now()` follow the member's clock."""

from __future__ import annotations

import pytest

from hustings.core.context import Context
from hustings.core.errors import BadInput
from hustings.protocols.bully import Bully, BullyConfig
from hustings.sim.experiment import Experiment
from hustings.sim.member import Clocks
from hustings.sim.play import prepare
from hustings.sim.queue import END_OF_TIME
from hustings.sim.scenarios import Scenario
from tests.unit.sim.worlds import Stage, arm, ping


@pytest.mark.parametrize("rate, fires", [(1.0, 5.0), (2.0, 3.0), (0.5, 9.0), (0.8, 6.0)])
def test_a_fast_clock_has_short_timers(rate: float, fires: float) -> None:
    stage = Stage(1)
    stage.members[1].keep_time(rate, 0.0)
    stage.let(1.0, 1, arm("a", 4.0))
    assert stage.played() == [(fires, 1, "timer a")]


def test_an_offset_shifts_what_a_member_reads_and_no_timer() -> None:
    stage = Stage(1)
    stage.members[1].keep_time(1.0, 100.0)
    stage.let(1.0, 1, arm("a", 4.0))
    assert stage.played() == [(5.0, 1, "timer a")]


def test_a_member_reads_its_own_clock() -> None:
    read: list[float] = []

    def look(ctx: Context) -> None:
        read.append(ctx.now())

    stage = Stage(2, {"PING 1 from 1": look, "timer a": look})
    stage.members[2].keep_time(1.5, -3.0)
    stage.let(1.0, 1, ping(1, 2))
    stage.let(4.0, 2, arm("a", 3.0))
    stage.run()
    assert read == [-3.0 + 1.5 * 2.0, -3.0 + 1.5 * 6.0]


def test_a_timer_lasts_as_long_as_its_own_clock_says() -> None:
    """Whatever the clock: now() moves on by the delay while a timer runs."""
    read: list[float] = []

    def look(ctx: Context) -> None:
        read.append(ctx.now())

    for rate, offset in ((0.7, 0.0), (1.3, 5.0), (1.0, -2.0)):
        stage = Stage(1, {"timer a": look})
        stage.members[1].keep_time(rate, offset)
        stage.let(2.0, 1, look)
        stage.let(2.0, 1, arm("a", 6.0))
        stage.run()
        start, end = read[-2:]
        assert end - start == pytest.approx(6.0, abs=1e-8)


def test_messages_do_not_follow_anybodys_clock() -> None:
    stage = Stage(2)
    for member in stage.members.values():
        member.keep_time(2.0, 0.0)
    ping(1, 2)(stage.members[1])
    assert stage.played() == [(1.0, 2, "PING 1 from 1")]


# In experiments every member draws its clock.


def clocks_of(clocks: Clocks, run: int = 0, seed: int = 0) -> list[tuple[float, float]]:
    experiment = Experiment(
        Bully, 50, BullyConfig(), scenario=Scenario("start"), clocks=clocks, seed=seed
    )
    return [one.clock for one in prepare(experiment, run).members.values()]


def test_clocks_are_right_unless_they_are_said_to_be_wrong() -> None:
    assert set(clocks_of(Clocks())) == {(1.0, 0.0)}


def test_clocks_are_drawn_within_their_bounds_by_the_seed() -> None:
    drawn = clocks_of(Clocks(drift=0.1, offset=5.0))
    rates = [rate for rate, _ in drawn]
    offsets = [offset for _, offset in drawn]
    assert all(0.9 <= rate <= 1.1 for rate in rates)
    assert all(0.0 <= offset <= 5.0 for offset in offsets)
    assert min(rates) < 0.95
    assert max(rates) > 1.05
    assert max(offsets) - min(offsets) > 3.0
    assert drawn == clocks_of(Clocks(drift=0.1, offset=5.0))
    assert drawn != clocks_of(Clocks(drift=0.1, offset=5.0), run=1)
    assert drawn != clocks_of(Clocks(drift=0.1, offset=5.0), seed=1)


@pytest.mark.parametrize("wrong", [-0.1, 1.0, float("nan")])
def test_a_clock_runs_forward(wrong: float) -> None:
    with pytest.raises(BadInput, match=r"clock drift must lie in \[0, 1\)"):
        Clocks(drift=wrong)


@pytest.mark.parametrize("wrong", [-1.0, 2 * END_OF_TIME, float("nan")])
def test_an_offset_is_a_time(wrong: float) -> None:
    with pytest.raises(BadInput, match="clock offset must lie in"):
        Clocks(offset=wrong)
