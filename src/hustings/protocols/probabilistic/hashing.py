"""The hash H, and the filter that uses it.

H maps a member and a text to [0, 1). It is the same at all members, and behaves like a random draw.
The text of a round is A_I = (sequence, initiator, nonce, round), not the number of one of the
messages that opened it: several members may open a round, and their relay sets must be the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache

from hustings.core.choice import MemberId
from hustings.core.digests import blake2b
from hustings.protocols.probabilistic.messages import Call

_TO_UNIT = 2.0**-53
ROUNDS_KEPT = 8  # tables of the latest rounds; a group is rarely in more than one


class HashFunction(ABC):
    """H: fair, deterministic, and the same at all members of a group."""

    @abstractmethod
    def of(self, member: MemberId, text: bytes) -> float:
        """Return a number of [0, 1)."""


class Blake2(HashFunction):
    """blake2b, keyed by the name of the group.

    >>> Blake2("billing").of(7, b"1.3.9.1") == Blake2("billing").of(7, b"1.3.9.1")
    True
    >>> Blake2("billing").of(7, b"1.3.9.1") == Blake2("other").of(7, b"1.3.9.1")
    False
    """

    def __init__(self, group: str) -> None:
        key = blake2b(group.encode(), digest_size=32).digest()
        self._keyed = blake2b(digest_size=8, key=key)

    def of(self, member: MemberId, text: bytes) -> float:
        state = self._keyed.copy()
        state.update(b"%d:%b" % (member, text))
        return (int.from_bytes(state.digest(), "big") >> 11) * _TO_UNIT


class Skewed(HashFunction):
    """A biased hash: small values come more often, or less, than they should.

    Its distribution function is x**(1 / skew). So N (K/N)**(1 / skew) members pass a filter that K
    should pass: more of them for a skew above 1, fewer below.

    >>> Skewed(Blake2("billing"), 2.0).of(7, b"1") == Blake2("billing").of(7, b"1") ** 2
    True
    """

    def __init__(self, fair: HashFunction, skew: float) -> None:
        self._fair = fair
        self._skew = skew

    def of(self, member: MemberId, text: bytes) -> float:
        skewed: float = self._fair.of(member, text) ** self._skew
        return skewed


class HashTable:
    """The hashes of one round, each computed once."""

    def __init__(self, function: HashFunction, text: bytes) -> None:
        self._function = function
        self._text = text
        self._values: dict[MemberId, float] = {}
        self._roster: list[MemberId] = []  # the roster of the next two
        self._sorted: list[tuple[float, MemberId]] = []
        self._top = 0.0  # they are sorted up to this bound

    def value(self, member: MemberId) -> float:
        """H(M_j A_I)."""
        values = self._values
        if member not in values:
            values[member] = self._function.of(member, self._text)
        return values[member]

    def below(self, roster: Sequence[MemberId], bound: float) -> list[MemberId]:
        """Return the members on the roster whose hash is less than `bound`, by id."""
        if bound > self._top or self._roster != roster:
            self._top = 2 * bound  # the bounds of other members are near this one
            self._roster = list(roster)
            pairs = ((self.value(member), member) for member in roster)
            self._sorted = sorted(pair for pair in pairs if pair[0] < self._top)
        end = bisect_left(self._sorted, (bound, -1))
        return sorted(member for _, member in self._sorted[:end])


class Filter:
    """H with the tables of the latest rounds; members in one process may share it."""

    def __init__(self, function: HashFunction) -> None:
        self._function = function
        self._tables: dict[tuple[tuple[int, int, int], int], HashTable] = {}
        self._call: Call | None = None  # the latest call asked for, ...
        self._round = 0
        self._table: HashTable | None = None  # ... and its table

    def table(self, call: Call, number: int) -> HashTable:
        """Return the hashes of a round."""
        if call is self._call and number == self._round and self._table is not None:
            return self._table
        key = call.order, number
        if key not in self._tables:
            if len(self._tables) >= ROUNDS_KEPT:
                del self._tables[next(iter(self._tables))]
            self._tables[key] = HashTable(self._function, _text(call, number))
        self._call, self._round, self._table = call, number, self._tables[key]
        return self._table

    def again(self, member: MemberId, call: Call, number: int) -> float:
        """Return the hash that decides which member asks for the next round.

        It hashes a text of its own. Under A_I the members below K / N_i are the relay members,
        which have a final of their own and so could never be the members that received none.
        """
        return self._function.of(member, b"again." + _text(call, number))


def _text(call: Call, number: int) -> bytes:
    return b"%d.%d.%d.%d" % (*call.order, number)


@lru_cache(maxsize=64)
def shared_filter(function: type[Blake2], group: str, skew: float = 1.0) -> Filter:
    """Return the filter of a group: one for all its members in this process."""
    fair = function(group)
    return Filter(fair if skew == 1.0 else Skewed(fair, skew))
