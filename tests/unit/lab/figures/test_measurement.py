"""Cells: values with seeds of their own, and the command lines that give the same numbers."""

from __future__ import annotations

import json
import shlex

import msgspec
import pytest

from hustings.cli.app import run
from hustings.core.choice import Candidate
from hustings.core.errors import BadInput
from hustings.lab.figures.announce import measurements as cells
from hustings.lab.figures.announce.measurements import CORRELATED, UNCORRELATED
from hustings.lab.figures.committee.measurements import election
from hustings.lab.figures.measurement import Measurement
from hustings.lab.figures.probabilistic.measurements import CHOSEN, READINGS
from hustings.lab.figures.probabilistic.measurements import election as ballot
from hustings.lab.kernels.announce.parameters import AnnounceParameters
from hustings.lab.runs import engines
from hustings.lab.runs.block import total
from hustings.sim.experiment import Experiment
from hustings.sim.scenarios import Plan
from tests.unit.lab.figures.samples import bully

FIELDS: dict[str, object] = {
    "protocol": "ring",
    "members": 9,
    "scenario": "start",
    "loss_model": "correlated",
    "loss": 0.25,
    "collision": 0.125,
    "delay": 0.5,
    "settings": (("T1", "4"),),
    "until": 99.0,
    "engine": "fast",
    "runs": 500,
    "aims": ("time",),
    "work": 50.0,
}


@pytest.mark.parametrize("name", FIELDS)
def test_whatever_differs_makes_another_cell(name: str) -> None:
    cell = bully(8)
    assert set(FIELDS) == set(Measurement.__struct_fields__), "every field is tried"
    other = msgspec.structs.replace(cell, **{name: FIELDS[name]})
    assert other != cell
    assert other.digest(1) != cell.digest(1)
    assert other.seed(1) != cell.seed(1)


def test_the_seed_makes_other_runs() -> None:
    cell = bully(8)
    assert cell.seed(1) != cell.seed(2)
    assert cell.digest(1) != cell.digest(2)
    assert cell.play(1, 0, 20) == cell.play(1, 0, 20)
    assert cell.play(1, 0, 20) != cell.play(2, 0, 20)


ANNOUNCING = [
    *(cells.start(name, 6, UNCORRELATED) for name in ("le-s", "le-m", "le-a", "sup", "al")),
    cells.start("le-s", 6, CORRELATED, 0.7),
    cells.start("le-s", 6, law="exponential", lam="5"),
    cells.start("al", 6, UNCORRELATED, collision=0.01),
    cells.start("le-s", 6, UNCORRELATED, delay=1e-6),
    cells.start("le-m", 6, UNCORRELATED, T_L="3", key="relative"),
    cells.start("le-s", 1),
    msgspec.structs.replace(cells.start("le-s", 6, UNCORRELATED), engine="events"),
    *(
        cells.disturbed(scenario, "le-s", 6, UNCORRELATED, T_L="4")
        for scenario in ("leader-crash", "join-larger", "join-smaller")
    ),
    cells.disturbed("join-smaller", "le-a", 6, CORRELATED, T_L="inf"),
    cells.watched(6, UNCORRELATED, 0.4, 3, 50.0),
]


BILLION = ballot(CHOSEN, 10**9, 0.1)
LYING = election(100, 10, "greedy")
LYING_BY_MESSAGE = Measurement(
    protocol="lightest-bin", members=6, delay=1.0, settings=(("bad", "1"),), aims=("rounds",)
)


@pytest.mark.parametrize(
    "cell",
    [
        *ANNOUNCING,
        *(ballot(reading, 2000, 0.3) for reading in READINGS),
        ballot(CHOSEN, 2000, 0.5, 0.2, runs=500, more=(("K_max", "112"),)),
        BILLION,
        LYING,
        election(100, 30, "mixed", "robust"),
        LYING_BY_MESSAGE,
        bully(6),
        bully(6, 0.0),
        Measurement(
            protocol="bully",
            members=5,
            loss_model="correlated",
            loss=0.3,
            collision=0.01,
            delay=0.25,
            settings=(("T1", "0.75"),),
            until=3.0,
            aims=("messages",),
        ),
    ],
    ids=lambda cell: cell.text[:60],
)
def test_the_command_line_gives_the_same_numbers(
    cell: Measurement, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two ways to the same experiment: the figures' and what a reader types."""
    whole = cell.play(7, 0, 12)
    name, *arguments = shlex.split(cell.command(7, 12))
    assert name == "hustings"
    assert run(arguments) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["endings"] == whole.endings
    assert shown["runs"] == whole.runs
    for metric, moments in whole.metrics.items():
        told = shown["metrics"][metric]
        if moments.count:
            assert told["mean"] == pytest.approx(moments.mean, rel=1e-12)
            assert told["stderr"] == pytest.approx(moments.stderr, rel=1e-9, abs=1e-12)
        else:
            assert told["mean"] is None


def test_blocks_of_kernels_go_by_members() -> None:
    sizes = {n: cells.start("le-s", n).block for n in (2, 500, 10**6)}
    assert sizes == {2: 20_000, 500: 8_000, 10**6: 4}
    assert {ballot(CHOSEN, n, 0.1).block for n in (1000, 10**9)} == {20_000}


def test_blocks_of_elections_in_rounds_go_by_members_too() -> None:
    sizes = {n: election(n, 10, "random").block for n in (16, 1_000, 10**6)}
    assert sizes == {16: 1_000, 1_000: 200, 10**6: 1}


def test_a_block_of_an_election_in_rounds_has_its_metrics_and_runs_of_their_own() -> None:
    whole = LYING.play(7, 0, 6)
    assert (whole.endings, whole.violated) == ({"quiescent": 6}, 0)
    assert all(whole.metrics[aim].count == 6 for aim in LYING.aims)
    assert 0 < whole.metrics["p_good"].mean < 1
    parts = [LYING.play(7, first, first + 2) for first in (0, 2, 4)]
    for aim in LYING.aims:
        assert total(parts).metrics[aim].mean == pytest.approx(whole.metrics[aim].mean)


def test_members_are_made_only_where_messages_are_played(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a group of a million takes longer to describe than to play."""
    made: list[int] = []
    ours = Experiment.candidates

    def candidates(self: Experiment, seed: int, plan: Plan | None = None) -> list[Candidate]:
        made.append(self.members)
        return ours(self, seed, plan)

    monkeypatch.setattr(Experiment, "candidates", candidates)
    for cell in (election(10**6, 10, "random"), cells.start("le-s", 10**6), BILLION):
        cell.experiment(1)
    assert not made
    LYING_BY_MESSAGE.experiment(1).check_playable()
    assert made == [LYING_BY_MESSAGE.members]


def test_what_an_engine_for_elections_in_rounds_cannot_play_is_refused() -> None:
    cell = msgspec.structs.replace(LYING_BY_MESSAGE, engine="fast")
    with pytest.raises(BadInput, match="engine 'fast' does not know lightest-bin"):
        cell.play(1, 0, 2)
    lossy = msgspec.structs.replace(LYING, loss_model="uncorrelated", loss=0.1)
    with pytest.raises(BadInput, match="committee needs a network that loses"):
        lossy.play(1, 0, 2)


def test_what_a_kernel_cannot_play_is_refused() -> None:
    cell = msgspec.structs.replace(bully(6), engine="fast")
    with pytest.raises(
        BadInput, match="engine 'fast' plays sup, al, le-a, le-s, le-m, probabilistic, not bully"
    ):
        cell.play(1, 0, 2)


def test_a_run_that_was_given_up_ends_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = AnnounceParameters(
        protocol="le-a", members=3, loss_model="uncorrelated", loss=0.9, max_rounds=8
    )
    monkeypatch.setattr(engines, "setting_of", lambda _: setting)
    block = cells.start("le-a", 3).play(1, 0, 50)
    assert 0 < block.endings["max-rounds"] < 50
    assert block.metrics["tmax"].count == block.endings["stopped"]


def test_blocks_shrink_as_work_grows() -> None:
    light, heavy = (msgspec.structs.replace(bully(8), work=work) for work in (1.0, 1e6))
    assert light.block == 500
    assert heavy.block == 2
