"""The planted bugs of `make mutants`: each is another program, and each is tried for real."""

from __future__ import annotations

import ast
import glob
import textwrap
import tomllib
from pathlib import Path

import pytest

from scripts.mutation.operators import mutants_of
from scripts.mutation.report import UNEXPLAINED, Part, page
from scripts.mutation.trial import functions_in, plant

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = textwrap.dedent(
    '''
    def held(now, until, margin=1.0):
        """Whether a lease is held; 3 stands here for nothing."""
        if now + margin < until and not until < 0:
            return True
        raise ValueError(f"{now + 1} is late")
    '''
)


def test_every_kind_of_bug_is_planted_where_it_can_be() -> None:
    found = [f"{each.before} -> {each.after}" for each in mutants_of("sample.py", SAMPLE)]
    assert found == [
        "0 -> 1",
        "if now + margin < until and (not until < 0): -> if False:",
        "if now + margin < until and (not until < 0): -> if True:",
        "not until < 0 -> until < 0",
        "now + margin -> now - margin",
        "now + margin < until -> now + margin <= until",
        "now + margin < until and (not until < 0) -> now + margin < until or not until < 0",
        "until < 0 -> until <= 0",
        "True -> False",
        "return True -> return None",
        "raise ValueError(f'{now + 1} is late') -> pass",
    ]


def test_each_mutant_differs_from_the_program_and_from_the_others() -> None:
    path = "src/hustings/net/filter.py"
    source = (ROOT / path).read_text()
    mutants = mutants_of(path, source)
    planted = [ast.unparse(each.planted()) for each in mutants]
    assert len(mutants) > 50
    assert len({each.key for each in mutants}) == len(mutants)
    assert ast.unparse(ast.parse(source)) not in planted
    assert len(set(planted)) == len(planted)
    assert ast.unparse(mutants[0].tree) == ast.unparse(ast.parse(source))  # left as it was


def lease_is_held(now: float, until: float) -> bool:
    return now < until


def test_a_planted_bug_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    path = __file__
    (bug,) = [
        each
        for each in mutants_of(path, Path(path).read_text())
        if each.function == "lease_is_held" and each.after == "now <= until"
    ]
    monkeypatch.setattr(lease_is_held, "__code__", lease_is_held.__code__)  # put back afterwards
    assert not lease_is_held(1.0, 1.0)
    assert plant(bug, functions_in({path}))
    assert lease_is_held(1.0, 1.0)


def test_the_plan_names_modules_and_tests_that_are_there() -> None:
    plan = tomllib.loads((ROOT / "scripts/mutation/plan.toml").read_text())
    for part in plan.values():
        for pattern in part["modules"]:
            assert glob.glob(pattern, root_dir=ROOT), pattern
        for path in part["tests"]:
            assert (ROOT / path.partition("::")[0]).exists(), path


def test_the_page_tells_every_survivor_and_its_reason() -> None:
    part = Part(all=9, tried=4, killed=2, survivors={"a -> b": "survived", "c -> d": "uncalled"})
    shown = page({"wire": part}, {"a -> b": "the same program"})
    assert "| wire | 9 | 4 | 2 | 0 | 50.0% | `make mutants PARTS=wire` |" in shown
    assert "- `a -> b` (survived): the same program" in shown
    assert f"- `c -> d` (uncalled): {UNEXPLAINED}" in shown


def test_the_page_tells_what_was_tried_and_how_to_try_it_again() -> None:
    part = Part(all=90, tried=20, killed=19, survivors={}, slow=2, share=0.2, seed=3)
    shown = page({"wire": part}, {}, older={"wire"})
    assert "| wire (older code) | 90 | 20 | 19 | 2 | 95.0% |" in shown
    assert "`make mutants PARTS=wire SHARE=0.2 SEED=3`" in shown


class Shelf:
    @property
    def label(self) -> str:
        return "a"

    @label.setter
    def label(self, text: str) -> None:
        raise ValueError(text)


def test_of_functions_with_one_name_the_one_around_the_bug_gets_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (bug,) = [
        each
        for each in mutants_of(__file__, Path(__file__).read_text())
        if each.function == "Shelf.label" and each.after == "pass"
    ]
    setter = vars(Shelf)["label"].fset
    monkeypatch.setattr(setter, "__code__", setter.__code__)
    with pytest.raises(ValueError, match="b"):
        Shelf().label = "b"
    assert plant(bug, functions_in({__file__}))
    Shelf().label = "b"
    assert Shelf().label == "a"
