"""Who knows whom at the start: everybody, a random part of the group, or as listed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hustings.core.choice import MemberId
from hustings.core.streams import Stream, derive
from hustings.core.view import View
from hustings.sim.derived_view import Acquaintance, DerivedView
from hustings.sim.directory import Directory
from hustings.sim.loss import check_probability

if TYPE_CHECKING:
    from hustings.sim.member import SimContext
    from hustings.sim.world import World

Views = Mapping[MemberId, list[MemberId]] | Acquaintance  # as listed, or derived from a seed

VARIATES = 64  # of extrema propagation: its estimate is off by 1 / sqrt(VARIATES - 2)


def partial_views(ids: list[MemberId], probability: float, seed: int) -> Acquaintance | None:
    """Each member knows each other one with the given probability, independently.

    None stands for full views, which all members share.
    """
    check_probability("view probability", probability)
    if probability == 1.0:
        return None
    return Acquaintance(sorted(ids), probability, seed)


def gossiped_size(members: int, seed: int) -> float:
    """What a group that gossips about its size takes it for.

    Everybody draws `VARIATES` exponential numbers and the group finds the least of each: their sum
    has a gamma law with the size as rate, and this is the unbiased estimate from it. All members
    end with the same numbers, so with the same estimate; one draw stands for all of it.
    """
    stream = Stream(derive(seed, "size"))
    total = sum(stream.expovariate(1.0) for _ in range(VARIATES))
    return members * (VARIATES - 1) / total


class Knowledge:
    """All views of one world, and how they change."""

    __slots__ = ("_common", "_everybody", "_listed")

    def __init__(self, world: World) -> None:
        self._everybody = View(Directory(world.members), [])  # of all who are not given another
        self._listed: list[View] = [self._everybody]
        self._common: Acquaintance | None = None

    @property
    def full(self) -> View:
        """The view of those who know everybody, shared by them."""
        return self._everybody

    def give(self, world: World, views: Views | None) -> None:
        """Let each member of a world have its view."""
        self._everybody.ids.extend(world.members)
        if isinstance(views, Acquaintance):
            views.directory = Directory(world.members)
            self._common = views
            for ctx in world.members.values():
                ctx.view = DerivedView(views, ctx.id)
            return
        for member, known in (views or {}).items():
            for other in known:
                world.member(other)
            view = View(Directory(world.members), sorted({*known, member}))
            world.member(member).view = view
            self._listed.append(view)

    def learn(self, ctx: SimContext) -> None:
        """All full views learn of a member, it knows itself, all who know it see it anew."""
        self._everybody.add(ctx.id)
        if ctx.view is not self._everybody:
            ctx.view.add(ctx.id)
        if self._common is not None:
            self._common.refresh()
        for view in self._listed:
            if view is not self._everybody and ctx.id in view:
                view.add(ctx.id)

    def forget(self, ctx: SimContext) -> None:
        """All views forget a member."""
        if self._common is not None:
            self._common.forget(ctx.id)
        for view in self._listed:
            view.remove(ctx.id)

    def estimate(self, size: float) -> None:
        """Let all members take the group for so large."""
        if self._common is not None:
            self._common.estimate = size
        for view in self._listed:
            view.estimate = size
