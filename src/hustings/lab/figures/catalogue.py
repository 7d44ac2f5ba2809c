"""Every figure and table by name."""

from __future__ import annotations

from collections.abc import Sequence

from hustings.core.errors import BadInput, UnknownName
from hustings.lab.figures import classic
from hustings.lab.figures.announce import (
    against_al,
    against_sup,
    by_loss,
    claims_table,
    first_waker,
)
from hustings.lab.figures.announce import scale as announce_scale
from hustings.lab.figures.committee import bits, everywhere, informed, success, thresholds
from hustings.lab.figures.exhibit import Exhibit
from hustings.lab.figures.probabilistic import analysis, crashes, hashes, safety, simulated
from hustings.lab.figures.probabilistic import scale as probabilistic_scale

ALL = "all"
EXHIBITS: tuple[Exhibit, ...] = (
    *against_sup.EXHIBITS,
    *by_loss.EXHIBITS,
    *against_al.EXHIBITS,
    *first_waker.EXHIBITS,
    *claims_table.EXHIBITS,
    *announce_scale.EXHIBITS,
    *classic.EXHIBITS,
    *analysis.EXHIBITS,
    *simulated.EXHIBITS,
    *crashes.EXHIBITS,
    *hashes.EXHIBITS,
    *probabilistic_scale.EXHIBITS,
    *safety.EXHIBITS,
    *success.EXHIBITS,
    *bits.EXHIBITS,
    *informed.EXHIBITS,
    *thresholds.EXHIBITS,
    *everywhere.EXHIBITS,
)


def names() -> list[str]:
    """All names, as typed."""
    return [exhibit.name for exhibit in EXHIBITS]


def families() -> list[str]:
    """All families, in the order of their exhibits."""
    return list(dict.fromkeys(exhibit.family for exhibit in EXHIBITS))


def of_family(family: str | None) -> list[Exhibit]:
    """The exhibits of one family, or all of them."""
    if family is not None and family not in families():
        raise UnknownName("family", family, families())
    return [exhibit for exhibit in EXHIBITS if family in (None, exhibit.family)]


def choose(wanted: Sequence[str], family: str | None) -> list[Exhibit]:
    """The exhibits that were asked for, each once, in their own order."""
    if not wanted:
        raise BadInput("name a figure, or all: hustings figure --list shows what there is")
    for name in wanted:
        if name not in (ALL, *names()):
            raise UnknownName("figure", name, [*names(), ALL])
    if ALL in wanted:
        return of_family(family)
    if family is not None:
        raise BadInput("--family goes with all or with --list, not with single figures")
    return [exhibit for exhibit in EXHIBITS if exhibit.name in wanted]
