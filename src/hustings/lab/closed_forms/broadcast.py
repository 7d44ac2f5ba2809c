"""The trivial election (lecture, chapter 15): every member tells all others its id.

N counts the live members. START has the role of an election message, ID that of an answer.
"""

from __future__ import annotations

from hustings.lab.closed_forms.counted import Counts, GroupSetting, counted
from hustings.lab.closed_forms.form import COUNTED, LECTURE, Form, require

SOURCE = f"{LECTURE}: trivial solution"


def messages(N: int, initiators: int = 1) -> int:
    """A START to all others from each initiator, then every member's ID to all others.

    k(N-1) + N(N-1), for one initiator (N-1)(N+1).

    Parameters: N, the live members; initiators, how many start at once.

    Source: the lecture's trivial solution, which gives no count. Verdict: counted.

    >>> messages(5), messages(5, initiators=2), messages(1)
    (24, 28, 0)
    """
    _check(N, initiators)
    return initiators * (N - 1) + N * (N - 1)


def combined_messages(N: int) -> int:
    """As `messages` when START carries the initiator's id: N(N-1), one for each ordered pair.

    Parameters: N, the live members.

    Source: the lecture's trivial solution read with one message kind less. Verdict: counted.

    >>> combined_messages(5)
    20
    """
    _check(N, 1)
    return N * (N - 1)


def time(N: int, initiators: int = 1) -> int:
    """START travels one unit, the answering IDs another: 2; 1 if all start, 0 if one is alone.

    Parameters: N, the live members; initiators, how many start at once.

    Source: follows from the rules. Verdict: counted.

    >>> time(5), time(5, initiators=5), time(1)
    (2, 1, 0)
    """
    _check(N, initiators)
    if N == 1:
        return 0
    return 1 if initiators == N else 2


def counts(setting: GroupSetting) -> Counts:
    """The election of one setting; the flag `combined` lets START carry the id.

    Parameters: a setting; its detectors initiate at once. A combined START counts as an election
    message, and its sender sends no ID.

    Source: `messages`, `combined_messages` and `time`.

    >>> counts(GroupSetting(n=6, live=(1, 2, 3, 4, 5), detectors=(2,))).messages
    24
    """
    N, k = len(setting.live), len(setting.detectors)
    answers = N - k if setting.flags.get("combined", False) else N
    return Counts(k * (N - 1), answers * (N - 1), 0, 0, time(N, k), setting.m)


FORMULAS = {
    "election_messages": "k(N-1) START from k initiators; N live",
    "answer_messages": "N(N-1) ID; (N-k)(N-1) if START carries the id",
    "coordinator_messages": "0",
    "other_messages": "0",
    "messages": "(N-1) + N(N-1) for k = 1; N(N-1) if START carries the id",
    "time": "2; 1 if all start; 0 for one alone",
    "leader": "the highest live id",
}


def forms(setting: GroupSetting) -> list[Form]:
    """The two readings of the slide at the size of a setting.

    >>> [form.value for form in forms(GroupSetting(n=6, live=(1, 2, 3, 4, 5), detectors=(2,)))]
    [24, 20]
    """
    N = len(setting.live)
    return [
        Form("separate_messages", messages(N), "(N-1) + N(N-1)", SOURCE, COUNTED),
        Form("combined_messages", combined_messages(N), "N(N-1)", SOURCE, COUNTED),
    ]


def _check(N: int, initiators: int) -> None:
    require(N >= 1, f"N must be at least 1, not {N}")
    require(1 <= initiators <= N, f"initiators must be between 1 and N = {N}, not {initiators}")


DECLARED = counted("broadcast", counts, FORMULAS, forms, SOURCE, flags={"combined": False})
