"""`python -m bench net --search`: PySyncObj's quickest steady settings within a packet budget.

It tries two kinds of settings. With a tick finer than the beat, the beat is appendEntriesPeriod,
and the least timeout is three times that, as PySyncObj's rules ask. With a tick as long as the
beat, the beat is the tick's and appendEntriesPeriod is half of it, which satisfies those rules with
a least timeout of about two beats. In both the beat is fitted so that the group at rest just keeps
the budget, and the spread of the timeouts is varied. Candidates must keep the budget and keep their
leader at rest. The best of them by median of kill -9 to agreement goes into tight.json, with its
numbers and all settings that were tried.
"""

from __future__ import annotations

import itertools
import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.measure import say
from bench.net import measures
from bench.net.contenders import BUDGETS, PEER, TIGHT, Contender, tight_settings
from bench.net.group import Group, GroupFailed

FINE, COARSE = 3.02, 2.1  # least timeouts in beats
SPREADS = (0.5, 1.5, 4.0)  # in beats
TICKS_S = (0.003, 0.01, None)  # none: as long as the beat
OVER = 1.05  # "about" 20 or 60: up to this factor over the budget is accepted
FIRST_KILLS, FINAL_KILLS = 3, 9
FINALISTS = 3
REST_S = 3.0
DELAYED_ACK_S = 0.04  # below this period an answer carries the acknowledgement


@dataclass(frozen=True, slots=True)
class Trial:
    settings: dict[str, float]
    packets: float | None
    kills_ms: list[float]
    failure: str | None = None

    def fits(self, budget: int) -> bool:
        return self.failure is None and self.packets is not None and self.packets <= budget * OVER

    @property
    def median_ms(self) -> float:
        return statistics.median(self.kills_ms)


def first_period(n: int, budget: int) -> float:
    """Return the first period to try: a heartbeat costs two packets, or three with a bare ACK."""
    with_ack = 3 * (n - 1) / n / budget
    without = 2 * (n - 1) / n / budget
    return without if without < DELAYED_ACK_S else with_ack


def contender(settings: dict[str, float]) -> Contender:
    return Contender("PySyncObj, tried", PEER, settings, settle_s=0.7)


def settings_of(
    beat_s: float, tick_s: float | None, spread: float, patient: bool = False
) -> dict[str, float]:
    """Return settings by beat; patient ones suspect no member while packets are counted."""
    if tick_s is None:
        least = 20 if patient else COARSE
        return tight_settings(beat_s / 2, least * beat_s, spread * beat_s, beat_s)
    least = 20 if patient else FINE
    return tight_settings(beat_s, least * beat_s, spread * beat_s, tick_s)


def fitted_beat(n: int, budget: int, tick_s: float | None) -> float:
    """The beat at which a group at rest sends what the budget allows."""
    beat = first_period(n, budget)
    for _ in range(2):
        with Group(contender(settings_of(beat, tick_s, 20.0, patient=True)), n) as group:
            measures.elect(group)
            beat *= measures.packets_at_rest(group, REST_S) / budget
    return beat


def tried(n: int, settings: dict[str, float], kills: int) -> Trial:
    taken: list[float] = []
    packets = None
    try:
        with Group(contender(settings), n) as group:
            measures.elect(group)
            packets = measures.packets_at_rest(group, REST_S)
            for _ in range(kills):
                taken.append(measures.kill(group))
            return Trial(settings, packets, taken)
    except GroupFailed as error:
        return Trial(settings, packets, taken, str(error))


def best(trials: Sequence[Trial], budget: int, count: int) -> list[Trial]:
    return sorted((t for t in trials if t.fits(budget)), key=lambda t: t.median_ms)[:count]


def search_one(n: int, budget: int) -> dict[str, Any]:
    trials = []
    for tick_s in TICKS_S:
        beat = fitted_beat(n, budget, tick_s)
        for spread in SPREADS:
            trial = tried(n, settings_of(beat, tick_s, spread), FIRST_KILLS)
            trials.append(trial)
            say(f"N = {n}, {budget} pps: {describe(trial)}")
    finals = [tried(n, t.settings, FINAL_KILLS) for t in best(trials, budget, FINALISTS)]
    found = best(finals, budget, 1) or best(trials, budget, 1)
    if not found:
        raise GroupFailed(f"no setting of PySyncObj kept {budget} pps at N = {n}")
    (winner,) = found
    say(f"N = {n}, {budget} pps, chosen: {describe(winner)}")
    return {
        "settings": winner.settings,
        "packets": winner.packets,
        "median_ms": winner.median_ms,
        "kills_ms": winner.kills_ms,
        "tried": [asdict(trial) for trial in [*trials, *finals]],
    }


def describe(trial: Trial) -> str:
    s = trial.settings
    knobs = (
        f"period {s['appendEntriesPeriod']:g}, timeouts {s['raftMinTimeout']:g} to "
        f"{s['raftMaxTimeout']:g}, tick {s['autoTickPeriod']:g}"
    )
    if trial.failure is not None:
        return f"{knobs}: {trial.failure}"
    return f"{knobs}: {trial.packets:.1f} pps, {trial.median_ms:.0f} ms of {len(trial.kills_ms)}"


def search(sizes: Sequence[int], path: Path = TIGHT) -> None:
    """Search every budget and size, and keep what was found for the others."""
    old = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"budgets": {}}
    for budget, n in itertools.product(BUDGETS, sizes):
        old["budgets"].setdefault(str(budget), {})[str(n)] = search_one(n, budget)
        path.write_text(json.dumps(old, indent=1) + "\n", encoding="utf-8")
