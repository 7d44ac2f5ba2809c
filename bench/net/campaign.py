"""The phases of a run: each fills in its part of the results."""

from __future__ import annotations

import compileall
import importlib.util
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.measure import say
from bench.net import measures
from bench.net.calm import Calm, calm
from bench.net.contenders import OURS, Contender
from bench.net.group import Group, GroupFailed
from bench.net.measures import Resources, Samples

Key = tuple[str, int]  # label and size

ROUND_TRIPS = 400
PEER_MINUTES = 1.0
THOUSAND, PROCESSES = 1_000, 20
PACKAGES = ("hustings", "msgspec", "pysyncobj")


@dataclass(frozen=True, slots=True)
class Effort:
    """How much of everything a run does."""

    rounds: int
    kills: int  # per round, of each contender at each size; equally many pauses
    hand_overs: int  # per round; equally many resignations
    rest_s: float
    minutes: float  # without a disturbance, at rest; half of it, with busy cores
    resources_s: float
    thousands: int


FULL = Effort(3, 5, 4, 4.0, 1.0, 15.0, 3)
QUICK = Effort(1, 1, 1, 2.0, 0.1, 3.0, 1)
SLOW_ROUNDS = 1  # rounds for contenders that need long pauses, with few disturbances
SLOW_EFFORT = Effort(1, 2, 1, 4.0, 0.0, 0.0, 0)


@dataclass(slots=True)
class Results:
    effort: Effort
    sizes: Sequence[int]
    own_network: bool = True
    round_trips_ms: list[float] = field(default_factory=list)
    failover: dict[Key, Samples] = field(default_factory=dict)
    flat: dict[Key, list[float]] = field(default_factory=dict)
    calm: list[Calm] = field(default_factory=list)
    resources: dict[Key, Resources] = field(default_factory=dict)
    thousand: Samples = field(default_factory=Samples)
    failures: list[str] = field(default_factory=list)


def round_trips(results: Results, contender: Contender) -> None:
    """Measure round trips in a network like a group's, before there is a group."""
    with Group(contender, 3) as group:
        results.own_network = results.own_network and group.own_network
        taken = group.ask("round trips", count=ROUND_TRIPS)
        results.round_trips_ms += [1e3 * seconds for seconds in taken]


def visit(samples: Samples, contender: Contender, n: int, effort: Effort) -> None:
    """Run one group of one contender, from its start through all disturbances."""
    draw = random.Random(n)
    with Group(contender, n) as group:
        samples.elect.append(measures.elect(group))
        samples.packets.append(measures.packets_at_rest(group, effort.rest_s))
        for _ in range(effort.kills):
            samples.kill.append(measures.kill(group))
        for _ in range(effort.kills):
            taken, back = measures.pause(group)
            samples.pause.append(taken)
            samples.step_down.append(back)
        measures.settled(group)
        for _ in range(effort.hand_overs):
            to = draw.randrange(n)
            led, all_agree = measures.hand_over(group, "transfer", to)
            samples.transfer_led.append(led)
            samples.transfer.append(all_agree)
            led, all_agree = measures.hand_over(group, "resign")
            samples.resign_led.append(led)
            samples.resign.append(all_agree)
    samples.failures += [f"{group}: {line}" for line in group.errors]


def failover(results: Results, contenders: Sequence[Contender]) -> None:
    """Every contender in turn, at every size; the order rotates from round to round."""
    effort = results.effort
    for round_ in range(effort.rounds):
        round_trips(results, contenders[0])
        shift = round_ % len(contenders)
        order = [*contenders[shift:], *contenders[:shift]]
        for n, contender in itertools.product(results.sizes, order):
            if contender.slow and round_ >= SLOW_ROUNDS:
                continue
            say(f"round {round_ + 1} of {effort.rounds}: {contender.label}, N = {n}")
            samples = results.failover.setdefault((contender.label, n), Samples())
            try:
                visit(samples, contender, n, SLOW_EFFORT if contender.slow else effort)
            except GroupFailed as error:
                say(f"  {error}")
                samples.failures.append(str(error))


def flat(results: Results, contenders: Sequence[Contender], sizes: Sequence[int]) -> None:
    """Packets at rest over a wide range of sizes."""
    for contender, n in itertools.product(contenders, sizes):
        say(f"packets at rest: {contender.label}, N = {n}")
        try:
            with Group(contender, n) as group:
                measures.elect(group)
                rate = measures.packets_at_rest(group, results.effort.rest_s)
                results.flat.setdefault((contender.label, n), []).append(rate)
        except GroupFailed as error:
            say(f"  {error}")
            results.failures.append(str(error))


def undisturbed(results: Results, contenders: Sequence[Contender]) -> None:
    for busy, contender in itertools.product((False, True), contenders):
        try:
            # The question is how long we keep a leader; a short look at the peer is enough.
            whole = results.effort.minutes
            minutes = whole if contender.module == OURS else min(whole, PEER_MINUTES)
            span = minutes / 2 if busy else minutes
            results.calm += calm(contender, results.sizes, span, busy)
        except GroupFailed as error:
            say(f"  {error}")
            results.failures.append(str(error))


def compiled() -> None:
    """Compile, as an installation does: a member that compiles at each start keeps the cost."""
    for name in PACKAGES:
        found = importlib.util.find_spec(name)
        for place in (found and found.submodule_search_locations) or ():
            compileall.compile_dir(place, quiet=2)


def resources(results: Results, contenders: Sequence[Contender]) -> None:
    """Members in interpreters of their own, so that their memory is theirs."""
    compiled()
    for contender, n in itertools.product(contenders, results.sizes):
        say(f"memory and processor: {contender.label}, N = {n}")
        try:
            with Group(contender, n, separate=True) as group:
                measures.elect(group)
                found = measures.resources(group, results.effort.resources_s)
                results.resources[contender.label, n] = found
        except GroupFailed as error:
            say(f"  {error}")
            results.failures.append(str(error))


def thousand(results: Results, contender: Contender) -> None:
    """Let many members in few processes elect, and lose the process of the leader."""
    share = THOUSAND // PROCESSES
    for _ in range(results.effort.thousands):
        say(f"{THOUSAND:,} members in {PROCESSES} processes: {contender.label}")
        try:
            with Group(contender, THOUSAND, per_process=share) as group:
                results.thousand.elect.append(measures.elect(group))
                results.thousand.kill.append(measures.kill(group))
        except GroupFailed as error:
            say(f"  {error}")
            results.thousand.failures.append(str(error))
