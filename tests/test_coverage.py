"""docs/coverage.md is true: every row is whole, and every command prints what shows its section."""

from __future__ import annotations

import pytest

from scripts.coverage_page import Row, faults, run, table, worlds_of

COMMANDS = sorted(
    {(row.command, row.shows) for paper in table().paper for row in paper.row} - {("", "")}
)


@pytest.mark.parametrize("command, shows", COMMANDS)
def test_a_command_shows_its_section(command: str, shows: str) -> None:
    done = run(command)
    assert (done.exit_code, shows in done.stdout) == (0, True), done.output


def test_no_row_lacks_anything() -> None:
    assert [
        fault for paper in table().paper for row in paper.row for fault in faults(paper, row)
    ] == []


def test_a_row_that_lacks_something_is_noticed() -> None:
    paper = table().paper[0]
    assert faults(paper, Row(section="x"))
    whole = next(row for row in paper.row if row.by)
    for wrong in ({"by": ("hustings.nowhere",)}, {"tests": ("tests/none.py",)}, {"shows": ""}):
        fields = {name: getattr(whole, name) for name in whole.__struct_fields__}
        assert faults(paper, Row(**{**fields, **wrong})), wrong


def test_worlds_are_those_that_take_a_protocol() -> None:
    assert worlds_of("bully") == ("events", "closed form", "schedules", "sockets")
    assert "sockets" not in worlds_of("sup")
    assert "kernel" in worlds_of("le-s")
    assert "schedules" not in worlds_of("le-s")
