"""Simultaneous starts of announcing groups, by the million: `play`.

Run number k of a setting and a seed is the same run in any process, alone or among others. Metrics
have the names and meanings of the event simulator.
"""

from __future__ import annotations

import numpy as np

from hustings.core.errors import BadInput
from hustings.lab.kernels.announce import columns as col
from hustings.lab.kernels.announce import machine as machines
from hustings.lab.kernels.announce import race as races
from hustings.lab.kernels.announce.baseline import baseline
from hustings.lab.kernels.announce.parameters import MOST_PAIRS, TICKS, AnnounceParameters, ticks
from hustings.lab.kernels.announce.sleep_and_loss import (
    CORRELATED,
    NEVER,
    NONE,
    UNCORRELATED,
    LossLaw,
    Sleep,
    first_naps,
)
from hustings.lab.kernels.announce.suppression import suppression
from hustings.lab.kernels.compiling import compiled
from hustings.lab.kernels.counter import branch, limit, root
from hustings.lab.kernels.results import Columns, Floats

LAST_RUN = 1 << 48
MOST_AT_ONCE = 10_000_000

ORDER = (  # of the event simulator
    *("tmax", "t_halt", "sent_by_tmax", "rounds", "avg_rounds", "leadership_delay", "num_msgs"),
    *("first_round", "first_round_time", "simultaneous_leaders", "simultaneous_leaders_max"),
    *("election_messages", "answer_messages", "coordinator_messages", "other_messages"),
    *("messages", "time", "leader"),
)
OF_SPEECH = ("tmax", "t_halt", "num_msgs", *ORDER[2:6], *ORDER[7:])
_MODELS = {"none": NONE, "correlated": CORRELATED, "uncorrelated": UNCORRELATED}


def play(setting: AnnounceParameters, seed: int, first: int, last: int) -> Columns:
    """Play runs number `first` to `last` - 1.

    >>> quiet = play(AnnounceParameters(protocol="al", members=5), 1, 0, 2)
    >>> quiet.metrics["tmax"].tolist(), quiet.metrics["num_msgs"].tolist()
    ([0.0, 0.0], [5.0, 5.0])
    """
    if not 0 <= first < last <= LAST_RUN:
        raise BadInput(f"runs must be numbered from 0 to {LAST_RUN:,}, the first before the last")
    if last - first > MOST_AT_ONCE:
        raise BadInput(f"at most {MOST_AT_ONCE:,} runs are played at once, not {last - first:,}")
    rows = np.zeros((last - first, col.COLUMNS))
    D, n = ticks(setting.delay), setting.members
    if setting.protocol == "sup":
        suppression(root(seed), first, _sleep(setting), _loss(setting), D, n, rows)
    elif n == 1:
        play_alone(root(seed), first, _sleep(setting), D, rows)
    elif setting.finite:
        play_machine(setting, seed, first, rows)
    elif setting.protocol == "al":
        baseline(
            root(seed),
            first,
            _loss(setting),
            ticks(setting.T_A),
            D,
            setting.max_rounds,
            n,
            rows,
        )
    else:
        play_race(setting, seed, first, rows)
    return columns_of(setting, rows)


def play_race(setting: AnnounceParameters, seed: int, first: int, rows: Floats) -> None:
    """Play runs where no leader expires, in a shorter way with the same results."""
    n = setting.members
    room = n * (ticks(setting.delay) // ticks(setting.T_A) + 1)
    races.race(
        root(seed),
        first,
        _sleep(setting),
        _loss(setting),
        ticks(setting.T_A),
        ticks(setting.delay),
        setting.protocol == "le-m",
        setting.key == "relative",
        setting.max_rounds,
        np.zeros((races.MEMBER_ROWS, n), np.uint32),
        np.zeros(n),
        np.zeros((races.MESSAGE_ROWS, room), np.int64),
        np.zeros((races.SLOT_ROWS, room), np.uint32),
        rows,
    )


def play_machine(setting: AnnounceParameters, seed: int, first: int, rows: Floats) -> None:
    """Play the whole state machine, which a finite T_L needs and an infinite one does not."""
    n = setting.members
    kind = {"le-m": machines.KEYS, "al": machines.BASELINE}.get(setting.protocol, machines.IDS)
    rules = machines.MachineRules(
        kind=kind,
        T_A=ticks(setting.T_A),
        T_L=ticks(setting.T_L) if setting.finite else NEVER,
        D=ticks(setting.delay),
        relative=setting.key == "relative",
        sleep=_sleep(setting),
        loss=_loss(setting),
        max_rounds=setting.max_rounds,
    )
    blocks = -(-n // machines.BLOCK)
    state = machines.State(
        c=np.zeros(machines.COUNTERS, np.int64),
        m=np.zeros((machines.MEMBER_ROWS, n), np.int64),
        keys=np.zeros((2, n)),
        messages=np.zeros((machines.MESSAGE_ROWS, setting.under_way), np.int64),
        stood=np.zeros(setting.under_way),
        repeats=np.zeros((2, setting.repeating), np.int64),
        wakers=np.zeros((2, setting.plans), np.int64),
        listeners=np.zeros((2, n + 2), np.int64),
        heard=np.zeros(n, np.uint8),
        pairs=np.zeros(setting.pairs, np.uint64),
        weakest=np.zeros(blocks),
        weakest_of_all=np.zeros(-(-blocks // machines.BLOCK)),
    )
    done = 0
    while (done := machines.machine(root(seed), first, rules, state, rows, done)) < len(rows):
        room = 2 * state.pairs.size
        if room > MOST_PAIRS:
            raise BadInput(
                f"{n:,} members have held more than {MOST_PAIRS // 4:,} leaders in all, which is "
                f"more than engine 'fast' tells apart: take a longer T_L"
            )
        state = state._replace(pairs=np.zeros(room, np.uint64))


def _sleep(setting: AnnounceParameters) -> Sleep:
    steepness = setting.lam if setting.law == "exponential" else 0.0
    return Sleep(setting.interval * TICKS, steepness)


def _loss(setting: AnnounceParameters) -> LossLaw:
    bar = np.uint64(limit(setting.loss))  # called from here it comes back as a plain number
    return LossLaw(_MODELS[setting.loss_model], setting.loss, setting.collision, bar)


@compiled
def play_alone(seed: np.uint64, first: int, sleep: Sleep, D: int, rows: Floats) -> None:
    """Play a group of one, which only wakes up: runs from number `first` on, one for each row."""
    slept, wakes = np.zeros(1), np.zeros(1, np.int64)
    for number in range(rows.shape[0]):
        first_naps(branch(seed, np.uint64(first + number)), sleep, slept, wakes)
        row = rows[number]
        row[col.TMAX] = row[col.FIRST_ROUND_TIME] = row[col.WATCHED] = wakes[0]
        row[col.COMPLETE] = wakes[0] + D
        row[col.NUM_MSGS] = row[col.SENT_BY_TMAX] = row[col.FIRST_ROUND] = row[col.MESSAGES] = 1.0
        row[col.ROUNDS] = row[col.HEARD] = 1.0
        row[col.LEADING_MOST] = row[col.LEADER] = 1.0


def columns_of(setting: AnnounceParameters, rows: Floats) -> Columns:
    """Return the metrics of rows that a kernel has filled."""
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
    return Columns({name: np.where(cut, nothing, found[name]) for name in names}, cut)


def _of_speech(rows: Floats) -> dict[str, Floats]:
    halt = rows[:, col.COMPLETE] / TICKS
    return {"tmax": rows[:, col.TMAX] / TICKS, "t_halt": halt, "time": halt}


def _of_leaders(setting: AnnounceParameters, rows: Floats) -> dict[str, Floats]:
    others = max(1, setting.members - 1)
    return {
        "tmax": rows[:, col.TMAX] / TICKS,
        "leadership_delay": rows[:, col.COMPLETE] / TICKS,
        "time": rows[:, col.WATCHED] / TICKS,
        "rounds": rows[:, col.ROUNDS],
        "avg_rounds": rows[:, col.HEARD] / others,
    }


def _leading(rows: Floats, *, once: bool) -> Floats:
    """Return how many led on average; where no time passed, how many led: all, if `once`."""
    time = rows[:, col.WATCHED]
    passed = time > 0
    still = rows[:, col.LEADING_MOST] if once else 1.0
    return np.where(passed, rows[:, col.LEADING] / np.where(passed, time, 1.0), still)
