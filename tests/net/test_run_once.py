"""`hustings run --once`: the command succeeds once in the group, and everybody leaves with 0."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from hustings.net.keys import new_key
from tests.net.running import Running, Runs
from tests.waiting import until

RAN = 'echo "$HUSTINGS_MEMBER" >> ran'
WAITS = f"{RAN}; while [ ! -e go ]; do sleep 0.01; done"


def ran(runs: Runs) -> list[str]:
    try:
        return (runs.folder / "ran").read_text().splitlines()
    except FileNotFoundError:
        return []


def go(runs: Runs) -> None:
    (runs.folder / "go").touch()


def joined(*these: Running) -> None:
    for one in these:
        assert one.address


def test_it_succeeds_once_and_everybody_leaves_with_0(runs: Runs) -> None:
    for _ in range(3):
        runs.start(WAITS, "--once")
    leader = runs.leader()
    joined(*runs.all)
    go(runs)
    assert [one.wait() for one in runs.all] == [0, 0, 0]
    assert ran(runs) == [leader.name]
    for one in runs.all:
        assert f"the work of {runs.group} is done: " in one.said
    assert "know of the success" not in leader.said


def test_a_member_that_comes_when_all_have_gone_leaves_with_0(runs: Runs) -> None:
    first = runs.start(RAN, "--once")
    assert first.wait() == 0
    late = runs.start(RAN, "--once")
    assert late.wait() == 0
    assert ran(runs) == [first.name]
    assert "is done: " in late.said
    assert f" by {first.name}" in late.said
    assert "is a member of group" not in late.said


def test_without_the_option_it_runs_each_time(runs: Runs) -> None:
    for _ in range(2):
        assert runs.start(RAN).wait() == 0
    assert len(ran(runs)) == 2


def test_a_command_that_fails_is_tried_by_another_member(runs: Runs) -> None:
    script = f"{WAITS}; case $HUSTINGS_MEMBER in *-0) exit 3;; esac"
    first = runs.start(script, "--once")
    until(lambda: first.leads, "the first one leads")
    joined(runs.start(script, "--once"), runs.start(script, "--once"))
    go(runs)
    assert first.wait() == 3
    assert [one.wait() for one in runs.others(first)] == [0, 0]
    assert len(ran(runs)) == 2


def test_it_is_tried_again_here_if_that_is_wanted(runs: Runs) -> None:
    script = f"{RAN}; [ -e second ] || {{ touch second; exit 3; }}"
    one = runs.start(script, "--once", "--restart", "on-failure", "--restart-delay", "10ms")
    assert one.wait() == 0
    assert len(ran(runs)) == 2


def test_a_command_that_was_told_to_end_has_not_succeeded(runs: Runs) -> None:
    """It ends with 0, as many programs do that are told to."""
    script = f"trap 'exit 0' TERM; {RAN}; while [ ! -e go ]; do sleep 0.01; done"
    first = runs.start(script, "--once")
    until(lambda: ran(runs) == [first.name], "the first one runs it")
    second = runs.start(script, "--once")
    joined(second)
    first.signal(signal.SIGTERM)
    assert first.wait() == 0
    until(lambda: ran(runs) == [first.name, second.name], "the second one runs it again")
    go(runs)
    assert second.wait() == 0


@pytest.mark.parametrize("others", [0, 2])
def test_the_member_dies_right_after_the_command_has_succeeded(runs: Runs, others: int) -> None:
    """It is stopped before, so that it cannot tell anybody."""
    leader = runs.start(WAITS, "--once")
    until(lambda: ran(runs) == [leader.name], "the command runs")
    joined(*[runs.start(WAITS, "--once") for _ in range(others)])
    leader.signal(signal.SIGSTOP)
    go(runs)
    until(lambda: not leader.leads, "the command ends")
    leader.signal(signal.SIGKILL)
    leader.process.wait()
    assert [one.wait() for one in runs.others(leader)] == [0] * others
    assert runs.start(WAITS, "--once").wait() == 0
    assert ran(runs) == [leader.name]


def test_a_member_that_stood_still_meanwhile_learns_it_when_it_wakes(runs: Runs) -> None:
    leader = runs.start(WAITS, "--once")
    until(lambda: ran(runs) == [leader.name], "the command runs")
    other = runs.start(WAITS, "--once")
    joined(other)
    other.signal(signal.SIGSTOP)
    go(runs)
    assert leader.wait() == 0
    other.signal(signal.SIGCONT)
    assert other.wait() == 0
    assert ran(runs) == [leader.name]


def machine(runs: Runs, name: str, key: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    """Options and variables of a member on a machine of its own, as far as files go."""
    folder = runs.folder / name
    folder.mkdir(mode=0o700, exist_ok=True)
    return ("--key", str(key), "--once"), {"HUSTINGS_KEY_FILE": str(folder / "local.key")}


@pytest.fixture
def key(tmp_path: Path) -> Path:
    file = tmp_path / "group.key"
    file.write_text(new_key().text())
    file.chmod(0o600)
    return file


def test_several_machines(runs: Runs, key: Path) -> None:
    """Each that had a member remembers it, also when all members have gone."""
    for name in "abc":
        options, variables = machine(runs, name, key)
        runs.start(WAITS, *options, variables=variables)
    leader = runs.leader()
    joined(*runs.all)
    go(runs)
    assert [one.wait() for one in runs.all] == [0, 0, 0]
    for name in "abc":
        options, variables = machine(runs, name, key)
        assert runs.start(WAITS, *options, variables=variables).wait() == 0
    assert ran(runs) == [leader.name]


def test_another_group_of_the_same_name_has_work_of_its_own(runs: Runs, key: Path) -> None:
    options, variables = machine(runs, "a", key)
    assert runs.start(RAN, *options, variables=variables).wait() == 0
    key.write_text(new_key().text())
    assert runs.start(RAN, *options, variables=variables).wait() == 0
    assert runs.start(RAN, "--once", variables=variables).wait() == 0
    assert len(ran(runs)) == 3


def test_several_leaders_cannot_do_it(runs: Runs) -> None:
    one = runs.start(RAN, "--once", "--protocol", "le-m", "--set", "leaders=2")
    assert one.wait() == 2
    assert "--once needs a protocol with one leader" in one.said
    assert ran(runs) == []


def test_it_cannot_go_on_for_ever_either(runs: Runs) -> None:
    one = runs.start(RAN, "--once", "--restart", "always")
    assert one.wait() == 2
    assert one.said == (
        "hustings: --once and --restart always exclude each other: give one of them\n"
    )
