"""Closed forms at a cell's parameters, as the figures draw them.

Each function takes a cell and returns None where its formula makes no statement. Functions named
`printed` return what the thesis prints, where it prints something else.
"""

from __future__ import annotations

from functools import lru_cache

from hustings.lab.closed_forms.announce import (
    consistency,
    delay,
    joiner,
    messages,
    rounds,
    suppression,
    uncorrelated,
)
from hustings.lab.closed_forms.announce import (
    departure as departing,
)
from hustings.lab.closed_forms.announce.laws import Law
from hustings.lab.figures.measurement import Measurement

RARE = 0.02  # share of false departures above which a form for rare ones is too low
KEPT = 4096  # cached values: each takes a tenth of a second, and several figures use it


def law(cell: Measurement) -> Law:
    """The distribution of the wake-up times of a cell's members."""
    settings = dict(cell.settings)
    steepness = float(settings.get("lam", "0")) if settings.get("law") == "exponential" else 0.0
    return Law(T_S=float(settings.get("T_S", "0")), lam=steepness)


# Delays


def le_tmax(cell: Measurement) -> float | None:
    """LE-S and LE-A."""
    if cell.collision:
        return None
    return delay.tmax(cell.members, cell.loss, cell.loss_model, law(cell))


def printed_le_tmax(cell: Measurement) -> float | None:
    """LE-S as printed: wrong by a whole period if uncorrelated."""
    if cell.collision:
        return None
    return delay.printed_tmax(cell.members, cell.loss, cell.loss_model, law(cell))


def le_m_tmax(cell: Measurement) -> float | None:
    """LE-M."""
    return delay.tmax_first_waker(cell.members, cell.loss, cell.loss_model, law(cell))


def al_tmax(cell: Measurement) -> float | None:
    """AL; all N announcements of a round are under way at once, and may collide."""
    lost = cell.loss
    if cell.collision:
        lost = delay.adjusted_loss(cell.loss, cell.collision, cell.members)
    return delay.tmax_baseline(cell.members, lost, cell.loss_model)


@lru_cache(KEPT)
def sup_tmax(cell: Measurement) -> float | None:
    """SUP, the last message; no closed form if uncorrelated."""
    if cell.loss_model == "uncorrelated":
        return None
    return suppression.tmax(cell.members, cell.loss, law(cell), cell.delay)


def sup_halt(cell: Measurement) -> float | None:
    """SUP, when all have sent or heard, without the delay."""
    if cell.loss_model == "uncorrelated":
        return None
    return suppression.halt(cell.members, cell.loss, law(cell), cell.delay) - cell.delay


# Messages


@lru_cache(KEPT)
def le_messages(cell: Measurement) -> float | None:
    """LE-S, until all members have heard the leader; no closed form if uncorrelated."""
    if cell.loss_model == "uncorrelated" and cell.members > 2:
        return None
    return messages.total(cell.members, cell.loss, law(cell), D=cell.delay)


def al_messages(cell: Measurement) -> float | None:
    """AL: every member sends once in every period until all have heard the leader."""
    tmax = al_tmax(cell)
    return None if tmax is None else cell.members * (1 + tmax / float(dict(cell.settings)["T_A"]))


def printed_le_messages(cell: Measurement) -> float | None:
    """LE-S as printed: first announcements only, and misprinted if correlated."""
    if cell.loss_model == "uncorrelated":
        return None
    return messages.printed_first_round(cell.members, cell.loss, law(cell), cell.delay)


def sup_messages(cell: Measurement) -> float | None:
    """SUP; no closed form if uncorrelated."""
    if cell.loss_model == "uncorrelated":
        return None
    return suppression.messages(cell.members, cell.loss, law(cell), cell.delay)


@lru_cache(KEPT)
def le_first_round(cell: Measurement) -> float | None:
    """LE-S, first announcements; if uncorrelated, for a delay too short to matter."""
    if cell.loss_model == "uncorrelated":
        return uncorrelated.first_round(cell.members, cell.loss)
    return messages.first_round(cell.members, cell.loss, law(cell), D=cell.delay)


@lru_cache(KEPT)
def printed_le_first_round(cell: Measurement) -> float | None:
    """LE-S, first announcements as printed."""
    if cell.loss_model == "uncorrelated":
        return uncorrelated.printed_first_round(cell.members, cell.loss)
    return messages.printed_first_round(cell.members, cell.loss, law(cell), cell.delay)


def le_a_messages(cell: Measurement) -> float | None:
    """LE-A; no closed form if uncorrelated."""
    if cell.loss_model == "uncorrelated":
        return None
    return messages.total_at_once(cell.members, cell.loss, D=cell.delay)


@lru_cache(KEPT)
def le_m_messages(cell: Measurement) -> float | None:
    """LE-M; no closed form if uncorrelated."""
    if cell.loss_model == "uncorrelated":
        return None
    return messages.total_first_waker(cell.members, cell.loss, law(cell), D=cell.delay)


# Disturbances


def departure(cell: Measurement) -> float | None:
    """The leader departs; with loss, the form holds only if T_L is many times T_A."""
    T_L = float(dict(cell.settings)["T_L"])
    if not cell.loss:
        return departing.without_loss(cell.members, law(cell), T_L=T_L, D=cell.delay)
    if cell.loss_model == "uncorrelated" or cell.loss**T_L > RARE:
        return None
    return departing.correlated(cell.members, cell.loss, law(cell), T_L=T_L, D=cell.delay)


def leadership(cell: Measurement) -> float | None:
    """From a start until all members have heard the leader."""
    tmax = delay.tmax(cell.members, cell.loss, cell.loss_model, law(cell))
    return delay.leadership_delay(tmax, cell.delay)


def larger(cell: Measurement) -> float | None:
    """A better member joins."""
    return joiner.larger(cell.members, cell.loss, cell.loss_model, law(cell), D=cell.delay)


def smaller(cell: Measurement) -> float | None:
    """A worse member joins."""
    return joiner.smaller(cell.loss)


def inconsistent(cell: Measurement) -> float | None:
    """Some member holds a wrong leader although the leader is alive."""
    T_L = float(dict(cell.settings)["T_L"])
    if cell.loss_model == "uncorrelated":
        return consistency.system_fraction(cell.members, cell.loss, T_L=T_L)
    return consistency.fraction(cell.loss, T_L=T_L)


def growth(members: int, more: int, loss: float) -> float:
    """How much tmax grows from one size of group to another, uncorrelated."""
    few, many = (rounds.expected_rounds(n - 1, loss) for n in (members, more))
    return many - few
