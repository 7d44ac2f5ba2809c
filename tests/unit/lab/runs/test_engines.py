"""Why an engine was taken, and what does not fit into memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hustings.core.errors import BadInput
from hustings.lab.byzantine.experiment import by_rounds
from hustings.lab.runs import engines
from hustings.lab.runs.engines import AUTO, choose
from hustings.lab.runs.playing import MAX_RUNS
from hustings.protocols.registry import find
from hustings.sim.delay import Fixed
from hustings.sim.experiment import Experiment
from hustings.sim.network import Network

Describe = Callable[[], Experiment]


def le_s() -> Experiment:
    kind = find("le-s")
    settings = kind.Settings.parse({"delta": 0.1, "T_A": 1.2})
    return Experiment(kind, 50, settings, network=Network(Fixed(0.1)))


def committee() -> Experiment:
    kind = find("committee")
    return by_rounds(Experiment(kind, 60, kind.Settings.parse({})), limited=False)


@pytest.mark.parametrize("describe", [le_s, committee])
def test_the_reason_tells_a_bound_from_a_request(describe: Describe) -> None:
    """With a standard error and no number of runs all that is allowed is expected."""
    chosen = choose(describe(), AUTO, MAX_RUNS)
    assert chosen.engine.name == "fast"
    assert chosen.reason is not None
    assert "as many runs as a standard error may take" in chosen.reason
    assert f"{MAX_RUNS:,}" not in chosen.reason
    asked = choose(describe(), AUTO, 30_000)
    assert asked.reason is not None
    assert "30,000 runs" in asked.reason


def test_kernels_on_many_threads_need_memory_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "memory_here", lambda: 1 << 30)
    engines.check_runs("fast", 10**6, 1000, 1)
    engines.check_runs("fast", 10**9, 1000, 256)  # members that are only counted
    with pytest.raises(BadInput) as refused:
        engines.check_runs("fast", 10**6, 1000, 256)
    assert str(refused.value) == (
        "1,000 runs of 1,000,000 members on 256 threads would take about 7.15 GiB of memory, and "
        "this machine has 1 GiB"
    )
