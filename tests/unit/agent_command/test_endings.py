"""How a supervised command is told to end, and what does not: signals, keepers, the unkillable."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import Any, ClassVar

import pytest

from hustings.agent.child import ChildCommand, CommandEnd
from hustings.agent.command import CommandSpec
from hustings.agent.logs import SilentLog
from hustings.agent.run import supervise
from hustings.agent.supervisor import SETTLE_S
from tests.unit.agent_command.playing import (
    DEAF,
    PATIENCE_S,
    WAITS,
    Play,
    Played,
    PlayedJoining,
    PlayedMember,
    gone,
    guards_of,
    processes_of,
    until,
)

# --- signals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "number, code", [(signal.SIGTERM, 0), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
def test_who_does_not_lead_leaves_at_once(play: Play, number: int, code: int) -> None:
    async def story(it: Played) -> None:
        running = it.supervise(WAITS, hangup_ends=True)
        await asyncio.wait({running}, timeout=0.05)
        it.supervised.signal(number)
        assert await running == code

    play(story)


def test_a_signal_before_it_runs_is_not_lost(play: Play) -> None:
    async def story(it: Played) -> None:
        await it.member.lead()
        running = it.supervise(WAITS)
        it.supervised.signal(signal.SIGTERM)
        assert await running == 0
        assert it.processes() == []

    play(story)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2])
def test_other_signals_reach_the_command_alone(play: Play, number: signal.Signals) -> None:
    async def story(it: Played) -> None:
        name = number.name.removeprefix("SIG")
        running = it.supervise(
            f"trap 'echo {name} > heard' {name}; sleep 600 & echo $! > other; "
            "while :; do wait; done"
        )
        it.supervised.signal(number)  # nobody to give it to
        await it.member.lead()
        await until(lambda: it.wrote("other"))
        it.supervised.signal(number)
        await until(lambda: it.wrote("heard"))
        assert not gone(int(it.wrote("other")))
        assert not running.done()
        it.supervised.signal(signal.SIGINT)
        it.supervised.signal(signal.SIGINT)
        assert await running in (130, 137)

    play(story)


def test_the_first_sigterm_is_forwarded_and_waited_for(play: Play) -> None:
    async def story(it: Played) -> None:
        running = it.supervise(
            "trap 'until [ -e go ]; do sleep 0.01; done; exit 3' TERM; sleep 600 & echo > up; wait"
        )
        await it.member.lead()
        await until(lambda: it.wrote("up"))
        it.supervised.signal(signal.SIGTERM)
        assert not (await asyncio.wait({running}, timeout=0.2))[0]
        (it.folder / "go").touch()
        assert await running == 3

    play(story)


def test_the_second_sigterm_kills(play: Play) -> None:
    async def story(it: Played) -> None:
        running = it.supervise(f"({DEAF}) & {DEAF}")
        await it.member.lead()
        await until(lambda: it.wrote("pid"))
        it.supervised.signal(signal.SIGTERM)
        assert not (await asyncio.wait({running}, timeout=0.1))[0]
        it.supervised.signal(signal.SIGTERM)
        assert await running == 137
        assert it.processes() == []

    play(story)


def test_a_signal_while_it_is_being_ended_is_the_first(play: Play) -> None:
    async def story(it: Played) -> None:
        running = it.supervise(DEAF)
        await it.member.lead()
        await until(lambda: it.wrote("pid"))
        await it.member.lose()
        await until(lambda: f"{it.member.name} leads billing no longer" in it.said)
        it.supervised.signal(signal.SIGTERM)
        it.supervised.signal(signal.SIGTERM)
        assert await running == 137
        assert it.processes() == []

    play(story)


def test_who_cancels_it_ends_the_command(play: Play) -> None:
    async def story(it: Played) -> None:
        running = it.supervise(DEAF, grace_s=0.1)
        await it.member.lead()
        await until(lambda: it.wrote("pid"))
        running.cancel()
        await asyncio.wait({running})
        assert running.cancelled()
        assert it.processes() == []

    play(story)


def test_who_cancels_it_twice_is_in_a_hurry(play: Play) -> None:
    async def story(it: Played) -> None:
        running = it.supervise(DEAF)
        await it.member.lead()
        await until(lambda: it.wrote("pid"))
        running.cancel()
        await asyncio.wait({running}, timeout=0.1)
        assert not running.done()
        running.cancel()
        await asyncio.wait({running})
        assert running.cancelled()
        assert it.processes() == []

    play(story)


# --- keepers -------------------------------------------------------------------------------------


def test_a_killed_keeper_takes_the_command_with_it(play: Play) -> None:
    async def story(it: Played) -> None:
        running = it.supervise(f"({DEAF}) & {DEAF}", grace_s=0.1)
        await it.member.lead()
        await until(lambda: it.wrote("pid"))
        supervisor = guards_of(it.member.name).supervisor
        os.kill(supervisor, signal.SIGKILL)
        assert await running == 137
        assert it.processes() == []

    play(story)


def test_a_stopped_keeper_does_not_save_the_command(play: Play) -> None:
    async def story(it: Played) -> None:
        it.supervise(DEAF, grace_s=0.1)
        await it.member.lead()
        await until(lambda: it.wrote("pid"))
        supervisor = guards_of(it.member.name).supervisor
        os.kill(supervisor, signal.SIGSTOP)
        lost_at = time.monotonic()
        await it.member.lose()
        await until(lambda: it.processes() == [])
        assert time.monotonic() - lost_at <= it.supervised.bound

    play(story)


def test_a_supervisor_whose_master_is_gone_ends_the_command(name: str) -> None:
    async def story() -> None:
        environment = {**os.environ, "HUSTINGS_MEMBER": name}
        held = ChildCommand(("sh", "-c", DEAF.replace("> pid", "")), environment, 0.1, 600.0)
        await until(lambda: held.process is not None)
        held.abandon()  # as the system does when a process dies: its end of the line is closed
        await until(lambda: processes_of(name) == [])
        assert held._guardian.wait() == 0

    asyncio.run(story())


def test_a_process_that_says_nothing_loses_its_command(play: Play) -> None:
    """The loop is held up, as if the process were stopped; afterwards the command starts again."""

    async def story(it: Played) -> None:
        it.supervise(f"echo >> runs; {WAITS}", grace_s=0.1, silence_s=0.4)
        await it.member.lead()
        await until(lambda: it.wrote("pid"))
        first = it.wrote("pid")
        silent_from = time.monotonic()
        while it.processes():
            assert time.monotonic() - silent_from < it.supervised.bound_if_stopped
            time.sleep(0.01)  # on purpose: nobody else may run
        await until(lambda: it.wrote("pid") != first)
        assert any("stopped or starved" in sentence for sentence in it.said)

    play(story)


def test_a_lease_that_is_over_ends_the_command_though_the_process_says_nothing(play: Play) -> None:
    """The supervisor has a clock of its own: it needs nobody to tell it that the time has come."""

    async def story(it: Played) -> None:
        it.member.until = time.monotonic() + 1.0
        it.supervise(WAITS, grace_s=0.1, silence_s=600.0)
        await it.member.lead()
        await until(lambda: it.wrote("pid"))
        assert time.monotonic() < it.member.until
        while it.processes():
            assert time.monotonic() < it.member.until + 0.1 + SETTLE_S
            time.sleep(0.01)  # on purpose: nobody else may run
        assert time.monotonic() >= it.member.until

    play(story)


def test_a_lease_that_is_renewed_keeps_the_command(play: Play) -> None:
    async def story(it: Played) -> None:
        it.member.until = time.monotonic() + 0.5
        running = it.supervise(WAITS, silence_s=0.4)
        await it.member.lead()
        await until(lambda: it.wrote("pid"))
        for _ in range(12):
            it.member.until = time.monotonic() + 0.5
            assert not (await asyncio.wait({running}, timeout=0.1))[0]
        assert not gone(int(it.wrote("pid")))

    play(story)


def test_a_process_that_breathes_keeps_its_command(play: Play) -> None:
    async def story(it: Played) -> None:
        running = it.supervise(WAITS, silence_s=0.4)
        await it.member.lead()
        await until(lambda: it.wrote("pid"))
        assert not (await asyncio.wait({running}, timeout=1.2))[0]
        assert not gone(int(it.wrote("pid")))
        await it.member.lose()
        await until(lambda: it.processes() == [])

    play(story)


# --- what cannot be killed -----------------------------------------------------------------------


class Stubborn:
    """A command that does not end however it is asked, as one that hangs in a system call."""

    process = 1

    def __init__(self, *_: object, record: int | None) -> None:
        loop = asyncio.get_running_loop()
        self.over: asyncio.Future[CommandEnd] = loop.create_future()
        self.left: asyncio.Future[int] = loop.create_future()
        self.passed: asyncio.Future[bool] = loop.create_future()
        self.orders: list[str] = []
        self.made.append(self)

    made: ClassVar[list[Stubborn]] = []

    def end(self) -> None:
        self.orders.append("end")
        if not self.left.done():
            self.left.set_result(3)

    def kill(self) -> None:
        self.orders.append("kill")

    def pass_on(self, number: int) -> None:
        self.orders.append(signal.Signals(number).name)

    def abandon(self) -> None:
        self.orders.append("abandon")
        self.over.set_result(CommandEnd(137, 1.0))


@pytest.fixture
def stubborn(monkeypatch: pytest.MonkeyPatch) -> list[Stubborn]:
    monkeypatch.setattr(Stubborn, "made", [])
    monkeypatch.setattr("hustings.agent.command.ChildCommand", Stubborn)
    return Stubborn.made


def test_who_cannot_end_its_command_stands_back(play: Play, stubborn: list[Stubborn]) -> None:
    async def story(it: Played) -> None:
        running = it.supervise("exit 0")
        await it.member.lead()
        await until(lambda: stubborn)
        await it.member.lose()
        await until(lambda: it.member.calls == ["resign"])
        await it.member.lead()  # nobody else was there
        await asyncio.wait({running}, timeout=0.1)
        assert len(stubborn) == 1
        assert "3 processes of the command do not end" in it.said
        stubborn[0].over.set_result(CommandEnd(137, 1.0))
        await until(lambda: len(stubborn) == 2)
        assert it.member.calls == ["resign", "stand"]
        stubborn[1].over.set_result(CommandEnd(0, 1.0))
        assert await running == 0

    play(story)


def test_who_cannot_end_its_command_can_still_leave(play: Play, stubborn: list[Stubborn]) -> None:
    async def story(it: Played) -> None:
        running = it.supervise("exit 0")
        await it.member.lead()
        await until(lambda: stubborn)
        it.supervised.signal(signal.SIGTERM)
        await it.member.lose()
        assert await running == 137
        assert stubborn[0].orders == ["SIGTERM", "end", "end", "abandon"]
        assert "gave up on ending the command" in it.said

    play(story)


def test_a_signal_after_one_that_could_not_kill_gives_up(
    play: Play, stubborn: list[Stubborn]
) -> None:
    async def story(it: Played) -> None:
        running = it.supervise("exit 0")
        await it.member.lead()
        await until(lambda: stubborn)
        for _ in range(2):
            it.supervised.signal(signal.SIGINT)
        assert stubborn[0].orders == ["SIGINT", "kill"]
        stubborn[0].left.set_result(1)
        it.supervised.signal(signal.SIGINT)
        assert await running == 137

    play(story)


@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_before_it_has_joined_ends_it(number: signal.Signals, code: int) -> None:
    """A member that waits for its guard, for instance."""

    async def story() -> None:
        told: list[str] = []

        async def opened() -> PlayedMember:
            told.append("opens")
            try:
                await asyncio.sleep(PATIENCE_S)
            finally:
                told.append("closes")
            raise AssertionError

        joining: Any = PlayedJoining(opened)
        work = asyncio.create_task(supervise(joining, CommandSpec(("true",)), SilentLog()))
        await until(lambda: told)
        os.kill(os.getpid(), number)
        assert await work == code
        assert told == ["opens", "closes"]

    asyncio.run(story())
