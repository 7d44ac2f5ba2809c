"""What happens first at one instant: controls, eager timers, arrivals, timers; then by rule."""

from itertools import permutations

import pytest

from hustings.protocols.bully import Bully, BullyConfig
from hustings.sim.delay import Fixed, PerLink
from hustings.sim.experiment import Experiment
from hustings.sim.network import Network
from hustings.sim.play import play
from hustings.sim.queue import on_grid
from hustings.sim.scenarios import Scenario
from tests.unit.sim.worlds import (
    Action,
    Row,
    Script,
    Stage,
    arm,
    cancel,
    cry,
    ping,
    together,
)

EAGER: Action = arm("eager", 2.0, eager=True)
TIMER: Action = arm("late", 2.0)


@pytest.mark.parametrize("order", list(permutations(range(4))))
@pytest.mark.parametrize("careful", [False, True])
def test_control_then_eager_timer_then_arrival_then_timer(
    order: tuple[int, ...], careful: bool
) -> None:
    stage = Stage(2, network=Network(delay=Fixed(2.0)), careful=careful)
    one, two = stage.members[1], stage.members[2]
    causes = [
        lambda: stage.at(2.0, lambda: stage.journal.append((stage.now, 0, "control"))),
        lambda: EAGER(one),
        lambda: ping(1, 1)(two),
        lambda: TIMER(one),
    ]
    for which in order:
        causes[which]()
    kinds = ["control", "timer eager", "PING 1 from 2", "timer late"]
    assert [what for _, _, what in stage.played()] == kinds
    assert {at for at, _, _ in stage.journal} == {2.0}


@pytest.mark.parametrize("careful", [False, True])
def test_controls_keep_the_order_in_which_they_were_asked_for(careful: bool) -> None:
    stage = Stage(3, careful=careful)
    for number in (3, 1, 2):
        stage.let(1.0, number, ping(number, number % 3 + 1))
    stage.run()
    assert [what for _, _, what in stage.journal] == [
        "PING 3 from 3",
        "PING 1 from 1",
        "PING 2 from 2",
    ]


def test_arrivals_keep_the_order_of_their_sends_within_a_batch() -> None:
    stage = Stage(3)
    together(ping(1, 3, 2), cry(2), ping(3, 2, 3))(stage.members[1])
    assert stage.played() == [
        (1.0, 3, "PING 1 from 1"),
        (1.0, 2, "PING 1 from 1"),
        (1.0, 2, "PING 2 from 1"),
        (1.0, 3, "PING 2 from 1"),
        (1.0, 2, "PING 3 from 1"),
        (1.0, 3, "PING 3 from 1"),
    ]


def test_arrivals_of_one_instant_sent_at_different_times_keep_the_order_of_their_sends() -> None:
    """Each link has its delay; between the sends others are made for other instants."""
    table = {(1, 4): 4.0, (2, 4): 3.0, (3, 4): 2.0, (1, 2): 3.5, (2, 3): 0.5, (3, 1): 9.0}
    stage = Stage(4, network=Network(delay=PerLink(table, 1.0)))
    stage.let(0.0, 1, together(ping(1, 4), ping(2, 2), ping(3, 4)))
    stage.let(1.0, 2, together(ping(4, 3), ping(5, 4), ping(6, 3)))
    stage.let(2.0, 3, together(ping(7, 1), ping(8, 4), ping(9, 1)))
    arrived = [what for at, who, what in stage.played() if (at, who) == (4.0, 4)]
    assert arrived == ["PING 1 from 1", "PING 3 from 1", "PING 5 from 2", "PING 8 from 3"]


def test_sends_that_alternate_between_two_instants_keep_their_order_in_each() -> None:
    stage = Stage(3, network=Network(delay=PerLink({(1, 2): 1.0, (1, 3): 2.0})))
    for number in range(6):
        ping(number, 2 + number % 2)(stage.members[1])
    assert [what for _, _, what in stage.played()] == [
        f"PING {number} from 1" for number in (0, 2, 4, 1, 3, 5)
    ]


@pytest.mark.parametrize("eager", [False, True])
def test_timers_of_one_instant_go_by_member_and_then_by_first_use(eager: bool) -> None:
    stage = Stage(3)
    arm("b", 2.0, eager=eager)(stage.members[3])
    arm("a", 2.0, eager=eager)(stage.members[3])
    arm("z", 2.0, eager=eager)(stage.members[1])
    arm("y", 2.0, eager=eager)(stage.members[2])
    arm("x", 2.0, eager=eager)(stage.members[1])
    arm("b", 2.0, eager=eager)(stage.members[3])
    assert [(who, what[6:]) for _, who, what in stage.played()] == [
        (1, "z"),
        (1, "x"),
        (2, "y"),
        (3, "b"),
        (3, "a"),
    ]


def test_first_use_counts_and_not_the_last_arming() -> None:
    stage = Stage(1)
    ctx = stage.members[1]
    for key, delay in (("a", 1.0), ("b", 2.0)):
        arm(key, delay)(ctx)
    cancel("a")(ctx)
    arm("a", 2.0)(ctx)
    assert [what for _, _, what in stage.played()] == ["timer a", "timer b"]


@pytest.mark.parametrize("delay", [0.1, 0.3, 0.7, 1.0, 1 / 3])
def test_a_timer_of_two_delays_meets_the_answer_and_lets_it_pass(delay: float) -> None:
    delay = on_grid(delay)
    script: Script = {
        (1, "timer go"): together(arm("T1", 2 * delay), ping(1, 2)),
        (2, "PING 1 from 1"): ping(2, 1),
    }
    stage = Stage(2, script, Network(delay=Fixed(delay)))
    arm("go", 0.3)(stage.members[1])
    assert [what for _, _, what in stage.played()][-2:] == ["PING 2 from 2", "timer T1"]
    assert stage.journal[-1][0] == stage.journal[-2][0]


@pytest.mark.parametrize("delta", [0.1, 0.3, 0.7, 0.001, 12.6])
def test_the_unit_of_time_does_not_change_an_election(delta: float) -> None:
    """Answer timers are two delays, whatever a delay is."""

    def played(delta: float) -> dict[str, float | None]:
        experiment = Experiment(
            kind=Bully,
            members=8,
            config=BullyConfig.parse({"delta": delta}),
            network=Network(delay=Fixed(delta)),
            scenario=Scenario("leader-crash", detectors=(1,)),
        )
        return play(experiment, 0).metrics

    in_units = played(1.0)
    metrics = played(delta)
    assert metrics.pop("time") == pytest.approx(delta * (in_units.pop("time") or 0.0), rel=1e-5)
    assert metrics == in_units


# No delay at all: everything happens at one instant, and still in the stated order.


def of_no_delay(script: Script, first: Action) -> list[Row]:
    stage = Stage(3, script, Network(delay=Fixed(0.0)))
    first(stage.members[1])
    stage.run()
    assert {at for at, _, _ in stage.journal} == {0.0}
    return [(0, who, what) for _, who, what in stage.journal]


def test_a_message_without_delay_arrives_after_those_sent_before_it() -> None:
    script: Script = {(2, "PING 1 from 1"): ping(2, 3)}
    assert of_no_delay(script, ping(1, 2, 3)) == [
        (0, 2, "PING 1 from 1"),
        (0, 3, "PING 1 from 1"),
        (0, 3, "PING 2 from 2"),
    ]


def test_a_message_without_delay_arrives_before_the_timers_that_are_left() -> None:
    script: Script = {"timer a": ping(1, 2), "PING 1 from 1": ping(2, 1)}
    assert of_no_delay(script, together(arm("a", 0.0), arm("b", 0.0))) == [
        (0, 1, "timer a"),
        (0, 2, "PING 1 from 1"),
        (0, 1, "PING 2 from 2"),
        (0, 1, "timer b"),
    ]


def test_a_timer_without_delay_waits_for_all_arrivals() -> None:
    script: Script = {(2, "PING 1 from 1"): arm("a", 0.0)}
    assert of_no_delay(script, ping(1, 2, 3)) == [
        (0, 2, "PING 1 from 1"),
        (0, 3, "PING 1 from 1"),
        (0, 2, "timer a"),
    ]


def test_an_eager_timer_without_delay_goes_before_the_timers_that_are_left() -> None:
    script: Script = {"timer a": arm("now", 0.0, eager=True)}
    assert of_no_delay(script, together(arm("a", 0.0), arm("b", 0.0))) == [
        (0, 1, "timer a"),
        (0, 1, "timer now"),
        (0, 1, "timer b"),
    ]


def test_a_control_for_now_goes_before_what_is_left_of_now() -> None:
    stage = Stage(2)
    stage.script = {
        "timer a": lambda ctx: stage.at(
            stage.now, lambda: stage.journal.append((stage.now, 0, "control"))
        )
    }
    together(arm("a", 1.0), arm("b", 1.0))(stage.members[1])
    assert [what for _, _, what in stage.played()] == ["timer a", "control", "timer b"]
