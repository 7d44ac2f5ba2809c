"""OpenTelemetry: counters and events of leadership, with the real API and SDK."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from opentelemetry._logs import set_logger_provider
from opentelemetry.metrics import set_meter_provider
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from hustings.net import telemetry
from hustings.testing import Group

READER = InMemoryMetricReader()
_UNTYPED: Any = InMemoryLogRecordExporter
EXPORTER = _UNTYPED()
LOGS = LoggerProvider()
LOGS.add_log_record_processor(SimpleLogRecordProcessor(EXPORTER))
set_meter_provider(MeterProvider(metric_readers=[READER]))
set_logger_provider(LOGS)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    EXPORTER.clear()
    yield
    telemetry._counter.cache_clear()
    telemetry._logger.cache_clear()


def counted(name: str, group: str) -> dict[tuple[str, str], int]:
    """The counts of one group, by member and reason."""
    found: dict[tuple[str, str], int] = {}
    data = READER.get_metrics_data()
    metrics = (
        []
        if data is None
        else [
            metric
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        ]
    )
    for metric in metrics:
        if metric.name == name:
            for point in metric.data.data_points:
                labels: Mapping[str, object] = dict(point.attributes or {})
                if labels["hustings.group"] == group:
                    key = (str(labels["hustings.member"]), str(labels.get("hustings.reason", "")))
                    found[key] = int(getattr(point, "value", 0))
    return found


def test_elections_and_losses_are_counted_and_told() -> None:
    with Group(seed=5, group="otel", guard="memory://otel") as group:
        for name in ("a", "b", "c"):
            group.join(name)
        first = group.settle(steady=2.0)
        second = next(name for name in group.up if name != first)
        token = group.member(first).state.token
        group.run(group.member(first).transfer(second))
        group.settle(steady=1.0)
        assert counted("hustings.leader.elected", "otel") == {(first, ""): 1, (second, ""): 1}
        assert counted("hustings.leader.lost", "otel") == {(first, "handed-over"): 1}
    events = [each.log_record for each in EXPORTER.get_finished_logs()]
    named = [(each.event_name, dict(each.attributes or {})["hustings.member"]) for each in events]
    assert named[:3] in (
        [
            ("hustings.leader.elected", first),
            ("hustings.leader.lost", first),
            ("hustings.leader.elected", second),
        ],
    )
    told = dict(events[1].attributes or {})
    assert told["hustings.token"] == token
    assert told["hustings.reason"] == "handed-over"


def test_an_error_in_telemetry_harms_no_member(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError("the collector is gone")

    monkeypatch.setattr(telemetry, "_counter", broken)
    monkeypatch.setattr(telemetry, "_logger", broken)
    monkeypatch.setattr(broken, "cache_clear", lambda: None, raising=False)
    with Group(seed=5) as group:
        group.join("a")
        assert group.settle() == "a"


ALONE = """
import asyncio, sys, hustings

async def alone():
    async with hustings.join("group", name="a") as member:
        async with member.campaign():
            print("opentelemetry" in sys.modules)

asyncio.run(alone())
"""


def test_a_program_without_it_does_not_load_it() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
