"""Connections in memory: frames that no datagram holds, and watches that see a process end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from hustings.net.transport import Endpoint
from hustings.net.wire import Direction
from hustings.testing.clock import MemberProcess
from hustings.testing.memory_network import BACKLOG, FAREWELL, Conditions
from tests.unit.testing.wires import A, B, C, Net, packet


@pytest.fixture
def net() -> Iterator[Net]:
    made = Net(Conditions(0.01))
    made.open(A, B)
    yield made
    made.close()


# Streams


def test_a_frame_takes_a_connection_and_is_a_question(net: Net) -> None:
    net.ports[A].stream(B, packet(1))
    net.run()
    assert net.heard[B].frames == [(0.03, b"1", Direction.QUESTION)]
    assert net.ports[B].lines == {}


def test_a_frame_gets_through_loss_and_short_cuts() -> None:
    net = Net(Conditions(0.01, loss=0.5))
    net.open(A, B)
    net.board.partition([A], [B])
    for number in range(20):
        net.ports[A].stream(B, packet(number))
    net.loop.call_at(1.0, net.board.heal)
    net.run(20)
    assert sorted(data for _, data, _ in net.heard[B].frames) == sorted(
        str(number).encode() for number in range(20)
    )
    net.close()


def test_a_frame_to_nobody_or_through_a_long_cut_is_lost(net: Net) -> None:
    net.ports[A].stream(C, packet(1))
    net.board.cut(B, A)
    net.ports[A].stream(B, packet(2))
    net.loop.call_at(11.0, net.board.heal)
    net.run(30)
    assert net.heard[B].frames == []
    assert net.ports[B].lines == {}


def test_no_more_connections_wait_for_a_held_member_than_a_kernel_keeps(net: Net) -> None:
    process = MemberProcess("c")
    process.context().run(net.open, C)
    net.loop.hold(process)
    for number in range(BACKLOG + 10):
        net.ports[A].stream(C, packet(number))
    net.run()
    net.loop.release(process)
    net.run()
    assert [int(data) for _, data, _ in net.heard[C].frames] == list(range(BACKLOG))


def test_what_a_port_has_begun_waits_with_its_owner_whoever_asked(net: Net) -> None:
    process = MemberProcess("c")
    process.context().run(net.open, C)
    net.ports[C].stream(B, packet(1))
    net.loop.hold(process)
    net.run()
    assert net.heard[B].frames == []
    net.loop.release(process)
    net.run()
    assert len(net.heard[B].frames) == 1


# Watches


@dataclass
class Watching:
    """What a watch has said."""

    net: Net
    told: list[tuple[float, bool]] = field(default_factory=list)

    def gone(self, certain: bool) -> None:
        self.told.append((round(self.net.loop.time(), 6), certain))


def watch(net: Net, to: Endpoint = B, leisure: float = 0.0) -> Watching:
    made = Watching(net)
    net.ports[A].watch(to, lambda: packet(5), made.gone, lambda: leisure)
    net.run(2)
    return made


def test_a_watch_opens_with_a_frame_and_then_says_nothing(net: Net) -> None:
    watching = watch(net)
    net.run(100)
    assert net.heard[B].frames == [(0.03, b"5", Direction.QUESTION)]
    assert watching.told == []


def test_a_watch_knows_of_a_kill_after_three_delays(net: Net) -> None:
    watching = watch(net)
    net.ports[B].kill()
    net.run()
    assert watching.told == [(2.03, True)]


def test_who_has_leisure_looks_later_whether_anybody_is_there(net: Net) -> None:
    watching = watch(net, leisure=0.5)
    net.ports[B].kill()
    net.run()
    assert watching.told == [(2.53, True)]


def test_a_watch_knows_nothing_of_a_machine_that_is_gone(net: Net) -> None:
    watching = watch(net)
    net.ports[B].kill(dark=True)
    net.run(100)
    assert watching.told == []


def test_a_watch_does_not_mind_a_cut_or_a_pause(net: Net) -> None:
    process = MemberProcess("c")
    process.context().run(net.open, C)
    net.loop.hold(process)
    watching = watch(net, C)
    net.board.partition([A], [C])
    net.run(10)
    net.board.heal()
    net.loop.release(process)
    net.run(10)
    assert watching.told == []
    assert len(net.heard[C].frames) == 1


def test_a_kill_behind_a_cut_is_known_when_it_heals(net: Net) -> None:
    watching = watch(net)
    net.board.partition([A], [B])
    net.ports[B].kill()
    net.run(5)
    assert watching.told == []
    net.board.heal()
    net.run(3)
    (when, certain), *more = watching.told
    assert (7 <= when <= 10, certain, more) == (True, True, [])


def test_a_kill_behind_a_long_cut_is_never_known(net: Net) -> None:
    watching = watch(net)
    net.board.partition([A], [B])
    net.ports[B].kill()
    net.run(FAREWELL + 5)
    net.board.heal()
    net.run(100)
    assert watching.told == []


def test_a_cut_as_the_question_is_asked_again_leaves_it_open(net: Net) -> None:
    watching = watch(net)
    net.ports[B].kill()
    net.loop.call_later(0.015, net.board.partition, [A], [B])
    net.run()
    assert watching.told == [(2.26, False)]


def test_a_quick_restart_is_no_end_and_is_greeted_anew(net: Net) -> None:
    watching = watch(net)
    net.ports[B].kill()
    net.open(B)
    net.run(10)
    assert watching.told == []
    assert [data for _, data, _ in net.heard[B].frames] == [b"5"]


def test_a_watch_of_nobody_is_tried_again_and_says_nothing(net: Net) -> None:
    watching = watch(net, C)
    assert watching.told == []
    net.open(C)
    net.run(10)
    assert len(net.heard[C].frames) == 1
    net.ports[C].kill()
    net.run()
    assert [certain for _, certain in watching.told] == [True]


def test_a_watch_that_is_not_wanted_takes_its_time(net: Net) -> None:
    net.heard[B].accepts = False
    watching = watch(net)
    net.run(60)
    assert watching.told == []
    assert 8 <= len(net.heard[B].frames) <= 40


def test_a_watch_that_is_cancelled_is_forgotten_at_the_far_end(net: Net) -> None:
    told = Watching(net)
    kept = net.ports[A].watch(B, lambda: None, told.gone, lambda: 0.0)
    net.run(2)
    assert len(net.ports[B].lines) == 1
    kept.cancel()
    net.run()
    assert net.ports[B].lines == {}
    net.ports[B].kill()
    net.run()
    assert told.told == []
    assert net.heard[B].frames == []  # and hello may have nothing to say


def test_a_caller_that_is_killed_is_forgotten_at_the_far_end(net: Net) -> None:
    watch(net)
    net.ports[A].kill()
    assert net.ports[B].lines == {}
