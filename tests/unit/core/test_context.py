"""Debug mode: a context kept beyond its handler raises, whatever is asked of it."""

from collections.abc import Callable

import pytest

from hustings.core.choice import Candidate
from hustings.core.context import CheckedContext, Context
from hustings.core.errors import ProtocolBug, StaleContext
from hustings.core.messages import Message
from hustings.core.outcome import NoLeader
from hustings.core.streams import Stream
from hustings.testing import (
    Acquire,
    CancelTimer,
    Declare,
    Multicast,
    RecordingContext,
    Release,
    Send,
    SetTimer,
    persist,
    view_of,
)


class HelloMsg(Message, frozen=True, tag="HELLO"):
    """A greeting."""


USES: dict[str, Callable[[Context], object]] = {
    "me": lambda ctx: ctx.me,
    "view": lambda ctx: ctx.view,
    "rng": lambda ctx: ctx.rng,
    "incarnation": lambda ctx: ctx.incarnation,
    "stored": lambda ctx: ctx.stored,
    "now": lambda ctx: ctx.now(),
    "send": lambda ctx: ctx.send(2, HelloMsg()),
    "multicast": lambda ctx: ctx.multicast(HelloMsg()),
    "set_timer": lambda ctx: ctx.set_timer("T", 1.0),
    "cancel_timer": lambda ctx: ctx.cancel_timer("T"),
    "persist": lambda ctx: ctx.persist(term=1),
    "declare": lambda ctx: ctx.declare(NoLeader()),
    "acquire": lambda ctx: ctx.acquire(30.0, 1),
    "release": lambda ctx: ctx.release(2),
}


def test_the_table_below_names_everything_a_context_offers() -> None:
    assert sorted(USES) == sorted(name for name in vars(Context) if not name.startswith("_"))


def inner() -> RecordingContext:
    return RecordingContext(
        Candidate(1),
        view_of([Candidate(1), Candidate(2)]),
        rng=Stream(9),
        incarnation=3,
        stored={"term": 4},
        now=2.5,
    )


@pytest.mark.parametrize("use", USES)
def test_a_closed_guard_raises(use: str) -> None:
    recorder = inner()
    guard = CheckedContext(recorder)
    guard.close()
    with pytest.raises(StaleContext, match="after its handler returned"):
        USES[use](guard)
    assert recorder.effects == []


@pytest.mark.parametrize("use", USES)
def test_a_recording_context_raises_too_once_closed(use: str) -> None:
    recorder = inner()
    recorder.close()
    with pytest.raises(StaleContext, match="after its handler returned"):
        USES[use](recorder)
    assert recorder.effects == []


def test_keeping_a_context_is_our_own_mistake() -> None:
    assert issubclass(StaleContext, ProtocolBug)


def test_an_open_guard_passes_everything_on() -> None:
    recorder = inner()
    guard = CheckedContext(recorder)
    assert guard.me is recorder.me
    assert guard.view is recorder.view
    assert guard.rng is recorder.rng
    assert guard.incarnation == 3
    assert guard.stored == {"term": 4}
    assert guard.now() == 2.5
    for use in ("send", "multicast", "cancel_timer", "persist", "declare", "acquire", "release"):
        USES[use](guard)
    guard.set_timer("T", 1.5)
    guard.set_timer(("T", 2), 0.5, eager=True)
    assert recorder.effects == [
        Send(2, HelloMsg()),
        Multicast(HelloMsg()),
        CancelTimer("T"),
        persist(term=1),
        Declare(NoLeader()),
        Acquire(30.0, 1),
        Release(2),
        SetTimer("T", 1.5),
        SetTimer(("T", 2), 0.5, eager=True),
    ]
