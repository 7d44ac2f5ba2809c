"""The comparison: counts beside formulas, and no formula where none applies."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from hustings.core.choice import parse_choice
from hustings.core.errors import BadInput
from hustings.lab.figures.comparison import METRICS, ComparisonRow, compare
from hustings.protocols.bully import Bully
from hustings.protocols.bully_group import BullyGroup
from hustings.protocols.bully_map_printed import BullyMapPrinted
from hustings.protocols.registry import CATALOGUE, COMPARED, classes
from hustings.protocols.ring import Ring
from hustings.sim.delay import Fixed, Uniform
from hustings.sim.experiment import Experiment
from hustings.sim.faults import Crash
from hustings.sim.loss import Uncorrelated
from hustings.sim.member import Clocks
from hustings.sim.network import Network
from hustings.sim.scenarios import Scenario

CRASH = Scenario("leader-crash", detectors=(1,))


def row(**changes: Any) -> ComparisonRow:
    """The bully's row in a group of 8, or that of a changed experiment."""
    plain = Experiment(Bully, 8, Bully.Settings(), scenario=CRASH)
    (found,) = compare([replace(plain, **changes)])
    return found


def test_a_row_has_every_count_and_every_formula() -> None:
    found = row()
    assert found.protocol == "bully"
    assert list(found.counted) == list(METRICS)
    assert set(found.formula) == set(found.expressions) == set(METRICS)
    assert found.counted["messages"] == found.formula["messages"] == 55
    assert (found.agrees, found.sound, found.ended) == (True, True, "quiescent")


def test_rows_come_in_order() -> None:
    kinds = [kind for kind in classes(CATALOGUE) if not kind.assumptions.announces]
    experiments = [Experiment(kind, 6, kind.Settings(), scenario=CRASH) for kind in kinds]
    assert [one.protocol for one in compare(experiments)] == [kind.about.name for kind in kinds]


def test_a_wrong_count_is_disagreement() -> None:
    found = row()
    for metric in METRICS:
        count = found.counted[metric]
        assert count is not None
        assert replace(found, counted={**found.counted, metric: count + 1}).agrees is False
        assert replace(found, counted={**found.counted, metric: None}).agrees is False


def test_no_formula_is_neither_agreement_nor_disagreement() -> None:
    assert replace(row(), formula={}).agrees is None


def test_a_violated_property_is_unsound() -> None:
    found = row()
    assert replace(found, verdicts={**found.verdicts, "validity": "undecided"}).sound
    assert not replace(found, verdicts={**found.verdicts, "validity": "violated"}).sound


@pytest.mark.parametrize(
    "changes",
    [
        {"choice": parse_choice("lowest-id"), "scenario": Scenario("leader-crash")},
        {"network": Network(Uniform(0.5, 1.0))},
        {"network": Network(Fixed(0.0))},
        {"network": Network(loss=Uncorrelated(0.1))},
        {"network": Network(duplicate=0.5)},
        {"network": Network(reorder=0.5, hold_back=1.0)},
        {"scenario": Scenario("leader-crash", detectors=(1,), extra=(Crash(member=7, at=2.5),))},
        {"scenario": Scenario("leader-crash"), "oracle": 2.0},
        {"view_probability": 0.9},
        {"clocks": Clocks(drift=0.1)},
        {"clocks": Clocks(offset=1.0)},
        {"config": Bully.Settings.parse({"T1": 1.0})},
    ],
    ids="-".join,
)
def test_no_formula_where_the_forms_make_no_statement(changes: dict[str, Any]) -> None:
    found = row(**changes)
    assert (found.formula, found.expressions, found.agrees) == ({}, {}, None)


def test_timers_that_differ_from_delta_are_not_mistaken_for_defaults() -> None:
    """Delta is a bound and the delay may be shorter: the timers are then longer in delays."""
    for delta, delay in ((1.0, 0.5), (2.0, 1.0)):
        config = Bully.Settings.parse({"delta": delta})
        assert row(config=config, network=Network(Fixed(delay))).agrees is not False


def test_the_order_of_detectors_does_not_matter() -> None:
    """Whoever names them: they detect at once."""
    for detectors in ((1, 7), (7, 1), (3, 7, 1)):
        assert row(scenario=Scenario("leader-crash", detectors=detectors)).agrees


def test_detectors_initiators_dead_and_settings_reach_the_forms() -> None:
    both = Scenario("leader-crash", crashed=(6, 8), detectors=(1,), initiators=(3,))
    assert row(scenario=both).formula["election_messages"] == sum(8 - j for j in (1, 2, 3, 4, 5, 7))
    start = Scenario("start", initiators=(2,))
    assert row(scenario=start).formula["leader"] == 8
    group = BullyGroup.Settings.parse({"K": 1, "T2": 6.0})
    found = row(kind=BullyGroup, config=group, scenario=Scenario("leader-crash", (7,), (1,)))
    assert found.formula["election_messages"] == 7
    assert found.agrees


def test_the_printed_pseudo_code_has_counts_but_no_leader() -> None:
    found = row(kind=BullyMapPrinted, config=BullyMapPrinted.Settings())
    assert set(found.formula) == set(METRICS) - {"time", "leader"}
    assert found.agrees
    assert not found.sound


@pytest.mark.parametrize("kind", classes(COMPARED), ids=lambda kind: kind.about.name)
def test_a_row_is_plain_json(kind: Any) -> None:
    found = row(kind=kind, config=kind.Settings()).to_json()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert list(found) == [
        "protocol",
        "counted",
        "formula",
        "expressions",
        "agrees",
        "ended",
        "verdicts",
    ]


def test_an_infinite_timer_is_fine_for_a_ring_and_refused_by_a_bully() -> None:
    assert row(kind=Ring, config=Ring.Settings.parse({"T": "inf"})).agrees
    with pytest.raises(BadInput, match="T2 must be finite"):
        Bully.Settings.parse({"T2": "inf"})
