"""Examples are tests: examples/*.py print what is stored beside them, and pages show what is so.

A page's block of kind `console` holds commands after `$ ` and what they print. The commands of one
page run in order in one folder, so a later one may read what an earlier one wrote. At first there
is nothing in it but the files of the page: blocks of Python or TOML below a line that ends with
"`x.py`:" or "`x.toml`:".
A line `...` stands for any number of lines. What goes to stderr may be left out. `pytest --rewrite`
stores what is printed now.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hustings.cli.app import run

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
OWN_FILE = re.compile(
    r"`(\w+\.(?:py|toml))`:\n\n```(?:python|toml)\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
ANY = "..."
ASIDE = "hustings: "  # how everything on stderr begins
PATIENCE = 60  # seconds


# Examples


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3
    stored = sorted(path.stem for path in (ROOT / "examples").glob("*.out"))
    assert stored == [path.stem for path in EXAMPLES]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_is_stored(example: Path, tmp_path: Path, rewrite: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-W", "error", str(example)],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
    stored = example.with_suffix(".out")
    if rewrite:
        stored.write_text(done.stdout, encoding="utf-8")
    assert done.stdout == stored.read_text(encoding="utf-8")


# Pages


@dataclass(frozen=True)
class Shown:
    """A command and what a page says that it prints."""

    line: int
    command: str
    output: list[str]


def shown_in(text: str) -> Iterator[Shown]:
    """All commands in the console blocks of a page, with the number of the line each stands on."""
    lines = text.splitlines()
    place = 0
    while place < len(lines):
        if lines[place].rstrip() != "```console":
            place += 1
            continue
        place += 1
        while lines[place].rstrip() != "```":
            if not lines[place].startswith("$ "):
                raise ValueError(f"line {place + 1}: a console block begins with a command")
            line, command = place + 1, lines[place].removeprefix("$ ")
            while command.endswith("\\"):
                place += 1
                command = command.removesuffix("\\") + lines[place].strip()
            place += 1
            first = place
            while not lines[place].startswith("$ ") and lines[place].rstrip() != "```":
                place += 1
            yield Shown(line, command, [each.rstrip() for each in lines[first:place]])


def printed_by(command: str) -> list[str]:
    """What a terminal would show of both streams, without blanks at the ends of lines."""
    name, *arguments = shlex.split(command)
    if name != "hustings":
        raise ValueError(f"a page shows what hustings prints, not {name}")
    screen = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
        run(arguments)
    screen.seek(0)
    return trimmed([line.rstrip() for line in screen.read().splitlines()])


def without_asides(lines: list[str]) -> list[str]:
    return trimmed([line for line in lines if not line.startswith(ASIDE)])


def trimmed(lines: list[str]) -> list[str]:
    """Without empty lines at either end: a page may set its output apart."""
    filled = [place for place, line in enumerate(lines) if line]
    return lines[filled[0] : filled[-1] + 1] if filled else []


def agree(shown: list[str], printed: list[str]) -> bool:
    pattern = "".join(
        r"(?:.*\n)*" if line == ANY else re.escape(line) + r"\n" for line in trimmed(shown)
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


def rewritten(text: str, printed: dict[int, list[str]]) -> str:
    """The page with other outputs, by the lines of their commands."""
    lines = text.splitlines()
    for shown in reversed(list(shown_in(text))):
        if shown.line in printed:
            first = shown.line
            while lines[first - 1].endswith("\\"):
                first += 1
            last = first + len(shown.output)
            apart = [""] if lines[last].startswith("$ ") else []
            lines[first:last] = printed[shown.line] + apart
    return "\n".join(lines) + "\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the commands of a page run; what they loaded from there does not stay loaded."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_shows_what_commands_print(page: Path, folder: Path, rewrite: bool) -> None:
    text = page.read_text(encoding="utf-8")
    for name, content in OWN_FILE.findall(text):
        (folder / name).write_text(content, encoding="utf-8")
    wrong: dict[int, list[str]] = {}
    for shown in shown_in(text):
        printed = printed_by(shown.command)
        if not any(line.startswith(ASIDE) for line in shown.output):
            printed = without_asides(printed)
        if not agree(shown.output, printed):
            wrong[shown.line] = printed
    if rewrite and wrong:
        page.write_text(rewritten(text, wrong), encoding="utf-8")
        return
    told = [
        f"{page.relative_to(ROOT)}:{line}: the command prints\n" + "\n".join(printed)
        for line, printed in wrong.items()
    ]
    assert not told, "\n\n".join(told)


def test_the_readme_shows_a_command_and_its_output() -> None:
    shown = list(shown_in(PAGES[0].read_text(encoding="utf-8")))
    assert any(each.output for each in shown)


# The reading of pages itself

PAGE = """Text.

```console
$ hustings one \\
    --two
first

second
$ hustings three
```

```sh
$ not read
```
"""


def test_a_page_is_read() -> None:
    assert list(shown_in(PAGE)) == [
        Shown(4, "hustings one --two", ["first", "", "second"]),
        Shown(9, "hustings three", []),
    ]
    with pytest.raises(ValueError, match="begins with a command"):
        list(shown_in("```console\nfirst\n```\n"))


def test_a_page_is_rewritten_where_it_is_wrong() -> None:
    changed = rewritten(PAGE, {4: ["other"], 9: ["third", "fourth"]})
    assert [shown.output for shown in shown_in(changed)] == [["other", ""], ["third", "fourth"]]
    assert rewritten(PAGE, {}) == PAGE


@pytest.mark.parametrize(
    "shown, printed, same",
    [
        (["a", "b"], ["a", "b"], True),
        (["a", "b"], ["a", "c"], False),
        (["a"], ["a", "b"], False),
        (["", "a", ""], ["a"], True),
        (["a", ANY, "d"], ["a", "b", "c", "d"], True),
        (["a", ANY], ["a"], True),
        (["a", ANY, "d"], ["a", "b", "c"], False),
        (["a.c"], ["abc"], False),
    ],
)
def test_what_is_shown_agrees_with_what_is_printed(
    shown: list[str], printed: list[str], same: bool
) -> None:
    assert agree(shown, printed) is same


def test_commands_of_others_are_not_run() -> None:
    with pytest.raises(ValueError, match="not rm"):
        printed_by("rm -r .")
