"""The compiled kernels against every other witness: events, closed forms, and every fate.

All comparisons of one test are one family: with all of them right it fails by chance with
probability `LEVEL` (judging.py). A kernel that uses one coin for two receivers must fail them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from fractions import Fraction
from math import sqrt
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hustings.lab.closed_forms.announce import delay, messages, suppression
from hustings.lab.closed_forms.announce.laws import Law
from hustings.lab.kernels.announce import race
from tests.agreement.announce import enumeration
from tests.agreement.announce.cells import GRID, NOTHING, Cell, forms
from tests.agreement.announce.fastness import by_events, by_kernel, compare, known
from tests.agreement.announce.judging import bound, judge, sample, score

ALGORITHMS = ("sup", "al", "le-a", "le-s", "le-m")
Scores = dict[object, float]

# Events

ADJUSTED = (("uncorrelated", 0.3, 0.05), ("correlated", 0.3, 0.05))
MODELS = (("none", 0.0, 0.0), ("correlated", 0.4, 0.0), ("uncorrelated", 0.4, 0.0), *ADJUSTED)
OURS, THEIRS = 1500, 30  # runs
RUNS = 5_000  # where nothing is played but kernels


def beside_events(cell: Cell, settings: Mapping[str, object], runs: int = THEIRS) -> Scores:
    found = compare(by_kernel(cell, OURS, settings), by_events(cell, runs, settings))
    return {(cell, *settings.items(), *part): z for part, z in _pairs(found)}


def _pairs(found: Scores) -> list[tuple[tuple[object, ...], float]]:
    return [(name if isinstance(name, tuple) else (name,), z) for name, z in found.items()]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_same_laws_as_events(algorithm: str) -> None:
    scores: Scores = {}
    for members, delta in ((2, 1.5), (7, 0.1)):
        for model, loss, collision in MODELS:
            cell = Cell(algorithm, members, model, loss, delta, collision)
            scores |= beside_events(cell, NOTHING)
    judge(scores)


@pytest.mark.parametrize("algorithm", ["al", "le-a", "le-s", "le-m"])
def test_the_same_laws_where_leaders_expire(algorithm: str) -> None:
    scores: Scores = {}
    for model, loss, collision in MODELS[2:4]:
        for T_L in (1.0, 2.5):
            cell = Cell(algorithm, 5, model, loss, 0.1, collision)
            scores |= beside_events(cell, {"T_L": T_L})
    judge(scores)


OTHERWISE: list[tuple[str, dict[str, object]]] = [
    ("le-s", {"law": "exponential", "lam": 5.0}),
    ("le-m", {"law": "exponential", "lam": 8.0}),
    ("sup", {"law": "exponential", "lam": 5.0}),
    ("le-s", {"T_S": 2.5, "T_A": 0.75}),
    ("le-m", {"key": "relative", "T_L": 1.5}),
    ("le-m", {"key": "relative"}),
    ("le-s", {"T_S": 0.0}),
    ("le-m", {"T_S": 0.0, "T_L": 2.0}),
]


def test_the_same_laws_with_other_settings() -> None:
    scores: Scores = {}
    for algorithm, settings in OTHERWISE:
        scores |= beside_events(Cell(algorithm, 6, "uncorrelated", 0.4, 0.2), settings)
    judge(scores)


@pytest.mark.soak
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_same_laws_with_many_more_runs(algorithm: str) -> None:
    scores: Scores = {}
    for members, delta in ((2, 1.5), (5, 0.1), (12, 0.1), (40, 0.1)):
        for model, loss, collision in MODELS:
            cell = Cell(algorithm, members, model, loss, delta, collision)
            scores |= beside_events(cell, NOTHING, 2000)
            if algorithm != "sup" and members == 12:
                scores |= beside_events(cell, {"T_L": 2.0}, 1000)
    judge(scores)


# Closed forms


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_closed_forms_over_the_whole_grid(algorithm: str) -> None:
    scores: Scores = {}
    for members in (2, 5, 20, 100, 500):
        for model, loss in GRID:
            cell = Cell(algorithm, members, model, loss)
            found = by_kernel(cell, 600)
            for name, value in forms(cell).items():
                column = known(found[name])
                assert len(column) == 600
                scores[cell, name] = score(sample(column), value)
    judge(scores)


@pytest.mark.parametrize("algorithm", ["le-s", "le-m", "sup"])
def test_first_announcements_without_delay(algorithm: str) -> None:
    """The recurrences for uncorrelated loss."""
    scores: Scores = {}
    for members in (5, 50, 500):
        for loss in (0.1, 0.4, 0.7):
            cell = Cell(algorithm, members, "uncorrelated", loss, delta=0.0)
            found = by_kernel(cell, 1000)
            for name, value in forms(cell).items():
                column = known(found[name])
                scores[cell, name] = score(sample(column), value)
    judge(scores)


@pytest.mark.parametrize(
    "given",
    [{"law": "exponential", "lam": 3.0}, {"law": "exponential", "lam": 8.0}, {"T_S": 0.8}],
    ids=["exponential 3", "exponential 8", "uniform 0.8"],
)
def test_closed_forms_of_other_sleeps(given: dict[str, Any]) -> None:
    """Exponential ones, and uniform ones over another interval."""
    law = Law(**{name: value for name, value in given.items() if name != "law"})
    scores: Scores = {}
    for members in (2, 50):
        for model, loss in (("none", 0.0), ("correlated", 0.4), ("uncorrelated", 0.4)):
            for algorithm in ("sup", "le-s", "le-m"):
                cell = Cell(algorithm, members, model, loss)
                found = by_kernel(cell, 800, given)
                for name, value in sleeping_forms(cell, law).items():
                    column = known(found[name])
                    scores[cell, name] = score(sample(column), value)
    judge(scores)


def sleeping_forms(cell: Cell, law: Law) -> dict[str, float]:
    """What depends on when members wake."""
    n, loss, model, D = cell.members, cell.loss, cell.model, cell.delta
    found = {}
    if cell.algorithm == "sup":
        if cell.as_one:
            found["num_msgs"] = suppression.messages(n, loss, law, D=D)
            found["tmax"] = suppression.tmax(n, loss, law, D=D)
            found["t_halt"] = suppression.halt(n, loss, law, D=D)
    elif cell.algorithm == "le-s":
        found["tmax"] = delay.tmax(n, loss, model, law)
        if cell.as_one:
            found["first_round"] = messages.first_round(n, loss, law, D=D)
            found["num_msgs"] = messages.total(n, loss, law, D=D)
            found["sent_by_tmax"] = messages.sent_by_tmax(n, loss, law, D=D)
    else:
        found["tmax"] = delay.tmax_first_waker(n, loss, model, law)
        if cell.as_one:
            found["first_round"] = messages.first_round_first_waker(n, loss, law, D=D)
            found["num_msgs"] = messages.total_first_waker(n, loss, law, D=D)
    return found


@pytest.mark.parametrize("members", [10, 100])
def test_how_many_speak_once(members: int) -> None:
    """sup without delay under uncorrelated loss: the whole law is known."""
    scores: Scores = {}
    for loss in (0.1, 0.4, 0.7):
        found = by_kernel(Cell("sup", members, "uncorrelated", loss, 0.0), RUNS)["num_msgs"]
        for count, chance in enumerate(suppression.message_law(members, loss)):
            if RUNS * min(chance, 1 - chance) > 5:
                spread = sqrt(RUNS * chance * (1 - chance))
                scores[loss, count] = abs(int((found == count).sum()) - RUNS * chance) / spread
    judge(scores)


# Every fate of small groups


def beside_enumeration(
    algorithm: str, members: int, model: str, loss: float, runs: int = RUNS
) -> Scores:
    # The enumeration allows any delay below T_A where all announce at once.
    cell = Cell(algorithm, members, model, loss, 0.3 if algorithm == "le-a" else 0.0)
    exact = enumeration.expected(algorithm, members, Fraction(str(loss)), model)
    found = by_kernel(cell, runs)
    scores: Scores = {}
    for name, value in (
        ("num_msgs", exact.messages),
        ("rounds", exact.rounds),
        ("first_round", exact.first_round),
    ):
        column = known(found[name])
        scores[cell, name] = score(sample(column), float(value))
    return scores


@pytest.mark.parametrize("algorithm", ["le-a", "le-s", "le-m"])
def test_small_groups_against_every_fate(algorithm: str) -> None:
    scores: Scores = {}
    for members in (2, 3, 4):
        for model, loss in GRID:
            scores |= beside_enumeration(algorithm, members, model, loss)
    judge(scores)


@pytest.mark.parametrize("algorithm", ["sup", "le-s", "le-m"])
def test_the_law_of_first_announcements(algorithm: str) -> None:
    """Not only its mean: how often one, two, three or all four speak."""
    scores: Scores = {}
    for model, loss in GRID:
        exact = enumeration.first_round(algorithm, 4, Fraction(str(loss)), model)
        found = by_kernel(Cell(algorithm, 4, model, loss, 0.0), RUNS)["first_round"]
        for count in range(1, 5):
            chance, seen = float(exact.get(count, 0)), int((found == count).sum())
            spread = sqrt(RUNS * chance * (1 - chance))
            if RUNS * min(chance, 1 - chance) > 5:
                scores[model, loss, count] = abs(seen - RUNS * chance) / spread
            else:
                assert abs(seen - RUNS * chance) < 20
    judge(scores)


# A kernel that is wrong

COIN = "lost = below(key, member, bar)"
REUSED = "lost = below(key, member // 2, bar)"
COMPILED = "import borrowed, compiled, inlined\n"
ONCE = "import borrowed\nfrom numba import njit as compiled, njit as inlined\n"  # nothing is kept
CALLERS = ("hear_leader", "arrive", "play_run", "race")  # of the coin, and of each other


def broken(folder: Path) -> ModuleType:
    """The kernel of le-s with one coin for two receivers of the leader's announcements."""
    text = Path(race.__file__).read_text(encoding="utf-8")
    assert text.count(COIN) == text.count(COMPILED) == 1
    path = folder / "broken.py"
    path.write_text(text.replace(COIN, REUSED).replace(COMPILED, ONCE), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("broken", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, whole in vars(race).items():
        if hasattr(whole, "py_func") and name not in CALLERS:
            setattr(module, name, whole)  # which is compiled
    return module


def test_a_coin_that_is_used_twice_is_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By the same comparison, with the same runs, that the kernel passes."""
    whole = beside_enumeration("le-s", 3, "uncorrelated", 0.4)
    judge(whole)
    monkeypatch.setattr(race, "race", broken(tmp_path).race)
    wrong = beside_enumeration("le-s", 3, "uncorrelated", 0.4)
    beyond = {name for (_, name), z in _pairs(wrong) if z > bound(len(wrong))}
    assert "rounds" in beyond
