"""What is easily lost in a supervisor: who is asked, how late counts, what is passed on, codes."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest

from hustings.agent.child import TAKE_OVER_S, ChildCommand
from hustings.agent.supervisor import adopt_orphans
from hustings.net.restarts import Restart, RestartPolicy, Restarts
from tests.unit.agent_command.playing import (
    PATIENCE_S,
    WAITS,
    Play,
    Played,
    gone,
    guards_of,
    new_children,
    processes_of,
    until,
)

# Signals 32 and 33 belong to the C library: no program can set them, and one that was started with
# them ignored, as `posix_spawn` may do it, hands that on.
RESERVED = 1 << 31 | 1 << 32

# --- how late counts -----------------------------------------------------------------------------


def held_for(name: str, script: str, grace_s: float, lease_s: float | None = None) -> ChildCommand:
    """A command outside any member; its lease ends so many seconds from now."""
    environment = {**os.environ, "HUSTINGS_MEMBER": name}
    last = None if lease_s is None else time.monotonic() + lease_s
    return ChildCommand(("sh", "-c", script), environment, grace_s, 600.0, lambda: last)


async def over(held: ChildCommand) -> None:
    await asyncio.wait_for(held.over, PATIENCE_S)


@pytest.mark.parametrize(
    "told_ago, patience_s",
    [(None, 20.0), (-50.0, 20.0), (0.0, 20.0), (5.0, 15.0), (20.0, 0.0), (400.0, 0.0)],
)
def test_a_member_that_notices_late_takes_over_no_later(
    name: str, told_ago: float | None, patience_s: float
) -> None:
    """As its supervisor does, it counts the grace from the end of the lease."""

    async def story() -> None:
        held = held_for(name, "exec sleep 600", grace_s=20.0)
        now = time.monotonic()
        held._told = None if told_ago is None else now - told_ago
        held.end()
        assert held._overdue is not None
        due = held._overdue.when() - held._loop.time()
        assert due == pytest.approx(patience_s + TAKE_OVER_S, abs=0.3)
        held.kill()
        await over(held)

    asyncio.run(story())


def test_a_member_that_is_told_twice_does_not_wait_longer(name: str) -> None:
    async def story() -> None:
        held = held_for(name, "trap '' TERM; while :; do sleep 0.05; done", grace_s=20.0)
        held.kill()
        assert held._overdue is not None
        due = held._overdue.when()
        held.end()
        assert held._overdue.when() == due
        await over(held)

    asyncio.run(story())


def test_a_lease_that_is_over_is_no_end_of_the_command(play: Play) -> None:
    """It is started again when the member leads again, though it is not to be restarted."""

    async def story(it: Played) -> None:
        it.member.until = time.monotonic() + 600.0
        running = it.supervise(f"echo >> runs; {WAITS}", grace_s=0.1)
        await it.member.lead()
        await until(lambda: it.wrote("pid"))
        it.member.until = time.monotonic()
        await until(lambda: "the command was ended: this process had been" in "".join(it.said))
        it.member.until = time.monotonic() + 600.0
        await until(lambda: len(it.wrote("runs")) == 2)
        assert not running.done()

    play(story)


# --- who is asked --------------------------------------------------------------------------------


def test_what_has_fled_is_asked_before_it_is_killed(play: Play) -> None:
    """A daemon in a session of its own, orphaned: it has the same grace as the command."""

    async def story(it: Played) -> None:
        heeds = 'trap "echo done > end; exit 0" TERM; echo > up; while :; do sleep 0.02; done'
        it.supervise(f"(setsid sh -c '{heeds}' &); trap '' TERM; while :; do sleep 0.05; done", 2.0)
        await it.member.lead()
        await until(lambda: it.wrote("up"))
        await it.member.lose()
        await until(lambda: it.processes() == [])
        assert it.wrote("end") == "done\n"

    play(story)


def test_a_stopped_keeper_is_woken_so_that_the_command_is_asked(play: Play) -> None:
    async def story(it: Played) -> None:
        it.supervise("trap 'echo done > end; exit 0' TERM; sleep 600 & echo > up; wait", 20.0)
        await it.member.lead()
        await until(lambda: it.wrote("up"))
        os.kill(guards_of(it.member.name).supervisor, signal.SIGSTOP)
        await it.member.lose()
        await until(lambda: it.processes() == [])
        assert it.wrote("end") == "done\n"

    play(story)


def test_a_stopped_guardian_does_not_hide_that_the_command_has_ended(play: Play) -> None:
    async def story(it: Played) -> None:
        running = it.supervise("echo > up; until [ -e go ]; do sleep 0.02; done; exit 6")
        await it.member.lead()
        await until(lambda: it.wrote("up"))
        os.kill(guards_of(it.member.name).guardian, signal.SIGSTOP)
        (it.folder / "go").touch()
        assert await running == 6

    play(story)


def test_a_supervisor_that_lost_its_guardian_and_is_held_stopped(play: Play) -> None:
    async def story(it: Played) -> None:
        it.supervise(
            "trap '' TERM; setsid sleep 600 & echo > up; while :; do sleep 0.05; done", 0.2
        )
        await it.member.lead()
        await until(lambda: it.wrote("up"))
        guards = guards_of(it.member.name)
        os.kill(guards.supervisor, signal.SIGSTOP)
        os.kill(guards.guardian, signal.SIGKILL)
        await it.member.lose()
        while it.processes():
            try:
                os.kill(guards.supervisor, signal.SIGSTOP)  # SIGCONT does not help
            except ProcessLookupError:
                break
            await asyncio.sleep(0.001)
        await until(lambda: it.processes() == [])

    play(story)


def test_the_command_itself_dies_with_its_keeper_when_nobody_is_left(name: str) -> None:
    """All three at once: the system's parent-death signal is the last that is kept."""

    async def story() -> None:
        held = held_for(name, "exec sleep 600", grace_s=600.0)
        await until(lambda: held.process is not None)
        guards = guards_of(name)
        for each in guards:
            os.kill(each, signal.SIGSTOP)  # so that neither sees the other's end
        os.kill(guards.guardian, signal.SIGKILL)
        os.kill(guards.supervisor, signal.SIGKILL)
        held.abandon()
        await until(lambda: processes_of(name) == [])
        held._guardian.wait()

    asyncio.run(story())


def test_no_dead_keeper_stays_unburied(play: Play) -> None:
    """Where the member's process adopts orphans, a supervisor that lost its guardian is one."""

    async def story(it: Played) -> None:
        born = new_children()
        running = it.supervise(f"echo > up; {WAITS}", grace_s=0.2, sole=True)
        await it.member.lead()
        await until(lambda: it.wrote("up"))
        os.kill(guards_of(it.member.name).guardian, signal.SIGKILL)
        assert await running == 143
        assert born() == []

    assert adopt_orphans()
    try:
        play(story)
    finally:
        adopt_orphans(False)


# --- what is passed on ---------------------------------------------------------------------------


def test_the_command_begins_with_usual_signals_and_no_descriptor_of_ours(play: Play) -> None:
    async def story(it: Played) -> None:
        running = it.supervise(
            "ls -l /proc/$$/fd > fds; exec grep -E 'Sig(Ign|Blk)' /proc/self/status > signals"
        )
        await it.member.lead()
        assert await running == 0
        signals = it.wrote("signals")
        masks = [int(line.split()[1], 16) for line in signals.splitlines()]
        assert [mask & ~RESERVED for mask in masks] == [0, 0], signals
        held = [int(line.split(" -> ")[0].split()[-1]) for line in it.wrote("fds").splitlines()[1:]]
        assert set(held) <= {0, 1, 2, 10}, it.wrote("fds")  # 10: the shell's

    play(story)


# --- codes and restarts --------------------------------------------------------------------------


def test_who_is_told_to_go_does_not_restart(play: Play) -> None:
    async def story(it: Played) -> None:
        policy = RestartPolicy(Restart.ALWAYS, delay_s=0.0)
        running = it.supervise(f"echo >> runs; {WAITS}", restart=policy)
        await it.member.lead()
        await until(lambda: it.wrote("pid"))
        it.supervised.signal(signal.SIGTERM)
        assert await running == 143
        assert len(it.wrote("runs")) == 1

    play(story)


def test_the_code_of_an_earlier_term_is_forgotten(play: Play) -> None:
    async def story(it: Played) -> None:
        running = it.supervise(WAITS)
        await it.member.lead()
        await until(lambda: it.wrote("pid"))
        await it.member.lose()
        await until(lambda: gone(int(it.wrote("pid"))) and it.processes() == [])
        await until(lambda: it.supervised._child is None and it.supervised._code is None)
        it.supervised.signal(signal.SIGTERM)
        assert await running == 0

    play(story)


def test_a_run_shorter_than_the_delay_did_not_hold_out() -> None:
    restarts = Restarts(RestartPolicy(Restart.ALWAYS, delay_s=100.0, most=2))
    assert [restarts.after(1, ran_s=70.0) for _ in range(3)] == [100.0, 100.0, None]
    assert restarts.after(1, ran_s=100.0) == 100.0
