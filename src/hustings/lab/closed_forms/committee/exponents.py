"""Where the exponents of the paper begin to matter: each constraint's n, found in x = ln n.

The numbers n themselves have up to 10^155 digits, so everything is solved for ln n and shown as a
power of ten.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import ceil, e, exp, log

from hustings.lab.closed_forms.form import Sheet, require

PAPER = "scalable Byzantine election 2006"
SOURCE = f"{PAPER}: sections 2 to 6"
THIRD = 1 / 3
HALVINGS = 200
TEN = log(10)
EXPONENTS_SHOWN = 15  # digits before n is told by its exponent alone
LONG = 1e6  # an exponent so large is told as a power itself
NEAREST = 0.316  # beyond this b, ln n is larger than any number here


def layers(ln_n: float) -> int:
    """l* = min{l : n / L^l <= L^10}, the layers above the leaves.

    Parameters: ln_n, with n >= 3, since L must exceed 1.

    Source: Theorem 1.2. Verdict: as printed; 0 for every 4 <= n <= 3.4e15, so that the paper's
    algorithm is HEAVYWEIGHT-LEADER-ELECTION on all n members.

    >>> [layers(log(n)) for n in (3, 4, 10**6, 10**15, 10**16, 10**18)]
    [2, 0, 0, 0, 1, 2]
    """
    require(ln_n > 1, "n must be at least 3: with ln n <= 1 no number of layers is enough")
    return max(0, ceil(ln_n / log(ln_n) - 10))


def power_fits(power: float, share: int = 1, factor: float = 1.0) -> float:
    """ln n from which on factor L^power < n^share, for ever.

    Parameters: power; share, the power of n; factor.

    Source: the sizes of sections 2 to 4. Verdict: exact, the larger root of
    share x = ln factor + power ln x.

    >>> [round(power_fits(power), 2) for power in (5, 8, 10, 11)]
    [12.71, 26.09, 35.77, 40.79]
    """
    lowest = max(power / share, 1.0)  # the difference falls before, and grows after
    return _root(lambda x: share * x - log(factor) - power * log(x), lowest)


def first_layer_bits(share: int) -> float:
    """ln n from which on a member's bits on the first layer, 2 L^38, stay below n^share.

    A committee of k = L^10 agrees on k values in k^3 bits each, and a member sits in 2 L^8 of
    those elections; 2 L^38 in all.

    Parameters: share, the power of n: 1, 2 or 3.

    Source: Lemmas 2.2 and 6.3. Verdict: exact for the printed sizes: where the scalable election
    first sends less than everybody telling everybody.

    >>> [round(first_layer_bits(share), 1) for share in (3, 2, 1)]
    [49.7, 84.7, 202.5]
    """
    return power_fits(38, share, 2.0)


def learning_majority() -> float:
    """ln n from which on 6 (l+2)/L < 1/2 at the top, l = l* - 1: LEARN-PROCESSORS has a majority.

    Parameters: none; l* is taken as the real number ln n / ln L - 10.

    Source: Lemma 6.1, item 1. Verdict: exact up to the rounding of l*: see
    `surely_learning_majority`. Before, it holds only where there are hardly any layers.

    >>> round(learning_majority() / log(10))
    70119
    """
    return _root(lambda x: x - 12 * (x / log(x) - 9), e**8)  # below, l* = 0 may hide it


def surely_learning_majority() -> float:
    """ln n from which on 6 (l*+1)/L < 1/2 for ever, with l* a whole number.

    l* jumps, so the condition holds and fails by turns before.

    Parameters: none.

    Source: Lemma 6.1, item 1. Verdict: exact.

    >>> round(surely_learning_majority() / log(10))
    70179
    """
    level = ceil(learning_majority() / 12) + 100  # far enough up: from there on it holds
    while _reaches(level - 1) >= 12 * (level + 1):
        level -= 1
    return min(12.0 * (level + 1), _reaches(level))


def printed_silent_lemma() -> float:
    """ln n from which on (16e/(9L))^(9/2) <= 16/(9 L^4).

    Parameters: none.

    Source: proof of Lemma 5.1, k = 9. Verdict: not what the next line needs, which has e more.

    >>> f"{printed_silent_lemma():.2e}"
    '4.55e+05'
    """
    return exp(9 * log(16 * e / 9) + 2 * log(9 / 16))


def silent_lemma() -> float:
    """ln n from which on e/alpha <= p_k^(-1/2) with k = 9: (16e/(9L))^(9/2) <= 16/(9 e L^4).

    Parameters: none.

    Source: proof of Lemma 5.1, k = 9. Verdict: exact for layers above the first; on the first,
    p_k is not below 1 and no n is enough.

    >>> f"{silent_lemma():.2e}", f"{silent_lemma() / log(10):.3g}"
    ('3.36e+06', '1.46e+06')
    """
    return printed_silent_lemma() * e**2


def printed_good_nodes(b: float) -> float:
    """ln n from which on b + 12/L < 1/3.

    Parameters: b, the share of bad members, below 1/3.

    Source: the end of the proof of Theorem 1.2. Verdict: forgets that the share grows by 12/L in
    every layer.

    >>> [round(printed_good_nodes(b), 1) for b in (0, 0.1, 0.2, 0.3)]
    [36.0, 51.4, 90.0, 360.0]
    """
    _check(b)
    return 12 / (THIRD - b)


def good_nodes(b: float) -> float:
    """ln n from which on b + 12 l*/L < 1/3: the top layer may be good.

    12 l*/L is 12/ln L but for 120/L, which is nothing where it matters; so ln L = 12/(1/3 - b).

    Parameters: b, the share of bad members, below 1/3.

    Source: section 6, the definition of a good node. Verdict: exact to twelve digits.

    >>> [f"{good_nodes(b):.1e}" for b in (0, 0.1, 0.2, 0.3)]
    ['4.3e+15', '2.2e+22', '1.2e+39', '2.2e+156']
    """
    _check(b)
    require(b <= NEAREST, f"b must be at most {NEAREST}, not {b:g}: ln n would be too large")
    return exp(12 / (THIRD - b))


def shown(ln_n: float) -> str:
    """n as a power of ten, from its logarithm.

    >>> shown(35.7715), shown(161454.45), shown(3.36e6), shown(4.3e15)
    ('3.4e15', '10^70119', '10^1.46e6', '10^1.87e15')
    """
    digits = ln_n / TEN
    if digits < 300:
        return _short(f"{exp(ln_n):.1e}")
    if digits < LONG:
        return f"10^{digits:.0f}"
    return f"10^{_short(f'{digits:.2e}')}"


def _short(text: str) -> str:
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}"


def _check(b: float) -> None:
    require(0 <= b < THIRD, f"b must lie in [0, 1/3), not {b:g}")


def _reaches(level: int) -> float:
    """The largest x with l* <= level."""
    return power_fits(level + 10)


def _root(f: Callable[[float], float], low: float) -> float:
    """Where f crosses 0 from below, right of low."""
    high = 2 * low
    while f(high) <= 0:
        high *= 2
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if f(middle) > 0 else (middle, high)
    return high


def declare(sheet: Sheet, b: float) -> None:
    """Add the forms of this module to a sheet."""
    sheet.source = SOURCE
    for name, power in (("leaves", 5), ("inputs", 8), ("layers", 10), ("subcommittees", 11)):
        n = shown(power_fits(power))
        lead = f"L^{power} < n from n = {n} on: "
        sheet.known(f"ln_n_{name}", power_fits, partial(power_fits, power), lead)
    for share in (3, 2, 1):
        lead = f"share = {share}, n = {shown(first_layer_bits(share))}: "
        sheet.known(
            f"ln_n_bits_below_n{share}", first_layer_bits, partial(first_layer_bits, share), lead
        )
    for name, form in (
        ("ln_n_learning", learning_majority),
        ("ln_n_learning_for_ever", surely_learning_majority),
        ("ln_n_silent_lemma", silent_lemma),
        ("ln_n_silent_lemma", printed_silent_lemma),
    ):
        sheet.known(name, form, form, f"n = {shown(form())}: ")
    if b > NEAREST:
        sheet.notes.append("no value for ln_n_good_nodes: b is too near to 1/3")
        return
    for good in (good_nodes, printed_good_nodes):
        sheet.known("ln_n_good_nodes", good, partial(good, b), f"n = {shown(good(b))}: ")
