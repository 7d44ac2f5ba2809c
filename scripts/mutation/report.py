"""The results of the mutants, as a page."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

HEAD = """# Mutants

Small bugs that were planted one at a time, and how many of them the tests noticed. Written by
`make mutants`; do not edit. The operators are in `scripts/mutation/operators.py`, the modules and
tests in `scripts/mutation/plan.toml`, the reasons below in `scripts/mutation/reasons`.

A mutant is killed when a test fails twice in a row, or when the tests end their process, run far
longer than without the mutant or fill the memory, also when the mutant is tried alone. `uncalled`
means that no test of the plan calls the function at all. A share below 1 is a sample, drawn by lot.
`older code` means that the part has changed since; a part that is missing here was not tried.

| part | mutants there are | tried | killed | of these too slow or crashed | score | command |
|---|---:|---:|---:|---:|---:|---|
"""
UNEXPLAINED = "no reason given yet"


@dataclass(frozen=True)
class Part:
    """One part of the code."""

    all: int
    tried: int
    killed: int
    survivors: dict[str, str]  # by key: survived, or uncalled
    slow: int = 0  # of those killed: ran too long, or ended their process
    share: float = 1.0
    seed: int = 1
    sources: str = ""  # digest of the modules

    @property
    def score(self) -> float:
        """The share of mutants that tests noticed."""
        return self.killed / self.tried if self.tried else 1.0

    def command(self, name: str) -> str:
        """Return the command that tries the same mutants again."""
        share = "" if self.share == 1 else f" SHARE={self.share:g}"
        return f"make mutants PARTS={name}{share}" + (
            "" if self.seed == 1 else f" SEED={self.seed}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain values only."""
        return asdict(self)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Part:
        """Make a part from plain values."""
        return cls(**told)


def page(parts: Mapping[str, Part], reasons: Mapping[str, str], older: Collection[str] = ()) -> str:
    """Return the whole page; the code of the `older` parts has changed since their trial."""
    rows = [
        f"| {name}{' (older code)' if name in older else ''} | {part.all:,} | {part.tried:,} "
        f"| {part.killed:,} | {part.slow:,} | {part.score:.1%} | `{part.command(name)}` |"
        for name, part in parts.items()
    ]
    tried, killed = sum(p.tried for p in parts.values()), sum(p.killed for p in parts.values())
    total = f"| all | {sum(p.all for p in parts.values()):,} | {tried:,} | {killed:,} "
    slow = sum(p.slow for p in parts.values())
    rows.append(f"{total}| {slow:,} | {killed / max(tried, 1):.1%} | |")
    text = HEAD + "\n".join(rows) + "\n"
    for name, part in parts.items():
        text += f"\n## {name}: what survived\n\n"
        lines = [
            f"- `{key}` ({verdict}): {reasons.get(key, UNEXPLAINED)}"
            for key, verdict in part.survivors.items()
        ]
        text += "\n".join(lines) + "\n" if lines else "Nothing.\n"
    return text
