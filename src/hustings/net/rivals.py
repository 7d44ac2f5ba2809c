"""Groups of this name with another configuration: how much of them was proven.

What an answer says of its group is the sender's to choose. So another group counts for as many
members as have answered, each in its own name, a question that went to its address alone; not for
as many as it claims. A member counts for some seconds after its last answer. Where so many have
answered that more would prove little (`ENOUGH`), what both claim decides.

Law of this file: no clock inside; the time comes as an argument.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from hustings.core.choice import MemberId
from hustings.net.port import Endpoint

ENOUGH = 16  # members of another group that have answered
LASTING = 10.0  # seconds for which one of them counts as there after it has answered last
_MOST = 4 * ENOUGH  # that are remembered


class Witness(NamedTuple):
    """A member of another group, and what it says of that."""

    member: MemberId
    config: str  # by what it differs from this group
    members: int
    led: bool


class Rivals:
    """What one member knows of other groups of its group's name.

    >>> rivals = Rivals()
    >>> rivals.answered(("192.0.2.1", 7400), Witness(1, "other", 1000, True), now=0.0)
    >>> rivals.outweigh(members=3, led=True, now=0.0), rivals.outweigh(1, led=True, now=0.0)
    (False, True)
    """

    def __init__(self) -> None:
        self._witnesses: dict[Endpoint, tuple[Witness, float]] = {}  # longest ago first

    def answered(self, endpoint: Endpoint, witness: Witness, now: float) -> None:
        """Somebody has answered from there. One member counts once, and so does one address."""
        kept = {
            where: (other, at)
            for where, (other, at) in self._fresh(now).items()
            if where != endpoint and (other.member, other.config) != witness[:2]
        }
        if len(kept) >= _MOST:
            del kept[next(iter(kept))]
        self._witnesses = {**kept, endpoint: (witness, now)}

    def there(self, now: float) -> list[Endpoint]:
        """Where somebody has answered lately."""
        return list(self._fresh(now))

    def outweigh(self, members: int, led: bool, now: float) -> bool:
        """Whether a group of so many members must not lead beside one of these."""
        groups: defaultdict[str, list[Witness]] = defaultdict(list)
        for witness, _ in self._fresh(now).values():
            groups[witness.config].append(witness)
        return any(_weight(group) >= _own(members, led) for group in groups.values())

    def _fresh(self, now: float) -> dict[Endpoint, tuple[Witness, float]]:
        return {
            where: (witness, at)
            for where, (witness, at) in self._witnesses.items()
            if now - at < LASTING
        }


def _own(members: int, led: bool) -> tuple[int, int, bool]:
    return (members, 0, led) if members < ENOUGH else (ENOUGH, members, led)


def _weight(group: list[Witness]) -> tuple[int, int, bool]:
    claimed, led = max(each.members for each in group), any(each.led for each in group)
    return (len(group), 0, led) if len(group) < ENOUGH else (ENOUGH, claimed, led)
