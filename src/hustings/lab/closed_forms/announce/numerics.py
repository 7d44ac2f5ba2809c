"""The arithmetic behind the forms: integrals, slowly decaying sums, alternating sums.

Pure Python and deterministic. Relative errors are of the order of 1e-11 unless stated otherwise.
"""

from __future__ import annotations

import cmath
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import pairwise
from math import atan2, ceil, cos, exp, expm1, fsum, inf, log, log1p, pi, sin
from typing import TypeVar

from hustings.lab.closed_forms.form import Number, exact, require

EULER = 0.57721566490153286
TOLERANCE = 1e-13
NODES = 10
DEEPEST = 16
LARGEST_GROUP = 1_000_000
LONGEST_SUPPRESSION = 10  # periods
LONGEST_DELAY = 1000  # periods


def check_group(N: int, least: int = 1) -> None:
    """Refuse a size outside the domain of the forms."""
    require(least <= N, f"N must be at least {least}, not {N}")


def check_loss(loss: float) -> None:
    """Refuse a loss outside [0, 1)."""
    require(0 <= loss < 1, f"l must lie in [0, 1), not {loss}")


def check_times(**times: float | Number) -> None:
    """Refuse a negative time, and a period T_A that is not positive."""
    for name, value in times.items():
        require(value >= 0, f"{name} must not be negative, not {value}")
        require(value > 0 or name != "T_A", "T_A must be above 0, not 0")


def check_length(T_S: float, D: float, T_A: float) -> None:
    """Refuse too many periods within T_S or D: each is an integral or a sum of its own."""
    sentence = f"T_S must be at most {LONGEST_SUPPRESSION} T_A = {LONGEST_SUPPRESSION * T_A:g}"
    require(T_S <= LONGEST_SUPPRESSION * T_A, f"{sentence}, not {T_S:g}")
    sentence = f"Delta must be at most {LONGEST_DELAY} T_A = {LONGEST_DELAY * T_A:g}"
    require(D <= LONGEST_DELAY * T_A, f"{sentence}, not {D:g}")


def whole_periods(time: float | Number, T_A: float | Number) -> int:
    """Count the whole periods in a time, without rounding: 0.3 holds three of 0.1.

    >>> whole_periods(0.3, 0.1), whole_periods(2.5, 1)
    (3, 2)
    """
    return int(exact(time) // exact(T_A))


def started_periods(time: float | Number, T_A: float | Number) -> int:
    """Count the periods that begin strictly within a time, without rounding.

    >>> started_periods(0.1, 1), started_periods(1, 1), started_periods(0.31, 0.1)
    (1, 1, 4)
    """
    return ceil(exact(time) / exact(T_A))


def harmonic(n: int) -> float:
    """H_n = 1 + 1/2 + ... + 1/n, for any n.

    >>> round(harmonic(4), 4), round(harmonic(10**12), 6)
    (2.0833, 28.208237)
    """
    if n < 100:
        return fsum(1 / j for j in range(1, n + 1))
    square = 1 / (n * n)
    return log(n) + EULER + 1 / (2 * n) - square / 12 + square * square / 120


@cache
def gauss(count: int) -> tuple[tuple[float, float], ...]:
    """Nodes and weights of Gauss and Legendre on [-1, 1], by Newton from good guesses.

    >>> [round(weight, 6) for _, weight in gauss(3)]
    [0.555556, 0.888889, 0.555556]
    """
    found = []
    for i in range(count):
        x = cos(pi * (i + 0.75) / (count + 0.5))
        slope = 1.0
        for _ in range(50):
            here, before = 1.0, 0.0
            for j in range(count):
                here, before = ((2 * j + 1) * x * here - j * before) / (j + 1), here
            slope = count * (x * here - before) / (x * x - 1)
            step = here / slope
            x -= step
            if abs(step) < 1e-16:
                break
        found.append((x, 2 / ((1 - x * x) * slope * slope)))
    return tuple(found)


def panel(f: Callable[[float], float], a: float, b: float, nodes: int = NODES) -> float:
    """One application of the rule of Gauss.

    >>> round(panel(lambda x: x**3, 0.0, 2.0), 12)
    4.0
    """
    middle, half = (a + b) / 2, (b - a) / 2
    return half * fsum(weight * f(middle + half * x) for x, weight in gauss(nodes))


def integrate(f: Callable[[float], float], points: Iterable[float], spike: float = 1e-8) -> float:
    """The integral from the least to the largest point; f is smooth between neighbours.

    Panels shrink geometrically towards every point, where integrands of large groups have their
    spikes. They are halved where the rule does not yet agree with itself. `spike` is the width of
    the narrowest one, as a share of the distance between points.

    >>> round(integrate(lambda x: 1e6 * (1 - x) ** (10**6 - 1), [0.0, 1.0]), 11)
    1.0
    """
    ordered = sorted({*points})
    grades = 2 + ceil(-log(spike) / log(4))
    cuts = [edge for a, b in pairwise(ordered) for edge in _graded(a, b, grades)]
    whole = [(a, b, panel(f, a, b)) for a, b in pairwise(cuts) if a < b]
    scale = fsum(abs(value) for _, _, value in whole)
    return fsum(_refined(f, a, b, value, scale * TOLERANCE) for a, b, value in whole)


def _graded(a: float, b: float, grades: int) -> list[float]:
    """Cuts that shrink by 4 towards both ends."""
    half = (b - a) / 2
    steps = [half * 4.0**-grade for grade in range(grades)]
    return [a, *(a + step for step in reversed(steps)), *(b - step for step in steps[1:]), b]


def _refined(
    f: Callable[[float], float],
    a: float,
    b: float,
    value: float,
    allowed: float,
    before: float = inf,
    depth: int = 0,
) -> float:
    """Halve until the rule agrees with itself, or halving does not help: the rest is rounding.

    Halving a smooth panel divides the error by a thousand or more, rounding errors by less than
    four.
    """
    middle = (a + b) / 2
    left, right = panel(f, a, middle), panel(f, middle, b)
    error = abs(left + right - value)
    helpless = depth >= 3 and error > before / 4
    if error <= allowed or helpless or depth == DEEPEST:
        return left + right
    return _refined(f, a, middle, left, allowed, error, depth + 1) + _refined(
        f, middle, b, right, allowed, error, depth + 1
    )


DIRECT = 64  # terms summed one by one, if they are enough
HEAD = 32  # terms summed one by one before the rest is integrated
NOTHING = 1e-17  # of the whole


def decaying_sum(f: Callable[[float], float], rate: float) -> float:
    """f(0) + f(1) + ... for an f that falls at least as exp(-rate m), smooth on the scale of m.

    Many terms are the integral from half a step before the first, with three corrections of Euler
    and Maclaurin, the derivatives taken as differences.

    >>> l = 0.999
    >>> round(decaying_sum(lambda m: l**m, -log(l)) * (1 - l), 12)
    1.0
    """
    enough = 40 / rate if rate > 0 else inf
    if enough <= DIRECT:
        return fsum(f(m) for m in range(ceil(enough) + 1))
    head = [f(m) for m in range(HEAD + 3)]
    ends = _end_correction(head[HEAD - 3 :])
    total = fsum(head[:HEAD]) + ends
    low = HEAD - 0.5
    while low < enough and f(low) > rate * total * NOTHING:  # the rest is at most f(low) / rate
        total += panel(f, low, 2 * low, 16)
        low *= 2
    return total


Value = TypeVar("Value", float, complex)


def _end_correction(around: Sequence[Value]) -> Value:
    """What the sum from the fourth of six neighbours on exceeds the integral from midway before."""
    a, b, c, d, e, f = around
    first, third = d - c, e - 3 * d + 3 * c - b
    fifth = f - 5 * e + 10 * d - 10 * c + 5 * b - a
    return first / 24 - third * 17 / 5760 + fifth * 367 / 967680


# --- alternating sums, which lose all digits by cancellation when summed --------------------------

STEP = 1 / 16  # error below n * exp(-pi / STEP)
FURTHEST = 30.0  # beyond, the integrand is below exp(-pi * FURTHEST / 2)
SHIFT = 24


def alternating_sum(n: int, u: Callable[[complex], complex]) -> float:
    """Sum of (-1)^(j-1) C(n, j) phi(j) over j = 1..n, where phi(s-1) = phi(s) exp(u(s)), phi(1)=1.

    The sum equals an integral along Re s = 1/2 (Nörlund and Rice); its integrand is smooth and
    falls fast, so that equal steps give all digits. phi(s) is exp of the sum of u(s+i) - u(1+i)
    over i >= 1, its far terms integrated. u is smooth to the right of 1. For n >= 200.

    >>> value = alternating_sum(1000, lambda x: -cmath.log(1 - 1 / x))  # phi(j) = 1/j
    >>> abs(value - harmonic(1000)) < 1e-9
    True
    """
    base = _tail(u, 1)
    terms = []
    for i in range(ceil(FURTHEST / STEP)):
        s = complex(0.5, i * STEP)
        value = cmath.exp(_tail(u, s) - base - _crossing(u, s) + _log_kernel(n, s)).real
        terms.append(value if i else value / 2)
    return fsum(terms) * STEP / pi


def _tail(u: Callable[[complex], complex], s: complex) -> complex:
    """Near terms of the sum over u(s+i), and the end correction of the far ones."""
    near = sum(u(s + i) for i in range(1, SHIFT))
    return near + _end_correction([u(s + SHIFT + i) for i in range(-3, 3)])


def _crossing(u: Callable[[complex], complex], s: complex) -> complex:
    """The integral of u from SHIFT + 1/2 to s + SHIFT - 1/2 along a straight line."""
    start, half = SHIFT + 0.5, (s - 1) / 2
    return half * sum(weight * u(start + half * (1 + x)) for x, weight in gauss(32))


def _log_kernel(n: int, s: complex) -> complex:
    """log of (1/s) times the product of i / (i - s) over i = 1..n."""
    a = n + 1
    ratio = s * log(a) - s - (a - s - 0.5) * log1p_complex(-s / a)
    ratio += _stirling(complex(a)) - _stirling(a - s)
    return _log_gamma(1 - s) + ratio - cmath.log(s)


def _log_gamma(z: complex) -> complex:
    shift = 0j
    while z.real < 16:
        shift += cmath.log(z)
        z += 1
    return (z - 0.5) * cmath.log(z) - z + log(2 * pi) / 2 + _stirling(z) - shift


STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


def _stirling(z: complex) -> complex:
    return sum((c / z ** (2 * i + 1) for i, c in enumerate(STIRLING)), 0j)


def log1p_complex(w: complex) -> complex:
    """log(1 + w), accurate for small w.

    >>> log1p_complex(1e-20 + 0j).real
    1e-20
    """
    x, y = w.real, w.imag
    return complex(log1p(2 * x + x * x + y * y) / 2, atan2(y, 1 + x))


def expm1_complex(w: complex) -> complex:
    """exp(w) - 1, accurate for small w.

    >>> expm1_complex(1e-20 + 0j).real
    1e-20
    """
    x, y = w.real, w.imag
    half = sin(y / 2)
    return complex(expm1(x) * cos(y) - 2 * half * half, exp(x) * sin(y))


def power_sum(z: float, n: int) -> float:
    """y + y^2 + ... + y^n for y = 1 - z, accurate for z near 0 and n large.

    >>> power_sum(0.5, 3), power_sum(0.0, 7)
    (0.875, 7.0)
    """
    if z <= 0:
        return float(n)
    if z >= 1:
        return 0.0
    return -(1 - z) * expm1(n * log1p(-z)) / z
