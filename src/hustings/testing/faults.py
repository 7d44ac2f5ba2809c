"""Faults that a seed draws, as values: what a test does to a group, and when.

>>> faults = draw_faults(seed=7, names=["a", "b", "c"], most=3)
>>> " ".join(map(str, faults))
'isolate:leader@8.593+0.098'
>>> parse_fault("kill:leader@3+1.5")
Fault(kind='kill', member='leader', at=3.0, lasts=1.5)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hustings.core.errors import BadInput
from hustings.core.streams import Stream, derive

KINDS = ("kill", "pause", "isolate")
LEADER = "leader"  # as a target: the member that leads at that time
SPAN = 30.0  # seconds within which faults begin
SHORTEST, LONGEST = 0.01, 10.0  # seconds that a fault lasts


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong, and is put right again.

    `kill` ends the member's process and restarts it, `pause` holds it, and `isolate` cuts it off
    from all other members.
    """

    kind: str
    member: str  # a name, or "leader"
    at: float  # seconds after the beginning of all faults
    lasts: float  # seconds until it is put right

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise BadInput(f"a fault is one of {', '.join(KINDS)}, not {self.kind!r}")
        for name in ("at", "lasts"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise BadInput(f"{name} of a fault must be seconds, not {value:g}")

    def __str__(self) -> str:
        return f"{self.kind}:{self.member}@{self.at:g}+{self.lasts:g}"

    def simpler(self) -> Iterator[Fault]:
        """The same fault sooner, or shorter, or at rounder times; the simplest first."""
        for at in dict.fromkeys((0.0, float(math.floor(self.at)))):
            if at < self.at:
                yield replace(self, at=at)
        for lasts in dict.fromkeys((1.0, float(math.floor(self.lasts)), _halved(self.lasts))):
            if SHORTEST <= lasts < self.lasts:
                yield replace(self, lasts=lasts)


def _halved(seconds: float) -> float:
    return round(seconds / 2, 3)


def parse_fault(text: str) -> Fault:
    """A fault from its own text, `KIND:MEMBER@AT+LASTS`."""
    what, _, when = text.rpartition("@")
    kind, _, member = what.partition(":")
    at, _, lasts = when.partition("+")
    try:
        return Fault(kind, member, float(at), float(lasts))
    except ValueError:
        raise BadInput(f"a fault is written kill:a@3+1.5, not {text!r}") from None


def draw_faults(seed: int, names: Sequence[str], most: int, span: float = SPAN) -> list[Fault]:
    """Up to `most` faults that begin within `span` seconds, in the order of their beginning.

    Half of them hit the member that leads at that time.
    """
    if most < 0:
        raise BadInput(f"most must not be negative: {most}")
    if not 0 < span < math.inf:
        raise BadInput(f"span must be a positive time, not {span:g}")
    rng = Stream(derive(seed, "faults"))
    found = [_drawn(rng, names, span) for _ in range(rng.below(most + 1))] if names else []
    return sorted(found, key=lambda fault: fault.at)


def _drawn(rng: Stream, names: Sequence[str], span: float) -> Fault:
    kind = rng.choice(KINDS)
    member = LEADER if rng.random() < 0.5 else rng.choice(names)
    lasts = SHORTEST * (LONGEST / SHORTEST) ** rng.random()  # short ones as often as long ones
    return Fault(kind, member, round(rng.uniform(0.0, span), 3), round(lasts, 3))
