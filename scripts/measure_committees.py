"""Committees against the first estimate of them: good leaders, informed members, bits.

    python scripts/measure_committees.py 1000 10000
    python scripts/measure_committees.py 100000 --runs 8
    python scripts/measure_committees.py 1000000 --runs 1 --attacks greedy mixed

Writes the tables of docs/decisions/0015. The line to beat stands behind each number, where there is
one; a number is `below` it where twice its standard error does not make up for that, nor what
rounding the line to two digits may have done. Aware is the worst of the attacks.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hustings.lab.byzantine.large import play_large
from hustings.lab.runs.engines import Summary, summarise
from hustings.protocols.committee.settings import CommitteeConfig

SEED = 5
ROUNDING = 0.005
RUNS = {1_000: 200, 10_000: 40, 100_000: 8, 1_000_000: 2}
RUNS_OF_ONE = 400  # at least, of the one public committee: they cost little, and vary
ATTACKS = ("greedy", "mixed", "leaf", "cluster")
SHARES = (0.0, 0.05, 0.1, 0.2, 0.3)
GAMES = ("small", "baton", "feige")
PROFILES = ("lean", "tuned", "robust", "high-b", "single")

Cell = tuple[int, str, float]  # members, profile, b

# P(good leader): random corruption, the worst aware one, and the share that knows the leader.
LINE: dict[Cell, tuple[float, float | None, float | None]] = {
    (1_000, "lean", 0.05): (0.88, 0.88, 1.0),
    (1_000, "lean", 0.1): (0.75, 0.29, 0.81),
    (1_000, "lean", 0.2): (0.46, 0.0, 0.0),
    (1_000, "lean", 0.3): (0.04, 0.0, 0.0),
    (1_000, "robust", 0.1): (0.75, 0.50, 0.996),
    (10_000, "lean", 0.05): (0.81, 0.65, 0.915),
    (10_000, "lean", 0.1): (0.66, 0.01, 0.04),
    (10_000, "lean", 0.2): (0.36, 0.0, 0.0),
    (10_000, "robust", 0.05): (0.89, 0.79, 0.994),
    (10_000, "robust", 0.1): (0.77, 0.36, 0.982),
    (10_000, "robust", 0.2): (0.46, 0.0, 0.0),
    (10_000, "high-b", 0.3): (0.22, None, None),
    (100_000, "lean", 0.05): (0.74, 0.62, 0.89),
    (100_000, "lean", 0.1): (0.59, 0.0, 0.0),
    (100_000, "lean", 0.2): (0.28, 0.0, 0.0),
    (100_000, "robust", 0.1): (0.68, 0.29, 0.979),
    (100_000, "high-b", 0.3): (0.22, None, None),
    (1_000_000, "lean", 0.05): (0.69, 0.57, 0.895),
    (1_000_000, "lean", 0.1): (0.54, 0.0, 0.0),
    (1_000_000, "lean", 0.2): (0.24, 0.0, 0.0),
    (1_000_000, "robust", 0.1): (0.60, 0.26, 0.976),
}
for _n in RUNS:
    LINE |= {
        (_n, "single", 0.1): (0.838, None, None),
        (_n, "single", 0.2): (0.581, None, None),
        (_n, "single", 0.3): (0.247, None, None),
    }
    for _name in PROFILES:
        LINE[_n, _name, 0.0] = (1.0, None, None)

# The same with other endgames, random corruption: small, baton, feige.
GAMES_LINE: dict[Cell, tuple[float, float, float]] = {
    (1_000, "lean", 0.05): (0.70, 0.61, 0.105),
    (1_000, "lean", 0.1): (0.54, 0.36, 0.077),
    (1_000, "lean", 0.2): (0.22, 0.05, 0.034),
    (1_000, "lean", 0.3): (0.0, 0.0, 0.003),
    (1_000, "robust", 0.1): (0.40, 0.26, 0.019),
    (10_000, "lean", 0.05): (0.36, 0.23, 0.024),
    (10_000, "lean", 0.1): (0.19, 0.09, 0.010),
    (10_000, "lean", 0.2): (0.01, 0.002, 0.001),
    (10_000, "robust", 0.05): (0.52, 0.37, 0.022),
    (10_000, "robust", 0.1): (0.34, 0.17, 0.010),
    (10_000, "robust", 0.2): (0.05, 0.01, 0.001),
    (100_000, "lean", 0.05): (0.26, 0.12, 0.004),
    (100_000, "lean", 0.1): (0.12, 0.04, 0.001),
    (100_000, "lean", 0.2): (0.0, 0.0, 0.0),
    (100_000, "robust", 0.1): (0.14, 0.06, 0.008),
    (1_000_000, "lean", 0.05): (0.26, 0.08, 0.025),
    (1_000_000, "lean", 0.1): (0.09, 0.02, 0.013),
    (1_000_000, "lean", 0.2): (0.0, 0.0, 0.003),
    (1_000_000, "robust", 0.1): (0.11, 0.02, 0.005),
}

# Bits that a good member sends at b = .1: the mean, and the maximum of one member.
BITS: dict[tuple[int, str], tuple[float, float]] = {
    (1_000, "lean"): (1.5e6, 3.1e6),
    (1_000, "robust"): (7.2e6, 1.05e7),
    (10_000, "lean"): (7.9e6, 2.0e7),
    (10_000, "robust"): (4.8e7, 7.1e7),
    (100_000, "lean"): (3.4e7, 1.2e8),
    (100_000, "robust"): (2.2e8, 6.5e8),
    (1_000_000, "lean"): (1.4e8, 7.8e8),
    (1_000_000, "robust"): (9.7e8, 4.4e9),
}


@dataclass(frozen=True)
class Played:
    """One cell under one adversary."""

    adversary: str
    good: Summary
    informed: float
    bits: float
    most: float
    rounds: float


def play(cell: Cell, adversary: str, runs: int, **settings: object) -> Played:
    """Play this many runs."""
    n, profile, b = cell
    given = {"N": n, "profile": profile, "b": b, "adversary": adversary, **settings}
    found = play_large(CommitteeConfig.parse(given), n, SEED, 0, runs).metrics
    return Played(
        adversary,
        summarise(found["p_good"].tolist()),
        *(float(found[name].mean()) for name in ("informed", "bits_mean", "bits_max", "rounds")),
    )


def chance(value: Summary, line: float | None) -> str:
    """Format a probability with its error and the line to beat."""
    error = value.stderr or 0.0
    shown = f"{value.mean:.3f} ± {error:.3f}" if error >= 0.0005 else f"{value.mean:.3f}"
    if line is None:
        return shown
    below = value.mean + 2 * error < line - ROUNDING
    return f"{shown} ({line:g})" + (" below" if below else "")


def cost(value: float, line: float | None) -> str:
    """Format bits and the line to beat."""
    if line is None:
        return f"{value:.2g}"
    return f"{value:.2g} ({line:.2g})" + (" above" if float(f"{value:.2g}") > line else "")


def row(cell: Cell, runs: int, attacks: Sequence[str]) -> list[str]:
    """Return one line of the first table."""
    n, profile, b = cell
    line = LINE.get(cell, (None, None, None))
    bits = BITS.get((n, profile), (None, None)) if b == 0.1 else (None, None)
    random = play(cell, "random", max(runs, RUNS_OF_ONE) if profile == "single" else runs)
    cells = [f"{n:,}", profile, f"{b:g}", chance(random.good, line[0])]
    if b and profile != "single":
        aware = min((play(cell, each, runs) for each in attacks), key=lambda one: one.good.mean)
        known = "" if line[2] is None else f" ({line[2]:g})"
        cells += [chance(aware.good, line[1]), aware.adversary, f"{aware.informed:.3f}{known}"]
        bits_mean, bits_max = max(random.bits, aware.bits), max(random.most, aware.most)
    else:
        cells += ["", "", ""]
        bits_mean, bits_max = random.bits, random.most
    return [*cells, cost(bits_mean, bits[0]), cost(bits_max, bits[1]), f"{random.rounds:.2g}"]


def games(cell: Cell, runs: int) -> list[str]:
    """Return one line of the second table."""
    n, profile, b = cell
    found = [play(cell, "random", runs, endgame=game).good for game in GAMES]
    pairs = zip(found, GAMES_LINE[cell], strict=True)
    return [f"{n:,}", profile, f"{b:g}", *(chance(value, line) for value, line in pairs)]


def show(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table, each line as soon as it is ready."""
    for each in (columns, ["---"] * len(columns)):
        print(f"| {' | '.join(each)} |")
    for each in rows:
        print(f"| {' | '.join(each)} |", flush=True)
    print()


def main() -> None:
    """Print both tables for the sizes asked for."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("members", type=int, nargs="+", choices=RUNS)
    parser.add_argument("--runs", type=int, help="of each cell; default 200 down to 2 by size")
    parser.add_argument("--attacks", nargs="+", choices=ATTACKS, default=ATTACKS)
    parser.add_argument("--profiles", nargs="+", choices=PROFILES, default=PROFILES)
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES, help="values of b")
    parser.add_argument("--no-games", action="store_true", help="leave the second table out")
    asked = parser.parse_args()
    if asked.runs is not None and asked.runs < 1:
        sys.exit("--runs must be at least 1")
    cells = [(n, name, b) for n in asked.members for name in asked.profiles for b in asked.shares]
    show(
        ("n", "profile", "b", "P random", "P aware", "attack", "know", "bits", "most", "rounds"),
        (row(cell, asked.runs or RUNS[cell[0]], asked.attacks) for cell in cells),
    )
    if not asked.no_games:
        show(
            ("n", "profile", "b", *GAMES),
            (games(cell, asked.runs or RUNS[cell[0]]) for cell in cells if cell in GAMES_LINE),
        )


if __name__ == "__main__":
    main()
