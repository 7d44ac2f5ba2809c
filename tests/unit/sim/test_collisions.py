"""Loss that grows with traffic: l_eff = 1 - (1 - l)(1 - c)**(s - 1), s messages at once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.choice import MemberId
from hustings.sim.delay import Delay, Fixed, PerLink, Uniform
from hustings.sim.loss import Coins, Correlated, Uncorrelated
from hustings.sim.network import Network
from tests.unit.sim.laws import believable
from tests.unit.sim.worlds import Action, Script, Stage, cry, ping

BOTH = [Uncorrelated, Correlated]
ROUNDS = 1_500
SENDS: dict[str, Callable[[int, int], Action]] = {
    "multicast": lambda number, sender: cry(number),
    "single": lambda number, sender: ping(number, sender % 3 + 1),
}


class Witness(Uncorrelated):
    """Loses nothing, and writes down for how many messages at once it was asked."""

    asked: list[int]

    def __init__(self) -> None:
        super().__init__(0.0, 0.5)
        object.__setattr__(self, "asked", [])

    def at(self, overlapping: int) -> float:
        self.asked.append(overlapping)
        return 0.0


def colliding(model: type[Coins], p: float, c: float, delay: Delay | None = None) -> Network:
    return Network(delay=delay or Fixed(), loss=model(p, c))


@pytest.mark.parametrize("p, c, s", [(0.0, 0.5, 1), (0.1, 0.2, 3), (0.4, 0.0, 9), (0.3, 1.0, 2)])
def test_the_formula(p: float, c: float, s: int) -> None:
    loss = Uncorrelated(p, c)
    assert loss.at(s) == pytest.approx(1 - (1 - p) * (1 - c) ** (s - 1))


@pytest.mark.parametrize("model", BOTH)
@pytest.mark.parametrize("send", list(SENDS))
@pytest.mark.parametrize("senders", [1, 2, 3])
def test_simultaneous_senders_disturb_each_other(
    model: type[Coins], send: str, senders: int
) -> None:
    p, c = 0.1, 0.2
    stage = Stage(3, network=colliding(model, p, c))
    for number in range(ROUNDS):
        for sender in range(1, senders + 1):
            stage.let(2.0 * number, sender, SENDS[send](number, sender))
    arrived = len(stage.played())
    copies = 2 if send == "multicast" else 1
    lost = 1 - (1 - p) * (1 - c) ** (senders - 1)
    if model is Uncorrelated or send == "single":
        assert believable(arrived, ROUNDS * senders * copies, 1 - lost)
    else:  # all or none
        assert believable(arrived // 2, ROUNDS * senders, 1 - lost)


@pytest.mark.parametrize("model", BOTH)
@pytest.mark.parametrize("apart", [0.25, 0.5, 0.75])
def test_flights_that_overlap_in_part_disturb_each_other(model: type[Coins], apart: float) -> None:
    """A third leaves while the second is under way but not the first."""
    stage = Stage(3, network=colliding(model, 0.0, 1.0))
    for number, at in enumerate((0.0, apart, 1.0 + apart / 2, 5.0)):
        stage.let(at, number % 3 + 1, cry(number))
    assert {what for _, _, what in stage.played()} == {"PING 3 from 1"}


@pytest.mark.parametrize("send", list(SENDS))
def test_a_message_that_leaves_when_another_arrives_does_not_meet_it(send: str) -> None:
    stage = Stage(3, network=colliding(Uncorrelated, 0.0, 1.0))
    for number in range(4):  # each leaves when the one before arrives, and goes first as a fault
        stage.let(float(number), number % 3 + 1, SENDS[send](number, number % 3 + 1))
    numbers = [int(what.split()[1]) for _, _, what in stage.played()]
    assert sorted(set(numbers)) == [0, 1, 2, 3]


def test_a_message_sent_on_arrival_does_not_meet_those_that_arrive_with_it() -> None:
    """Two questions cross, and so do their two answers: two messages at once, each time."""
    loss = Witness()
    answers: Script = {f"PING 1 from {sender}": ping(2, sender) for sender in (1, 2)}
    stage = Stage(2, answers, Network(loss=loss))
    ping(1, 2)(stage.members[1])
    ping(1, 1)(stage.members[2])
    assert len(stage.played()) == 4
    assert loss.asked == [2, 2, 2, 2]


def brute(sends: list[tuple[float, MemberId]], delays: dict[MemberId, float]) -> list[int]:
    """For each message, in the order of arrival, how many were under way with it at some time."""
    flights = [(at, at + delays[sender]) for at, sender in sends]
    counts = [
        (arrives, leaves, sum(begin < arrives and leaves < end for begin, end in flights))
        for leaves, arrives in flights
    ]
    counts.sort(key=lambda count: count[:2])
    return [count for _, _, count in counts]


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0, 1.25, 2.0, 3.0]), st.integers(1, 3))),
    st.tuples(*[st.sampled_from([0.5, 1.0, 1.5])] * 3),
)
def test_the_number_under_way_at_once_is_counted_right(
    sends: list[tuple[float, MemberId]], each: tuple[float, ...]
) -> None:
    """Messages to member 4, on links of different length, against looking at all pairs."""
    delays = dict(zip((1, 2, 3), each, strict=True))
    loss = Witness()
    table = {(sender, 4): delay for sender, delay in delays.items()}
    stage = Stage(4, network=Network(delay=PerLink(table), loss=loss))
    sends.sort(key=lambda send: send[0])
    for at, sender in sends:
        stage.let(at, sender, ping(1, 4))
    stage.run()
    assert sorted(loss.asked) == sorted(brute(sends, delays))
    assert all(one <= other for one, other in pairwise([at for at, _, _ in stage.journal]))


@pytest.mark.parametrize("copies", [0.0, 1.0])
def test_a_multicast_counts_as_one_message(copies: float) -> None:
    loss = Witness()
    stage = Stage(5, network=Network(loss=loss, duplicate=copies))
    cry(1)(stage.members[1])
    stage.run()
    assert set(loss.asked) == {1}


@pytest.mark.parametrize("delay", [Fixed(0.5), Uniform(0.4, 0.5)])
def test_a_correlated_multicast_reaches_all_or_nobody_with_collisions_too(delay: Delay) -> None:
    """One coin for the message, tossed when the first copy lands, and not one for each receiver."""
    network = Network(delay=delay, loss=Correlated(0.3, 0.05))
    stage = Stage(4, network=network)
    for number in range(400):
        stage.let(float(number), 1, cry(2 * number))
        stage.let(number + 0.25, 2, cry(2 * number + 1))
    heard: dict[str, int] = {}
    for _, _, what in stage.played():
        heard[what] = heard.get(what, 0) + 1
    assert set(heard.values()) == {3}
    assert 300 < len(heard) < 700
