"""The guide's chapter on tests: its files run as they stand there, and its output is what is so."""

from __future__ import annotations

import os
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
    assert text.count("```python\n") == len(files()) == 7


def written(folder: Path) -> str:
    """All files of the chapter but the example, in a folder; and the text of all of them."""
    texts = {name: text for name, text in files().items() if "/" not in name}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return "".join(texts.values())


def run_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*command, "-p", "hustings.testing.plugin", *options],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_the_tests_of_the_chapter_pass(tmp_path: Path) -> None:
    text = written(tmp_path)
    expected = text.count("\ndef test_") + 2 * text.count("(group: Group")  # those have 3 seeds
    done = run_pytest(tmp_path, ".")
    assert done.returncode == 0, done.stdout
    assert f"\n{expected} passed in" in done.stdout


FAILURE = re.compile(r"this run fails: .*\n.*\nreplay it:\n.*\n")


def test_the_failure_of_the_chapter_is_what_the_plugin_prints(
    tmp_path: Path, rewrite: bool
) -> None:
    written(tmp_path)
    failing = tmp_path / "test_seeds.py"
    text = failing.read_text(encoding="utf-8")
    passing = "assert post.letters[-1][0] == leader"
    assert passing in text
    failing.write_text(text.replace(passing, "assert not post.refused"), encoding="utf-8")
    done = run_pytest(tmp_path, "--hustings-seeds=30", "--hustings-shrink=60", failing.name)
    assert done.returncode == 1
    printed = FAILURE.findall(done.stdout)
    chapter = CHAPTER.read_text(encoding="utf-8")
    if rewrite:
        chapter = FAILURE.sub(lambda _: printed[0], chapter)
        CHAPTER.write_text(chapter, encoding="utf-8")
    assert FAILURE.findall(chapter) == printed


def test_the_example_and_its_output_are_shown_as_they_are(rewrite: bool) -> None:
    text = CHAPTER.read_text(encoding="utf-8")
    shown = files()["examples/own_test.py"]
    source = EXAMPLE.read_text(encoding="utf-8")
    output = EXAMPLE.with_suffix(".out").read_text(encoding="utf-8")
    if rewrite:
        text = text.replace(shown, source)
        place = text.rindex("```text\n")
        text = text[:place] + OUTPUT.sub(lambda found: found[1] + output + found[3], text[place:])
        CHAPTER.write_text(text, encoding="utf-8")
        shown = source
    assert shown == source
    assert [found[1] for found in OUTPUT.findall(text)][1:] == [output]
