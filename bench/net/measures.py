"""The measurements on one group: each leaves all members in agreement on a leader."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field

from bench.net import spaces
from bench.net.group import Group, GroupFailed
from bench.net.timeline import called, changes

PATIENCE_S = 30.0
STEADY_S = 0.3  # an agreement counts after this long without a change
PACE_S = 0.5  # between two transfers


@dataclass(slots=True)
class Samples:
    """Milliseconds of what one contender did at one size, and its failures."""

    kill: list[float] = field(default_factory=list)
    pause: list[float] = field(default_factory=list)
    step_down: list[float] = field(default_factory=list)
    transfer: list[float] = field(default_factory=list)
    transfer_led: list[float] = field(default_factory=list)  # until the next one leads
    resign: list[float] = field(default_factory=list)
    resign_led: list[float] = field(default_factory=list)
    elect: list[float] = field(default_factory=list)
    packets: list[float] = field(default_factory=list)  # per second and member, at rest
    failures: list[str] = field(default_factory=list)


def milliseconds(begin_ns: int, end_ns: int) -> float:
    return (end_ns - begin_ns) / 1e6


def settled(group: Group, seconds: float | None = None) -> int:
    """Wait until all members follow one leader steadily, and return it."""
    steady_s = group.contender.settle_s if seconds is None else seconds
    return group.agreed(PATIENCE_S, steady_s).leader


def elect(group: Group) -> float:
    """Milliseconds from the start of the first process to all members agreeing."""
    begin = group.start()
    return milliseconds(begin, group.agreed(PATIENCE_S, STEADY_S).at_ns)


def kill(group: Group) -> float:
    """Milliseconds from SIGKILL of the leader's process to all others agreeing on another."""
    process = settled(group) // group.per_process
    begin = group.kill(process)
    taken = milliseconds(begin, group.agreed(PATIENCE_S, STEADY_S).at_ns)
    group.start([process])
    return taken


def pause(group: Group) -> tuple[float, float]:
    """The same with SIGSTOP; and from SIGCONT to the old leader following the new one."""
    old = settled(group)
    begin = group.pause(old // group.per_process)
    taken = milliseconds(begin, group.agreed(PATIENCE_S, STEADY_S).at_ns)
    back = group.resume(old // group.per_process)
    now = group.agreed(PATIENCE_S, STEADY_S)
    if now.leader == old:
        raise GroupFailed(f"{group}: the leader that had been paused leads again")
    return taken, milliseconds(back, group.timeline.since[old])


def hand_over(group: Group, do: str, to: int | None = None) -> tuple[float, float]:
    """Milliseconds from the leader's call to the next one leading, and to all agreeing on it."""
    old = settled(group, PACE_S)
    if to == old:
        to = (to + 1) % group.n
    mark = time.monotonic_ns()
    group.tell(old, do, to)
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        now = group.agreed(PATIENCE_S, STEADY_S)
        begin = called(group.timeline.records, old, mark)
        if begin is not None and now.leader != old:
            break
    else:
        raise GroupFailed(f"{group}: {do} was refused or without effect")
    group.tell(old, "stand")
    if to is not None and now.leader != to:
        raise GroupFailed(f"{group}: {do} to {to} made {now.leader} the leader")
    led = group.timeline.since[now.leader]
    return milliseconds(begin, led), milliseconds(begin, now.at_ns)


def packets_at_rest(group: Group, seconds: float) -> float:
    """Packets per second and member; fails if the leader changed meanwhile."""
    settled(group)
    begin, before = time.monotonic_ns(), group.packets()
    group.watch(seconds)
    end, after = time.monotonic_ns(), group.packets()
    if changes(group.timeline.records, begin, end).words:
        raise GroupFailed(f"{group}: the leader changed at rest")
    return (after - before) / ((end - begin) / 1e9) / group.n


@dataclass(frozen=True, slots=True)
class Resources:
    """Per member: the mean over the processes of the group."""

    megabytes: float  # resident
    private_megabytes: float
    cpu_s_per_minute: float


def resources(group: Group, seconds: float) -> Resources:
    settled(group)
    pids = list(group.pids.values())
    begin = time.monotonic()
    before = [spaces.cpu_seconds(pid) for pid in pids]
    group.watch(seconds)
    after = [spaces.cpu_seconds(pid) for pid in pids]
    minutes = (time.monotonic() - begin) / 60
    used = (sum(after) - sum(before)) / minutes / group.n
    resident, private = zip(*map(spaces.memory_megabytes, pids), strict=True)
    return Resources(statistics.mean(resident), statistics.mean(private), used)
