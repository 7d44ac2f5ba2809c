"""Each result is a small paper: what, parameters, source, verdict, and an example that runs."""

from __future__ import annotations

import doctest
import inspect
from types import FunctionType, ModuleType

import pytest

from hustings.lab.closed_forms import (
    broadcast,
    bully,
    bully_assistant,
    bully_grant,
    bully_group,
    bully_map,
    counted,
    form,
    heartbeat,
    overhead,
    overhead_table,
    page,
    quorum,
    reading,
    registry,
    ring,
    stable,
)
from hustings.lab.closed_forms.announce import (
    consistency,
    delay,
    departure,
    elections,
    extensions,
    joiner,
    laws,
    messages,
    numerics,
    rounds,
    setting,
    suppression,
    survival,
    uncorrelated,
)

ANNOUNCE = (
    consistency,
    delay,
    departure,
    extensions,
    joiner,
    messages,
    rounds,
    suppression,
    survival,
    uncorrelated,
)
HELPERS = (
    counted,
    elections,
    form,
    laws,
    numerics,
    overhead_table,
    page,
    reading,
    registry,
    setting,
)

RESULTS = (
    broadcast,
    bully,
    bully_assistant,
    bully_grant,
    bully_group,
    bully_map,
    heartbeat,
    overhead,
    quorum,
    ring,
    stable,
    *ANNOUNCE,
)


def functions(module: ModuleType) -> list[FunctionType]:
    return [
        thing
        for name, thing in vars(module).items()
        if inspect.isfunction(thing)
        and thing.__module__ == module.__name__
        and not name.startswith("_")
    ]


@pytest.mark.parametrize(
    "function",
    [f for module in RESULTS for f in functions(module)],
    ids=lambda f: f"{f.__module__.rpartition('.')[2]}.{f.__name__}",
)
def test_a_result_is_a_small_paper(function: FunctionType) -> None:
    text = inspect.getdoc(function) or ""
    assert ">>>" in text
    if function.__name__.endswith("_closed") or function.__name__ in ("forms", "evaluate"):
        return  # they restate results that have their own
    assert "Source:" in text
    assert "Verdict:" in text or function.__name__.endswith("counts")
    assert "Parameters:" in text or not inspect.signature(function).parameters


@pytest.mark.parametrize("module", [*RESULTS, *HELPERS])
def test_the_examples_run(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module)
    assert failed == 0
    assert tried > 0
