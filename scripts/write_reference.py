"""Write the generated pages of docs/ from the code; `--check` only compares.

`make docs` runs it, and a test checks that the pages are what it would write.
"""

from __future__ import annotations

import sys
from pathlib import Path

from click import Context
from click.testing import CliRunner

from hustings.cli.app import hustings
from hustings.lab.closed_forms.page import markdown as theory_page
from hustings.protocols.reference import markdown as protocols_page
from hustings.protocols.registry import EVERY, classes
from scripts.coverage_page import markdown as coverage_page

DOCS = Path(__file__).resolve().parent.parent / "docs"


def commands_page() -> str:
    """The help of every command as it prints it, at a fixed width."""
    runner = CliRunner()
    lines = ["# Commands", "", "Written by `make docs` from the commands' help; do not edit."]
    for name in ["", *hustings.list_commands(Context(hustings))]:
        shown = runner.invoke(hustings, [*name.split(), "--help"], terminal_width=100)
        heading = ["", f"## hustings {name}"] if name else []
        lines += [*heading, "", "```", shown.output.rstrip(), "```"]
    return "\n".join(line.rstrip() for text in lines for line in text.split("\n")) + "\n"


def pages() -> dict[str, str]:
    """Every generated page by its path in docs/."""
    return {
        "reference/protocols.md": protocols_page(classes(EVERY)),
        "reference/theory.md": theory_page(),
        "reference/commands.md": commands_page(),
        "coverage.md": coverage_page(),
    }


def main(check: bool) -> int:
    """Write the pages, or say which are out of date."""
    stale = []
    for name, text in pages().items():
        path = DOCS / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if check and stale:
        print(f"out of date: {', '.join(stale)}; run make docs", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
