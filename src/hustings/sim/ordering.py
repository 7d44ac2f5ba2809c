"""The order of ids round a ring, as it is typed: each member's place.

Members are numbered 1 to n. Other ids stand for those of the same rank: an election only compares.
"""

from __future__ import annotations

from collections.abc import Sequence

from hustings.core.choice import MemberId
from hustings.core.errors import BadInput, UnknownName

PLACE = "place"  # the attribute, and the setting that names it
RANDOM = "random"
DECREASING = "decreasing"
MOST_SHOWN = 20

Order = str | Sequence[MemberId]


def places_of(order: Order, members: int) -> tuple[float, ...] | None:
    """Each member's place in an order of ids clockwise; None: drawn anew for every run.

    >>> places_of("decreasing", 4), places_of((3, 32, 5, 80, 6, 12), 6)
    ((4.0, 3.0, 2.0, 1.0), (0.0, 2.0, 4.0, 5.0, 1.0, 3.0))
    """
    if order == RANDOM:
        return None
    if order == DECREASING:
        return tuple(float(place) for place in range(members, 0, -1))
    if isinstance(order, str):
        raise UnknownName("order", order, [RANDOM, DECREASING, "3,32,5,80,6,12"])
    places: dict[MemberId, float] = {}
    for one in order:
        if one in places:
            raise BadInput(f"--order names {one} twice")
        places[one] = float(len(places))
    if len(places) != members:
        raise BadInput(f"--order names {len(places)} ids, and there are {members} members")
    return tuple(places[one] for one in sorted(places))


def renamed(order: Order | None) -> str | None:
    """Which ids the members' numbers stand for, if they are not those ids."""
    if order is None or isinstance(order, str) or sorted(order) == [*range(1, len(order) + 1)]:
        return None
    ids = [str(one) for one in sorted(order)]
    shown = ids if len(ids) <= MOST_SHOWN else [*ids[:3], "...", ids[-1]]
    return (
        f"members 1 to {len(ids)} stand for ids {', '.join(shown)}, also where options and the "
        "report name a member: an election only compares ids"
    )
