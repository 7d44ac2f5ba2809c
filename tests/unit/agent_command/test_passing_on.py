"""A signal to the member reaches the command, and what is said of it is true."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress

import pytest

from hustings.agent.child import ChildCommand
from tests.unit.agent_command.playing import (
    DEAF,
    PATIENCE_S,
    Guards,
    Play,
    Played,
    guards_of,
    processes_of,
    until,
)

HEEDS = "trap 'echo done > end; exit 3' TERM; echo > up; while :; do sleep 0.02; done"


def said(it: Played, words: str) -> bool:
    return any(words in sentence for sentence in it.said)


async def hold(guards: Guards, it: Played) -> None:
    """Stop them again and again, as somebody does who means it."""
    deadline = time.monotonic() + PATIENCE_S
    while it.processes() and time.monotonic() < deadline:
        for each in guards:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGSTOP)
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("who", [("guardian",), ("supervisor",), ("guardian", "supervisor")])
def test_who_was_stopped_is_woken_and_passes_it_on(play: Play, who: tuple[str, ...]) -> None:
    async def story(it: Played) -> None:
        running = it.supervise(HEEDS)
        await it.member.lead()
        await until(lambda: it.wrote("up"))
        guards = guards_of(it.member.name)
        for each in who:
            os.kill(getattr(guards, each), signal.SIGSTOP)
        it.supervised.signal(signal.SIGTERM)
        assert not said(it, "passed on")  # not before it is
        assert await running == 3
        assert said(it, "SIGTERM is passed on to the command, which is killed in 15s; a second")
        assert it.wrote("end") == "done\n"

    play(story)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_command_that_ignores_a_signal_is_killed_after_the_grace(
    play: Play, number: signal.Signals
) -> None:
    async def story(it: Played) -> None:
        running = it.supervise(f"trap '' {number.name[3:]}; {DEAF}", grace_s=0.3)
        await it.member.lead()
        await until(lambda: it.wrote("pid"))
        it.supervised.signal(number)
        assert await running == 128 + signal.SIGKILL
        assert said(it, f"{number.name} is passed on to the command, which is killed in 300ms")
        assert it.processes() == []

    play(story)


def test_a_command_that_ignores_ctrl_c_is_asked_to_end_before_it_is_killed(play: Play) -> None:
    async def story(it: Played) -> None:
        running = it.supervise(f"trap '' INT; {HEEDS}", grace_s=1.0)
        await it.member.lead()
        await until(lambda: it.wrote("up"))
        it.supervised.signal(signal.SIGINT)
        assert await running == 3
        assert it.wrote("end") == "done\n"

    play(story)


def test_what_a_command_leaves_behind_has_the_rest_of_the_grace(play: Play) -> None:
    """A process in a session of its own hears nothing until the command itself has ended."""

    async def story(it: Played) -> None:
        stray = "trap 'echo heard > stray; exit' TERM; echo > there; while :; do sleep 0.02; done"
        running = it.supervise(
            f'setsid sh -c "{stray}" & until [ -e there ]; do sleep 0.02; done; {HEEDS}'
        )
        await it.member.lead()
        await until(lambda: it.wrote("up"))
        it.supervised.signal(signal.SIGTERM)
        assert await running == 3
        assert it.wrote("stray") == "heard\n"

    play(story)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("script", ["heeds", "deaf"])
def test_who_is_held_stopped_is_done_without(
    play: Play, number: signal.Signals, script: str
) -> None:
    """The member's process gives the signal itself, and kills after the grace."""

    async def story(it: Played) -> None:
        heeds = f"trap 'echo done > end; exit 3' {number.name[3:]}"
        waits = "setsid sleep 600 & echo > up; while :; do sleep 0.02; done"
        running = it.supervise(f"{heeds}; {waits}" if script == "heeds" else DEAF, grace_s=0.5)
        await it.member.lead()
        await until(lambda: it.wrote("up") or it.wrote("pid"))
        guards = guards_of(it.member.name)
        holding = asyncio.create_task(hold(guards, it))
        await until(lambda: all(_state(each) == "T" for each in guards))
        it.supervised.signal(number)
        code = await running
        await holding
        assert it.processes() == []
        if said(it, "is held stopped"):  # it may have run for long enough, between two stops
            assert said(it, f"it was given {number.name} from here, and is killed within 500ms")
            assert not said(it, "passed on")
            assert code == 128 + signal.SIGKILL
        else:
            assert said(it, f"{number.name} is passed on")
        if script == "heeds":
            assert it.wrote("end") == "done\n"

    play(story)


def _state(process: int) -> str:
    with open(f"/proc/{process}/stat") as stream:
        return stream.read().rpartition(")")[2].split()[0]


def test_a_signal_before_the_command_runs_keeps_it_from_running(play: Play) -> None:
    """Its supervisor is still starting: no process is there that could be given it."""

    async def story(it: Played) -> None:
        running = it.supervise("echo > ran; sleep 600")
        await it.member.lead()
        await until(lambda: it.supervised._child)
        held = it.supervised._child
        assert held is not None
        os.kill(held._guardian.pid, signal.SIGSTOP)
        it.supervised.signal(signal.SIGTERM)
        assert await running == 128 + signal.SIGTERM
        assert it.wrote("ran") == "" or said(it, "passed on")
        assert it.processes() == []

    play(story)


def test_it_is_said_once_and_a_second_signal_kills(play: Play) -> None:
    async def story(it: Played) -> None:
        running = it.supervise(DEAF)
        await it.member.lead()
        await until(lambda: it.wrote("pid"))
        it.supervised.signal(signal.SIGTERM)
        await until(lambda: said(it, "passed on"))
        it.supervised.signal(signal.SIGTERM)
        assert await running == 128 + signal.SIGKILL
        assert sum("passed on" in each for each in it.said) == 1

    play(story)


# --- by itself: no supervisor answers
# ----------------------------------------------------------------


def held_of(name: str, grace_s: float = 0.2) -> ChildCommand:
    environment = {**os.environ, "HUSTINGS_MEMBER": name}
    return ChildCommand(("sh", "-c", "echo; exec sleep 600"), environment, grace_s, 600.0)


def test_a_supervisor_that_neither_answers_nor_is_stopped_is_not_waited_for(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        held = held_of(name)
        await until(lambda: held.process is not None)
        monkeypatch.setattr(held, "_order", lambda *_: None)  # nothing reaches it
        monkeypatch.setattr("hustings.agent.child.PASS_ON_S", 0.0)
        held.pass_on(signal.SIGTERM)
        assert await asyncio.wait_for(held.passed, PATIENCE_S) is False
        over = await asyncio.wait_for(held.over, PATIENCE_S)
        assert over.code == 128 + signal.SIGTERM  # its supervisor saw the end, and told
        assert processes_of(name) == []

    asyncio.run(story())


def test_a_supervisor_that_is_busy_for_a_moment_is_waited_for(name: str) -> None:
    """One look that finds it stopped, and two that do not, are no reason to do without it."""

    async def story() -> None:
        held = held_of(name, grace_s=600.0)
        await until(lambda: held.process is not None)
        never = held._loop.time() + 600.0
        for stopped in (1, 2):
            held._look_at_supervisor(signal.SIGTERM, stopped, never)
            assert not held.passed.done()
            assert held._overdue is None
        held.kill()
        await asyncio.wait_for(held.over, PATIENCE_S)

    asyncio.run(story())
