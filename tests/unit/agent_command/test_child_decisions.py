"""What a member's process makes of what supervisor and guardian tell, with a guardian that is
played.

No process is started but one that is to be buried; the test says and hears what a supervisor would.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import time
from collections.abc import Awaitable, Callable, Coroutine
from math import inf
from typing import Any

import pytest
import uvloop

from hustings.agent import supervisor
from hustings.agent.child import (
    BEATS,
    LEASED_BEAT_S,
    NO_STATUS,
    STOPPED_LOOKS,
    TAKE_OVER_S,
    ChildCommand,
    children_of,
)
from tests.unit.agent_command.playing import until

KEEPER = 4_000_001  # beyond any number that a process of this machine has


class PlayedGuardian:
    """As `subprocess.Popen` of the supervisor's script, with a line to the test in its place."""

    pid = KEEPER + 1

    def __init__(self, words: list[str], *, pass_fds: list[int], **options: Any) -> None:
        self.words = words
        self.line = socket.socket(fileno=os.dup(pass_fds[0]))
        self.signals: list[int] = []

    def poll(self) -> None:
        return None

    def wait(self) -> int:
        return 0

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        self.signals.append(number)


Story = Callable[[ChildCommand, PlayedGuardian], Awaitable[None]]
Tell = Callable[..., None]
Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Tell:
    """Play a story with a held command."""

    async def playing(story: Story, given: dict[str, Any]) -> None:
        made: list[PlayedGuardian] = []

        def start(*words: Any, **options: Any) -> PlayedGuardian:
            made.append(PlayedGuardian(*words, **options))
            return made[-1]

        with monkeypatch.context() as patch:
            patch.setattr(subprocess, "Popen", start)
            given = {"grace_s": 5.0, "silence_s": 4.0, **given}
            held = ChildCommand(("true",), {}, **given)
        try:
            await story(held, made[0])
        finally:
            held.abandon()
            made[0].line.close()

    def tell(story: Story, run: Run = asyncio.run, **given: Any) -> None:
        run(playing(story, given))

    return tell


def wait_left(held: ChildCommand) -> float:
    """Seconds until this process takes over."""
    assert held._overdue is not None
    return held._overdue.when() - held._loop.time()


@pytest.mark.parametrize("lease, beat", [(None, 4.0 / BEATS), (1e9, LEASED_BEAT_S)])
def test_signs_of_life_come_more_often_with_a_lease(
    told: Tell, lease: float | None, beat: float
) -> None:
    async def story(held: ChildCommand, guardian: PlayedGuardian) -> None:
        assert held._beat_s == beat
        assert guardian.words[-2] == repr(inf if lease is None else lease)

    told(story, until=lambda: lease)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_an_end_that_leaves_an_order_unread_is_noticed(told: Tell, run: Run) -> None:
    """The last words and the error of the line arrive together."""

    async def story(held: ChildCommand, guardian: PlayedGuardian) -> None:
        held.signal(signal.SIGHUP)
        guardian.line.sendall(b"started 7\nended 0\nempty\ngone\n")
        guardian.line.close()
        async with asyncio.timeout(10.0):
            over = await held.over
        assert (over.code, over.broken) == (0, False)

    told(story, run)


@pytest.mark.parametrize("order", [ChildCommand.end, ChildCommand.kill])
def test_an_order_after_both_were_killed_is_no_error(
    told: Tell, order: Callable[[ChildCommand], None]
) -> None:
    """This process kills what they left behind, and has nobody to give orders to."""

    async def story(held: ChildCommand, guardian: PlayedGuardian) -> None:
        guardian.line.close()
        await until(lambda: held._control.fileno() < 0)
        assert not held.over.done()
        order(held)
        assert held._overdue is None
        assert (await held.over).broken

    told(story)


@pytest.mark.parametrize(
    "words, code, broken, starved",
    [
        (b"ended 3\nempty\ngone\n", 3, False, False),
        (b"ended 143\nunguarded\nempty\ngone\n", 143, True, False),
        (b"killed\ngone\n", NO_STATUS, True, False),
        (b"starved\nended 143\ngone\n", 143, False, True),
        (b"expired\nended 143\ngone\n", 143, False, True),
        (b"refused 8\n", NO_STATUS, False, False),
        (b"", NO_STATUS, True, False),  # killed before it could say who it is
    ],
)
def test_how_a_run_was_over(
    told: Tell, words: bytes, code: int, broken: bool, starved: bool
) -> None:
    async def story(held: ChildCommand, guardian: PlayedGuardian) -> None:
        guardian.line.sendall(words)
        guardian.line.shutdown(socket.SHUT_RDWR)
        await until(held.over.done)
        over = held.over.result()
        assert (over.code, over.broken, over.starved) == (code, broken, starved)
        assert over.refused == (8 if b"refused" in words else None)

    told(story)


def test_what_is_left_of_them_is_waited_for_and_no_longer(told: Tell) -> None:
    """Empty: only the two themselves are left. Gone: nothing is, and nothing is expected."""

    async def story(held: ChildCommand, guardian: PlayedGuardian) -> None:
        for word in ("gone", "ended", "left", "nonsense"):
            held._note(word, 0)
            assert held._overdue is None
        held._note("passed", signal.SIGTERM)  # from here the grace runs
        assert 5.0 < wait_left(held) <= 5.0 + TAKE_OVER_S
        held._note("empty", 0)
        assert wait_left(held) <= TAKE_OVER_S
        assert signal.SIGCONT in guardian.signals

    told(story)


def test_a_descriptor_is_not_used_after_it_is_closed(told: Tell) -> None:
    async def story(held: ChildCommand, guardian: PlayedGuardian) -> None:
        held._supervisor = KEEPER, os.open(os.devnull, os.O_RDONLY)
        held._close()
        assert held._supervisor is None

    told(story)


# --- a signal that is passed on ------------------------------------------------------------------


def test_who_may_be_stopped_is_woken_before_it_is_told(told: Tell) -> None:
    async def story(held: ChildCommand, guardian: PlayedGuardian) -> None:
        held.pass_on(signal.SIGTERM)
        assert guardian.signals == [signal.SIGCONT]
        assert guardian.line.recv(64) == b"g\x0f"

    told(story)


def test_who_is_found_stopped_again_and_again_is_done_without(
    told: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(held: ChildCommand, guardian: PlayedGuardian) -> None:
        held._supervisor = KEEPER, os.open(os.devnull, os.O_RDONLY)
        for state, stopped, gives_up in (
            (b"T", STOPPED_LOOKS - 2, False),
            (b"S", STOPPED_LOOKS - 1, False),
            (b"T", STOPPED_LOOKS - 1, True),
        ):
            monkeypatch.setattr(supervisor, "state_of", lambda process, state=state: state)
            held._look_at_supervisor(signal.SIGTERM, stopped, inf)
            assert held._broken is gives_up
        assert held.passed.result() is False
        assert wait_left(held) > 5.0

    told(story)


def test_who_is_watched_already_is_not_watched_twice(told: Tell) -> None:
    async def story(held: ChildCommand, guardian: PlayedGuardian) -> None:
        held.end()
        held._look_at_supervisor(signal.SIGTERM, 0, inf)
        assert held._looking is None

    told(story)


# --- taking over ---------------------------------------------------------------------------------


def test_what_cannot_be_killed_is_told_and_looked_at_less_often(
    told: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(held: ChildCommand, guardian: PlayedGuardian) -> None:
        monkeypatch.setattr(supervisor, "kill_family", lambda of, but=(): 2)
        now = held._loop.time()
        with monkeypatch.context() as patch:
            patch.setattr(held._loop, "time", lambda: now)
            held._take_over(now + 0.001)
            assert not held.left.done()
            assert wait_left(held) == pytest.approx(supervisor.LOOK_S)
            assert held._overdue is not None
            held._overdue.cancel()
            held._take_over(now)
            assert held.left.result() == 2
            assert wait_left(held) == pytest.approx(supervisor.SLOW_LOOK_S)
        assert signal.SIGKILL not in guardian.signals  # it still adopts what is orphaned

    told(story)


def test_a_look_that_finds_nothing_is_repeated(told: Tell) -> None:
    async def story(held: ChildCommand, guardian: PlayedGuardian) -> None:
        looks = iter([1, 0, 1, 0, 0])
        held._sweep_group = lambda: next(looks)  # type: ignore[method-assign] # played
        guardian.line.shutdown(socket.SHUT_RDWR)
        await until(held.over.done)
        assert next(looks, None) is None

    told(story)


def test_what_was_adopted_is_killed_and_buried(told: Tell) -> None:
    async def story(held: ChildCommand, guardian: PlayedGuardian) -> None:
        orphan = subprocess.Popen(["sleep", "600"], start_new_session=True)
        try:
            end = time.monotonic() + 5.0
            while held._sweep_adopted() and time.monotonic() < end:
                await asyncio.sleep(0.01)
            assert orphan.pid not in children_of(os.getpid())
        finally:
            orphan.kill()
            orphan.wait()

    told(story, sole=True)


def test_children_are_known_by_their_parent() -> None:
    child = subprocess.Popen(["sleep", "600"])
    try:
        assert child.pid in children_of(os.getpid())
        assert children_of(child.pid) == set()
    finally:
        child.kill()
        child.wait()
