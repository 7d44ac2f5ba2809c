"""Candidates: configurations worth trying, each with the goal that forces each of its settings.

Law: a candidate changes a default only with a reason, and every reason names a goal, or the part of
the environment, that forces it. What no candidate changes keeps its default, and a plan lists it.

Timers are not taken from a grid. They follow from the goals: a failover in five seconds bounds the
patience and the lease from above, pauses bound both from below, lost messages need so many signs of
life within a patience, and bytes bound how often those are sent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hustings.agent.command import MARGIN_S
from hustings.agent.supervisor import SETTLE_S
from hustings.core.durations import show_duration
from hustings.core.errors import BadInput
from hustings.core.outcome import Guarantee
from hustings.core.quantities import write_duration
from hustings.guard.quorum import SCHEME as QUORUM
from hustings.lab.plans.bounds import (
    members_of,
    round_trip,
    sites_of,
    survives,
    timers,
    traffic,
)
from hustings.lab.plans.chances import longest_delay, longest_pause, missed
from hustings.lab.plans.configuration import Configuration
from hustings.lab.plans.goals import GroupGoals, show_bytes, show_rate
from hustings.net.composition import DELTA
from hustings.net.limits import Limits
from hustings.protocols.registry import JOINED, find
from hustings.sim.environment import Environment

FAILOVER, WRONG, NEVER, BYTES = "failover-p99", "wrong", "two-leaders", "bytes"
SURVIVE, SIZE, DELAYS, PAUSES = "survive", "members", "delay", "pauses"
GRACES = (5.0, 2.0, 1.0, 0.5, 0.25, 0.1, 0.0)  # of `hustings run`, from its default down
# Parts of the longest lease that may fail over in time: losses delay the news of a new leader.
_SHARES = (1.0, 0.75, 0.55)
MOST_PATIENCE = 600.0  # seconds
MOST_BEATS = 200  # signs of life within a patience
SHARE = 0.45  # of the bytes: for signs of life, and as much for gossip
_SMALL = 8  # members up to which a leader tells all of them soon enough by itself
_PLACES = 3  # sites that are first in turn
LARGE = 300  # members from which partial views are tried
_CONNECTIONS = 1.25  # by how much a limit exceeds what is needed


@dataclass(frozen=True, slots=True)
class SettingReason:
    """Why a setting has its value."""

    setting: str
    value: str
    goal: str
    because: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """A configuration, and why it is what it is."""

    configuration: Configuration
    reasons: tuple[SettingReason, ...] = ()

    def with_(self, *reasons: SettingReason, **changes: Any) -> Proposal:
        """The candidate with some changes, and the reasons for them."""
        replaced = [each.setting for each in reasons]
        kept = tuple(each for each in self.reasons if each.setting not in replaced)
        return Proposal(self.configuration.but(**changes), (*kept, *reasons))


@dataclass(frozen=True, slots=True)
class Impossible:
    """What no configuration can do, and the nearest that one can."""

    goal: str
    because: str
    nearest: str


@dataclass(slots=True)
class Space:
    """All candidates, and what was left out."""

    candidates: list[Proposal] = field(default_factory=list)
    impossible: list[Impossible] = field(default_factory=list)
    protocols: dict[str, str] = field(default_factory=dict)  # those left out, and why
    seen: set[str] = field(default_factory=set)  # only asked for members, never iterated


def rounded(value: float, *, up: bool = True) -> float:
    """A time with two digits.

    >>> rounded(0.0442), rounded(4.41), rounded(4.41, up=False)
    (0.045, 4.5, 4.4)
    """
    if value <= 0.0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    steps = value / unit
    whole = math.ceil(steps - 1e-9) if up else math.floor(steps + 1e-9)
    return round(whole * unit, 9)


def propose(goals: GroupGoals, environment: Environment) -> Space:
    """All candidates for these goals."""
    space = Space()
    space.impossible += impossible(goals, environment)
    guards = list(_guards(goals, environment))
    for name in JOINED:
        why = _left_out(name, environment)
        if why:
            space.protocols[name] = why
            continue
        for base in _bases(name, goals, environment):
            for guard in guards:
                for candidate in _timed(_joined(base, guard), goals, environment):
                    _keep(space, candidate, goals, environment)
    return space


def _keep(space: Space, candidate: Proposal, goals: GroupGoals, environment: Environment) -> None:
    """Keep a candidate that contradicts nothing, once."""
    try:
        sized = _slim(_sized(candidate, environment), goals, environment)
        candidate = _remembering(sized, environment)
        silence = timers(candidate.configuration, environment).longest
    except BadInput:
        return
    if silence > MOST_PATIENCE:
        return  # it is no failover any more, and takes too long to be played
    key = candidate.configuration.key
    if key not in space.seen:
        space.seen.add(key)
        space.candidates.append(candidate)


def _left_out(name: str, environment: Environment) -> str:
    """Why a protocol is not tried; "" if it is."""
    members, kind = members_of(environment), find(name)
    if kind.assumptions.partial_views:
        return "" if members > LARGE else f"made for groups of more than {LARGE} members"
    if members > LARGE and not kind.assumptions.announces:
        return f"all members answer or are told one by one: too much for {members} of them"
    return _LIKE_ANOTHER.get(name, "")


# Elections that differ from one that is tried in ways that no goal is about.
_LIKE_ANOTHER = {
    "le-a": "as le-s, but all members announce themselves at once: more messages, no sooner result",
    "le-m": "as le-s, but the first that wakes leads and not the best",
    "broadcast": "as bully, with the answers of all members to all: more messages",
    "ring": "as bully, but one message goes round: its loss waits for a timer",
    "bully-map": "as bully, with fewer messages at an election, and more timers in a row",
    "bully-grant": "as bully, with a grant more, and a timer when it is lost",
    "bully-group": "as bully, with alternates that must be alive for its speed",
    "bully-assistant": "as bully, but only one assistant watches the leader",
}


# What a group cannot do


def impossible(goals: GroupGoals, environment: Environment) -> list[Impossible]:
    """GroupGoals that no configuration meets, whatever its timers are."""
    found = []
    names, _ = sites_of(environment)
    members = members_of(environment)
    if goals.members_lost >= members:
        found.append(
            Impossible(
                SURVIVE,
                f"of {members} members {goals.members_lost} cannot be lost: nobody is left",
                f"--survive '{members - 1} members' without a guard",
            )
        )
    if goals.two_leaders == 0.0:
        found += _never(goals, environment)
    if "site" in goals.survive and len(names) == 1:
        found.append(
            Impossible(SURVIVE, "there is one site, and with it all members are gone", "two sites")
        )
    way = longest_delay(environment)
    if goals.failover_p99 is not None and goals.failover_p99 < 2.0 * way:
        found.append(
            Impossible(
                FAILOVER,
                f"a round trip between the farthest members takes {_about(2.0 * way)}",
                f"--failover-p99 {_about(rounded(4.0 * way))}",
            )
        )
    return found


def _never(goals: GroupGoals, environment: Environment) -> list[Impossible]:
    """Never two leaders takes a majority of voters, or an engine that is not lost."""
    names, sizes = sites_of(environment)
    members = members_of(environment)
    engines = _leased_engines(goals)
    if engines and "engine" not in goals.survive:
        return []
    found = []
    if members < 3:
        found.append(
            Impossible(
                NEVER,
                f"a majority takes 3 voters, and there are {members} members",
                "a third member, or --engines with an engine that grants leases",
            )
        )
    if goals.members_lost > 3 or 2 * goals.members_lost + 1 > members:
        most = min(3, (members - 1) // 2)
        found.append(
            Impossible(
                SURVIVE,
                f"{goals.members_lost} voters may be lost only if {2 * goals.members_lost + 1} "
                f"vote, and at most {min(7, members)} can",
                f"--survive '{most} members', or --engines with an engine outside of the group",
            )
        )
    if "site" in goals.survive and len(names) == 2:
        large = names[0] if sizes[0] >= sizes[1] else names[1]
        small = names[1] if large == names[0] else names[0]
        third = f"{','.join(f'{n}={s}' for n, s in zip(names, sizes, strict=True))},c=1"
        found.append(
            Impossible(
                SURVIVE,
                "never two leaders and survive any site with two sites: one of them holds a "
                "majority of the voters, and the other cannot know that it has failed",
                f"a third vote elsewhere (--sites {third}), or survive {small} alone with a "
                f"majority of the voters at {large}",
            )
        )
    return found


def _leased_engines(goals: GroupGoals) -> list[str]:
    """The allowed engines that never grant two leases at one time."""
    return [
        name
        for name in goals.engines
        if Configuration(guard=name).guarantee is not Guarantee.ADVISORY
    ]


# Guards


def _guards(goals: GroupGoals, environment: Environment) -> Iterator[Proposal]:
    """No guard, voters at several places, and the allowed engines, as far as the goals let them."""
    if goals.two_leaders != 0.0:
        yield Proposal(Configuration())
    kept = goals.two_leaders is not None or goals.wrong is not None or goals.survive
    if kept and not (goals.bytes is not None and members_of(environment) > LARGE):
        goal = NEVER if goals.two_leaders is not None else WRONG
        for voters in placements(goals, environment):
            chosen = Configuration(guard=QUORUM, voters=voters)
            if survives(chosen, environment, goals):
                continue
            where = _where(voters, environment)
            yield Proposal(
                chosen,
                (
                    SettingReason("guard", QUORUM, goal, "voters confirm one leader at a time"),
                    SettingReason(
                        "voters", f"{len(voters)}{where}", _votes(goals), _placed(goals, voters)
                    ),
                ),
            )
    for engine in _leased_engines(goals):
        chosen = Configuration(guard=engine)
        if not survives(chosen, environment, goals):
            because = "the engine confirms one leader at a time"
            yield Proposal(chosen, (SettingReason("guard", engine, NEVER, because),))


def _votes(goals: GroupGoals) -> str:
    return SURVIVE if goals.survive else NEVER


def _placed(goals: GroupGoals, voters: Sequence[int]) -> str:
    lost = (len(voters) - 1) // 2
    told = f"{lost} of them may be gone, or not answer, and a majority is left"
    if "site" in goals.survive:
        told += ", also without any one site"
    return told


def _where(voters: Sequence[int], environment: Environment) -> str:
    """How many voters stand at which site."""
    sites = environment.sites
    if sites is None:
        return ""
    counts = [sum(sites.of(each) == place for each in voters) for place in range(len(sites.names))]
    told = [f"{count} at {name}" for name, count in zip(sites.names, counts, strict=True) if count]
    return f" ({', '.join(told)})"


def placements(goals: GroupGoals, environment: Environment) -> list[tuple[int, ...]]:
    """Where voters may stand: dealt to the sites, each in turn the first to get one.

    There are as few as the goals allow, or more, each two of which bear one more loss.
    """
    _, sizes = sites_of(environment)
    members = sum(sizes)
    fewest = max(3, 2 * goals.members_lost + 1)
    found: dict[tuple[int, ...], None] = {}
    for count in (fewest, fewest + 2, fewest + 4):
        if count > min(7, members) or count % 2 == 0:
            continue
        for first in range(len(sizes)):
            order = [(first + step) % len(sizes) for step in range(len(sizes))]
            found.setdefault(_numbers(_dealt(order, sizes, count), sizes))
            if count > fewest or first >= _PLACES:
                break
    return list(found)


def _dealt(order: Sequence[int], sizes: Sequence[int], count: int) -> list[int]:
    """How many voters each site gets, dealt one by one."""
    taken = [0] * len(sizes)
    while sum(taken) < count:
        for place in order:
            if sum(taken) < count and taken[place] < sizes[place]:
                taken[place] += 1
    return taken


def _numbers(taken: Sequence[int], sizes: Sequence[int]) -> tuple[int, ...]:
    """The first members of each site."""
    begins = [sum(sizes[:place]) for place in range(len(sizes))]
    return tuple(
        begin + 1 + each
        for begin, count in zip(begins, taken, strict=True)
        for each in range(count)
    )


# Protocols and their timers


def _bases(name: str, goals: GroupGoals, environment: Environment) -> Iterator[Proposal]:
    """A protocol with the delays that it should reckon with."""
    base = Proposal(Configuration())
    if name != "le-s":
        said = find(name).about.idea
        base = base.with_(SettingReason("protocol", name, "tried", said), protocol=name)
    way = longest_delay(environment)
    deltas: list[Proposal] = []
    if way <= DELTA:
        deltas.append(base)
    else:
        value = rounded(way)
        because = f"a message takes up to {_about(way)}"
        deltas.append(_set(base, "delta", value, DELAYS, because))
    tight = goals.failover_p99 is not None and goals.failover_p99 < 40 * DELTA
    if tight and 2.5 * way < DELTA:
        value = max(0.005, rounded(2.0 * way))
        deltas.append(_set(base, "delta", value, FAILOVER, "all timers are multiples of it"))
    yield from deltas


def _set(
    candidate: Proposal, name: str, value: float, goal: str, because: str, table: str = "settings"
) -> Proposal:
    """A setting of one of the tables."""
    values = {**getattr(candidate.configuration, table), name: value}
    told = f"{value:g}" if isinstance(value, int) else write_duration(value)
    where = "" if table == "settings" else f"{table.replace('_', '-')}."
    return candidate.with_(SettingReason(f"{where}{name}", told, goal, because), **{table: values})


def _joined(base: Proposal, guard: Proposal) -> Proposal:
    """A protocol under a guard."""
    chosen = guard.configuration
    return base.with_(*guard.reasons, guard=chosen.guard, voters=chosen.voters)


def _timed(candidate: Proposal, goals: GroupGoals, environment: Environment) -> Iterator[Proposal]:
    """A candidate with the leases and the patiences that its goals allow."""
    for leased in _leased(candidate, goals, environment):
        try:
            yield from _patient(leased, goals, environment)
        except BadInput:
            continue  # this protocol cannot have such timers


def _leased(candidate: Proposal, goals: GroupGoals, environment: Environment) -> Iterator[Proposal]:
    """Leases: long enough for pauses and the end of a command, short enough for the failover."""
    if candidate.configuration.guard is None:
        yield candidate
        return
    way = longest_delay(environment)
    asks = round_trip(candidate.configuration, environment)
    delta = float(candidate.configuration.settings.get("delta", DELTA))
    retry = max(0.2, 3.0 * delta)
    pause = longest_pause(environment.pauses)
    most = math.inf
    if goals.failover_p99 is not None:
        most = rounded(0.98 * goals.failover_p99 - asks - 2.0 * retry - way, up=False)
    kept: list[float | None] = []
    lasts: dict[float | None, float] = {}
    for grace in (*GRACES, None):
        ends = 0.0 if grace is None else grace + SETTLE_S + MARGIN_S
        part = 0.9 if grace is None else 1.0  # of the lease that its holder leads
        bears = (pause * 1.05 + ends + asks + retry) / (part * 0.998 - 1.0 / 3.0)
        least = rounded(max(2.0 * ends, bears, 8.0 * delta, 0.25))
        if least > most:
            continue
        if math.isinf(most):
            yield _lease(candidate, grace, max(least, 2.0 * ends), goals, pause)
            if grace is not None:  # the default grace, and more time to lead
                yield _lease(candidate, grace, 2.0 * max(least, 2.0 * ends), goals, pause)
            return
        kept.append(grace)
        lasts[grace] = least
    chosen = kept if len(kept) < 4 else [kept[0], kept[len(kept) // 2], *kept[-2:]]
    for grace in chosen:
        shares = [rounded(share * most, up=False) for share in _SHARES]
        for ttl in dict.fromkeys([*shares, lasts[grace]]):
            if ttl >= lasts[grace]:
                leased = _lease(candidate, grace, ttl, goals, pause)
                yield leased
                yield from _repairing(leased, environment)


def _repairing(candidate: Proposal, environment: Environment) -> Iterator[Proposal]:
    """A multicast that other members repair: the last one to hear of a leader hears sooner."""
    lossy = environment.network.loss.p > 0 and members_of(environment) > _SMALL
    if lossy and find(candidate.configuration.protocol).assumptions.announces:
        because = "the news of a new leader is repaired by others where it is lost"
        reason = SettingReason("multicast", "bimodal", FAILOVER, because)
        yield candidate.with_(reason, multicast="bimodal")


def _lease(
    candidate: Proposal, grace: float | None, ttl: float, goals: GroupGoals, pause: float
) -> Proposal:
    because = "so long may a leader that cannot renew lead"
    goal = NEVER
    if pause:
        because = f"a leader that stands still for {_about(pause)} keeps its lease"
        goal = PAUSES if goals.wrong is None else WRONG
    if goals.failover_p99 is not None:
        because += ", and the lease of a dead leader is over in time"
    reasons = [SettingReason("ttl", write_duration(ttl), goal, because)]
    if grace is not None and grace != GRACES[0]:
        told = "twice the time to end a command is part of the lease"
        reasons.append(SettingReason("grace", write_duration(grace), FAILOVER, told))
    return candidate.with_(*reasons, ttl=ttl, grace=grace)


def _patient(
    candidate: Proposal, goals: GroupGoals, environment: Environment
) -> Iterator[Proposal]:
    """Patiences with a silent leader: the default, what pauses need, and what the goals allow."""
    now = timers(candidate.configuration, environment)
    way = longest_delay(environment)
    pause = longest_pause(environment.pauses)
    announces, guarded = now.announces, candidate.configuration.guard is not None
    most = math.inf
    if goals.failover_p99 is not None:
        election = now.elects if math.isfinite(now.elects) else 8.0 * now.delta
        most = 0.95 * goals.failover_p99 - election - 2.0 * way
        if guarded and now.ttl:
            most = min(most, 0.9 * now.ttl)
    if now.patience <= most:
        yield candidate
    wanted: dict[float, tuple[str, str]] = {}
    if pause and not guarded:
        bears = f"a leader that stands still for {_about(pause)} is not missed"
        wanted[rounded(1.3 * (pause + now.period + way))] = (PAUSES, bears)
    if math.isfinite(most) and most > 0 and goals.failover_p99 is not None:
        length = _about(goals.failover_p99)
        for share in (1.0,) if guarded else (0.35, 0.65, 1.0):
            in_time = f"a dead leader is missed in time for {length}"
            wanted[rounded(share * most, up=False)] = (FAILOVER, in_time)
    elif goals.wrong is not None and not guarded:
        calm = f"it bears losses and pauses with {show_rate(goals.wrong)} wrong failovers"
        wanted[rounded(4.0 * max(now.patience, pause))] = (WRONG, calm)
    for patience, (goal, because) in wanted.items():
        if not 2.0 * (way + 0.001) < patience <= most:
            continue
        for beats in _beats(candidate, goals, environment, patience):
            yield _watch(candidate, patience, beats, goal, because, announces)


def _remembering(candidate: Proposal, environment: Environment) -> Proposal:
    """Gossip that is no less patient with a silent leader than the election."""
    now = timers(candidate.configuration, environment)
    if now.forgotten >= 1.2 * now.longest or candidate.configuration.configured().stack.partial:
        return candidate
    because = "gossip must not take a leader for gone that the election still waits for"
    silence = rounded(1.5 * now.longest)
    return _set(candidate, "T_fail", silence, WRONG, because, "gossip_settings")


def _beats(
    candidate: Proposal, goals: GroupGoals, environment: Environment, patience: float
) -> list[float]:
    """How many signs of life a patience holds: the usual number, and what losses need."""
    found = [4.5]
    loss = environment.network.loss
    if loss.p > 0 and goals.wrong is not None and candidate.configuration.guard is None:
        followers = members_of(environment) - 1
        for beats in range(5, MOST_BEATS):
            if followers * missed(loss, beats) * beats / patience <= goals.wrong:
                break
        found.append(beats + 0.5)
    return found


def _watch(
    candidate: Proposal, patience: float, beats: float, goal: str, because: str, announces: bool
) -> Proposal:
    """How often a leader is to be heard, and how long it may be silent."""
    period = rounded(patience / beats, up=False)
    often = f"within that silence {math.floor(beats)} signs of life in a row may be lost"
    if announces:
        timed = _set(candidate, "T_A", period, goal, often)
        return _set(timed, "T_L", patience, goal, because)
    margin = round(patience - period, 9)
    timed = _set(candidate, "T", period, goal, often, "detector_settings")
    return _set(timed, "D", margin, goal, because, "detector_settings")


# The size of the group, and bytes


def _sized(candidate: Proposal, environment: Environment) -> Proposal:
    """Limits that a group of this size needs."""
    members, usual = members_of(environment), Limits()
    for name, needed in (
        ("members", members),
        ("view", members),
        ("connections", members - 1),
    ):
        if needed > getattr(usual, name):
            value = min(1_000_000 if name != "connections" else 65_536, int(_CONNECTIONS * needed))
            because = f"{needed} members, and the default is {getattr(usual, name)}"
            values = {**candidate.configuration.limits, name: value}
            reason = SettingReason(f"limits.{name}", str(value), SIZE, because)
            candidate = candidate.with_(reason, limits=values)
    if members > LARGE and find(candidate.configuration.protocol).assumptions.partial_views:
        values = {**candidate.configuration.gossip_settings, "view_size": 100}
        reasons = (
            SettingReason(
                "gossip-settings.view_size", "100", SIZE, "a member need not know all others"
            ),
            SettingReason("multicast", "gossip", SIZE, "no member can reach all others by itself"),
        )
        candidate = candidate.with_(*reasons, gossip_settings=values, multicast="gossip")
    return candidate


def _slim(candidate: Proposal, goals: GroupGoals, environment: Environment) -> Proposal:
    """Gossip and signs of life that keep to the bytes; unchanged where they do already."""
    if goals.bytes is None or traffic(candidate.configuration, environment).most <= goals.bytes:
        return candidate
    part = SHARE * goals.bytes
    because = f"at most {show_bytes(goals.bytes)} of any member"
    candidate = _gossip_less(candidate, part, because, environment)
    if traffic(candidate.configuration, environment).most <= goals.bytes:
        return candidate
    if candidate.configuration.multicast == "fan-out" and members_of(environment) > 16:
        told = "one sign of life to each member is too much for the leader"
        spread = candidate.with_(
            SettingReason("multicast", "gossip", BYTES, told), multicast="gossip"
        )
        spread = _round_less(spread, part, because, environment)
        fan, epidemic = (
            traffic(each.configuration, environment).most for each in (candidate, spread)
        )
        if epidemic < fan:
            candidate = spread
    return _beat_less(candidate, goals.bytes, because, environment)


def _gossip_less(
    candidate: Proposal, part: float, because: str, environment: Environment
) -> Proposal:
    """A longer period of the gossip, so that it takes its part of the bytes."""
    now = traffic(candidate.configuration, environment)
    period = candidate.configuration.configured().stack.period
    gossip = _gossip_of(candidate.configuration, environment, now.member)
    if gossip <= part:
        return candidate
    longer = rounded(period * gossip / part)
    for _ in range(8):
        made = _set(candidate, "T_gossip", longer, BYTES, because, "gossip_settings")
        made = _set(made, "reconcile_interval", longer, BYTES, because, "leadership_settings")
        made = _set(made, "leaderless_timeout", 4.0 * longer, BYTES, because, "leadership_settings")
        if traffic(made.configuration, environment).member <= 1.1 * part:
            return made
        if _gossip_of(made.configuration, environment, 0.0) <= part:
            return made
        longer = rounded(1.2 * longer)
    return made


def _gossip_of(configuration: Configuration, environment: Environment, most: float) -> float:
    """The bytes of gossip alone: those of a group whose leader is hardly ever heard."""
    made = configuration.configured()
    slow = "T_A" if find(configuration.protocol).assumptions.announces else "T"
    if made.stack.partial:
        return traffic(configuration, environment).member
    table = "settings" if slow == "T_A" else "detector_settings"
    values = {**getattr(configuration, table), slow: 1e6}
    if slow == "T_A":
        values["T_L"] = 4e6
    else:
        values["D"] = 1e6
    quiet = configuration.but(**{table: values}, multicast="fan-out")
    return traffic(quiet, environment).member


def _round_less(
    candidate: Proposal, part: float, because: str, environment: Environment
) -> Proposal:
    """An epidemic with fewer digests: they take most of its bytes."""
    rounds = {"T_round": 1.0, "rounds": 6, "digests": 1}
    for name, value in rounds.items():
        candidate = _set(candidate, name, value, BYTES, because, "gossip_settings")
    return candidate


def _beat_less(
    candidate: Proposal, most: float, because: str, environment: Environment
) -> Proposal:
    """Rarer signs of life, with a patience that grows with them."""
    announces = find(candidate.configuration.protocol).assumptions.announces
    made = candidate.configuration.configured()
    if made.stack.partial:
        return candidate
    for _ in range(40):
        if traffic(candidate.configuration, environment).most <= most:
            return candidate
        at = timers(candidate.configuration, environment)
        period = rounded(1.25 * at.period)
        beats = max(2.5, min(4.5, at.patience / at.period))
        patience = max(at.patience, rounded(beats * period))
        if announces:
            candidate = _set(candidate, "T_A", period, BYTES, because)
            candidate = _set(candidate, "T_L", patience, BYTES, because)
        else:
            candidate = _set(candidate, "T", period, BYTES, because, "detector_settings")
            margin = round(patience - period, 9)
            candidate = _set(candidate, "D", margin, BYTES, because, "detector_settings")
    return candidate


def _about(seconds: float) -> str:
    """A time with three digits, for a sentence."""
    return show_duration(float(f"{seconds:.3g}"))
