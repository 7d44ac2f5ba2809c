"""The network of a world: delay and loss models, and what else may happen to a message."""

from __future__ import annotations

from dataclasses import dataclass, field

from hustings.core.errors import BadInput
from hustings.sim.delay import Delay, Fixed, check_time
from hustings.sim.loss import Coins, Loss, NoLoss, check_probability


@dataclass(frozen=True, slots=True)
class Network:
    """All that may happen to a message on its way."""

    delay: Delay = field(default_factory=Fixed)
    loss: Loss = field(default_factory=NoLoss)
    duplicate: float = 0.0  # probability of a second copy, with a delay of its own
    reorder: float = 0.0  # probability of being held back, so that later messages overtake it
    hold_back: float = 0.0  # for at most this long, uniformly
    fifo: bool = False  # a link never delivers out of order
    multicast_loss: Loss | None = None  # of messages to the group, where it is another

    def __post_init__(self) -> None:
        check_probability("duplicate", self.duplicate)
        check_probability("reorder", self.reorder)
        check_time("hold-back time", self.hold_back)
        if self.reorder and not self.hold_back:
            raise BadInput("reordering needs a hold-back time > 0")
        if self.hold_back and not self.reorder:
            raise BadInput("a hold-back time goes with a probability of reordering")
        if self.reorder and self.fifo:
            raise BadInput("a network cannot both reorder and keep links in order")

    @property
    def multicasts(self) -> Loss:
        """How messages to the group get lost."""
        return self.loss if self.multicast_loss is None else self.multicast_loss

    @property
    def by_coins(self) -> bool:
        """Whether every loss is decided by a coin, without memory."""
        return isinstance(self.loss, Coins) and isinstance(self.multicasts, Coins)

    @property
    def plain(self) -> bool:
        """Whether one entry per send tells the whole fate of a message (the fast path)."""
        return (
            isinstance(self.delay, Fixed)
            and self.by_coins
            and not self.duplicate
            and not self.reorder
            and not self.loss.collision
            and not self.multicasts.collision
        )
