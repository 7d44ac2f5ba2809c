"""Running commands, in this process or in one of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from hustings.cli.app import run

COMMAND = [sys.executable, "-m", "hustings"]
PATIENCE = 60  # seconds


@dataclass(frozen=True)
class Result:
    """What a command line came to."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The one sentence of a command that refused, after all that a refusal promises."""
        assert self.code == 2, self
        assert self.out == ""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("hustings: ")
        assert "Traceback" not in lines[0]
        return lines[0].removeprefix("hustings: ")


Hustings = Callable[..., Result]


def in_process(capsys: pytest.CaptureFixture[str]) -> Hustings:
    def hustings(*arguments: str) -> Result:
        capsys.readouterr()
        code = run(list(arguments))
        shown = capsys.readouterr()
        return Result(code, shown.out, shown.err)

    return hustings


def in_own_process(
    *arguments: str, cwd: Path | None = None, environment: dict[str, str] | None = None
) -> Result:
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)
