"""Figure 4: the bounds on the success of one round over K, as printed and corrected.

This figure uses closed forms alone: nothing is measured, and every verdict is computed from the
curves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from hustings.lab.closed_forms.probabilistic import events, success
from hustings.lab.closed_forms.probabilistic.round import Round
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
)
from hustings.lab.figures.measurement import Measurement
from hustings.lab.figures.measuring import Results

FAMILY = "probabilistic"
COLUMNS = ("series", "kind", "K", "value")
GIVEN = Round(K=1, view_prob=0.4, p_mcastl=0.01, p_ucastl=0.01, p_fail=0.01, N=10000)
PLACES = tuple(range(1, 66))
QUICK = 40  # where the paper sees E1 and E2 converge
NEAR = 0.01  # what counts as converged: within a hundredth of 1
PEAK = 0.6
CLAIMED_ROOM = 107.0

Bound = Callable[[Round], float]


@dataclass(frozen=True, slots=True)
class TermCurve:
    """One curve of the figure: its two forms, and its colour."""

    label: str
    true: Bound
    printed: Bound
    look: str


TERMS = (
    TermCurve("E1", events.enough, events.printed_enough, "C0"),
    TermCurve("E2 given E1", events.joined, events.printed_joined, "C1"),
    TermCurve("E3 given E1, E2", events.same, events.printed_same, "C2"),
    TermCurve("E4 given E1 to E3", events.heard, events.printed_heard, "C4"),
    TermCurve("success", success.success, success.printed_success, "C3"),
)
LAST = TERMS[-1].label

Values = Mapping[tuple[str, bool], list[float]]  # by label, and whether as printed


@dataclass(frozen=True, slots=True)
class BoundsFigure:
    """The figure; it implements `Figure` and needs no cells."""

    name: str = "probabilistic-4"
    family: str = FAMILY
    title: str = "Bounds on the success of one round over K"
    pictured: bool = True

    def cells(self) -> list[Measurement]:
        """Nothing is measured."""
        return []

    def make(self, results: Results, seed: int) -> Rendered:
        """The figure, from closed forms."""
        values: Values = {
            (term.label, printed): [
                (term.printed if printed else term.true)(replace(GIVEN, K=K)) for K in PLACES
            ]
            for term in TERMS
            for printed in (False, True)
        }
        return Rendered(
            name=self.name,
            family=self.family,
            title=self.title,
            source="Probabilistic election 2000, Figure 4 (section 4)",
            shows="Each term of the bound on a round's success for K up to 65, with view_prob = "
            "0.4, all loss and crash probabilities 0.01 and N = 10,000. E1 and E2 converge "
            "quickly, at K of about 40, whatever N is; E4 alone seems to depend on N, and is near "
            "1 for N far below 10^107 at K = 40. The bound on success peaks at 0.6, and is "
            "pessimistic: where many prefer the same leader, success is much more likely.",
            columns=list(COLUMNS),
            rows=[
                [label, "printed" if printed else "corrected", K, value]
                for (label, printed), column in values.items()
                for K, value in zip(PLACES, column, strict=True)
            ],
            findings=_judge(values),
            panels=[_panel(values)],
            notes=[
                "The corrected success is a lower bound over all numbers of relay members, not "
                "the product of the other curves."
            ],
        )


def _panel(values: Values) -> DrawnPanel:
    curves = {term.label: Curve(term.label, "", (), look=term.look) for term in TERMS}
    panel = Panel(
        "view_prob = 0.4, p_mcastl = p_ucastl = p_fail = 0.01, N = 10,000",
        "lower bound",
        tuple(curves.values()),
        axis=Axis("K", lambda cell: cell.members),  # no cells: the panel draws forms only
    )
    drawn = [
        Drawn(
            curve,
            [],
            [FormLine(list(PLACES), values[label, printed], printed) for printed in (False, True)],
        )
        for label, curve in curves.items()
    ]
    return DrawnPanel(panel, drawn)


def _judge(values: Values) -> list[Finding]:
    return [
        _converged(values),
        _independent(),
        _peak(values),
        _room(),
        _higher(values),
        _bounded(values),
    ]


def _verdict(holds: bool) -> ClaimVerdict:
    return ClaimVerdict.HOLDS if holds else ClaimVerdict.FAILS


def _converged(values: Values) -> Finding:
    place = PLACES.index(QUICK)
    reached = [values[term.label, True][place] for term in TERMS[:2]]
    evidence = f"At K = {QUICK}: E1 {reached[0]:.4f}, E2 {reached[1]:.4f}, as printed."
    return Finding(
        f"the bounds on E1 and E2 are near 1 at K = {QUICK}",
        _verdict(min(reached) > 1 - NEAR),
        evidence,
    )


def _independent() -> Finding:
    few, many = (replace(GIVEN, K=QUICK, N=N) for N in (1000, 10**9))
    apart = max(abs(term.true(few) - term.true(many)) for term in TERMS[:3])
    return Finding(
        "E1, E2 and E3 do not depend on N",
        _verdict(apart < NEAR),
        f"From N = 1,000 to 10^9 the corrected values at K = {QUICK} move by {apart:.2g} at most.",
    )


def _peak(values: Values) -> Finding:
    top = max(values[LAST, True])
    K = PLACES[values[LAST, True].index(top)]
    return Finding(
        f"the bound on success peaks at {PEAK}",
        _verdict(round(top, 1) == PEAK),
        f"It peaks at {top:.4f}, at K = {K}.",
    )


def _room() -> Finding:
    one = replace(GIVEN, K=QUICK)
    stated, own = events.printed_room(one), events.room(one)
    return Finding(
        f"E4 is near 1 for N far below 10^{CLAIMED_ROOM:g} at K = {QUICK}",
        _verdict(abs(stated - CLAIMED_ROOM) < 0.5 or abs(own - CLAIMED_ROOM) < 0.5),
        f"The exponent given, 3 K2/2, makes it 10^{stated:.1f}; that of the bound itself, K2/2, "
        f"10^{own:.1f}.",
    )


def _higher(values: Values) -> Finding:
    gaps = [a - b for a, b in zip(values[LAST, False], values[LAST, True], strict=True)]
    place = PLACES.index(QUICK)
    true, printed = values[LAST, False][place], values[LAST, True][place]
    return Finding(
        "success is much more likely than the printed bound says",
        _verdict(min(gaps) > 0),
        f"A true lower bound at K = {QUICK} is {true:.4f}, against {printed:.4f}.",
    )


def _bounded(values: Values) -> Finding:
    """Whether the printed E1 is a valid bound in the range of the figure."""
    pairs = zip(values["E1", True], values["E1", False], strict=True)
    above = [K for K, (printed, true) in zip(PLACES, pairs, strict=True) if printed > true]
    told = f"It lies above at K = {above[0]}." if above else "It lies below for every K shown."
    return Finding(
        "the printed bound on E1 lies below its exact value",
        _verdict(not above),
        told,
        theirs=False,
    )


FIGURES = (BoundsFigure(),)
