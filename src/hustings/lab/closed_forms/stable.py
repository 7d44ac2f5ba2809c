"""Stable election (Park 2011, in the overhead-aware paper, section 2): three phases, unanimity.

The proposer asks all but the suspect whether the leader is dead (PREPARE). One NACK ends the round
with ABORT and no leader: safe, not live. A single wrong belief that the leader lives blocks the
election. Otherwise those that answered reserve the best of them (READY, ACK) and it is announced
(COMMIT). r counts the live others. T1 is the wait for answers, at least 2.

All must have noticed the crash (`unanimous`, the paper's rule), and then the best proposes: at
once, or T1 later for each better member that is dead. Without `unanimous` silence counts as
consent, and the one detector proposes at once.

The summary gives no counts; the counts below follow from the rules.
"""

from __future__ import annotations

from fractions import Fraction

from hustings.lab.closed_forms.counted import Counts, GroupSetting, counted
from hustings.lab.closed_forms.form import DECIDED, OVERHEAD, Form, exact, require

SOURCE = f"{OVERHEAD}, section 2 [10]"


def messages(n: int, r: int | None = None) -> int:
    """All messages when all members agree: (n-2) + 4r; 5(n-2) if only the leader is dead.

    PREPARE to n-2 others, also the dead ones; then ACK, READY, ACK and COMMIT with the r live.

    Parameters: n, counting the crashed leader; r, the live members besides the proposer (n-2 by
    default).

    Source: overhead-aware election, section 2, which gives no count. Verdict: counted.

    >>> messages(64), 5 * 62, messages(8, r=3)
    (310, 310, 18)
    """
    r = _others(n, r)
    return (n - 2) + 4 * r


def aborted_messages(n: int, r: int | None = None) -> int:
    """All messages when a member disagrees: (n-2) + 2r.

    PREPARE, an ACK or NACK from each live member, ABORT to each of them. No leader results.

    Parameters: n, counting the suspected leader; r, the live members asked (n-2 by default).

    Source: overhead-aware election, section 2, which gives no count. Verdict: counted.

    >>> aborted_messages(64)
    186
    """
    r = _others(n, r)
    return (n - 2) + 2 * r


def counts(setting: GroupSetting) -> Counts:
    """The election of one setting, where a closed form exists.

    Five messages one after the other take 5 units. If a member that is asked is dead, the wait for
    it lasts until T1, which takes the place of the first two.

    Parameters: a setting with timer T1.

    Source: the forms above.

    >>> counts(GroupSetting(n=8, live=(1, 2, 3, 4, 5, 6, 7), detectors=(1,))).messages
    30
    >>> counts(GroupSetting(n=8, live=(1, 2, 3, 4, 5), detectors=(1,))).time
    9
    """
    T1 = exact(setting.timers.get("T1", 2))
    require(T1 >= 2, f"T1 must be at least 2, the time of a question and its answer, not {T1}")
    unanimous = setting.flags.get("unanimous", True) and not setting.start
    if not unanimous and not setting.single:
        return Counts(leader=setting.m, why="several proposers compete")
    r, asked = len(setting.live) - 1, setting.top - 1
    first = T1 if r < asked else 2
    last = exact(first + 3) if r else (T1 if asked else 0)
    if unanimous:
        last = exact(last + (setting.top - setting.m) * T1)
    return Counts(asked, 2 * r, r, r, last, setting.m)


FORMULAS = {
    "election_messages": "n - 2 PREPARE",
    "answer_messages": "2r ACK; r live others",
    "coordinator_messages": "r COMMIT",
    "other_messages": "r READY",
    "messages": "(n-2) + 4r; 5(n-2) if only the leader is dead",
    "time": "5; T1 + 3 if more are dead, T1 on top for each above m",
    "leader": "m",
}


def forms(setting: GroupSetting) -> list[Form]:
    """The named results at the size of a setting.

    >>> [form.value for form in forms(GroupSetting(n=64, live=(1, 63), detectors=(1,)))]
    [310, 186]
    """
    n = setting.n
    if n < 2:
        return []
    return [
        Form("agreed_messages", messages(n), "5(n-2)", SOURCE, DECIDED),
        Form("aborted_messages", aborted_messages(n), "3(n-2)", SOURCE, DECIDED),
    ]


def _others(n: int, r: int | None) -> int:
    require(n >= 2, f"n must be at least 2, not {n}")
    r = n - 2 if r is None else r
    require(0 <= r <= n - 2, f"r must be between 0 and n - 2 = {n - 2}, not {r}")
    return r


DECLARED = counted(
    "stable",
    counts,
    FORMULAS,
    forms,
    SOURCE,
    DECIDED,
    timers={"T1": Fraction(2)},
    flags={"unanimous": True},
)
