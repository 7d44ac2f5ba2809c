"""Ring election (lecture, chapter 15): N live members, messages travel clockwise.

Here N counts the live ring only; the crashed leader is not in it (the bully forms do count it).
Runs carry (epoch, initiator). A member suppresses runs lower than the highest it has seen, and its
participation flag is kept per run. With one flag for all runs the protocol with a cache deadlocks.
The plain rules, a flag and no cache, are those of Chang and Roberts (doi:10.1145/359104.359108).
"""

from __future__ import annotations

from fractions import Fraction
from math import factorial, fsum

from hustings.lab.closed_forms.counted import Counts, GroupSetting, counted
from hustings.lab.closed_forms.form import COUNTED, LECTURE, Form, Number, require

SOURCE = f"{LECTURE}: ring election"

# Rings of n members in any order, with any set of initiators, that elect no member when the cache
# is used with ONE flag for all runs. Counted over all cases.
DEAD_LOCKS = {3: 1, 4: 13, 5: 154, 6: 1946}


def messages(N: int, hops: int) -> int:
    """One initiator, the best member `hops` hops clockwise from it: 2N + hops.

    ELECTION needs `hops` messages to reach the best member and N to circle once under its name,
    then ELECTED circles in N. One message is on its way at any time, so this is the time too.

    Parameters: N, the live members; hops, 0..N-1.

    Source: the lecture's analysis, for hops = N-1 and hops = 0. Verdict: counted for all hops. A
    member alone elects itself and sends nothing.

    >>> messages(5, hops=0), messages(5, hops=4), messages(1, hops=0)
    (10, 14, 0)
    """
    require(0 <= hops < _ring(N), f"hops must be between 0 and N - 1 = {N - 1}, not {hops}")
    return 2 * N + hops if N > 1 else 0


def mean_messages(N: int) -> Number:
    """One initiator, all distances to the best member equally likely: (5N - 1) / 2.

    Parameters: N, the live members, at least 2.

    Source: follows from 2N + hops. Verdict: counted.

    >>> mean_messages(5), mean_messages(64)
    (Fraction(12, 1), Fraction(319, 2))
    """
    require(N >= 2, f"N must be at least 2, not {N}")
    return Fraction(5 * N - 1, 2)


def printed_worst(N: int) -> int:
    """Messages and transmission times of the worst case as printed: 3N - 1.

    The initiator is the successor of the best member. Parameters: N, the live members.

    Source: the lecture's worst-case analysis. Verdict: right for a single initiator, and only if N
    leaves the crashed leader out.

    >>> printed_worst(5) == messages(5, hops=4)
    True
    """
    return 3 * _ring(N) - 1


def printed_best(N: int) -> int:
    """Messages and transmission times of the best case as printed: 2N.

    The initiator is the best member. Parameters: N, the live members.

    Source: the lecture's slide on the best case. Verdict: right for a single initiator, and only
    if N leaves the crashed leader out.

    >>> printed_best(5) == messages(5, hops=0)
    True
    """
    return 2 * _ring(N)


def simultaneous_messages(N: int, hops: int) -> int:
    """Several initiators at once, ids increasing clockwise: 2N + hops of the LOWEST initiator.

    Each lower run dies at the next initiator, so all runs together walk once from the lowest
    initiator to the best member; the highest run then circles twice.

    Parameters: N, the live members; hops from the lowest initiator to the best member.

    Source: follows from the rules; the lecture counts one initiator only. Verdict: counted.

    >>> simultaneous_messages(5, hops=4) == all_increasing(5)
    True
    """
    return messages(N, hops)


def all_increasing(N: int) -> int:
    """All members initiate, ids increase clockwise: 3N - 1.

    Every message but the best member's dies after one hop. Time 2N.

    Parameters: N, the live members, at least 2.

    Source: the lecture's rules for several initiators. Verdict: counted.

    >>> [all_increasing(N) for N in (4, 5, 6)]
    [11, 14, 17]
    """
    require(N >= 2, f"N must be at least 2, not {N}")
    return 3 * N - 1


def all_decreasing(N: int) -> int:
    """All members initiate, ids decrease clockwise: N(N+1)/2 + N.

    The run of the j-th lowest id walks j hops until it meets a higher initiator, or returns.

    Parameters: N, the live members, at least 2.

    Source: the lecture's rules for several initiators. Verdict: counted.

    >>> [all_decreasing(N) for N in (3, 4, 5, 6)]
    [9, 14, 20, 27]
    """
    require(N >= 2, f"N must be at least 2, not {N}")
    return N * (N + 1) // 2 + N


def all_random_mean(N: int) -> float:
    """All members initiate, ids in random order: on average N * H_N + N.

    H_N = 1 + 1/2 + ... + 1/N. Parameters: N, the live members, at least 2.

    Source: the lecture's rules for several initiators; the mean is the classic one of Chang and
    Roberts. Verdict: counted over all orders for N = 4, 5, 6.

    >>> [round(all_random_mean(N), 3) for N in (4, 5, 6)]
    [12.333, 16.417, 20.7]
    """
    require(N >= 2, f"N must be at least 2, not {N}")
    return N * fsum(1 / j for j in range(1, N + 1)) + N


def all_random_mean_late_cache(N: int) -> float:
    """The same when an initiator notes its own run when it comes by, not when it sends: + N - 1.

    Every run but the best member's then survives one more hop.

    Parameters: N, the live members, at least 2.

    Source: one reading of the lecture ("remembers the initiator of each message it receives").
    Verdict: a reading to avoid; counted.

    >>> round(all_random_mean_late_cache(5), 3)
    20.417
    """
    return all_random_mean(N) + N - 1


def most_with_flag(N: int) -> int:
    """The most messages over all orders and all sets of initiators, flag and no cache.

    N(N+1)/2 + N, as when all initiate and ids decrease clockwise.

    Parameters: N, the live members, at least 2.

    Source: the lecture's rules for one initiator, used with several. Verdict: counted over all
    cases for N = 3..6.

    >>> [most_with_flag(N) for N in (3, 4, 5, 6)]
    [9, 14, 20, 27]
    """
    return all_decreasing(N)


def most_with_cache(N: int) -> int:
    """The most messages over all orders and all sets of initiators, cache and per-run flag.

    N(N+1)/2 + 2N - 2: ids decrease clockwise and all but the best member initiate. The cache is
    meant to save messages, but makes the worst case cost more.

    Parameters: N, the live members, at least 3.

    Source: the lecture's rules for several initiators. Verdict: counted over all cases for
    N = 3..6.

    >>> [most_with_cache(N) for N in (3, 4, 5, 6)]
    [10, 16, 23, 31]
    """
    require(N >= 3, f"N must be at least 3, not {N}")
    return N * (N + 1) // 2 + 2 * N - 2


def dead_locked(n: int) -> tuple[int, int]:
    """Cases that elect no member when the cache is used with one flag for all runs, of all cases.

    The cases are (n-1)! rings times 2^n - 1 sets of initiators. An example: ring 1, 2, 4, 3
    with initiators 1 and 3, where 4 spends its flag on the run of 1, which 3 then suppresses.

    Parameters: n, 3..6 (counted over all cases; no formula is known).

    Source: the lecture's rule "has not forwarded an election message earlier". Verdict: it must
    be read per run; the flag without a cache never fails.

    >>> dead_locked(4), dead_locked(5), dead_locked(6)
    ((13, 90), (154, 744), (1946, 7560))
    """
    require(n in DEAD_LOCKS, f"n must be between 3 and 6, which were counted, not {n}")
    return DEAD_LOCKS[n], factorial(n - 1) * (2**n - 1)


def leader_dies_predecessor_reruns(n: int) -> int:
    """The best member dies one hop after sending its own ELECTION; its predecessor starts anew.

    4n - 4 = 4(n-1) for n >= 5: n-1 messages bring the first ELECTION from member 1 to n, n-1 more
    bring ELECTION:n round to n-1, which by then suspects n and runs alone in 2(n-1). At n = 4 it
    learns of the crash only as it forwards, and 3 orphans more circle once: 15.

    Parameters: n, members including the one that dies, at least 4. Suspicion comes 2 units after
    the crash; member 1 initiated.

    Source: the lecture's "fixing for failures", first option. Verdict: not counted there; counted.

    >>> [leader_dies_predecessor_reruns(n) for n in (4, 5, 8, 16, 64)]
    [15, 16, 28, 60, 252]
    """
    require(n >= 4, f"n must be at least 4, not {n}")
    return 15 if n == 4 else 4 * n - 4


def leader_dies_all_rerun(n: int) -> int:
    """The best member dies one hop after sending its own ELECTION; all that suspect start anew.

    4n - 1. When suspicion comes, members 1, 2 and 3 hold an ELECTION naming n and start runs that
    die after one hop; ELECTION:n still reaches one more, whose run completes.

    Parameters: n, members including the one that dies, at least 4. Suspicion comes 2 units after
    the crash; member 1 initiated.

    Source: the lecture's "fixing for failures", second option. Verdict: not counted there;
    counted.

    >>> [leader_dies_all_rerun(n) for n in (4, 5, 8, 16, 64)]
    [15, 19, 31, 63, 255]
    """
    require(n >= 4, f"n must be at least 4, not {n}")
    return 4 * n - 1


def orphan_messages(units: int) -> int:
    """Messages of an ELECTION whose owner died undetected: one each unit of time, for ever.

    units + 1 after that many units; so 20N + 1 after 20N, and no leader.

    Parameters: units of time since it was sent.

    Source: the lecture's "effect of failures". Verdict: liveness is lost without a detector.

    >>> orphan_messages(20 * 7)
    141
    """
    require(units >= 0, f"units must not be negative, not {units}")
    return units + 1


def counts(setting: GroupSetting) -> Counts:
    """The election of one setting, ids increasing clockwise over the live members.

    Parameters: a setting; its detectors initiate at once.

    Source: `messages` and `simultaneous_messages`. The highest initiator's run decides the time:
    2N + its own hops.

    >>> counts(GroupSetting(n=6, live=(1, 2, 3, 4, 5), detectors=(2, 4))).metrics()["time"]
    11
    """
    N = len(setting.live)
    if N == 1:
        return Counts(0, 0, 0, 0, 0, setting.m)
    first = setting.live_above(setting.detectors[0])
    last = setting.live_above(setting.detectors[-1])
    return Counts(N + first, 0, N, 0, 2 * N + last, setting.m)


FORMULAS = {
    "election_messages": "N + hops of the lowest initiator; N live, clockwise = increasing id",
    "answer_messages": "0",
    "coordinator_messages": "N",
    "other_messages": "0",
    "messages": "2N + hops",
    "time": "2N + hops of the highest initiator",
    "leader": "the highest live id",
}


def forms(setting: GroupSetting) -> list[Form]:
    """The named results at the size of a setting; those outside their domain are left out.

    >>> found = forms(GroupSetting(n=6, live=(1, 2), detectors=(1,)))
    >>> [form.name for form in found if form.printed][:2]
    ['worst_messages', 'worst_time']
    """
    N, n = len(setting.live), setting.n
    rows: list[tuple[str, Number | float, str]] = []
    if N >= 2:
        rows += [
            ("worst_messages", messages(N, N - 1), "3N - 1"),
            ("worst_time", messages(N, N - 1), "3N - 1"),
            ("best_messages", messages(N, 0), "2N"),
            ("best_time", messages(N, 0), "2N"),
            ("mean_messages", mean_messages(N), "(5N - 1) / 2"),
            ("all_increasing", all_increasing(N), "3N - 1"),
            ("all_decreasing", all_decreasing(N), "N(N+1)/2 + N"),
            ("all_random_mean", all_random_mean(N), "N H_N + N"),
            ("all_random_mean_late_cache", all_random_mean_late_cache(N), "N H_N + 2N - 1"),
            ("most_with_flag", most_with_flag(N), "N(N+1)/2 + N"),
        ]
    if N >= 3:
        rows.append(("most_with_cache", most_with_cache(N), "N(N+1)/2 + 2N - 2"))
    if N in DEAD_LOCKS:
        share = "share of all orders and initiators that elect nobody, one flag and cache"
        rows.append(("dead_locked_share", Fraction(*dead_locked(N)), share))
    if n >= 4:
        after = "4n - 4; 15 for n = 4"
        rows += [
            ("leader_dies_predecessor_reruns", leader_dies_predecessor_reruns(n), after),
            ("leader_dies_all_rerun", leader_dies_all_rerun(n), "4n - 1"),
        ]
    rows.append(("orphan_messages", orphan_messages(20 * N), "units + 1, here after 20N"))
    found = [Form(name, value, formula, SOURCE, COUNTED) for name, value, formula in rows]
    verdict = "right for one initiator, N without the crashed leader"
    return [
        *found,
        Form("worst_messages", printed_worst(N), "3N - 1", SOURCE, verdict, True),
        Form("worst_time", printed_worst(N), "3N - 1", SOURCE, verdict, True),
        Form("best_messages", printed_best(N), "2N", SOURCE, verdict, True),
        Form("best_time", printed_best(N), "2N", SOURCE, verdict, True),
    ]


def _ring(N: int) -> int:
    require(N >= 1, f"N must be at least 1, not {N}")
    return N


DECLARED = counted("ring", counts, FORMULAS, forms, SOURCE)
