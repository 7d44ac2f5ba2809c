"""Who knows whom at the start: everybody, a random part of the group, or as listed."""

from __future__ import annotations

from collections.abc import Mapping

from hustings.core.choice import MemberId
from hustings.core.streams import Stream, derive
from hustings.sim.models import check_probability

Views = Mapping[MemberId, list[MemberId]]


def partial_views(ids: list[MemberId], probability: float, seed: int) -> Views | None:
    """Each member knows each other one with the given probability, independently.

    None stands for full views, which all members share.
    """
    check_probability("view probability", probability)
    if probability == 1.0:
        return None
    views: dict[MemberId, list[MemberId]] = {}
    for member in ids:
        stream = Stream(derive(seed, "view", member))
        views[member] = [other for other in ids if other == member or stream.random() < probability]
    return views
