"""The embedded quorum: a guard made of members that vote.

`voter` and `petition` are the two sides of a vote, `enrolment` and `lives` are for voters without
memory, `replacing` is for other voters; `quorate` puts all of them around an election with a guard,
`election` makes an election of them alone.
"""

from hustings.quorum.config import Electorate, QuorumConfig
from hustings.quorum.quorate import Quorate, quorate

__all__ = ["Electorate", "Quorate", "QuorumConfig", "quorate"]
