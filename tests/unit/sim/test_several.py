"""The start of groups with several leaders, as the simulator measures it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from hustings.core.choice import MemberId
from hustings.core.errors import BadInput
from hustings.core.messages import Message
from hustings.core.outcome import Outcome
from hustings.lab.closed_forms.registry import evaluate
from hustings.lab.simulation import run_all
from hustings.protocols.registry import find
from hustings.sim.announcing import settled
from hustings.sim.delay import Fixed, Uniform
from hustings.sim.experiment import Experiment
from hustings.sim.loss import Loss, NoLoss, Uncorrelated
from hustings.sim.member import SimContext
from hustings.sim.network import Network
from hustings.sim.play import play, prepare
from hustings.sim.scenarios import Scenario
from hustings.sim.world import Ended, World

LE_S = find("le-s")
NO_LOSS = NoLoss()
LOSSY = Uncorrelated(0.3)


def start(members: int, k: int, delay: float = 0.1, loss: Loss = NO_LOSS) -> Experiment:
    settings = {"leaders": k, "T_A": 2, "T_L": float("inf"), "delta": delay}
    network = Network(Fixed(delay), loss)
    return Experiment(LE_S, members, LE_S.Settings.parse(settings), network=network, seed=5)


@pytest.mark.parametrize("loss", [NO_LOSS, LOSSY])
def test_a_run_stops_when_all_hold_the_same_leaders(loss: Loss) -> None:
    for run in range(20):
        world = prepare(start(9, 3, loss=loss), run)
        assert not settled(world, 3)
        assert world.run() is Ended.STOPPED
        assert settled(world, 3)
        held = {ctx.id: ctx.election.leaders for ctx in world.live()}
        assert held[1] == held[6] == (9, 8, 7)
        assert (held[9], held[8], held[7]) == ((9,), (9, 8), (9, 8, 7))


def test_what_it_took_is_counted_up_to_the_last_first_announcement() -> None:
    result = play(start(9, 3), 0).metrics
    world = prepare(start(9, 3), 0)
    world.run()
    tmax = result["tmax"]
    assert tmax is not None
    assert world.now == pytest.approx(tmax + 0.1, abs=2e-8)
    assert result["leadership_delay"] == pytest.approx(tmax + 0.1)
    assert 3 <= (result["first_round"] or 0) <= (result["num_msgs"] or 0)


class Chairs:
    """Looks at everybody after every announcement has landed, and counts who has a seat."""

    def __init__(self) -> None:
        self.most = 0

    def sent(self, world: World, member: SimContext, to: MemberId | None, message: Message) -> None:
        self.look(world)
        world.at(world.now + 0.1 + 1e-8, partial(self.look, world))

    def look(self, world: World) -> None:
        seated = sum(ctx.id in ctx.election.leaders for ctx in world.live())
        self.most = max(self.most, seated)

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        self.look(world)

    def changed(self, world: World, member: SimContext) -> None:
        """Nobody comes or goes here."""


@pytest.mark.parametrize("loss", [NO_LOSS, LOSSY])
def test_all_who_have_a_seat_are_counted(loss: Loss) -> None:
    for run in range(10):
        experiment = start(9, 3, loss=loss)
        world = prepare(experiment, run)
        chairs = Chairs()
        world.listen_in(chairs)
        world.watch(chairs)
        world.run()
        found = play(experiment, run)
        assert found.metrics["simultaneous_leaders_max"] == chairs.most >= 3
        time_series = play(replace(experiment, time_series=0.1), run).time_series
        assert time_series is not None
        assert time_series.last == 3


def test_two_of_three_leaders_are_left_when_the_first_crashes() -> None:
    crashing = replace(
        start(9, 3),
        config=LE_S.Settings.parse({"leaders": 3, "T_A": 2, "delta": 0.1}),
        scenario=Scenario(name="leader-crash"),
        time_series=0.5,
    )
    for run in range(5):
        time_series = play(crashing, run).time_series
        assert time_series is not None
        assert time_series.counts[0] == 2


def test_a_first_hearing_takes_as_many_announcements_as_with_one_leader() -> None:
    """1/(1-l) each, whoever of the leaders it is; within 4 standard errors."""
    for protocol in ("le-s", "le-a"):
        kind = find(protocol)
        settings = {"leaders": 3, "T_A": 2, "T_L": float("inf"), "delta": 0.1}
        config = kind.Settings.parse(settings)
        network = Network(Fixed(0.1), LOSSY)
        found = run_all(Experiment(kind, 8, config, network=network, seed=2), 400).metrics
        summary = found["avg_rounds"]
        assert summary is not None
        assert summary.stderr is not None
        assert abs(summary.mean - 1 / 0.7) < 4 * summary.stderr, protocol


def test_without_loss_everybody_is_heard_at_once() -> None:
    for members, k in ((9, 3), (2, 5), (1, 2)):
        assert play(start(members, k), 0).metrics["avg_rounds"] == 1.0


def test_a_group_may_be_smaller_than_its_number_of_leaders() -> None:
    result = play(start(2, 5), 0)
    assert result.ended is Ended.STOPPED
    assert result.metrics["first_round"] == 2


def test_random_delays_are_refused_in_a_sentence() -> None:
    network = Network(Uniform(0.1, 0.2))
    experiment = Experiment(LE_S, 5, LE_S.Settings.parse({"leaders": 2}), network=network)
    with pytest.raises(BadInput, match="several leaders is measured with a fixed --delay"):
        play(experiment, 0)


@pytest.mark.parametrize("k", [2, 4])
def test_runs_agree_with_the_closed_forms(k: int) -> None:
    """Within 4 standard errors: four comparisons, one false alarm in 4,000 suites."""
    params = {"N": "12", "k": str(k), "Delta": "0", "T_A": "2"}
    exact = evaluate("le-s", params).corrected
    found = run_all(start(12, k, delay=1e-6), 900).metrics
    for name in ("first_round", "tmax"):
        summary = found[name]
        assert summary is not None
        assert summary.stderr is not None
        assert abs(summary.mean - exact[name]) < 4 * summary.stderr + 1e-4, name
