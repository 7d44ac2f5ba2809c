"""An environment wherever something is studied: the same words, the same numbers."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from random import Random
from statistics import fmean

import pytest

from hustings import lab
from hustings.core.errors import BadInput
from hustings.lab.comparison import Comparison
from hustings.sim.environment import environment_of
from tests.unit.cli.commands import Hustings, in_process

TEXT = """[sites]
a = 3
b = 2
[delay]
within = "uniform:1ms,2ms"
between."a,b" = "20ms"
[loss]
rate = "2%"
burst = 4
[pauses]
rate = "30/h"
length = "exponential:80ms"
longest = "800ms"
[crashes]
rate = "6/h"
back = "5s"
[outages]
rate = "4/h"
lasts = "20s"
[clocks]
drift = "100ppm"
"""
CALM = "[delay]\nwithin = '2ms'\n"


@pytest.fixture
def hustings(capsys: pytest.CaptureFixture[str]) -> Hustings:
    return in_process(capsys)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "environment.toml"
    path.write_text(TEXT)
    return path


def test_a_path_its_text_and_the_value_give_the_same_runs(file: Path) -> None:
    given = (file, str(file), TEXT, lab.read_environment(file))
    studies = [
        lab.simulate("bully", environment=each, scenario="leader-crash", runs=3, digest=True)
        for each in given
    ]
    assert len({study.digest for study in studies}) == 1
    assert studies[0].experiment.members == 5
    assert studies[0].experiment.network.delay.bound == 0.02
    assert "times in seconds" in studies[0].title


def test_the_command_line_gives_the_same_numbers(file: Path, hustings: Hustings) -> None:
    for given in (file, lab.read_environment(file)):
        study = lab.simulate("bully", environment=given, scenario="leader-crash", runs=3, seed=5)
        told = json.loads(hustings(*shlex.split(study.command)[1:], "--json").out)
        assert told["metrics"]["bytes_per_s"]["mean"] == study["bytes_per_s"].mean
        assert told["time_unit"] == "s"
        assert environment_of(told["environment"]) == lab.read_environment(file)


def test_rates_are_met_over_the_whole_time_limit(file: Path) -> None:
    """Without a time limit a run of detectors ends when all agree; with one it is watched on."""
    half = lab.simulate(
        "bully", environment=file, composed=True, until=1800.0, runs=2, settings={"delta": 0.05}
    )
    assert half.endings == {"until": 2}
    # 5 members: 75 pauses and 15 crashes; 2 sites: 4 outages, in each of 2 half hours.
    assert half["pauses"].mean == pytest.approx(75, abs=20)
    assert half["crashes"].mean == pytest.approx(15, abs=9)
    assert half["outages"].mean == pytest.approx(4, abs=3.5)
    assert half["pause_length"].mean == pytest.approx(0.08, abs=0.03)
    assert half["leaderships"].mean >= 2
    assert 500 < half["bytes_per_s"].mean < half["leader_bytes_per_s"].mean < 20_000
    soon = lab.simulate("bully", environment=file, composed=True, settings={"delta": 0.05})
    assert soon.endings == {"stopped": 1}


def test_losses_come_in_the_bursts_of_the_file() -> None:
    environment = lab.parse_environment(TEXT)
    lost = environment.network.loss.fate(Random(3))
    fates = [lost(0.0, 1, 2) for _ in range(100_000)]
    assert fmean(fates) == pytest.approx(0.02, abs=0.003)
    bursts = sum(one and not before for before, one in zip([False, *fates], fates, strict=False))
    assert sum(fates) / bursts == pytest.approx(4.0, abs=0.4)


def test_compare_has_no_formulas_in_an_environment(file: Path, hustings: Hustings) -> None:
    found: Comparison = lab.compare(
        ["bully", "ring"], members=8, environment=CALM, scenario="leader-crash"
    )
    assert found.agrees
    assert not found.paper
    shown = hustings(*shlex.split(found.command)[1:])
    assert "in the environment, times in seconds" in shown.out
    assert "formula (1)" not in shown.out


def test_sweeps_take_environments_too(file: Path, tmp_path: Path, hustings: Hustings) -> None:
    """A point's seed comes from what the axes say: a file's name, or a text."""
    other = tmp_path / "calm.toml"
    other.write_text("members = 5\n" + CALM)
    grid = tmp_path / "grid.toml"
    names = json.dumps([str(file), str(other)])
    lines = (
        'protocol = "bully"',
        'scenario = "leader-crash"',
        "runs = 2",
        f"environment = {names}",
    )
    grid.write_text("\n".join(lines))
    for value, command, out in (
        ([str(file), str(other)], ["sweep", str(grid)], str(tmp_path / "file")),
        ([lab.read_environment(file), other], None, str(tmp_path / "lines")),
    ):
        grid_of = {"environment": value, "protocol": "bully", "scenario": "leader-crash"}
        swept = lab.sweep(grid_of, runs=2)
        shown = hustings(*(command or shlex.split(swept.command)[1:]), "--json", "--out", out)
        assert shown.code == 0, shown.err
        told = json.loads(shown.out)
        means = [point["metrics"]["time"]["mean"] for point in told["points"]]
        assert means == [one.block.metrics["time"].moments.mean for one in swept.results]
        assert means[0] != means[1]


def test_kept_results_depend_on_what_the_file_says(file: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    grid = {"environment": [str(file)]}
    lab.sweep(grid, protocol="bully", scenario="leader-crash", checkpoint=kept)
    file.write_text(TEXT.replace("20ms", "30ms"))
    with pytest.raises(BadInput, match="grid"):
        lab.sweep(grid, protocol="bully", scenario="leader-crash", checkpoint=kept)


@pytest.mark.parametrize(
    "options, sentence",
    [
        ("--delay 3", "--environment does not go with --delay: the environment says that"),
        ("--loss 0.1 --pause 3", "does not go with --loss and --pause: the environment says that"),
        ("--sites a=2,b=3 --between a,b=2", "does not go with --sites and --between"),
        ("--drift 0.1", "does not go with --drift"),
        ("--link 1>2=3", "does not go with --link"),
        ("--mobility random-waypoint", "does not go with --mobility"),
        ("-n 8", "--members 8 does not go with this --environment: its sites hold 5 members"),
        ("--engine fast", "engine 'fast'"),
    ],
)
def test_what_contradicts_an_environment(
    options: str, sentence: str, file: Path, hustings: Hustings
) -> None:
    refused = hustings("sim", "le-s", "--environment", str(file), *options.split())
    assert refused.code == 2
    assert sentence in refused.err
    assert "Traceback" not in refused.err


def test_members_are_chosen_where_the_environment_leaves_them_open() -> None:
    assert lab.simulate("bully", environment=CALM, members=3).experiment.members == 3
    five = "members = 5\n" + CALM
    assert lab.simulate("bully", environment=five).experiment.members == 5
    assert lab.simulate("bully", environment=five, members=3).experiment.members == 3


def test_a_wrong_file_is_one_sentence(tmp_path: Path, hustings: Hustings) -> None:
    file = tmp_path / "e.toml"
    file.write_text("[delay]\nwithin = '2ms'\nbetwen = 3\n")
    refused = hustings("sim", "bully", "--environment", str(file))
    assert refused.code == 2
    assert "e.toml, line 3: delay.betwen is no key that is known here" in refused.err
    missing = hustings("sim", "bully", "--environment", str(tmp_path / "none.toml"))
    assert missing.code == 2
    assert "No such file" in missing.err


def test_a_committee_has_no_environment(hustings: Hustings) -> None:
    refused = hustings("sim", "committee", "-n", "16", "--environment", CALM)
    assert "--environment has no meaning there" in refused.complaint
