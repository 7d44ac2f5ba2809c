"""Options of guards' addresses that several engines have."""

from __future__ import annotations

import math

from hustings.core.errors import BadInput
from hustings.guard.urls import GuardUrl

TIMEOUT_S = 2.0  # for one question and its answer, connecting included
NET_S = 5.0  # an observer looks at least so often

SHORTEST_TTL_S = 0.01
LONGEST_TTL_S = 86400.0


def seconds(url: GuardUrl, name: str, default: float) -> float:
    """An option that is a positive time."""
    value = url.number(name, default)
    if not (math.isfinite(value) and value > 0):
        raise BadInput(f"option {name} of {url.scheme} must be a positive time, not {value:g}")
    return value


def one_of(url: GuardUrl, name: str, *known: str) -> str:
    """An option that is one of some words; the first, if it is not given."""
    value = url.options.get(name, known[0])
    if value not in known:
        raise BadInput(
            f"option {name} of {url.scheme} must be one of {', '.join(known)}, not {value!r}"
        )
    return value


def check_bounds(ttl: float, engine: str) -> None:
    """Leases that a register of these engines can keep, and that somebody can wait for."""
    if not SHORTEST_TTL_S <= ttl <= LONGEST_TTL_S:
        raise BadInput(
            f"ttl of a lease in {engine} must lie between {SHORTEST_TTL_S:g} and "
            f"{LONGEST_TTL_S:g} seconds, not {ttl:g}"
        )
