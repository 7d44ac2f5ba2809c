"""What a member may declare about an election."""

from __future__ import annotations

from enum import Enum

import msgspec

from hustings.core.choice import MemberId


class Elected(
    msgspec.Struct, frozen=True, tag=True, gc=False, omit_defaults=True, repr_omit_defaults=True
):
    """This member takes `leader` for the leader of `term`.

    `risk`, where a protocol can tell it, bounds the probability that another member leads too. It
    holds at the settings in force, if losses are independent. Under a partition it says nothing.
    """

    leader: MemberId
    term: int
    risk: float | None = None


PAUSED = "paused"  # the reason while a leader that stood still asks whether it still leads
ELECTING = "electing"  # the reason while a run is under way; a run that ends with it has hung


class NoLeader(msgspec.Struct, frozen=True, tag=True, gc=False):
    """This member knows no leader now: an election is under way, or was abandoned."""

    reason: str = ""


class GaveUp(msgspec.Struct, frozen=True, tag=True, gc=False):
    """A bound was reached: this member stops trying by itself."""

    reason: str


Outcome = Elected | NoLeader | GaveUp


class Guarantee(Enum):
    """What a mode promises about exclusivity. Nothing is called safe that is not."""

    ADVISORY = "advisory"  # no exclusivity under a partition, or with a detector that errs
    LEASED = "leased"  # at most one holder while clocks drift less than a stated bound
    FENCED = "fenced"  # the resource refuses a stale holder's writes
