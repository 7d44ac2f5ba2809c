"""Programs 5.1 and 5.2 of the thesis as one plain event loop: a witness beside the protocol.

Written from the pseudo-code and its errata alone; it imports nothing of the package. All chance
comes from outside: how long a member sleeps, and which receiver loses which announcement. Times
are whole ticks, so a tie is a tie, and at one instant things happen in a fixed order: crashes and
joins, sends, arrivals, listen timers; sends and timers by member, arrivals in the order of sending.

Members are 1 to n and the largest is the best. Lines of the programs stand beside their code; what
differs from them: line 6 also re-arms the listen timer upon the leader's own announcement (E1), and
the timer tests are siblings of the receive test (E2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from heapq import heappop, heappush

TICKS = 10**8  # in one unit of time
NEVER = 10**30  # a timer that is not set

Wake = Callable[[int, int, int], int]  # member, its how-manieth sleep (from 1), now -> ticks
Lost = Callable[[int, int, int], bool]  # sender, its how-manieth announcement, receiver
Event = tuple[int, int, str]  # when, which member, what: "send 3", "adopt 7", "timeout"

CONTROL, SEND, ARRIVAL, LISTEN = range(4)


def ticks(time: float) -> int:
    """The tick nearest to a time."""
    return round(time * TICKS)


@dataclass(frozen=True)
class Case:
    """One group with its timers; `T_L` None is infinite.

    `steady`: this member has announced at 0, everybody has heard it, and it goes on from there.
    `refresh` and `arrivals_first` switch two of the corrections off (E1, E3).
    """

    algorithm: str  # le-a, le-s, le-m, sup, al
    members: int
    T_A: int
    T_L: int | None
    delta: int
    relative: bool = False  # the key of le-m: the draw, not the instant of waking
    steady: int | None = None
    steady_key: int = 0  # as what it stands, in le-m
    crashes: Mapping[int, int] = field(default_factory=dict)  # who, when
    joins: Mapping[int, int] = field(default_factory=dict)
    refresh: bool = True
    arrivals_first: bool = True


class Process:
    """What one process remembers."""

    def __init__(self, me: int) -> None:
        self.me = me
        self.up = False
        self.leader = me
        self.key = 0  # le-m: of the leader it follows, itself included
        self.state = "out"  # suppress, announce, listen
        self.timer = NEVER
        self.slept = 0
        self.sent = 0  # announcements of its life
        self.number = 0  # announcements of this leadership


@dataclass
class Run:
    """All that happened."""

    case: Case
    events: list[Event] = field(default_factory=list)
    sends: list[tuple[int, int, int]] = field(default_factory=list)  # when, who, its how-manieth
    heard: list[tuple[int, int, int, int]] = field(default_factory=list)  # when, who, whom, which
    earliest: tuple[int, int] = (NEVER, 0)  # the best key of a first sleep, and whose (negative)


class Loop:
    """The event loop and the state machine on it."""

    def __init__(self, case: Case, wake: Wake, lost: Lost) -> None:
        self.case, self.wake, self.lost = case, wake, lost
        self.run = Run(case)
        self.now = 0
        self.group = {me: Process(me) for me in range(1, case.members + 1)}
        self.missing = {j for j in self.group if j not in case.crashes}  # must hear the leader
        self.settled_at: int | None = None
        self._heap: list[tuple[int, int, int, Callable[[], None]]] = []
        self._pushed = 0
        for me, at in case.crashes.items():
            self._push(at, CONTROL, partial(self._crash, self.group[me]))
        for p in self.group.values():
            self._push(case.joins.get(p.me, 0), CONTROL, partial(self._start, p))

    def play(self, until: int, settle: bool) -> Run:
        """Until that instant; `settle`: only until everybody has heard the leader.

        Without delay the rest of that instant comes after the end, and counts no more.
        """
        while self._heap and self._heap[0][0] <= until:
            if settle and self.settled_at is not None:
                if self._heap[0][0] > self.settled_at or not self.case.delta:
                    break
            self.now, _, _, action = heappop(self._heap)
            action()
        return self.run

    def _push(self, at: int, order: int, action: Callable[[], None], place: int = 0) -> None:
        if order in (ARRIVAL, LISTEN) and not self.case.arrivals_first:
            order = ARRIVAL + LISTEN - order
        self._pushed += 1
        # Sends and timers of one instant by member, everything else as it was made.
        rank = place * 10**12 + self._pushed
        heappush(self._heap, (at, order, rank, action))

    def _note(self, p: Process, what: str) -> None:
        self.run.events.append((self.now, p.me, what))

    # Timers: one per process; an entry of the heap that is no longer meant does nothing

    def _set_timer(self, p: Process, state: str, delay: int) -> None:
        p.state = state
        p.timer = at = self.now + delay
        if at < NEVER:
            order = LISTEN if state == "listen" else SEND
            self._push(at, order, partial(self._expired, p, state, at), p.me)

    def _expired(self, p: Process, state: str, at: int) -> None:
        if not p.up or p.state != state or p.timer != at:
            return
        if state == "listen":  # line 11
            self._note(p, "timeout")
            self._suppress(p)  # lines 12 to 14
        else:  # lines 15 to 18
            self._announce(p)

    # The programs

    def _start(self, p: Process) -> None:
        p.up = True
        leader = self.case.steady
        if leader is None or p.me in self.case.joins:
            self._suppress(p)  # lines 1 to 3
            return
        p.leader, p.key = leader, self.case.steady_key
        if p.me == leader:
            p.number = p.sent = 1
            self._set_timer(p, "announce", self.case.T_A)
        else:
            self._listen(p)

    def _suppress(self, p: Process) -> None:
        p.leader = p.me
        p.number = 0
        p.slept += 1
        t = 0  # Program 5.1 and the baseline AL announce at once
        if self.case.algorithm not in ("le-a", "al"):
            t = self.wake(p.me, p.slept, self.now)
        p.key = t if self.case.relative else self.now + t
        if p.slept == 1:
            self.run.earliest = min(self.run.earliest, (p.key, -p.me))
        self._set_timer(p, "suppress", t)

    def _announce(self, p: Process) -> None:
        p.sent += 1
        p.number += 1
        self._note(p, f"send {p.number}")
        self.run.sends.append((self.now, p.me, p.sent))
        arrive = partial(self._arrive, p.me, p.sent, p.key)
        self._push(self.now + self.case.delta, ARRIVAL, arrive)
        self._set_timer(p, "announce", NEVER if self.case.algorithm == "sup" else self.case.T_A)

    def _arrive(self, sender: int, number: int, key: int) -> None:
        for q in self.group.values():  # whoever is alive now, not when it was sent
            if q.up and q.me != sender and not self.lost(sender, number, q.me):
                self.run.heard.append((self.now, q.me, sender, number))
                self._receive(q, sender, key)
                self._watch(q.me, sender)

    def _receive(self, q: Process, sender: int, key: int) -> None:
        if self.case.algorithm == "sup":
            if q.state == "suppress":  # any message will do, and the first one decides
                self._follow(q, sender, key)
                q.state, q.timer = "suppressed", NEVER
        elif self.case.algorithm == "al":
            if sender > q.leader:
                self._follow(q, sender, key)  # and it goes on announcing
        elif sender == q.leader:
            if self.case.refresh:
                q.key = key
                self._listen(q)
        elif self._better(q, sender, key):  # line 6
            self._follow(q, sender, key)  # line 7
            self._listen(q)  # lines 8 to 10: its one timer is the listen timer now

    def _better(self, q: Process, sender: int, key: int) -> bool:
        if self.case.algorithm == "le-m":
            return (key, -sender) < (q.key, -q.leader)
        return sender > q.leader

    def _follow(self, q: Process, sender: int, key: int) -> None:
        q.leader, q.key = sender, key
        self._note(q, f"adopt {sender}")

    def _listen(self, q: Process) -> None:
        self._set_timer(q, "listen", NEVER if self.case.T_L is None else self.case.T_L)

    def _crash(self, p: Process) -> None:
        p.up = False

    def _watch(self, receiver: int, sender: int) -> None:
        """Note when the last one has heard the leader."""
        if self.case.algorithm != "sup" and sender == leader_of(self.run):
            self.missing -= {receiver, sender}
            if not self.missing and self.settled_at is None:
                self.settled_at = self.now


def play(case: Case, wake: Wake, lost: Lost, until: int, *, settle: bool = False) -> Run:
    """Play one case to an instant; `settle`: stop once everybody has heard the leader."""
    return Loop(case, wake, lost).play(until, settle)


def leader_of(run: Run) -> int:
    """Who shall lead after a simultaneous start: the largest, or (le-m) who wakes first."""
    if run.case.algorithm == "le-m":
        return -run.earliest[1]
    return run.case.members


@dataclass(frozen=True)
class Metrics:
    """What a simultaneous start came to; times in ticks, None where there is no such thing."""

    tmax: int
    num_msgs: int
    sent_by_tmax: int
    first_round: int
    rounds: int | None = None
    avg_rounds: Fraction | None = None
    t_halt: int | None = None


def metrics(run: Run) -> Metrics | None:
    """The metrics of a run that has settled, from what was sent and heard; None if it has not."""
    if run.case.algorithm == "sup":
        return _sup_metrics(run)
    leader = leader_of(run)
    first = {j: NEVER for j in range(1, run.case.members + 1) if j != leader}
    for _, receiver, sender, number in run.heard:
        if sender == leader:
            first[receiver] = min(first[receiver], number)
    rounds = max(first.values())
    if rounds == NEVER:
        return None
    (tmax,) = (at for at, who, number in run.sends if (who, number) == (leader, rounds))
    end = tmax + run.case.delta
    # Without delay an announcement is sent before it arrives, so its own instant counts.
    counted = [who for at, who, _ in run.sends if at < end or at <= tmax]
    return Metrics(
        tmax=tmax,
        num_msgs=len(counted),
        sent_by_tmax=sum(at <= tmax for at, _, _ in run.sends),
        first_round=len(set(counted)),
        rounds=rounds,
        avg_rounds=Fraction(sum(first.values()), len(first)),
    )


def _sup_metrics(run: Run) -> Metrics:
    tmax = max(at for at, _, _ in run.sends)
    done = {who: at for at, who, _ in run.sends}
    for at, receiver, _, _ in run.heard:
        done[receiver] = min(at, done.get(receiver, NEVER))
    count = len(run.sends)
    return Metrics(tmax, count, count, count, t_halt=max(done.values()))


# What members believe over time, from the events alone


def beliefs(run: Run) -> dict[int, int]:
    """Whom each member takes for the leader at the beginning."""
    steady = run.case.steady
    return {
        j: j if steady is None or j in run.case.joins else steady
        for j in range(1, run.case.members + 1)
    }


def turns(run: Run) -> list[tuple[int, int, int]]:
    """Every change of a belief: when, whose, to whom; who times out believes in itself at once."""
    found = []
    for at, me, what in run.events:
        if what.startswith("adopt"):
            found.append((at, me, int(what.removeprefix("adopt "))))
        elif what == "timeout":
            found.append((at, me, me))
    return found


def disagreement(run: Run, leader: int, start: int, end: int) -> Fraction:
    """The part of the time from `start` to `end` in which somebody does not hold `leader`."""
    holds = beliefs(run)
    wrong = sum(held != leader for held in holds.values())
    since, total = start, 0
    for at, me, held in turns(run):
        if at > end:
            break
        if at > start:
            total += (at - since) * bool(wrong)
            since = at
        wrong += (held != leader) - (holds[me] != leader)
        holds[me] = held
    total += (end - since) * bool(wrong)
    return Fraction(total, end - start)


def agreed_at(run: Run, members: list[int], leader: int, after: int) -> int | None:
    """Since when all `members` hold `leader`, at the first time that they do so past `after`.

    Be it for a moment: with T_L = k T_A an announcement may bring the last one back just when
    others, who have lost it, time out; arrivals go first, so there is agreement between the two.
    """
    holds = beliefs(run)
    since = 0  # the last change so far
    waiting = True
    for at, me, held in [*turns(run), (NEVER, leader, leader)]:
        if waiting and at > after:
            waiting = False
            if all(holds[j] == leader for j in members):
                return since
        holds[me], since = held, at
        if not waiting and at < NEVER and all(holds[j] == leader for j in members):
            return at
    return None
