"""Which members vote, how long a lease may be, and what a voter stores."""

from __future__ import annotations

import math
from typing import Annotated

import msgspec

from hustings.core.choice import MemberId
from hustings.core.config import Config, Positive
from hustings.core.errors import BadInput
from hustings.quorum.messages import MOST_VOTERS, Change, ConfInstallMsg


class Electorate(msgspec.Struct, frozen=True):
    """One configuration: its number, and its voters in the order of their ids."""

    number: int
    voters: tuple[MemberId, ...]

    @property
    def majority(self) -> int:
        """The smallest number of voters such that any two sets of that size share a voter.

        >>> Electorate(0, (1, 2, 3, 4, 5)).majority
        3
        """
        return len(self.voters) // 2 + 1

    def resembles(self, other: Electorate) -> bool:
        """Whether changes can lead from one to the other: as many voters, each named once."""
        return len({*self.voters}) == len(self.voters) == len(other.voters)

    def may_become(self, change: Change) -> bool:
        """Whether the newcomer replaces one of these voters, and nothing else changes.

        >>> Electorate(0, (1, 2, 3)).may_become(Change((1, 2, 4), 4, 7))
        True
        >>> Electorate(0, (1, 2, 3)).may_become(Change((1, 2, 2), 2, 7))
        False
        """
        as_many = len({*change.voters}) == len(change.voters) == len(self.voters)
        return as_many and {*change.voters} - {*self.voters} == {change.newcomer}


def after(step: ConfInstallMsg) -> Electorate:
    """The configuration that a step leads to."""
    return Electorate(step.config, tuple(sorted(step.change.voters)))


def broken_voters(voters: tuple[MemberId, ...], fewest: int = 3) -> list[str]:
    """The errors in these voters, in sentences."""
    broken = []
    if len({*voters}) != len(voters):
        broken.append("every voter must be named once")
    if len(voters) % 2 == 0 or not fewest <= len(voters) <= MOST_VOTERS:
        numbers = ", ".join(str(each) for each in range(fewest, MOST_VOTERS, 2))
        broken.append(f"there must be {numbers} or {MOST_VOTERS} voters, not {len(voters)}")
    return broken


class QuorumConfig(Config, frozen=True, kw_only=True):
    """The embedded quorum of one group: the same at all its members."""

    voters: tuple[MemberId, ...] = ()
    max_ttl: Annotated[
        Positive | None,
        msgspec.Meta(description="the longest lease that voters grant [the requested time]"),
    ] = None
    durable: Annotated[
        bool, msgspec.Meta(description="whether voters keep their promises across restarts")
    ] = True
    initial: Annotated[
        tuple[MemberId, ...],
        msgspec.Meta(
            description="the voters with which the group began, if voters were replaced [voters]"
        ),
    ] = ()
    above: Annotated[
        int,
        msgspec.Meta(
            ge=0, description="tokens are larger than this number, which grows with the date"
        ),
    ] = 0

    @property
    def electorate(self) -> Electorate:
        """The voters in the settings. A member that has stored no later configuration uses them."""
        return Electorate(0, tuple(sorted(self.voters)))

    @property
    def origin(self) -> Electorate:
        """The first configuration."""
        return Electorate(0, tuple(sorted(self.initial or self.voters)))

    def broken_rules(self) -> list[str]:
        broken = broken_voters(self.voters)
        if not self.origin.resembles(self.electorate):
            broken.append("initial must name as many voters as there are, and each once")
        if not self.durable and self.origin != self.electorate:
            broken.append("voters that keep nothing are never replaced: initial must be the voters")
        if self.max_ttl is not None and not math.isfinite(self.max_ttl):
            broken.append("max_ttl must be finite: a voter that lost its disk waits for this time")
        return broken

    def longest_for(self, asked: float) -> float:
        """The longest lease, where members ask for `asked`."""
        if self.max_ttl is None:
            return asked
        if asked > self.max_ttl:
            raise BadInput(f"ttl must not exceed max_ttl={self.max_ttl:g}, and is {asked:g}")
        return self.max_ttl
