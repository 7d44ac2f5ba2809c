"""A runner on a stage: an election that does what a test tells it, and what comes of that."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

from hustings.core.choice import Candidate
from hustings.core.context import Context
from hustings.core.messages import Message, Role
from hustings.core.outcome import Outcome
from hustings.core.streams import Stream
from hustings.core.view import View
from hustings.net.runner import Runner
from hustings.net.stall_detector import StallDetector
from hustings.net.storage import NotPersisted, VolatileStorage
from tests.net.kit.virtual import virtually

ME = Candidate(1)
PAUSE = 0.5


class Word(Message, frozen=True, tag="WORD"):
    """What the members of these stories say."""

    role: ClassVar[Role] = Role.OTHER
    text: str = ""


class Script:
    """An election that does what a test tells it to."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.react: Callable[[Context], None] = lambda ctx: None
        self.handlers = {Word: Script.on_word}

    def on_word(self, ctx: Context, sender: int, message: Word) -> None:
        self.log.append((sender, message.text))
        self.react(ctx)

    def on_timer(self, ctx: Context, key: str) -> None:
        self.log.append((key, ctx.now()))
        self.react(ctx)

    def woke(self, ctx: Context, gap: float) -> None:
        self.log.append(("woke", round(gap, 6)))
        self.react(ctx)


class RunnerListener:
    """Writes down all that a runner tells, in its order."""

    def __init__(self) -> None:
        self.log: list[Any] = []

    def transmit(self, to: int | None, message: Message) -> None:
        self.log.append(("sent", to, message))

    def told(self, outcome: Outcome) -> None:
        self.log.append(("told", outcome))

    def acquire(self, ttl: float, request: int) -> None:
        self.log.append(("acquire", ttl, request))

    def release(self, request: int) -> None:
        self.log.append(("release", request))

    def overslept(self) -> None:
        self.log.append("overslept")

    def ran(self) -> None:
        self.log.append("ran")

    def note(self, sentence: str) -> None:
        self.log.append(("note", sentence))

    def baffled(self, sender: int, message: Message, error: Exception) -> None:
        self.log.append(("baffled", sender, message, str(error)))

    def failed(self, error: Exception) -> None:
        self.log.append(("failed", str(error)))


class Disk(VolatileStorage):
    """A memory that can be full."""

    full = False
    tries = 0

    def persist(self, fields: Any) -> None:
        self.tries += 1
        if self.full:
            raise NotPersisted("the disk is full")
        super().persist(fields)


class Stage:
    """A runner with all that it needs."""

    def __init__(self, **options: Any) -> None:
        self.election, self.owner, self.disk = Script(), RunnerListener(), Disk()
        self.stall_detector = StallDetector(asyncio.get_running_loop().time())
        election: Any = self.election
        view = View({1: ME}, [1])
        rest = {"pause": PAUSE, "stall_detector": self.stall_detector, **options}
        self.runner = Runner(election, ME, view, Stream(1), 3, self.disk, self.owner, **rest)

    def arm(self, **delays: float) -> None:
        for key, delay in delays.items():
            self.runner.arm(key, delay)

    def deliver(self, text: str = "x") -> bool:
        return self.runner.deliver(2, Word(text))

    def sleep_through(self, seconds: float) -> None:
        """The process stands still: time passes, and nothing runs."""
        loop: Any = asyncio.get_running_loop()
        loop._now += seconds
        loop._clock_resolution = math.ulp(loop._now)


def on_stage(story: Callable[[Stage], Coroutine[Any, Any, None]], **options: Any) -> None:
    async def played() -> None:
        await story(Stage(**options))

    virtually(played())
