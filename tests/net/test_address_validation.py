"""Questions to addresses that have not answered: when they are asked again, and how often."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

from hustings.net.control_messages import ProbeMsg
from hustings.net.peer_addresses import AddressValidation
from hustings.net.transport import Endpoint
from tests.net.kit.fake_node import FakeNode, at
from tests.net.kit.virtual import virtually

X = 2  # a member that is known by hearsay alone


class Asker(FakeNode):
    """A host that writes down what it sends, and when it asks."""

    def __init__(self) -> None:
        super().__init__()
        self.circle.put(X)
        self.asked_at: list[float] = []
        self.frames: list[bytes] = []
        self.crash_watch = SimpleNamespace(following=True)
        it: Any = self
        self.tried = AddressValidation(it)

    def introduce(self, to: Endpoint, message: Any, member: int | None = None) -> None:
        super().introduce(to, message, member)
        assert isinstance(message, ProbeMsg)
        self.asked_at.append(self.now)

    def put(self, to: Endpoint, data: bytes, streamed: bool, member: int | None = None) -> None:
        self.frames.append(data)

    async def speak(self, seconds: float) -> None:
        """Send something four times a second."""
        for number in range(round(4 * seconds)):
            self.tried.put(X, at(X), b"%d" % number, streamed=False)
            await asyncio.sleep(0.25)


def played(story: Callable[[Asker], Coroutine[Any, Any, None]]) -> None:
    async def on_loop() -> None:
        host = Asker()
        await story(host)
        host.tried.stop()

    virtually(on_loop())


def test_a_lost_question_is_repeated_though_there_is_no_news_of_the_member() -> None:
    """Where views are partial a member is heard of when it is reached, and not before."""

    async def story(host: Asker) -> None:
        await host.speak(2.5)
        assert len(host.asked_at) == 2
        _, question, _ = host.told[-1]
        assert isinstance(question, ProbeMsg)
        host.tried.present(question.nonce, X, at(X))
        assert host.tried.reached(X, at(X))
        assert host.frames[-1] == b"9", "what was held back goes out"

    played(story)


def test_it_is_repeated_while_something_waits_though_nothing_more_is_said() -> None:
    async def story(host: Asker) -> None:
        host.tried.put(X, at(X), b"once", streamed=False)
        await asyncio.sleep(1.5)
        assert len(host.asked_at) == 2
        await asyncio.sleep(20.0)
        assert len(host.asked_at) == 2, "nothing waits any more"

    played(story)


def test_an_address_that_never_answers_gets_four_questions_for_a_piece_of_news() -> None:
    """An attacker who puts a member there pays for the first of them."""

    async def story(host: Asker) -> None:
        await host.speak(60.0)
        gaps = [b - a for a, b in zip(host.asked_at, host.asked_at[1:], strict=False)]
        assert len(gaps) == 3
        for gap, least in zip(gaps, (1.0, 2.0, 4.0), strict=True):
            assert least <= gap <= least + 0.3
        assert host.frames == []
        host.circle.entry(X).counter += 1
        await host.speak(60.0)
        assert len(host.asked_at) == 8

    played(story)
