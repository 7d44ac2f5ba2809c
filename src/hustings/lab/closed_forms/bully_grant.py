"""Bully with GRANT (Kordafshari et al. 2005, as told by the overhead-aware paper, section 2).

The initiator asks all higher ids. The live ones answer with their ids, and it grants leadership to
the best of them. Receivers wait W before they answer, and answer only the lowest initiator that has
asked them. An initiator stops when a lower one asks it. T1 is the wait for answers on top of W.

The summary says that an initiator wins without a response from any process with a LOWER id; it
must read HIGHER. Counts are not given there; those below follow from the rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from hustings.lab.closed_forms.counted import Counts, GroupSetting, counted, members
from hustings.lab.closed_forms.form import DECIDED, OVERHEAD, Form, Number, exact, require

SOURCE = f"{OVERHEAD}, section 2 [7]"


def election_messages(n: int, initiators: Sequence[int]) -> int:
    """ELECTION messages: the sum of n - d over the initiators d.

    Only initiators ask; a member that is asked answers and starts nothing.

    Parameters: n, counting the crashed leader; initiators, all at once.

    Source: overhead-aware election, section 2. Verdict: counted.

    >>> election_messages(64, [1]), election_messages(8, [1, 3])
    (63, 12)
    """
    require(len(initiators) >= 1, "initiators must name at least one member")
    return sum(n - d for d in initiators)


def answer_messages(d: int, m: int) -> int:
    """OK messages: m - d to the lowest initiator d, with no dead member between d and m.

    Parameters: d, the lowest initiator; m, the highest live id.

    Source: overhead-aware election, section 2. Verdict: counted.

    >>> answer_messages(1, 63)
    62
    """
    require(1 <= d <= m, f"d must be between 1 and m = {m}, not {d}")
    return m - d


def grant_messages(d: int, m: int) -> int:
    """GRANT messages: 1, or 0 if the lowest initiator is the best itself.

    Parameters: d, the lowest initiator; m, the highest live id.

    Source: overhead-aware election, section 2. Verdict: counted.

    >>> grant_messages(1, 63), grant_messages(63, 63)
    (1, 0)
    """
    return 1 if d < m else 0


def coordinator_messages(m: int) -> int:
    """COORDINATOR messages: m - 1, to all lower ids.

    Parameters: m, the highest live id.

    Source: overhead-aware election, section 2. Verdict: counted.

    >>> coordinator_messages(63)
    62
    """
    require(m >= 1, f"m must be at least 1, not {m}")
    return m - 1


def messages(n: int, d: int = 1, m: int | None = None) -> int:
    """All messages of one initiator; for d = 1 and only the leader dead 3n - 4.

    (n-1) ELECTION, (n-2) OK, 1 GRANT, (n-2) COORDINATOR.

    Parameters: n, d, m (n-1 by default), with no dead member between d and m.

    Source: overhead-aware election, section 2, which gives no count. Verdict: counted.

    >>> messages(64), 3 * 64 - 4
    (188, 188)
    """
    m = members(n, d, m)[-1]
    answers = answer_messages(d, m) + grant_messages(d, m)
    return election_messages(n, [d]) + answers + coordinator_messages(m)


def time(d: int, m: int, T1: float | Number = 2, window: float | Number = 1) -> Number:
    """The time until all members are informed: W + T1 + 2, or W + T1 + 1 for d = m.

    The initiator waits W + T1 for all answers, since it cannot know how many will come; GRANT and
    COORDINATOR travel one unit each.

    Parameters: d, the lowest initiator; m, the highest live id, above 1; T1, at least 2; window,
    which is W.

    Source: overhead-aware election, section 2, which gives no time. Verdict: counted.

    >>> time(1, 63), time(63, 63)
    (5, 4)
    """
    require(m >= 2, f"m must be at least 2, or no member is left to be told, not {m}")
    return exact(_wait(T1, window) + (2 if d < m else 1))


def counts(setting: GroupSetting) -> Counts:
    """The election of one setting; dead members in any place do not answer.

    Parameters: a setting with timers T1 and W.

    Source: the forms above, with OK counted over the live members only.

    >>> counts(GroupSetting(n=8, live=(1, 2, 3, 4, 5, 6, 7), detectors=(1, 3))).messages
    25
    """
    m, d = setting.m, setting.d
    wait = _wait(setting.timers.get("T1", 2), setting.timers.get("W", 1))
    asked = election_messages(setting.n, setting.detectors)
    granted = grant_messages(d, m)
    told = 1 if len(setting.live) > 1 else 0
    last = exact(wait + granted + told)
    return Counts(asked, setting.live_above(d), m - 1, granted, last, m)


FORMULAS = {
    "election_messages": "sum of n - d over the initiators",
    "answer_messages": "m - d1 for the lowest initiator d1, less the dead between",
    "coordinator_messages": "m - 1",
    "other_messages": "1 GRANT; 0 for d1 = m",
    "messages": "3n - 4 for d = 1 and only the leader dead",
    "time": "W + T1 + 2; W + T1 + 1 for d1 = m",
    "leader": "m",
}


def forms(setting: GroupSetting) -> list[Form]:
    """The named result at the size of a setting.

    >>> [form.value for form in forms(GroupSetting(n=64, live=(1, 63), detectors=(1,)))]
    [188]
    """
    n = setting.n
    if n < 3:
        return []
    return [Form("worst_messages", messages(n), "3n - 4", SOURCE, DECIDED)]


def _wait(T1: float | Number, window: float | Number) -> Number:
    require(T1 >= 2, f"T1 must be at least 2, the time of a question and its answer, not {T1}")
    require(window >= 0, f"W must not be negative, not {window}")
    return exact(T1) + exact(window)


DECLARED = counted(
    "bully-grant",
    counts,
    FORMULAS,
    forms,
    SOURCE,
    DECIDED,
    timers={"T1": Fraction(2), "W": Fraction(1)},
)
