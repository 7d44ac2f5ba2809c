"""Members for programs with threads: the same names as in `hustings`, without `async`.

    with hustings.blocking.join("billing", seeds=["10.0.0.1"]) as member:
        with member.campaign() as term:            # waits until this member leads
            while not term.lost.is_set():
                work()

Each member has an event loop in a thread of its own. Every method may be called from any thread,
and an error on the loop is raised in the calling thread. A thread cannot be cancelled, so the body
of a campaign has to check: `term.lost` is set as soon as leadership is over, and `term.check()`
raises `LeadershipLost`. The end of the block alone never raises it.

No member outlives the program: a member that was not closed says goodbye when the interpreter
exits, if that can be done quickly. After a fork the child process has no member and has to join by
itself.
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
