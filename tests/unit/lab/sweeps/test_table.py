"""Tables and pictures of results."""

from __future__ import annotations

import csv
import io

import pytest
from pyarrow import parquet

from hustings.core.errors import BadInput
from hustings.lab.figures.drawing import draw
from hustings.lab.sweeps import (
    Precision,
    Runs,
    SweepPoint,
    SweepResult,
    as_csv,
    as_parquet,
    play_points,
    rows_of,
)
from hustings.lab.sweeps.picture import MOST_CURVES, PictureLayout, made_of, plan
from hustings.lab.sweeps.table import Row
from tests.unit.lab.runs.samples import experiment


def points() -> list[SweepPoint]:
    found = [
        SweepPoint({"protocol": name, "members": members}, experiment(name, members), Runs(10))
        for name in ("le-a", "le-s")
        for members in (2, 100)
    ]
    return [
        *found,
        SweepPoint({"protocol": "sup"}, experiment("sup", 3), Precision(9.0, 20, "tmax")),
    ]


@pytest.fixture(scope="module")
def results() -> list[SweepResult]:
    return play_points(points())


def test_one_row_for_every_point_and_metric(results: list[SweepResult]) -> None:
    rows = rows_of(results)
    assert len(rows) == sum(len(each.block.metrics) for each in results)
    assert {tuple(row) for row in rows} == {tuple(rows[0])}, "all rows have all columns"
    found = [row for row in rows if row["metric"] == "tmax"]
    assert [row["point"] for row in found] == [1, 2, 3, 4, 5]
    assert [row["members"] for row in found] == [2, 100, 2, 100, None]
    assert [row["target"] for row in found] == [None, None, None, None, 9.0]
    assert found[4]["reached"] is True
    moments = results[1].block.metrics["tmax"].moments
    assert (found[1]["mean"], found[1]["stderr"]) == (moments.mean, moments.stderr)


def test_csv_and_parquet_say_the_same_to_the_last_bit(results: list[SweepResult]) -> None:
    rows = rows_of(results)
    read = list(csv.DictReader(io.StringIO(as_csv(rows))))
    table = parquet.read_table(io.BytesIO(as_parquet(rows))).to_pylist()
    assert table == rows
    assert [float(row["mean"]) for row in read if row["mean"]] == [
        row["mean"] for row in rows if row["mean"] is not None
    ]
    assert as_csv(rows) == as_csv(rows_of(results))


def test_columns_of_mixed_kinds_become_text() -> None:
    rows: list[Row] = [
        {"a": 1, "b": 1, "c": True, "d": 1 << 70, "e": None},
        {"a": 2.5, "b": "inf", "c": None, "d": 3, "e": None},
    ]
    assert parquet.read_table(io.BytesIO(as_parquet(rows))).to_pylist() == [
        {"a": 1.0, "b": "1", "c": True, "d": str(1 << 70), "e": None},
        {"a": 2.5, "b": "inf", "c": None, "d": "3", "e": None},
    ]


def test_what_is_drawn(results: list[SweepResult]) -> None:
    found = plan(points()[:4], {})
    assert found == PictureLayout("members", ("protocol",))
    made = made_of("sample", results[:4], found)
    (panel,) = made.panels
    assert panel.panel.measure == "tmax"
    assert [curve.curve.label for curve in panel.curves] == ["le-a", "le-s"]
    assert [point.mean for point in panel.curves[1].points] == [
        each.block.metrics["tmax"].moments.mean for each in results[2:4]
    ]
    assert panel.panel.axis.logarithmic
    pictures = draw(made)
    assert pictures == draw(made_of("sample", results[:4], found))
    assert pictures["png"].startswith(b"\x89PNG")


def test_wishes(results: list[SweepResult]) -> None:
    wished = plan(points()[:4], {"x": "members", "metric": ["messages", "tmax"], "log": True})
    assert isinstance(wished, PictureLayout)
    made = made_of("sample", results[:4], wished)
    assert [panel.panel.measure for panel in made.panels] == ["messages", "tmax"]
    assert all(panel.panel.logarithmic for panel in made.panels)
    for wish, told in (
        ({"y": "tmax"}, "unknown key 'y'"),
        ({"x": "protocol"}, "unknown axis of numbers 'protocol'"),
        ({"x": 3}, "unknown axis of numbers '3'"),
        ({"metric": 3}, "metric must be a name"),
        ({"metric": ["a"] * 5}, "metric must be a name, or a list of at most 4"),
        ({"log": 3}, "log must be true or false"),
    ):
        with pytest.raises(BadInput, match=told):
            plan(points()[:4], wish)
    with pytest.raises(BadInput, match="unknown metric 'tmx': did you mean 'tmax'"):
        made_of("sample", results[:4], PictureLayout("members", (), ("tmx",)))


def test_where_there_is_nothing_to_draw() -> None:
    alone = plan(points()[:1], {})
    assert alone == "nothing is drawn: no parameter takes several numbers"
    many = [
        SweepPoint({"members": number % 2, "seed": number // 2}, experiment("le-s", 2, number))
        for number in range(2 * MOST_CURVES + 2)
    ]
    assert plan(many, {"x": "members"}) == (
        f"nothing is drawn: {MOST_CURVES + 1} curves are more than the {MOST_CURVES} of one picture"
    )
