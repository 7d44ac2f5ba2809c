"""The guide's chapter on sweeps: its file is the example's, and its program runs as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from hustings.cli.sweep import EXAMPLE

ROOT = Path(__file__).resolve().parents[4]
CHAPTER = (ROOT / "docs" / "guide" / "15-sweeps.md").read_text(encoding="utf-8")


def block(kind: str) -> str:
    (found,) = re.findall(rf"^```{kind}\n(.*?)^```$", CHAPTER, re.MULTILINE | re.DOTALL)
    return str(found)


def test_the_file_is_the_example() -> None:
    assert tomllib.loads(block("toml")) == tomllib.loads(EXAMPLE)


def test_the_program_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block("python")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("hustings sim le-s --members=50 ")
    assert "uniqueness" in done.stdout
