"""Help that helps: each command shows how it is typed, and what it shows works."""

from __future__ import annotations

import json
import platform
import re
import shlex
from importlib.metadata import Distribution, PackageNotFoundError, distribution, version

import pytest
from click import Context

from hustings._version import __version__
from hustings.about import about
from hustings.cli.app import hustings as group
from hustings.cli.output import Lines
from hustings.guard.registry import CATALOGUE as GUARDS
from hustings.net.wire import NEWEST, OLDEST, VERSION
from hustings.sim.faults import FAULTS
from tests.unit.cli.commands import Hustings, in_own_process

COMMANDS = group.list_commands(Context(group))


def examples(text: str) -> list[str]:
    return re.findall(r"^ +(hustings [a-z]+.*)", text, re.MULTILINE)


def test_help_names_every_command_and_where_to_begin(hustings: Hustings) -> None:
    shown = hustings("--help")
    assert shown.code == 0
    for command in COMMANDS:
        assert re.search(rf"^  {command} ", shown.out, re.MULTILINE)
    assert "Try first: hustings demo" in shown.out
    assert hustings() == hustings("-h") == shown


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_shows_examples(command: str, hustings: Hustings) -> None:
    shown = hustings(command, "--help")
    assert shown.code == 0
    assert shown.err == ""
    assert f"hustings {command}" in " ".join(examples(shown.out))


# Their examples last, or need an agent or an engine: tests/agent, tests/net, tests/guard and the
# guide's own tests run them.
LASTING = (
    *("demo", "run", "agent", "guards", "measure"),
    *("leader", "members", "observe", "elect", "resign", "transfer"),
)


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in LASTING])
def test_the_examples_work(
    command: str,
    hustings: Hustings,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("examples"))
    monkeypatch.setattr(Lines, "EVERY", 3600.0)  # on a slow machine, no line of progress
    shown = examples(hustings(command, "--help").out)
    assert shown
    for line in shown:
        result = hustings(*shlex.split(line)[1:])
        assert (result.code, result.err) == (0, ""), line


def test_every_fault_has_its_form_in_the_help(hustings: Hustings) -> None:
    shown = "".join(hustings("sim", "--help").out.split())  # lines break at hyphens too
    for fault in FAULTS:
        assert f"{fault}:" in shown


def test_the_version(hustings: Hustings) -> None:
    assert hustings("--version").out == f"hustings, version {__version__}\n"


def test_the_versions_that_a_report_needs(hustings: Hustings) -> None:
    for arguments in (("--version", "--json"), ("--json", "--version")):
        found = json.loads(hustings(*arguments).out)
        assert found["version"] == __version__
        assert found["wire"] == {"written": VERSION, "oldest": OLDEST, "newest": NEWEST}
        assert found["python"] == platform.python_version()
        assert set(found) == {
            *("version", "wire", "python", "implementation", "platform", "engines"),
        }
        assert list(found["engines"]) == [each.name for each in GUARDS]
        assert found["engines"]["etcd"] == {"found": True, "clients": {"aetcd": version("aetcd")}}


def test_a_client_that_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(name: str) -> Distribution:
        if name == "asyncpg":
            raise PackageNotFoundError(name)
        return distribution(name)

    monkeypatch.setattr("hustings.about.distribution", without)
    engines = about()["engines"]
    assert engines["postgres"] == {"found": False, "clients": {"asyncpg": None}}
    assert engines["redis"]["found"]


def test_json_before_the_command_belongs_behind_it(hustings: Hustings) -> None:
    said = hustings("--json", "sim", "bully")
    assert (said.code, said.out) == (2, "")
    assert "--json goes with --version, or after the command" in said.err


def test_help_comes_without_the_simulator_running(hustings: Hustings) -> None:
    assert in_own_process("--help").out == hustings("--help").out
