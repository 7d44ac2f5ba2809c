"""Members for programs with threads: the same words as `hustings`, without `async`.

    with hustings.blocking.join("billing", seeds=["10.0.0.1"]) as member:
        with member.campaign() as term:            # waits until this member leads
            while not term.lost.is_set():
                work()

Each member has an event loop in a thread of its own. Every method may be called from any thread,
and what goes wrong on the loop is raised where it was called. A thread cannot be cancelled, so the
body of a campaign has to look: `term.lost` is set as soon as leadership is over, and `term.check()`
raises `LeadershipLost`. Leaving the block by itself never does.

Nothing here outlives the program: a member that was not closed says goodbye when the interpreter
exits, if that can be done quickly. After a fork the child has no member: it joins by itself.
"""

from hustings.blocking.campaign import Term
from hustings.blocking.member import Joining, Member, join
from hustings.blocking.observing import Observation
from hustings.net.member_state import Leadership, LeadershipLost, Metrics, NotLeader, Peer

__all__ = [
    "Joining",
    "Leadership",
    "LeadershipLost",
    "Member",
    "Metrics",
    "NotLeader",
    "Observation",
    "Peer",
    "Term",
    "join",
]
