"""Heartbeats (lecture, "How to detect failure?"): the latency of detection, and its cost.

A member sends a heartbeat every T. Its watcher restarts a timer of T + D at each one, with D the
bound on the one-way delay, and suspects when the timer ends. In a synchronous system this is
complete and accurate. The slide gives the timer but no latency; T + D is not the latency.
"""

from __future__ import annotations

from collections.abc import Mapping

from hustings.lab.closed_forms import reading
from hustings.lab.closed_forms.form import (
    COUNTED,
    LECTURE,
    ClosedForms,
    Form,
    Number,
    Parameter,
    TheoryResult,
    exact,
    plain,
    require,
    result,
)

KEYS = (
    Parameter("n", "8", "members"),
    Parameter("T", "1", "period of the heartbeat"),
    Parameter("D", "0.25", "bound on the one-way delay"),
)
SOURCE = f"{LECTURE}: how to detect failure"


def latency_above(T: float | Number, D: float | Number) -> Number:
    """The bound that every latency from crash to suspicion exceeds: D.

    The shortest case: a member dies just before its next heartbeat is due, and the last one, almost
    T ago, travelled in no time. Its T + D then ends barely more than D after the crash. The bound
    is open, since a member that reaches the due instant still sends.

    Parameters: T, the period; D, the bound on the one-way delay.

    Source: the lecture's slide on failure detection. Verdict: not stated there.

    >>> from fractions import Fraction
    >>> latency_above(T=1, D=Fraction(1, 4))
    Fraction(1, 4)
    """
    _check(T, D)
    return exact(D)


def latency_at_most(T: float | Number, D: float | Number) -> Number:
    """The largest latency from crash to suspicion: T + 2D, which can be reached.

    The longest case: a member dies right after a heartbeat that needs the whole D to arrive. It
    restarts the timer at D, and the timer takes T + D more.

    Parameters: T, the period; D, the bound on the one-way delay.

    Source: the lecture's slide on failure detection. Verdict: not stated there; the stated T + D
    counts from the last arrival and not from the crash.

    >>> from fractions import Fraction
    >>> latency_at_most(T=1, D=Fraction(1, 4))
    Fraction(3, 2)
    """
    _check(T, D)
    return exact(T) + 2 * exact(D)


def printed_timeout(T: float | Number, D: float | Number) -> Number:
    """The watcher's timer as printed: T + D.

    Parameters: T, the period; D, the bound on the one-way delay.

    Source: the lecture's slide on failure detection. Verdict: right for the timer; taken for the
    latency it is too short by up to D.

    >>> printed_timeout(T=1, D=0.25)
    Fraction(5, 4)
    """
    _check(T, D)
    return exact(T) + exact(D)


def ring_messages(N: int) -> int:
    """Heartbeats in one period when each member watches its neighbour: N.

    Parameters: N, the members. A member alone watches no other.

    Source: follows from the lecture's slide. Verdict: counted.

    >>> ring_messages(5)
    5
    """
    return N if _group(N) > 1 else 0


def leader_messages(N: int) -> int:
    """Heartbeats in one period from the leader to all others: N - 1.

    Parameters: N, the members.

    Source: follows from the lecture's slide. Verdict: counted.

    >>> leader_messages(5)
    4
    """
    return _group(N) - 1


def all_to_all_messages(N: int) -> int:
    """Heartbeats in one period when all members watch each other: N(N-1).

    Parameters: N, the members.

    Source: follows from the lecture's slide. Verdict: counted.

    >>> all_to_all_messages(5)
    20
    """
    return _group(N) * (N - 1)


def forms(N: int, T: Number, D: Number) -> list[Form]:
    """Every heartbeat form at one setting, corrected ones first.

    >>> [form.name for form in forms(5, 1, 0) if form.printed]
    ['timeout']
    """
    rows: list[tuple[str, Number, str]] = [
        ("latency_above", latency_above(T, D), "D (every latency is larger)"),
        ("latency_at_most", latency_at_most(T, D), "T + 2D"),
        ("ring_messages", ring_messages(N), "N each period"),
        ("leader_messages", leader_messages(N), "N - 1 each period"),
        ("all_to_all_messages", all_to_all_messages(N), "N(N-1) each period"),
    ]
    found = [Form(name, value, formula, SOURCE, COUNTED) for name, value, formula in rows]
    verdict = "right for the timer; the latency is up to D longer"
    return [*found, Form("timeout", printed_timeout(T, D), "T + D", SOURCE, verdict, True)]


def _check(T: float | Number, D: float | Number) -> None:
    require(T > 0, f"T must be above 0, not {T}")
    require(D >= 0, f"D must not be negative, not {D}")


def _group(N: int) -> int:
    require(N >= 1, f"N must be at least 1, not {N}")
    return N


def evaluate(texts: Mapping[str, str]) -> TheoryResult:
    """Return all forms at the given parameters, as typed; `BadInput` explains a mistake.

    >>> evaluate({"T": "2"}).printed
    {'timeout': 2.25}
    """
    reading.refuse_unknown(texts, [key.key for key in KEYS])
    given = {key.key: texts.get(key.key, key.default) for key in KEYS}
    n = reading.read_int("n", given["n"], 1, reading.LARGEST_GROUP)
    T, D = (reading.read_number(key, given[key]) for key in ("T", "D"))
    return result("heartbeat", {"n": n, "T": plain(T), "D": plain(D)}, forms(n, T, D), [])


DECLARED = ClosedForms("heartbeat", KEYS, evaluate, {"example": {"n": "64"}})
