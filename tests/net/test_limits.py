"""Limits are read with care, rates hold on any clock, and everything refused is counted."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.errors import BadInput, UnknownName
from hustings.core.messages import Message
from hustings.net.control_messages import CONTROL_MESSAGES, ConfigMsg, ProbeMsg, ProbeReplyMsg
from hustings.net.filter import FrameFilter
from hustings.net.limits import Counters, Limits, Rates, Reason
from hustings.net.wire import Direction, WireCodec
from tests.net.parts import KEY, OTHER_KEY, PingMsg, gate

UDP = Direction.DATAGRAM


def test_limits_are_read_from_texts_and_numbers() -> None:
    limits = Limits.parse({"datagram": "1000", "rate": 20, "members": 50, "view": "50"})
    assert (limits.datagram, limits.rate, limits.members, limits.view) == (1000, 20.0, 50, 50)
    assert Limits.parse({}) == Limits()
    assert Limits().broken_rules() == []


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(BadInput) as refusal:
        Limits.parse({"datagram": 1201, "rate": 0, "inbox": "many", "burst": True})
    for part in ("datagram=1201", "<= 1200", "rate=0", "inbox='many'", "burst=True"):
        assert part in str(refusal.value)
    with pytest.raises(UnknownName, match="unknown limit 'datagramm': did you mean 'datagram'"):
        Limits.parse({"datagramm": 1})
    with pytest.raises(
        BadInput, match=r"transfer must be .* \(1200 bytes\); view must be .* \(5\)"
    ):
        Limits.parse({"transfer": 600, "members": 5, "view": 6})


@pytest.mark.parametrize("value", ["nan", "inf", float("nan"), -1, "1e400", None, [], "9" * 400])
def test_a_rate_is_a_number(value: object) -> None:
    with pytest.raises(BadInput, match="limit rate="):
        Limits.parse({"rate": value})


@given(
    st.lists(st.floats(0, 3), max_size=80),
    st.floats(0.5, 20),
    st.integers(1, 10),
)
def test_a_rate_is_kept_in_every_interval(gaps: list[float], rate: float, burst: int) -> None:
    """However messages come: between any two moments no more than burst + rate * time pass."""
    rates, now, passed = Rates(rate, burst, most=4), 0.0, []
    for gap in gaps:
        now += gap
        if rates.allow("a", now):
            passed.append(now)
    for first, start in enumerate(passed):
        for last, end in enumerate(passed[first:], first):
            assert last - first + 1 <= burst + rate * (end - start) + 1e-6


def test_who_keeps_to_the_rate_is_never_refused() -> None:
    rates = Rates(rate=10.0, burst=1, most=4)
    assert all(rates.allow("a", k * 0.125) for k in range(1000))


def test_peers_do_not_share_a_rate_and_time_does_not_run_back() -> None:
    rates = Rates(rate=1.0, burst=1, most=4)
    assert rates.allow("a", 10.0)
    assert rates.allow("b", 10.0)
    assert not rates.allow("a", 10.0)
    assert not rates.allow("a", 5.0)
    assert not rates.allow("a", 10.5)
    assert rates.allow("a", 11.0)


def test_the_table_of_rates_is_bounded() -> None:
    rates = Rates(rate=1.0, burst=1, most=3)
    for peer in range(100):
        assert rates.allow(peer, 0.0)
    assert len(rates) == 3
    assert not rates.allow(99, 0.0)
    assert rates.allow(0, 0.0)  # forgotten, and so trusted again


def test_every_reason_is_counted_under_its_own_label() -> None:
    counters = Counters()
    for times, reason in enumerate(Reason):
        counters.count(reason, times)
    assert counters.mapping() == {reason.value: times for times, reason in enumerate(Reason)}
    assert counters.total == sum(range(len(Reason)))
    assert len(counters.mapping()) == len(Reason)


def sent(sender: FrameFilter, number: int = 1) -> bytes:
    frame = sender.outgoing(PingMsg(number))
    assert frame is not None
    return frame.data


def test_a_gate_counts_a_flood_and_lets_others_through() -> None:
    flooder, other = gate(1, KEY), gate(3, KEY)
    receiver = gate(2, KEY, limits=Limits(rate=10.0, burst=5))
    got = [receiver.incoming(sent(flooder), UDP, 0.0) for _ in range(100)]
    assert sum(each is not None for each in got) == 5
    assert receiver.counters[Reason.RATE] == 95
    assert receiver.incoming(sent(other), UDP, 0.0) is not None
    assert receiver.incoming(sent(flooder), UDP, 0.1) is not None


def test_who_has_no_key_cannot_use_up_a_rate() -> None:
    """Neither by frames that he makes up nor by frames that he plays again."""
    peer, stranger = gate(1, KEY), gate(1, OTHER_KEY)
    receiver = gate(2, KEY, limits=Limits(rate=10.0, burst=5))
    first = sent(peer)
    assert receiver.incoming(first, UDP, 0.0) is not None
    for _ in range(100):
        assert receiver.incoming(sent(stranger), UDP, 0.0) is None
        assert receiver.incoming(first, UDP, 0.0) is None
    assert receiver.counters[Reason.UNKNOWN_KEY] == receiver.counters[Reason.REPLAYED] == 100
    assert receiver.incoming(sent(peer), UDP, 0.0) is not None
    assert receiver.counters[Reason.RATE] == 0


@pytest.mark.parametrize("said", [ProbeMsg(7), ConfigMsg(7, True, True, 1, True, ())])
def test_what_is_heard_whatever_its_number_has_a_rate_of_its_own(said: Message) -> None:
    """It can be played again, so it must not use up what its sender may say."""
    dialect = WireCodec("ping", (PingMsg, *CONTROL_MESSAGES))
    peer = gate(1, KEY, dialect=dialect)
    receiver = gate(2, KEY, dialect=dialect, limits=Limits(rate=10.0, burst=5))
    recorded = peer.outgoing(said, 2)
    assert recorded is not None
    got = [receiver.incoming(recorded.data, UDP, 0.0) for _ in range(100)]
    assert sum(each is not None for each in got) == 1 + 5
    assert receiver.counters[Reason.RATE] == 94
    assert receiver.incoming(sent(peer), UDP, 0.0) is not None, "the sender is heard"
    again = peer.outgoing(said, 2)
    assert again is not None
    assert receiver.incoming(again.data, UDP, 0.0) is not None, "and asks again"


def test_an_answer_to_a_probe_is_always_heard() -> None:
    """Whoever plays answers back in great numbers cannot keep the true one out."""
    dialect = WireCodec("ping", (PingMsg, *CONTROL_MESSAGES))
    peer = gate(1, KEY, dialect=dialect)
    receiver = gate(2, KEY, dialect=dialect, limits=Limits(rate=10.0, burst=5))
    recorded, true = (peer.outgoing(ProbeReplyMsg(number), 2) for number in (7, 8))
    assert recorded is not None
    assert true is not None
    for _ in range(100):
        receiver.incoming(recorded.data, UDP, 0.0)
    assert receiver.incoming(true.data, UDP, 0.0) is not None
    assert receiver.counters[Reason.RATE] == 0


def test_what_is_in_doubt_is_within_a_rate() -> None:
    peer, receiver = gate(1), gate(2, limits=Limits(rate=10.0, burst=5))
    got = [receiver.incoming(sent(peer), UDP, 0.0, lambda got: True) for _ in range(100)]
    assert sum(each is not None for each in got) == 5


def test_a_gate_counts_what_it_cannot_send_and_whom_it_forgets() -> None:
    small = Limits(members=1, view=1, transfer=2000)
    receiver = gate(9, KEY, limits=small)
    assert receiver.outgoing(PingMsg(1, body=bytes(3000))) is None
    assert receiver.counters[Reason.UNSENDABLE] == 1
    for me in range(1, 6):
        assert receiver.incoming(sent(gate(me, KEY)), UDP, 0.0) is not None
    assert receiver.counters[Reason.SENDERS_FORGOTTEN] == 3


def test_the_guide_explains_every_reason_and_every_limit_that_an_attacker_can_reach() -> None:
    page = (Path(__file__).parents[2] / "docs/guide/04-security.md").read_text()
    assert [reason.value for reason in Reason if f"`{reason.value}`" not in page] == []
    for limit in ("incomplete", "connections", "members", "newcomers", "rate"):
        assert f"| `{limit}`" in page
