"""Timers: armed, moved, cancelled, and those of members that stop or return."""

import math
from collections.abc import Callable

import pytest

from hustings.core.context import Context
from hustings.core.errors import ProtocolBug
from hustings.sim.delay import Fixed
from hustings.sim.faults import Crash, Pause, Restart, Resume
from hustings.sim.network import Network
from hustings.sim.world import Ended
from tests.unit.sim.worlds import Action, Row, Script, Stage, arm, cancel, ping, together


def alone(*acts: tuple[float, Action]) -> list[tuple[float, str]]:
    """What one member hears that does things at given instants."""
    stage = Stage(1)
    for at, action in acts:
        stage.let(at, 1, action)
    assert stage.run() is Ended.QUIESCENT
    return stage.heard(1)


def test_a_timer_fires_once_after_its_delay() -> None:
    assert alone((1.0, arm("a", 2.5))) == [(3.5, "timer a")]


def test_a_timer_may_have_a_number_besides_its_name() -> None:
    keys = together(arm(("a", 1), 1.0), arm(("a", 2), 1.0), arm("a", 1.0))
    assert [what for _, what in alone((0.0, keys))] == [
        "timer ('a', 1)",
        "timer ('a', 2)",
        "timer a",
    ]


def test_moved_to_a_later_instant_it_fires_then_only() -> None:
    assert alone((0.0, arm("a", 2.0)), (1.0, arm("a", 4.0))) == [(5.0, "timer a")]


def test_moved_to_an_earlier_instant_it_fires_then_only() -> None:
    assert alone((0.0, arm("a", 9.0)), (1.0, arm("a", 1.0))) == [(2.0, "timer a")]


@pytest.mark.parametrize("delays", [(9.0, 1.0, 5.0), (1.0, 9.0, 5.0), (5.0, 9.0, 5.0)])
def test_moved_to_and_fro_it_fires_where_it_was_put_last(delays: tuple[float, ...]) -> None:
    assert alone((0.0, together(*(arm("a", delay) for delay in delays)))) == [(5.0, "timer a")]


def test_armed_again_for_the_same_instant_it_fires_once() -> None:
    assert alone((0.0, arm("a", 3.0)), (1.0, arm("a", 2.0)), (2.0, arm("a", 1.0))) == [
        (3.0, "timer a")
    ]


def test_a_cancelled_timer_does_not_fire() -> None:
    assert alone((0.0, arm("a", 3.0)), (1.0, cancel("a"))) == []
    assert alone((0.0, cancel("a"))) == []
    assert alone((0.0, arm("a", 1.0)), (2.0, cancel("a"))) == [(1.0, "timer a")]


@pytest.mark.parametrize("again", [1.0, 2.0, 3.0])
def test_cancelled_and_armed_again_it_fires_once(again: float) -> None:
    assert alone((0.0, arm("a", 3.0)), (1.0, together(cancel("a"), arm("a", again)))) == [
        (1.0 + again, "timer a")
    ]


def test_an_infinite_delay_cancels() -> None:
    assert alone((0.0, arm("a", 3.0)), (1.0, arm("a", math.inf))) == []
    assert alone((0.0, arm("a", math.inf))) == []
    assert alone((0.0, together(arm("a", math.inf), arm("a", 1.0)))) == [(1.0, "timer a")]


@pytest.mark.parametrize("delay", [-1.0, -math.inf, math.nan])
@pytest.mark.parametrize("armed", [False, True])
def test_a_delay_that_is_none_is_our_own_bug(delay: float, armed: bool) -> None:
    stage = Stage(1)
    if armed:
        arm("a", 5.0)(stage.members[1])
    with pytest.raises(ProtocolBug, match="member 1 armed timer 'a'"):
        arm("a", delay)(stage.members[1])


def test_armed_again_by_its_own_handler_it_fires_again() -> None:
    stage = Stage(1)

    def again(ctx: Context) -> None:
        if stage.now < 3:
            ctx.set_timer("a", 1.0)

    stage.script = {"timer a": again}
    arm("a", 1.0)(stage.members[1])
    stage.run()
    assert stage.heard(1) == [(1.0, "timer a"), (2.0, "timer a"), (3.0, "timer a")]


def test_armed_without_delay_by_its_own_handler_it_fires_again_at_once() -> None:
    stage = Stage(2)

    def again(ctx: Context) -> None:
        if len(stage.journal) < 3:
            ctx.set_timer("a", 0.0)

    stage.script = {(1, "timer a"): again}
    for member in (1, 2):
        arm("a", 1.0)(stage.members[member])
    stage.run()
    # It stands before member 2's timer as it did the first time.
    assert [(at, who) for at, who, _ in stage.journal] == [(1, 1), (1, 1), (1, 1), (1, 2)]


def test_a_handler_may_cancel_or_move_what_is_due_at_the_same_instant() -> None:
    stage = Stage(1, {"timer a": together(cancel("b"), arm("c", 1.0), arm("d", 0.0))})
    together(*(arm(key, 1.0) for key in "abcd"))(stage.members[1])
    stage.run()
    assert stage.heard(1) == [(1.0, "timer a"), (1.0, "timer d"), (2.0, "timer c")]


def test_a_timer_left_behind_by_an_earlier_arming_does_not_disturb_a_later_one() -> None:
    """Its old entry and its new one come up at the same instant."""
    stage = Stage(1)

    def rearm(ctx: Context) -> None:
        ctx.set_timer("a", 10.0 - stage.now)  # where an entry was left behind
        stage.script = {}

    stage.script = {"timer a": rearm}
    together(arm("a", 10.0), arm("a", 5.0))(stage.members[1])
    stage.run()
    assert stage.heard(1) == [(5.0, "timer a"), (10.0, "timer a")]


def test_a_timer_that_is_put_off_again_and_again_costs_one_entry() -> None:
    stage = Stage(1)
    for step in range(1_000):
        arm("a", 1.0 + step)(stage.members[1])
    assert len(stage.queue.heap) == 1
    stage.run()
    assert stage.heard(1) == [(1_000.0, "timer a")]


# Cancelled timers are nothing: neither a limit nor the clock sees them.


@pytest.mark.parametrize("undo", [cancel("a"), arm("a", math.inf)])
def test_a_run_with_only_cancelled_timers_left_has_ended(undo: Action) -> None:
    stage = Stage(2)
    together(arm("a", 10.0), undo, ping(1, 2))(stage.members[1])
    assert stage.run(until=5.0) is Ended.QUIESCENT
    assert stage.now == 1.0


def test_the_timers_of_a_dead_member_do_not_keep_a_run_going() -> None:
    stage = Stage(2)
    stage.let(0.0, 1, together(arm("a", 10.0), arm("b", 11.0)))
    stage.plan(Crash(member=1, at=1.0))
    assert stage.run(until=5.0) is Ended.QUIESCENT
    assert stage.now == 1.0


def test_the_last_event_may_be_the_last_allowed() -> None:
    stage = Stage(2)
    together(arm("a", 10.0), cancel("a"), ping(1, 2))(stage.members[1])
    assert stage.run(max_events=1) is Ended.QUIESCENT


def test_a_timer_that_moved_behind_the_limit_is_still_there_after_it() -> None:
    stage = Stage(1)
    together(arm("a", 2.0), arm("a", 8.0))(stage.members[1])
    assert stage.run(until=5.0) is Ended.UNTIL
    assert stage.run() is Ended.QUIESCENT
    assert stage.heard(1) == [(8.0, "timer a")]


# Members that stop or return.


def test_no_timer_of_a_crashed_member_fires() -> None:
    stage = Stage(1)
    arm("a", 3.0)(stage.members[1])
    stage.plan(Crash(member=1, at=2.0))
    assert stage.played() == []


@pytest.mark.parametrize("back", [2.5, 3.0, 4.0])
def test_a_new_incarnation_has_none_of_the_old_timers(back: float) -> None:
    stage = Stage(1)
    arm("a", 3.0)(stage.members[1])
    stage.plan(Crash(member=1, at=2.0), Restart(member=1, at=back))
    stage.let(back, 1, arm("b", 1.0))
    assert stage.played() == [(back + 1, 1, "timer b")]


def test_a_handler_that_a_crash_cuts_short_arms_nothing_for_the_next_incarnation() -> None:
    stage = Stage(2, {"call": together(ping(1, 2), arm("a", 5.0))})
    stage.plan(Crash(member=1, after_sends=1), Restart(member=1, at=2.0))
    stage.let(1.0, 1, lambda ctx: stage.tell(stage.members[1], "call"))
    assert stage.played() == [(1.0, 1, "call"), (2.0, 2, "PING 1 from 1")]


def test_the_same_key_means_another_timer_in_the_next_incarnation() -> None:
    stage = Stage(1)
    arm("a", 9.0)(stage.members[1])
    stage.plan(Crash(member=1, at=1.0), Restart(member=1, at=2.0))
    stage.let(3.0, 1, arm("a", 9.0))
    assert stage.played() == [(12.0, 1, "timer a")]


def paused(*acts: tuple[float, Action], script: Script | None = None) -> list[Row]:
    """Member 1 stands still from 1 to 5."""
    stage = Stage(2, script, Network(delay=Fixed(1.0)))
    for at, action in acts:
        stage.let(at, 1, action)
    stage.let(1.5, 2, ping(7, 1))
    stage.plan(Pause(member=1, at=1.0), Resume(member=1, at=5.0))
    return stage.played()


def test_an_overdue_timer_fires_on_waking_after_what_had_arrived() -> None:
    assert paused((0.0, arm("a", 2.0))) == [(5.0, 1, "PING 7 from 2"), (5.0, 1, "timer a")]


def test_a_timer_that_is_not_yet_due_on_waking_keeps_its_instant() -> None:
    assert paused((0.0, arm("a", 6.0))) == [(5.0, 1, "PING 7 from 2"), (6.0, 1, "timer a")]


def test_overdue_timers_fire_in_the_order_in_which_they_were_due() -> None:
    rows = paused((0.0, together(arm("a", 4.0), arm("b", 2.0), arm("c", 2.0))))
    assert [what for _, _, what in rows] == ["PING 7 from 2", "timer b", "timer c", "timer a"]


UNDO: list[tuple[Action, list[float]]] = [
    (cancel("a"), []),
    (arm("a", math.inf), []),
    (arm("a", 0.0), [5.0]),
    (arm("a", 3.0), [8.0]),
]


@pytest.mark.parametrize("undo, fires", UNDO)
def test_what_had_arrived_may_still_undo_an_overdue_timer(
    undo: Callable[[Context], None], fires: list[float]
) -> None:
    rows = paused((0.0, arm("a", 2.0)), script={"PING 7 from 2": undo})
    assert [at for at, _, what in rows if what == "timer a"] == fires


def test_one_overdue_timer_may_cancel_another() -> None:
    rows = paused((0.0, together(arm("a", 2.0), arm("b", 3.0))), script={"timer a": cancel("b")})
    assert [what for _, _, what in rows] == ["PING 7 from 2", "timer a"]


def test_a_member_that_crashes_in_its_sleep_has_no_overdue_timers() -> None:
    stage = Stage(1)
    arm("a", 2.0)(stage.members[1])
    stage.plan(
        Pause(member=1, at=1.0),
        Crash(member=1, at=3.0),
        Restart(member=1, at=4.0),
        Resume(member=1, at=5.0),
    )
    assert stage.played() == []
