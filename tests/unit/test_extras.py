"""The advice on installing what is missing fits the way in which hustings was installed."""

from __future__ import annotations

import json
import shlex
import tomllib
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from hustings.extras import NAME, command_for, install_command

ROOT = Path(__file__).resolve().parents[2]
METADATA = """Metadata-Version: 2.4
Name: hustings
Version: 0.1.0
Requires-Dist: cryptography>=42
Provides-Extra: agent
Requires-Dist: hustings[cli]; extra == 'agent'
Requires-Dist: starlette>=0.40; extra == 'agent'
Provides-Extra: cli
Requires-Dist: click>=8.1; extra == 'cli'
Requires-Dist: hustings[agent]; extra == 'cli'
"""


class Installed(Distribution):
    """A distribution with a note of its origin."""

    def __init__(self, noted: object | str | None) -> None:
        self._noted = noted if isinstance(noted, str) else json.dumps(noted)

    def read_text(self, filename: str) -> str | None:
        return {"METADATA": METADATA, "direct_url.json": self._noted}.get(filename)

    def locate_file(self, path: object) -> Path:
        raise AssertionError(path)


@pytest.mark.parametrize("noted", [None, "", "{", "[]", {}, {"url": 7}, {"url": None}])
def test_from_an_index_or_with_a_note_that_says_nothing(noted: object) -> None:
    assert command_for(Installed(noted), "etcd") == "pip install 'hustings[etcd]'"


def test_from_a_checkout(tmp_path: Path) -> None:
    tree = tmp_path / "my tree's"
    tree.mkdir()
    for info, option in (({"editable": True}, ["-e"]), ({}, [])):
        noted = {"url": tree.as_uri(), "dir_info": info}
        command = command_for(Installed(noted), "etcd")
        assert shlex.split(command) == ["pip", "install", *option, f"{tree}[etcd]"]


def test_from_a_wheel(tmp_path: Path) -> None:
    wheel = tmp_path / "hustings-0.1.0-py3-none-any.whl"
    wheel.touch()
    noted = {"url": wheel.as_uri(), "archive_info": {}}
    assert command_for(Installed(noted), "etcd") == f"pip install '{wheel}[etcd]'"


def test_a_place_that_is_gone_is_not_named(tmp_path: Path) -> None:
    noted = {"url": (tmp_path / "gone").as_uri(), "dir_info": {}}
    wanted = command_for(Installed(noted), "agent")
    assert wanted == "pip install 'starlette>=0.40' 'click>=8.1'"
    assert command_for(Installed(noted), "unknown") == "pip install 'hustings[unknown]'"


def test_from_a_repository_and_from_an_archive_on_the_web() -> None:
    vcs = {"vcs": "git", "commit_id": "abc"}
    repository = {"url": "https://example.org/h.git", "vcs_info": vcs}
    line = shlex.split(command_for(Installed(repository), "etcd"))[-1]
    assert Requirement(line).url == "git+https://example.org/h.git@abc"
    archive = {"url": "https://example.org/h.whl", "archive_info": {}}
    line = shlex.split(command_for(Installed(archive), "etcd"))[-1]
    assert Requirement(line).url == "https://example.org/h.whl"
    assert Requirement(line).extras == {"etcd"}


def test_every_extra_that_is_advised_exists() -> None:
    extras = distribution(NAME).metadata.get_all("Provides-Extra") or []
    for extra in ("agent", "cli", "dask", "etcd", "fast", "figures", "lab", "sweep"):
        assert extra in extras
        assert install_command(extra).rstrip("'").endswith(f"[{extra}]")


def test_the_extra_for_celery_has_all_that_its_redis_broker_needs() -> None:
    """The client alone is not enough: Celery declares the rest in an extra of its own."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [Requirement(text) for text in project["optional-dependencies"]["celery"]]
    assert {"redis"} in [each.extras for each in wanted if each.name == "celery"]
