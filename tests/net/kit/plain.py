"""Plain processes: each joins a group as a program would, and prints what it sees."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

PROGRAM = """
import asyncio, json, logging, os, signal, sys, time
import hustings

def say(**what):
    print(json.dumps({"at": time.monotonic(), **what}), flush=True)

class Notes(logging.Handler):
    def emit(self, record):
        if getattr(record, "event", "") == "note":
            say(note=record.sentence)

async def main(group, options):
    if user := options.pop("become", None):
        async with hustings.join("other", insecure=True):
            pass  # everything is loaded: the other user may not read the files
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    logging.getLogger("hustings").addHandler(Notes(logging.WARNING))
    task = asyncio.current_task()

    def stop():
        say(leader=None, leading=False, reason="stopped")  # its work ends before it leaves
        task.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    try:
        async with hustings.join(group, **options) as member:
            say(joined=member.name)
            async for state in member.observe():
                leader = None if state.leader is None else state.leader.name
                say(leader=leader, leading=state.leading, reason=state.reason)
    except hustings.BadInput as error:
        say(refused=str(error))
    except asyncio.CancelledError:
        pass  # it has left

print("ready", flush=True)
sys.stdin.readline()
asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
"""


class Plain:
    """One process, and what it has said."""

    def __init__(
        self, group: str, options: Mapping[str, Any], environment: Mapping[str, str]
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, group, json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **environment},
        )
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        self.said: list[dict[str, Any]] = []
        self.ready = False
        self.ended = float("inf")  # when it was killed
        self._unread = b""

    def go(self) -> None:
        """Let it join now."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """End it at once."""
        self.ended = time.monotonic()  # others may know that it has ended before this process does
        self.process.kill()
        self.process.wait()
        self.hear()

    def leave(self) -> None:
        """Let it leave its group, as a service that is stopped."""
        self.process.terminate()
        self.process.wait(30)
        self.hear()

    def hear(self) -> None:
        """Read what it has said."""
        assert self.process.stdout is not None
        while data := self.process.stdout.read(65_536):
            *lines, self._unread = (self._unread + data).split(b"\n")
            for line in lines:
                if line == b"ready":
                    self.ready = True
                else:
                    self.said.append(json.loads(line))

    @property
    def name(self) -> str | None:
        """Its member's name, once it has joined."""
        return next((each["joined"] for each in self.said if "joined" in each), None)

    @property
    def states(self) -> list[dict[str, Any]]:
        """Who led, as it saw that."""
        return [each for each in self.said if "leader" in each]

    @property
    def leader(self) -> str | None:
        """Which member leads, as far as it knows."""
        return self.states[-1]["leader"] if self.states else None

    @property
    def leading(self) -> bool:
        """Whether it leads."""
        return bool(self.states) and self.states[-1]["leading"]

    @property
    def notes(self) -> list[str]:
        """The sentences of its log."""
        return [each["note"] for each in self.said if "note" in each]

    @property
    def refused(self) -> str:
        """Why it could not join."""
        return next((each["refused"] for each in self.said if "refused" in each), "")

    def led(self) -> list[tuple[float, float]]:
        """When it led: from and to; the last time is infinite for one that leads."""
        found, since = [], None
        for each in self.states:
            if each["leading"] and since is None:
                since = each["at"]
            elif not each["leading"] and since is not None:
                found.append((since, each["at"]))
                since = None
        return found if since is None else [*found, (since, self.ended)]


class Plains:
    """Plain processes that start together or one by one, and end with the test."""

    def __init__(self, group: str = "plain", **options: Any) -> None:
        self.group = group
        self.options = options
        self.all: list[Plain] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for each in self.all:
            each.process.kill()
        for each in self.all:
            each.process.communicate()

    def prepare(self, count: int = 1, **options: Any) -> list[Plain]:
        """Processes that have loaded everything, and wait for `go`."""
        environment = options.pop("environment", {})
        made = [Plain(self.group, {**self.options, **options}, environment) for _ in range(count)]
        self.all += made
        self.wait(lambda: all(each.ready for each in made), "all are ready")
        return made

    def start(self, count: int = 1, **options: Any) -> list[Plain]:
        """Processes that join at one moment."""
        made = self.prepare(count, **options)
        for each in made:
            each.go()
        return made

    def wait(self, condition: Callable[[], Any], what: str, within: float = 30.0) -> None:
        """Wait until a condition holds."""
        deadline = time.monotonic() + within
        with selectors.DefaultSelector() as selector:
            for each in self.all:
                if each.process.poll() is None and each.process.stdout is not None:
                    selector.register(each.process.stdout, selectors.EVENT_READ)
            while True:
                for each in self.all:
                    each.hear()
                if condition():
                    return
                assert time.monotonic() < deadline, f"not within {within} s: {what}; {self}"
                selector.select(0.02)

    def told(self, members: list[Plain], sentence: str) -> None:
        """Wait until each of them has said a sentence."""
        self.wait(
            lambda: all(any(sentence in note for note in each.notes) for each in members),
            f"each says: {sentence}",
        )

    def agreed(self, among: list[Plain], but: str | None = None) -> Plain:
        """Wait until all of them know one leader, which is one of them; that one."""

        def one() -> bool:
            leaders = {each.leader for each in among}
            leading = [each for each in among if each.leading]
            if len(leaders) != 1 or len(leading) != 1 or but in leaders:
                return False
            return leading[0].name in leaders

        self.wait(one, "one leader")
        return next(each for each in among if each.leading)

    def __str__(self) -> str:
        return "; ".join(f"{each.name}: {each.said[-3:]}" for each in self.all)


def overlapping(plains: list[Plain], since: float = 0.0) -> list[tuple[str | None, str | None]]:
    """Pairs of processes that led at one moment, at this time or later."""
    spans = [(start, end, each.name) for each in plains for start, end in each.led() if end > since]
    return [
        (here[2], there[2])
        for number, here in enumerate(spans)
        for there in spans[number + 1 :]
        if here[2] != there[2] and here[0] < there[1] and there[0] < here[1]
    ]
