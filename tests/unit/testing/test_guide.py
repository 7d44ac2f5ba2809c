"""The guide's chapter on tests: its files run as they stand there, and its output is what is so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent.parent
CHAPTER = ROOT / "docs" / "guide" / "05-test-your-own.md"
EXAMPLE = ROOT / "examples" / "own_test.py"
FILE = re.compile(r"`([\w/]+\.py)`:\n\n```python\n(.*?)```\n", re.DOTALL)
OUTPUT = re.compile(r"(```text\n)(.*?)(```\n)", re.DOTALL)


def files() -> dict[str, str]:
    """By name, as a line before the block gives it."""
    return dict(FILE.findall(CHAPTER.read_text(encoding="utf-8")))


def test_every_block_of_python_is_a_file_of_its_own() -> None:
    text = CHAPTER.read_text(encoding="utf-8")
    assert text.count("```python\n") == len(files()) == 4


def test_the_tests_of_the_chapter_pass(tmp_path: Path) -> None:
    expected = 0
    for name, text in files().items():
        if "/" not in name:
            (tmp_path / name).write_text(text, encoding="utf-8")
            expected += text.count("\ndef test_") * (3 if "params=range(3)" in text else 1)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert f"\n{expected} passed in" in done.stdout


def test_the_example_and_its_output_are_shown_as_they_are(rewrite: bool) -> None:
    text = CHAPTER.read_text(encoding="utf-8")
    shown = files()["examples/own_test.py"]
    source = EXAMPLE.read_text(encoding="utf-8")
    output = EXAMPLE.with_suffix(".out").read_text(encoding="utf-8")
    if rewrite:
        text = text.replace(shown, source)
        text = OUTPUT.sub(lambda found: found[1] + output + found[3], text)
        CHAPTER.write_text(text, encoding="utf-8")
        shown = source
    assert shown == source
    assert [found[1] for found in OUTPUT.findall(text)] == [output]
