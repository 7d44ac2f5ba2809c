"""`probabilistic-unfair-hash`: the effect of an unfair hash on an election.

The paper asks for no particular hash function. It analyses and simulates a fair one (sections 3.3
and 5). Here hashes have the distribution function x^(1/skew): below a skew of 1 fewer members pass
the filter than K says, above it more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hustings.lab.closed_forms.probabilistic.round import Round
from hustings.lab.closed_forms.probabilistic.sizing import fair_k
from hustings.lab.figures.figure import (
    Axis,
    Curve,
    Drawn,
    DrawnPanel,
    Finding,
    FormLine,
    MeasuredPoint,
    Panel,
    Rendered,
    Value,
    point,
)
from hustings.lab.figures.judging import agrees, grows
from hustings.lab.figures.measurement import Measurement
from hustings.lab.figures.measuring import Results
from hustings.lab.figures.probabilistic.analysis import FAMILY
from hustings.lab.figures.probabilistic.measurements import CHOSEN, HASH, Reading, election, setting
from hustings.lab.figures.probabilistic.scale import FIRST_K
from hustings.lab.figures.probabilistic.simulated import settled

MEMBERS, VIEW, LOSS = 2000, 0.5, 0.2
SKEWS = (0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3)
RUNS = 20_000
AXIS = Axis("hash_skew", lambda cell: setting(cell, "hash_skew"))
PANELS = {
    "relay_members": "relay members of the first round",
    "strong": "P(strong success)",
    "rounds": "rounds",
    "messages": "messages",
}
COLUMNS = ("series", "metric", "hash_skew", "runs", "mean", "stderr", "form", "command")

Points = Mapping[
    tuple[str, str], Sequence[MeasuredPoint]
]  # by the label of a reading and the metric


def _cells(reading: Reading) -> tuple[Measurement, ...]:
    return tuple(
        election(reading, MEMBERS, LOSS, VIEW, runs=RUNS, more=(("hash_skew", repr(skew)),))
        for skew in SKEWS
    )


def relay_members(cell: Measurement) -> float:
    """Members that pass, have heard of the round or called it, and are up when it begins."""
    one = Round(FIRST_K, VIEW, LOSS, LOSS, setting(cell, "p_fail"), cell.members)
    passing = fair_k(one, setting(cell, "hash_skew"))
    begins = 1.0 - one.p_fail / (1.5 * one.K + 3.0)
    return passing * (1.0 - LOSS + LOSS / cell.members) * begins


@dataclass(frozen=True, slots=True)
class Hashes:
    """Relay members, success, rounds and messages; it implements `Figure`."""

    name: str = "probabilistic-unfair-hash"
    title: str = "unfair hashes: relay members, success, rounds and messages"
    family: str = FAMILY
    pictured: bool = True

    def cells(self) -> list[Measurement]:
        """Both ways of filtering, at every skew."""
        return [cell for reading in (CHOSEN, HASH) for cell in _cells(reading)]

    def make(self, results: Results, seed: int) -> Rendered:
        """The panels from the measured cells."""
        drawn = {
            (reading.label, metric): _drawn(results, reading, metric)
            for metric in PANELS
            for reading in (CHOSEN, HASH)
        }
        points: Points = {key: each.points for key, each in drawn.items()}
        return Rendered(
            name=self.name,
            family=self.family,
            title=self.title,
            source="Probabilistic election 2000, section 3.3, on hash functions",
            shows="No restriction on the hash function; its distribution function would have to be "
            "put into the analysis.",
            columns=list(COLUMNS),
            rows=[row for key, each in points.items() for row in _rows(key, each, seed)],
            findings=_judged(points),
            panels=[
                _panel(metric, [drawn[CHOSEN.label, metric], drawn[HASH.label, metric]])
                for metric in PANELS
            ],
            notes=[
                "Played by the compiled kernel, `sim probabilistic --set hash_skew=`. K is 7, 14, "
                "28, 56 and N by round, and the time-outs go by it."
            ],
        )


def _drawn(results: Results, reading: Reading, metric: str) -> Drawn:
    exact = relay_members if metric == "relay_members" else None
    cells = _cells(reading)
    curve = Curve(reading.label, metric, cells, exact, look=reading.look, mark=reading.mark)
    lines = [] if exact is None else [FormLine(SKEWS, [exact(cell) for cell in cells], False)]
    return Drawn(curve, [point(curve, cell, results[cell]) for cell in cells], lines)


def _panel(metric: str, drawn: list[Drawn]) -> DrawnPanel:
    given = f"N = {MEMBERS}, K = {FIRST_K:g}, loss {LOSS:g}, view_prob = {VIEW:g}"
    curves = tuple(each.curve for each in drawn)
    steep = metric == "messages"  # with few relay members, K = N is reached in some runs
    return DrawnPanel(Panel(given, PANELS[metric], curves, logarithmic=steep, axis=AXIS), drawn)


def _rows(key: tuple[str, str], points: Sequence[MeasuredPoint], seed: int) -> list[list[Value]]:
    label, metric = key
    return [
        [
            *(label, metric, AXIS.place(each.cell), each.runs, each.mean, each.stderr, each.exact),
            each.cell.command(seed, each.runs),
        ]
        for each in points
    ]


def _judged(points: Points) -> list[Finding]:
    relays = [*points[CHOSEN.label, "relay_members"], *points[HASH.label, "relay_members"]]
    rounds = points[CHOSEN.label, "rounds"]
    hashed = points[HASH.label, "strong"]
    return [
        agrees("as many relay members as the distribution function says", relays),
        grows("fewer relay members take more rounds (delay)", rounds[::-1], theirs=False),
        grows("and cost success where few ask again (hash)", hashed, theirs=False),
        settled(
            "strong success stays above 0.95 (delay)",
            points[CHOSEN.label, "strong"],
            0.95,
            1.0,
            theirs=False,
            at=lambda each: f" at {AXIS.place(each.cell):g}",
        ),
    ]


FIGURES = (Hashes(),)
