"""What workers write while they believe that they lead, and what can be read from it."""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

WAITS = "waits"
NO_TOKEN = "-"


class Journal:
    """A worker's end: each line is written whole, whoever else writes."""

    def __init__(self, path: str | Path, name: str) -> None:
        self.folder = Path(path).parent
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._name = name

    def waits(self) -> None:
        """Say that this worker is a candidate from now on."""
        self._write(WAITS)

    def beat(self, token: int | None = None) -> None:
        """Write the result of a piece of the leader's work, with the token if there is one."""
        self._write(NO_TOKEN if token is None else str(token))

    def close(self) -> None:
        os.close(self._file)

    def _write(self, word: str) -> None:
        os.write(self._file, f"{time.monotonic():.6f} {self._name} {word}\n".encode())


@dataclass(frozen=True, slots=True)
class Beat:
    """A result of a worker that believed that it led."""

    at: float
    name: str
    token: int | None = None


class Reader:
    """The other end: each look reads what is new."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._offset = 0
        self.beats: list[Beat] = []  # in order of time
        self.waiting: dict[str, float] = {}  # when a worker last began to be a candidate

    def look(self) -> None:
        """Read all lines that are whole by now."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.decode().splitlines():
            at, name, word = line.split()
            if word == WAITS:
                self.waiting[name] = float(at)
            else:
                token = None if word == NO_TOKEN else int(word)
                self.beats.append(Beat(float(at), name, token))
        self.beats.sort(key=lambda beat: beat.at)

    def since(self, moment: float) -> list[Beat]:
        """The beats at this moment and later."""
        return self.beats[bisect_left(self.beats, moment, key=lambda beat: beat.at) :]


def gap(beats: Sequence[Beat], old: str, fault: float) -> float | None:
    """From the fault to the first result of another worker; None if there is none."""
    first = next((beat.at for beat in beats if beat.at > fault and beat.name != old), None)
    return None if first is None else first - fault


@dataclass(frozen=True, slots=True)
class Overlap:
    """What the old leader wrote after its successor had begun."""

    beats: int
    seconds: float  # from its first such line to its last
    refused: int  # by a resource that accepts no token below the greatest that it has seen


def overlap(beats: Sequence[Beat], old: str, fault: float) -> Overlap:
    """How much the old leader wrote after another worker had begun."""
    lost = gap(beats, old, fault)
    if lost is None:
        return Overlap(0, 0.0, 0)
    late = [beat for beat in beats if beat.at > fault + lost and beat.name == old]
    seconds = late[-1].at - late[0].at if late else 0.0
    return Overlap(len(late), seconds, _refused(beats, old))


def _refused(beats: Sequence[Beat], old: str) -> int:
    greatest, refused = -1, 0
    for beat in beats:
        if beat.token is None:
            continue
        refused += beat.token < greatest and beat.name == old
        greatest = max(greatest, beat.token)
    return refused
