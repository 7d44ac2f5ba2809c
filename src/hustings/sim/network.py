"""The network of a world: its models of delay and loss, and the partitions in force."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field

from hustings.core.choice import MemberId
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


class Partitions:
    """The cuts in force, by name."""

    __slots__ = ("_named",)

    def __init__(self) -> None:
        self._named: dict[str, _Cut] = {}

    def __bool__(self) -> bool:
        return bool(self._named)

    def partition(self, name: str, sides: Iterable[Iterable[MemberId]]) -> None:
        """Members of different sides cannot reach each other; unnamed members are on all sides."""
        place: dict[MemberId, int] = {}
        for number, side in enumerate(sides):
            for member in side:
                if place.setdefault(member, number) != number:
                    raise BadInput(f"member {member} stands on two sides of partition {name!r}")
        self._named[name] = _Partition(place)

    def one_way(self, name: str, senders: Iterable[MemberId], to: Iterable[MemberId]) -> None:
        """Nothing that `senders` send reaches `to`; the other direction is open."""
        self._named[name] = _OneWay(dict.fromkeys(senders), dict.fromkeys(to))

    def heal(self, name: str) -> None:
        """Remove one cut; one that is not in force is fine."""
        self._named.pop(name, None)

    def between(self, sender: MemberId, receiver: MemberId) -> bool:
        """Whether a message from `sender` to `receiver` runs into a cut."""
        return any(cut.blocks(sender, receiver) for cut in self._named.values())


class _Cut(ABC):
    __slots__ = ()

    @abstractmethod
    def blocks(self, sender: MemberId, receiver: MemberId) -> bool:
        """Whether this cut stops a message."""


class _Partition(_Cut):
    __slots__ = ("_place",)

    def __init__(self, place: dict[MemberId, int]) -> None:
        self._place = place

    def blocks(self, sender: MemberId, receiver: MemberId) -> bool:
        one, other = self._place.get(sender), self._place.get(receiver)
        return one is not None and other is not None and one != other


class _OneWay(_Cut):
    __slots__ = ("_senders", "_to")

    def __init__(self, senders: dict[MemberId, None], to: dict[MemberId, None]) -> None:
        self._senders = senders
        self._to = to

    def blocks(self, sender: MemberId, receiver: MemberId) -> bool:
        return sender in self._senders and receiver in self._to
