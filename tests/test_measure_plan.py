"""The coverage of predicted failovers: what is drawn, and what a row says."""

from __future__ import annotations

import json

import pytest

from hustings.lab.plans.virtual import MACHINE, Failover, ObservedGroup
from scripts.measure_plan import Row, _row, cells, draw, main, summary


def test_environments_are_drawn_by_a_seed() -> None:
    drawn = [draw(1, number) for number in range(1, 31)]
    assert drawn == [draw(1, number) for number in range(1, 31)]
    assert drawn != [draw(2, number) for number in range(1, 31)]
    sizes = [each.members for each in drawn]
    assert min(sizes) < 8
    assert max(sizes) > 300
    assert {each.environment.pauses is None for each in drawn} == {True, False}
    assert {each.configuration.guard for each in drawn} == {None, "quorum", "etcd"}
    for each in drawn:
        each.configuration.configured()  # it contradicts nothing
        assert all(voter <= each.members for voter in each.configuration.voters)


def row(quantile: float, covered: bool) -> Row:
    return Row(
        environment=1,
        members=5,
        sites=1,
        loss="0 %",
        pauses=False,
        protocol="le-s",
        guard="none",
        quantile=quantile,
        failovers=10,
        predicted=1.0,
        low=0.9,
        high=1.2,
        measured=1.1 if covered else 2.0,
        covered=covered,
        method="order statistics",
    )


def test_what_is_told() -> None:
    rows = [row(0.99, True)] * 28 + [row(0.99, False)] * 2 + [row(0.5, True)]
    assert summary(rows, 0.99).startswith("quantile 0.99: 28 of 30 intervals cover (93 %")
    assert summary(rows, 0.5).startswith("quantile 0.5: 1 of 1")
    assert cells(rows[-2])[-2:] == ["**no**", "order"]


def test_groups_that_never_settle_are_a_row() -> None:
    drawn = draw(1, 2)
    nothing = ObservedGroup(drawn.members, (), (), (1,))
    one = Failover(1, MACHINE, 1, 1.0, 1.0, 1.0, 0.0)
    something = ObservedGroup(drawn.members, (one,) * 400, (), ())
    assert _row(drawn, (nothing, nothing), 0.99).covered
    assert not _row(drawn, (something, nothing), 0.99).covered
    assert not _row(drawn, (nothing, something), 0.99).covered
    assert _row(drawn, (something, something), 0.99).covered


def test_a_quick_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--quick", "--json", "--jobs", "1"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["environment"], each["quantile"]) for each in told] == [
        (number, p) for number in (1, 2) for p in (0.5, 0.99)
    ]
    for each in told:
        assert each["covered"] == (each["low"] <= each["measured"] <= each["high"])
        assert 3 <= each["members"] <= 8
        assert 0.0 < each["predicted"] < 60.0


@pytest.mark.parametrize(
    "words", [["--environments", "0"], ["--members", "2", "9"], ["--jobs", "0"]], ids=str
)
def test_refusals(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert "must lie between" in capsys.readouterr().err
