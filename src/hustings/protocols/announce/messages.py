"""What the announce-listen elections say to the group.

Who speaks says as what it stands, so that everybody can compare it, also those whose view does not
hold the sender. The candidate's id must be the sender's; its attributes are the sender's word.
"""

from __future__ import annotations

from typing import ClassVar

from hustings.core.choice import Candidate
from hustings.core.messages import Message, Role, Term


class AnnounceMsg(Message, frozen=True, tag="ANNOUNCE"):
    """I lead."""

    role: ClassVar[Role] = Role.COORDINATOR
    term: Term
    number: int  # of this announcement within the sender's present leadership, from 1
    candidate: Candidate


class QueryMsg(Message, frozen=True, tag="QUERY"):
    """I would lead: does anybody better?"""

    role: ClassVar[Role] = Role.ELECTION
    candidate: Candidate


class ByeMsg(Message, frozen=True, tag="BYE"):
    """I led in this term and leave."""

    role: ClassVar[Role] = Role.OTHER
    term: Term
