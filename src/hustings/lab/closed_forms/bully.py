"""Bully election (lecture, chapter 15; Garcia-Molina 1982, doi:10.1109/TC.1982.1675885).

n counts the crashed leader, m is the highest live id, d the detector. T1 is the wait for an OK,
at least 2 units; T2 the wait for COORDINATOR after the first OK. `dead` names dead members below
m besides the leader and those above m.

The slides count ELECTION only. OK and COORDINATOR come on top, and the time is 4, not 5.
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction

from hustings.lab.closed_forms.counted import Counts, GroupSetting, counted, members
from hustings.lab.closed_forms.form import COUNTED, LECTURE, OVERHEAD, Form, Number, exact, require
from hustings.lab.closed_forms.overhead_table import overhead_forms

SOURCE = f"{LECTURE}: bully algorithm"
SPECIAL = f"{OVERHEAD}, 5.5"
FAILURE = f"{LECTURE}: failures during an election run"


def election_messages(n: int, d: int, m: int | None = None, dead: Collection[int] = ()) -> int:
    """ELECTION messages: the sum of n - j over the live members j from d to m.

    Each of them asks all higher ids once, also the dead ones. For d = n-1 no higher member is left
    to ask: 0.

    Parameters: n, d, m (n-1 by default) and dead, as in the module.

    Source: the lecture's analysis for d = 1, m = n-1. Verdict: counted for all d and m.

    >>> election_messages(64, d=1), election_messages(64, d=63), election_messages(8, d=2, m=5)
    (2016, 0, 18)
    """
    live = members(n, d, m, dead)
    return 0 if d == n - 1 else sum(n - j for j in live if j >= d)


def answer_messages(n: int, d: int, m: int | None = None, dead: Collection[int] = ()) -> int:
    """OK messages: one for each pair of live members from d to m.

    If no member between them is dead this is the sum of m - j for j = d..m.

    Parameters: n, d, m (n-1 by default) and dead, as in the module.

    Source: not counted by the lecture. Verdict: counted.

    >>> answer_messages(64, d=1), answer_messages(8, d=2, m=5, dead=[3])
    (1953, 3)
    """
    return _pairs(len([j for j in members(n, d, m, dead) if j >= d]))


def coordinator_messages(m: int) -> int:
    """COORDINATOR messages: m - 1, to all lower ids, also the dead ones.

    Parameters: m, the highest live id, which wins.

    Source: the lecture, best case. Verdict: right; omitted by the slide in the worst case.

    >>> coordinator_messages(63)
    62
    """
    require(m >= 1, f"m must be at least 1, not {m}")
    return m - 1


def election_and_answer_messages(n: int, d: int, m: int) -> int:
    """ELECTION and OK together: (m - d + 1)(n - d).

    Parameters: n, d, m with d < m or d = m < n-1, and no dead member between d and m.

    Source: follows from the two sums. Verdict: counted.

    >>> election_and_answer_messages(64, d=1, m=63) == 63 * 63
    True
    """
    members(n, d, m)
    require(d < n - 1, f"d must be below n - 1 = {n - 1}, which asks no member, not {d}")
    return (m - d + 1) * (n - d)


def time(
    n: int,
    d: int,
    m: int | None = None,
    dead: Collection[int] = (),
    T1: float | Number = 2,
) -> Number:
    """The time until all members are informed: 2 + T1 for d < m, T1 + 1 for d = m < n-1.

    The answer to d and the ELECTION messages of the second level travel at the same time, so
    there are 1 + T1 + 1. A detector that is the best of all needs one COORDINATOR: 1. Without a
    member left to inform there is no last step.

    Parameters: n, d, m (n-1 by default), dead and T1, as in the module.

    Source: the lecture's timeouts. Verdict: the printed 5 is wrong; counted.

    >>> time(64, d=1), time(64, d=63), time(64, d=1, m=1), time(64, d=1, T1=3)
    (4, 1, 2, 5)
    """
    return _time(GroupSetting(n, members(n, d, m, dead), (d,)), _timer(T1))


def worst_messages(n: int) -> int:
    """All messages when member 1 detects and only the leader is dead: n^2 - n - 1.

    n(n-1)/2 ELECTION, (n-1)(n-2)/2 OK, n-2 COORDINATOR.

    Parameters: n, at least 3.

    Source: the lecture's worst case, with the kinds it omits. Verdict: counted.

    >>> worst_messages(64)
    4031
    """
    require(n >= 3, f"n must be at least 3, not {n}")
    return n * n - n - 1


def best_messages(n: int) -> int:
    """All messages when n-1 detects: n - 2, all of them COORDINATOR, in time 1.

    Parameters: n, at least 2.

    Source: the lecture's best case. Verdict: right.

    >>> best_messages(64)
    62
    """
    require(n >= 2, f"n must be at least 2, not {n}")
    return n - 2


def middle_messages(n: int) -> int:
    """All messages when n/2 detects and only the leader is dead: n^2/4 + n - 2.

    Parameters: n, even, at least 4.

    Source: follows from the sums. Verdict: counted.

    >>> middle_messages(64)
    1086
    """
    require(n >= 4 and n % 2 == 0, f"n must be even and at least 4, not {n}")
    return n * n // 4 + n - 2


def only_one_alive_messages(n: int) -> int:
    """All messages when only member 1 lives: n - 1 ELECTION, all in vain; it leads after T1.

    Parameters: n, at least 3.

    Source: overhead-aware election, 5.5. Verdict: right for the bully election.

    >>> only_one_alive_messages(64)
    63
    """
    require(n >= 3, f"n must be at least 3, not {n}")
    return n - 1


def second_highest_crashes(n: int, T1: float | Number = 2, T2: float | Number = 10) -> Counts:
    """Member 1 detects, and n-1 dies after its OKs: all members wait out T2 and run again.

    ELECTION n(n-1) - 1, OK (n-2)^2, COORDINATOR n - 3, time T1 + T2 + 4 (T1 + T2 + 2 for n = 3,
    when member 1 is the only one left).

    Parameters: n, at least 3; T1, at least 2; T2, at least T1.

    Source: the lecture's failures during an election run. Verdict: not counted there; counted.

    >>> [second_highest_crashes(n).election for n in (4, 8, 64)]
    [11, 55, 4031]
    >>> [second_highest_crashes(n).answer for n in (4, 8, 64)], second_highest_crashes(8).time
    ([4, 36, 3844], 16)
    """
    require(n >= 3, f"n must be at least 3, not {n}")
    T1, T2 = _timer(T1), exact(T2)
    require(T2 >= T1, f"T2 must be at least T1 = {T1}, not {T2}")
    last = T1 + T2 + (4 if n > 3 else 2)
    return Counts(n * (n - 1) - 1, (n - 2) ** 2, n - 3, 0, exact(last), n - 2)


def all_detect(n: int) -> Counts:
    """All live members detect at once: n-1 wins at once, the others ask in vain.

    ELECTION n(n-1)/2 - 1, OK (n-1)(n-2)/2, COORDINATOR 2(n-2), time 2: half of the COORDINATORs
    are repeats, since a leader that is asked answers and announces itself again.

    Parameters: n, at least 3.

    Source: the lecture lets several call at once. Verdict: not counted there; counted (the repeat
    is a decision).

    >>> all_detect(8)
    Counts(election=27, answer=21, coordinator=12, other=0, time=2, leader=7, why='')
    """
    require(n >= 3, f"n must be at least 3, not {n}")
    pairs = _pairs(n - 1)
    return Counts(n * (n - 1) // 2 - 1, pairs, 2 * (n - 2), 0, 2, n - 1)


def printed_worst_election_messages(N: int) -> int:
    """ELECTION messages of the worst case as printed: N-1 + N-2 + ... + 1 = (N-1)N/2.

    Parameters: N, the members including the crashed leader.

    Source: the lecture's analysis. Verdict: right; the OK and COORDINATOR messages are left out.

    >>> printed_worst_election_messages(64) == election_messages(64, d=1)
    True
    """
    return sum(range(1, N))


def printed_worst_time() -> int:
    """Transmission times of the worst case as printed: 5.

    Source: the lecture's timeouts and analysis. Verdict: wrong, 4 with T1 = 2: the answer and the
    second ELECTION, printed as two steps, travel at the same time; in general 2 + T1.

    >>> printed_worst_time() - time(64, d=1)
    1
    """
    return 5


def printed_best_coordinator_messages(N: int) -> int:
    """COORDINATOR messages of the best case as printed: N - 2.

    Parameters: N, the members including the crashed leader.

    Source: the lecture's analysis. Verdict: right.

    >>> printed_best_coordinator_messages(64) == best_messages(64)
    True
    """
    return N - 2


def printed_best_time() -> int:
    """Transmission times of the best case as printed: 1.

    Source: the lecture's analysis. Verdict: right.

    >>> printed_best_time() == time(64, d=63)
    True
    """
    return 1


def printed_only_one_alive_messages(n: int) -> int:
    """ELECTION messages when only member 1 lives, as printed: n - 1.

    Parameters: n, at least 3.

    Source: overhead-aware election, 5.5. Verdict: right.

    >>> printed_only_one_alive_messages(64) == election_messages(64, d=1, m=1)
    True
    """
    require(n >= 3, f"n must be at least 3, not {n}")
    return n - 1


def counts(setting: GroupSetting) -> Counts:
    """The election of one setting.

    A member that believes no higher member alive wins as soon as it knows of the election: when it
    detects the crash itself, or at a group's start when it is asked. All others from d upwards ask
    once, since the lowest detector reaches them before the victory does. The winner answers each
    member that asks it, and announces itself again. Only the question that made it win needs no
    repeat.

    Parameters: a setting with timer T1; of several detectors the lower ones act first.

    Source: the sums above, over the live members from the lowest detector upwards.

    >>> counts(GroupSetting(n=8, live=(1, 2, 3, 4, 5, 6, 7), detectors=(1, 2))).messages
    55
    >>> both = counts(GroupSetting(n=8, live=(1, 2, 3, 4, 5, 6, 7), detectors=(1, 7)))
    >>> both.election, both.answer, both.coordinator, both.time
    (27, 21, 12, 3)
    """
    T1 = _timer(setting.timers.get("T1", 2))
    n, m = setting.n, setting.m
    upper = setting.live_from(setting.d)
    asked = sum(n - j for j in upper)
    repeats = 0
    if _wins_at_once(setting):
        asked -= n - m
        repeats = len(upper) - (1 if m in setting.detectors else 2)
    return Counts(asked, _pairs(len(upper)), m - 1 + repeats, 0, _time(setting, T1), m)


FORMULAS = {
    "election_messages": "sum of n - j over live j >= d, without a j = m that wins at once",
    "answer_messages": "pairs of live members from d to m: sum of m - j if none between is dead",
    "coordinator_messages": "m - 1; one more for each that asks an m that has won already",
    "other_messages": "0",
    "messages": "(m - d + 1)(n - d) + m - 1 if none between is dead; n^2 - n - 1 at worst",
    "time": "2 + T1 for d < m; T1 + 1 for d = m < n - 1; 1 for d = n - 1, 2 or 3 for it and more",
    "leader": "m",
}


def forms(setting: GroupSetting) -> list[Form]:
    """The named results at the size of a setting; those outside their domain are left out.

    >>> found = forms(GroupSetting(n=64, live=(1,), detectors=(1,)))
    >>> [(form.name, form.value) for form in found if form.printed][:2]
    [('worst_election_messages', 2016), ('worst_time', 5)]
    """
    n = setting.n
    T1 = _timer(setting.timers.get("T1", 2))
    T2 = max(setting.timers.get("T2", 10), T1)
    found: list[Form] = []
    if n >= 3:
        crash, crowd = second_highest_crashes(n, T1, T2), all_detect(n)
        rows: list[tuple[str, Number | None, str, str]] = [
            ("worst_messages", worst_messages(n), "n^2 - n - 1", SOURCE),
            ("worst_time", 2 + T1, "2 + T1", SOURCE),
            ("best_messages", best_messages(n), "n - 2", SOURCE),
            ("best_time", 1, "1", SOURCE),
            ("only_one_alive_messages", only_one_alive_messages(n), "n - 1", SOURCE),
            ("second_highest_crashes_election", crash.election, "n(n-1) - 1", FAILURE),
            ("second_highest_crashes_answer", crash.answer, "(n-2)^2", FAILURE),
            ("second_highest_crashes_coordinator", crash.coordinator, "n - 3", FAILURE),
            ("second_highest_crashes_time", crash.time, "T1 + T2 + 4", FAILURE),
            ("all_detect_election", crowd.election, "n(n-1)/2 - 1", SOURCE),
            ("all_detect_answer", crowd.answer, "(n-1)(n-2)/2", SOURCE),
            ("all_detect_coordinator", crowd.coordinator, "2(n-2), half of them repeats", SOURCE),
            ("all_detect_time", crowd.time, "2", SOURCE),
        ]
        if n % 2 == 0:
            rows.append(
                ("middle_messages", middle_messages(n), "n^2/4 + n - 2 for d = n/2", SOURCE)
            )
        found = [Form(a, v, f, s, COUNTED) for a, v, f, s in rows if v is not None]
    return found + _printed(n)


def _printed(n: int) -> list[Form]:
    worst = printed_worst_election_messages(n)
    omits = "right; the OK and COORDINATOR messages are left out"
    late = "wrong: 2 + T1, which is 4 with T1 = 2; two of the steps travel at the same time"
    best = printed_best_coordinator_messages(n)
    if n < 3:
        return []
    alone = printed_only_one_alive_messages(n)
    return [
        Form("worst_election_messages", worst, "(N-1)N/2", SOURCE, omits, True),
        Form("worst_time", printed_worst_time(), "5", SOURCE, late, True),
        Form("best_coordinator_messages", best, "N - 2", SOURCE, "right", True),
        Form("best_time", printed_best_time(), "1", SOURCE, "right", True),
        Form("only_one_alive_messages", alone, "n - 1", SPECIAL, "right", True),
    ]


def _pairs(size: int) -> int:
    return size * (size - 1) // 2


def _timer(T1: float | Number) -> Number:
    require(T1 >= 2, f"T1 must be at least 2, the time of a question and its answer, not {T1}")
    return exact(T1)


def _wins_at_once(setting: GroupSetting) -> bool:
    """Whether the best member knows of no higher member that may live."""
    return setting.m == setting.top and (setting.start or setting.m in setting.detectors)


def _time(setting: GroupSetting, T1: Number) -> Number:
    m = setting.m
    alone = len(setting.live) == 1
    if _wins_at_once(setting):
        if setting.detectors == (m,):
            return 0 if alone else 1
        others = [j for j in setting.live_from(setting.d) if j not in (m, *setting.detectors)]
        # These ask when they are asked, and the leader tells them again last.
        return 3 if others else 2
    if m in setting.detectors:
        return T1 if alone else T1 + 1
    return 2 + T1


DECLARED = counted(
    "bully",
    counts,
    FORMULAS,
    lambda s: forms(s) + overhead_forms(s.n, "bully"),
    SOURCE,
    timers={"T1": Fraction(2), "T2": Fraction(10)},
)
