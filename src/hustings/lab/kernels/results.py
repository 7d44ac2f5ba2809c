"""What came of some runs: a column of numbers for each metric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hustings.lab.kernels import columns as col
from hustings.lab.kernels.common import Floats
from hustings.lab.kernels.setting import TICKS, Setting

ORDER = (  # of the event simulator
    *("tmax", "t_halt", "sent_by_tmax", "rounds", "avg_rounds", "leadership_delay", "num_msgs"),
    *("first_round", "first_round_time", "simultaneous_leaders", "simultaneous_leaders_max"),
    *("election_messages", "answer_messages", "coordinator_messages", "other_messages"),
    *("messages", "time", "leader"),
)
OF_SPEECH = ("tmax", "t_halt", "num_msgs", *ORDER[2:6], *ORDER[7:])


@dataclass(frozen=True, slots=True)
class Played:
    """One value per run and metric, NaN where a run has none; `cut` marks runs given up."""

    metrics: dict[str, Floats]
    cut: NDArray[np.bool_]

    @property
    def runs(self) -> int:
        """How many."""
        return int(self.cut.size)


def played(setting: Setting, rows: Floats) -> Played:
    """The metrics of rows that a kernel has filled."""
    cut = rows[:, col.CUT] > 0
    found = _of_speech(rows) if setting.protocol == "sup" else _of_leaders(setting, rows)
    found |= {
        "num_msgs": rows[:, col.NUM_MSGS],
        "sent_by_tmax": rows[:, col.SENT_BY_TMAX],
        "first_round": rows[:, col.FIRST_ROUND],
        "simultaneous_leaders": _leading(rows, once=setting.protocol == "sup"),
        "simultaneous_leaders_max": rows[:, col.LEADING_MOST],
        **{f"{role}_messages": np.zeros(len(rows)) for role in ("election", "answer", "other")},
        "coordinator_messages": rows[:, col.MESSAGES],
        "messages": rows[:, col.MESSAGES],
        "leader": np.where(rows[:, col.LEADER] > 0, rows[:, col.LEADER], np.nan),
        "first_round_time": rows[:, col.FIRST_ROUND_TIME] / TICKS,
    }
    nothing = np.full(len(rows), np.nan)
    order = OF_SPEECH if setting.protocol == "sup" else ORDER
    names = (name for name in order if name in found)
    return Played({name: np.where(cut, nothing, found[name]) for name in names}, cut)


def _of_speech(rows: Floats) -> dict[str, Floats]:
    halt = rows[:, col.COMPLETE] / TICKS
    return {"tmax": rows[:, col.TMAX] / TICKS, "t_halt": halt, "time": halt}


def _of_leaders(setting: Setting, rows: Floats) -> dict[str, Floats]:
    others = max(1, setting.members - 1)
    return {
        "tmax": rows[:, col.TMAX] / TICKS,
        "leadership_delay": rows[:, col.COMPLETE] / TICKS,
        "time": rows[:, col.WATCHED] / TICKS,
        "rounds": rows[:, col.ROUNDS],
        "avg_rounds": rows[:, col.HEARD] / others,
    }


def _leading(rows: Floats, *, once: bool) -> Floats:
    """How many led on average; where no time passed, how many led: all, if they speak but once."""
    time = rows[:, col.WATCHED]
    passed = time > 0
    still = rows[:, col.LEADING_MOST] if once else 1.0
    return np.where(passed, rows[:, col.LEADING] / np.where(passed, time, 1.0), still)
