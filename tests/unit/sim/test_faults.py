"""Crashes, returns, arrivals, departures: what a member misses and what it keeps."""

from __future__ import annotations

import pytest

from hustings.core.choice import Candidate, HighestId, candidate
from hustings.core.context import Context
from hustings.core.errors import BadInput, UnknownName
from hustings.core.outcome import Elected
from hustings.core.streams import Stream, derive
from hustings.protocols.bully import Bully, BullyConfig
from hustings.sim.delay import Uniform
from hustings.sim.faults import (
    Alive,
    Call,
    Crash,
    Happening,
    Join,
    Leave,
    Pause,
    Restart,
    Resume,
    Suspect,
    Update,
)
from hustings.sim.member import Status
from hustings.sim.network import Network
from hustings.sim.world import Ended, World
from tests.unit.sim.worlds import Ear, Script, Stage, arm, cry, people, ping, together


def bully() -> Bully:
    return Bully(BullyConfig(), HighestId())


CAREFUL = pytest.mark.parametrize("careful", [False, True])


@CAREFUL
def test_a_crashed_member_hears_nothing_and_its_losses_have_a_reason(careful: bool) -> None:
    stage = Stage(3, careful=careful)
    stage.plan(Crash(member=2, at=0.5))
    ping(1, 2, 3)(stage.members[1])
    cry(2)(stage.members[1])
    assert stage.played() == [(1.0, 3, "PING 1 from 1"), (1.0, 3, "PING 2 from 1")]
    assert dict(stage.lost) == {"crashed": 1}


@CAREFUL
def test_what_a_member_sent_before_it_crashed_arrives(careful: bool) -> None:
    stage = Stage(3, careful=careful)
    cry(1)(stage.members[1])
    ping(2, 3)(stage.members[1])
    stage.plan(Crash(member=1, at=0.5))
    assert [who for _, who, _ in stage.played()] == [2, 3, 3]


@CAREFUL
def test_a_crash_comes_before_the_arrivals_of_its_instant(careful: bool) -> None:
    stage = Stage(3, careful=careful)
    cry(1)(stage.members[1])
    stage.plan(Crash(member=2, at=1.0))
    assert stage.played() == [(1.0, 3, "PING 1 from 1")]


@CAREFUL
@pytest.mark.parametrize("up", [Join(member=3, at=0.5), Restart(member=3, at=0.5)])
def test_receivers_are_those_alive_when_a_message_arrives(careful: bool, up: Happening) -> None:
    """With one delay for all: who comes up in the meantime hears what is in flight."""
    stage = Stage(3, up=[1, 2], careful=careful)
    if isinstance(up, Restart):
        stage.start(3)
        stage.change(stage.members[3], Status.CRASHED)
    stage.plan(up)
    cry(1)(stage.members[1])
    ping(2, 3)(stage.members[2])
    assert stage.played() == [
        (1.0, 2, "PING 1 from 1"),
        (1.0, 3, "PING 1 from 1"),
        (1.0, 3, "PING 2 from 2"),
    ]


def test_with_a_delay_each_who_joins_later_does_not_hear_a_multicast() -> None:
    stage = Stage(3, up=[1, 2], network=Network(delay=Uniform(1.0, 1.5)))
    cry(1)(stage.members[1])
    stage.plan(Join(member=3, at=0.5))
    assert [who for _, who, _ in stage.played()] == [2]


# Returning


def test_a_new_incarnation_knows_its_number_and_what_was_stored_and_nothing_else() -> None:
    seen: list[tuple[int, dict[str, object], int | None]] = []
    ear = Ear()

    def start(ctx: Context) -> None:
        election = stage.members[1].election
        seen.append((ctx.incarnation, dict(ctx.stored), election.leader))
        ctx.persist(**{f"life{ctx.incarnation}": ctx.incarnation, "last": ctx.incarnation})
        election.elect(ctx, 2, ctx.incarnation)

    stage = Stage(2, {(1, "start"): start}, up=[2], talkative=True)
    stage.watch(ear)
    stage.start(1)
    stage.plan(
        Crash(member=1, at=1.0),
        Restart(member=1, at=2.0),
        Crash(member=1, at=3.0),
        Restart(member=1, at=4.0),
    )
    stage.run()
    assert seen == [
        (1, {}, None),
        (2, {"life1": 1, "last": 1}, None),
        (3, {"life1": 1, "life2": 2, "last": 2}, None),
    ]
    assert ear.changes == [
        (0.0, 1, "up", 1),
        (1.0, 1, "crashed", 1),
        (2.0, 1, "up", 2),
        (3.0, 1, "crashed", 2),
        (4.0, 1, "up", 3),
    ]


def test_a_crash_takes_the_outcome_along() -> None:
    stage = Stage(2)
    stage.members[1].declare(Elected(2, 1))
    stage.plan(Crash(member=1, at=1.0), Restart(member=1, at=2.0))
    stage.run(until=1.5)
    assert stage.members[1].outcome is None
    stage.run()
    assert stage.members[1].outcome is None


def test_every_incarnation_draws_from_a_stream_of_its_own() -> None:
    draws: list[float] = []

    def draw(ctx: Context) -> None:
        draws.extend([ctx.rng.random(), ctx.rng.random()])

    for _ in range(2):
        stage = Stage(2, {"call": draw}, seed=5)
        stage.plan(
            Call(member=1),
            Call(member=2),
            Crash(member=1, at=1.0),
            Restart(member=1, at=2.0),
            Call(member=1, at=3.0),
        )
        stage.run()
    assert draws[:6] == draws[6:]
    lives = [(1, 1), (2, 1), (1, 2)]  # member, incarnation
    streams = [Stream(derive(5, "member", *life)) for life in lives]
    assert draws[:6] == [stream.random() for stream in streams for _ in range(2)]


def test_only_who_is_down_can_return_and_only_who_is_up_can_fall() -> None:
    ear = Ear()
    stage = Stage(3, up=[1])
    stage.watch(ear)
    stage.plan(
        Restart(member=1),  # is up
        Restart(member=2),  # never joined
        Crash(member=2),
        Resume(member=1),
        Leave(member=2),
        Pause(member=2),
        Join(member=1),
        Call(member=2),
        Suspect(member=2, about=1),
    )
    assert stage.run() is Ended.QUIESCENT
    assert ear.changes == []
    assert stage.journal == []


def test_who_left_may_come_back() -> None:
    stage = Stage(2, talkative=True)
    stage.plan(Leave(member=2, at=1.0), Restart(member=2, at=2.0))
    stage.run()
    assert stage.heard(2) == [(0.0, "start"), (1.0, "leave"), (2.0, "start")]
    assert stage.members[2].incarnation == 2
    assert stage.members[1].view.ids == [1, 2]


@pytest.mark.parametrize("wiped, stored", [(False, {"term": 3}), (True, {})])
@pytest.mark.parametrize("down", [Crash(member=1, at=1.0), Leave(member=1, at=1.0)])
def test_a_disk_outlives_its_member_unless_it_is_lost(
    down: Happening, wiped: bool, stored: dict[str, object]
) -> None:
    stage = Stage(2)
    stage.let(0.5, 1, lambda ctx: ctx.persist(term=3))
    stage.plan(down, Restart(member=1, wiped=wiped, at=2.0))
    stage.run()
    assert dict(stage.members[1].stored) == stored
    assert stage.members[1].incarnation == 2


def test_a_disk_is_lost_with_its_members_restart_and_not_while_it_is_up() -> None:
    stage = Stage(2)
    stage.let(0.5, 1, lambda ctx: ctx.persist(term=3))
    stage.plan(Restart(member=1, wiped=True, at=1.0))
    stage.run()
    assert dict(stage.members[1].stored) == {"term": 3}


# Joining and leaving


def test_who_joins_starts_once() -> None:
    stage = Stage(3, up=[1], talkative=True)
    stage.plan(Join(member=3, at=1.0), Join(member=3, at=2.0))
    stage.run()
    assert stage.journal == [(0.0, 1, "start"), (1.0, 3, "start")]
    assert [member.id for member in stage.live()] == [1, 3]


def test_who_leaves_may_say_goodbye_and_hears_nothing_more() -> None:
    stage = Stage(3, {(3, "leave"): cry(9)})
    ping(1, 3)(stage.members[1])
    stage.plan(Leave(member=3, at=0.5))
    assert stage.played() == [
        (0.5, 3, "leave"),
        (1.5, 1, "PING 9 from 3"),
        (1.5, 2, "PING 9 from 3"),
    ]
    assert dict(stage.lost) == {"left": 1}
    assert stage.members[1].view.ids == [1, 2]


# Told from outside


def test_members_are_told_in_the_order_of_the_script() -> None:
    stage = Stage(3)
    stage.plan(
        Suspect(member=1, about=3, at=2.0),
        Alive(member=1, about=3, at=2.0),
        Call(member=2, at=1.0),
        Suspect(member=1, about=3, at=2.0),
    )
    assert stage.played() == [
        (1.0, 2, "call"),
        (2.0, 1, "suspect 3"),
        (2.0, 1, "alive 3"),
        (2.0, 1, "suspect 3"),
    ]


# Attributes


def test_new_attributes_are_seen_by_all() -> None:
    stage = Stage(3, views={3: [1, 3]})
    versions = [member.view.version for member in stage.live()]
    stage.plan(Update(member=1, candidate=candidate(1, cpu=8), at=1.0))
    stage.run()
    for member, version in zip(stage.live(), versions, strict=True):
        assert member.view.candidate(1) == candidate(1, cpu=8)
        assert member.view.version > version
    assert stage.members[1].me == candidate(1, cpu=8)


def test_new_attributes_of_who_is_gone_bring_nobody_back() -> None:
    stage = Stage(3)
    stage.plan(
        Leave(member=2, at=1.0),
        Update(member=2, candidate=candidate(2, cpu=8), at=2.0),
    )
    stage.run()
    assert stage.members[1].view.ids == [1, 3]


def test_nobody_turns_into_somebody_else() -> None:
    with pytest.raises(BadInput, match="2"):
        Stage(3).plan(Update(member=1, candidate=Candidate(2)))


# What is refused, before anything starts


@pytest.mark.parametrize(
    "wrong",
    [kind(member=9) for kind in (Crash, Restart, Join, Leave, Pause, Resume, Call)]
    + [Suspect(member=9, about=1), Alive(member=9, about=1)],
)
def test_happenings_name_members(wrong: Happening) -> None:
    with pytest.raises(UnknownName, match="unknown member '9'"):
        Stage(3).plan(wrong)


@pytest.mark.parametrize(
    "wrong", [Crash(member=9), Crash(member=1, at=-1.0), Crash(member=1, at=1e9)]
)
def test_one_wrong_happening_lets_none_of_them_happen(wrong: Happening) -> None:
    stage = Stage(3)
    with pytest.raises(BadInput):
        stage.plan(Call(member=1, at=1.0), wrong, Call(member=2, at=1.0))
    assert stage.played() == []


def test_a_member_id_is_given_once() -> None:
    with pytest.raises(BadInput, match="member id 2 is given twice"):
        World(bully, [*people(3), Candidate(2)])


def test_members_stand_in_the_order_of_their_ids() -> None:
    world = World(bully, [Candidate(member) for member in (40, 7, 19)])
    assert list(world.members) == [7, 19, 40]
    assert world.members[7].view.ids == [7, 19, 40]


def test_messages_to_oneself_travel_like_all_others() -> None:
    script: Script = {"PING 1 from 1": arm("a", 1.0)}
    stage = Stage(2, script)
    ping(1, 1)(stage.members[1])
    assert stage.played() == [(1.0, 1, "PING 1 from 1"), (2.0, 1, "timer a")]


def test_who_lingers_is_up_for_a_while_after_it_has_left() -> None:
    stage = Stage(3, {"leave": together(cry(1), arm("bye", 2.0)), "timer bye": cry(2)})
    stage.plan(Leave(member=2, linger=2.5, at=1.0))
    assert [row for row in stage.played() if row[1] != 3] == [
        (1.0, 2, "leave"),
        (2.0, 1, "PING 1 from 2"),
        (3.0, 2, "timer bye"),
        (4.0, 1, "PING 2 from 2"),
    ]
    assert stage.members[2].status is Status.LEFT
    assert stage.members[1].view.ids == [1, 3]


def test_a_new_incarnation_does_not_inherit_the_departure_of_the_old_one() -> None:
    stage = Stage(2)
    stage.plan(Leave(member=2, linger=5.0), Crash(member=2, at=1.0), Restart(member=2, at=2.0))
    stage.run()
    assert stage.members[2].up
    assert stage.members[2].incarnation == 2


@pytest.mark.parametrize("linger", [-1.0, float("nan"), float("inf")])
def test_lingering_is_a_time(linger: float) -> None:
    with pytest.raises(BadInput, match="linger must be a time >= 0"):
        Stage(2).plan(Leave(member=2, linger=linger))
