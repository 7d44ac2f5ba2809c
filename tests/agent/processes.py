"""Agents as processes: started, listened to, asked, signalled, and none left behind."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.unit.cli.commands import COMMAND
from tests.waiting import PATIENCE_S, until

Json = dict[str, Any]


class Agent:
    """One process, and what it logs."""

    def __init__(
        self,
        arguments: tuple[str, ...],
        folder: Path,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("HUSTINGS_")}
        self.process = subprocess.Popen(
            [*COMMAND, "agent", *arguments, "--log-format", "json"],
            cwd=folder,
            env={**kept, **(variables or {})},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))

    @property
    def events(self) -> list[Json]:
        return [json.loads(line) for line in list(self.lines) if line.startswith("{")]

    def said(self, event: str) -> list[Json]:
        return [each for each in self.events if each["event"] == event]

    def wait_said(self, event: str, times: int = 1) -> Json:
        """The line of the log, once it is there."""
        until(lambda: len(self.said(event)) >= times, lambda: f"{event} in {self.lines}")
        return self.said(event)[times - 1]

    @property
    def address(self) -> str:
        return str(self.wait_said("listening")["address"])

    @property
    def url(self) -> str:
        return str(self.wait_said("listening")["http"])

    def get(self, path: str) -> tuple[int, str]:
        """What it answers."""
        host = self.url.removeprefix("http://")
        connection = http.client.HTTPConnection(host, timeout=PATIENCE_S)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def leader(self, group: str = "billing") -> str | None:
        """Whom this agent takes for the leader."""
        status, body = self.get(f"/v1/groups/{group}/leader")
        return str(json.loads(body)["leader"]["name"]) if status == 200 else None

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait_end(self) -> int:
        """Its exit code, once all that it logged has been read."""
        code = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return code

    def close(self) -> None:
        """Nothing is left of it."""
        if self.process.poll() is None:
            self.process.kill()
        self.wait_end()
        assert self.process.stderr is not None
        self.process.stderr.close()


class Agents:
    """Those of one test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.all: list[Agent] = []

    def start(
        self, *arguments: str, variables: Mapping[str, str] | None = None, **more: str
    ) -> Agent:
        """One agent; its ports are the system's choice unless `bind` or `http` say otherwise."""
        ports = {"bind": "127.0.0.1:0", "http": "127.0.0.1:0", **more}
        flags = [text for key, value in ports.items() for text in (f"--{key}", value)]
        agent = Agent((*arguments, *flags), self.folder, variables)
        self.all.append(agent)
        return agent

    def trio(self, *arguments: str) -> list[Agent]:
        """Three members of one group, web-1 to web-3, who agree on a leader."""
        first = self.start("--group", "billing", "--name", "web-1", *arguments)
        join = ("--join", first.address)
        rest = [
            self.start("--group", "billing", "--name", f"web-{number}", *join, *arguments)
            for number in (2, 3)
        ]
        wait_agreed([first, *rest])
        return [first, *rest]


@contextmanager
def agents_in(folder: Path) -> Iterator[Agents]:
    """Agents that are gone when the test is."""
    agents = Agents(folder)
    try:
        yield agents
    finally:
        for agent in agents.all:
            agent.close()


def wait_agreed(agents: list[Agent], wanted: str | None = None, group: str = "billing") -> str:
    """Who leads, once all know all and say the same: one of them."""
    found: list[str] = []

    def agreed() -> bool:
        said = {agent.leader(group) for agent in agents}
        known = [json.loads(agent.get(f"/v1/groups/{group}/members")[1]) for agent in agents]
        sizes = [len(each["members"]) for each in known]
        found[:] = sorted(map(str, said))
        names = {one["name"] for each in known for one in each["members"]}
        if len(said) != 1 or None in said or sizes != [len(agents)] * len(agents):
            return False
        return found[0] in names and wanted in (None, found[0])

    until(agreed, lambda: f"agreement on {wanted or 'a leader'}: {found}")
    return found[0]
