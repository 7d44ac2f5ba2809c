"""The messages of the announce-listen elections.

A sender includes its candidate. So every member can compare it, even if its view does not hold the
sender. The candidate's id must be the sender's; its attributes are not verified.
"""

from __future__ import annotations

from typing import ClassVar

from hustings.core.choice import Candidate
from hustings.core.messages import Message, Role, Term


class AnnounceMsg(Message, frozen=True, tag="ANNOUNCE"):
    """The sender leads."""

    role: ClassVar[Role] = Role.COORDINATOR
    term: Term
    number: int  # of this announcement, counted from 1 within the sender's present leadership
    candidate: Candidate


class QueryMsg(Message, frozen=True, tag="QUERY"):
    """The sender wants to lead: does a better member?"""

    role: ClassVar[Role] = Role.ELECTION
    candidate: Candidate


class ByeMsg(Message, frozen=True, tag="BYE"):
    """The sender led in this term and leaves."""

    role: ClassVar[Role] = Role.OTHER
    term: Term
