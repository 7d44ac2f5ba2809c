"""The pytest plugin, as a project sees it: small projects whose tests are run by a pytest apart."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from hustings.testing.seeded_run import Allowed

ASYNCIO = "pytest_asyncio.plugin"

SPLIT = """
import pytest

@pytest.mark.hustings(members=(2, 4), faults=6, loss=0.1, seeds=20)
def test_nobody_is_ever_isolated(hustings_group, hustings_members, hustings_faults):
    hustings_group.start(hustings_members)
    hustings_group.inject(hustings_faults)
    assert "isolate" not in [fault.kind for fault in hustings_faults]
"""

COROUTINE = """
import asyncio
import time

async def test_an_hour_passes(hustings_group, hustings_network, hustings_members):
    group, began = hustings_group.inside, time.monotonic()
    await group.start(hustings_members[:2])
    await asyncio.sleep(3600 / 60)
    assert group.now >= 60
    assert len(group.leaders) == 1
    assert hustings_network.tally["sent"] > 0
"""


@dataclass(frozen=True)
class Ended:
    code: int
    text: str

    def said(self, *sentences: str) -> bool:
        return all(sentence in self.text for sentence in sentences)


def run(folder: Path, text: str, *options: str, plugins: tuple[str, ...] = ()) -> Ended:
    (folder / "test_small.py").write_text("\n".join(text.splitlines()) + "\n", encoding="utf-8")
    loaded = ("no:cacheprovider", "hustings.testing.plugin", *plugins)
    chosen = [f"-p{name}" for name in loaded]
    if ASYNCIO in plugins:
        chosen += ["-o", "asyncio_default_fixture_loop_scope=function"]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", "-q", *chosen, *options, "."],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    return Ended(done.returncode, done.stdout + done.stderr)


def replay_of(ended: Ended) -> str:
    found = re.search(r"--hustings-replay '(.*)'", ended.text)
    assert found, ended.text
    return found[1]


def test_a_failure_becomes_small_and_its_line_replays_it(tmp_path: Path) -> None:
    ended = run(tmp_path, SPLIT)
    assert ended.code == 1
    trial = replay_of(ended)
    assert re.fullmatch(r"seed=\d+ members=2 faults=isolate:\w+@0\+[\d.]+ calm", trial), trial
    assert ended.said("the first to fail: seed=", f"this run fails: {trial}")

    again = run(tmp_path, SPLIT, "--hustings-replay", trial)
    assert again.code == 1
    assert replay_of(again) == trial
    assert not again.said("the first to fail")


def test_an_environment_is_calmed_for_a_smaller_run(tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(
        "[delay]\nwithin = '1ms'\n[loss]\nrate = '2%'\nburst = 3\n"
        "[crashes]\nrate = '1/h'\nback = '2s'\n"
    )
    within = SPLIT.replace("loss=0.1", "environment='e.toml'")
    shown = ", f'crashes: {hustings_group.inside.environment.crashes}'"
    ended = run(tmp_path, within.rstrip() + shown)
    assert ended.code == 1
    assert replay_of(ended).endswith(" calm")
    assert ended.said("crashes: None")
    (tmp_path / "e.toml").write_text("[delay]\nwithin = '1 furlong'\n")
    refused = run(tmp_path, within)
    assert refused.said("e.toml, line 2: delay.within: '1 furlong' is no law of times")


def test_a_failure_is_shown_as_it_is_if_there_is_no_time_for_smaller_ones(tmp_path: Path) -> None:
    ended = run(tmp_path, SPLIT, "--hustings-shrink=0")
    assert ended.code == 1
    assert "," in replay_of(ended), "several faults"


def test_another_failure_is_not_taken_for_a_smaller_one(tmp_path: Path) -> None:
    allowed = Allowed((1, 4))
    seed = next(seed for seed in range(99) if len(allowed.draw(seed).names) == 4)
    ended = run(
        tmp_path,
        """
import pytest

@pytest.mark.hustings(members=(1, 4))
def test_two_errors(hustings_members):
    if len(hustings_members) == 1:
        raise ValueError("one")
    assert len(hustings_members) < 1
""",
        f"--hustings-seed={seed}",
    )
    assert ended.code == 1
    assert replay_of(ended) == f"seed={seed} members=2", "one member is another error"


def test_every_seed_is_played_and_all_are_the_same_at_the_second_time(tmp_path: Path) -> None:
    text = """
import pathlib
import pytest

@pytest.mark.hustings(members=(2, 4), faults=3, loss=0.1, seeds=4)
def test_story(hustings_group, hustings_members, hustings_faults, hustings_seed):
    hustings_group.start(hustings_members)
    hustings_group.inject(hustings_faults)
    with pathlib.Path("stories").open("a") as file:
        print(hustings_seed, hustings_group.now, hustings_group.log, file=file)
"""
    stories = []
    for _ in range(2):
        assert run(tmp_path, text).code == 0
        kept = tmp_path / "stories"
        stories.append(kept.read_text().splitlines())
        kept.unlink()
    assert stories[0] == stories[1]
    assert len({line.split(maxsplit=1)[1] for line in stories[0]}) == 4
    assert [line.split()[0] for line in stories[0]] == ["0", "1", "2", "3"]


@pytest.mark.parametrize("plugins", [(), (ASYNCIO,), ("anyio",)], ids=str)
def test_a_coroutine_runs_on_the_clock_of_its_group(
    tmp_path: Path, plugins: tuple[str, ...]
) -> None:
    options = ["-o", "asyncio_mode=auto"] if ASYNCIO in plugins else []
    ended = run(tmp_path, COROUTINE, *options, plugins=plugins)
    assert (ended.code, ended.said("1 passed")) == (0, True), ended.text


def test_tests_of_pytest_asyncio_beside_it_run_as_ever(tmp_path: Path) -> None:
    text = """
import asyncio
import pytest

@pytest.mark.asyncio
async def test_real_time():
    assert type(asyncio.get_running_loop()).__module__ != "hustings.testing.clock"

@pytest.mark.asyncio
@pytest.mark.hustings(seeds=2)
async def test_virtual_time(hustings_group):
    assert type(asyncio.get_running_loop()).__module__ == "hustings.testing.clock"
    await asyncio.sleep(1000)
"""
    ended = run(tmp_path, text, plugins=(ASYNCIO,))
    assert (ended.code, ended.said("2 passed")) == (0, True), ended.text


def test_fixtures_of_the_module_live_through_all_runs(tmp_path: Path) -> None:
    text = """
import pytest

BEGUN, ENDED = [], []

@pytest.fixture(scope="module")
def database():
    BEGUN.append(1)
    yield
    ENDED.append(1)

@pytest.fixture
def fresh():
    return []

@pytest.mark.hustings(seeds=5)
def test_first(database, fresh, hustings_seed):
    fresh.append(hustings_seed)
    assert (len(BEGUN), len(fresh)) == (1, 1)

@pytest.mark.hustings(seeds=3)
def test_second(database, hustings_seed):
    assert (len(BEGUN), len(ENDED)) == (1, 0)
"""
    ended = run(tmp_path, text)
    assert (ended.code, ended.said("2 passed")) == (0, True), ended.text


def test_what_does_not_come_from_the_seed_is_said(tmp_path: Path) -> None:
    text = """
import pytest

RUNS = []

@pytest.mark.hustings(seeds=3)
def test_unsteady(hustings_seed):
    RUNS.append(hustings_seed)
    assert len(RUNS) != 2
"""
    ended = run(tmp_path, text)
    assert ended.code == 1
    assert ended.said("something in the test does not come from the seed")


def test_an_error_that_nobody_awaits_fails_the_test(tmp_path: Path) -> None:
    text = """
async def broken(member):
    raise ValueError("broken program")

def test_program(hustings_group, hustings_members):
    hustings_group.start(hustings_members, broken)
    hustings_group.advance(1.0)
"""
    ended = run(tmp_path, text)
    assert ended.code == 1
    assert ended.said("ValueError: broken program", "--hustings-replay 'seed=0 members=3'")


@pytest.mark.parametrize(
    "mark, options, sentence",
    [
        ("members=0", [], "members must be a number from 1 to 26"),
        ("members=(3, 2)", [], "members must be a number from 1 to 26"),
        ("members='many'", [], "test_small.py::test_marked: "),
        ("faults=-1", [], "faults must lie between 0 and 1000"),
        ("span=0, faults=1", [], "span must be a positive time"),
        ("seeds=0", [], "seeds must be a positive number"),
        ("seed=3", [], "the seed comes from --hustings-seed"),
        ("3", [], "takes names: members=3"),
        ("loss=2.0", [], "loss must lie between 0 and 1"),
        ("protocol='bulli'", [], "bulli"),
        ("members=2", ["--hustings-seeds=0"], "seeds must be a positive number"),
        ("members=2", ["--hustings-replay=seed=x"], "a run needs seed=NUMBER and members=NUMBER"),
        ("members=2", ["--hustings-replay=speed=3"], "a run is written as"),
        (
            "members=2",
            ["--hustings-replay=seed=1 members=2 faults=kill:z@1+1"],
            "names a member that is not one of a, b",
        ),
        (
            "members=2",
            ["--hustings-replay=seed=1 members=2 faults=kill"],
            "a fault is written kill:a@3+1.5",
        ),
    ],
)
def test_a_wrong_word_gets_a_sentence(
    tmp_path: Path, mark: str, options: list[str], sentence: str
) -> None:
    text = f"""
import pytest

@pytest.mark.hustings({mark})
def test_marked(hustings_group, hustings_members):
    hustings_group.start(hustings_members)
"""
    ended = run(tmp_path, text, *options)
    assert ended.code != 0
    assert ended.said(sentence), ended.text
    assert not ended.said("INTERNALERROR")


def test_a_skipped_and_an_expected_failure_stay_what_they_are(tmp_path: Path) -> None:
    text = """
import pytest

@pytest.mark.hustings(seeds=3)
def test_skipped(hustings_seed):
    pytest.skip("not today")

@pytest.mark.xfail(strict=True, reason="known")
@pytest.mark.hustings(seeds=3)
def test_expected(hustings_seed):
    assert hustings_seed > 5
"""
    ended = run(tmp_path, text)
    assert (ended.code, ended.said("1 skipped, 1 xfailed")) == (0, True), ended.text


def test_a_project_without_groups_loads_nothing_of_hustings(tmp_path: Path) -> None:
    text = """
import sys

def test_modules():
    found = sorted(name for name in sys.modules if name.split(".")[0] == "hustings")
    assert found == ["hustings", "hustings.testing", "hustings.testing.plugin"]
"""
    ended = run(tmp_path, text)
    assert (ended.code, ended.said("1 passed")) == (0, True), ended.text


def test_a_guard_in_memory_leaves_nothing_to_the_next_test(tmp_path: Path) -> None:
    text = """
import asyncio
from hustings.guard import Grant, Holder, make_guard

async def lead(name):
    async with make_guard("memory://", "jobs") as guard:
        answer = await guard.acquire(Holder(name, 1), ttl=60.0)
        assert isinstance(answer, Grant), answer
        assert answer.token == 1

def test_one():
    asyncio.run(lead("ada"))

def test_two():
    asyncio.run(lead("ben"))
"""
    ended = run(tmp_path, text)
    assert (ended.code, ended.said("2 passed")) == (0, True), ended.text
