"""Whatever a command starts ends with it, when any of the processes that guard it is struck.

Between the member and its command stand a guardian and its child, the supervisor. Each test
kills or stops one of the processes, or two, with every kind of offspring alive, and looks for
survivors.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from hustings.agent.child import ChildCommand
from hustings.agent.supervisor import SETTLE_S, adopt_orphans
from hustings.core.outcome import Guarantee
from tests.unit.agent_command.playing import (
    PATIENCE_S,
    Play,
    Played,
    guards_of,
    new_children,
    processes_of,
    until,
)

GRACE_S = 0.2
BUSY_S = 5.0  # what a busy machine may add to a bound before it counts as broken

# Each forks, tells that it is there, and stays; `{}` is a file of its own.
HERE = "echo > {}; while :; do sleep 0.05; done"
CHAIN = """
import os, pathlib, sys, time
end = time.monotonic() + 60  # should a test fail to end it
while time.monotonic() < end:  # never the same process for long, and each in a session of its own
    if os.fork():
        os._exit(0)
    os.setsid()
    pathlib.Path(sys.argv[1]).touch()
    time.sleep(0.001)
"""
OFFSPRING = {
    "child": f"({HERE}) &",
    "session": f"setsid sh -c '{HERE}' &",
    "daemon": f"(setsid sh -c '({HERE}) </dev/null >/dev/null 2>&1 &' &)",
    "deaf": f"setsid sh -c 'trap \"\" TERM INT HUP; {HERE}' &",
    "chain": f"{sys.executable} chain.py {{}} &",
}


WAITING = "\ntrap 'echo > heard' USR1; while :; do sleep 0.05; done\n"


def brood(folder: Path, *kinds: str) -> str:
    """A script that starts offspring of these kinds, and waits."""
    (folder / "chain.py").write_text(CHAIN)
    return "\n".join(OFFSPRING[kind].format(f"up-{kind}") for kind in kinds) + WAITING


async def grown(it: Played, *kinds: str) -> None:
    await until(lambda: all((it.folder / f"up-{kind}").exists() for kind in kinds))


def struck(process: int, number: int) -> float:
    os.kill(process, number)
    return time.monotonic()


# --- one of them ---------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("who", ["guardian", "supervisor", "command"])
def test_whoever_is_struck_nothing_outlives_leadership(play: Play, who: str, number: int) -> None:
    async def story(it: Played) -> None:
        born = new_children()
        running = it.supervise(f"echo $$ > main\n{brood(it.folder, *OFFSPRING)}", grace_s=GRACE_S)
        await it.member.lead()
        await grown(it, *OFFSPRING)
        guards = guards_of(it.member.name)
        victim = int(it.wrote("main")) if who == "command" else getattr(guards, who)
        struck_at = struck(victim, number)
        if number == signal.SIGSTOP:
            await it.member.lose()
        await until(lambda: it.processes() == [])
        assert time.monotonic() - struck_at <= it.supervised.bound + BUSY_S
        if number == signal.SIGKILL:
            # A command that was killed ended by itself; one that lost its guards was ended.
            assert await running in (128 + signal.SIGKILL, 128 + signal.SIGTERM)
            assert any("guards the command" in each for each in it.said) == (who != "command")
        await until(lambda: born() == [])

    play(story)


@pytest.mark.parametrize("who", ["guardian", "supervisor"])
def test_a_stop_while_the_member_says_nothing(play: Play, who: str) -> None:
    """Only the other one is left to see that the lease is over: the member's loop is held up."""

    async def story(it: Played) -> None:
        it.member.until = time.monotonic() + 600.0
        it.supervise(brood(it.folder, *OFFSPRING), grace_s=GRACE_S, silence_s=600.0)
        await it.member.lead()
        await grown(it, *OFFSPRING)
        it.member.until = time.monotonic() + 1.0
        held = it.supervised._child
        assert held is not None
        await until(lambda: held._told == it.member.until)
        it.supervised.signal(signal.SIGUSR1)
        await until(lambda: it.wrote("heard"))  # orders are heard in order: the supervisor knows
        stopped = getattr(guards_of(it.member.name), who)
        os.kill(stopped, signal.SIGSTOP)
        while set(it.processes()) - {stopped}:
            assert time.monotonic() < it.member.until + GRACE_S + SETTLE_S + BUSY_S
            time.sleep(0.01)  # on purpose: nobody else may run
        assert time.monotonic() >= it.member.until
        await it.member.lose()
        await until(lambda: it.processes() == [])

    play(story)


def test_a_stopped_keeper_is_not_waited_for_without_end(play: Play) -> None:
    """Without a lease: as soon as a silent member would have lost its command."""

    async def story(it: Played) -> None:
        running = it.supervise(brood(it.folder, "session", "deaf"), grace_s=GRACE_S, silence_s=0.4)
        await it.member.lead()
        await grown(it, "session", "deaf")
        stopped_at = struck(guards_of(it.member.name).supervisor, signal.SIGSTOP)
        assert await running == 128 + signal.SIGKILL
        assert time.monotonic() - stopped_at <= it.supervised.bound_if_stopped + BUSY_S
        assert it.processes() == []

    play(story)


def test_a_stop_that_was_short_changes_nothing(play: Play) -> None:
    async def story(it: Played) -> None:
        running = it.supervise(brood(it.folder, "session"), grace_s=GRACE_S)
        await it.member.lead()
        await grown(it, "session")
        for process in guards_of(it.member.name):
            os.kill(process, signal.SIGSTOP)
            await asyncio.wait({running}, timeout=0.1)
            os.kill(process, signal.SIGCONT)
        assert not (await asyncio.wait({running}, timeout=0.3))[0]
        await it.member.lose()
        await until(lambda: it.processes() == [])
        assert not any("guards the command" in each for each in it.said)

    play(story)


# --- two of them ---------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_guardian_is_enough(name: str, tmp_path: Path, number: int) -> None:
    """The member's process is gone, and the supervisor is struck at the same moment."""

    async def story() -> None:
        environment = {**os.environ, "HUSTINGS_MEMBER": name}
        script = f"cd '{tmp_path}'\n{brood(tmp_path, *OFFSPRING)}"
        silence_s = 2.0  # this process may be late when the machine is busy
        held = ChildCommand(("sh", "-c", script), environment, GRACE_S, silence_s)
        await until(lambda: all((tmp_path / f"up-{kind}").exists() for kind in OFFSPRING))
        struck_at = struck(guards_of(name).supervisor, number)
        held.abandon()  # as the system does when a process dies: its end of the line is closed
        await until(lambda: processes_of(name) == [])
        assert time.monotonic() - struck_at <= silence_s + GRACE_S + SETTLE_S + BUSY_S
        held._guardian.wait()

    asyncio.run(story())


@pytest.mark.parametrize("first", ["guardian", "supervisor"])
def test_the_members_process_is_enough(play: Play, first: str) -> None:
    """Both are killed: a process that does nothing else ends what comes to it, and no other."""

    async def story(it: Played) -> None:
        born = new_children()
        other = await asyncio.create_subprocess_exec("sleep", "600")
        try:
            running = it.supervise(brood(it.folder, *OFFSPRING), grace_s=GRACE_S, sole=True)
            await it.member.lead()
            await grown(it, *OFFSPRING)
            guards = guards_of(it.member.name)
            for each in sorted(guards, key=lambda each: each != getattr(guards, first)):
                os.kill(each, signal.SIGKILL)
            struck_at = time.monotonic()
            assert await running in (128 + signal.SIGKILL, 128 + signal.SIGTERM)
            assert it.processes() == []
            assert time.monotonic() - struck_at <= GRACE_S + SETTLE_S + BUSY_S
            assert born() == [other.pid]
            assert other.returncode is None
        finally:
            other.kill()
            await other.wait()

    assert adopt_orphans()
    try:
        play(story)
    finally:
        adopt_orphans(False)


def test_both_stopped_and_leadership_lost(play: Play) -> None:
    async def story(it: Played) -> None:
        it.supervise(brood(it.folder, *OFFSPRING), grace_s=GRACE_S)
        await it.member.lead()
        await grown(it, *OFFSPRING)
        for each in guards_of(it.member.name):
            os.kill(each, signal.SIGSTOP)
        lost_at = time.monotonic()
        await it.member.lose()
        await until(lambda: it.processes() == [])
        assert time.monotonic() - lost_at <= it.supervised.bound + BUSY_S

    play(story)


async def stop_again_and_again(it: Played, *processes: int) -> None:
    """As by a debugger, or somebody who means it: SIGCONT does not help."""
    deadline = time.monotonic() + PATIENCE_S
    while it.processes() and time.monotonic() < deadline:
        for each in processes:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGSTOP)
        await asyncio.sleep(0.001)


def test_both_held_stopped_and_leadership_lost(play: Play) -> None:
    """The member's process kills everything below them, and them."""

    async def story(it: Played) -> None:
        it.supervise(brood(it.folder, *OFFSPRING), grace_s=GRACE_S)
        await it.member.lead()
        await grown(it, *OFFSPRING)
        guards = guards_of(it.member.name)
        stopping = asyncio.create_task(stop_again_and_again(it, *guards))
        await asyncio.sleep(0.05)
        lost_at = time.monotonic()
        await it.member.lose()
        await until(lambda: it.processes() == [])
        assert time.monotonic() - lost_at <= it.supervised.bound + BUSY_S
        await stopping
        await until(lambda: it.processes() == [])  # one that became another program showed nothing

    play(story)


# --- what is said --------------------------------------------------------------------------------


@pytest.mark.parametrize("guarantee", [Guarantee.ADVISORY, Guarantee.LEASED])
def test_the_promise_names_what_is_not_kept(play: Play, guarantee: Guarantee) -> None:
    async def story(it: Played) -> None:
        it.member.guarantee = guarantee
        it.supervise("exit 0").cancel()
        assert "all three processes that guard it" in it.supervised.promise()

    play(story)
