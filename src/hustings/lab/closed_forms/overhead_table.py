"""The overhead-aware paper's formulas and its Table 1: printed values beside counted ones.

Table 1 gives orders of growth. Here each cell also shows the value of the formula behind it and the
count it stands for. The orders are right; most values are not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from hustings.lab.closed_forms import overhead
from hustings.lab.closed_forms.form import COUNTED, OVERHEAD, Form, require

DEAD_ANSWERS = "counts an OK from the dead leader"
ON_TOP = "right only with the leader on top of the crashed"
SKIPPED = "wrong by 1: the dead leader is skipped"
LARGE_TERMS = "every OK term but the last is one too large"


@dataclass(frozen=True, slots=True)
class FormulaRow:
    """One of the formulas (1) to (7) at one n."""

    number: int
    election: str  # "bully" or "bully-map"
    detector: str
    crashed: str
    printed_formula: str
    printed: int
    corrected_formula: str
    corrected: int
    leader_on_top: int | None  # (3) and (6), if the crashed do not include the leader
    verdict: str

    def to_json(self) -> dict[str, object]:
        """Return plain values only."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Table1Row:
    """One cell of Table 1."""

    detector: str
    detector_id: int
    elections: str
    crashed: int
    election: str  # "bully" or "bully-map"
    printed_order: str
    printed_formula: str
    printed: int
    counted: int
    verdict: str

    def to_json(self) -> dict[str, object]:
        """Return plain values only."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Formula:
    election: str
    detector: str
    crashed: str
    printed: tuple[str, Callable[[int], int]]
    corrected: tuple[str, Callable[[int], int]]
    verdict: str
    divisor: int = 1
    least: int = 3
    on_top: Callable[[int], int] | None = None


FORMULAS = {
    1: _Formula(
        "bully",
        "N[1]",
        "1",
        ("2(n-1) + ... + 2 = n(n-1)", overhead.printed_1),
        ("(n-1)^2", overhead.corrected_1),
        f"wrong by n-1: {DEAD_ANSWERS}",
    ),
    2: _Formula(
        "bully",
        "N[n/2]",
        "1",
        ("2(n/2) + ... + 2 = (n/2)(n/2+1)", overhead.printed_2),
        ("n^2/4", overhead.corrected_2),
        f"wrong by n/2: {DEAD_ANSWERS}",
        divisor=2,
        least=4,
    ),
    3: _Formula(
        "bully-map",
        "any below m",
        "n/4",
        ("n/4 + 2", overhead.printed_3),
        ("n/4 + 1", overhead.corrected_3),
        f"wrong by 1: {ON_TOP}",
        divisor=4,
        least=4,
        on_top=lambda n: overhead.corrected_3(n, leader_included=False),
    ),
    4: _Formula(
        "bully",
        "N[1]",
        "n/4",
        ("((n-1) + 3n/4) + ... + n/4 = 3n^2/4 - 1", overhead.printed_4),
        ("(3n/4)(n-1)", overhead.corrected_4),
        f"wrong by 3n/4-1: {LARGE_TERMS}",
        divisor=4,
        least=4,
    ),
    5: _Formula(
        "bully",
        "N[n/2]",
        "n/4",
        ("(n/2 + n/4) + ... + n/4 = (n/4+1)(n/2)", overhead.printed_5),
        ("(n/4+1)(n/2)", overhead.corrected_5),
        "right",
        divisor=4,
        least=4,
    ),
    6: _Formula(
        "bully-map",
        "N[1]",
        "n/2",
        ("n/2 + 2", overhead.printed_6),
        ("n/2 + 1", overhead.corrected_6),
        f"wrong by 1: {ON_TOP}",
        divisor=2,
        least=4,
        on_top=lambda n: overhead.corrected_6(n, leader_included=False),
    ),
    7: _Formula(
        "bully",
        "N[1]",
        "n/2",
        ("((n-1) + n/2) + ... + n/2 = n^2/2 - 1", overhead.printed_7),
        ("(n/2)(n-1)", overhead.corrected_7),
        f"wrong by n/2-1: {LARGE_TERMS}",
        divisor=2,
        least=4,
    ),
}


def formulas(n: int) -> list[FormulaRow]:
    """Formulas (1) to (7) at one n, printed beside corrected.

    Parameters: n, divisible by 4.

    Source: overhead-aware election, section 5. Verdict: (5) is right, the others are not.

    >>> [(row.printed, row.corrected) for row in formulas(8)]
    [(56, 49), (20, 16), (4, 3), (47, 42), (12, 12), (6, 5), (31, 28)]
    """
    _check(n)
    return [
        FormulaRow(
            number,
            formula.election,
            formula.detector,
            formula.crashed,
            formula.printed[0],
            formula.printed[1](n),
            formula.corrected[0],
            formula.corrected[1](n),
            _on_top(formula, n),
            formula.verdict,
        )
        for number, formula in FORMULAS.items()
    ]


def table_1(n: int) -> list[Table1Row]:
    """Table 1 at one n: printed order, value of the printed formula, counted truth.

    Parameters: n, divisible by 4. The crashed include the leader.

    Source: overhead-aware election, Table 1. Verdict: the orders are right. That the detector does
    not matter is false for n-1, which sends nothing (the paper says so itself in 5.5).

    >>> [(row.election, row.printed, row.counted) for row in table_1(8) if row.crashed == 4]
    [('bully-map', 6, 5), ('bully', 31, 28), ('bully-map', 4, 3), ('bully', 4, 4)]
    """
    _check(n)
    rows: list[Table1Row] = []
    for detector, detector_id in (("N[1]", 1), ("N[n/2]", n // 2)):
        for elections, crashed in (("1", 1), ("n/4", n // 4), ("n/2", n // 2)):
            for election in ("bully-map", "bully"):
                cell = _cell(n, election, detector, elections)
                order = CELL_ORDERS[election, detector, elections]
                rows.append(
                    Table1Row(detector, detector_id, elections, crashed, election, order, *cell)
                )
    return rows


CELL_ORDERS = {
    (election, detector, elections): (
        ("2" if elections == "1" else "O(n)")
        if election == "bully-map"
        else ("O(n)" if (detector, elections) == ("N[n/2]", "n/2") else "O(n^2)")
    )
    for election in ("bully-map", "bully")
    for detector in ("N[1]", "N[n/2]")
    for elections in ("1", "n/4", "n/2")
}

CELL_FORMULAS = {
    ("bully", "N[1]", "1"): 1,
    ("bully", "N[n/2]", "1"): 2,
    ("bully-map", "N[1]", "n/4"): 3,
    ("bully-map", "N[n/2]", "n/4"): 3,
    ("bully", "N[1]", "n/4"): 4,
    ("bully", "N[n/2]", "n/4"): 5,
    ("bully-map", "N[1]", "n/2"): 6,
    ("bully", "N[1]", "n/2"): 7,
}


def overhead_forms(n: int, election: str | None = None) -> list[Form]:
    """The formulas that apply to n, of one election or of both, as printed and corrected forms.

    >>> [form.name for form in overhead_forms(6, "bully-map")][:3]
    ['overhead_6', 'overhead_6_leader_on_top', 'overhead_6']
    """
    found: list[Form] = []
    for number, row in FORMULAS.items():
        if n < row.least or n % row.divisor or election not in (None, row.election):
            continue
        name, source = f"overhead_{number}", f"{OVERHEAD}, formula ({number})"
        who = f"({row.election}, detector {row.detector}, {row.crashed} crashed)"
        (formula, value), (claim, claimed) = row.corrected, row.printed
        found.append(Form(name, value(n), f"{formula} {who}", source, COUNTED))
        on_top = _on_top(row, n)
        if on_top is not None:
            formula = f"{claim} (the same with the leader on top of the crashed)"
            found.append(Form(f"{name}_leader_on_top", on_top, formula, source, COUNTED))
        found.append(Form(name, claimed(n), f"{claim} {who}", source, row.verdict, True))
    return found + (_case_4_forms(n, election) if n >= 4 and n % 2 == 0 else [])


def _case_4_forms(n: int, election: str | None) -> list[Form]:
    source = f"{OVERHEAD}, case (IV)"
    who = "detector N[n/2], n/2 crashed"
    claimed = overhead.printed_case_4(n)
    rows = {
        "bully": ("case_4_bully", overhead.corrected_case_4_bully(n), "n/2", "right"),
        "bully-map": ("case_4_map", overhead.corrected_case_4_map(n), "n/2 - 1", SKIPPED),
    }
    found: list[Form] = []
    for name, value, formula, verdict in (
        row for key, row in rows.items() if election in (None, key)
    ):
        found.append(Form(name, value, f"{formula} ({who})", source, COUNTED))
        found.append(Form(name, claimed, f"n/2 ({who})", source, verdict, True))
    return found


def _on_top(row: _Formula, n: int) -> int | None:
    """Return no value for (6) in a group of 4: with the leader on top only member 1 is left."""
    return row.on_top(n) if row.on_top and (n >= 6 or row.crashed != "n/2") else None


def _cell(n: int, election: str, detector: str, elections: str) -> tuple[str, int, int, str]:
    """Return formula, printed value, counted value and verdict of one cell."""
    number = CELL_FORMULAS.get((election, detector, elections))
    if number is not None:
        row = FORMULAS[number]
        return f"({number})", row.printed[1](n), row.corrected[1](n), row.verdict
    if elections == "1":
        return "case I: 1 + 1", 2, 2, "right below n-1"
    printed = overhead.printed_case_4(n)
    if election == "bully":
        return "case IV: n/2", printed, overhead.corrected_case_4_bully(n), "right"
    counted = overhead.corrected_case_4_map(n)
    return "case IV: n/2", printed, counted, SKIPPED


def _check(n: int) -> None:
    require(n >= 4, f"n must be at least 4 for the cases of the table, not {n}")
    require(n % 4 == 0, f"n must be divisible by 4, since a quarter of the group dies, not {n}")
