"""The embedded quorum: a guard made of members that vote.

`acceptor` and `proposer` are the two sides of a vote. `recovery` and `epochs` let an acceptor vote
again after it lost its disk. `reconfiguration` replaces a voter, and `configurations` finds the
present voters. `layer` puts all of them around an election with a lease, and `election` makes an
election of them alone.
"""

from hustings.quorum.config import Electorate, QuorumConfig
from hustings.quorum.layer import QuorumLeaseLayer, with_quorum

__all__ = ["Electorate", "QuorumConfig", "QuorumLeaseLayer", "with_quorum"]
