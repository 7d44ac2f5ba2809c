"""Lines for a shell in pages that are not run by tests/test_examples.py: each is one that parses.

They start servers, or need several terminals; what they do is tested elsewhere. Here it is seen
that every command, option and number of arguments is one that exists.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from hustings.cli.app import hustings

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *ROOT.glob("examples/**/*.md")]
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def lines_of(page: str) -> list[str]:
    """Commands of hustings in a page's blocks for a shell; one may go over several lines."""
    found = []
    for block in BLOCK.findall(page):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
                words.pop(0)
            if words[:1] == ["hustings"] and words[1:] != ["--help"]:
                found.append(shlex.join(words[1:]).removesuffix(" '&'"))
    return found


LINES = sorted({line for page in PAGES for line in lines_of(page.read_text(encoding="utf-8"))})


def parse(line: str) -> None:
    """As the command line does, up to the point at which something would happen."""
    words = shlex.split(line)
    command = hustings.get_command(click.Context(hustings), words[0])
    assert command is not None, f"no command {words[0]}"
    command.make_context(words[0], words[1:], resilient_parsing=False).close()


def test_there_are_lines() -> None:
    assert len(LINES) >= 10


@pytest.mark.parametrize("line", LINES)
def test_a_line_parses(line: str) -> None:
    parse(line)


@pytest.mark.parametrize("line", ["run jobs --grase 5s -- true", "rum jobs", "keygen a b c"])
def test_one_that_does_not_is_seen(line: str) -> None:
    with pytest.raises((AssertionError, click.UsageError)):
        parse(line)
