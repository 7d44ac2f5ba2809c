"""The files of examples/agent say only what an agent understands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hustings.agent.config import SETTINGS, load
from hustings.agent.config_file import variable
from hustings.agent.daemon import Sockets
from hustings.agent.openapi import document
from hustings.cli.agent import agent

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "agent"


def read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def test_the_configuration_is_fit_to_run() -> None:
    config = load(FOLDER / "hustings.toml", {}, {})
    assert [group.group for group in config.groups] == ["billing", "search"]
    assert Sockets(config).warning is None


def test_what_is_commented_out_would_do_too(tmp_path: Path) -> None:
    text = re.sub(r"^# (?=[a-z]+(-[a-z]+)* = )", "", read("hustings.toml"), flags=re.MULTILINE)
    assert text.count("\n#") < read("hustings.toml").count("\n#")
    (tmp_path / "hustings.toml").write_text(text, encoding="utf-8")
    config = load(tmp_path / "hustings.toml", {}, {})
    assert config.token_file == tmp_path / "agent.token"
    assert config.groups[0].keys == (tmp_path / "new.key", tmp_path / "old.key")


@pytest.mark.parametrize("name", ["compose.yaml", "hustings.service"])
def test_variables_are_known(name: str) -> None:
    known = {variable(setting) for setting in SETTINGS} | {"HUSTINGS_UID"}  # the example's own
    used = set(re.findall(r"HUSTINGS_[A-Z_]+", read(name)))
    assert used
    assert used <= known


def test_the_containers_settings_are_understood(tmp_path: Path) -> None:
    text = read("compose.yaml")
    environment = dict(re.findall(r"^  (HUSTINGS_\w+): (\S+)$", text, re.MULTILINE))
    (own, *rest) = re.findall(r"HUSTINGS_NAME: (\w), HUSTINGS_ADVERTISE: \"(\w:\d+)\"", text)
    assert len(rest) == 2
    config = load(None, {}, {**environment, "HUSTINGS_NAME": own[0], "HUSTINGS_ADVERTISE": own[1]})
    (group,) = config.groups
    assert (group.group, group.name, len(group.seeds), len(group.keys)) == ("billing", "a", 3, 1)
    assert config.notes == ()


def test_flags_are_known() -> None:
    known = {text for option in agent.params for text in option.opts}
    for name in ("hustings.service", "README.md"):
        lines = re.findall(r"^.*hustings agent (.*)$", read(name), re.MULTILINE)
        used = {text for line in lines for text in re.findall(r"--[a-z-]+", line)}
        assert used <= known


def test_the_curl_lines_ask_for_what_there_is() -> None:
    paths = document(["billing"])["paths"]
    asked = re.findall(r"curl (.*)http://[^/]+(/[^\s?]+)", read("README.md"))
    found = set()
    for options, path in asked:
        shape = path.replace("/billing/", "/{group}/")
        found.add((shape, "post" if "POST" in options else "get"))
    assert found == {(path, method) for path, methods in paths.items() for method in methods}
