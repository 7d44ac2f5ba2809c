"""The figures of the chapter: cells that can be played, and verdicts that follow the numbers."""

from __future__ import annotations

import pytest

from hustings.lab.figures.announce.against_al import CROSSING
from hustings.lab.figures.announce.measurements import CORRELATED, NONE, UNCORRELATED
from hustings.lab.figures.catalogue import of_family
from hustings.lab.figures.figure import ClaimVerdict, CurveFigure, Rendered
from hustings.lab.figures.judging import COARSE
from hustings.lab.figures.measurement import Measurement
from hustings.lab.runs.kernels import setting_of
from tests.unit.lab.figures.announce.supposed import Change, Means, block, means, suppose

FIGURES = {figure.name: figure for figure in of_family("announce")}
PICTURES = [name for name in FIGURES if name != "announce-claims"]
SCALE = "announce-scale"
HOLDS, FAILS = ClaimVerdict.HOLDS, ClaimVerdict.FAILS


def made(name: str, change: Change | None = None) -> Rendered:
    figure = FIGURES[name]
    return figure.make(suppose(figure.cells(), change), 1)


@pytest.mark.parametrize("figure", FIGURES.values(), ids=list(FIGURES))
def test_every_cell_can_be_played(figure: CurveFigure) -> None:
    cells = figure.cells()
    assert cells
    for cell in cells:
        experiment = cell.experiment(1)
        assert experiment.members == cell.members
        assert experiment.kind.about.name == cell.protocol
        assert set(cell.aims) <= set(means(cell)), "what is aimed at is measured"
        assert (cell.engine == "fast") is (cell.scenario == "start")
        if cell.engine == "fast":
            assert setting_of(experiment).members == cell.members


@pytest.mark.parametrize("name", PICTURES)
def test_every_curve_reaches_as_far_as_it_should(name: str) -> None:
    figure = FIGURES[name]
    assert isinstance(figure, CurveFigure)
    for panel in figure.panels:
        for curve in panel.curves:
            sizes = [cell.members for cell in curve.cells]
            assert (sizes[0], sizes[-1]) == ((10, 10**6) if name == SCALE else (2, 500))
            assert sizes == sorted(sizes)


@pytest.mark.parametrize("name", FIGURES)
def test_labels_are_unique(name: str) -> None:
    figure = FIGURES[name]
    if isinstance(figure, CurveFigure):
        labels = [curve.label for panel in figure.panels for curve in panel.curves]
        assert len(labels) == len(set(labels))


# What is not reproduced even in a world in which the corrected formulas are true.
EXPECTED = {
    "announce-5.6": [],
    "announce-5.7": [],
    "announce-5.8": ["the formula of 5.3.1.3"],
    "announce-5.9": ["the last line of 5.3.3.2", "Q(i, n) of 5.3.3.3"],
    "announce-5.10": [],
    "announce-5.11": ["LE-S is ahead of AL beyond N = 200"],
    "announce-5.12": [],
    "announce-5.13": [],
    SCALE: ["under uncorrelated loss the delay of LE-S levels off"],
}


@pytest.mark.parametrize("name", PICTURES)
def test_if_the_closed_forms_are_true(name: str) -> None:
    shown = made(name)
    assert shown.sound
    wrong = [each.claim for each in shown.findings if each.verdict is not HOLDS]
    assert len(wrong) == len(EXPECTED[name])
    for claim, words in zip(wrong, EXPECTED[name], strict=True):
        assert claim.startswith(words)
    assert shown.verdict == ("reproduced in part" if wrong else "reproduced")


@pytest.mark.parametrize("name", PICTURES)
def test_coarse_numbers_decide_no_equality(name: str) -> None:
    figure = FIGURES[name]
    results = {cell: block(means(cell), 4 * COARSE) for cell in figure.cells()}
    for each in figure.make(results, 1).findings:
        if "agree" in each.claim or "does not depend" in each.claim:
            assert each.verdict is ClaimVerdict.UNDECIDED, each


@pytest.mark.parametrize("name", PICTURES)
def test_few_runs_decide_nothing(name: str) -> None:
    figure = FIGURES[name]
    results = {cell: block(means(cell), runs=50) for cell in figure.cells()}
    shown = figure.make(results, 1)
    assert {each.verdict for each in shown.findings} == {ClaimVerdict.UNDECIDED}
    assert shown.verdict == "undecided"


# Worlds that differ: each turns one verdict round.


def slower(protocol: str, loss_model: str, factor: float, metric: str = "tmax") -> Change:
    """A world in which one protocol does worse, the more so the larger the group."""

    def change(cell: Measurement, supposed: Means) -> Means:
        if (cell.protocol, cell.loss_model) == (protocol, loss_model):
            supposed[metric] *= 1.0 + (factor - 1.0) * min(1.0, cell.members / 200)
        return supposed

    return change


def late(cell: Measurement, supposed: Means) -> Means:
    """AL degrades beyond the crossing."""
    if cell.protocol == "al" and cell.members > CROSSING:
        supposed["tmax"] *= 1.5
    return supposed


def level(cell: Measurement, supposed: Means) -> Means:
    """LE-S comes to an end of its growth."""
    if cell.protocol == "le-s":
        supposed["tmax"] = 8.0 - 10.0 / cell.members
    return supposed


def chatty(cell: Measurement, supposed: Means) -> Means:
    """Exponential timers let everybody speak."""
    if ("law", "exponential") in cell.settings:
        supposed["num_msgs"] = float(cell.members)
    return supposed


TURNED = [
    ("announce-5.6", slower("le-s", NONE, 2.0), "does not depend on N", FAILS),
    ("announce-5.6", slower("le-s", NONE, 2.0), "E[t_s] = 0.5", FAILS),
    ("announce-5.6", slower("le-s", NONE, 2.0), "closed forms agree", FAILS),
    ("announce-5.6", slower("sup", NONE, 50.0), "LE-S takes longer than SUP", FAILS),
    ("announce-5.6", slower("sup", NONE, 50.0, "t_halt"), "leaves later", FAILS),
    ("announce-5.7", slower("sup", NONE, 3.0, "num_msgs"), "more messages", FAILS),
    ("announce-5.8", slower("le-s", CORRELATED, 20.0), "and more so if uncorrelated", FAILS),
    ("announce-5.8", slower("le-s", CORRELATED, 0.2), "loss delays LE-S", FAILS),
    ("announce-5.8", slower("sup", UNCORRELATED, 99.0), "SUP, if uncorrelated", FAILS),
    ("announce-5.9", slower("le-s", CORRELATED, 9.0, "num_msgs"), "and more of them", FAILS),
    ("announce-5.9", slower("sup", CORRELATED, 9.0, "num_msgs"), "SUP, if correlated", FAILS),
    ("announce-5.10", slower("le-s", CORRELATED, 2.0), "with l = 0.4", FAILS),
    ("announce-5.10", slower("le-s", CORRELATED, 2.0), "with l = 0 ", HOLDS),
    ("announce-5.10", slower("le-s", CORRELATED, 2.0), "5.3.1.2", FAILS),
    ("announce-5.11", late, "LE-S is ahead of AL beyond", HOLDS),
    ("announce-5.11", slower("al", UNCORRELATED, 2.0), "the gap is E[t_s] at every N", FAILS),
    ("announce-5.11", slower("al", UNCORRELATED, 0.2), "with adjusted loss", FAILS),
    ("announce-5.12", slower("le-m", UNCORRELATED, 2.0, "first_round_time"), "the same", FAILS),
    ("announce-5.12", slower("le-s", UNCORRELATED, 0.01, "first_round_time"), "longer", FAILS),
    ("announce-5.13", slower("le-m", UNCORRELATED, 2.0), "sooner than LE-S", FAILS),
    ("announce-5.13", slower("sup", UNCORRELATED, 99.0), "a lower bound", FAILS),
    (SCALE, level, "levels off", HOLDS),
    (SCALE, slower("le-m", UNCORRELATED, 2.0), "sooner than LE-S", FAILS),
    (SCALE, slower("sup", UNCORRELATED, 9.0, "num_msgs"), "more messages than SUP", FAILS),
    (SCALE, slower("le-s", UNCORRELATED, 2.0), "closed forms agree", FAILS),
    (SCALE, slower("al", UNCORRELATED, 0.001, "num_msgs"), "nobody is suppressed", FAILS),
    (SCALE, chatty, "exponential timers give fewer", FAILS),
]


@pytest.mark.parametrize("name, change, words, verdict", TURNED, ids=range(len(TURNED)))
def test_other_numbers_give_other_verdicts(
    name: str, change: Change, words: str, verdict: ClaimVerdict
) -> None:
    found = [each for each in made(name, change).findings if words in each.claim]
    assert verdict in [each.verdict for each in found]
    before = [each.verdict for each in made(name).findings if words in each.claim]
    if verdict is FAILS:
        assert HOLDS in before
