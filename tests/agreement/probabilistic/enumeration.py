"""The election of very small groups without chance: every coin falls both ways, and is weighed.

A third witness, written from the paper's Figure 3 and the decisions upon it alone. One member after
the other and message by message; nobody crashes, N_i is N, and the next round is asked for by all
who noticed that the last one failed, or by those whose hash is small. At one instant members act by
id, the worst first, and who has called begins last. A group is played again and
again, each time along another branch, until all have been seen; a coin that cannot matter is not
tossed, so that there are few.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

Toss = Callable[[float], bool]
Law = dict[str, dict[float | None, float]]  # of each metric: the chance of every value
MOST = 200_000  # branches


@dataclass(frozen=True)
class Case:
    """A group; members are 0 to n-1, 0 is the best, and the last one calls."""

    members: int
    sizes: tuple[float, ...]  # K by round, infinite for all
    view_prob: float = 1.0
    p_ucastl: float = 0.0
    p_mcastl: float = 0.0
    thinning: str = "all"
    join_on_contact: bool = False
    T_2: float = 40.5  # in delays


@dataclass
class Group:
    """What the members of one branch know and hold."""

    case: Case
    toss: Toss
    known: dict[tuple[int, int], bool] = field(default_factory=dict)
    met: defaultdict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    held: dict[int, int] = field(default_factory=dict)
    late: dict[int, int] = field(default_factory=dict)  # in this round, who joined on contact
    found: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def knows(self, one: int, other: int) -> bool:
        if other == one or other in self.met[one]:
            return True
        if (one, other) not in self.known:
            self.known[one, other] = self.toss(self.case.view_prob)
        return self.known[one, other]

    def prefers(self, one: int) -> int:
        return next(other for other in range(self.case.members) if self.knows(one, other))


@dataclass
class Coins:
    """Fall as a path says as far as it goes, and then heads."""

    path: list[bool]
    weight: float = 1.0
    fallen: list[bool] = field(default_factory=list)

    def toss(self, p: float) -> bool:
        """True with probability `p`; what is certain is no coin."""
        if p <= 0.0 or p >= 1.0:
            return p >= 1.0
        place = len(self.fallen)
        heads = self.path[place] if place < len(self.path) else True
        self.fallen.append(heads)
        self.weight *= p if heads else 1.0 - p
        return heads

    @property
    def next_path(self) -> list[bool]:
        """Where to go next: the last coin that fell heads falls tails. Empty: all was seen."""
        path = list(self.fallen)
        while path and not path[-1]:
            path.pop()
        return [*path[:-1], False] if path else []


def law(case: Case) -> Law:
    """The exact law of every metric."""
    laws: Law = defaultdict(lambda: defaultdict(float))
    path: list[bool] = []
    for _ in range(MOST):
        coins = Coins(path)
        for name, value in play(case, coins.toss).items():
            laws[name][value] += coins.weight
        path = coins.next_path
        if not path:
            return {name: dict(values) for name, values in laws.items()}
    raise AssertionError(f"more than {MOST} branches: {case}")


def play(case: Case, toss: Toss) -> dict[str, float | None]:
    """One branch, to its end."""
    group = Group(case, toss)
    n, found = case.members, group.found
    aware = {n - 1: None} | {one: None for one in range(n - 1) if toss(1 - case.p_mcastl)}
    found["mcasts"] = 1
    for number, K in enumerate(case.sizes, 1):
        chance = min(1.0, K / n)
        found["rounds"] = number
        began = (number - 1) * (1 + case.T_2 + 2)
        detectors = play_round(group, number, chance, aware)
        found["time"] = began + 1 + case.T_2 + 2 + max(group.late.values(), default=0)
        leading = sum(leader == one for one, leader in group.held.items())
        found["two_leaders"] = float(leading > 1)
        found["two_leaders_ever"] = max(found["two_leaders_ever"], found["two_leaders"])
        if number == len(case.sizes):
            break
        asks = [one for one in detectors if case.thinning == "all" or toss(chance)]
        found["mcasts"] += len(asks)
        found["reinitiations"] += len(asks)
        if not asks:
            break
        aware = {
            one: None for one in range(n) if one in asks or toss(1 - case.p_mcastl ** len(asks))
        }
    return judged(group)


def play_round(group: Group, number: int, chance: float, aware: dict[int, None]) -> list[int]:
    """One round; who notices that it failed."""
    n, found = group.case.members, group.found
    passing = [one for one in range(n) if group.toss(chance)]
    best = relay(group, passing, aware)
    found["relayed"] += len(best)
    found["mcasts"] += len(best)
    found["coordinator_messages"] += len(best)
    if number == 1:
        found["relay_members"] = len(best)
    detectors = []
    heard = {one: hears(group, one, best) for one in range(n)}
    for one, names in heard.items():
        if len(names) == 1:
            (leader,) = names
            group.held[one] = leader
            group.met[one].add(leader)
        elif names or one in aware:
            group.held.pop(one, None)
            detectors.append(one)
    return detectors


def hears(group: Group, one: int, best: dict[int, int]) -> set[int]:
    """The leaders in the finals that a member hears, or two of them."""
    names = {best[one]} if one in best else set()
    for speaker, leader in best.items():
        if speaker != one and leader not in names and len(names) < 2:
            if not group.toss(group.case.p_mcastl):
                names.add(leader)
    return names


def relay(group: Group, passing: list[int], aware: dict[int, None]) -> dict[int, int]:
    """The relay phase: whom each that took part prefers at its end."""
    case, best, late = group.case, dict[int, int](), group.late
    late.clear()
    others: dict[int, set[int]] = {}
    queue: deque[tuple[int, int, int, int]] = deque()  # when it is there, from, to, preference

    def turn(one: int) -> tuple[bool, int]:
        return not (group.found["rounds"] == 1 and one == case.members - 1), one

    def tell(one: int, to: set[int], when: int) -> None:
        for other in sorted(to, reverse=True, key=turn):
            group.found["ucasts"] += 1
            if not group.toss(case.p_ucastl):
                queue.append((when, one, other, best[one]))

    def enter(one: int) -> None:
        best[one] = group.prefers(one)
        others[one] = {other for other in passing if other != one and group.knows(one, other)}

    for one in sorted(passing, reverse=True, key=turn):
        if one in aware:
            enter(one)
    for one in list(best):
        tell(one, others[one], 1)
    while queue and queue[0][0] <= case.T_2:
        when, sender, one, theirs = queue.popleft()
        if one not in best:
            if not case.join_on_contact or one in aware:
                continue
            aware[one] = None
            late[one] = late.get(sender, 0) + 1  # it relays as long as the sender had still to do
            enter(one)
            tell(one, others[one], when + 1)
        others[one].add(sender)
        group.met[one].add(sender)
        if theirs < best[one]:
            best[one] = theirs
            tell(one, others[one], when + 1)
        elif best[one] < theirs:
            tell(one, {sender}, when + 1)
    return best


def judged(group: Group) -> dict[str, float | None]:
    n, found = group.case.members, group.found
    names = list(group.held.values())
    most = max((names.count(name) for name in names), default=0)
    found["messages"] = found["ucasts"] + found["mcasts"]
    found["election_messages"] = found["messages"] - found["coordinator_messages"]
    found["weak"] = found["weak_live"] = most / n
    found["strong"] = float(most == n)
    found["leaderless"] = (n - len(names)) / n
    found["answer_messages"] = found["other_messages"] = 0.0
    for name in ("ucasts", "reinitiations", "relayed", "coordinator_messages", "two_leaders_ever"):
        found[name] += 0.0  # there, if nothing happened
    agreed = float(n - names[0]) if most == n else None
    return {**found, "leader": agreed}
