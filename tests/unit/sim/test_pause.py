"""Members that stand still: what arrives waits, timers wait, and both are caught up on waking.

What overdue timers do is in test_timers.py.
"""

from __future__ import annotations

import pytest

from hustings.core.choice import HighestId
from hustings.core.outcome import Elected
from hustings.protocols.bully import Bully, BullyConfig
from hustings.sim.faults import Call, Crash, Pause, Restart, Resume, Suspect, schedule
from hustings.sim.member import Status
from hustings.sim.world import BACKLOG, World
from tests.unit.sim.worlds import Ear, Stage, arm, cry, people, ping, together

CAREFUL = pytest.mark.parametrize("careful", [False, True])


@CAREFUL
def test_what_arrives_waits_in_its_order(careful: bool) -> None:
    stage = Stage(3, careful=careful)
    stage.plan(Pause(member=1, at=0.5), Resume(member=1, at=9.0))
    ping(1, 1)(stage.members[2])
    stage.let(1.0, 3, cry(2))
    stage.let(1.0, 2, ping(3, 1, 3))
    stage.let(8.0, 2, ping(4, 1))  # arrives at 9, after the waking
    stage.run()
    assert stage.heard(1) == [
        (9.0, "PING 1 from 2"),
        (9.0, "PING 2 from 3"),
        (9.0, "PING 3 from 2"),
        (9.0, "PING 4 from 2"),
    ]
    assert dict(stage.lost) == {}


@CAREFUL
def test_receptions_of_the_others_count_and_those_of_a_sleeper_do_when_it_wakes(
    careful: bool,
) -> None:
    stage = Stage(3, careful=careful)
    stage.plan(Pause(member=1, at=0.5), Resume(member=1, at=9.0))
    cry(1)(stage.members[2])
    stage.run(until=8.0)
    assert (stage.events, stage.last_arrival) == (1, 1.0)
    stage.run()
    assert stage.events == 2


def test_a_sleeper_sends_nothing_and_is_told_nothing() -> None:
    stage = Stage(2, {"timer a": ping(1, 2)})
    arm("a", 1.0)(stage.members[1])
    stage.plan(
        Pause(member=1, at=0.5),
        Call(member=1, at=1.0),
        Suspect(member=1, about=2, at=1.0),
    )
    stage.run()
    assert stage.journal == []
    assert stage.members[1].status is Status.PAUSED
    assert [member.id for member in stage.live()] == [2]


def test_what_is_done_on_waking_happens_then() -> None:
    stage = Stage(2, {"PING 1 from 2": together(ping(2, 2), arm("b", 1.0))})
    stage.plan(Pause(member=1, at=0.5), Resume(member=1, at=9.0))
    ping(1, 1)(stage.members[2])
    assert stage.played() == [
        (9.0, 1, "PING 1 from 2"),
        (10.0, 2, "PING 2 from 1"),
        (10.0, 1, "timer b"),
    ]


def test_the_second_sleep_is_another_one() -> None:
    ear = Ear()
    stage = Stage(2)
    stage.watch(ear)
    stage.plan(
        Pause(member=1, at=0.5),
        Pause(member=1, at=0.75),
        Resume(member=1, at=2.0),
        Resume(member=1, at=2.5),
        Pause(member=1, at=3.0),
        Resume(member=1, at=5.0),
    )
    ping(1, 1)(stage.members[2])
    stage.let(2.5, 2, ping(2, 1))
    stage.run()
    assert stage.heard(1) == [(2.0, "PING 1 from 2"), (5.0, "PING 2 from 2")]
    assert [change[0] for change in ear.changes] == [0.5, 2.0, 3.0, 5.0]


@CAREFUL
def test_who_crashes_in_its_sleep_forgets_what_waited(careful: bool) -> None:
    stage = Stage(2, careful=careful)
    stage.plan(
        Pause(member=1, at=0.5),
        Crash(member=1, at=2.0),
        Resume(member=1, at=3.0),
        Restart(member=1, at=4.0),
        Resume(member=1, at=5.0),
    )
    ping(1, 1)(stage.members[2])
    assert stage.played() == []
    assert stage.members[1].incarnation == 2


@CAREFUL
def test_a_full_buffer_loses_what_comes_later(careful: bool) -> None:
    stage = Stage(2, careful=careful)
    stage.plan(Pause(member=1, at=0.5), Resume(member=1, at=9.0))
    for number in range(BACKLOG + 3):
        ping(number, 1)(stage.members[2])
    heard = [what for _, _, what in stage.played()]
    assert heard == [f"PING {number} from 2" for number in range(BACKLOG)]
    assert dict(stage.lost) == {"paused": 3}


def test_a_multicast_reaches_the_others_past_a_sleeper() -> None:
    stage = Stage(4)
    stage.plan(Pause(member=2, at=0.5))
    cry(1)(stage.members[1])
    assert [who for _, who, _ in stage.played()] == [3, 4]


def test_an_answer_that_waited_silences_the_timer_that_waited_for_it() -> None:
    """A bully asks, sleeps past its answer and its timer, and must not claim victory on waking."""
    world = World(lambda: Bully(BullyConfig(), HighestId()), people(3))
    ear = Ear()
    world.watch(ear)
    world.start()
    schedule(world, [Call(member=1), Pause(member=1, at=0.5), Resume(member=1, at=6.0)])
    world.run()
    assert (6.0, 1, Elected(1, 1)) not in ear.declarations
    assert {member.outcome for member in world.live()} == {Elected(3, 1)}
