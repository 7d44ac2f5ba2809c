"""How long no member leads under a guard when the process of the leader is killed.

    python -m scripts.measure_guards                                   postgres, 20 rounds
    python -m scripts.measure_guards postgres etcd zookeeper --rounds 40
    python -m scripts.measure_guards --no-witness                      leases run out
    python -m scripts.measure_guards --nothing-shared --ttl 2s         nothing but the URL in common

The engine is a real one on this machine, started as the tests start it. Some members run on this
machine, each in a process of its own, and are given nothing but the URL of the engine. In each
round the process of the leader gets SIGKILL, and a new process takes its place. The gap lasts from
just before the signal to the moment when the next leader has entered its campaign, by the clock
that all processes of a machine share.

With `--no-witness` nobody gives back the lease of a killed leader. With `--nothing-shared`
(`local=False`) members neither find nor see each other on this machine, as if each were on a
machine of its own behind a closed firewall.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from hustings.core.durations import parse_duration
from tests.guard.engines import ENGINES, started

PATIENCE_S = 60.0
QUIET_S = 1.0  # before each round: the members know each other and who leads
MOST_ROUNDS = 1000
MEMBER = """
import asyncio, os, sys, time
import hustings

async def main(group, url, journal, ttl, protocol, *off):
    file = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    more = dict.fromkeys(off, False)
    joining = hustings.join(
        group, name=f"m{os.getpid()}", guard=url, ttl=ttl, protocol=protocol, **more
    )
    async with joining as member:
        os.write(file, f"{os.getpid()} joined 0\\n".encode())
        async with member.campaign() as term:
            now = time.monotonic()
            os.write(file, f"{os.getpid()} {now} {term.token}\\n".encode())
            await asyncio.sleep(3600)

asyncio.run(main(*sys.argv[1:]))
"""


class Members:
    """Processes that are members, and what they wrote down."""

    def __init__(self, asked: argparse.Namespace, url: str, folder: Path) -> None:
        self._journal = folder / "journal"
        self._command = [
            *(sys.executable, "-c", MEMBER, f"measured-{uuid.uuid4().hex[:8]}", url),
            *(str(self._journal), asked.ttl, asked.protocol),
            *(["local"] if asked.nothing_shared else []),
            *(["witness"] if asked.no_witness else []),
        ]
        self._place = {**os.environ, "HUSTINGS_LOCAL_DIR": str(folder / "local")}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start one more, and wait until it has joined."""
        process = subprocess.Popen(self._command, env=self._place)
        self._processes[process.pid] = process
        self._wait(lambda: any(pid == process.pid for pid, *_ in self._lines()), "a member to join")

    def leader(self, after: int = 0) -> tuple[int, float, int]:
        """The process that leads with a token above this, when it began to, and its token."""
        self._wait(lambda: self._led(after), "a leader")
        return self._led(after)[-1]

    def kill(self, pid: int) -> float:
        """Returns the time just before."""
        at = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        self._processes.pop(pid).wait(PATIENCE_S)
        return at

    def close(self) -> None:
        """End all of them."""
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait(PATIENCE_S)

    def _led(self, after: int) -> list[tuple[int, float, int]]:
        led = [(pid, float(at), int(token)) for pid, at, token in self._lines() if at != "joined"]
        return [each for each in led if each[2] > after]

    def _lines(self) -> list[tuple[int, str, str]]:
        if not self._journal.exists():
            return []
        rows = [line.split() for line in self._journal.read_text().splitlines()]
        return [(int(pid), at, token) for pid, at, token in rows]

    def _wait(self, condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                raise SystemExit(f"waited {PATIENCE_S:g} s in vain for {what}")
            time.sleep(0.01)


def gaps(name: str, asked: argparse.Namespace) -> list[float]:
    """Seconds without a leader, one for each round."""
    found = []
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory()))
        url = ends.enter_context(started(name)).url()
        members = Members(asked, url, folder)
        ends.callback(members.close)
        for _ in range(asked.members):
            members.start()
        pid, _, token = members.leader()
        for _ in range(asked.rounds):
            time.sleep(QUIET_S)
            killed = members.kill(pid)
            pid, began, token = members.leader(token)
            found.append(began - killed)
            members.start()
    return found


def main(words: Sequence[str]) -> None:
    """Print a line for each engine."""
    options = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    options.formatter_class = argparse.RawDescriptionHelpFormatter
    options.add_argument("engines", nargs="*", default=["postgres"], help=", ".join(ENGINES))
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--members", type=int, default=3)
    options.add_argument("--protocol", default="le-s")
    options.add_argument("--ttl", default="2s")
    options.add_argument("--nothing-shared", action="store_true")
    options.add_argument("--no-witness", action="store_true")
    asked = options.parse_args(words)
    if not 1 <= asked.rounds <= MOST_ROUNDS or not 2 <= asked.members <= 50:
        options.error(f"rounds lie between 1 and {MOST_ROUNDS}, and members between 2 and 50")
    unknown = [each for each in asked.engines if each not in ENGINES or each == "memory"]
    if unknown:
        options.error(f"no engine that processes can share: {', '.join(unknown)}")
    parse_duration(asked.ttl, "ttl")
    print(f"{'engine':10} {'rounds':>6} {'shortest':>9} {'median':>9} {'longest':>9}")
    for name in asked.engines:
        found = sorted(gaps(name, asked))
        shown = (found[0], statistics.median(found), found[-1])
        print(f"{name:10} {len(found):6} " + " ".join(f"{1e3 * each:6.0f} ms" for each in shown))


if __name__ == "__main__":
    main(sys.argv[1:])
