"""The contenders: hustings and PySyncObj, each at given packets per second and member."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TIGHT = Path(__file__).resolve().parent / "tight.json"
OURS = "bench.net.member"
PEER = "bench.net.peer_pysyncobj"
BUDGETS = (20, 60)
SIZES = (3, 9, 25)
SLOW_S = 5.0

Settings = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Contender:
    """A module that runs members, and their settings, which may depend on the size."""

    label: str
    module: str
    settings: Settings = field(default_factory=dict)
    by_size: Mapping[int, Settings] = field(default_factory=dict)
    budget: int | None = None  # packets per second and member at rest that it may use
    settle_s: float = 1.0  # quiet needed between two disturbances

    @property
    def slow(self) -> bool:
        return self.settle_s > SLOW_S

    def settings_for(self, n: int) -> Settings:
        return {**self.settings, **self.by_size.get(n, {})}


# Nodes that hear nothing from one another for connectionTimeout drop their connection at the next
# word, a request for votes; ordinary followers never speak to one another. With default settings
# that delays elections by seconds, so every other configuration raises it.
NO_TIMEOUT = 3600.0

DEFAULT = Contender("PySyncObj, default", PEER, settle_s=6.0)
RAISED = Contender(
    "PySyncObj, connectionTimeout raised",
    PEER,
    {"connectionTimeout": NO_TIMEOUT},
    settle_s=6.0,
)


def tight_settings(
    period_s: float, least_s: float, spread_s: float, tick_s: float
) -> dict[str, float]:
    """A setting of the search; its rules ask that the least timeout be above three periods."""
    return {
        "appendEntriesPeriod": round(period_s, 5),
        "raftMinTimeout": round(least_s, 5),
        "raftMaxTimeout": round(least_s + spread_s, 5),
        "autoTickPeriod": round(tick_s, 5),
        "connectionTimeout": NO_TIMEOUT,
        "connectionRetryTime": 0.2,
        "leaderFallbackTimeout": max(1.0, 10 * period_s),
    }


def tight(budget: int, path: Path = TIGHT) -> Contender | None:
    """PySyncObj's best settings within the budget, as the search found them; none before it ran."""
    if not path.exists():
        return None
    found = json.loads(path.read_text(encoding="utf-8"))["budgets"].get(str(budget))
    if found is None:
        return None
    by_size = {int(n): entry["settings"] for n, entry in found.items()}
    return Contender(f"PySyncObj, best at {budget} pps", PEER, by_size=by_size, budget=budget)


# --- hustings ------------------------------------------------------------------------------------


def hustings(label: str, budget: int | None, settle_s: float = 1.0, **settings: Any) -> Contender:
    """The settings are the keywords of `hustings.join`."""
    return Contender(f"hustings, {label}", OURS, settings, budget=budget, settle_s=settle_s)


def bully(
    others_s: float, heir_s: float, late_s: float, delta_s: float, safety: float = 3.0
) -> dict[str, Any]:
    """The bully by beat: the leader's heartbeats to its heir are most of the packets.

    Two more per second and member are gossip, and about one and a half are the comparison of views.
    The worst lateness counts half after six seconds, for any period. A member that was paused
    itself distrusts its own timing half as much after 0.15 s: in this benchmark it has often been
    the next leader.
    """
    detector = {
        "T": others_s,
        "successor_period": heir_s,
        "D": late_s,
        "tail": "peak",
        "beat": "send",
    }
    learning = {"safety": safety, "memory": 6.0 / others_s, "health_half": 0.15}
    return {
        "protocol": "bully",
        "settings": {"delta": delta_s},
        "detector_settings": {**detector, **learning},
        "gossip_settings": {"T_gossip": 0.5},
        "leadership_settings": {"reconcile_interval": 0.25, "leaderless_timeout": 1.0},
    }


# The more members there are, the more packets the heir may have. More than three in ten
# milliseconds are not sent: they would cost the processor and tell nothing.
AT = {
    20: Contender(
        "hustings, 20 pps",
        OURS,
        by_size={
            3: bully(0.3, 0.022, 0.05, 0.01, 2.0),
            9: bully(0.2, 0.01, 0.055, 0.01, 2.0),
            25: bully(0.2, 0.005, 0.08, 0.02, 2.0),
        },
        budget=20,
    ),
    60: Contender(
        "hustings, 60 pps",
        OURS,
        by_size={
            3: bully(0.2, 0.006, 0.011, 0.005, 2.5),
            9: bully(0.1, 0.003, 0.01, 0.01, 2.5),
            # Twenty-five processes on two cores take 10 ms and more until each has run.
            25: bully(0.1, 0.003, 0.007, 0.02, 2.5),
        },
        budget=60,
    ),
}
FLAT = (
    hustings("le-s", None, protocol="le-s"),
    hustings("probabilistic", None, protocol="probabilistic"),
)
FLAT_SIZES = (3, 9, 25, 200)
# The defaults, for a user that sets nothing.
AS_THEY_COME = (
    hustings("le-s, default settings", None, protocol="le-s"),
    hustings("bully, default settings", None, protocol="bully"),
)
# A thousand members share two cores: each must act rarely at rest.
MANY = hustings("le-s", None, settle_s=3.0, protocol="le-s", settings={"delta": 0.5})
