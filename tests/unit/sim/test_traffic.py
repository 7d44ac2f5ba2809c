"""Bytes on the network, of all members and of those that lead."""

from __future__ import annotations

from hustings.core.messages import Message
from hustings.core.outcome import Elected
from hustings.sim.traffic import NetworkBytes
from tests.unit.sim.worlds import Ping, Stage, cry, ping

SIZE = 100


def size(sender: int, incarnation: int, to: int | None, message: Message) -> int:
    assert isinstance(message, Ping)
    return SIZE + message.number


def test_bytes_per_second_of_a_member() -> None:
    stage = Stage(4)
    traffic = NetworkBytes(stage, size, 0.0)
    stage.let(1.0, 1, ping(5, 2))
    stage.let(2.0, 3, ping(0, 4))
    stage.let(3.0, 2, cry(1))  # to each of three others
    stage.run(10.0)
    assert traffic.metrics(stage)["bytes_per_s"] == (105 + 100 + 3 * 101) / 4 / stage.now


def test_bytes_of_a_member_while_it_leads() -> None:
    stage = Stage(3)
    traffic = NetworkBytes(stage, size, 0.0)
    leads, follows = Elected(1, 1), Elected(2, 2)
    stage.let(1.0, 1, ping(1, 2))  # before it leads
    stage.let(2.0, 1, lambda ctx: ctx.declare(leads))
    stage.let(3.0, 1, ping(2, 2))
    stage.let(4.0, 1, ping(3, 2))
    stage.let(6.0, 1, lambda ctx: ctx.declare(follows))
    stage.let(7.0, 1, ping(4, 2))
    stage.let(8.0, 1, ping(4, 2))
    stage.run(20.0)
    assert traffic.metrics(stage)["leader_bytes_per_s"] == (102 + 103) / 4.0


def test_what_comes_before_the_beginning_does_not_count() -> None:
    stage = Stage(2)
    traffic = NetworkBytes(stage, size, 5.0)
    stage.let(1.0, 1, ping(1, 2))
    stage.let(1.0, 2, lambda ctx: ctx.declare(Elected(2, 1)))
    stage.let(7.0, 2, ping(0, 1))
    stage.let(15.0, 1, lambda ctx: None)
    stage.run(15.0)
    assert traffic.metrics(stage) == {"bytes_per_s": 100 / 2 / 10, "leader_bytes_per_s": 100 / 10}


def test_without_a_leader_or_time_there_is_no_number() -> None:
    stage = Stage(2)
    traffic = NetworkBytes(stage, size, 0.0)
    assert traffic.metrics(stage) == {"bytes_per_s": None, "leader_bytes_per_s": None}
