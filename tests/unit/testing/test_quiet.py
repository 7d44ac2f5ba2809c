"""Skipped time: what happens is what would have happened, at the same times of a program."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hustings.net
from hustings.guard import make_guard
from hustings.guard.base import Grant, Holder
from hustings.guard.memory import MemoryGuard, register_of
from hustings.net.campaign import Term
from hustings.net.control_messages import ProbeMsg
from hustings.net.member import Member
from hustings.net.member_state import Leadership
from hustings.testing import Group, NotQuiet, VirtualLoop, parse_fault
from tests.unit.testing.groups import NAMES

HOUR = 3600.0
PLAYED_S = 60.0  # a group that is played for longer than this was not skipped as it should be
Run = tuple[float, str, int]


def three(**options: Any) -> Group:
    """Three members that agree, and may not be played for long."""
    group = Group(**{"seed": 7, "most_callbacks": 100_000, **options})
    for name in NAMES:
        group.join(name)
    group.settle(steady=1.0)
    return group


def lived(group: Group) -> float:
    """Seconds that the members of a group have lived through."""
    return group.inside.loop.clock_of_members.time()


def states(group: Group) -> dict[str, Leadership]:
    return {name: group.member(name).state for name in group.up}


def periodic(group: Group, every: str) -> list[Run]:
    """Let each member run a periodic job; returns what grows with each run."""
    runs: list[Run] = []

    async def program(member: Member) -> None:
        async def job(term: Term) -> None:
            runs.append((group.now, member.name, term.number))

        await member.run(job, every=every)

    for name in group.up:
        group.spawn(name, program(group.member(name)))
    return runs


def after(group: Group, seconds: float, skip: bool) -> tuple[list[Run], dict[str, Leadership]]:
    """The runs of a job in that time, and what members believe then."""
    with group:
        runs = periodic(group, "30s")
        group.advance(seconds, skip_quiet=skip)
        assert (lived(group) < PLAYED_S) == skip
        return list(runs), states(group)


@pytest.mark.parametrize("guard", [None, "memory://"])
@pytest.mark.parametrize("protocol", ["le-s", "bully", "probabilistic", "ring"])
def test_what_is_skipped_ends_like_what_is_played(protocol: str, guard: str | None) -> None:
    options = {"protocol": protocol, "guard": guard}
    skipped, believed = after(three(**options), 110.0, skip=True)
    played, expected = after(three(**options), 110.0, skip=False)
    assert len(played) == 4
    assert [run[1:] for run in skipped] == [run[1:] for run in played]
    assert [run[0] for run in skipped] == pytest.approx([run[0] for run in played], abs=1e-6)
    assert believed == expected


def test_a_job_of_every_five_minutes_runs_72_times_in_six_hours() -> None:
    with three() as group:
        runs = periodic(group, "5m")
        group.advance(1.0)
        began = runs.pop()[0]
        group.advance(6 * HOUR, skip_quiet=True)
        assert [time for time, *_ in runs] == pytest.approx(
            [began + 300.0 * number for number in range(1, 73)], abs=1e-6
        )
        assert lived(group) < PLAYED_S
        assert group.now > 6 * HOUR


@pytest.mark.parametrize("machine", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_crash_after_skipped_time_is_noticed_as_soon(seed: int, machine: bool) -> None:
    took = []
    for skip in (False, True):
        with three(seed=seed) as group:
            leader = group.settle(steady=5.0)
            group.advance(HOUR if skip else 1.0, skip_quiet=skip)
            began, before = group.now, lived(group)
            group.kill(leader, machine=machine)
            assert group.settle() != leader
            assert group.now - began == pytest.approx(lived(group) - before, abs=1e-6)
            took.append(group.now - began)
    assert took[1] < took[0] + 0.5  # a heartbeat's phase


def test_a_stall_is_noticed_after_skipped_time_and_skipped_time_is_no_stall() -> None:
    with three() as group:
        leader = group.settle(steady=5.0)
        before = len(group.log)
        group.advance(HOUR, skip_quiet=True)
        group.advance(5.0)
        assert len(group.log) == before
        group.pause(leader)
        other = group.settle()
        assert other != leader
        group.resume(leader)
        group.settle(steady=1.0)
        assert {each.state.reason for each in group.log[before:]} >= {"paused"}


def test_a_lease_lasts_through_skipped_time_and_ends_when_its_holder_does() -> None:
    with three(guard="memory://", ttl=5.0) as group:
        leader = group.settle(steady=5.0)
        member, before = group.member(leader), states(group)
        changes, asked = len(group.log), sum(_questions(group))
        group.advance(6 * HOUR, skip_quiet=True)
        assert lived(group) < PLAYED_S
        assert member.is_leader
        assert 0.0 < member.remaining <= 5.0
        assert sum(_questions(group)) < asked + 20
        group.advance(20.0)
        assert states(group) == before  # the same token, too
        assert len(group.log) == changes
        group.advance(HOUR, skip_quiet=True)
        killed_at = group.now
        group.kill(leader)
        later = group.member(group.settle()).state.token
        assert 2.0 < group.now - killed_at < 6.0
        assert later == (before[leader].token or 0) + 1


def _questions(group: Group) -> Iterator[int]:
    for name in group.up:
        guard = group.member(name).engine
        assert isinstance(guard, MemoryGuard)
        yield guard.questions


def test_a_lease_of_the_test_is_not_prolonged() -> None:
    """It is played until it is over, and only then time is skipped."""

    async def acquire() -> Grant:
        async with make_guard("memory://", "mine") as guard:
            answer = await guard.acquire(Holder("test", 1), 12.0)
            assert isinstance(answer, Grant)
            return answer

    async def is_free() -> bool:
        async with make_guard("memory://", "mine") as guard:
            return (await guard.look()).holder is None

    with three() as group:
        group.advance(HOUR, skip_quiet=True)
        before = lived(group)
        grant = group.run(acquire())
        assert grant.deadline == pytest.approx(group.now + 12.0, abs=0.1)
        group.advance(11.0, skip_quiet=True)
        assert not group.run(is_free())
        group.advance(2.0, skip_quiet=True)
        assert group.run(is_free())
        group.advance(HOUR, skip_quiet=True)
        assert 11.9 < lived(group) - before < PLAYED_S


@pytest.mark.parametrize("kind", ["kill", "pause", "isolate"])
def test_a_fault_in_the_middle_ends_the_quiet(kind: str) -> None:
    with three() as group:
        leader = group.settle(steady=5.0)
        changes, began = len(group.log), group.now
        fault = group.inside.loop.create_task(
            group.inside.inject([parse_fault(f"{kind}:leader@1000+5")])
        )
        group.advance(HOUR, skip_quiet=True)
        assert fault.done()
        assert group.settle() in group.leaders
        times = [each.time - began for each in group.log[changes:] if each.member != leader]
        assert times
        assert 1000.0 < times[0] < 1002.0  # noticed as soon as ever
        assert 5.0 < lived(group) < PLAYED_S


def test_a_guard_that_is_cut_off_ends_a_lease_in_its_time() -> None:
    with three(guard="memory://", ttl=5.0) as group:
        group.settle(steady=1.0)
        group.advance(HOUR, skip_quiet=True)
        for name in group.up:
            guard = group.member(name).engine
            assert isinstance(guard, MemoryGuard)
            guard.cut = True
        group.advance(6.0, skip_quiet=True)
        assert not group.leaders


def test_what_programs_do_to_members_is_played() -> None:
    with three() as group:
        leader = group.settle(steady=5.0)
        heir = next(name for name in NAMES if name != leader)
        seen: list[object] = []

        async def program() -> None:
            await asyncio.sleep(1000.0)
            await group.member(heir).update({"size": 3.0})
            await asyncio.sleep(10.0)
            seen.append(group.member(leader).members()[NAMES.index(heir)].attributes)
            await asyncio.sleep(1000.0)
            await group.member(leader).transfer(heir)
            seen.append(group.member(heir).is_leader)
            await asyncio.sleep(2.0)
            await group.inside.join("d")
            await asyncio.sleep(10.0)
            seen.extend(len(group.member(name).members()) for name in group.up)

        work = group.inside.loop.create_task(program())
        group.advance(HOUR, skip_quiet=True)
        assert work.done()
        assert seen == [{"size": 3.0}, True, 4, 4, 4, 4]
        assert lived(group) < PLAYED_S


def test_what_a_program_sends_is_played_even_if_nothing_comes_of_it() -> None:
    async def ask(member: Member) -> None:
        member.node.transmit(None, ProbeMsg(1))

    with three() as group:
        group.advance(HOUR, skip_quiet=True)
        before, believed = lived(group), states(group)
        group.advance(HOUR, skip_quiet=True)
        assert lived(group) == before
        group.run(ask(group.member("b")))
        group.advance(HOUR, skip_quiet=True)
        assert 3.0 <= lived(group) - before < PLAYED_S
        assert states(group) == believed


def test_a_better_member_takes_over_in_its_time() -> None:
    took = []
    for skip in (False, True):
        with three(preempt_after="20s", choice="highest:size", attributes={"size": 1.0}) as group:
            group.settle(steady=5.0)
            began = group.now
            group.join("z", attributes={"size": 2.0})
            group.advance(1.0)
            group.settle()
            group.advance(100.0, skip_quiet=skip)
            assert group.leaders == ["z"]
            took.append(next(e.time for e in group.log if e.member == "z" and e.state.leading))
            took[-1] -= began
    assert took[1] == pytest.approx(took[0], abs=0.5)


def test_a_program_that_looks_every_second_keeps_nobody_awake() -> None:
    with three(guard="memory://") as group:
        leader = group.member(group.settle(steady=1.0))
        looks: list[bool] = []

        async def look() -> None:
            while True:
                looks.append(leader.is_leader)
                await asyncio.sleep(1.0)

        group.spawn(leader.name, look())
        group.advance(HOUR, skip_quiet=True)
        assert len(looks) > 3590
        assert all(looks)
        assert lived(group) < PLAYED_S


Do = Callable[[Group], object]


@pytest.mark.parametrize(
    "options, do, said",
    [
        ({}, lambda group: group.kill(group.leaders[0]), "let them settle first"),
        ({}, lambda group: group.pause("b"), "b is paused: resume it, or kill it"),
        ({}, lambda group: group.cut("a", "b"), "heal the network first"),
        ({}, lambda group: group.weather(loss=0.1), "chance decides"),
        ({}, lambda group: group.weather(delay=(0.0, 1.0)), "take up to 1 s, and delta is"),
        ({"measure": "loss", "choice": "lowest:loss"}, lambda group: None, "what they measure"),
    ],
)
def test_time_is_not_skipped_where_something_goes_on(
    options: dict[str, Any], do: Do, said: str
) -> None:
    with three(**options) as group:
        do(group)
        began = group.now
        with pytest.raises(NotQuiet, match=f"^quiet time cannot be skipped: .*{re.escape(said)}"):
            group.advance(60.0, skip_quiet=True)
        assert group.now == began
        group.heal()


def test_a_guard_that_is_not_in_memory_is_refused() -> None:
    class Other(MemoryGuard):
        """A guard of the test, with leases that nobody else can prolong."""

    def other(group: str) -> MemoryGuard:
        return Other(lambda: register_of("other", group))

    with three(guard=other) as group, pytest.raises(NotQuiet, match="is not memory://"):
        group.advance(60.0, skip_quiet=True)


def test_timers_of_members_wait_and_those_of_programs_do_not() -> None:
    loop, fired = VirtualLoop(), []
    clock = loop.clock_of_members
    loop.quiet_checks.append(lambda: clock.time() >= 2.0)

    def beat(number: int) -> None:
        fired.append((loop.time(), clock.time()))
        clock.call_at(number + 1.0, beat, number + 1)

    clock.call_at(1.0, beat, 1)

    async def wait() -> None:
        with loop.skipping():
            await asyncio.sleep(100.5)
        await asyncio.sleep(2.0)

    loop.run_until_complete(wait())
    loop.close()
    # Quiet from the second beat on: then the clock of members stands still until the program's.
    assert fired == [(1.0, 1.0), (2.0, 2.0), (101.5, 3.0), (102.5, 4.0)]


def test_no_part_of_a_member_takes_the_time_from_the_loop() -> None:
    """A time of one clock means nothing on another."""
    there = Path(hustings.net.__file__).parent
    apart = {
        "tcp.py",  # real sockets, which no virtual loop has
        "udp.py",
        "clock.py",
        "member.py",  # campaigns and waits of the program
    }
    found = [
        f"{path.name}: {line.strip()}"
        for path in sorted(there.glob("*.py"))
        if path.name not in apart
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"loop(\(\))?\.(time|call_later|call_at)\b", line)
    ]
    assert not found
