"""The documentation site builds without a warning, is complete, and fetches nothing else."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

import hustings
from scripts.build_site import ROOT, build

ASSETS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
FOREIGN = re.compile(r"(?:[a-z]+:)?//")
IN_STYLE = re.compile(r"""(?:url\(|@import)\s*["']?((?:[a-z]+:)?//[^"')\s]+)""")


class Assets(HTMLParser):
    """What a browser fetches to show a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        address = given.get(ASSETS.get(tag, ""))
        if address is not None and given.get("rel") not in ("canonical", "next", "prev", "index"):
            self.found.append(address)

    @property
    def foreign(self) -> list[str]:
        return [each for each in self.found if FOREIGN.match(each)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("built") / "site"
    assert build(to) == 0
    return to


def test_every_page_is_there(site: Path) -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.rst")]
    pages += [*ROOT.glob("*.md"), *(ROOT / "examples").rglob("*.md")]
    missing = [
        page for page in pages if not (site / page.relative_to(ROOT)).with_suffix(".html").exists()
    ]
    assert missing == []


def test_the_first_page_leads_to_all_chapters(site: Path) -> None:
    first = (site / "index.html").read_text("utf-8")
    chapters = [page.stem for page in (ROOT / "docs" / "guide").glob("*.md")]
    assert [name for name in chapters if f'href="docs/guide/{name}.html"' not in first] == []


def test_the_chapter_about_frameworks_leads_to_their_pages(site: Path) -> None:
    chapter = (site / "docs" / "guide" / "18-frameworks.html").read_text("utf-8")
    pages = [page.stem for page in (ROOT / "docs" / "guide" / "frameworks").glob("*.md")]
    assert pages
    assert [name for name in pages if f'href="frameworks/{name}.html"' not in chapter] == []


def test_no_page_fetches_anything_from_elsewhere(site: Path) -> None:
    pages = {page: Assets(page.read_text("utf-8")) for page in site.rglob("*.html")}
    assert all(assets.found for assets in pages.values())
    assert {str(page): each.foreign for page, each in pages.items() if each.foreign} == {}
    styles = {page: IN_STYLE.findall(page.read_text("utf-8")) for page in site.rglob("*.css")}
    assert styles
    assert {page: found for page, found in styles.items() if found} == {}


def test_what_would_come_from_elsewhere_is_seen() -> None:
    page = '<link rel="stylesheet" href="//a/b.css"><script src="https://a/b.js"></script>'
    assert Assets(page + '<img src="c.svg"><a href="https://a/">a</a>').foreign == [
        "//a/b.css",
        "https://a/b.js",
    ]
    assert IN_STYLE.findall("@font-face { src: url('https://a/b.woff') }") == ["https://a/b.woff"]


def test_the_search_knows_the_words_of_the_pages(site: Path) -> None:
    text = (site / "searchindex.js").read_text("utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    assert "docs/guide/03-leases-and-fencing" in index["docnames"]
    assert {"advisori", "postgr", "ballot"} & index["terms"].keys()
    assert (site / "search.html").exists()


def test_the_api_has_every_public_name(site: Path) -> None:
    page = (site / "docs" / "api" / "hustings.html").read_text("utf-8")
    names = set(hustings.__all__) - {"__version__"}
    assert [name for name in sorted(names) if f"{name}</span>" not in page] == []


@pytest.mark.parametrize("wrong", ["[gone](gone.md)", "[gone](#no-such-heading)"])
def test_a_link_that_leads_nowhere_is_an_error(
    tmp_path: Path, wrong: str, capfd: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "tree"
    (root / "docs").mkdir(parents=True)
    text = (ROOT / "docs" / "conf.py").read_text("utf-8").replace("{root_doc: CONTENTS, ", "{")
    (root / "docs" / "conf.py").write_text(text, "utf-8")
    page = root / "README.md"
    page.write_text("# One page\n", "utf-8")
    assert build(tmp_path / "site", root) == 0
    shutil.rmtree(tmp_path / "site")
    page.write_text(f"# One page\n\n{wrong}\n", "utf-8")
    assert build(tmp_path / "site", root) != 0
    assert "README.md:3" in capfd.readouterr().err
