"""The kernel against every fate of groups of two, three and four.

Every value of every metric has an exact probability; its frequency in a sample is binomial. All
comparisons of this file are one family: with all of them right one fails by chance with probability
`LEVEL` (judging.py).
"""

from __future__ import annotations

import importlib.util
import sys
from math import inf, isnan, sqrt
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from hustings.lab.kernels.probabilistic import play as probabilistic
from hustings.lab.kernels.probabilistic import relay_phase, rounds
from hustings.lab.kernels.probabilistic.parameters import ProbabilisticParameters
from hustings.lab.kernels.probabilistic.play import play
from hustings.lab.kernels.probabilistic.rules import METRICS
from tests.agreement.announce.judging import bound, judge
from tests.agreement.probabilistic.enumeration import Case, law

RUNS = 20_000
FAMILY = 2_000  # more than there are comparisons here
RARE = 5.0  # expected in all runs: below, a frequency is not nearly normal

CASES = {
    "two, all by chance": Case(2, (1.0, inf), 0.5, 0.3, 0.4),
    "two, thinned": Case(2, (1.0, 1.0, inf), 1.0, 0.25, 0.5, "hash"),
    "two, one period to relay": Case(2, (2.0,), 0.6, 0.3, 0.2, T_2=1.5),
    "two, joining": Case(2, (1.0, 2.0), 0.5, 0.2, 0.5, join_on_contact=True),
    "three, views": Case(3, (2.0, inf), 0.5),
    "three, unicasts": Case(3, (2.0,), 0.7, 0.3),
    "three, every second unicast": Case(3, (inf,), 0.3, 0.5),
    "three, multicasts": Case(3, (1.0, 2.0), 1.0, 0.0, 0.4),
    "three, multicasts and views": Case(3, (1.5,), 0.5, 0.0, 0.3),
    "three, thinned": Case(3, (1.0, 2.0), 1.0, 0.0, 0.3, "hash"),
    "three, all by chance": Case(3, (2.0,), 0.5, 0.3, 0.4),
    "three, joining": Case(3, (1.5,), 0.6, 0.2, 0.5, join_on_contact=True),
    "three, views and two rounds": Case(3, (1.0, 2.0), 0.5),
    "four, views": Case(4, (2.0,), 0.5),
    "four, multicasts": Case(4, (2.0,), 1.0, 0.0, 0.25),
    "four, a cap on K": Case(4, (1.0, 2.0, 2.0), 1.0),
}


def ballot(case: Case) -> ProbabilisticParameters:
    return ProbabilisticParameters(
        members=case.members,
        sizes=case.sizes,
        view_prob=case.view_prob,
        p_ucastl=case.p_ucastl,
        p_mcastl=case.p_mcastl,
        thinning=case.thinning,
        join_on_contact=case.join_on_contact,
        T_2=case.T_2,
    )


def frequencies(name: str, runs: int = RUNS) -> dict[object, float]:
    """|z| of the frequency of every value."""
    case = CASES[name]
    exact, found = law(case), play(ballot(case), 21, 0, runs).metrics
    assert set(exact) == set(METRICS) == set(found)
    result: dict[object, float] = {}
    for metric, chances in exact.items():
        assert sum(chances.values()) == pytest.approx(1.0)
        values, times_each = np.unique(found[metric].round(9), return_counts=True)
        seen: dict[float | None, int] = {
            None if isnan(value) else value: int(times)
            for value, times in zip(values.tolist(), times_each, strict=True)
        }
        rest = runs
        for value, p in chances.items():
            times = seen.get(None if value is None else round(value, 9), 0)
            rest -= times
            if p > 1.0 - 1e-12:
                assert times == runs, (name, metric, value)
            elif runs * min(p, 1 - p) > RARE:
                result[name, metric, value] = abs(times - runs * p) / sqrt(runs * p * (1 - p))
            else:
                assert abs(times - runs * p) < 6 * RARE, (name, metric, value, times)
        assert rest == 0, (name, metric, seen, chances)  # nothing that cannot be
    return result


@pytest.mark.parametrize("name", CASES)
def test_every_value_comes_as_often_as_it_must(name: str) -> None:
    judge(frequencies(name), FAMILY)


def test_two_members_by_hand() -> None:
    """K = 1 of two, nothing lost: nobody relays with probability 1/4, and then both do."""
    exact = law(Case(2, (1.0, inf)))
    assert exact["rounds"] == pytest.approx({1.0: 0.75, 2.0: 0.25})
    assert exact["strong"] == {1.0: pytest.approx(1.0)}
    # Both relay in the first round or in the second: each tells the other once.
    assert exact["ucasts"] == pytest.approx({0.0: 0.5, 2.0: 0.5})
    assert exact["leader"] == {2.0: pytest.approx(1.0)}


# A kernel that is wrong

COIN = "        if coin(run.stream, p_ucastl):\n"
REUSED = "        lost = coin(run.stream, p_ucastl) if sent == 1 else lost\n        if lost:\n"
FIRST = "    sent = 0\n"
COMPILED = "from hustings.lab.kernels.compiling import compiled"
ONCE = "from numba import njit as compiled"  # nothing is kept of it
CALLERS = ("_tell", "relay", "_round", "play", "play_runs")  # of the coin, and of each other
PHASE = "from hustings.lab.kernels.probabilistic.relay_phase import"


def changed(folder: Path, name: str, whole: ModuleType, *changes: tuple[str, str]) -> ModuleType:
    """A module with other words in it, under a name of its own."""
    assert whole.__file__ is not None
    text = Path(whole.__file__).read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    for own, each in vars(whole).items():
        if hasattr(each, "py_func") and own not in CALLERS:
            setattr(module, own, each)  # which is compiled
    return module


def test_a_coin_that_is_used_twice_is_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One coin for all whom a member tells at once: what the kernel passes, this does not."""
    case = "three, every second unicast"
    judge(frequencies(case, 10 * RUNS), FAMILY)
    mended = (FIRST, FIRST + "    lost = False\n")
    changed(tmp_path, "broken_phase", relay_phase, (COIN, REUSED), mended, (COMPILED, ONCE))
    try:
        phase = (PHASE, "from broken_phase import")
        wrong = changed(tmp_path, "broken_rounds", rounds, phase, (COMPILED, ONCE))
        monkeypatch.setattr(probabilistic, "play_runs", wrong.play_runs)
        found = frequencies(case, 10 * RUNS)
    finally:
        for name in ("broken_phase", "broken_rounds"):
            sys.modules.pop(name, None)
    beyond = [name for name, z in found.items() if z > bound(FAMILY)]
    assert any(isinstance(name, tuple) and "ucasts" in name for name in beyond)
