"""Crashes in the middle of sending: a prefix of what was to be sent goes out."""

from __future__ import annotations

import pytest

from hustings.core.choice import HighestId
from hustings.core.context import Context
from hustings.core.errors import BadInput
from hustings.core.outcome import Elected
from hustings.protocols.bully import Bully, BullyConfig, CoordinatorMsg, ElectionMsg
from hustings.sim.delay import Delay, Fixed, Uniform
from hustings.sim.faults import Call, Crash, Join, Pause, Restart, Resume, schedule
from hustings.sim.member import Status
from hustings.sim.network import Network
from hustings.sim.world import World
from tests.unit.sim.worlds import Ping, Stage, arm, cry, people, ping, together


@pytest.mark.parametrize("k", range(1, 8))
def test_a_bully_that_crashes_while_asking_has_asked_the_first_k(k: int) -> None:
    world = World(lambda: Bully(BullyConfig(), HighestId()), people(8))
    world.start()
    schedule(world, [Crash(member=1, after_sends=k), Call(member=1)])
    world.run(until=0.0)
    assert world.members[1].status is Status.CRASHED
    assert world.sent == {ElectionMsg: k}
    world.run()
    asked = world.sent[ElectionMsg] - k  # those it asked, best first, ask in their turn
    assert asked == sum(8 - member for member in range(8, 8 - k, -1))
    assert {member.outcome for member in world.live()} == {Elected(8, 1)}


@pytest.mark.parametrize("k", range(1, 6))
def test_a_bully_that_crashes_while_announcing_has_told_the_first_k(k: int) -> None:
    world = World(lambda: Bully(BullyConfig(), HighestId()), people(6))
    world.start()
    schedule(world, [Crash(member=6, after_sends=k), Call(member=6)])
    world.run(until=1.0)
    told = [member.id for member in world.live() if member.outcome == Elected(6, 1)]
    assert told == list(range(6 - k, 6))  # worse members are told best first
    assert world.sent == {CoordinatorMsg: k}


@pytest.mark.parametrize("delay", [Fixed(1.0), Uniform(1.0, 1.5)])
@pytest.mark.parametrize("k", range(1, 6))
def test_a_multicast_cut_short_reaches_the_first_k_by_id(k: int, delay: Delay) -> None:
    stage = Stage(5, network=Network(delay=delay))
    stage.plan(Crash(member=3, after_sends=k))
    stage.let(0.5, 3, cry(1))
    assert sorted(who for _, who, _ in stage.played()) == [1, 2, 4, 5][:k]
    assert stage.members[3].status is (Status.CRASHED if k <= 4 else Status.UP)
    assert sum(stage.sent.values()) == 1


def test_the_fuse_burns_across_sends_multicasts_and_handlers() -> None:
    stage = Stage(4)
    stage.plan(Crash(member=1, after_sends=6))
    stage.let(0.5, 1, together(ping(1, 2), cry(2)))  # 1 + 3
    stage.let(1.0, 1, together(ping(3, 2, 3, 4), cry(4)))  # 2 more, then no more
    numbers = sorted((int(what.split()[1]), who) for _, who, what in stage.played())
    assert numbers == [(1, 2), (2, 2), (2, 3), (2, 4), (3, 2), (3, 3)]
    assert sum(stage.sent.values()) == 4


def test_nothing_that_follows_in_the_handler_counts() -> None:
    def handler(ctx: Context) -> None:
        ctx.persist(before=1)
        ctx.send(2, message)
        ctx.persist(after=1)
        ctx.declare(Elected(1, 1))
        ctx.multicast(message)
        ctx.set_timer("a", 1.0)

    message = Ping(1)
    stage = Stage(3)
    stage.plan(Crash(member=1, after_sends=1))
    stage.let(0.5, 1, handler)
    assert stage.played() == [(1.5, 2, "PING 1 from 1")]
    assert stage.members[1].stored == {"before": 1}
    assert stage.members[1].outcome is None
    assert stage.last_declared == 0.0


def test_a_fuse_counts_from_when_it_is_lit() -> None:
    stage = Stage(3)
    stage.plan(Crash(member=1, after_sends=2, at=1.0))
    stage.let(0.5, 1, ping(1, 2, 3))
    stage.let(1.5, 1, ping(2, 2, 3))
    assert len(stage.played()) == 4
    assert stage.members[1].status is Status.CRASHED


def test_no_transmission_at_all_is_a_plain_crash() -> None:
    stage = Stage(3)
    stage.plan(Crash(member=1, after_sends=0, at=1.0))
    stage.let(1.0, 1, ping(1, 2))
    assert stage.played() == []
    assert stage.members[1].status is Status.CRASHED


def test_a_fuse_does_not_outlive_its_incarnation() -> None:
    stage = Stage(3)
    stage.plan(
        Crash(member=1, after_sends=1),
        Crash(member=1, at=1.0),
        Restart(member=1, at=2.0),
    )
    stage.let(3.0, 1, ping(1, 2, 3))
    assert len(stage.played()) == 2
    assert stage.members[1].up


def test_a_fuse_that_does_not_burn_out_changes_nothing() -> None:
    """Who joins in the meantime hears a multicast that went out whole."""
    stage = Stage(4, up=[1, 2, 3])
    stage.plan(Crash(member=1, after_sends=5), Join(member=4, at=1.0))
    stage.let(0.5, 1, cry(1))
    assert sorted(who for _, who, _ in stage.played()) == [2, 3, 4]


def test_who_joins_later_does_not_hear_a_multicast_that_was_cut_short() -> None:
    stage = Stage(4, up=[1, 2, 3])
    stage.plan(Crash(member=1, after_sends=1), Join(member=4, at=1.0))
    stage.let(0.5, 1, cry(1))
    assert [who for _, who, _ in stage.played()] == [2]


def test_a_member_may_crash_while_it_answers_what_it_slept_through() -> None:
    stage = Stage(3, {"PING 1 from 2": ping(7, 3), "PING 2 from 2": ping(8, 3)})
    arm("a", 2.0)(stage.members[1])
    stage.plan(
        Crash(member=1, after_sends=1),
        Pause(member=1, at=0.5),
        Resume(member=1, at=5.0),
    )
    stage.let(1.0, 2, together(ping(1, 1), ping(2, 1)))
    stage.run()
    assert stage.heard(1) == [(5.0, "PING 1 from 2")]
    assert stage.heard(3) == [(6.0, "PING 7 from 1")]


def test_a_multicast_of_somebody_alone_burns_the_fuse_too() -> None:
    stage = Stage(1)
    stage.plan(Crash(member=1, after_sends=1))
    stage.let(0.5, 1, cry(1))
    stage.run()
    assert stage.members[1].status is Status.CRASHED


def test_a_negative_number_of_transmissions_is_refused() -> None:
    with pytest.raises(BadInput, match="after_sends must be >= 0"):
        Stage(2).plan(Crash(member=1, after_sends=-1))
