"""Bully with an assistant (Zargarnataj 2007, in the overhead-aware paper, section 2, as Mahdi).

The leader n has an assistant, n-1. A detector reports the crash to it. The assistant verifies it
with a CHECK, which a dead leader does not answer, and announces itself (I_AM_LEADER). Then all
members vote for the next assistant, and the leader announces the result (VOTE, ASSISTANT). If the
assistant is dead too, a full bully election comes first. T1 is the wait for answers and votes, T2
the wait for the assistant.

The summary gives no counts; the counts below follow from the rules and these decisions. An
assistant that detects the crash itself sends no report, but still sends its CHECK. I_AM_LEADER goes
to all lower ids, ASSISTANT to the members that voted.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from hustings.lab.closed_forms import bully
from hustings.lab.closed_forms.counted import Counts, GroupSetting, counted
from hustings.lab.closed_forms.form import DECIDED, OVERHEAD, Form, Number, exact, require

SOURCE = f"{OVERHEAD}, section 2 [11]"


def messages(n: int) -> int:
    """All messages when only the leader is dead and another member detects it: 2 + 3(n-2).

    The report and the CHECK; then I_AM_LEADER, VOTE and ASSISTANT with each of the n-2 others.

    Parameters: n, counting the crashed leader, at least 3.

    Source: overhead-aware election, section 2, which gives no count. Verdict: counted.

    >>> messages(64)
    188
    """
    require(n >= 3, f"n must be at least 3, or no member is left to detect, not {n}")
    return 2 + 3 * (n - 2)


def assistant_dead_messages(n: int, d: int, m: int) -> int:
    """All messages when the assistant is dead too: 1 + a full bully election + 2r.

    The useless report, the election, then VOTE and ASSISTANT with the r = m-1 others.

    Parameters: n, d, m with m < n-1 and no dead member below m.

    Source: overhead-aware election, section 2, which gives no count. Verdict: counted; the report
    that no member receives is easily forgotten.

    >>> assistant_dead_messages(8, d=1, m=6)
    58
    """
    require(m < n - 1, f"m must be below n - 1 = {n - 1}, the dead assistant, not {m}")
    full = bully.election_and_answer_messages(n, d, m) + bully.coordinator_messages(m)
    return 1 + full + 2 * (m - 1)


def counts(setting: GroupSetting) -> Counts:
    """The election of one setting, where a closed form exists.

    Parameters: a setting with timers T1 and T2.

    Source: the forms above. After the announcement come a VOTE and an ASSISTANT, 2 units. If a dead
    member got the announcement, the leader waits for its vote until T1, which replaces announcement
    and VOTE.

    >>> counts(GroupSetting(n=8, live=(1, 2, 3, 4, 5, 6, 7), detectors=(1,))).metrics()["time"]
    6
    """
    m, k, r = setting.m, len(setting.detectors), len(setting.live) - 1
    T1, T2 = _timers(setting)
    if setting.start:
        return Counts(leader=m, why="nobody leads, so there is no assistant to turn to")
    votes = exact((2 if r == m - 1 else T1) + 1) if r else 0  # from announcement to the end
    if m == setting.top:
        itself = m in setting.detectors
        reports = k - 1 if itself else k
        last = exact((0 if itself else 1) + T1 + votes)
        return Counts(0, 0, m - 1, reports + 1 + 2 * r, last, m)
    full = bully.counts(replace(setting, timers={"T1": T1}))
    assert full.time is not None  # m is below n-1, so the bully election has its closed form
    last = exact(T2 + full.time + (votes - 1 if r else 0))
    return replace(full, other=k + 2 * r, time=last)


FORMULAS = {
    "election_messages": "0; as bully if the assistant is dead",
    "answer_messages": "0; as bully if the assistant is dead",
    "coordinator_messages": "m - 1 I_AM_LEADER",
    "other_messages": "1 report, 1 CHECK, r VOTE, r ASSISTANT; 1 + 2r if the assistant is dead",
    "messages": "2 + 3(n-2) if only the leader is dead; 1 + bully + 2r if the assistant is too",
    "time": "1 + T1 + 3; T2 + bully + 2 if the assistant is dead",
    "leader": "m",
}


def forms(setting: GroupSetting) -> list[Form]:
    """The named results at the size of a setting.

    >>> [form.value for form in forms(GroupSetting(n=64, live=(1, 63), detectors=(1,)))]
    [188, 4090]
    """
    n = setting.n
    found: list[Form] = []
    if n >= 3:
        found.append(Form("assistant_alive", messages(n), "2 + 3(n-2)", SOURCE, DECIDED))
    if n >= 4:
        value = assistant_dead_messages(n, 1, n - 2)
        formula = "1 + bully(d = 1, m = n-2) + 2(n-3)"
        found.append(Form("assistant_dead", value, formula, SOURCE, DECIDED))
    return found


def _timers(setting: GroupSetting) -> tuple[Number, Number]:
    T1 = exact(setting.timers.get("T1", 2))
    T2 = exact(setting.timers.get("T2", T1 + 2))
    require(T1 >= 2, f"T1 must be at least 2, the time of a question and its answer, not {T1}")
    require(T2 >= T1 + 2, f"T2 must be at least T1 + 2 = {T1 + 2}, the time to act, not {T2}")
    return T1, T2


DECLARED = counted(
    "bully-assistant",
    counts,
    FORMULAS,
    forms,
    SOURCE,
    DECIDED,
    timers={"T1": Fraction(2), "T2": None},
)
