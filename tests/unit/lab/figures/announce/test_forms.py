"""The closed forms that the figures draw, at the numbers that are known of them."""

from __future__ import annotations

import pytest

from hustings.lab.figures.announce import forms
from hustings.lab.figures.announce.measurements import (
    COLLISION,
    CORRELATED,
    NONE,
    UNCORRELATED,
    disturbed,
    start,
    watched,
)
from hustings.lab.figures.figure import Form
from hustings.lab.figures.measurement import Measurement

LE, SUP, AL = "le-s", "sup", "al"

KNOWN: list[tuple[Form, Measurement, float]] = [
    (forms.le_tmax, start(LE, 500, NONE), 0.5),
    (forms.le_tmax, start(LE, 500, CORRELATED), 1.1667),
    (forms.le_tmax, start(LE, 500, UNCORRELATED), 7.411),
    (forms.le_tmax, start(LE, 500, UNCORRELATED, 0.7), 19.039),
    (forms.le_tmax, start("le-a", 2, UNCORRELATED), 0.6667),
    (forms.printed_le_tmax, start(LE, 2, UNCORRELATED), 2.643),
    (forms.printed_le_tmax, start(LE, 500, UNCORRELATED, 0.7), 20.045),
    (forms.le_m_tmax, start("le-m", 99, NONE), 0.01),
    (forms.al_tmax, start(AL, 70, UNCORRELATED, collision=COLLISION), 4.90),
    (forms.al_tmax, start(AL, 200, UNCORRELATED, collision=COLLISION), 6.41),
    (forms.al_tmax, start(AL, 500, UNCORRELATED, collision=COLLISION), 8.40),
    (forms.al_messages, start(AL, 500, UNCORRELATED), 3955.6),
    (forms.sup_tmax, start(SUP, 100, NONE), 0.1001),
    (forms.sup_halt, start(SUP, 100, NONE), 0.0099),
    (forms.le_messages, start(LE, 500, NONE), 56.7),
    (forms.le_messages, start(LE, 50, CORRELATED), 12.82),
    (forms.le_messages, start(LE, 100, law="exponential", lam="5"), 8.16),
    (forms.printed_le_messages, start(LE, 500, CORRELATED, 0.7), 172.2),
    (forms.sup_messages, start(SUP, 100, NONE), 11.0),
    (forms.le_first_round, start(LE, 500, CORRELATED, 0.7), 68.28),
    (forms.le_first_round, start(LE, 500, UNCORRELATED, delay=1e-6), 13.927),
    (forms.printed_le_first_round, start(LE, 500, UNCORRELATED, delay=1e-6), 40.1),
    (forms.le_a_messages, start("le-a", 10, NONE), 10.0),
    (forms.le_m_messages, start("le-m", 100, NONE), 11.0),
    (forms.departure, disturbed("leader-crash", LE, 20, NONE, T_L="5"), 5.2),
    (forms.departure, disturbed("leader-crash", LE, 20, CORRELATED, T_L="5"), 5.2047),
    (forms.leadership, start(LE, 21, UNCORRELATED), 4.027),
    (forms.larger, disturbed("join-larger", LE, 20, UNCORRELATED, T_L="inf"), 4.027),
    (forms.smaller, disturbed("join-smaller", LE, 50, UNCORRELATED, T_L="inf"), 1.1667),
    (forms.inconsistent, watched(20, CORRELATED, 0.4, 3, 100.0), 0.064),
    (forms.inconsistent, watched(20, UNCORRELATED, 0.4, 3, 100.0), 0.715),
]


@pytest.mark.parametrize("form, cell, value", KNOWN, ids=[case[0].__name__ for case in KNOWN])
def test_known_values(form: Form, cell: Measurement, value: float) -> None:
    assert form(cell) == pytest.approx(value, rel=2e-3, abs=6e-5)


SILENT: list[tuple[Form, Measurement]] = [
    (forms.le_tmax, start(LE, 50, UNCORRELATED, collision=COLLISION)),
    (forms.printed_le_tmax, start(LE, 50, UNCORRELATED, collision=COLLISION)),
    (forms.sup_tmax, start(SUP, 50, UNCORRELATED)),
    (forms.sup_halt, start(SUP, 50, UNCORRELATED)),
    (forms.le_messages, start(LE, 50, UNCORRELATED)),
    (forms.printed_le_messages, start(LE, 50, UNCORRELATED)),
    (forms.sup_messages, start(SUP, 50, UNCORRELATED)),
    (forms.le_a_messages, start("le-a", 50, UNCORRELATED)),
    (forms.le_m_messages, start("le-m", 50, UNCORRELATED)),
    (forms.departure, disturbed("leader-crash", LE, 20, UNCORRELATED, T_L="5")),
    (forms.departure, disturbed("leader-crash", LE, 20, CORRELATED, 0.7, T_L="3")),
]


@pytest.mark.parametrize("form, cell", SILENT, ids=[case[0].__name__ for case in SILENT])
def test_no_statement_where_the_formula_makes_none(form: Form, cell: Measurement) -> None:
    assert form(cell) is None
