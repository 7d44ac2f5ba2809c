"""The input of the aggregated kernel: a group and how it elects, as a plain value.

All checks are here, in whole sentences, before anything is compiled.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite

from hustings.core.errors import BadInput, UnknownName

MAX_MEMBERS = 10**12
LARGEST_K = 500.0  # beyond, more members would have to be tracked than there is room for
ESTIMATES = ("exact", "gossip", "view")
THINNINGS = ("delay", "hash", "all")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbabilisticParameters:
    """One group and how it elects; times are in units of the delay, which may be given."""

    members: int
    sizes: tuple[float, ...] = (7.0, 14.0, 28.0, 56.0, inf)  # K by round, infinite for all
    view_prob: float = 1.0
    p_ucastl: float = 0.0
    p_mcastl: float = 0.0
    p_fail: float = 0.0
    estimate: str = "exact"
    thinning: str = "delay"
    join_on_contact: bool = False
    T_2: float | None = None  # pace K
    pace: float = 1.5
    T_3: float = 1.0
    W: float = 20.0
    delay: float = 1.0
    hash_skew: float = 1.0  # the hash's distribution function is x^(1/hash_skew)

    def __post_init__(self) -> None:
        """Refuse what cannot be played."""
        if not 1 <= self.members <= MAX_MEMBERS:
            raise BadInput(f"members must lie between 1 and {MAX_MEMBERS:,}, not {self.members:,}")
        for name in ("p_ucastl", "p_mcastl", "p_fail"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise BadInput(f"{name} must lie in [0, 1], not {getattr(self, name):g}")
        if not 0.0 < self.view_prob <= 1.0:
            raise BadInput(f"view_prob must lie in (0, 1], not {self.view_prob:g}")
        for kind, name, known in (
            ("estimate", self.estimate, ESTIMATES),
            ("thinning", self.thinning, THINNINGS),
        ):
            if name not in known:
                raise UnknownName(kind, name, known)
        if not self.sizes or not all(size > 0 for size in self.sizes):
            raise BadInput("the K of every round must be > 0")
        if not (self.hash_skew > 0 and isfinite(self.hash_skew)):
            raise BadInput(f"hash_skew must be finite and > 0, not {self.hash_skew:g}")
        share = self.view_prob if self.estimate == "view" else 1.0
        largest = max((self._passing(size) for size in self.sizes if size < inf), default=0.0)
        largest /= share
        if min(largest, float(self.members)) > LARGEST_K:
            raise BadInput(
                f"about {largest:g} relay members in a round are more than engine 'fast' tracks "
                f"({LARGEST_K:g}): cap K, or take --engine events"
            )
        for name in ("T_2", "pace", "T_3", "W", "delay"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and isfinite(value)):
                raise BadInput(f"{name} must be a finite time > 0, not {value:g}")
        if self.hash_skew != 1.0 and self.estimate == "view":
            raise BadInput(
                "engine 'fast' knows an unfair hash where N_i is the same at all members, and not "
                "with estimate=view: take --engine events"
            )
        if abs(self.T_3 - 1.0) > 1e-9:
            raise BadInput(
                f"engine 'fast' takes T_3 for the delay of a multicast, and not for {self.T_3:g} "
                "of them: take --engine events"
            )

    def _passing(self, size: float) -> float:
        """Return how many pass a filter of this K."""
        if self.hash_skew == 1.0:
            return size
        part: float = min(1.0, size / self.members) ** (1.0 / self.hash_skew)
        return self.members * part
