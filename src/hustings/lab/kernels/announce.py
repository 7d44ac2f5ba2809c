"""Simultaneous starts of announcing groups, by the million: `play`.

Run number k of a setting and a seed is the same run whoever plays it, alone or among others.
Metrics bear the names and meanings that the event simulator gives them.
"""

from __future__ import annotations

import numpy as np

from hustings.core.errors import BadInput
from hustings.lab.kernels import columns as col
from hustings.lab.kernels import machine as machines
from hustings.lab.kernels import race as races
from hustings.lab.kernels.baseline import baseline
from hustings.lab.kernels.common import CORRELATED, NEVER, NONE, UNCORRELATED, Floats, Loss, Sleep
from hustings.lab.kernels.counter import limit, root
from hustings.lab.kernels.lonely import lonely
from hustings.lab.kernels.results import Played, played
from hustings.lab.kernels.setting import MOST_PAIRS, TICKS, Setting, ticks
from hustings.lab.kernels.suppression import suppression

LAST_RUN = 1 << 48
MOST_AT_ONCE = 10_000_000
_MODELS = {"none": NONE, "correlated": CORRELATED, "uncorrelated": UNCORRELATED}


def play(setting: Setting, seed: int, first: int, last: int) -> Played:
    """Runs number `first` to `last` - 1.

    >>> quiet = play(Setting(protocol="al", members=5), 1, 0, 2)
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
        lonely(root(seed), first, _sleep(setting), D, rows)
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
    return played(setting, rows)


def play_race(setting: Setting, seed: int, first: int, rows: Floats) -> None:
    """Where no leader expires, a shorter way to the same runs."""
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


def play_machine(setting: Setting, seed: int, first: int, rows: Floats) -> None:
    """The whole state machine, which a finite T_L needs and an infinite one does not."""
    n = setting.members
    kind = {"le-m": machines.KEYS, "al": machines.BASELINE}.get(setting.protocol, machines.IDS)
    rules = machines.Rules(
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


def _sleep(setting: Setting) -> Sleep:
    steepness = setting.lam if setting.law == "exponential" else 0.0
    return Sleep(setting.interval * TICKS, steepness)


def _loss(setting: Setting) -> Loss:
    bar = np.uint64(limit(setting.loss))  # called from here it comes back as a plain number
    return Loss(_MODELS[setting.loss_model], setting.loss, setting.collision, bar)
