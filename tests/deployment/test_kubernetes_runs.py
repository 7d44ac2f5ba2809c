"""Members with the arguments of the manifests, as processes on this machine."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from hustings.net.keys import new_key, write_key
from tests.deployment.rights import Rights
from tests.guard.fakes.kubernetes import Kubernetes
from tests.guard.fakes.serving import served
from tests.net.kit.loops import run, until
from tests.net.running import command_of, processes_of

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "kubernetes"
PATIENCE_S = 60.0


def manifest(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8")))


def words_of(objects: Sequence[dict[str, Any]], kind: str) -> list[str]:
    (one,) = [each for each in objects if each["kind"] == kind]
    (container,) = one["spec"]["template"]["spec"]["containers"]
    return [str(word) for word in container["args"]]


class Copies:
    """The copies of one worker, each a process with the manifest's arguments."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        # A container has no home that can be written to.
        self.environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environment}
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, words: Sequence[str]) -> None:
        with (self.folder / f"{name}.log").open("wb") as log:
            self.running[name] = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "hustings",
                    *(w.replace("$(POD_NAME)", name) for w in words),
                ],
                cwd=self.folder,
                env={**self.environment, "POD_NAME": name},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def leading(self) -> list[str]:
        return [name for name in self.running if any(map(self._is_ours, command_of(name)))]

    def _is_ours(self, process: int) -> bool:
        """Whether a process is of these copies; others' copies may have the same names."""
        try:
            return Path(f"/proc/{process}/cwd").resolve(strict=True) == self.folder.resolve()
        except OSError:
            return False

    def said(self) -> str:
        return "\n".join(
            f"{name}: {(self.folder / f'{name}.log').read_text()}" for name in self.running
        )

    def close(self) -> None:
        for name, process in self.running.items():
            process.kill()
            process.wait()
            for each in filter(self._is_ours, processes_of(name)):
                os.kill(each, signal.SIGKILL)


@contextmanager
def copies_in(folder: Path, **environment: str) -> Iterator[Copies]:
    copies = Copies(folder, environment)
    try:
        yield copies
    finally:
        copies.close()


async def one_leads(copies: Copies, but: str = "") -> str:
    """The only copy that works, when there is one, and it is not `but`."""

    def found() -> bool:
        return len(copies.leading()) == 1 and copies.leading() != [but]

    await until(found, copies.said, PATIENCE_S)
    return copies.leading()[0]


def test_the_role_has_each_right_that_the_members_use_and_no_other(tmp_path: Path) -> None:
    objects = manifest("leased.yaml")
    words = words_of(objects, "Deployment")
    (role,) = [each for each in objects if each["kind"] == "Role"]
    rights = Rights(role)

    async def story() -> None:
        async with served(rights.over(Kubernetes())) as port:
            config = tmp_path / "config"
            config.write_text(json.dumps(cluster_at(port)), encoding="utf-8")
            with copies_in(tmp_path, KUBECONFIG=str(config)) as copies:
                for name in ("invoices-a", "invoices-b", "invoices-c"):
                    copies.start(name, words)
                first = await one_leads(copies)
                copies.running[first].terminate()
                assert await asyncio.to_thread(copies.running[first].wait, PATIENCE_S) == 143
                await one_leads(copies, but=first)
        assert rights.refused == []
        assert rights.used == rights.rules

    run(story())


def cluster_at(port: int) -> dict[str, Any]:
    """A configuration of kubectl."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "invoices"}}],
        "clusters": [{"name": "here", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "invoices", "user": {"token": "of-the-service-account"}}],
    }


def test_the_copies_of_the_quorum_find_each_other_and_elect(tmp_path: Path) -> None:
    words = words_of(manifest("quorum.yaml"), "StatefulSet")
    write_key(tmp_path / "invoices.key", new_key())
    names = ["invoices-0", "invoices-1", "invoices-2"]

    def here(name: str) -> list[str]:
        """The arguments, with addresses and folders of this machine."""
        text = "\n".join(words).replace("$(POD_NAME)", name)
        text = text.replace("0.0.0.0:7400", f"{address(name)}:7400")
        for each in names:
            text = text.replace(f"{each}.invoices:", f"{address(each)}:")
        text = text.replace("/run/hustings", str(tmp_path))
        return text.replace("/var/lib/hustings", str(tmp_path / name)).split("\n")

    async def story() -> None:
        with copies_in(tmp_path) as copies:
            for name in names:
                (tmp_path / name).mkdir()
                copies.start(name, here(name))
            first = await one_leads(copies)
            copies.running[first].terminate()
            assert await asyncio.to_thread(copies.running[first].wait, PATIENCE_S) == 143
            await one_leads(copies, but=first)

    run(story())


def address(name: str) -> str:
    """An address of its own for each copy, since all have one port; others' tests have others."""
    return f"127.{64 + os.getpid() % 64}.{os.getpid() // 64 % 250}.{1 + int(name[-1])}"
