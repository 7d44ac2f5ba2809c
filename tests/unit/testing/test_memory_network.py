"""The network in memory: which datagrams arrive, when, in which order, and who is told if not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from hustings.core.errors import BadInput
from hustings.net.transport import Receiver, Transport
from hustings.net.wire import group_tag
from hustings.testing.clock import MemberProcess
from hustings.testing.memory_network import BUFFER, Conditions, MemoryTransport
from tests.unit.testing.wires import TAG, A, B, C, Heard, Net, packet


@pytest.fixture
def net() -> Iterator[Net]:
    made = Net(Conditions(0.01))
    made.open(A, B)
    yield made
    made.close()


def test_a_memory_port_is_a_port(net: Net) -> None:
    port: Transport = net.ports[A]
    receiver: Receiver = net.heard[A]
    assert (port.endpoint, port.reaches_all) == (A, False)
    with pytest.raises(BadInput, match="cannot share a port"):
        port.attach(TAG, receiver)


# Datagrams


def test_datagrams_take_one_delay_and_keep_their_order(net: Net) -> None:
    net.send(A, B, 3)
    net.run()
    assert net.heard[B].datagrams == [(0.01, 0, A), (0.01, 1, A), (0.01, 2, A)]
    assert net.heard[A].datagrams == []
    assert net.board.tally == Counter(sent=3, delivered=3)


def test_where_nobody_listens_the_sender_is_told_after_one_delay(net: Net) -> None:
    net.send(A, C)
    net.run()
    assert net.heard[A].refusals == [(0.01, C)]
    assert net.heard[B].refusals == []


def test_a_machine_that_is_gone_refuses_nothing(net: Net) -> None:
    net.ports[B].kill(dark=True)
    net.send(A, B)
    net.run()
    assert net.heard[A].refusals == []
    net.open(B)
    net.send(A, B)
    net.run()
    assert net.heard[B].numbers == [0]


def test_a_refusal_does_not_pass_a_cut_on_the_way_back(net: Net) -> None:
    net.board.cut(C, A)
    net.send(A, C)
    net.run()
    assert net.heard[A].refusals == []


def test_delays_between_two_bounds_let_datagrams_overtake() -> None:
    net = Net(Conditions((0.01, 0.03)))
    net.open(A, B)
    net.send(A, B, 100)
    net.run()
    times = [time for time, _, _ in net.heard[B].datagrams]
    assert 0.01 <= min(times) < 0.012
    assert 0.028 < max(times) <= 0.03
    assert sorted(net.heard[B].numbers) == list(range(100)) != net.heard[B].numbers
    net.close()


@pytest.mark.parametrize(
    "conditions, expected",
    [(Conditions(loss=0.8), 200), (Conditions(duplicate=0.8), 1800)],
)
def test_loss_and_copies_have_their_probability(conditions: Conditions, expected: int) -> None:
    """1000 draws of probability 0.8: four standard deviations are 51."""
    net = Net(conditions)
    net.open(A, B)
    net.send(A, B, 1000)
    net.run()
    assert abs(len(net.heard[B].datagrams) - expected) <= 51
    net.close()


def test_reordering_holds_some_up_and_loses_none() -> None:
    net = Net(Conditions(0.01, reorder=0.2))
    net.open(A, B)
    for number in range(200):
        net.loop.call_at(number / 1000, net.ports[A].send, B, packet(number))
    net.run(2)
    numbers = net.heard[B].numbers
    assert sorted(numbers) == list(range(200))
    late = sum(1 for before, after in pairwise(numbers) if before > after)
    assert 10 <= late <= 60
    net.close()


def test_a_cut_works_one_way(net: Net) -> None:
    net.board.cut(A, B)
    net.send(A, B)
    net.send(B, A)
    net.run()
    assert (net.heard[B].numbers, net.heard[A].numbers) == ([], [0])


def test_a_cut_stops_what_is_under_way(net: Net) -> None:
    net.send(A, B)
    net.loop.call_at(0.005, net.board.cut, A, B)
    net.run()
    assert net.heard[B].numbers == []


def test_a_partition_works_both_ways_until_it_is_healed(net: Net) -> None:
    net.open(C)
    net.board.partition([A], [B, C])
    for source, to in [(A, B), (B, A), (C, A), (B, C), (C, B)]:
        net.send(source, to)
    net.run()
    assert [len(net.heard[each].datagrams) for each in (A, B, C)] == [0, 1, 1]
    net.board.heal()
    net.send(A, B)
    net.run()
    assert len(net.heard[B].datagrams) == 2


def test_what_happens_on_one_link_does_not_depend_on_another() -> None:
    seen = []
    for others in (0, 50):
        net = Net(Conditions((0.01, 0.03), loss=0.3, duplicate=0.2, reorder=0.2))
        net.open(A, B, C)
        for number in range(50):
            net.send(A, C, others)
            net.send(C, B, others)
            net.ports[A].send(B, packet(number))
        net.run()
        seen.append([each for each in net.heard[B].datagrams if each[2] == A])
        net.close()
    assert seen[0] == seen[1]


def test_every_link_has_its_own_fortune() -> None:
    net = Net(Conditions(loss=0.5))
    net.open(A, B, C)
    for source, to in [(A, B), (A, C), (B, A)]:
        net.send(source, to, 50)
    net.run()
    seen = [net.heard[each].numbers for each in (A, B, C)]
    assert seen[0] != seen[1] != seen[2] != seen[0]
    net.close()


def test_another_seed_is_another_network() -> None:
    seen = []
    for seed in (1, 1, 2):
        net = Net(Conditions(loss=0.5), seed)
        net.open(A, B)
        net.send(A, B, 50)
        net.run()
        seen.append(net.heard[B].numbers)
        net.close()
    assert seen[0] == seen[1] != seen[2]


def test_everybody_can_be_reached_at_once_if_the_network_multicasts(net: Net) -> None:
    net.open(C)
    net.ports[A].send_all(packet(1))
    net.board.multicast = True
    net.ports[A].send_all(packet(2))
    net.run()
    assert [net.heard[each].numbers for each in (A, B, C)] == [[], [2], [2]]


def test_faults_of_a_port_add_to_those_of_the_network(net: Net) -> None:
    net.ports[A].faults.delay = 0.5
    net.ports[B].faults.cut([A], to=True, by=False)
    net.send(A, B)
    net.send(B, A)
    net.run()
    assert (net.heard[B].datagrams, net.heard[A].datagrams) == ([(0.51, 0, A)], [])
    net.ports[B].faults.cut([A])
    net.send(A, B)
    net.run()
    assert len(net.heard[B].datagrams) == 1


def test_a_port_takes_its_place_alone(net: Net) -> None:
    with pytest.raises(BadInput, match=r"127\.0\.0\.1:1 is in use by another member"):
        MemoryTransport(net.board, A)
    net.ports[A].kill()
    net.open(A)


def test_a_closed_port_neither_sends_nor_hears(net: Net) -> None:
    net.send(B, A)
    net.loop.run_until_complete(net.ports[A].close())
    net.send(A, B)
    net.run()
    assert net.heard[A].datagrams == net.heard[B].datagrams == []


def test_frames_of_another_group_are_anybodys_to_count(net: Net) -> None:
    other = Heard(net.loop)
    net.ports[B].attach(group_tag("other"), other)
    net.ports[A].send(B, b"H\x02\x00" + group_tag("other") + b"7")
    net.ports[A].send(B, b"H\x02\x00" + group_tag("third") + b"8")
    net.run()
    assert (other.numbers, net.heard[B].numbers) == ([7], [8])
    net.ports[B].detach(group_tag("other"))
    net.ports[B].detach(group_tag("other"))
    net.ports[A].send(B, b"H\x02\x00" + group_tag("other") + b"9")
    net.run()
    assert (other.numbers, net.heard[B].numbers) == ([7], [8, 9])


def test_what_comes_for_a_held_member_waits_as_far_as_there_is_room(net: Net) -> None:
    process = MemberProcess("c")
    process.context().run(net.open, C)
    net.loop.hold(process)
    room = BUFFER // len(packet(100))
    for number in range(100, 1000):
        net.ports[A].send(C, packet(number))
    for _ in range(room):
        net.ports[A].send(C, packet(999))
    net.run()
    assert net.heard[C].datagrams == []
    net.loop.release(process)
    net.run()
    assert net.heard[C].numbers[:900] == list(range(100, 1000))
    assert len(net.heard[C].numbers) == room
    assert net.board.tally["overflowed"] == 900


def test_what_was_read_makes_room(net: Net) -> None:
    count = BUFFER // len(packet(10)) // 2
    for _ in range(3):
        for _ in range(count):
            net.ports[A].send(B, packet(10))
        net.run()
    assert len(net.heard[B].datagrams) == 3 * count


# Bad input


@pytest.mark.parametrize(
    "made, sentence",
    [
        (lambda: Conditions(loss=-0.1), "loss must lie between 0 and 1, not -0.1"),
        (lambda: Conditions(duplicate=2), "duplicate must lie between 0 and 1, not 2"),
        (lambda: Conditions(reorder=float("nan")), "reorder must lie between 0 and 1, not nan"),
        (lambda: Conditions(-1.0), "delay must be seconds"),
        (lambda: Conditions((0.2, 0.1)), "the least and the most"),
        (lambda: Conditions(float("inf")), "delay must be seconds"),
    ],
)
def test_bad_conditions_get_a_sentence(made: Callable[[], Conditions], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        made()
