"""What a world needs to know of members that are their own guard: how one is made, and of whom."""

from __future__ import annotations

from typing import Protocol

from hustings.core.choice import MemberId
from hustings.core.election import Election
from hustings.layers.lease import LeaseLayer

Present = tuple[MemberId, ...]  # who is there from the beginning


class Voting(Protocol):
    """Puts a part in the guard round a member's election."""

    def __call__(self, confirmed: LeaseLayer, present: Present = ()) -> Election:
        """The voters are among those who are present, if anybody is named."""
        ...
