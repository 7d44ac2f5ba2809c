"""A member that stood still learns of it first, and its timers wait as long again."""

from __future__ import annotations

import pytest

from hustings.core.choice import Candidate, HighestId, MemberId
from hustings.core.config import Config
from hustings.core.context import Context, TimerKey
from hustings.core.election import Election, upon
from hustings.sim.faults import Crash, Happening, Pause, Restart, Resume, schedule
from hustings.sim.world import World
from tests.unit.sim.worlds import Ping

BOUND = 0.25


class Sleeper(Election):
    """Arms two timers, and keeps what happens to it."""

    messages = (Ping,)

    def __init__(self) -> None:
        super().__init__(Config(), HighestId())
        self.seen: list[tuple[float, str]] = []

    def start(self, ctx: Context) -> None:
        if ctx.me.id == 1:
            ctx.set_timer("a", 2.0)
            ctx.set_timer("b", 3.0)
        else:
            ctx.set_timer("say", 1.0)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if key == "say":
            ctx.send(1, Ping(7))
        self.seen.append((ctx.now(), str(key)))

    @upon(Ping)
    def on_ping(self, ctx: Context, sender: MemberId, message: Ping) -> None:
        self.seen.append((ctx.now(), "ping"))

    def woke(self, ctx: Context, gap: float) -> None:
        self.seen.append((ctx.now(), f"woke {gap:g}"))


def played(*happenings: Happening, bound: float = BOUND) -> tuple[World, list[tuple[float, str]]]:
    world = World(Sleeper, [Candidate(1), Candidate(2)])
    world.stall_bound = bound
    world.start()
    schedule(world, list(happenings))
    world.run()
    election = world.members[1].election
    assert isinstance(election, Sleeper)
    return world, election.seen


def test_a_stall_is_told_first_and_timers_count_from_then_on() -> None:
    """The ping of 2.0 is old by then, and is not read."""
    world, seen = played(Pause(member=1, at=1.5), Resume(member=1, at=4.0))
    assert seen == [(4.0, "woke 2"), (4.0, "a"), (5.0, "b")]
    assert world.lost["overslept"] == 1


@pytest.mark.parametrize("end", [1.9, 2.0, 2.25])
def test_only_what_was_due_makes_a_pause_a_stall(end: float) -> None:
    """However long it stood still: for the first timer it was hardly late."""
    world, seen = played(Pause(member=1, at=0.5), Resume(member=1, at=end))
    assert not [what for _, what in seen if what.startswith("woke")]
    assert [what for _, what in seen if what != "ping"] == ["a", "b"]
    assert "ping" in [what for _, what in seen]
    assert world.lost["overslept"] == 0


def test_without_a_bound_nobody_notices() -> None:
    """As elections by themselves are played: first what had arrived, then overdue timers."""
    _, seen = played(Pause(member=1, at=1.5), Resume(member=1, at=4.0), bound=float("inf"))
    assert seen == [(4.0, "ping"), (4.0, "a"), (4.0, "b")]


def test_a_pause_of_an_earlier_life_is_no_stall_of_the_next() -> None:
    _, seen = played(
        Pause(member=1, at=1.5),
        Crash(member=1, at=3.0),
        Restart(member=1, at=9.0),
        Pause(member=1, at=10.0),
        Resume(member=1, at=11.1),
    )
    assert seen == [(11.1, "a"), (12.0, "b")]
