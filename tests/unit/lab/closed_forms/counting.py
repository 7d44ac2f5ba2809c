"""Dumb twins of the elections: run them, unit delay, and count. No closed form is used here.

Written from the rules alone, apart from the simulator and the protocols, so that a closed form and
the protocol it describes are each compared with something that shares no code with either.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

Handler = Callable[[int, int, str], None]  # receiver, sender, kind


@dataclass
class Tally:
    """Messages by kind, who was declared leader and by whom, and when the last thing happened."""

    kinds: Counter[str] = field(default_factory=Counter)
    last: float = 0
    leaders: dict[int, int] = field(default_factory=dict)

    @property
    def leader(self) -> int:
        (one,) = set(self.leaders.values())
        return one


class Net:
    """Unit delays; arrivals before timers at one instant, otherwise in the order of sending."""

    def __init__(self, live: Sequence[int]) -> None:
        self.live = set(live)
        self.now = 0.0
        self.tally = Tally()
        self.handler: Handler = lambda receiver, sender, kind: None
        self._heap: list[tuple[float, int, int, Callable[[], None]]] = []
        self._sequence = 0

    def send(self, sender: int, receiver: int, kind: str) -> None:
        self.tally.kinds[kind] += 1
        self._push(1, 0, lambda: self._arrive(sender, receiver, kind))

    def after(self, member: int, delay: float, action: Callable[[], None]) -> None:
        self._push(delay, 1, lambda: action() if member in self.live else None)

    def declare(self, member: int, leader: int) -> None:
        self.tally.leaders[member] = leader
        self.tally.last = self.now

    def run(self, handler: Handler) -> Tally:
        self.handler = handler
        while self._heap and self.now < 100_000:
            self.now, _, _, action = heapq.heappop(self._heap)
            action()
        assert not self._heap, "the run did not end"
        return self.tally

    def _arrive(self, sender: int, receiver: int, kind: str) -> None:
        if receiver in self.live:
            self.tally.last = self.now
            self.handler(receiver, sender, kind)

    def _push(self, delay: float, rank: int, action: Callable[[], None]) -> None:
        self._sequence += 1
        heapq.heappush(self._heap, (self.now + delay, rank, self._sequence, action))


def broadcast(live: Sequence[int], starters: Sequence[int], combined: bool) -> Tally:
    """START, then ID from everybody; done when all ids are in."""
    net = Net(live)
    told: set[int] = set()
    heard = {i: {i} for i in live}

    def tell(i: int) -> None:
        if i not in told:
            told.add(i)
            for j in live:
                if j != i:
                    net.send(i, j, "ID")

    def decide(i: int) -> None:
        if heard[i] == set(live):
            net.declare(i, max(live))

    def handle(i: int, sender: int, kind: str) -> None:
        if kind == "ID" or combined:
            heard[i].add(sender)
        if kind == "START":
            tell(i)
        decide(i)

    for i in starters:
        for j in live:
            if j != i:
                net.send(i, j, "START")
        if combined:
            told.add(i)
        tell(i)
        decide(i)
    return net.run(handle)


def bully(
    n: int,
    live: Sequence[int],
    detectors: Sequence[int],
    T1: float = 2,
    T2: float = 10,
    start: bool = False,
    dies_at: dict[int, float] | None = None,
) -> Tally:
    """The lecture's bully; `dies_at` lets members die after the arrivals of an instant."""
    net = Net(live)
    running: dict[int, int] = {}  # member to the number of its run
    runs = 0

    def begin(i: int, knows: bool = False) -> None:
        nonlocal runs
        if i in running:
            return
        better = range(n, i, -1)
        if not better or (knows and i == n - 1):
            win(i)
            return
        runs += 1
        running[i] = run = runs
        answered.discard(i)
        for j in better:
            net.send(i, j, "ELECTION")
        net.after(i, T1, lambda: expire(i, run, win))

    def expire(i: int, run: int, then: Callable[[int], None]) -> None:
        if running.get(i) == run and (i in answered) == (then == begin):
            del running[i]
            then(i)

    def win(i: int) -> None:
        net.declare(i, i)
        for j in range(i - 1, 0, -1):
            net.send(i, j, "COORDINATOR")

    def handle(i: int, sender: int, kind: str) -> None:
        if kind == "ELECTION":
            net.send(i, sender, "OK")
            if net.tally.leaders.get(i) == i:
                net.send(i, sender, "COORDINATOR")
            elif i not in net.tally.leaders:  # else it has heard who won, and the sender has not
                begin(i)
        elif kind == "OK" and i in running and i not in answered:
            answered.add(i)
            net.after(i, T2, partial(expire, i, running[i], begin))
        elif kind == "COORDINATOR":
            running.pop(i, None)
            net.declare(i, sender)

    answered: set[int] = set()
    for i, instant in (dies_at or {}).items():
        net.after(i, instant, partial(net.live.discard, i))
    for i in detectors:
        begin(i, knows=not start)
    return net.run(handle)


def bully_map(
    n: int, live: Sequence[int], detectors: Sequence[int], T: float = 2, start: bool = False
) -> Tally:
    """Walk down from the best; the first candidate alive takes over."""
    net = Net(live)
    waiting: dict[int, int] = {}  # member to the candidate it has asked
    asked: set[int] = set()

    def probe(i: int, candidate: int) -> None:
        if candidate == i:
            win(i)
            return
        waiting[i] = candidate
        net.send(i, candidate, "ELECTION")
        net.after(i, T, lambda: silence(i, candidate))

    def silence(i: int, candidate: int) -> None:
        if waiting.get(i) == candidate:
            probe(i, candidate - 1)

    def win(i: int) -> None:
        net.declare(i, i)
        for j in range(i - 1, 0, -1):
            net.send(i, j, "LEADER")

    def handle(i: int, sender: int, kind: str) -> None:
        if kind == "ELECTION":
            net.send(i, sender, "STOP" if i in asked else "OK")
            if i not in asked:
                asked.add(i)
                win(i)
        elif kind in ("OK", "STOP"):
            waiting.pop(i, None)
        else:
            net.declare(i, sender)

    for i in detectors:
        probe(i, n if start else n - 1)
    return net.run(handle)


def bully_grant(
    n: int, live: Sequence[int], starters: Sequence[int], T1: float = 2, window: float = 1
) -> Tally:
    """Ask all higher ids, grant the best that answers; only the lowest initiator is answered."""
    net = Net(live)
    heard: dict[int, list[int]] = {}
    answers: dict[int, list[int]] = {i: [] for i in starters}

    def win(i: int) -> None:
        net.declare(i, i)
        for j in range(i - 1, 0, -1):
            net.send(i, j, "COORDINATOR")

    def decide(i: int) -> None:
        if min(heard.get(i, [i])) < i:
            return  # a lower one is at it
        if answers[i]:
            net.send(i, max(answers[i]), "GRANT")
        else:
            win(i)

    def handle(i: int, sender: int, kind: str) -> None:
        if kind == "ELECTION":
            if i not in heard:
                heard[i] = []
                net.after(i, window, lambda: net.send(i, min(heard[i]), "OK"))
            heard[i].append(sender)
        elif kind == "OK":
            answers[i].append(sender)
        elif kind == "GRANT":
            win(i)
        else:
            net.declare(i, sender)

    for i in starters:
        for j in range(n, i, -1):
            net.send(i, j, "ELECTION")
        net.after(i, T1 + window, partial(decide, i))
    return net.run(handle)


def bully_group(
    n: int,
    live: Sequence[int],
    detectors: Sequence[int],
    K: int = 2,
    T1: float = 2,
    T2: float = 4,
) -> Tally:
    """Tell the alternates one after the other; if all are dead, look for somebody better."""
    net = Net(live)
    alternates = [j for j in range(n - 1, n - 1 - K, -1) if j >= 1]
    checking: set[int] = set()
    settled: set[int] = set()
    answers: dict[int, list[int]] = {i: [] for i in detectors}

    def tell(i: int, place: int) -> None:
        if i in settled:
            return
        if place == len(alternates):
            for j in range(n, i, -1):
                net.send(i, j, "ELECTION")
            net.after(i, T1, lambda: gather(i))
        elif alternates[place] == i:
            check(i)
        else:
            net.send(i, alternates[place], "CRASH_LEADER")
            net.after(i, T2, lambda: tell(i, place + 1))

    def gather(i: int) -> None:
        if answers[i]:
            net.send(i, max(answers[i]), "CRASH_LEADER")
        else:
            win(i)

    def check(i: int) -> None:
        if i not in checking:
            checking.add(i)
            net.send(i, n, "CHECK")
            net.after(i, T1, lambda: win(i))

    def win(i: int) -> None:
        net.declare(i, i)
        for j in range(i - 1, 0, -1):
            net.send(i, j, "COORDINATOR")

    def handle(i: int, sender: int, kind: str) -> None:
        if kind == "CRASH_LEADER":
            check(i)
        elif kind == "ELECTION":
            net.send(i, sender, "OK")
        elif kind == "OK":
            answers[i].append(sender)
        else:
            settled.add(i)
            net.declare(i, sender)

    for i in detectors:
        tell(i, 0)
    return net.run(handle)


def stable(n: int, live: Sequence[int], proposer: int, T1: float = 2, start: bool = False) -> Tally:
    """Prepare, ready, commit; everybody asked agrees."""
    return _stable(n, live, {proposer: 0}, T1, start)


def stable_told(n: int, live: Sequence[int], T1: float = 2) -> Tally:
    """All notice the crash; each waits T1 for each better one, and the first to speak proposes."""
    return _stable(n, live, {j: (n - 1 - j) * T1 for j in live}, T1, False)


def _stable(
    n: int, live: Sequence[int], proposals: Mapping[int, float], T1: float, start: bool
) -> Tally:
    net = Net(live)
    engaged: set[int] = set()
    agreed: list[int] = []
    reserved: list[int] = []
    phase = ["prepare"]
    leading: list[int] = []  # the proposer

    def propose(i: int) -> None:
        if i in engaged:
            return
        leading.append(i)
        others = [j for j in range(1, n + 1) if j != i and (start or j != n)]
        engaged.add(i)
        for j in others:
            net.send(i, j, "PREPARE")
        if others:
            net.after(i, T1, ready)
        else:
            ready()

    def ready() -> None:
        (i,) = leading
        if phase[0] == "prepare":
            phase[0] = "ready"
            for j in agreed:
                net.send(i, j, "READY")
            if not agreed:
                net.declare(i, i)

    def handle(i: int, sender: int, kind: str) -> None:
        (first,) = leading
        if kind in ("PREPARE", "READY"):
            engaged.add(i)
            net.send(i, sender, "ACK")
        elif kind == "COMMIT":
            net.declare(i, max([first, *agreed]))
        elif phase[0] == "prepare":
            agreed.append(sender)
            if len(agreed) == n - 1 - (not start):
                ready()
        else:
            reserved.append(sender)
            if len(reserved) == len(agreed):
                net.declare(first, max([first, *agreed]))
                for j in agreed:
                    net.send(first, j, "COMMIT")

    for i, wait in proposals.items():
        if wait:
            net.after(i, wait, partial(propose, i))
        else:
            propose(i)
    return net.run(handle)


def bully_assistant(
    n: int, live: Sequence[int], detectors: Sequence[int], T1: float = 2, T2: float = 4
) -> Tally:
    """Tell the assistant n-1; if it is dead, a bully election. Then vote for the next one."""
    if max(live) == n - 1:
        return _assistant_alive(n, live, detectors, T1)
    full = bully(n, live, detectors, T1)
    winner = full.leader
    told = full.last - (1 if len(live) > 1 else 0)
    votes = _votes(Net(live), winner, T1)
    tally = Tally(full.kinds + votes.kinds, T2 + told + votes.last, full.leaders)
    tally.kinds["REPORT"] = len(detectors)
    tally.kinds["COORDINATOR"] -= winner - 1
    return tally


def _assistant_alive(n: int, live: Sequence[int], detectors: Sequence[int], T1: float) -> Tally:
    net = Net(live)
    assistant = n - 1
    checking: list[int] = []

    def check() -> None:
        if not checking:
            checking.append(assistant)
            net.send(assistant, n, "CHECK")
            net.after(assistant, T1, finish)

    def finish() -> None:
        done.append(net.now)

    done: list[float] = []
    for i in detectors:
        if i == assistant:
            check()
        else:
            net.send(i, assistant, "REPORT")
    first = net.run(lambda receiver, sender, kind: check())
    votes = _votes(Net(live), assistant, T1)
    return Tally(first.kinds + votes.kinds, done[0] + votes.last, votes.leaders)


def _votes(net: Net, winner: int, T1: float) -> Tally:
    """From the announcement on: everybody that hears it votes, and hears of the new assistant."""
    voted: list[int] = []
    closed: list[bool] = []

    def close() -> None:
        if not closed:
            closed.append(True)
            for j in voted:
                net.send(winner, j, "ASSISTANT")

    def handle(i: int, sender: int, kind: str) -> None:
        if kind == "I_AM_LEADER":
            net.declare(i, sender)
            net.send(i, sender, "VOTE")
        elif kind == "VOTE":
            voted.append(sender)
            if len(voted) == winner - 1:
                close()

    net.declare(winner, winner)
    for j in range(winner - 1, 0, -1):
        net.send(winner, j, "I_AM_LEADER")
    net.after(winner, T1, close)
    return net.run(handle)
