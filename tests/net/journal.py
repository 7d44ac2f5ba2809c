"""A command that writes who runs it and when, and what ran at one time.

Every line has the member, the term, the token and the time, by the clock that all processes of a
machine share.
"""

from __future__ import annotations

import itertools
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import until

WRITER = """
import os, signal, sys, time
for name in sys.argv[2:]:
    signal.signal(getattr(signal, name), signal.SIG_IGN)
told = os.environ
line = f'{told["HUSTINGS_MEMBER"]} {told["HUSTINGS_TERM"]} {told["HUSTINGS_TOKEN"] or 0}'
file = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
while True:
    os.write(file, f'{os.getpid()} {line} {time.monotonic()}\\n'.encode())
    time.sleep(0.005)
"""


@dataclass(frozen=True)
class Span:
    """One run of a command."""

    process: int
    member: str
    term: int
    token: int
    first: float
    last: float


class Journal:
    """What the commands wrote."""

    def __init__(self, folder: Path, *deaf_to: str) -> None:
        self.path = folder / "journal"
        self.path.touch()
        script = folder / "writer.py"
        script.write_text(WRITER)
        self.command = f"exec {sys.executable} {script} {self.path} {' '.join(deaf_to)}"

    def spans(self) -> list[Span]:
        """All runs of the command, the first one first."""
        found: dict[int, Span] = {}
        for line in self.path.read_text().splitlines():
            number, member, term, token, at = line.split()
            process, when = int(number), float(at)
            first = found[process].first if process in found else when
            found[process] = Span(process, member, int(term), int(token), first, when)
        return sorted(found.values(), key=lambda span: span.first)

    def overlaps(self) -> list[tuple[Span, Span]]:
        """Runs that were there at one time."""
        return [
            (one, other)
            for one, other in itertools.pairwise(self.spans())
            if other.first <= one.last
        ]

    def wait_for(self, runs: int) -> None:
        """Wait until the command has been started so often."""
        until(lambda: len(self.spans()) >= runs, f"run {runs} of the command")
