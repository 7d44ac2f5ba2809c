"""What a supervisor decides, without any process: what runs again, what is said, which code.

The command's runs are played: each tells how it came to its end, and notes what it was told.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from hustings.agent import command
from hustings.agent.child import CommandEnd
from hustings.agent.command import (
    ENDING,
    FORWARDED,
    MARGIN_S,
    CommandSpec,
    Supervised,
    check_command,
    check_guard,
    environment_for,
    lease_for,
    secrets_of,
)
from hustings.agent.logs import SilentLog
from hustings.agent.run import _supervise
from hustings.agent.supervisor import SETTLE_S
from hustings.core.errors import BadInput
from hustings.core.outcome import Guarantee
from hustings.net.composition import LEASE
from hustings.net.restarts import Restart, RestartPolicy
from tests.unit.agent_command.playing import Play, Played, PlayedJoining, PlayedMember, until

# --- numbers and sentences -----------------------------------------------------------------------


def test_a_lease_leaves_as_much_time_to_lead_as_to_end() -> None:
    spec = CommandSpec(("true",), grace_s=5.0)
    margin = 5.0 + SETTLE_S + MARGIN_S
    asked = lease_for(spec, "etcd://a", None)
    assert asked == {"ttl": max(LEASE, 2 * margin), "margin": margin}
    assert lease_for(CommandSpec(("true",), grace_s=0.0), "etcd://a", None)["ttl"] == LEASE
    assert lease_for(spec, "etcd://a", 2 * margin)["ttl"] == 2 * margin
    with pytest.raises(BadInput, match=r"may take 6\.5s of it; raise --ttl to 13s"):
        lease_for(spec, "etcd://a", 2 * margin - 0.001)


@pytest.mark.parametrize("guard", ["memory://", "MEMORY://x", "memory:"])
def test_a_guard_of_one_process_is_none(guard: str) -> None:
    for refuse in (check_guard, lambda each: lease_for(CommandSpec(("true",)), each, None)):
        with pytest.raises(BadInput, match="memory:// is for members within one process"):
            refuse(guard)
    check_guard(None)
    check_guard("etcd://memory:1")


def test_what_is_secret() -> None:
    assert secrets_of(None) == secrets_of("etcd://a") == frozenset()
    assert secrets_of("postgres://db/app?password_env=PASS") == {"PASS"}
    given = {"PATH": "/bin", "PASS": "x", "HUSTINGS_TERM": "7", "Hustings_X": "y"}
    given["HUSTINGS_CONFIG"] = "file"
    told = {"HUSTINGS_TERM": "8"}
    assert environment_for(given, told, {"PASS"}) == {
        "PATH": "/bin",
        "HUSTINGS_CONFIG": "file",
        "HUSTINGS_TERM": "8",
    }


def test_bounds_and_the_promise_of_them() -> None:
    async def story() -> None:
        member = PlayedMember()
        spec = CommandSpec(("true",), grace_s=4.0, silence_s=3.0)
        it = Supervised(member, spec)
        assert it.bound == member.bound + 4.0 + SETTLE_S
        assert it.bound_if_stopped == 3.0 + 4.0 + SETTLE_S
        promise = it.promise()
        assert promise.startswith(
            "the command and all that it started end within 5.25s after leader"
        )
        assert "within 8s after this process is stopped or killed, unless all" in promise
        assert "advisory: a member that takes over waits until" in promise
        member.guarantee = Guarantee.LEASED
        assert it.promise().startswith("the guarantee is leased: the command and all that")

    asyncio.run(story())


# --- runs that are played ------------------------------------------------------------------------


class Run:
    """One run of a command that ends when the test says so."""

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        grace_s: float,
        silence_s: float,
        until: Callable[[], float | None],
        sole: bool,
        lock: int | None,
        record: int | None,
    ) -> None:
        for each in (lock, record):
            if each is not None:
                os.close(each)
        loop = asyncio.get_running_loop()
        self.over: asyncio.Future[CommandEnd] = loop.create_future()
        self.left: asyncio.Future[int] = loop.create_future()
        self.passed: asyncio.Future[bool] = loop.create_future()
        self.environment = environment
        self.given = (tuple(words), grace_s, silence_s, until(), sole)
        self.orders: list[str] = []

    def ends(self, code: int = 0, ran_s: float = 0.0, **more: Any) -> None:
        if not self.over.done():
            self.over.set_result(CommandEnd(code, ran_s, **more))

    def end(self) -> None:
        self.orders.append("end")

    def kill(self) -> None:
        self.orders.append("kill")
        asyncio.get_running_loop().call_soon(self.ends, 137)  # unless the test has another end

    def signal(self, number: int) -> None:
        self.orders.append(f"signal {number}")

    def pass_on(self, number: int) -> None:
        self.orders.append(f"pass on {number}")

    def abandon(self) -> None:
        self.orders.append("abandon")
        self.ends(137)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    made: list[Run] = []

    def make(*given: Any, **named: Any) -> Run:
        made.append(Run(*given, **named))
        return made[-1]

    monkeypatch.setattr(command, "ChildCommand", make)
    return made


def has(runs: list[Run], count: int) -> bool:
    return len(runs) == count


async def begun(it: Played, runs: list[Run], **options: Any) -> asyncio.Task[int]:
    running = it.supervise("true", **options)
    await it.member.lead()
    await until(lambda: runs or running.done())
    return running


def test_what_a_run_is_given(play: Play, runs: list[Run]) -> None:
    async def story(it: Played) -> None:
        it.member.until = 77.0
        it.member.token = 41
        running = await begun(it, runs, grace_s=4.0, silence_s=9.0, sole=True)
        assert runs[0].given[1:] == (4.0, 9.0, 77.0, True)
        told = {name: runs[0].environment[f"HUSTINGS_{name}"] for name in ("TERM", "TOKEN")}
        assert told == {"TERM": "1", "TOKEN": "41"}
        assert runs[0].environment["HUSTINGS_GROUP"] == "billing"
        assert f"{it.member.name} leads billing in term 1: starting the command" in it.said
        assert it.member.drains == [4.0 + 2 * SETTLE_S]
        runs[0].ends(3)
        assert await running == 3
        assert "the command ended with 3" in it.said
        assert not any("guards the command" in sentence for sentence in it.said)

    play(story)


def test_what_is_given_up_on_is_said(play: Play, runs: list[Run]) -> None:
    async def story(it: Played) -> None:
        running = await begun(it, runs)
        it.supervised.signal(signal.SIGTERM)
        runs[0].left.set_result(1)
        it.supervised.signal(signal.SIGTERM)
        assert it.said[-1] == "gave up on ending the command"
        assert runs[0].orders[-1] == "abandon"
        assert await running == 137

    play(story)


def test_who_cancels_it_while_it_clears_is_heeded(play: Play, runs: list[Run]) -> None:
    """Leading was lost before; it does not stand again."""

    async def story(it: Played) -> None:
        running = await begun(it, runs)
        await it.member.lose()
        await until(lambda: runs[0].orders)
        running.cancel()
        await until(lambda: runs[0].orders[-1] == "kill")
        await until(running.done)
        assert running.cancelled()

    play(story)


def test_elsewhere_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(BadInput, match="running a command needs Linux"):
        check_command(["sh"])


def test_signals_are_ours_only_while_it_runs(runs: list[Run]) -> None:
    async def opened() -> PlayedMember:
        member = PlayedMember()
        member.address = "127.0.0.1:1"  # type: ignore[attr-defined] # of a real one
        member.leave = member.resign  # type: ignore[attr-defined] # of a real one
        await member.lead()
        return member

    async def story() -> None:
        joining: Any = PlayedJoining(opened)
        spec = CommandSpec(("true",))
        work = asyncio.create_task(_supervise(joining, spec, SilentLog(), False))
        await until(lambda: runs)
        os.kill(os.getpid(), signal.SIGUSR1)
        await until(lambda: runs[0].orders == [f"signal {signal.SIGUSR1}"])
        runs[0].ends(6)
        assert await work == 6
        loop = asyncio.get_running_loop()
        assert not any(loop.remove_signal_handler(each) for each in (*ENDING, *FORWARDED))

    asyncio.run(story())


def test_restarts_are_said_and_counted(play: Play, runs: list[Run]) -> None:
    async def story(it: Played) -> None:
        policy = RestartPolicy(Restart.ON_FAILURE, delay_s=0.01, most=2)
        running = await begun(it, runs, restart=policy)
        for number in range(3):
            await until(partial(has, runs, number + 1))
            assert not running.done()
            runs[number].ends(7)
        assert await running == 7
        assert "the command ended with 7: again in 10ms" in it.said
        assert "the command ended with 7: again in 20ms" in it.said
        assert it.said[-1] == "the command ended with 7"

    play(story)


def test_a_run_that_held_out_is_no_failure_in_a_row(play: Play, runs: list[Run]) -> None:
    async def story(it: Played) -> None:
        policy = RestartPolicy(Restart.ALWAYS, delay_s=0.01, most=1)
        running = await begun(it, runs, restart=policy)
        for number in range(3):
            await until(partial(has, runs, number + 1))
            runs[number].ends(1, ran_s=60.0)
        await until(lambda: len(runs) == 4)
        runs[3].ends(1, ran_s=59.9)
        assert await running == 1

    play(story)


def test_what_could_not_run_is_refused(play: Play, runs: list[Run]) -> None:
    async def story(it: Played) -> None:
        running = await begun(it, runs)
        runs[0].ends(127, refused=errno.ENOEXEC)
        with pytest.raises(BadInput, match="command 'sh' cannot be run: Exec format error"):
            await running

    play(story)


def test_a_run_that_starved_is_no_end(play: Play, runs: list[Run]) -> None:
    """It is started again while this member leads; one whose guards were struck is over."""

    async def story(it: Played) -> None:
        running = await begun(it, runs)
        runs[0].ends(143, starved=True)
        await until(lambda: len(runs) == 2)
        assert "this process had been stopped or starved" in it.said[-2]
        runs[1].ends(137, broken=True)
        assert await running == 137
        assert any("guards the command was killed or stopped: it was ended" in s for s in it.said)

    play(story)


def test_one_that_starved_hears_in_its_campaign_that_another_leads(
    play: Play, runs: list[Run]
) -> None:
    """The loss is told, and no command starts before the member knows who leads."""

    async def story(it: Played) -> None:
        running = await begun(it, runs)
        runs[0].ends(143, starved=True)
        await until(lambda: "this process had been stopped or starved" in it.said[-1])
        await it.member.lose()
        await until(lambda: f"{it.member.name} leads billing no longer" in it.said)
        assert len(runs) == 1
        it.supervised.signal(signal.SIGTERM)
        assert await running == 0

    play(story)


def test_one_that_starved_and_was_told_to_leave_starts_nothing(play: Play, runs: list[Run]) -> None:
    async def story(it: Played) -> None:
        running = await begun(it, runs)
        it.supervised.signal(signal.SIGTERM)
        runs[0].ends(143, starved=True)
        assert await running == 143
        assert len(runs) == 1

    play(story)


def test_signals_and_what_is_said_of_them(play: Play, runs: list[Run]) -> None:
    async def story(it: Played) -> None:
        running = await begun(it, runs, grace_s=4.0)
        for number in (signal.SIGUSR1, signal.SIGHUP):
            it.supervised.signal(number)
        it.supervised.signal(signal.SIGINT)
        assert runs[0].orders == ["signal 10", "signal 1", "pass on 2"]
        runs[0].passed.set_result(False)
        await until(lambda: "was given SIGINT from here, and is killed within 4s" in it.said[-1])
        it.supervised.signal(signal.SIGTERM)
        assert runs[0].orders[3:] == ["kill"]
        runs[0].ends(9)
        assert await running == 9

    play(story)


def test_a_hang_up_of_the_terminal_ends_it(play: Play, runs: list[Run]) -> None:
    async def story(it: Played) -> None:
        running = await begun(it, runs, hangup_ends=True)
        it.supervised.signal(signal.SIGHUP)
        assert runs[0].orders == ["pass on 1"]
        runs[0].passed.set_result(True)
        await until(lambda: "SIGHUP is passed on to the command" in it.said[-1])
        runs[0].ends(0)
        assert await running == 0

    play(story)


def test_a_signal_between_two_runs(play: Play, runs: list[Run]) -> None:
    """The last run's code is the code."""

    async def story(it: Played) -> None:
        running = await begun(it, runs, restart=RestartPolicy(Restart.ALWAYS, delay_s=600.0))
        runs[0].ends(5)
        await until(lambda: "again in" in it.said[-1])
        it.supervised.signal(signal.SIGUSR1)
        it.supervised.signal(signal.SIGTERM)
        assert await running == 5

    play(story)


@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_after_leading_was_lost(
    play: Play, runs: list[Run], number: int, code: int
) -> None:
    async def story(it: Played) -> None:
        running = await begun(it, runs)
        await it.member.lose()
        await until(lambda: runs[0].orders)
        assert f"{it.member.name} leads billing no longer" in it.said
        runs[0].ends(143)
        await until(lambda: "nothing of the command is left" in it.said)
        await until(lambda: it.supervised._code is None)
        it.supervised.signal(number)
        assert await running == code
        assert it.member.calls == []

    play(story)


def test_a_hand_over_ends_the_command_first(play: Play, runs: list[Run]) -> None:
    async def story(it: Played) -> None:
        running = await begun(it, runs)
        handing = asyncio.create_task(it.member.hand_over())
        await until(lambda: runs[0].orders == ["end"])
        assert "transferring leadership: ending the command first" in it.said
        assert not handing.done()
        runs[0].ends(143)
        await handing
        await it.member.lead()
        await until(lambda: len(runs) == 2)
        runs[1].ends(4)
        assert await running == 4

    play(story)


def test_what_does_not_end_is_named_and_stood_back_for(play: Play, runs: list[Run]) -> None:
    async def story(it: Played) -> None:
        running = await begun(it, runs)
        await it.member.lose()
        await until(lambda: runs[0].orders)
        runs[0].left.set_result(2)
        await until(lambda: it.member.calls == ["resign"])
        assert "2 processes of the command do not end" in it.said
        runs[0].ends(137)
        await until(lambda: it.member.calls == ["resign", "stand"])
        running.cancel()
        await asyncio.wait({running})

    play(story)
