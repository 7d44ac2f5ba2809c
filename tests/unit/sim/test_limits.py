"""The four endings of a run, and that a run in pieces is the run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.choice import HighestId, MemberId
from hustings.core.context import Context
from hustings.core.errors import BadInput
from hustings.core.outcome import Outcome
from hustings.protocols.bully import Bully, BullyConfig
from hustings.protocols.ring import Ring, RingConfig
from hustings.sim.delay import Fixed, Uniform
from hustings.sim.faults import Call, Crash, Happening, Pause, Restart, Resume, Suspect, schedule
from hustings.sim.loss import Uncorrelated
from hustings.sim.network import Network
from hustings.sim.oracle import Oracle
from hustings.sim.queue import END_OF_TIME, on_grid
from hustings.sim.world import Ended, World
from tests.unit.sim.worlds import Action, Ear, Script, Stage, arm, cry, people, ping, together


def token() -> Stage:
    """Two members send a token to and fro without end."""
    stage = Stage(2, {"PING 1 from 1": ping(1, 1), "PING 1 from 2": ping(1, 2)})
    ping(1, 2)(stage.members[1])
    return stage


def test_a_run_ends_when_nothing_is_left() -> None:
    stage = Stage(2)
    ping(1, 2)(stage.members[1])
    assert stage.run(until=5.0, max_events=10) is Ended.QUIESCENT
    assert (stage.now, stage.events) == (1.0, 1)


def test_what_falls_on_the_time_limit_still_happens() -> None:
    stage = token()
    assert stage.run(until=3.0) is Ended.UNTIL
    assert [at for at, _, _ in stage.journal] == [1.0, 2.0, 3.0]
    assert stage.now == 3.0
    assert stage.run(until=3.5) is Ended.UNTIL
    assert (len(stage.journal), stage.now) == (3, 3.5)


@pytest.mark.parametrize("instant", [0.1, 0.3, 1 / 3, 2.7])
def test_a_time_limit_means_the_instant_of_the_same_name(instant: float) -> None:
    """Limits lie on the grid of time like everything else."""
    stage = Stage(1)
    arm("a", instant)(stage.members[1])
    assert stage.run(until=instant) is Ended.QUIESCENT
    assert stage.heard(1) == [(on_grid(instant), "timer a")]


@pytest.mark.parametrize("limit", [0.1, 1 / 3, 2.7])
def test_time_goes_on_from_a_limit_on_its_grid(limit: float) -> None:
    stage = Stage(2, {(2, "PING 1 from 1"): ping(2, 1)})
    stage.let(9.0, 1, lambda ctx: None)
    stage.run(until=limit)
    assert stage.now == on_grid(limit)
    together(arm("T1", 2.0), ping(1, 2))(stage.members[1])
    stage.run()
    assert [what for _, _, what in stage.journal] == ["PING 1 from 1", "PING 2 from 2", "timer T1"]


def test_something_may_be_asked_for_at_the_limit_itself() -> None:
    stage = token()
    stage.run(until=0.1)
    stage.let(0.1, 1, arm("a", 0.0))
    stage.run(until=0.5)
    assert stage.heard(1) == [(on_grid(0.1), "timer a")]


def test_the_event_limit_is_exact_for_single_messages_and_timers() -> None:
    for most in range(7):
        stage = token()
        assert stage.run(max_events=most) is Ended.MAX_EVENTS
        assert len(stage.journal) == stage.events == most


def test_the_event_limit_cuts_a_batch() -> None:
    stage = Stage(9)
    ping(1, *range(2, 10))(stage.members[1])
    assert stage.run(max_events=3) is Ended.MAX_EVENTS
    assert [who for _, who, _ in stage.journal] == [2, 3, 4]
    assert stage.run(max_events=8) is Ended.QUIESCENT
    assert [who for _, who, _ in stage.journal] == list(range(2, 10))


def test_the_event_limit_cuts_the_timers_of_an_instant() -> None:
    stage = Stage(5)
    for member in stage.members.values():
        arm("a", 1.0)(member)
    assert stage.run(max_events=2) is Ended.MAX_EVENTS
    assert [who for _, who, _ in stage.journal] == [1, 2]
    assert stage.run() is Ended.QUIESCENT
    assert [who for _, who, _ in stage.journal] == [1, 2, 3, 4, 5]


def test_of_two_limits_reached_at_once_the_one_in_the_way_is_named() -> None:
    stage = token()
    assert stage.run(until=3.0, max_events=3) is Ended.UNTIL
    stage = token()
    assert stage.run(until=4.0, max_events=3) is Ended.MAX_EVENTS


def test_a_stop_ends_the_run_and_the_next_run_goes_on() -> None:
    stage = token()
    stage.let(2.5, 1, lambda ctx: stage.stop())
    assert stage.run(until=9.0) is Ended.STOPPED
    assert (len(stage.journal), stage.now) == (2, 2.5)
    assert stage.run(until=5.0) is Ended.UNTIL
    assert [at for at, _, _ in stage.journal] == [1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize("until", [-1.0, math.nan, math.inf, END_OF_TIME + 1])
def test_a_time_limit_that_is_no_time_is_refused(until: float) -> None:
    with pytest.raises(BadInput, match="until must lie between 0 and"):
        token().run(until=until)


def test_time_does_not_run_backwards() -> None:
    stage = token()
    stage.run(until=5.0)
    with pytest.raises(BadInput, match="until must lie between 5 and"):
        stage.run(until=4.0)
    with pytest.raises(BadInput, match="must lie between now and"):
        stage.at(4.0, stage.stop)


# A run in pieces is the run.


@dataclass
class Trail:
    """All that can be seen of a run."""

    seen: list[tuple[float, MemberId, Outcome]]
    changes: list[tuple[float, MemberId, str, int]]
    counts: dict[str, int]
    events: int
    times: tuple[float, float]
    coins: object


def trail(world: World, play: Callable[[World], None]) -> Trail:
    ear = Ear()
    world.watch(ear)
    play(world)
    return Trail(
        seen=ear.declarations,
        changes=ear.changes,
        counts={
            kind.__qualname__: number
            for kind, number in sorted(world.sent.items(), key=lambda item: item[0].__qualname__)
        },
        events=world.events,
        times=(world.last_arrival, world.last_declared),
        coins=world.chance.getstate(),
    )


HAPPENINGS: list[Happening] = [
    Call(member=1),
    Call(member=3, at=0.5),
    Suspect(member=2, about=5, at=1.0),
    Pause(member=4, at=1.5),
    Crash(member=5, at=2.0),
    Resume(member=4, at=3.25),
    Restart(member=5, at=9.0),
    Crash(member=5, at=11.0),
]

NETWORKS = [
    Network(),
    Network(delay=Fixed(0.1)),
    Network(loss=Uncorrelated(0.2)),
    Network(delay=Uniform(0.2, 1.0), duplicate=0.3),
    Network(delay=Fixed(0.0)),
]


def group(kind: str, network: Network) -> World:
    def elect() -> Bully | Ring:
        if kind == "bully":
            return Bully(BullyConfig(delta=1.0), HighestId())
        return Ring(RingConfig(), HighestId())

    world = World(elect, people(5), seed=7, network=network)
    world.watch(Oracle(2.0))
    world.start()
    schedule(world, HAPPENINGS)
    return world


def at_once(world: World) -> None:
    world.run(until=60.0)


@given(
    st.sampled_from(["ring", "bully"]),
    st.sampled_from(NETWORKS),
    st.lists(st.tuples(st.sampled_from(["until", "events", "stop"]), st.integers(1, 12))),
)
def test_an_election_in_pieces_is_the_election(
    kind: str, network: Network, cuts: list[tuple[str, int]]
) -> None:
    def in_pieces(world: World) -> None:
        for how, much in cuts:
            if how == "until":
                world.run(until=min(60.0, world.now + much / 4))
            elif how == "events":
                world.run(until=60.0, max_events=world.events + much)
            else:
                world.at(min(60.0, world.now + much / 4), world.stop)
                world.run(until=60.0)
        world.run(until=60.0)

    assert trail(group(kind, network), in_pieces) == trail(group(kind, network), at_once)


def knot(step: int) -> list[tuple[float, MemberId, str]]:
    """Everything at one instant, with handlers that add to that very instant."""
    left = dict.fromkeys(["PING", "eager", "late"], 6)

    def again(kind: str) -> Action:
        def action(ctx: Context) -> None:
            if left[kind]:
                left[kind] -= 1
                together(arm("late", 0.0), arm("eager", 0.0, eager=True), ping(1, 1, 2))(ctx)

        return action

    script: Script = {
        **{f"PING 1 from {sender}": again("PING") for sender in range(1, 5)},
        "timer late": again("late"),
        "timer eager": again("eager"),
    }
    stage = Stage(4, script, Network(delay=Fixed(0.0)))
    for member in stage.members.values():
        together(ping(1, 3, 4), arm("late", 0.0))(member)
    cry(1)(stage.members[2])
    while stage.run(max_events=stage.events + step) is Ended.MAX_EVENTS:
        pass
    return stage.journal


@pytest.mark.parametrize("step", [1, 2, 3, 5])
def test_cutting_one_busy_instant_does_not_reorder_it(step: int) -> None:
    assert knot(step) == knot(10_000)
