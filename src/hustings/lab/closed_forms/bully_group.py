"""Bully with a coordination group (Gholipour et al. 2009, in the overhead-aware paper, section 2).

The leader n names K alternates, n-1 down to n-K. A detector tells them of the crash, best first,
with CRASH_LEADER. The first live one verifies it with a CHECK, which a dead leader does not answer,
and takes over. If all K are dead, the detector asks all higher ids itself and tells the best that
answers. T1 is the wait for answers to CHECK and ELECTION, T2 the wait for an alternate to act.

The summary gives no counts; the counts below follow from the rules and one decision: a detector
that is an alternate itself tells only those better than itself and then takes its own turn, with a
CHECK.
"""

from __future__ import annotations

from fractions import Fraction

from hustings.lab.closed_forms.counted import Counts, GroupSetting, counted
from hustings.lab.closed_forms.form import DECIDED, OVERHEAD, Form, Number, exact, require

SOURCE = f"{OVERHEAD}, section 2 [9]"


def crash_leader_messages(dead: int, K: int) -> int:
    """CRASH_LEADER messages: dead + 1 while an alternate lives, K + 1 if none does.

    In the second case the last one goes to the best member that answered an ELECTION. The
    detector is not an alternate here.

    Parameters: dead, how many alternates before the first live one; K, the alternates.

    Source: overhead-aware election, section 2. Verdict: counted.

    >>> crash_leader_messages(0, 2), crash_leader_messages(1, 2), crash_leader_messages(2, 2)
    (1, 2, 3)
    """
    _group(dead, K)
    return dead + 1


def check_messages() -> int:
    """CHECK messages: 1, by a member that is about to take over.

    Source: overhead-aware election, section 2. Verdict: counted.

    >>> check_messages()
    1
    """
    return 1


def false_alarm_messages() -> int:
    """All messages of a false alarm: 4.

    CRASH_LEADER, CHECK, the leader's answer, and ALIVE to the detector.

    Source: overhead-aware election, section 2. Verdict: counted.

    >>> false_alarm_messages()
    4
    """
    return 4


def messages(n: int, dead: int = 0, K: int = 2) -> int:
    """All messages while an alternate lives: (dead + 1) + 1 + (n - 2 - dead).

    CRASH_LEADER, CHECK, and COORDINATOR from n-1-dead to all lower ids: n for any number of dead.

    Parameters: n, counting the crashed leader; dead, how many alternates before the first live
    one, fewer than K; the detector is below the group.

    Source: overhead-aware election, section 2, which gives no count. Verdict: counted.

    >>> messages(64), messages(64, dead=1)
    (64, 64)
    """
    _group(dead, K)
    require(dead < K, f"dead must be below K = {K}, not {dead}")
    require(n >= dead + 3, f"n must be at least {dead + 3}, or none is left to detect, not {n}")
    return crash_leader_messages(dead, K) + check_messages() + (n - 2 - dead)


def all_dead_messages(n: int, d: int, m: int, K: int = 2) -> int:
    """All messages when the whole group is dead: K + (n-d) + (m-d) + 2 + (m-1) for d < m.

    K useless CRASH_LEADER, ELECTION, OK, one more CRASH_LEADER and CHECK, COORDINATOR. For d = m no
    member answers and d wins: K + (n-d) + (m-1).

    Parameters: n, d, m with m < n-K and no dead member between d and m; K.

    Source: overhead-aware election, section 2, which gives no count. Verdict: counted.

    >>> all_dead_messages(8, d=1, m=5), all_dead_messages(8, d=5, m=5)
    (19, 9)
    """
    _group(K, K)
    require(1 <= m < n - K, f"m must be between 1 and n - K - 1 = {n - K - 1}, not {m}")
    require(1 <= d <= m, f"d must be between 1 and m = {m}, not {d}")
    return K + (n - d) + (m - d + 2 if d < m else 0) + (m - 1)


def counts(setting: GroupSetting) -> Counts:
    """The election of one setting, where a closed form exists.

    Parameters: a setting with timers T1 and T2 and the number K.

    Source: the forms above. An alternate that is told acts after T1. It needs one unit to be told
    and one to announce, 2 + T1 in all; each dead alternate before it costs T2. Each of several
    detectors tells all alternates better than itself. An alternate that is told again while it
    verifies continues.

    >>> counts(GroupSetting(n=8, live=(1, 2, 3, 4, 5, 6, 7), detectors=(1,))).metrics()["time"]
    4
    """
    n, m, d = setting.n, setting.m, setting.d
    T1, T2 = _timers(setting)
    if setting.start:
        return Counts(leader=m, why="nobody leads, so there is no group to turn to")
    K = min(setting.numbers.get("K", 2), n - 1)
    _group(0, K)
    k, silent, told = len(setting.detectors), n - 1 - m, 1 if len(setting.live) > 1 else 0
    if m >= n - K:
        itself = 1 if m in setting.detectors else 0
        reports, last = k * (silent + 1) - itself, silent * T2 + T1 + told + 1 - itself
        return Counts(0, 0, m - 1, reports + check_messages(), exact(last), m)
    if k > 1:
        why = "the whole group is dead and several detectors run elections of their own"
        return Counts(leader=m, why=why)
    if d == m:
        return Counts(n - d, 0, m - 1, K, exact(K * T2 + T1 + told), m)
    return Counts(n - d, setting.live_above(d), m - 1, K + 2, exact(K * T2 + 2 * T1 + 2), m)


FORMULAS = {
    "election_messages": "0; n - d if all K alternates are dead",
    "answer_messages": "0; m - d if all K alternates are dead, less the dead between",
    "coordinator_messages": "m - 1",
    "other_messages": "a + 1 CRASH_LEADER and 1 CHECK for a < K dead alternates; K + 2 for a = K",
    "messages": "n while an alternate lives; K + (n-d) + (m-d) + 2 + (m-1) if all are dead",
    "time": "a T2 + T1 + 2 for a < K dead alternates; K T2 + 2 T1 + 2 for a = K",
    "leader": "m",
}


def forms(setting: GroupSetting) -> list[Form]:
    """The named results at the size of a setting.

    >>> [form.name for form in forms(GroupSetting(n=64, live=(1, 63), detectors=(1,)))]
    ['messages_group_alive', 'messages_group_dead', 'false_alarm_messages']
    """
    n, K = setting.n, setting.numbers.get("K", 2)
    found: list[Form] = []
    if n >= 3:
        found.append(Form("messages_group_alive", messages(n, 0, K), "n", SOURCE, DECIDED))
    if n >= K + 3:
        m = n - K - 1
        value, formula = all_dead_messages(n, 1, m, K), "K + (n-1) + (m-1) + 2 + (m-1), m = n-K-1"
        found.append(Form("messages_group_dead", value, formula, SOURCE, DECIDED))
    alarm = "CRASH_LEADER, CHECK, its answer, ALIVE"
    return [*found, Form("false_alarm_messages", false_alarm_messages(), alarm, SOURCE, DECIDED)]


def _group(dead: int, K: int) -> None:
    require(K >= 1, f"K must be at least 1, not {K}")
    require(0 <= dead <= K, f"dead must be between 0 and K = {K}, not {dead}")


def _timers(setting: GroupSetting) -> tuple[Number, Number]:
    T1 = exact(setting.timers.get("T1", 2))
    T2 = exact(setting.timers.get("T2", T1 + 2))
    require(T1 >= 2, f"T1 must be at least 2, the time of a question and its answer, not {T1}")
    require(T2 >= T1 + 2, f"T2 must be at least T1 + 2 = {T1 + 2}, the time to act, not {T2}")
    return T1, T2


DECLARED = counted(
    "bully-group",
    counts,
    FORMULAS,
    forms,
    SOURCE,
    DECIDED,
    timers={"T1": Fraction(2), "T2": None},
    numbers={"K": 2},
)
