"""One round of the probabilistic election: its checked parameters, and its participants."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import exp, expm1, inf, log, log1p

from hustings.lab.closed_forms.form import require

PAPER = "probabilistic election 2000"
FAINTEST = -80.0  # logarithm of the least probability that sums still count
LARGEST_K = 2000  # sums over relay members stay under a second


@dataclass(frozen=True, slots=True)
class Round:
    """A round with parameter K in a group of N, and the network around it.

    >>> Round(K=40, view_prob=0.4, p_mcastl=0.01, p_ucastl=0.01, p_fail=0.01, N=10000).k2
    39.204
    """

    K: float
    view_prob: float = 0.5
    p_mcastl: float = 0.0
    p_ucastl: float = 0.0
    p_fail: float = 0.0
    N: int = 2000
    tau2: float = 1.0  # the part of the round before the finals, when a crash takes a final away

    def __post_init__(self) -> None:
        """Refuse settings that make no round, in one sentence."""
        require(0 < self.K < inf, f"K must be above 0, not {self.K:g}")
        require(
            0 < self.view_prob <= 1,
            f"view_prob must lie in (0, 1], not {self.view_prob:g}: a member that "
            "knows no other can elect none",
        )
        for key in ("p_mcastl", "p_ucastl", "p_fail", "tau2"):
            value = getattr(self, key)
            require(0 <= value <= 1, f"{key} must lie in [0, 1], not {value:g}")
        require(self.N >= 1, f"N must be at least 1, not {self.N}")

    @property
    def k1(self) -> float:
        """The expected number of relay members."""
        return (1 - self.p_mcastl) * self.K

    @property
    def k2(self) -> float:
        """The expected number of relay members alive in the end."""
        return (1 - self.p_fail) * self.k1

    @property
    def passing(self) -> float:
        """The chance of a member to pass the filter."""
        return self.K / self.N if self.K < self.N else 1.0

    @property
    def crash_before(self) -> float:
        """The chance of a relay member to crash before its final multicast."""
        return self.p_fail * self.tau2

    @property
    def edge(self) -> float:
        """The chance of two relay members to be joined: at least one has the other in its view."""
        return self.view_prob * (2 - self.view_prob)

    @property
    def crossing(self) -> float:
        """The chance that the best choice certainly crosses between two relay members.

        The near one has the far one in its view and gets its relay through; or only the far one
        has the near one, and gets its first message through, and the near one its answer.
        """
        through = 1 - self.p_ucastl
        return self.view_prob * through * (1 + (1 - self.view_prob) * through)

    def sees(self, members: int) -> float:
        """The chance that one of some members at least has a candidate in its view."""
        if self.view_prob == 1:
            return float(members > 0)
        return -expm1(members * log1p(-self.view_prob))


@lru_cache(1024)
def binomial(n: int, chance: float) -> tuple[int, tuple[float, ...]]:
    """The binomial law: its first value that counts, and the probabilities from there on.

    Each probability comes from the one before, in logarithms, so n may be of any size.

    >>> first, law = binomial(10**18, 7e-18)
    >>> first, round(law[7], 6), round(sum(law), 12)
    (0, 0.149003, 1.0)
    """
    if chance >= 1 or n == 0:
        return n, (1.0,)
    if chance <= 0:
        return 0, (1.0,)
    return _walk(n * log1p(-chance), log(chance) - log1p(-chance), n)


def poisson(mean: float) -> tuple[int, tuple[float, ...]]:
    """The limit of the binomial law in a large group.

    >>> first, law = poisson(7.0)
    >>> first, round(law[7], 6)
    (0, 0.149003)
    """
    return _walk(-mean, log(mean), None)


def _walk(now: float, step: float, n: int | None) -> tuple[int, tuple[float, ...]]:
    """From the logarithm at 0 upwards, while the probabilities count."""
    first, law, value = 0, [], 0
    while True:
        if now >= FAINTEST:
            law.append(exp(now))
        elif law:
            break
        else:
            first = value + 1
        if value == n:
            break
        rest = 0.0 if n is None else log(n - value)
        now += step + rest - log(value + 1)
        value += 1
    return first, tuple(law)


def entering(one: Round) -> list[tuple[int, float]]:
    """How many members enter the relay phase: Bin(N, (1 - p_mcastl) K/N), value by value.

    >>> round(sum(r * chance for r, chance in entering(Round(K=7, p_mcastl=0.1))), 9)
    6.3
    """
    first, law = binomial(one.N, (1 - one.p_mcastl) * one.passing)
    return list(enumerate(law, first))


def sending(one: Round, r: int) -> list[tuple[int, float]]:
    """How many of r relay members live until their final multicast.

    >>> [(m, round(chance, 4)) for m, chance in sending(Round(K=7, p_fail=0.1), 2)]
    [(0, 0.01), (1, 0.18), (2, 0.81)]
    """
    first, law = binomial(r, 1 - one.crash_before)
    return list(enumerate(law, first))


def require_summable(one: Round) -> None:
    """Refuse sums over more relay members than can be added up in a short time.

    >>> require_summable(Round(K=7))
    """
    most = min(one.K, one.N)
    require(most <= LARGEST_K, f"K must be at most {LARGEST_K} for sums over m, not {most:g}")
