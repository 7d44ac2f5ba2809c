"""Edges of the simulated world: what is under way when it becomes careful, what is moved together,
what a trace says of sleepers and timers, and where a run of single messages ends.
"""

from __future__ import annotations

import io
import json
from statistics import NormalDist

import pytest

from hustings.core.context import Context
from hustings.core.errors import BadInput
from hustings.sim import world as worlds
from hustings.sim.delay import Fixed, Lognormal, Uniform
from hustings.sim.faults import Pause, Resume
from hustings.sim.loss import Correlated, Uncorrelated
from hustings.sim.network import Network
from hustings.sim.queue import END_OF_TIME
from hustings.sim.trace import Header, Tracer
from hustings.sim.world import Ended
from tests.unit.sim.laws import believable
from tests.unit.sim.worlds import Stage, arm, cry, ping, together

MESSAGES = 3_000
HEADER = Header(protocol="chat", members=[1, 2, 3], seed=0)


@pytest.mark.parametrize("traced", [False, True])
def test_what_is_under_way_when_the_world_becomes_careful_is_tossed_once(traced: bool) -> None:
    """A message to one member was tossed when it left, and one to the group is when it arrives."""
    loss = Uncorrelated(0.4)
    tracer = Tracer(HEADER) if traced else None
    stage = Stage(3, network=Network(delay=Fixed(0.5), loss=loss), tracer=tracer)
    for number in range(MESSAGES):
        together(ping(2 * number, 2), cry(2 * number + 1))(stage.members[1])
    stage.at(0.25, stage.be_careful)
    played = stage.played()
    alone = sum(int(what.split()[1]) % 2 == 0 for _, _, what in played)
    assert believable(alone, MESSAGES, 0.6)
    assert believable(len(played) - alone, 2 * MESSAGES, 0.6)
    assert len(played) + stage.lost["loss"] == 3 * MESSAGES
    assert {at for at, _, _ in played} == {0.5}


def test_correlated_loss_of_what_is_under_way_was_decided_when_it_left() -> None:
    stage = Stage(3, network=Network(delay=Fixed(0.5), loss=Correlated(0.4)))
    for number in range(MESSAGES):
        cry(number)(stage.members[1])
    stage.at(0.25, stage.be_careful)
    heard = [[what for _, who, what in stage.played() if who == member] for member in (2, 3)]
    assert heard[0] == heard[1]
    assert believable(len(heard[0]), MESSAGES, 0.6)


def test_timers_armed_together_may_be_moved_apart() -> None:
    """Each fires when it was armed for last, whatever its neighbours were moved to."""
    stage = Stage(6)
    for member in range(1, 7):
        arm("T", 1.0)(stage.members[member])
    later = {1: 5.0, 2: 2.0, 3: 3.0, 4: 2.0, 5: 3.0, 6: 2.0}
    for member, delay in later.items():
        arm("T", delay)(stage.members[member])
    assert stage.played() == [
        *((2.0, member, "timer T") for member in (2, 4, 6)),
        *((3.0, member, "timer T") for member in (3, 5)),
        (5.0, 1, "timer T"),
    ]


def test_a_stop_ends_a_run_of_single_messages() -> None:
    """A token goes round; who stops the world in its handler is the last to have it."""

    def stop(ctx: Context) -> None:
        ping(1, 2)(ctx)
        stage.stop()

    stage = Stage(2, {(1, "PING 1 from 2"): stop, (2, "PING 1 from 1"): ping(1, 1)})
    ping(1, 2)(stage.members[1])
    assert stage.run() is Ended.STOPPED
    assert (stage.events, stage.now) == (2, 2.0)
    assert stage.run(max_events=5) is Ended.STOPPED
    assert (stage.events, stage.now) == (4, 4.0)


@pytest.mark.parametrize("careful", [False, True])
def test_a_sleeper_s_full_buffer_loses_multicasts_too(
    monkeypatch: pytest.MonkeyPatch, careful: bool
) -> None:
    monkeypatch.setattr(worlds, "BACKLOG", 2)
    stage = Stage(3, careful=careful)
    stage.pause(stage.members[3])
    for number in range(5):
        cry(number)(stage.members[1])
    stage.run()
    assert stage.lost["paused"] == 3
    stage.resume(stage.members[3])
    assert [what for _, what in stage.heard(3)] == ["PING 0 from 1", "PING 1 from 1"]
    assert len(stage.heard(2)) == 5


@pytest.mark.parametrize("careful", [False, True])
def test_a_trace_tells_what_a_sleeper_hears_when_it_wakes_and_which_timer_fired(
    careful: bool,
) -> None:
    file = io.BytesIO()
    stage = Stage(2, tracer=Tracer(HEADER, file), careful=careful)
    together(arm("T", 1.0), arm(("beat", 7), 2.0), ping(1, 2))(stage.members[1])
    stage.plan(Pause(member=2, at=0.5), Resume(member=2, at=9.0))
    stage.run()
    assert stage.tracer is not None
    stage.tracer.close(stage.now, "quiescent")
    lines = [json.loads(line) for line in file.getvalue().splitlines()[1:-1]]
    assert [line[1:] for line in lines if line[0] == "timer"] == [[1.0, 1, "T"], [2.0, 1, "beat 7"]]
    assert [line[1:] for line in lines if line[0] == "recv"] == [[9.0, 2, 1]]


def test_the_end_of_time_is_an_instant() -> None:
    stage = Stage(1)
    stage.let(END_OF_TIME, 1, arm("T", 0.0))
    assert stage.run() is Ended.QUIESCENT
    assert stage.journal == [(END_OF_TIME, 1, "timer T")]
    with pytest.raises(BadInput, match="must lie between"):
        Stage(1).at(END_OF_TIME * 1.001, lambda: None)


@pytest.mark.parametrize("median, sigma", [(1.0, 0.5), (0.2, 1.0), (3.0, 0.0)])
def test_the_bound_of_a_lognormal_delay_holds_for_all_but_one_in_a_thousand(
    median: float, sigma: float
) -> None:
    delay = Lognormal(median, sigma)
    if sigma:
        below = NormalDist(0.0, sigma).inv_cdf(0.999)
        assert delay.bound == pytest.approx(median * 2.718281828459045**below, rel=1e-9)
    else:
        assert delay.bound == median


def test_being_careful_twice_keeps_the_messages_under_way() -> None:
    stage = Stage(3)
    stage.be_careful()
    carrier = stage.carrier
    stage.be_careful()
    assert stage.carrier is carrier


def test_the_fast_path_is_taken_where_it_gives_the_same_run() -> None:
    """One fixed delay and plain loss; whoever becomes careful, or is debugged, leaves it."""
    plain = Stage(3, network=Network(delay=Fixed(0.5), loss=Uncorrelated(0.4)))
    assert plain.plain_delay == 0.5
    assert Stage(3, careful=True).plain_delay is None
    assert Stage(3, debug=True).plain_delay is None
    for network in (
        Network(delay=Fixed(0.0)),
        Network(delay=Uniform(0.5, 0.5)),
        Network(duplicate=0.1),
        Network(reorder=0.1, hold_back=1.0),
        Network(loss=Uncorrelated(0.1, 0.1)),
    ):
        assert Stage(3, network=network).plain_delay is None


def test_one_table_of_handlers_serves_a_multicast_to_members_that_are_all_up() -> None:
    """What makes large groups quick: a look-up for all, as long as nobody sleeps."""
    stage = Stage(3)
    reach = stage.reach()
    assert reach.table is stage.members[1].handlers
    assert [ctx.id for _, ctx in reach.pairs] == [1, 2, 3]
    stage.pause(stage.members[2])
    assert (stage.reach().table, stage.reach().pairs, stage.reach().ids) == (None, [], [1, 2, 3])
    stage.resume(stage.members[2])
    assert stage.reach().table is not None
