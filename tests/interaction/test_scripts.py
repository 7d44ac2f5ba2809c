"""Every golden script under this folder still plays as written.

`pytest --rewrite tests/interaction` writes what comes out now over what was expected; the diff is
what gets reviewed.
"""

from pathlib import Path

import pytest

from hustings.protocols.registry import find
from hustings.testing import play

HERE = Path(__file__).parent
SCRIPTS = sorted(HERE.glob("*/*.txt"))


def name_of(path: Path) -> str:
    return path.relative_to(HERE).as_posix()


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_script(path: Path, rewrite: bool) -> None:
    expected = path.read_text(encoding="utf-8")
    played = play(expected, find, name_of(path))
    if rewrite:
        path.write_text(played, encoding="utf-8")
    else:
        assert played == expected


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_script_says_what_it_shows_and_plays_the_protocol_of_its_folder(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    groups = [line.split() for line in lines if line.startswith("> nodes")]
    assert groups
    assert {words[3] for words in groups} == {path.parent.name.replace("_", "-")}
