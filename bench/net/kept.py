"""The latest measurements by phase: the samples behind the tables, so a phase can be repeated.

A whole run takes about an hour, and a disturbed phase of it should not cost the others.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.net.calm import Calm
from bench.net.campaign import Effort, Results
from bench.net.measures import Resources, Samples

MEASURED = Path(__file__).with_name("measured.json")


def plain(results: Results) -> dict[str, Any]:
    """Results for JSON, which has no tuples for keys."""
    tables: dict[str, Mapping[tuple[str, int], Samples | Resources]] = {
        "failover": results.failover,
        "resources": results.resources,
    }
    by_size = {
        name: [
            {"contender": label, "n": n, **dataclasses.asdict(found)}
            for (label, n), found in rows.items()
        ]
        for name, rows in tables.items()
    }
    flat = [
        {"contender": who, "n": n, "packets": rates} for (who, n), rates in results.flat.items()
    ]
    return {
        **by_size,
        "flat": flat,
        "calm": [dataclasses.asdict(item) for item in results.calm],
        "thousand": dataclasses.asdict(results.thousand),
        "round_trips_ms": results.round_trips_ms,
        "effort": dataclasses.asdict(results.effort),
        "sizes": list(results.sizes),
        "own_network": results.own_network,
        "failures": results.failures,
    }


def revived(data: Mapping[str, Any]) -> Results:
    """The inverse of `plain`."""
    results = Results(Effort(**data["effort"]), tuple(data["sizes"]), data["own_network"])
    for row in data["failover"]:
        key, values = _split(row)
        results.failover[key] = Samples(**values)
    for row in data["resources"]:
        key, values = _split(row)
        results.resources[key] = Resources(**values)
    for row in data["flat"]:
        key, values = _split(row)
        results.flat[key] = values["packets"]
    results.calm = [Calm(**row) for row in data["calm"]]
    results.thousand = Samples(**data["thousand"])
    results.round_trips_ms = data["round_trips_ms"]
    results.failures = data["failures"]
    return results


def _split(row: Mapping[str, Any]) -> tuple[tuple[str, int], dict[str, Any]]:
    rest = {name: value for name, value in row.items() if name not in ("contender", "n")}
    return (row["contender"], row["n"]), rest


def keep(phase: str, on: str, results: Results, path: Path = MEASURED) -> None:
    """Replace a phase's last results by these, measured `on` a day."""
    data = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    data[phase] = {"on": on, **plain(results)}
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def kept(path: Path = MEASURED) -> tuple[Results | None, dict[str, str]]:
    """Return all kept results as one, and the day of each phase."""
    if not path.exists():
        return None, {}
    data = json.loads(path.read_text(encoding="utf-8"))
    parts = {phase: revived(part) for phase, part in data.items()}
    if not parts:
        return None, {}
    first = parts.get("failover") or next(iter(parts.values()))
    whole = Results(first.effort, first.sizes, all(part.own_network for part in parts.values()))
    for part in parts.values():
        whole.failover |= part.failover
        whole.resources |= part.resources
        whole.flat |= part.flat
        whole.calm += part.calm
        whole.round_trips_ms += part.round_trips_ms
        whole.failures += part.failures
    if "thousand" in parts:
        whole.thousand = parts["thousand"].thousand
    return whole, {phase: part["on"] for phase, part in data.items()}
