"""Reference values of the probabilistic election, from two independent simulations of it.

Each is a mean over many runs: `RUNS` for N_i = N, `RUNS_VIEW` for N_i = |V_i|. A group of 2000
whose members know each other with probability 0.5 and crash in a round with probability 0.001;
what is lost, is lost with one probability, be it a unicast or a multicast.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

RUNS = 100_000
RUNS_VIEW = 50_000
LOSSES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
POLICIES = (("exact", "hash"), ("exact", "delay"), ("view", "hash"), ("view", "delay"))

# By policy, in the order of LOSSES.
STRONG = {
    ("exact", "hash"): (0.999, 0.887, 0.653, 0.421, 0.344, 0.308),
    ("exact", "delay"): (0.999, 0.994, 0.978, 0.966, 0.981, 0.996),
    ("view", "hash"): (0.999, 0.998, 0.974, 0.845, 0.545, 0.401),
    ("view", "delay"): (0.999, 0.999, 0.997, 0.975, 0.936, 0.954),
}
ROUNDS = {
    ("exact", "hash"): (1.0145, 1.044, 1.109, 1.233, 1.418, 1.676),
    ("exact", "delay"): (1.0146, 1.154, 1.436, 1.811, 2.100, 2.369),
    ("view", "hash"): (1.0002, 1.001, 1.008, 1.037, 1.135, 1.356),
    ("view", "delay"): (1.0004, 1.003, 1.031, 1.167, 1.530, 1.924),
}
# The last of N/delay is the mean of those that did not reach the round in which all take part.
UCASTS = {
    ("exact", "hash"): (59.7, 56.4, 58.4, 68.7, 86.2, 121.1),
    ("exact", "delay"): (59.8, 68.2, 91.8, 134.7, 187.2, 283.6),
    ("view", "hash"): (223.3, 191.0, 166.0, 157.0, 184.0, 267.0),
    ("view", "delay"): (223.9, 192.0, 174.0, 198.0, 310.0, 487.0),
}
UCASTS_TO = {"exact": 0.05, "view": 0.5}  # half of the last digit that is given

# Without loss or crashes, by view_prob: that the finals of round 1 disagree, or there are none.
DISAGREE = {0.2: 0.35947, 0.3: 0.12124, 0.4: 0.04110, 0.5: 0.014624}

# N_i = N, delay, loss 0.001, any size: rounds and unicasts lie in these ranges.
BY_SIZE = {"rounds": (1.018, 1.022), "ucasts": (60.0, 61.0), "mcasts": (8.3, 8.3)}
# A group of 5000, loss 0.001, by view_prob: rounds and unicasts.
BY_VIEW = {
    ("exact", 0.2): (1.393, 124.0),
    ("exact", 0.3): (1.130, 77.0),
    ("exact", 0.4): (1.048, 64.0),
    ("exact", 0.5): (1.021, 61.0),
    ("view", 0.2): (1.000, 1090.0),
    ("view", 0.3): (1.000, 553.0),
    ("view", 0.4): (1.000, 335.0),
    ("view", 0.5): (1.000, 223.0),
}


@dataclass(frozen=True)
class Reference:
    """A mean, the number of runs behind it, and how far it was rounded."""

    mean: float
    runs: int
    rounding: float

    def deviation(self, values: list[float], least: float = 0.0) -> float:
        """By how many standard errors the mean of `values` is off; `least`: a known variance.

        The spread of one run is the same on both sides, so the sample tells it for both; few runs
        of something rare may show none, so it is not taken to be less than what must be there.
        """
        count = len(values)
        mean = math.fsum(values) / count
        variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
        error = math.sqrt(max(variance, least) * (1 / count + 1 / self.runs))
        return max(0.0, abs(mean - self.mean) - self.rounding) / error


def of_table(policy: tuple[str, str], loss: float) -> dict[str, Reference]:
    """One cell of the table."""
    place, runs = LOSSES.index(loss), RUNS if policy[0] == "exact" else RUNS_VIEW
    digits = 0.00005 if loss == 0.0 else 0.0005
    return {
        "strong": Reference(STRONG[policy][place], runs, 0.0005),
        "rounds": Reference(ROUNDS[policy][place], runs, digits),
        "ucasts": Reference(UCASTS[policy][place], runs, UCASTS_TO[policy[0]]),
    }
