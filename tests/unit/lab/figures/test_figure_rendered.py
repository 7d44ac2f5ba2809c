"""A figure from its measured cells: points, lines, rows, a verdict, and the files they become."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from matplotlib.figure import Figure

from hustings.lab.figures.drawing import ZERO, _draw_panel, draw
from hustings.lab.figures.figure import (
    COLUMNS,
    ClaimVerdict,
    Drawn,
    Finding,
    FormLine,
    Rendered,
    _about_engines,
)
from hustings.lab.figures.measuring import Results, measure
from hustings.lab.figures.store import Store
from hustings.lab.figures.writing import as_csv, as_page
from tests.unit.lab.figures.samples import FIGURE, SIZES, bully, fixed


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    store = Store(tmp_path_factory.mktemp("cells"), 1, print)
    return measure(FIGURE.cells(), 1, fixed(100), store)


@pytest.fixture(scope="module")
def made(results: Results) -> Rendered:
    return FIGURE.make(results, 1)


def test_points_are_the_measured_cells(made: Rendered, results: Results) -> None:
    (panel,) = made.panels
    exact, lossy = panel.curves
    assert [point.members for point in exact.points] == list(SIZES)
    for point in (*exact.points, *lossy.points):
        assert point.mean == results[point.cell].metrics["messages"].mean
        assert point.runs == 100
    assert [point.z for point in exact.points] == [0.0, 0.0, 0.0]
    assert [point.printed for point in exact.points] == [None, 25.0, 64.0]
    assert all(point.z is None for point in lossy.points)


def test_lines_pass_through_more_places_than_the_points(made: Rendered) -> None:
    exact, lossy = made.panels[0].curves
    closed, printed = exact.lines
    assert closed.places == [3, 4, 5, 6, 7, 8]
    assert closed.values == [5.0, 11.0, 19.0, 29.0, 41.0, 55.0]
    assert (closed.printed, printed.printed) == (False, True)
    assert printed.places == [4, 5, 6, 7, 8]  # where the formula has a value
    assert lossy.lines == []


def test_every_number_that_is_drawn_stands_in_the_csv(made: Rendered) -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(made))))
    assert list(rows[0]) == list(COLUMNS)
    points = {(row["series"], int(row["members"])): row for row in rows}
    assert len(points) == len(rows)
    for drawn in made.panels[0].curves:
        for point in drawn.points:
            row = points[drawn.curve.label, point.members]
            assert float(row["mean"]) == point.mean
            assert float(row["stderr"]) == point.stderr
            assert row["command"].startswith("hustings sim bully ")
        for line in drawn.lines:
            column = "printed_formula" if line.printed else "closed_form"
            for place, value in zip(line.places, line.values, strict=True):
                assert float(points[drawn.curve.label, int(place)][column]) == value


def test_the_page_tells_what_was_found(made: Rendered) -> None:
    page = as_page(made)
    assert page.startswith("# Bullies\n")
    assert "(sample-1.svg)" in page
    assert "**Nowhere, Figure 1.** Bullies cost more in larger groups." in page
    assert "**Here: reproduced.**" in page
    assert "- larger groups cost more: **holds**." in page
    assert "- (our check) runs and closed form agree: **holds**." in page
    assert "6 points of 100 to 100 runs each" in page


def test_a_wrong_closed_form_is_seen(results: Results) -> None:
    panel = FIGURE.panels[0]
    wrong = replace(panel.curves[0], exact=lambda cell: 1.0)
    figure = replace(FIGURE, panels=(replace(panel, curves=(wrong, panel.curves[1])),))
    made = figure.make(results, 1)
    assert not made.sound
    assert made.verdict == "reproduced"  # the paper made no claim about it


HOLDS, FAILS, OPEN = ClaimVerdict.HOLDS, ClaimVerdict.FAILS, ClaimVerdict.UNDECIDED


@pytest.mark.parametrize(
    "verdicts, overall",
    [
        ([], "nothing claimed"),
        ([HOLDS, HOLDS], "reproduced"),
        ([FAILS], "not reproduced"),
        ([HOLDS, FAILS], "reproduced in part"),
        ([HOLDS, OPEN], "reproduced in part"),
        ([OPEN, OPEN], "undecided"),
        ([ClaimVerdict.PARTLY], "reproduced in part"),
        ([FAILS, OPEN], "reproduced in part"),
    ],
)
def test_the_overall_verdict(
    made: Rendered, verdicts: Sequence[ClaimVerdict], overall: str
) -> None:
    ours = Finding("ours", FAILS, "", theirs=False)
    found = [Finding("theirs", verdict, "") for verdict in verdicts]
    assert replace(made, findings=[*found, ours]).verdict == overall


def test_runs_that_did_not_end_well_are_mentioned(results: Results) -> None:
    cell = bully(3, 0.0)
    cut = msgspec.structs.replace(results[cell], endings={"max-events": 100})
    notes = FIGURE.make({**results, cell: cut}, 1).notes
    assert "100 runs were cut off by their limit." in notes
    bad = sum(block.violated for block in results.values())
    assert bad > 0  # a bully that loses messages may elect two leaders
    assert f"{bad} runs violated a property that their protocol promises." in notes
    calm = {cell: msgspec.structs.replace(block, violated=0) for cell, block in results.items()}
    assert FIGURE.make(calm, 1).notes == []


def test_the_engine_is_told_where_it_is_not_the_simulator() -> None:
    slow = bully(3)
    fast = msgspec.structs.replace(slow, engine="fast")
    assert _about_engines([slow]) == []
    assert _about_engines([fast, fast]) == ["Played by the compiled kernels."]
    assert "message by message what these do not know" in _about_engines([fast, slow])[0]


def test_what_never_happened_is_an_upper_limit_on_a_logarithmic_axis(made: Rendered) -> None:
    (panel,) = made.panels
    lossy = panel.curves[1]
    never = replace(lossy, points=[replace(each, mean=0.0, stderr=0.0) for each in lossy.points])
    below = replace(lossy, points=[replace(each, mean=-1.0) for each in lossy.points])
    gone = replace(lossy, points=[])

    def picture(drawn: Drawn) -> bytes:
        shown = replace(
            panel,
            panel=replace(panel.panel, logarithmic=True),
            curves=[panel.curves[0], drawn],
        )
        return draw(replace(made, panels=[shown]))["png"]

    assert picture(never) != picture(gone)
    assert picture(below) == picture(gone)  # of a negative mean no axis of this kind knows a place


def test_an_upper_limit_stands_at_three_over_the_runs(made: Rendered) -> None:
    (panel,) = made.panels
    lossy = panel.curves[1]
    points = [replace(each, mean=0.0, stderr=0.0, runs=600) for each in lossy.points]
    axes = Figure().add_subplot()
    _draw_panel(
        axes,
        replace(
            panel,
            panel=replace(panel.panel, logarithmic=True),
            curves=[replace(lossy, points=points, lines=[])],
        ),
    )
    drawn = [line for line in axes.get_lines() if line.get_marker() == "v"]
    heights = [np.asarray(line.get_ydata()).tolist() for line in drawn]
    assert [each for each in heights if each] == [[0.005] * len(points)]
    legend = axes.get_legend()
    assert legend is not None
    assert ZERO in [text.get_text() for text in legend.get_texts()]
    assert not axes.containers  # no marker with a bar, which no point has


def test_points_of_one_place_may_stand_side_by_side(made: Rendered) -> None:
    (panel,) = made.panels
    twice = [replace(panel.curves[1], lines=[])] * 2
    axes = Figure().add_subplot()
    _draw_panel(axes, replace(panel, panel=replace(panel.panel, apart=True), curves=twice))
    left, right = (np.asarray(line[0].get_xdata()) for line in axes.containers)
    assert (left < right).all()
    exact = [panel.panel.axis.place(point.cell) for point in twice[0].points]
    assert np.allclose((left + right) / 2, exact)


def test_a_curve_without_points_has_no_marker_in_the_legend(made: Rendered) -> None:
    (panel,) = made.panels
    first = panel.curves[0]
    bare = replace(first, points=[], lines=[FormLine([1.0, 2.0], [3.0, 4.0], printed=False)])
    axes = Figure().add_subplot()
    _draw_panel(axes, replace(panel, curves=[bare, panel.curves[1]]))
    handles, labels = axes.get_legend_handles_labels()
    shown = dict(zip(labels, handles, strict=True))
    assert shown[first.curve.label].get_marker() == "None"
    assert shown[panel.curves[1].curve.label][0].get_marker() == panel.curves[1].curve.mark
