"""How numbers judge a claim: every verdict of a figure is computed by one of these functions.

Measured values have errors, so a comparison fails only beyond what chance explains. Of m
comparisons in one claim, each is made at level ALPHA / m (Bonferroni), two-sided. A claim is
undecided if the errors are too wide to decide it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import NormalDist

from hustings.lab.figures.figure import ClaimVerdict, Finding, MeasuredPoint

ALPHA = 0.001  # the chance of a wrong verdict per claim
COARSE = 0.05  # standard errors above this share of the mean prove no equality
NOTHING = "Nothing to compare."
LONG = 1e7  # numbers from here on are shown with powers of ten
ENOUGH = 100  # with fewer runs the error is not known well enough to decide


def limit(comparisons: int) -> float:
    """How many standard errors chance may produce in one of this many comparisons.

    >>> round(limit(1), 2), round(limit(100), 2)
    (3.29, 4.42)
    """
    return NormalDist().inv_cdf(1.0 - ALPHA / (2 * max(1, comparisons)))


def apart(one: MeasuredPoint, other: MeasuredPoint, shift: float = 0.0) -> float:
    """How many standard errors lie between two independent points, after the second is shifted."""
    difference = one.mean - other.mean - shift
    error = math.hypot(one.stderr, other.stderr)
    if difference == 0.0:
        return 0.0
    return difference / error if error else math.copysign(math.inf, difference)


def agrees(claim: str, points: Iterable[MeasuredPoint], *, theirs: bool = False) -> Finding:
    """Points and closed form agree."""
    pairs = [(point, point.exact) for point in points if point.exact is not None]
    return compared(claim, pairs, theirs=theirs)


def compared(
    claim: str, pairs: Sequence[tuple[MeasuredPoint, float]], *, theirs: bool = True
) -> Finding:
    """Each point lies where the claim says."""
    if not pairs:
        return Finding(claim, ClaimVerdict.UNDECIDED, NOTHING, theirs)
    if doubt := too_few([point for point, _ in pairs]):
        return Finding(claim, ClaimVerdict.UNDECIDED, doubt, theirs)
    most = limit(len(pairs))
    scores = [(_score(point, value), point, value) for point, value in pairs]
    worst, point, value = max(scores, key=lambda each: abs(each[0]))
    coarse = max(each.relative for each, _ in pairs)
    verdict = ClaimVerdict.HOLDS
    if abs(worst) > most:
        verdict = ClaimVerdict.FAILS
    elif coarse > COARSE:
        verdict = ClaimVerdict.UNDECIDED
    evidence = (
        f"{_many(len(pairs), 'point')}, largest |z| {abs(worst):.2f} at N = {point.members} "
        f"({shown(point)} against {value:.4g}); chance allows {most:.2f}."
    )
    return Finding(claim, verdict, evidence, theirs)


def _score(point: MeasuredPoint, value: float) -> float:
    difference = point.mean - value
    if abs(difference) <= 1e-9 * max(1.0, abs(value)):
        return 0.0
    return difference / point.stderr if point.stderr else math.copysign(math.inf, difference)


def constant(claim: str, points: Sequence[MeasuredPoint], *, theirs: bool = True) -> Finding:
    """The points do not depend on their place."""
    weights = [1.0 / max(point.stderr, 1e-12) ** 2 for point in points]
    if not any(weights):  # one run each: no point has an error
        weights = [1.0] * len(points)
    mean = math.fsum(
        weight * point.mean for weight, point in zip(weights, points, strict=True)
    ) / math.fsum(weights)
    found = compared(claim, [(point, mean) for point in points], theirs=theirs)
    ends = f" N = {points[0].members} to {points[-1].members}: {_range(points)}."
    return Finding(found.claim, found.verdict, found.evidence + ends, theirs)


Pairs = Sequence[tuple[MeasuredPoint, MeasuredPoint]]


def paired(
    ones: Sequence[MeasuredPoint], others: Sequence[MeasuredPoint]
) -> list[tuple[MeasuredPoint, MeasuredPoint]]:
    """Pairs of points of groups of the same size; a point without a partner is left out."""
    by_size = {other.members: other for other in others}
    return [(one, by_size[one.members]) for one in ones if one.members in by_size]


def grows(claim: str, points: Sequence[MeasuredPoint], *, theirs: bool = True) -> Finding:
    """Each point lies above the one before."""
    return _above(claim, list(zip(points[1:], points[:-1], strict=True)), theirs)


def above(
    claim: str,
    upper: Sequence[MeasuredPoint],
    lower: Sequence[MeasuredPoint],
    *,
    theirs: bool = True,
) -> Finding:
    """The first points lie above the second, place by place."""
    return _above(claim, paired(upper, lower), theirs)


def _above(claim: str, pairs: Pairs, theirs: bool) -> Finding:
    if not pairs or too_few(_points(pairs)):
        return Finding(claim, ClaimVerdict.UNDECIDED, too_few(_points(pairs)) or NOTHING, theirs)
    most = limit(len(pairs))
    scores = [apart(one, other) for one, other in pairs]
    against = [pair for pair, z in zip(pairs, scores, strict=True) if z < -most]
    open_ = [pair for pair, z in zip(pairs, scores, strict=True) if abs(z) <= most]
    if against:
        verdict, told = ClaimVerdict.FAILS, f"The other way round at {_places(against)}."
    elif len(open_) == len(pairs):
        verdict, told = ClaimVerdict.UNDECIDED, "The errors are too wide to tell."
    else:
        verdict = ClaimVerdict.HOLDS
        told = f"Not told apart at {_places(open_)}." if open_ else ""
    one, other = (against or pairs)[-1]
    evidence = f"N = {one.members}: {shown(one)} against {shown(other)}. {told}"
    return Finding(claim, verdict, evidence.strip(), theirs)


def gap(
    claim: str,
    upper: Sequence[MeasuredPoint],
    lower: Sequence[MeasuredPoint],
    shift: Callable[[MeasuredPoint], float],
    *,
    theirs: bool = True,
) -> Finding:
    """The first points lie above the second by a known amount."""
    pairs = paired(upper, lower)
    verdict, scores = _alike(pairs, shift)
    if not scores:
        return Finding(claim, verdict, too_few(_points(pairs)) or NOTHING, theirs)
    worst = max(range(len(pairs)), key=lambda place: abs(scores[place]))
    one, other = pairs[worst]
    evidence = (
        f"{_many(len(pairs), 'pair')}, largest |z| {abs(scores[worst]):.2f} at N = {one.members} "
        f"({one.mean - other.mean:.3g} against {shift(one):g}); chance allows "
        f"{limit(len(pairs)):.2f}."
    )
    return Finding(claim, verdict, evidence, theirs)


def equal(
    claim: str,
    ones: Sequence[MeasuredPoint],
    others: Sequence[MeasuredPoint],
    *,
    theirs: bool = True,
) -> Finding:
    """Two sets of points are equal."""
    return gap(claim, ones, others, lambda _: 0.0, theirs=theirs)


def same(claim: str, one: MeasuredPoint, other: MeasuredPoint, *, theirs: bool = True) -> Finding:
    """Two points are equal, whatever groups they belong to."""
    verdict, _ = _alike([(one, other)], lambda _: 0.0)
    evidence = f"{shown(one)} and {shown(other)}."
    return Finding(claim, verdict, too_few([one, other]) or evidence, theirs)


def _alike(
    pairs: Pairs, shift: Callable[[MeasuredPoint], float]
) -> tuple[ClaimVerdict, list[float]]:
    """Whether all pairs differ by the expected amount, and how far off each is."""
    if not pairs or too_few(_points(pairs)):
        return ClaimVerdict.UNDECIDED, []
    scores = [apart(one, other, shift(one)) for one, other in pairs]
    if max(map(abs, scores)) > limit(len(pairs)):
        return ClaimVerdict.FAILS, scores
    coarse = max(
        math.hypot(a.stderr, b.stderr) / max(abs(a.mean + a.less), abs(b.mean + b.less), 1e-12)
        for a, b in pairs
    )
    return (ClaimVerdict.UNDECIDED if coarse > COARSE else ClaimVerdict.HOLDS), scores


def together(claim: str, legs: Sequence[Finding], *, theirs: bool = True) -> Finding:
    """A claim with several parts, of which some may hold and some fail."""
    verdicts = [leg.verdict for leg in legs]
    if all(verdict is verdicts[0] for verdict in verdicts):
        verdict = verdicts[0]
    elif ClaimVerdict.UNDECIDED in verdicts:
        verdict = ClaimVerdict.UNDECIDED
    else:
        verdict = ClaimVerdict.PARTLY
    told = " ".join(f"{leg.claim}: {leg.verdict.value}. {leg.evidence}" for leg in legs)
    return Finding(claim, verdict, told, theirs)


def shown(point: MeasuredPoint) -> str:
    """A measured value with its error.

    >>> from hustings.lab.figures.measurement import Measurement
    >>> cell = Measurement(protocol="ring", members=8, aims=("messages",))
    >>> shown(MeasuredPoint(cell, 100, 12.3456, 0.0789))
    '12.346 ± 0.079'
    >>> shown(MeasuredPoint(cell, 100, 1.23456e12, 7.89e10))
    '1.23e+12 ± 7.9e+10'
    """
    if not math.isfinite(point.stderr):
        return f"{point.mean:.4g}"
    if abs(point.mean) >= LONG:
        return f"{point.mean:.3g} ± {point.stderr:.2g}"
    digits = 3 if not point.stderr else max(0, 1 - math.floor(math.log10(point.stderr)))
    return f"{point.mean:.{digits}f} ± {point.stderr:.{digits}f}"


def too_few(points: Iterable[MeasuredPoint]) -> str:
    """A sentence if a point has too few runs to decide anything."""
    runs = min((point.runs for point in points), default=ENOUGH)
    return f"{_many(runs, 'run')} decide nothing: it takes {ENOUGH}." if runs < ENOUGH else ""


def _points(pairs: Pairs) -> list[MeasuredPoint]:
    return [point for pair in pairs for point in pair]


def _range(points: Sequence[MeasuredPoint]) -> str:
    means = [point.mean for point in points]
    return f"{min(means):.4g} to {max(means):.4g}"


def _places(pairs: Pairs) -> str:
    return "N = " + ", ".join(str(one.members) for one, _ in pairs)


def _many(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
