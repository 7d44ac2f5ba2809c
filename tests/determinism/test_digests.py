"""One seed, one run: whatever the hash seed, whichever the process, whoever plays it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hustings
from hustings.lab.simulation import run_all
from tests.determinism.digests import digests, experiments, story

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(hustings.__file__).resolve().parents[1]


def elsewhere(seed: int, hash_seed: str) -> dict[str, list[str | None]]:
    """The digests as another process finds them."""
    environment = {
        **os.environ,
        "PYTHONHASHSEED": hash_seed,
        "PYTHONPATH": os.pathsep.join([str(SOURCE), str(ROOT)]),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.determinism.digests", str(seed)],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        check=True,
        timeout=100,
    )
    found: dict[str, list[str | None]] = json.loads(done.stdout)
    return found


def test_digests_do_not_depend_on_hash_seed_or_process() -> None:
    here = digests(5)
    assert elsewhere(5, "0") == here
    assert elsewhere(5, "1") == here
    every = [digest for pair in here.values() for digest in pair]
    assert None not in every
    assert len(set(every)) == len(every)


def test_playing_it_again_in_one_process_gives_the_same_run() -> None:
    for name, experiment in experiments(5).items():
        assert story(experiment) == story(experiment), name


@pytest.mark.parametrize("name", list(experiments(0)))
def test_another_seed_is_another_run_exactly_where_chance_is_at_work(name: str) -> None:
    """The first and last line of a trace name the seed, so they are not looked at."""
    same = story(experiments(5)[name]) == story(experiments(6)[name])
    assert same is name.startswith("plain")


def test_every_story_has_something_to_tell() -> None:
    for name, experiment in experiments(5).items():
        assert len(story(experiment)) > 30, name


def test_a_report_does_not_depend_on_how_the_work_was_cut_up() -> None:
    experiment = experiments(5)["random messy bully"]
    assert run_all(experiment, 9, jobs=2) == run_all(experiment, 9)
