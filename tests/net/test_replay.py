"""Each frame once: against a twin that remembers everything, and through a gate."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from hustings.net.filter import ReplayProtection
from hustings.net.limits import Limits, Reason
from hustings.net.wire import MAX_NUMBER, Direction, Frame
from tests.net.parts import KEY, PingMsg, gate

WINDOW = 64
UDP = Direction.DATAGRAM


class Twin:
    """The same rule with all the memory it likes."""

    def __init__(self) -> None:
        self.life: dict[int, int] = {}
        self.came: dict[tuple[int, int], set[int]] = {}

    def check(self, sender: int, incarnation: int, number: int) -> Reason | None:
        if incarnation < self.life.get(sender, 0):
            return Reason.OLD_INCARNATION
        self.life[sender] = incarnation
        came = self.came.setdefault((sender, incarnation), set())
        if came and number <= max(came) - WINDOW:
            return Reason.TOO_LATE
        if number in came:
            return Reason.REPLAYED
        came.add(number)
        return None


NUMBERS = st.integers(1, 200) | st.sampled_from([1000, 1063, 1064, MAX_NUMBER])


@given(st.lists(st.tuples(st.integers(1, 2), st.integers(1, 3), NUMBERS), max_size=60))
def test_the_window_is_a_set_with_a_bound(frames: list[tuple[int, int, int]]) -> None:
    replays, twin = ReplayProtection(WINDOW, most=10), Twin()
    for frame in frames:
        assert replays.check(*frame) is twin.check(*frame), frame


def test_memory_does_not_grow() -> None:
    replays = ReplayProtection(WINDOW, most=100)
    for sender in range(1000):
        for number in (1, 50, MAX_NUMBER, MAX_NUMBER - 1):
            assert replays.check(sender, 1, number) is None
    assert len(replays) == 100
    assert replays.forgotten == 900
    assert all(bits.bit_length() <= WINDOW for _, _, bits in replays._seen.values())


def test_who_was_silent_longest_is_forgotten_first() -> None:
    replays = ReplayProtection(WINDOW, most=2)
    for sender in (1, 2, 1, 3):
        replays.check(sender, 1, 5 + len(replays))
    assert replays.check(1, 1, 5) is Reason.REPLAYED
    assert replays.check(2, 1, 6) is None  # was forgotten


def test_out_of_order_within_the_window_is_accepted_once() -> None:
    sender = gate(1, KEY)
    receiver = gate(2, KEY, limits=Limits(replay_window=64, burst=10_000))
    frames = [sender.outgoing(PingMsg(k)) for k in range(64)]
    order = list(range(64))
    random.Random(1).shuffle(order)
    for turn in range(3):
        for place in order:
            frame = frames[place]
            assert isinstance(frame, Frame)
            got = receiver.incoming(frame.data, UDP, 0.0)
            assert (got is not None) == (turn == 0)
    assert receiver.counters[Reason.REPLAYED] == receiver.counters.total == 128


def test_behind_the_window_nothing_is_accepted() -> None:
    sender = gate(1, KEY)
    receiver = gate(2, KEY, limits=Limits(replay_window=64))
    frames = [sender.outgoing(PingMsg(k)) for k in range(66)]
    assert all(isinstance(frame, Frame) for frame in frames)
    data = [frame.data for frame in frames if frame is not None]
    assert receiver.incoming(data[65], UDP, 0.0) is not None
    assert receiver.incoming(data[2], UDP, 0.0) is not None
    assert receiver.incoming(data[1], UDP, 0.0) is None
    assert receiver.counters[Reason.TOO_LATE] == receiver.counters.total == 1


def test_a_new_life_begins_anew_and_ends_the_old_one() -> None:
    old, new, receiver = gate(1, KEY), gate(1, KEY, incarnation=2), gate(2, KEY)
    first, late, fresh = (
        old.outgoing(PingMsg(1)),
        old.outgoing(PingMsg(2)),
        new.outgoing(PingMsg(3)),
    )
    assert first is not None
    assert late is not None
    assert fresh is not None
    assert receiver.incoming(first.data, UDP, 0.0) is not None
    assert receiver.incoming(fresh.data, UDP, 0.0) is not None
    assert receiver.incoming(late.data, UDP, 0.0) is None
    assert receiver.counters[Reason.OLD_INCARNATION] == 1
    receiver.forget(1)
    assert receiver.incoming(late.data, UDP, 0.0) is not None


def test_what_is_refused_leaves_no_mark() -> None:
    """A frame that another member was meant to get must not hide the one that comes for us."""
    sender, receiver = gate(1, KEY), gate(2, KEY)
    frame = sender.outgoing(PingMsg(1), to=2)
    assert frame is not None
    changed = frame.data[:-1] + bytes((frame.data[-1] ^ 1,))
    assert receiver.incoming(changed, UDP, 0.0) is None
    assert receiver.incoming(frame.data, UDP, 0.0) is not None
