"""The image and the Compose files: what hustings understands of them, and a linter's verdict.

No container engine runs here, so no image is built.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from hustings.guard.urls import parse_url
from tests.test_shell_lines import parse
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "container"
COMPOSE = [FOLDER / "compose.yaml", ROOT / "examples" / "agent" / "compose.yaml"]


def lint(*dockerfiles: Path) -> subprocess.CompletedProcess[str]:
    tool = Path(sys.executable).with_name("hadolint")
    return subprocess.run(
        [str(tool), *map(str, dockerfiles)], check=False, capture_output=True, text=True
    )


def test_the_linter_has_no_complaint(tmp_path: Path) -> None:
    done = lint(FOLDER / "Dockerfile")
    assert (done.returncode, done.stdout) == (0, "")
    (tmp_path / "Dockerfile").write_text("FROM debian\nRUN cd /srv && sudo ls\n", encoding="utf-8")
    assert lint(tmp_path / "Dockerfile").returncode == 1


def test_the_image_names_extras_that_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
    for part in text.split("hustings[")[1:]:
        assert set(part.split("]")[0].split(",")) <= set(project["optional-dependencies"])


def services(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))["services"]
    return found


@pytest.mark.parametrize("path", COMPOSE, ids=["container", "agent"])
def test_commands_are_those_of_hustings(path: Path) -> None:
    ours = {n: each for n, each in services(path).items() if each.get("image") == "hustings"}
    assert ours
    for each in ours.values():
        parse(shlex.join(each["command"]))
        assert (path.parent / each["build"]["context"] / each["build"]["dockerfile"]).is_file()


def test_secrets_are_declared_and_mounted_where_the_addresses_look() -> None:
    text = yaml.safe_load(COMPOSE[0].read_text(encoding="utf-8"))
    for name, each in services(COMPOSE[0]).items():
        assert set(each.get("secrets", [])) <= set(text["secrets"])
        for word in each.get("command", []):
            if word.startswith("postgres://"):
                url = parse_url(word)
                (host,) = url.hosts
                assert host[0] in text["services"]
                assert url.options["password_file"].removeprefix("/run/secrets/") in each["secrets"]
                assert name in ("tables", "worker")


# Orphans of the command in a session of their own, that end before it does.
ORPHANS = """
for i in 1 2 3; do (setsid sh -c 'sleep 0.2' &); done
sleep 1
ps -eo stat= | grep -c Z > zombies
touch works
sleep 600
"""


@pytest.mark.skipif(
    os.geteuid() != 0 and not os.environ.get("CI"), reason="makes a PID namespace: needs root"
)
def test_process_1_of_a_container_ends_in_order_and_reaps(tmp_path: Path) -> None:
    ours = [sys.executable, "-m", "hustings", "run", "shop", "--no-local", "--grace", "1s", "--"]
    outside = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    with (tmp_path / "log").open("wb") as log:
        container = subprocess.Popen(
            [*outside, *ours, "sh", "-c", ORPHANS],
            cwd=tmp_path,
            env={**os.environ, "HOME": str(tmp_path)},
            stdout=log,
            stderr=log,
        )
    try:
        until((tmp_path / "works").exists, "the command")
        (first,) = Path(f"/proc/{container.pid}/task/{container.pid}/children").read_text().split()
        os.kill(int(first), signal.SIGTERM)
        code = container.wait(60)
    finally:
        container.kill()
        container.wait()
    assert code == 143, (tmp_path / "log").read_text()
    assert (tmp_path / "zombies").read_text() == "0\n"
