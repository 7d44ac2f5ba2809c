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
from hustings.lab.figures.figure import Figure
from hustings.lab.figures.probabilistic import analysis, crashes, hashes, safety, simulated
from hustings.lab.figures.probabilistic import scale as probabilistic_scale

ALL = "all"
FIGURES: tuple[Figure, ...] = (
    *against_sup.FIGURES,
    *by_loss.FIGURES,
    *against_al.FIGURES,
    *first_waker.FIGURES,
    *claims_table.FIGURES,
    *announce_scale.FIGURES,
    *classic.FIGURES,
    *analysis.FIGURES,
    *simulated.FIGURES,
    *crashes.FIGURES,
    *hashes.FIGURES,
    *probabilistic_scale.FIGURES,
    *safety.FIGURES,
    *success.FIGURES,
    *bits.FIGURES,
    *informed.FIGURES,
    *thresholds.FIGURES,
    *everywhere.FIGURES,
)


def names() -> list[str]:
    """All names, as a user types them."""
    return [figure.name for figure in FIGURES]


def families() -> list[str]:
    """All families, in the order of their figures."""
    return list(dict.fromkeys(figure.family for figure in FIGURES))


def of_family(family: str | None) -> list[Figure]:
    """The figures of one family, or all of them."""
    if family is not None and family not in families():
        raise UnknownName("family", family, families())
    return [figure for figure in FIGURES if family in (None, figure.family)]


def choose(wanted: Sequence[str], family: str | None) -> list[Figure]:
    """The requested figures, each once, in the catalogue's order."""
    if not wanted:
        raise BadInput("name a figure, or all: hustings figure --list shows what there is")
    for name in wanted:
        if name not in (ALL, *names()):
            raise UnknownName("figure", name, [*names(), ALL])
    if ALL in wanted:
        return of_family(family)
    if family is not None:
        raise BadInput("--family goes with all or with --list, not with single figures")
    return [figure for figure in FIGURES if figure.name in wanted]
