"""The overhead paper's table: its orders hold, its formulas do not."""

from __future__ import annotations

from hustings.lab.figures.catalogue import choose
from hustings.lab.figures.classic import growth


def test_the_tables_orders_hold_and_its_formulas_do_not() -> None:
    (figure,) = choose(["overhead-table-1"], None)
    made = figure.make({}, 1)
    verdicts = {each.claim: each.verdict.value for each in made.findings if each.theirs}
    assert verdicts == {
        "the overheads grow as the table says": "holds",
        "formulas (1) to (7) behind the table count what the protocols send": "fails",
    }
    assert made.verdict == "reproduced in part"


def test_growth_tells_orders_apart() -> None:
    assert [growth(*pair) for pair in [(7, 7), (100, 201), (100, 390), (2, 17)]] == [0, 1, 2, 3]
