"""Links in the pages lead somewhere: the file is there, and so is the heading behind a `#`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
    *sorted((ROOT / "bench").glob("*.md")),
]
BLOCK = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
ELSEWHERE = ("http://", "https://", "mailto:")


def prose(text: str) -> str:
    """A page without its blocks of code, in which `#` is a comment and `](` is code."""
    return BLOCK.sub("", text)


def anchors(text: str) -> set[str]:
    """The names that headings of a page have in an address; a repeated one gets a number."""
    found: set[str] = set()
    for heading in HEADING.findall(prose(text)):
        name = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        unique, number = name, 0
        while unique in found:
            number += 1
            unique = f"{name}-{number}"
        found.add(unique)
    return found


def broken(page: Path, text: str) -> list[str]:
    """Links of a page that lead nowhere."""
    wrong = []
    for link in LINK.findall(prose(text)):
        if link.startswith(ELSEWHERE):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            wrong.append(link)
        elif anchor:
            there = text if target == page else target.read_text(encoding="utf-8")
            if anchor not in anchors(there):
                wrong.append(link)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert broken(page, page.read_text(encoding="utf-8")) == []


def test_every_chapter_and_every_decision_is_listed() -> None:
    for folder, index in (
        ("guide", "docs/README.md"),
        ("guide/frameworks", "docs/guide/18-frameworks.md"),
        ("decisions", "docs/decisions/README.md"),
    ):
        listed = (ROOT / index).read_text(encoding="utf-8")
        pages = {page.name for page in (ROOT / "docs" / folder).glob("*.md")} - {"README.md"}
        assert [name for name in sorted(pages) if f"{name})" not in listed] == []


SAMPLE = """# One page

## What is refused, and why

## Again

## Again

```sh
# a comment
```
"""


def test_a_broken_link_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(SAMPLE, encoding="utf-8")
    good = "[a](#what-is-refused-and-why) [b](page.md#again-1) [c](https://example.org/#x)"
    assert broken(page, SAMPLE + good) == []
    bad = "[a](#refused) [b](gone.md) [c](page.md#again-2) [d](#a-comment)"
    assert broken(page, SAMPLE + bad) == ["#refused", "gone.md", "page.md#again-2", "#a-comment"]
