"""MAP bully (overhead-aware election, section 4): ask the candidates one by one, best first.

n counts the crashed leader, m is the highest live id, d the detector, T the wait for each OK, at
least 2 units. The detector walks down its MAP from n-1; the first live candidate answers OK and
announces itself. Dead members below m change nothing: no member asks them.

The paper's seven formulas and its Table 1 are in `overhead`.
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from typing import NamedTuple

from hustings.lab.closed_forms.counted import Counts, GroupSetting, counted, members
from hustings.lab.closed_forms.form import COUNTED, DECIDED, OVERHEAD, Form, Number, exact, require
from hustings.lab.closed_forms.overhead_table import overhead_forms

SOURCE = f"{OVERHEAD}, section 4"
SPECIAL = f"{OVERHEAD}, 5.5"
FIGURE_2 = f"{OVERHEAD}, Fig. 2"


def election_messages(n: int, d: int, m: int | None = None, detectors: int = 1) -> int:
    """ELECTION messages: n - m for d < m, n - 1 - d for d = m.

    The candidates n-1, n-2, ... down to the first live one are asked, or down to d itself. Each
    of several detectors below m asks them all.

    Parameters: n, d, m (n-1 by default); detectors below m, for d < m.

    Source: overhead-aware election, sections 4 and 5. Verdict: counted; the paper's "regardless
    of the detector" fails for d = n-1, which asks no member.

    >>> election_messages(64, d=1), election_messages(64, d=1, m=60), election_messages(64, d=63)
    (1, 4, 0)
    """
    m = members(n, d, m)[-1]
    require(detectors >= 1, f"detectors must be at least 1, not {detectors}")
    require(d < m or detectors == 1, f"several detectors must all be below m = {m}")
    return detectors * (n - m) if d < m else n - 1 - d


def answer_messages(d: int, m: int) -> int:
    """OK messages: 1 for d < m, to the first that asked; 0 for d = m.

    Parameters: d, m.

    Source: overhead-aware election, section 4. Verdict: counted.

    >>> answer_messages(1, 63), answer_messages(63, 63)
    (1, 0)
    """
    return 1 if d < m else 0


def stop_messages(detectors: int) -> int:
    """STOP messages: detectors - 1, to all that asked later.

    Parameters: detectors, all below m.

    Source: overhead-aware election, section 4. Verdict: counted; the paper's overhead leaves STOP
    out.

    >>> stop_messages(1), stop_messages(3)
    (0, 2)
    """
    require(detectors >= 1, f"detectors must be at least 1, not {detectors}")
    return detectors - 1


def leader_messages(m: int) -> int:
    """LEADER messages: m - 1, to all lower ids.

    Parameters: m, the highest live id.

    Source: overhead-aware election, section 4. Verdict: counted; Fig. 2 prints n-(n-i) = i, which
    includes a message to oneself.

    >>> leader_messages(63)
    62
    """
    require(m >= 1, f"m must be at least 1, not {m}")
    return m - 1


def time(n: int, d: int, m: int | None = None, T: float | Number = 2) -> Number:
    """The time until all members are informed: (n-1-m)T + 2 for d < m, (n-1-d)T + 1 for d = m.

    Each dead candidate costs T; then ELECTION and LEADER travel one unit each. With d = m = 1
    no member is left to inform: (n-2)T.

    Parameters: n, d, m (n-1 by default), T.

    Source: overhead-aware election, section 4. Verdict: counted. The paper's "latency decreased"
    holds only while few candidates are dead: the bully election takes 4 whatever m is.

    >>> time(64, d=1), time(64, d=1, m=60), time(64, d=63), time(64, d=1, m=1)
    (2, 8, 1, 124)
    """
    m = members(n, d, m)[-1]
    step = _timer(T)
    return exact((n - 1 - m) * step + (2 if d < m else 1 if m > 1 else 0))


def returning_leader_messages(n: int, m: int | None = None) -> int:
    """LEADER messages when the old leader comes back during the election: (m-1) + (n-1).

    The candidate's announcement and then the old leader's, to all lower ids, without an election.

    Parameters: n, m (n-1 by default).

    Source: overhead-aware election, section 4. Verdict: not counted there; counted.

    >>> returning_leader_messages(8)
    13
    """
    m = n - 1 if m is None else m
    members(n, m, m)
    return (m - 1) + (n - 1)


def only_one_alive_messages(n: int) -> int:
    """All messages when only member 1 lives: n - 2 ELECTION, since the dead leader is skipped.

    Parameters: n, at least 2.

    Source: overhead-aware election, 5.5. Verdict: the printed n - 1 is one too many.

    >>> only_one_alive_messages(64)
    62
    """
    require(n >= 2, f"n must be at least 2, not {n}")
    return n - 2


def printed_only_one_alive_messages(n: int) -> int:
    """ELECTION messages when only member 1 lives, as printed: n - 1.

    Parameters: n, at least 2.

    Source: overhead-aware election, 5.5. Verdict: wrong by 1; right for the bully election.

    >>> printed_only_one_alive_messages(64) - only_one_alive_messages(64)
    1
    """
    require(n >= 2, f"n must be at least 2, not {n}")
    return n - 1


class PrintedRun(NamedTuple):
    """What the printed pseudo-code does: the members it asks and makes leader, in order."""

    asked: tuple[int, ...]
    leaders: tuple[int, ...]

    @property
    def leader_messages(self) -> int:
        """LEADER messages: n-(n-i) = i for each leader i."""
        return sum(self.leaders)


def printed_pseudo_code(n: int, dead: Collection[int] = ()) -> PrintedRun:
    """Fig. 2 taken literally: i runs from n-1 down to 1, and once more down after each silence.

    It does not stop at the first OK, skips the candidate after a dead one, asks the detector
    itself too, and sends i LEADER messages where i - 1 are needed.

    Parameters: n; dead, the dead members besides the leader n.

    Source: overhead-aware election, Fig. 2, with "to" read as "down to". Verdict: wrong. With
    only the leader dead it makes n - 1 leaders: n-1 ELECTION, n-1 OK, n(n-1)/2 LEADER.

    >>> run = printed_pseudo_code(16)
    >>> len(run.asked), len(run.leaders), run.leader_messages
    (15, 15, 120)
    >>> printed_pseudo_code(4, dead=[3]).leaders, printed_pseudo_code(8, dead=[7]).asked[:2]
    ((1,), (7, 5))
    """
    require(n >= 2, f"n must be at least 2, not {n}")
    asked: list[int] = []
    leaders: list[int] = []
    i = n - 1
    while i >= 1:
        asked.append(i)
        if i in dead:
            i -= 1
        else:
            leaders.append(i)
        i -= 1
    return PrintedRun(tuple(asked), tuple(leaders))


def counts(setting: GroupSetting) -> Counts:
    """The election of one setting, where a closed form exists.

    When a group starts, no member is known to be dead and the walk begins at n.

    Parameters: a setting with timer T.

    Source: the forms above.

    >>> counts(GroupSetting(n=8, live=(1, 2, 3, 4, 5, 6, 7), detectors=(1, 2, 3))).messages
    12
    """
    m, k, silent = setting.m, len(setting.detectors), setting.top - setting.m
    step = _timer(setting.timers.get("T", 2))
    if m not in setting.detectors:
        last = exact(silent * step + 2)
        return Counts(k * (silent + 1), 1, m - 1, k - 1, last, m)
    if k > 1:
        why = "a detector asks the best member when that one leads already, which is not stated"
        return Counts(election=k * silent + k - 1, leader=m, why=why)
    told = len(setting.live) > 1
    return Counts(silent, 0, m - 1, 0, exact(silent * step + (1 if told else 0)), m)


FORMULAS = {
    "election_messages": "k(n - m) for k detectors below m; n - 1 - d for d = m",
    "answer_messages": "1; 0 for d = m",
    "coordinator_messages": "m - 1 LEADER",
    "other_messages": "k - 1 STOP",
    "messages": "k(n - m) + k + m - 1; n - 2 for d = m",
    "time": "(n - 1 - m)T + 2; (n - 1 - d)T + 1 for d = m",
    "leader": "m",
}


def forms(setting: GroupSetting) -> list[Form]:
    """The named results at the size of a setting, without those of `overhead`.

    >>> found = forms(GroupSetting(n=8, live=(1, 7), detectors=(1,)))
    >>> [form.name for form in found if form.printed]
    ['only_one_alive_messages']
    """
    n = setting.n
    if n < 2:
        return []
    back = returning_leader_messages(n)
    alone = only_one_alive_messages(n)
    claimed = printed_only_one_alive_messages(n)
    wrong = "wrong by 1: the dead leader is skipped"
    return [
        Form("returning_leader_messages", back, "(n-2) + (n-1) LEADER", SOURCE, DECIDED),
        Form("only_one_alive_messages", alone, "n - 2", SPECIAL, COUNTED),
        Form("only_one_alive_messages", claimed, "n - 1", SPECIAL, wrong, True),
    ]


def printed_counts(setting: GroupSetting) -> Counts:
    """What the printed pseudo-code sends at one setting; it elects several: no leader or time.

    Parameters: a setting with one detector after a crash of the leader.

    Source: `printed_pseudo_code`.

    >>> printed_counts(GroupSetting(n=16, live=tuple(range(1, 16)), detectors=(1,))).messages
    150
    """
    if setting.start or not setting.single:
        return Counts(why="the pseudo-code states one detector and a crashed leader only")
    alive = set(setting.live)
    dead = [j for j in range(1, setting.n) if j not in alive]
    run = printed_pseudo_code(setting.n, dead)
    why = "the pseudo-code declares several leaders one after the other"
    return Counts(len(run.asked), len(run.leaders), run.leader_messages, 0, why=why)


PRINTED_FORMULAS = {
    "election_messages": "n - 1 if only the leader is dead, also to oneself",
    "answer_messages": "n - 1 if only the leader is dead",
    "coordinator_messages": "n(n-1)/2 if only the leader is dead: i for each leader i",
    "other_messages": "0",
    "messages": "2(n-1) + n(n-1)/2 if only the leader is dead",
}


def _timer(T: float | Number) -> Number:
    require(T >= 2, f"T must be at least 2, the time of a question and its answer, not {T}")
    return exact(T)


DECLARED = counted(
    "bully-map",
    counts,
    FORMULAS,
    lambda s: forms(s) + overhead_forms(s.n),
    SOURCE,
    timers={"T": Fraction(2)},
)
PRINTED_DECLARED = counted(
    "bully-map-printed",
    printed_counts,
    PRINTED_FORMULAS,
    lambda s: [],
    FIGURE_2,
    "what the printed pseudo-code does; it is wrong",
)
