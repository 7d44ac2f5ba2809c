"""The swarm: what it draws, what it counts, and that it tells the same whoever plays it."""

from __future__ import annotations

import io

import pytest

from hustings.core.choice import Choice, MemberId, candidate, parse_choice
from hustings.core.config import Config
from hustings.core.context import Context, TimerKey
from hustings.core.election import upon
from hustings.core.errors import BadInput
from hustings.core.messages import Message
from hustings.lab.swarming import play_worlds
from hustings.sim.checkers import Verdict
from hustings.sim.delay import Fixed
from hustings.sim.faults import CrashInside, Happening, Restart, Weather, schedule
from hustings.sim.guarding import Grant, Holder
from hustings.sim.loss import Uncorrelated
from hustings.sim.member import SimContext, Status
from hustings.sim.network import Network
from hustings.sim.random_election import RandomElection
from hustings.sim.swarm import Entry, Register, Swarm, Write, play
from hustings.sim.trace_read import read_stream
from hustings.sim.world import World

SWARM = Swarm((Entry(RandomElection),))


class Note(Message, frozen=True, tag="NOTE"):
    """A message."""


class Scribe(RandomElection):
    """Stores one more each time a timer fires, then says so to everybody."""

    messages = (Note,)

    def __init__(self, config: Config, choice: Choice) -> None:
        super().__init__(config, choice)
        self.heard = 0

    def start(self, ctx: Context) -> None:
        ctx.set_timer("write", 1.0)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        written = ctx.stored.get("written", 0)
        assert isinstance(written, int)
        ctx.persist(written=written + 1)
        for member in ctx.view.ids:
            if member != ctx.me.id:
                ctx.send(member, Note())
        ctx.set_timer("write", 1.0)

    @upon(Note)
    def _on_note(self, ctx: Context, sender: MemberId, message: Note) -> None:
        self.heard += 1


def scribes(*happenings: Happening) -> World:
    choice = parse_choice("highest-id")
    world = World(lambda: Scribe(Config(), choice), [candidate(each) for each in (1, 2, 3)])
    world.start()
    schedule(world, list(happenings))
    return world


def written(member: SimContext) -> object:
    return member.stored.get("written", 0)


@pytest.mark.parametrize(
    "kept, sends, stored, heard", [(True, 0, 1, 2), (False, 0, 0, 2), (True, 1, 1, 3)]
)
def test_a_crash_inside_a_handler(kept: bool, sends: int, stored: int, heard: int) -> None:
    """What it stored is there or not; what it sent has left or not; nothing else happened."""
    world = scribes(CrashInside(member=1, kept=kept, sends=sends))
    world.run(until=2.5)
    first, second, third = world.members.values()
    assert first.status is Status.CRASHED
    assert written(first) == stored
    both = (second.election, third.election)
    assert sum(each.heard for each in both if isinstance(each, Scribe)) == heard


def test_a_crash_inside_that_finds_no_handler_does_nothing() -> None:
    world = scribes(CrashInside(member=1, until=0.5))
    world.run(until=2.5)
    assert written(world.members[1]) == 2


def test_a_lost_disk_is_empty() -> None:
    world = scribes(CrashInside(member=1), Restart(member=1, at=1.5, wiped=True))
    world.run(until=1.75)
    assert (world.members[1].stored, world.members[1].incarnation) == ({}, 2)


def test_the_weather_changes_in_mid_run() -> None:
    storm = Network(delay=Fixed(1.0), loss=Uncorrelated(1.0))
    world = scribes(Weather(network=storm, at=1.5))
    world.run(until=3.5)
    heard = [each.election.heard for each in world.live() if isinstance(each.election, Scribe)]
    assert heard == [2, 2, 2]  # of the first round each, of the second nothing


def test_what_a_stale_write_is() -> None:
    old, new = Holder(1, 1), Holder(2, 1)
    grants = [Grant(0.0, 1, old), Grant(1.0, 2, new)]
    fenced, open_to_all = Register(), Register(fenced=False)
    for register in (fenced, open_to_all):
        register.arrive(Write(new, 2))
        register.arrive(Write(old, 1))
    assert fenced.complaint(grants, ordered=True) is None
    assert fenced.refused == 1
    assert open_to_all.complaint(grants, ordered=True) is not None
    assert open_to_all.complaint(grants, ordered=False) is not None


def test_two_holders_of_one_token_are_told() -> None:
    register = Register()
    register.arrive(Write(Holder(1, 1), 1))
    register.arrive(Write(Holder(1, 2), 1))
    assert "one token" in str(register.complaint([], ordered=False))


def test_a_seed_is_a_world() -> None:
    assert play(SWARM, 5) == play(SWARM, 5)
    assert play(SWARM, 5) != play(SWARM, 6)


def test_a_trace_changes_nothing_and_can_be_read() -> None:
    out = io.BytesIO()
    assert play(SWARM, 5, out) == play(SWARM, 5)
    trace = read_stream(io.BytesIO(out.getvalue()))
    assert (trace.header.seed, trace.header.protocol) == (5, "random-election")


def test_how_the_work_was_cut_up_cannot_be_seen() -> None:
    assert play_worlds(SWARM, 10, 12, jobs=2) == play_worlds(SWARM, 10, 12)


class Raising(RandomElection):
    """Has a mistake in it."""

    def call(self, ctx: Context) -> None:
        raise ZeroDivisionError("a mistake")


def test_an_error_in_a_handler_is_found_not_raised() -> None:
    played = play(Swarm((Entry(Raising),)), 0)
    assert played.verdicts["ended"] == (Verdict.VIOLATED, "ZeroDivisionError: a mistake")


class Idle(RandomElection):
    """Never nominates anybody."""

    def start(self, ctx: Context) -> None:
        pass

    def call(self, ctx: Context) -> None:
        pass


def test_a_group_that_never_settles_is_found() -> None:
    assert "settles" in play(Swarm((Entry(Idle),)), 0).wrong


def test_a_swarm_of_nothing_is_refused() -> None:
    with pytest.raises(BadInput, match="at least one"):
        Swarm(())
    with pytest.raises(BadInput, match="how a quorum goes round"):
        Swarm((Entry(RandomElection),), ("quorum",))


def test_somebody_is_confirmed_in_most_worlds() -> None:
    played = [play(SWARM, seed) for seed in range(10)]
    assert sum(each.counts["grants"] for each in played) > 10
    assert all(each.settled is not None for each in played)
