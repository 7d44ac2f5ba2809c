"""Who may watch a world, and what they are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from hustings.core.choice import MemberId
    from hustings.core.messages import Message
    from hustings.core.outcome import Outcome
    from hustings.sim.member import SimContext
    from hustings.sim.world import World


class Observer(Protocol):
    """Sees everything: checkers, metrics, a perfect detector, the demo."""

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        """A member declared an outcome."""

    def changed(self, world: World, member: SimContext) -> None:
        """A member came up, crashed, paused, resumed, left."""


class Eavesdropper(Protocol):
    """Hears every send: metrics that count messages up to an instant."""

    def sent(self, world: World, member: SimContext, to: MemberId | None, message: Message) -> None:
        """A member sends; whether it will be lost is not decided yet."""
