"""Cut links: who cannot reach whom now. Symmetric partitions and one-way cuts, coming and going."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from hustings.core.choice import MemberId
from hustings.core.errors import BadInput


class Cuts:
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
