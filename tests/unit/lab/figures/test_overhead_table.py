"""Table 1 with counted runs: its shape, its JSON, and that a wrong cell would be seen."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hustings.core.errors import BadInput
from hustings.lab.figures.overhead_table import counted_table


def test_every_cell_once() -> None:
    cells = counted_table(8)
    places = [(cell.row.detector, cell.row.elections, cell.row.election) for cell in cells]
    assert len(places) == len(set(places)) == 12
    assert {cell.row.detector_id for cell in cells} == {1, 4}
    assert {cell.row.crashed for cell in cells} == {1, 2, 4}


def test_the_numbers_at_eight() -> None:
    assert [(cell.row.printed, cell.run) for cell in counted_table(8)] == [
        (2, 2),
        (56, 49),
        (4, 3),
        (47, 42),
        (6, 5),
        (31, 28),
        (2, 2),
        (20, 16),
        (4, 3),
        (12, 12),
        (4, 3),
        (4, 4),
    ]


def test_a_run_that_differs_is_seen() -> None:
    cell = counted_table(8)[0]
    assert cell.agrees
    assert not replace(cell, run=cell.run + 1).agrees


def test_cells_are_plain_json() -> None:
    for cell in counted_table(4):
        found = cell.to_json()
        assert json.loads(json.dumps(found)) == found
        assert (found["run"], found["agrees"]) == (cell.run, True)


@pytest.mark.parametrize("n", [1, 3, 6, 10])
def test_a_group_without_quarters_is_refused(n: int) -> None:
    with pytest.raises(BadInput, match="n must be"):
        counted_table(n)
