"""What the world itself keeps: counts, observers, debug mode, times."""

from __future__ import annotations

import pytest

from hustings.core.choice import MemberId
from hustings.core.context import Context
from hustings.core.errors import ProtocolBug, StaleContext, UnknownName
from hustings.core.messages import Message
from hustings.core.outcome import Elected
from hustings.sim.delay import Uniform
from hustings.sim.faults import Call, Crash, Leave, Pause, Restart, Resume
from hustings.sim.loss import Coins, Correlated, Uncorrelated
from hustings.sim.member import SimContext
from hustings.sim.network import Network
from hustings.sim.world import Ended, World
from tests.unit.sim.worlds import Ear, Ping, Pong, Script, Stage, arm, cry, ping, together


class Unheard(Message, frozen=True, tag="UNHEARD"):
    """A kind that puppets do not handle."""


@pytest.mark.parametrize("careful", [False, True])
def test_messages_are_counted_by_kind_when_sent_also_to_the_dead(careful: bool) -> None:
    stage = Stage(3, careful=careful)
    stage.plan(Crash(member=3))
    stage.run()
    for number in range(2):
        ping(number, 2, 3)(stage.members[1])
        stage.members[1].send(3, Pong())
        cry(number)(stage.members[1])
    assert stage.sent == {Ping: 6, Pong: 2}
    ping(9, 2)(stage.members[1])
    assert stage.sent == {Ping: 7, Pong: 2}  # asking changes nothing


def test_asking_for_the_counts_at_any_time_changes_nothing() -> None:
    stage = Stage(2)
    assert stage.sent == {}
    for number in range(4):
        stage.members[1].send(2, Ping() if number % 2 else Pong())
        assert sum(stage.sent.values()) == number + 1
    assert stage.sent == {Ping: 2, Pong: 2}


@pytest.mark.parametrize("network", [Network(), Network(delay=Uniform(1.0, 1.0))])
def test_an_event_is_a_reception_or_a_timer(network: Network) -> None:
    stage = Stage(4, network=network)
    together(cry(1), ping(2, 2), arm("a", 5.0))(stage.members[1])
    stage.plan(Crash(member=4, at=0.5), Call(member=2, at=2.0))
    stage.run()
    assert stage.events == 2 + 1 + 1
    assert stage.last_arrival == 1.0
    assert stage.now == 5.0


@pytest.mark.parametrize("careful", [False, True])
def test_who_listens_in_hears_of_every_send_also_of_those_that_get_lost(careful: bool) -> None:
    class Log:
        def __init__(self) -> None:
            self.rows: list[tuple[float, MemberId, MemberId | None, Message]] = []

        def sent(
            self, world: World, member: SimContext, to: MemberId | None, message: Message
        ) -> None:
            self.rows.append((world.now, member.id, to, message))

    log = Log()
    lossy = Network(loss=Uncorrelated(0.9))
    stage = Stage(3, network=lossy, careful=careful)
    cry(0)(stage.members[1])  # nobody listens yet
    stage.listen_in(log)
    cry(1)(stage.members[1])
    stage.let(2.0, 2, ping(2, 3))
    stage.run()
    assert log.rows == [(0.0, 1, None, Ping(1)), (2.0, 2, 3, Ping(2))]


@pytest.mark.parametrize("model", [Uncorrelated, Correlated])
@pytest.mark.parametrize("careful", [False, True])
def test_losses_are_counted_alike_on_both_ways(model: type[Coins], careful: bool) -> None:
    stage = Stage(5, network=Network(loss=model(0.3)), careful=careful)
    for number in range(200):
        stage.let(float(number), 1, cry(number))
    stage.run()
    sends = 200 if model is Correlated else 200 * 4
    copies = 1 if model is Uncorrelated else 4
    assert stage.lost["loss"] + stage.events // copies == sends
    assert 0.2 * sends < stage.lost["loss"] < 0.4 * sends


def test_the_last_arrival_is_one_that_somebody_heard() -> None:
    stage = Stage(3)
    stage.plan(Crash(member=3, at=0.5))
    ping(1, 2)(stage.members[1])
    stage.let(4.0, 1, ping(2, 3))
    stage.run()
    assert stage.now == 5.0
    assert stage.last_arrival == 1.0


def test_observers_hear_of_every_change_and_declaration() -> None:
    ear = Ear()
    stage = Stage(2, {"call": lambda ctx: ctx.declare(Elected(2, 1))}, up=[1])
    stage.watch(ear)
    stage.start(2)
    stage.plan(
        Call(member=1, at=1.0),
        Pause(member=2, at=2.0),
        Resume(member=2, at=3.0),
        Crash(member=2, at=4.0),
        Restart(member=2, at=5.0),
        Leave(member=2, at=6.0),
    )
    stage.run()
    assert ear.declarations == [(1.0, 1, Elected(2, 1))]
    assert [(at, status) for at, _, status, _ in ear.changes] == [
        (0.0, "up"),
        (2.0, "paused"),
        (3.0, "up"),
        (4.0, "crashed"),
        (5.0, "up"),
        (6.0, "left"),
    ]
    assert stage.last_declared == 1.0


def test_an_observer_may_stop_the_run() -> None:
    class Impatient(Ear):
        def declared(self, world: object, member: object, outcome: object) -> None:
            stage.stop()

    stage = Stage(2, {"call": lambda ctx: ctx.declare(Elected(2, 1))})
    stage.watch(Impatient())
    stage.plan(Call(member=1, at=1.0), Call(member=2, at=1.0))
    assert stage.run() is Ended.STOPPED
    assert stage.journal == [(1.0, 1, "call")]


# Debug mode


def test_a_context_that_was_kept_raises_in_debug_mode_whatever_handler_it_came_from() -> None:
    kept: list[Context] = []
    script: Script = dict.fromkeys(
        ["start", "call", "leave", "suspect 2", "alive 2", "PING 1 from 2", "timer a"], kept.append
    )
    stage = Stage(2, script, debug=True, talkative=True)
    stage.tell(stage.members[1], "call")
    stage.tell(stage.members[1], "suspect", 2)
    stage.tell(stage.members[1], "alive", 2)
    arm("a", 2.0)(stage.members[1])
    ping(1, 1)(stage.members[2])
    stage.plan(Leave(member=1, at=3.0))
    stage.run()
    assert len(kept) == 2 + 6
    for ctx in kept:
        with pytest.raises(StaleContext):
            ctx.now()


def test_a_kept_context_raises_also_when_its_message_had_waited() -> None:
    kept: list[Context] = []
    stage = Stage(2, {"PING 1 from 2": kept.append}, debug=True)
    ping(1, 1)(stage.members[2])
    stage.plan(Pause(member=1, at=0.5), Resume(member=1, at=2.0))
    stage.run()
    with pytest.raises(StaleContext):
        kept[0].send(2, Ping())


@pytest.mark.parametrize("debug", [False, True])
def test_a_message_that_nobody_handles_is_our_own_bug(debug: bool) -> None:
    for multicast in (False, True):
        stage = Stage(3, debug=debug)
        if multicast:
            stage.members[1].multicast(Unheard())
        else:
            stage.members[1].send(2, Unheard())
        with pytest.raises(ProtocolBug, match="UNHEARD"):
            stage.run()


def test_an_unknown_member_is_named_with_those_known() -> None:
    with pytest.raises(UnknownName, match=r"unknown member '9'.*\(known: 1, 2\)"):
        Stage(2).member(9)


def test_starting_twice_starts_once() -> None:
    stage = Stage(2, talkative=True)
    stage.start()
    stage.start(1)
    assert stage.journal == [(0.0, 1, "start"), (0.0, 2, "start")]


def test_all_are_up_before_the_first_starts() -> None:
    stage = Stage(3, {"start": cry(1)}, up=[], talkative=True)
    stage.start()
    stage.run()
    assert len(stage.journal) == 3 + 6
