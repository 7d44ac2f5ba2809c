"""The figures of the probabilistic election: what is played, and verdicts that follow numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from hustings.lab.figures.catalogue import of_family
from hustings.lab.figures.figure import ClaimVerdict, Figure, Rendered
from hustings.lab.figures.judging import ALPHA
from hustings.lab.figures.measurement import Measurement
from hustings.lab.figures.measuring import Results, measure
from hustings.lab.figures.probabilistic import crashes, hashes, safety, scale
from hustings.lab.figures.probabilistic.measurements import CHOSEN, HASH, P_FAIL, RUNS, setting
from hustings.lab.figures.store import Store
from hustings.lab.figures.writing import as_csv, as_page
from hustings.lab.kernels.probabilistic.parameters import ProbabilisticParameters
from hustings.lab.runs.block import Block, Column, Moments
from hustings.lab.runs.engines import FAST
from hustings.lab.runs.kernels import setting_of
from hustings.protocols.probabilistic import risk
from tests.unit.lab.figures.samples import finding, fixed

HOLDS, FAILS, UNDECIDED = ClaimVerdict.HOLDS, ClaimVerdict.FAILS, ClaimVerdict.UNDECIDED
FIGURES = {each.name: each for each in of_family("probabilistic")}
MEASURED = {name: each for name, each in FIGURES.items() if each.cells()}
FIGURE_5 = [f"probabilistic-5{letter}" for letter in "abcdefghi"]
SCALE, SAFETY = "probabilistic-scale", "probabilistic-safety"
CRASHES, HASHES = "probabilistic-p-fail", "probabilistic-unfair-hash"
SHARES = ("strong", "weak", "two_leaders", "two_leaders_ever")
Means = dict[str, float]
Change = Callable[[Measurement, Means], Means]


def supposed(cell: Measurement) -> Means:
    """What a cell gives in a world where bounds are true, and a hash misses what a delay sees."""
    given = dict(cell.settings)
    loss, hashed = setting(cell, "p_mcastl"), given["thinning"] == "hash"
    both = 0.5 * safety.proven(cell.members, loss) if loss else 0.0
    rounds = 1 + 0.5 * (scale.rounds_at_most(cell.members, loss) - 1)
    crash = setting(cell, "p_fail")
    return {
        "strong": (0.99 - (1.8 * loss if hashed else 0.0)) * (1 - crash),
        "weak": 0.995,
        "rounds": rounds,
        "messages": 60.0 + (800.0 * (rounds - 1) * loss),
        "relay_members": hashes.relay_members(cell) if "hash_skew" in given else 5.6,
        "two_leaders": 0.1 * both if hashed else 0.0,
        "two_leaders_ever": both,
    }


def block(means: Means, runs: int) -> Block:
    metrics = {}
    for name, mean in means.items():
        variance = mean * (1 - mean) if name in SHARES else mean**2
        metrics[name] = Column(Moments(runs, mean, variance * (runs - 1)), mean, mean)
    return Block(0, runs, metrics, {"quiescent": runs}, 0)


def made(name: str, change: Change | None = None, runs: int | None = None) -> Rendered:
    figure = MEASURED[name]
    results: Results = {
        cell: block(
            (change or (lambda _, means: means))(cell, supposed(cell)), runs or cell.runs or 1
        )
        for cell in figure.cells()
    }
    return figure.make(results, 1)


def of_series(shown: Rendered, words: str) -> dict[str, ClaimVerdict]:
    """The verdicts of a claim by series."""
    return {
        each.claim.partition("(")[2].rstrip(")"): each.verdict
        for each in shown.findings
        if each.claim.startswith(words)
    }


# What is played


def test_what_there_is() -> None:
    assert list(FIGURES) == ["probabilistic-4", *FIGURE_5, CRASHES, HASHES, SCALE, SAFETY]


@pytest.mark.parametrize("figure", MEASURED.values(), ids=list(MEASURED))
def test_every_point_is_the_kernels(figure: Figure) -> None:
    cells = figure.cells()
    assert len(set(cells)) == len(cells)
    for cell in cells:
        assert (cell.engine, cell.scenario) == (FAST, "start")
        assert cell.runs is not None
        few = figure.name in (CRASHES, HASHES)
        assert cell.runs >= (crashes.RUNS if few else RUNS)
        played = setting_of(cell.experiment(1))
        assert isinstance(played, ProbabilisticParameters)
        assert (played.members, played.p_mcastl) == (cell.members, setting(cell, "p_mcastl"))
        assert (played.p_ucastl, played.p_fail) == (played.p_mcastl, setting(cell, "p_fail"))
        assert played.p_fail == 0.001 or (figure.name == CRASHES and played.p_mcastl == 0.001)


@pytest.mark.parametrize("name", FIGURE_5)
def test_all_readings_stand_in_every_panel(name: str) -> None:
    readings = {
        (ballot.estimate, ballot.thinning)
        for cell in MEASURED[name].cells()
        if isinstance(ballot := setting_of(cell.experiment(1)), ProbabilisticParameters)
    }
    assert readings == {(n, who) for n in ("exact", "view") for who in ("delay", "hash")}


def test_how_far_the_scale_reaches() -> None:
    cells = scale.ScaleFigure().cells()
    assert {cell.members for cell in cells} == {10**power for power in range(3, 10)}
    sizes = {
        ballot.sizes[-1]
        for cell in cells
        if isinstance(ballot := setting_of(cell.experiment(1)), ProbabilisticParameters)
    }
    assert sizes == {math.inf, 112.0}


@pytest.mark.parametrize("name", [SCALE, SAFETY])
def test_the_same_runs_make_the_same_files(name: str, tmp_path: Path) -> None:
    """Few runs, but of every point, up to a billion members."""
    figure = MEASURED[name]
    texts = []
    for folder in ("one", "two"):
        store = Store(tmp_path / folder, 1, print)
        if folder == "two":
            measure(figure.cells(), 1, fixed(2), store)  # and goes on from there
        shown = figure.make(measure(figure.cells(), 1, fixed(4), store), 1)
        assert UNDECIDED in {each.verdict for each in shown.findings}
        assert {each.verdict for each in shown.findings if each.theirs} <= {UNDECIDED}
        assert len(shown.rows) == len(figure.cells()) * len(shown.panels)
        texts.append(as_csv(shown) + as_page(shown))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", MEASURED)
def test_every_number_that_is_drawn_is_written(name: str) -> None:
    shown = made(name)
    assert all(len(row) == len(shown.columns) for row in shown.rows)
    written = {value for row in shown.rows for value in row if isinstance(value, float)}
    for panel in shown.panels:
        if panel.panel.measure == "1 - P(success)":
            written |= {1.0 - value for value in written}
        labels = [drawn.curve.label for drawn in panel.curves]
        assert len(labels) == len(set(labels))
        for drawn in panel.curves:
            assert {each.mean for each in drawn.points} <= written
            assert {value for line in drawn.lines for value in line.values} <= written


@pytest.mark.parametrize("name", MEASURED)
def test_few_runs_decide_nothing(name: str) -> None:
    open_ones = [each for each in made(name, runs=50).findings if "told" not in each.claim]
    assert {each.verdict for each in open_ones} == {UNDECIDED}


# Crashes


def test_crashes_that_do_what_loss_does_not() -> None:
    """In this world neither rounds nor messages depend on crashes, and strong success does."""
    shown = made(CRASHES)
    assert shown.sound
    assert shown.verdict == "reproduced in part"
    assert finding(
        shown, "strong: the same to 0.05, whichever varies (N_i = N, delay)"
    ).verdict is (FAILS)
    assert finding(shown, "weak").verdict is HOLDS
    assert finding(shown, "1 - p_fail").verdict is HOLDS


def test_crashes_that_do_what_loss_does() -> None:
    shown = made(CRASHES, lambda _, means: means | {"strong": 0.9, "rounds": 1.1, "messages": 70.0})
    assert {each.verdict for each in shown.findings if each.theirs} == {HOLDS}
    assert finding(shown, "1 - p_fail").verdict is FAILS
    assert not shown.sound


def test_both_curves_begin_in_one_point() -> None:
    rows = [dict(zip(made(CRASHES).columns, row, strict=True)) for row in made(CRASHES).rows]
    first = [row for row in rows if row["place"] == P_FAIL and row["metric"] == "rounds"]
    assert {(row["series"], row["varied"]) for row in first} == {
        (reading.label, varied) for reading in (CHOSEN, HASH) for varied in ("loss", "p_fail")
    }
    assert len({row["command"] for row in first}) == 2


# Hashes


def by_skew(cell: Measurement, means: Means) -> Means:
    """The more relay members, the fewer rounds and the more success."""
    skew = setting(cell, "hash_skew")
    return means | {"rounds": 4 - 2 * skew, "strong": 0.7 + 0.22 * skew, "messages": 100 * skew}


def test_hashes_that_do_what_their_law_says() -> None:
    shown = made(HASHES, by_skew)
    assert shown.verdict == "nothing claimed"
    told = {each.claim.split(" (")[0]: each.verdict for each in shown.findings}
    low = told.pop("strong success stays above 0.95")
    assert (low, set(told.values())) == (FAILS, {HOLDS})


def test_a_filter_that_takes_no_notice_of_the_law_is_found() -> None:
    shown = made(HASHES, lambda _, means: means | {"relay_members": 5.6})
    assert finding(shown, "relay members as the distribution").verdict is FAILS
    assert not shown.sound


# Scale


def test_scale_if_bounds_are_true() -> None:
    shown = made(SCALE)
    assert shown.sound
    assert of_series(shown, "success stays above") == {
        series.label: FAILS if series is scale.HASHED else HOLDS for series in scale.SERIES
    }
    assert finding(shown, "of 2 at most (loss 0.001)").verdict is HOLDS
    assert finding(shown, "of 2 at most (loss 0.2)").verdict is FAILS
    lines = [line for panel in shown.panels for drawn in panel.curves for line in drawn.lines]
    assert len(lines) == 4  # of the rounds, for each loss
    assert "at N = 1,000,000,000" in finding(shown, "of 2 at most (loss 0.2)").evidence


def dear(cell: Measurement, means: Means) -> Means:
    """A cap on K is of no use."""
    return means | {"messages": 1e6 if "K_max" in dict(cell.settings) else means["messages"]}


def lasting(cell: Measurement, means: Means) -> Means:
    """One group takes more rounds than it may."""
    if cell.members == 10**6:
        means["rounds"] = 1.02 * scale.rounds_at_most(cell.members, setting(cell, "p_mcastl"))
    return means


def steady(cell: Measurement, means: Means) -> Means:
    """Rounds fall with N."""
    return means | {"rounds": 1.3 - 0.02 * math.log10(cell.members)}


@pytest.mark.parametrize(
    "change, words",
    [(dear, "fewer than 10,000"), (lasting, "below their bound"), (steady, "rounds grow")],
)
def test_what_is_wrong_with_the_scale_is_found(change: Change, words: str) -> None:
    assert finding(made(SCALE), words).verdict is HOLDS
    shown = made(SCALE, change)
    assert finding(shown, words).verdict is FAILS
    assert not shown.sound


@pytest.mark.parametrize("factor, verdict", [(1.5, HOLDS), (2.0, UNDECIDED), (2.5, FAILS)])
def test_what_an_almost_constant_number_is(factor: float, verdict: ClaimVerdict) -> None:
    def grown(cell: Measurement, means: Means) -> Means:
        return means | {"messages": 60.0 * (factor if cell.members == 10**9 else 1.0)}

    assert finding(made(SCALE, grown), "of 2 at most (loss 0.001)").verdict is verdict


# Safety


def test_safety_if_bounds_are_true() -> None:
    shown = made(SAFETY)
    assert shown.sound
    assert shown.verdict == "nothing claimed"  # the paper gives no number
    assert {each.verdict for each in shown.findings} == {HOLDS}
    rows = [dict(zip(shown.columns, row, strict=True)) for row in shown.rows]
    never = [row for row in rows if row["seen"] == 0]
    assert {row["at_most"] for row in never} == {
        *(3 / runs for runs in (1_000_000, 300_000, 333_333, 100_000))
    }
    assert all(row["at_most"] is None for row in rows if row["seen"])
    for row in rows:
        assert isinstance(row["risk"], float)
        assert isinstance(row["bound"], float)
        assert row["risk"] > row["bound"] > 0


def test_the_bounds_are_those_of_the_guide() -> None:
    known = {0.1: (8.2e-5, 5.9e-4), 0.3: (3.1e-3, 1.9e-2), 0.5: (4.0e-2, 0.25)}
    for loss, (proven, stated) in known.items():
        assert safety.proven(2000, loss) == pytest.approx(proven, rel=0.02)
        assert safety.stated(2000, loss) == pytest.approx(stated, rel=0.02)


@pytest.mark.parametrize("factor, verdict", [(1.0, HOLDS), (1.3, FAILS)])
def test_more_leaders_than_the_bound_allows_are_found(factor: float, verdict: ClaimVerdict) -> None:
    def often(cell: Measurement, means: Means) -> Means:
        if (cell.members, setting(cell, "p_mcastl")) == (2000, 0.3):
            means["two_leaders_ever"] = factor * safety.proven(2000, 0.3)
        return means

    shown = made(SAFETY, often)
    assert finding(shown, "no more frequent").verdict is verdict
    assert "at a loss of 0.3, N = 2,000" in finding(shown, "no more frequent").evidence
    assert shown.sound is (verdict is HOLDS)


def test_frequent_pairs_are_found() -> None:
    def often(cell: Measurement, means: Means) -> Means:
        wide = (cell.members, setting(cell, "p_mcastl")) == (10**6, 0.4)
        return means | ({"two_leaders_ever": 0.03} if wide else {})

    shown = made(SAFETY, often)
    assert finding(shown, "(N = 1,000,000, delay)").verdict is FAILS
    assert finding(shown, "(N = 2,000, delay)").verdict is HOLDS


def test_a_hash_that_leaves_no_pairs_is_found() -> None:
    def other(cell: Measurement, means: Means) -> Means:
        hashed = dict(cell.settings)["thinning"] == "hash"
        return means | {"two_leaders": 0.0 if hashed else 0.001}

    assert finding(made(SAFETY, other), "thinning by hash leaves more").verdict is FAILS


def test_a_bound_that_is_told_too_low_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(risk, "two_leaders", lambda *_: 1e-3)
    assert finding(made(SAFETY), "told").verdict is FAILS


@pytest.mark.parametrize("seen, mean", [(1, 0.2), (5, 1.0), (30, 12.0), (1100, 1000.0)])
def test_the_tail_is_the_whole_less_the_rest(seen: int, mean: float) -> None:
    below = math.fsum(math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(seen))
    assert safety.chance_of(seen, mean) == pytest.approx(1 - below, abs=1e-10)


def test_a_tail_that_is_hardly_there() -> None:
    assert 0 < safety.chance_of(40, 1.0) < 1e-40 < ALPHA
    assert safety.chance_of(10_000, 1.0) == 0.0
