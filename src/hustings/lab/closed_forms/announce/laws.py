"""Laws of the suppression timer: uniform, and exponential as Nonnenmacher and Biersack truncate it.

The exponential density grows with time, so few wake early and many late.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1, inf

from hustings.lab.closed_forms.announce.numerics import integrate
from hustings.lab.closed_forms.form import require

CHAPTER = "announce-listen thesis, chapter 5"

LOSSES = ("none", "correlated", "uncorrelated")
UNIFORM, EXPONENTIAL = "uniform", "exponential"
STEEPEST = 500.0  # exp(lam) stays a number


def check_model(loss: float, model: str) -> None:
    """Refuse an unknown loss model, a loss outside [0, 1), and loss where there is none."""
    require(model in LOSSES, f"loss_model must be one of {', '.join(LOSSES)}, not {model!r}")
    require(0 <= loss < 1, f"l must lie in [0, 1), not {loss}")
    require(loss == 0 or model != "none", f"l must be 0 where loss_model is none, not {loss}")


@dataclass(frozen=True, slots=True)
class Law:
    """When a member wakes, if it hears no better one before: a law on [0, T_S].

    lam is the steepness of the exponential law and 0 for the uniform one, which is its limit.

    >>> Law(T_S=2).mean, round(Law(lam=5).mean, 3), Law(T_S=0).mean
    (1.0, 0.807, 0.0)
    """

    T_S: float = 1.0
    lam: float = 0.0

    def __post_init__(self) -> None:
        require(0 <= self.T_S < inf, f"T_S must be finite and not negative, not {self.T_S}")
        sentence = f"lam must be between 0 and {STEEPEST:g}, not {self.lam}"
        require(0 <= self.lam <= STEEPEST, sentence)

    def cdf(self, t: float) -> float:
        """P(t), the probability of waking by t.

        >>> Law().cdf(0.25), Law().cdf(-1), Law(T_S=0).cdf(0)
        (0.25, 0.0, 1.0)
        """
        if t >= self.T_S:
            return 1.0
        if t <= 0:
            return 0.0
        x = t / self.T_S
        if self.lam == 0:
            return x
        return exp(-self.lam * (1 - x)) * expm1(-self.lam * x) / expm1(-self.lam)

    def density(self, t: float) -> float:
        """p(t) inside [0, T_S], for T_S > 0.

        >>> Law(T_S=2).density(1)
        0.5
        """
        if self.lam == 0:
            return 1 / self.T_S
        return -self.lam * exp(-self.lam * (1 - t / self.T_S)) / (self.T_S * expm1(-self.lam))

    def growth(self, D: float) -> float:
        """p(t) / p(t - D), the same for all t.

        >>> Law().growth(0.1), round(Law(lam=5).growth(0.1), 4)
        (1.0, 1.6487)
        """
        return exp(self.lam * D / self.T_S)

    @property
    def mean(self) -> float:
        """E[t_s]: T_S / 2, or T_S (1/(1 - e^-lam) - 1/lam)."""
        if self.lam < 1e-2:  # where the difference would cancel
            return self.T_S * (0.5 + self.lam / 12 - self.lam**3 / 720)
        return self.T_S * (-1 / expm1(-self.lam) - 1 / self.lam)

    def earliest(self, n: int) -> float:
        """The mean of the least of n draws: T_S / (n + 1) if uniform.

        >>> Law().earliest(4), round(Law(lam=5).earliest(4), 4)
        (0.2, 0.6048)
        """
        if self.lam == 0 or self.T_S == 0:
            return self.T_S / (n + 1)
        return integrate(lambda t: (1 - self.cdf(t)) ** n, [0.0, self.T_S])

    def latest(self, n: int) -> float:
        """The mean of the largest of n draws: T_S n / (n + 1) if uniform.

        >>> Law().latest(4), Law(T_S=0).latest(4)
        (0.8, 0.0)
        """
        if self.lam == 0 or self.T_S == 0:
            return self.T_S * n / (n + 1)
        return self.T_S - integrate(lambda t: self.cdf(t) ** n, [0.0, self.T_S])
