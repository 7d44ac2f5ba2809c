"""The input of a kernel: a group of announcing members that start at once, as a plain value.

All checks are here, in whole sentences, before anything is compiled.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite

from hustings.core.errors import BadInput, UnknownName

PROTOCOLS = ("sup", "al", "le-a", "le-s", "le-m")
LOSS_MODELS = ("none", "correlated", "uncorrelated")
LAWS = ("uniform", "exponential")
KEYS = ("absolute", "relative")

TICKS = 1e8  # per unit of time: instants are whole numbers of these, so that ties are ties
LONGEST = 1e6  # of any finite time, in units
MAX_MEMBERS = 1_000_000
MOST_PAIRS = 1 << 27  # places in the table of members and leaders that they have held
MOST_UNDER_WAY = 1 << 24  # messages
MAX_ROUNDS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnounceParameters:
    """One group. Times that a protocol does not have are ignored; le-a does not sleep."""

    protocol: str
    members: int
    T_A: float = 1.0
    T_S: float = 1.0
    T_L: float = inf
    law: str = "uniform"
    lam: float = 5.0
    key: str = "absolute"
    delay: float = 0.1
    loss_model: str = "none"
    loss: float = 0.0
    collision: float = 0.0
    max_rounds: int = 10_000  # announcements of one member, after which a run is given up

    def __post_init__(self) -> None:
        """Refuse what cannot be played."""
        for kind, name, known in (
            ("protocol", self.protocol, PROTOCOLS),
            ("loss model", self.loss_model, LOSS_MODELS),
            ("law", self.law, LAWS),
            ("key", self.key, KEYS),
        ):
            if name not in known:
                raise UnknownName(kind, name, known)
        if not 1 <= self.members <= MAX_MEMBERS:
            raise BadInput(f"members must lie between 1 and {MAX_MEMBERS:,}, not {self.members:,}")
        if not 1 <= self.max_rounds <= MAX_ROUNDS:
            raise BadInput(f"max_rounds must lie between 1 and {MAX_ROUNDS:,}")
        self._check_times()
        self._check_loss()
        self._check_memory()

    def _check_times(self) -> None:
        for name, value, least in (
            ("T_A", self.T_A, 1e-6),
            ("T_S", self.T_S, 0.0),
            ("delay", self.delay, 0.0),
        ):
            if not least <= value <= LONGEST:
                raise BadInput(f"{name} must lie between {least:g} and {LONGEST:g}, not {value:g}")
        if not self.T_L >= 1e-6:
            raise BadInput(f"T_L must be at least 1e-06, not {self.T_L:g}")
        if self.finite and self.T_L > LONGEST:
            raise BadInput(f"T_L must be infinite or at most {LONGEST:g}, not {self.T_L:g}")
        if not 0.0 < self.lam <= 500.0:
            raise BadInput(f"lam must lie in (0, 500], not {self.lam:g}")

    def _check_loss(self) -> None:
        for name, value in (("loss", self.loss), ("collision", self.collision)):
            if not 0.0 <= value <= 1.0:
                raise BadInput(f"{name} must lie in [0, 1], not {value:g}")
        if self.loss_model == "none" and (self.loss or self.collision):
            raise BadInput("loss model 'none' loses nothing: drop the probability or name a model")
        if self.loss == 1.0 and self.protocol != "sup" and self.members > 1:
            raise BadInput("with loss = 1 no member ever hears the leader: it must be below 1")
        if self.collision and not self.delay:
            raise BadInput("collision needs a delay > 0: messages meet while they are under way")

    def _check_memory(self) -> None:
        if self.under_way > MOST_UNDER_WAY:
            raise BadInput(
                f"{self.members:,} members with a delay of {self.delay:g} that may speak every "
                f"{self.pace:g} have up to {self.under_way:,} messages under way, more than "
                f"{MOST_UNDER_WAY:,}"
            )
        if self.finite and max(self.plans, self.repeating) > MOST_UNDER_WAY:
            raise BadInput(
                f"T_L = {self.T_L:g} is too short beside T_S = {self.T_S:g} and "
                f"T_A = {self.T_A:g}: up to {max(self.plans, self.repeating):,} wake-ups would be "
                f"planned at once, more than {MOST_UNDER_WAY:,}"
            )

    @property
    def finite(self) -> bool:
        """Whether leaders expire; those of members that announce once do not."""
        return isfinite(self.T_L) and self.protocol != "sup"

    @property
    def interval(self) -> float:
        """The suppression interval."""
        return 0.0 if self.protocol in ("le-a", "al") else self.T_S

    @property
    def under_way(self) -> int:
        """More messages than can be under way at once: a power of two."""
        if self.protocol == "sup":
            return self.members
        return 1 << (self.members * (int(self.delay / self.pace) + 2)).bit_length()

    @property
    def pace(self) -> float:
        """How soon a member may announce again: after T_A, or when it has given a leader up."""
        return min(self.T_A, self.T_L)

    @property
    def repeating(self) -> int:
        """More repeats than can be planned at once, those given up included: a power of two."""
        return 1 << (self.members * (int(self.T_A / self.pace) + 1)).bit_length()

    @property
    def pairs(self) -> int:
        """Initial places for members and leaders that they have held: a power of two."""
        return 1 << (8 * self.members).bit_length() if self.protocol == "le-m" else 1

    @property
    def plans(self) -> int:
        """More wake-ups than can be planned at once, cancelled ones included."""
        return self.members * (int(self.T_S / self.T_L) + 2) + 2


def ticks(time: float) -> int:
    """Return a time in ticks, to the nearest."""
    return round(time * TICKS)
