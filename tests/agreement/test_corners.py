"""Corners of the parameters, where witnesses part first: events, kernels, closed forms, in pairs.

Groups of one, two and three; no loss, almost all lost, all lost; no delay and one above T_A; no
sleep; leaders that are given up at once or as good as never. Few runs suffice: what goes wrong in a
corner goes wrong in every run. All comparisons of a test are one family (judging.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import sqrt

import pytest

from hustings.core.errors import BadInput
from hustings.lab.byzantine.large import check
from hustings.lab.closed_forms.registry import evaluate
from hustings.lab.kernels.announce.play import play
from hustings.lab.kernels.committee.parameters import memory
from hustings.protocols.committee.settings import CommitteeConfig
from hustings.sim.play import play as play_events
from hustings.sim.world import Ended
from tests.agreement.announce.cells import Cell, experiment, vigil
from tests.agreement.announce.cells import samples as played
from tests.agreement.announce.fastness import Columns, by_events, compare, known, setting
from tests.agreement.announce.judging import Sample, judge, sample, score

ALGORITHMS = ("sup", "al", "le-a", "le-s", "le-m")
LOSSES = (("none", 0.0), ("correlated", 0.5), ("uncorrelated", 0.99), ("correlated", 0.99))
DELAYS = (0.0, 0.1, 2.5)
SETTINGS: tuple[dict[str, object], ...] = (
    {},
    {"T_S": 0.0},
    {"T_L": 1e5},
    {"T_L": 0.4},
    {"law": "exponential", "lam": 500.0},
)
KERNEL = 200  # runs
Scores = dict[object, float]


def corners(algorithm: str) -> Iterator[tuple[Cell, dict[str, object]]]:
    for n, (model, loss), delay, given in product((1, 2, 3), LOSSES, DELAYS, SETTINGS):
        sleeps = algorithm not in ("al", "le-a")
        if not sleeps and given.keys() & {"T_S", "law"}:
            continue
        if (algorithm == "sup" and "T_L" in given) or (given and loss > 0.9):
            continue
        if "law" in given and delay != 0.1:
            continue  # its closed forms take long
        yield Cell(algorithm, n, model, loss, delay), given


def by_kernel(cell: Cell, given: dict[str, object]) -> Columns:
    found = play(setting(cell, given), 3, 0, KERNEL)
    assert not found.cut.any()
    return found.metrics


def by_forms(cell: Cell, given: dict[str, object]) -> dict[str, float]:
    """What theory says of a start, where it does not say that it leaves T_L out of account."""
    texts = {"N": cell.members, "l": cell.loss, "loss_model": cell.model, "Delta": cell.delta}
    known = {"T_L": "inf"} if cell.algorithm.startswith("le-") else {}
    own = {key: value for key, value in given.items() if known or key != "T_L"}
    found = evaluate(cell.algorithm, {k: str(v) for k, v in (texts | known | own).items()})
    return {
        form.name: float(form.value)
        for form in found.forms
        if not form.printed and "for T_L = inf" not in form.verdict
    }


def beside(kernel: Columns, forms: dict[str, float]) -> Scores:
    scores: Scores = {}
    for name in sorted(forms.keys() & kernel.keys()):
        column = known(kernel[name])
        assert len(column) == KERNEL, name
        scores[name, "form"] = score(sample(column), forms[name])
    return scores


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_starts_of_tiny_groups(algorithm: str) -> None:
    scores: Scores = {}
    for cell, given in corners(algorithm):
        kernel = by_kernel(cell, given)
        events = by_events(cell, 3 if cell.loss > 0.9 else 8, given)
        for part, z in (compare(kernel, events) | beside(kernel, by_forms(cell, given))).items():
            scores[cell, *given.items(), part] = z
    assert len(scores) > 1000
    judge(scores)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_loss_of_one_is_for_groups_of_one(algorithm: str) -> None:
    cell = Cell(algorithm, 1, "uncorrelated", 1.0)
    judge(compare(by_kernel(cell, {}), by_events(cell, 20)))
    with pytest.raises(BadInput, match=r"l must lie in \[0, 1\), not 1"):
        evaluate(algorithm, {"N": "3", "l": "1"})
    if algorithm != "sup":
        with pytest.raises(BadInput, match="no member ever hears the leader"):
            setting(Cell(algorithm, 3, "uncorrelated", 1.0))


@pytest.mark.parametrize("algorithm", ["le-a", "le-s", "le-m", "al"])
def test_listeners_that_wait_for_no_second_announcement(algorithm: str) -> None:
    """T_L < T_A: without loss 1 - T_L/T_A of the time, T_A - T_L at a time (5.3.2.1, 5.3.4)."""
    scores: Scores = {}
    for model, loss in (("none", 0.0), ("correlated", 0.4), ("uncorrelated", 0.4)):
        for T_L in (0.3, 0.75):
            found = played(vigil(Cell(algorithm, 4, model, loss), T_L, 60.0), 20)
            texts = {"N": "4", "l": str(loss), "loss_model": model, "T_L": str(T_L)}
            name = "le-a" if algorithm == "al" else algorithm
            forms = evaluate(name, texts).corrected
            share, lasting = forms["inconsistent_fraction"], forms["inconsistent_duration"]
            if loss == 0:
                assert (share, lasting) == pytest.approx((1 - T_L, 1 - T_L))
            one = (model, T_L)
            # What is counted begins in mid-period, and the last discord may be cut short.
            scores[*one, "share"] = score(found["inconsistent_fraction"], share, slack=0.02)
            scores[*one, "at a time"] = score(_steady(found), lasting, slack=0.06 * lasting)
    judge(scores)


def _steady(found: dict[str, Sample]) -> Sample:
    return found["inconsistency_duration"]


def test_where_theory_gives_no_leader_up_it_says_so() -> None:
    """At N = 50, l = .7, correlated: 23.84 messages with T_L = 3, and 21.66 with T_L = inf."""
    given = {"N": "50", "l": "0.7", "loss_model": "correlated"}
    for T_L, says in (("3", True), ("inf", False)):
        found = evaluate("le-s", given | {"T_L": T_L})
        (form,) = (form for form in found.forms if form.name == "num_msgs")
        assert ("for T_L = inf" in form.verdict) is says
        assert any("T_L = 3 out of account" in note for note in found.notes) is says
        assert form.value == pytest.approx(21.66, abs=0.005)
    finite = play(setting(Cell("le-s", 50, "correlated", 0.7), {"T_L": 3.0}), 1, 0, 4000)
    assert finite.metrics["num_msgs"].mean() == pytest.approx(23.84, abs=0.5)


PROBABILITIES = ("0", "0.99", "1")


@pytest.mark.parametrize("N", ["1", "2", "30"])
def test_closed_forms_of_large_groups_at_the_ends(N: str) -> None:
    """Certain loss, certain crashes, tiny views and K > N end in no exception."""
    for K, view, (unicast, multicast, fail) in product(
        ("0.5", "7"), ("1e-6", "1"), product(PROBABILITIES, repeat=3)
    ):
        around = {"p_ucastl": unicast, "p_mcastl": multicast, "p_fail": fail}
        found = evaluate("probabilistic", {"N": N, "K": K, "view_prob": view, **around})
        assert all(form.value >= -1e-9 for form in found.forms if not form.printed), around


@pytest.mark.parametrize(
    "name, key", [("le-s", "l"), ("probabilistic", "p_fail"), ("committee", "b")]
)
def test_numbers_with_an_exponent(name: str, key: str) -> None:
    plain = evaluate(name, {key: "0.001"})
    for text in ("1e-3", "1E-3", "+.001", " 0.1e-2 "):
        assert evaluate(name, {key: text}).corrected == plain.corrected


def test_counts_with_an_exponent() -> None:
    for name, key in (("le-s", "N"), ("probabilistic", "N"), ("committee", "n"), ("bully", "n")):
        assert evaluate(name, {key: "1e2"}) == evaluate(name, {key: "100"})
    with pytest.raises(BadInput, match="l must lie in"):
        evaluate("le-s", {"l": "-1e-3"})


def test_one_committee_of_a_large_group_needs_little_memory() -> None:
    """The committee's size counts, not the group's: 10.5 GB were reckoned for 128 members."""
    for endgame in ("full", "small", "baton", "feige"):
        config = CommitteeConfig.parse({"profile": "single", "endgame": endgame})
        assert memory(check(config, 100_000)) < 300_000_000


def test_members_that_drown_each_other_for_ever_are_given_up() -> None:
    """Two that wake within a delay collide in every period; both engines end such a run alike."""
    cell = Cell("le-s", 3, "uncorrelated", 0.0, 0.1, collision=1.0)
    kernel = play(setting(cell), 1, 0, 400)
    share = float(kernel.cut.mean())
    trial = replace(experiment(cell), max_events=2_000_000)
    ends = [play_events(trial, run).ended for run in range(6)]
    assert set(ends) == {Ended.STOPPED, Ended.MAX_ROUNDS}
    assert abs(ends.count(Ended.MAX_ROUNDS) / 6 - share) < 4 * sqrt(share * (1 - share) / 6)
