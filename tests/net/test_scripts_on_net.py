"""The golden scripts that drive recorded members drive the network's runner, with the same effects.

What a handler does is written down in the order in which it does it, and must read as the script
says. What then leaves the runner must be the same, in the order that the network promises: timers
at once, then what is persisted, then messages, then outcomes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

import hustings.net.runner as runner_module
import hustings.testing.scripted_group as scripted_module
from hustings.core.choice import Candidate, HighestId, MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.election import Election
from hustings.core.guard import Verdict
from hustings.core.messages import Message
from hustings.core.outcome import NoLeader, Outcome
from hustings.core.streams import Stream, derive
from hustings.core.view import View
from hustings.net.runner import HandlerContext, NetContext, Runner
from hustings.net.storage import NotPersisted, VolatileStorage
from hustings.protocols.bully import ElectionMsg
from hustings.protocols.registry import find
from hustings.testing import (
    Acquire,
    CancelTimer,
    Declare,
    Effect,
    Multicast,
    Persist,
    Release,
    Send,
    SetTimer,
    persist,
    play,
)
from hustings.testing.recorded import RecordedMember

SCRIPTS = sorted((Path(__file__).parents[1] / "interaction").glob("*/*.txt"))


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


class ManualLoop:
    """As much of a loop as a runner needs: nothing happens unless it is fired."""

    def __init__(self) -> None:
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def call_later(
        self, delay: float, callback: Callable[..., None], *about: object
    ) -> asyncio.TimerHandle:
        return self.call_at(self.now + delay, callback, *about)

    def call_at(
        self, when: float, callback: Callable[..., None], *about: object
    ) -> asyncio.TimerHandle:
        loop = cast("asyncio.AbstractEventLoop", self)
        return asyncio.TimerHandle(when, callback, about, loop)

    def get_debug(self) -> bool:
        return False

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass

    @contextmanager
    def running(self) -> Iterator[None]:
        """This loop is the running one."""
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(cast("asyncio.AbstractEventLoop", self))
        try:
            yield
        finally:
            asyncio._set_running_loop(before)


class Watched(NetContext):
    """The network's context, with every effect written down in the order of the calls."""

    __slots__ = ()
    log: list[Effect]

    def __init__(self, desk: HandlerContext) -> None:
        super().__init__(desk)
        self.log.clear()

    def send(self, to: MemberId, message: Message) -> None:
        self.log.append(Send(to, message))
        super().send(to, message)

    def multicast(self, message: Message) -> None:
        self.log.append(Multicast(message))
        super().multicast(message)

    def set_timer(self, key: TimerKey, delay: float, *, eager: bool = False) -> None:
        self.log.append(SetTimer(key, delay, eager))
        super().set_timer(key, delay, eager=eager)

    def cancel_timer(self, key: TimerKey) -> None:
        self.log.append(CancelTimer(key))
        super().cancel_timer(key)

    def persist(self, **fields: object) -> None:
        self.log.append(persist(**fields))
        super().persist(**fields)

    def declare(self, outcome: Outcome) -> None:
        self.log.append(Declare(outcome))
        super().declare(outcome)

    def acquire(self, ttl: float, request: int) -> None:
        self.log.append(Acquire(ttl, request))
        super().acquire(ttl, request)

    def release(self, request: int) -> None:
        self.log.append(Release(request))
        super().release(request)


class RunnerListener:
    """Writes down what leaves a runner, in order."""

    def __init__(self) -> None:
        self.out: list[Effect | str] = []
        self.error: Exception | None = None
        self.notes: list[str] = []

    def transmit(self, to: MemberId | None, message: Message) -> None:
        self.out.append(Multicast(message) if to is None else Send(to, message))

    def told(self, outcome: Outcome) -> None:
        self.out.append(Declare(outcome))

    def acquire(self, ttl: float, request: int) -> None:
        self.out.append(Acquire(ttl, request))

    def release(self, request: int) -> None:
        self.out.append(Release(request))

    def overslept(self) -> None:
        self.out.append("overslept")

    def ran(self) -> None:
        self.out.append("ran")

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)

    def baffled(self, sender: int, message: Message, error: Exception) -> None:
        self.error = error

    def failed(self, error: Exception) -> None:
        self.error = error


class Diary(VolatileStorage):
    """A memory that tells when it is written to, and can be full."""

    def __init__(self, owner: RunnerListener) -> None:
        super().__init__()
        self._owner = owner
        self.full = False

    def persist(self, fields: Mapping[str, object]) -> None:
        if self.full:
            raise NotPersisted("no room")
        self._owner.out.append(persist(**fields))
        super().persist(fields)


def in_order(effects: list[Effect]) -> list[Effect | str]:
    """What must leave a runner whose handler had these effects."""
    stored: dict[str, object] = {}
    for effect in effects:
        if isinstance(effect, Persist):
            stored.update(dict(effect.fields))
    messages = [each for each in effects if isinstance(each, Send | Multicast)]
    outcomes = [each for each in effects if isinstance(each, Declare)]
    asked = [each for each in effects if isinstance(each, Acquire | Release)]
    return [*([persist(**stored)] if stored else []), *messages, *outcomes, *asked, "ran"]


class NetMember(RecordedMember):
    """A member that a script drives, on the network's runner and context."""

    def __init__(
        self, elect: Callable[[], Election], me: Candidate, view: View, *, seed: int = 0
    ) -> None:
        self.loop = ManualLoop()
        self.owner = RunnerListener()
        self.diary = Diary(self.owner)
        self.runner: Runner | None = None
        super().__init__(elect, me, view, seed=seed)

    def start(self) -> list[Effect]:
        self.incarnation += 1
        self.election = self._elect()
        self.rng = Stream(derive(self._seed, "member", self.me.id, self.incarnation))
        self.timers = {}
        self.outcome = None
        if self.runner is not None:
            self.runner.stop()
        with self.loop.running():
            self.runner = Runner(
                self.election,
                self.me,
                self.view,
                self.rng,
                self.incarnation,
                self.diary,
                self.owner,
            )
        return self._run(self.election.start)

    def deliver(self, sender: MemberId, message: Message) -> list[Effect]:
        return self._watched(lambda runner: runner.deliver(sender, message))

    def fire(self, key: TimerKey) -> list[Effect]:
        self.clock = max(self.clock, self.timers.pop(key).deadline)
        assert self.runner is not None
        armed = self.runner._timers[key]
        assert armed.due <= self.clock
        return self._watched(lambda _: armed.handle._run())

    def leave(self) -> list[Effect]:
        effects = super().leave()
        assert self.runner is not None
        self.runner.stop()
        assert not self.runner._timers
        return effects

    def answer(self, verdict: Verdict) -> list[Effect]:
        return self._run(lambda ctx: self.election.on_verdict(ctx, verdict))

    def _run(self, handler: Callable[[Context], None]) -> list[Effect]:
        return self._watched(lambda runner: runner.run(handler))

    def _watched(self, act: Callable[[Runner], object]) -> list[Effect]:
        runner, log = self.runner, Watched.log
        assert runner is not None
        self.loop.now = self.clock
        log.clear()
        self.owner.out.clear()
        act(runner)
        if self.owner.error is not None:
            raise self.owner.error
        effects = list(log)
        assert self.owner.out == in_order(effects)
        for effect in effects:
            self._apply(effect)
        armed = {key: handle.due for key, handle in runner._timers.items()}
        assert armed == {key: timer.deadline for key, timer in self.timers.items()}
        assert dict(runner.stored) == dict(self.stored)
        return effects


@pytest.fixture(autouse=True)
def on_net(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts are played by the network's runner."""
    monkeypatch.setattr(Watched, "log", [], raising=False)
    monkeypatch.setattr(runner_module, "NetContext", Watched)
    monkeypatch.setattr(scripted_module, "RecordedMember", NetMember)


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_script(path: Path) -> None:
    expected = path.read_text(encoding="utf-8")
    assert play(expected, find, name_of(path)) == expected


def test_every_protocol_has_a_script_here() -> None:
    played = {path.parent.name for path in SCRIPTS}
    assert {
        "quorum",
        "al",
        "bully",
        "le-a",
        "le-m",
        "le-s",
        "probabilistic",
        "ring",
        "stable",
    } <= played


# The runner by itself


def member() -> NetMember:
    kind = find("bully")
    me = Candidate(1)
    view = View({1: me, 2: Candidate(2)}, [1, 2])
    made = NetMember(lambda: kind(kind.Settings(), HighestId()), me, view)
    made.start()
    return made


def test_what_cannot_be_stored_is_not_said() -> None:
    one = member()
    assert one.runner is not None
    one.view.remove(2)
    one.diary.full = True
    one.owner.out.clear()
    assert one.runner.run(one.election.call)
    assert one.owner.out == [Declare(NoLeader("its state cannot be written"))]
    assert one.runner.stalled is not None
    assert not one.runner.run(one.election.call), "nothing is heard meanwhile"
    assert one.runner.dropped == 1
    retry = one.runner._retry
    assert retry is not None
    one.owner.out.clear()
    retry._run()
    assert one.owner.out == [], "it tries again, and says nothing"
    one.diary.full = False
    again = one.runner._retry
    assert again is not None
    again._run()
    kinds = [type(each) for each in one.owner.out if not isinstance(each, str)]
    assert kinds.index(Persist) < kinds.index(Declare)
    assert len(one.owner.notes) == 2


def test_a_handler_that_raises_ends_the_member_and_not_the_loop() -> None:
    one = member()
    assert one.runner is not None

    def broken(ctx: Context) -> None:
        ctx.declare(NoLeader("never told"))
        raise ZeroDivisionError

    one.owner.out.clear()
    assert not one.runner.run(broken)
    assert isinstance(one.owner.error, ZeroDivisionError)
    assert one.owner.out == []


def test_a_stopped_runner_does_nothing() -> None:
    one = member()
    assert one.runner is not None
    one.runner.stop()
    one.owner.out.clear()
    assert not one.runner.run(one.election.call)
    one.runner.arm("late", 1.0)
    assert (one.owner.out, one.runner._timers) == ([], {})


def test_who_overslept_is_told_before_anything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    one = member()
    heard: list[float] = []
    monkeypatch.setattr(type(one.election), "woke", lambda _, ctx, gap: heard.append(gap))
    with one.loop.running():
        sleepy = Runner(one.election, one.me, one.view, one.rng, 1, one.diary, one.owner, pause=0.5)
    sleepy.arm("tick", 1.0)
    one.loop.now = 1.4
    sleepy.run(lambda ctx: heard.append(-1.0))
    assert heard == [-1.0], "not for so little"
    one.loop.now = 3.0
    sleepy.run(lambda ctx: heard.append(-2.0))
    assert heard == [-1.0, pytest.approx(1.6), -2.0], "nothing ran though a timer was due"
    one.loop.now = 6.0
    assert not sleepy.deliver(2, ElectionMsg(1)), "what it slept through is old"
    assert heard[3:] == [pytest.approx(3.0)]
    one.loop.now = 9.0
    sleepy._timers["tick"].handle._run()
    assert heard[4:] == [pytest.approx(3.0)]
    assert one.owner.out.count("overslept") == 3
