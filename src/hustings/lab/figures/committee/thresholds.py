"""`committee-thresholds`: from which n on the sizes of the paper are meaningful.

This figure uses closed forms alone: nothing is measured, and every verdict is computed from the
curves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, log10

from hustings.lab.closed_forms.committee import exponents
from hustings.lab.figures.figure import (
    Axis,
    ClaimVerdict,
    Curve,
    Drawn,
    DrawnPanel,
    Finding,
    FormLine,
    Panel,
    Rendered,
    Value,
)
from hustings.lab.figures.measurement import Measurement
from hustings.lab.figures.measuring import Results

FAMILY = "committee"
COLUMNS = ("series", "kind", "place", "value", "n")
TEN = log(10)
HOPED = 10**6  # "hundreds of thousands", rounded up
SHARES = (0.0, 0.1, 0.2)

Values = Mapping[int, float]


@dataclass(frozen=True, slots=True)
class ThresholdLine:
    """One line: its values by their places, which are whole numbers."""

    label: str
    form: Callable[[int], float]
    look: str
    printed: bool = False


@dataclass(frozen=True, slots=True)
class ThresholdPanel:
    """One panel: lines over places."""

    title: str
    measure: str
    axis: str
    places: tuple[int, ...]
    series: tuple[ThresholdLine, ...]
    logarithmic: bool = True


def _size(power: int) -> Callable[[int], float]:
    """L^power as a share of n = 10^place."""
    return lambda place: (place * TEN) ** power / 10.0**place


def _bits(place: int) -> float:
    """The power of n that 2 L^38 equals, with n = 10^place."""
    return (log10(2) + 38 * log10(place * TEN)) / place


def _spoilt(place: int) -> float:
    """12 l*/L with L = e^place."""
    return 12 * exponents.layers(exp(place)) / exp(place)


def _misled(place: int) -> float:
    """6 (l*+1)/L with L = e^place."""
    return 6 * (exponents.layers(exp(place)) + 1) / exp(place)


def _level(value: float) -> Callable[[int], float]:
    return lambda place: value


SIZES = ThresholdPanel(
    "committees must be smaller than the group: below 1",
    "size over n",
    "log10 n",
    tuple(range(3, 26)),
    (
        ThresholdLine("a leaf, L^5", _size(5), "C0"),
        ThresholdLine("an election's input, L^8", _size(8), "C1"),
        ThresholdLine("layers begin, L^10", _size(10), "C2"),
        ThresholdLine("subcommittees begin, L^11", _size(11), "C3"),
        ThresholdLine("1", _level(1.0), "0.6"),
    ),
)
BITS = ThresholdPanel(
    "bits of a member on the first layer, 2 L^38, as a power of n",
    "power of n",
    "log10 n",
    tuple(range(10, 101, 2)),
    (
        ThresholdLine("2 L^38", _bits, "C3"),
        *(
            ThresholdLine(f"n^{power}", _level(float(power)), look)
            for power, look in ((3, "0.3"), (2, "0.5"), (1, "0.7"))
        ),
    ),
    logarithmic=False,
)
PROOFS = ThresholdPanel(
    "what the proof adds to b at the top: below 1/3 - b; LEARN: below 1/2",
    "share",
    "ln ln n",
    tuple(range(3, 101)),
    (
        ThresholdLine("12 l*/L", _spoilt, "C3"),
        ThresholdLine("12/L", lambda place: 12 / exp(place), "C3", printed=True),
        ThresholdLine("6 (l*+1)/L", _misled, "C0"),
        *(
            ThresholdLine(f"1/3 - b, b = {b:g}", _level(1 / 3 - b), look)
            for b, look in zip(SHARES, ("0.3", "0.5", "0.7"), strict=True)
        ),
    ),
    logarithmic=False,
)
VIEWS = (SIZES, BITS, PROOFS)


@dataclass(frozen=True, slots=True)
class Threshold:
    """The value of ln n from which a constraint holds."""

    label: str
    ln_n: float
    printed: bool = False


def thresholds() -> list[Threshold]:
    """All thresholds, the smallest first; those of the proof at the bottom."""
    found = [Threshold(f"L^{power} < n", exponents.power_fits(power)) for power in (5, 8, 10, 11)]
    found += [
        Threshold(f"2 L^38 < n^{share}", exponents.first_layer_bits(share)) for share in (3, 2, 1)
    ]
    found += [
        Threshold("LEARN has a majority", exponents.learning_majority()),
        Threshold("LEARN has a majority for ever", exponents.surely_learning_majority()),
        Threshold("Lemma 5.1, k = 9", exponents.silent_lemma()),
        Threshold("Lemma 5.1, k = 9", exponents.printed_silent_lemma(), printed=True),
    ]
    for b in (0.0, 0.1, 0.2, 0.3):
        found.append(Threshold(f"top layer good, b = {b:g}", exponents.good_nodes(b)))
        printed = exponents.printed_good_nodes(b)
        found.append(Threshold(f"top layer good, b = {b:g}", printed, printed=True))
    return found


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The figure; it implements `Figure` and needs no cells."""

    name: str = "committee-thresholds"
    family: str = FAMILY
    title: str = "Where the exponents of the paper begin to bite"
    pictured: bool = True

    def cells(self) -> list[Measurement]:
        """Nothing is measured."""
        return []

    def make(self, results: Results, seed: int) -> Rendered:
        """The figure, from closed forms."""
        values = {
            (view.title, series.label): [series.form(place) for place in view.places]
            for view in VIEWS
            for series in view.series
        }
        found = thresholds()
        return Rendered(
            name=self.name,
            family=self.family,
            title=self.title,
            source="Scalable Byzantine election 2006, sections 2 to 6",
            shows="An election for networks in which n can be on the order of hundreds of "
            "thousands, with polylogarithmically many bits for each member, for every b < 1/3.",
            columns=list(COLUMNS),
            rows=[*_curve_rows(values), *_threshold_rows(found)],
            findings=_judge(found, values),
            panels=[_panel(view, values) for view in VIEWS],
            notes=["L = ln n. The layers l* are rounded up, as in the paper."],
        )


Curves = Mapping[tuple[str, str], Sequence[float]]


def _panel(view: ThresholdPanel, values: Curves) -> DrawnPanel:
    drawn = []
    for series in view.series:
        curve = Curve(series.label, "", (), look=series.look, mark="-")
        line = FormLine(list(view.places), list(values[view.title, series.label]), series.printed)
        drawn.append(Drawn(curve, [], [line]))
    panel = Panel(
        view.title,
        view.measure,
        tuple(each.curve for each in drawn),
        logarithmic=view.logarithmic,
        axis=Axis(view.axis, lambda cell: cell.members),  # no cells: the panel draws forms only
    )
    return DrawnPanel(panel, drawn)


def _curve_rows(values: Curves) -> list[list[Value]]:
    rows: list[list[Value]] = []
    for view in VIEWS:
        for series in view.series:
            kind = "printed" if series.printed else "corrected"
            column = values[view.title, series.label]
            for place, value in zip(view.places, column, strict=True):
                rows.append([series.label, kind, place, value, None])
    return rows


def _threshold_rows(found: Sequence[Threshold]) -> list[list[Value]]:
    return [
        [
            f"from here on: {each.label}",
            "printed" if each.printed else "corrected",
            None,
            each.ln_n,
            exponents.shown(each.ln_n),
        ]
        for each in found
    ]


def _judge(found: Sequence[Threshold], values: Curves) -> list[Finding]:
    return [_practical(found), _cheaper(found), _any_share(found), _forgets(), _crossing(values)]


def _verdict(holds: bool) -> ClaimVerdict:
    return ClaimVerdict.HOLDS if holds else ClaimVerdict.FAILS


def _at(found: Sequence[Threshold], label: str) -> float:
    return next(each.ln_n for each in found if each.label == label and not each.printed)


def _practical(found: Sequence[Threshold]) -> Finding:
    layers, elections = _at(found, "L^10 < n"), _at(found, "L^11 < n")
    return Finding(
        "the election by layers is one for n on the order of hundreds of thousands",
        _verdict(layers <= log(HOPED)),
        f"The network has a layer from n = {exponents.shown(layers)} on, and elects a subcommittee "
        f"from n = {exponents.shown(elections)} on. Below, all n members elect together.",
    )


def _cheaper(found: Sequence[Threshold]) -> Finding:
    told = ", ".join(
        f"n^{share} from n = {exponents.shown(_at(found, f'2 L^38 < n^{share}'))} on"
        for share in (3, 2, 1)
    )
    return Finding(
        "each member sends fewer bits than if it spoke to all",
        _verdict(_at(found, "2 L^38 < n^1") <= log(HOPED)),
        f"The first layer's 2 L^38 bits are fewer than {told}.",
    )


def _any_share(found: Sequence[Threshold]) -> Finding:
    needed = [_at(found, f"top layer good, b = {b:g}") for b in (0.0, 0.1, 0.2, 0.3)]
    return Finding(
        "the proof covers every b < 1/3",
        _verdict(max(needed) < float("inf") and needed == sorted(needed)),
        "For every b there is such an n, of ever more digits: ln n = "
        + ", ".join(f"{each:.1e}" for each in needed)
        + " for b = 0, 0.1, 0.2, 0.3.",
    )


def _forgets() -> Finding:
    pairs = [(exponents.printed_good_nodes(b), exponents.good_nodes(b)) for b in SHARES]
    return Finding(
        "the last layer has b + 12/L bad members at most",
        _verdict(all(abs(printed - true) < 1 for printed, true in pairs)),
        f"By its own induction it is b + 12 l*/L: with b = 0, ln n = {pairs[0][1]:.1e} and not "
        f"{pairs[0][0]:.0f}.",
    )


def _crossing(values: Curves) -> Finding:
    """The curves cross at the thresholds."""
    wrong = []
    for power, series in zip((5, 8, 10, 11), SIZES.series, strict=False):
        column = values[SIZES.title, series.label]
        below = [place for place, value in zip(SIZES.places, column, strict=True) if value < 1]
        if not below or not min(below) - 1 <= exponents.power_fits(power) / TEN <= min(below):
            wrong.append(series.label)
    return Finding(
        "curves and thresholds tell the same",
        _verdict(not wrong),
        f"Apart: {', '.join(wrong)}." if wrong else "All four sizes cross 1 where they should.",
        theirs=False,
    )


FIGURES = (Thresholds(),)
