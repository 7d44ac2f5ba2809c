"""The edges of what a member takes from the network: the last that is fine, the first that is not.

Replay windows, rates and budgets, and frames on streams.
"""

from __future__ import annotations

import pytest

from hustings.core.errors import BadInput
from hustings.net.filter import LEAP, ReplayProtection
from hustings.net.limits import Budget, Counters, Limits, Rates, Reason
from hustings.net.tcp import HEAD, PREFIX, StreamDecoder, on_stream, refusal_of
from hustings.net.wire import (
    CLEAR,
    SEALED,
    SIGNED,
    VERSION,
    group_tag,
    tag_of,
)
from tests.net.parts import GROUP, KEY, OTHER_KEY, wire

# ReplayProtection: what is new, and where its sender is asked


def test_a_number_is_far_ahead_only_beyond_the_leap_and_only_in_the_same_life() -> None:
    replays = ReplayProtection(window=64, most=10)
    assert replays.leaps(1, 5, LEAP * 2) is False, "nothing is known of it: it can be anywhere"
    replays.check(1, 5, 10)
    assert not replays.leaps(1, 5, 10 + LEAP)
    assert replays.leaps(1, 5, 11 + LEAP)
    assert replays.leaps(1, 6, 1)
    assert not replays.leaps(1, 4, 11 + LEAP), "an old life moves nothing"


def test_a_sender_has_lost_count_after_four_refusals_in_a_row() -> None:
    replays = ReplayProtection(window=64, most=10)
    replays.check(1, 5, 10)
    for count in range(1, 5):
        assert not replays.lost_count(1)
        assert replays.check(1, 5, 10) is Reason.REPLAYED, count
    assert replays.lost_count(1)
    assert not replays.lost_count(2)
    assert replays.check(1, 5, 11) is None
    assert not replays.lost_count(1), "something new came"
    for _ in range(3):
        replays.check(1, 5, 10)
    assert not replays.lost_count(1), "counted anew"


def test_what_a_sender_confirms_further_on_keeps_what_came_before_within_the_window() -> None:
    replays = ReplayProtection(window=64, most=10)
    replays.check(1, 5, 10)
    replays.confirm(1, 5, 12)
    assert replays.check(1, 5, 12) is Reason.REPLAYED
    assert replays.check(1, 5, 11) is None
    assert replays.check(1, 5, 10) is Reason.REPLAYED


def test_a_sender_that_lost_count_begins_where_it_says_and_all_before_is_seen() -> None:
    replays = ReplayProtection(window=64, most=10)
    replays.check(1, 5, 1000)
    for _ in range(4):
        replays.check(1, 5, 7)
    assert replays.lost_count(1)
    replays.confirm(1, 5, 7)
    assert not replays.lost_count(1)
    assert replays.check(1, 5, 8) is None
    assert replays.check(1, 5, 7) is Reason.REPLAYED
    assert replays.check(1, 5, 1) is Reason.REPLAYED


def test_a_sender_that_has_not_lost_count_cannot_be_moved_back_in_its_life() -> None:
    replays = ReplayProtection(window=64, most=10)
    replays.check(1, 5, 1000)
    replays.confirm(1, 5, 7)
    assert replays.check(1, 5, 8) is Reason.TOO_LATE
    replays.confirm(1, 5, 1000)
    assert replays.check(1, 5, 999) is None, "where it is what was expected nothing changes"


def test_who_lost_count_and_is_where_it_was_is_heard_from_there_on_only() -> None:
    replays = ReplayProtection(window=64, most=10)
    replays.check(1, 5, 10)
    for _ in range(4):
        replays.check(1, 5, 10)
    replays.confirm(1, 5, 10)
    assert replays.check(1, 5, 9) is Reason.REPLAYED
    assert replays.check(1, 5, 11) is None


def test_of_each_sender_no_more_bits_are_kept_than_the_window_has() -> None:
    replays = ReplayProtection(window=64, most=10)
    for number in range(1, 1000):
        replays.check(1, 5, number)
    assert replays._seen[1][2].bit_length() == 64


def test_an_older_life_that_is_confirmed_is_the_life_now() -> None:
    replays = ReplayProtection(window=64, most=10)
    replays.check(1, 5, 1000)
    replays.confirm(1, 4, 20)
    assert replays.incarnation(1) == 4
    assert replays.check(1, 4, 21) is None
    assert replays.check(1, 4, 19) is Reason.REPLAYED


def test_whoever_is_forgotten_is_heard_from_its_first_number_on() -> None:
    replays = ReplayProtection(window=64, most=10)
    for _ in range(6):
        replays.check(1, 5, 1000)
    assert replays.lost_count(1)
    replays.forget(1)
    replays.forget(9)
    assert (replays.incarnation(1), len(replays), replays.lost_count(1)) == (0, 0, False)
    assert replays.check(1, 1, 1) is None


def test_who_makes_room_is_counted_and_takes_its_refusals_along() -> None:
    replays = ReplayProtection(window=64, most=2)
    for _ in range(5):
        replays.check(1, 1, 1)
    replays.check(2, 1, 1)
    assert (replays.forgotten, len(replays)) == (0, 2)
    replays.check(3, 1, 1)
    assert (replays.forgotten, len(replays), replays.incarnation(1)) == (1, 2, 0)
    assert not replays.lost_count(1)


def test_the_window_has_exactly_its_size() -> None:
    replays = ReplayProtection(window=64, most=2)
    replays.check(1, 1, 100)
    assert replays.check(1, 1, 37) is None
    assert replays.check(1, 1, 36) is Reason.TOO_LATE
    replays.check(1, 1, 163)  # 63 ahead: 100 is the last that is remembered
    assert replays.check(1, 1, 100) is Reason.REPLAYED
    replays.check(1, 1, 164)
    assert replays.check(1, 1, 100) is Reason.TOO_LATE
    assert replays.check(1, 1, 101) is None


# Limits


def test_tokens_come_back_up_to_the_burst_and_no_further() -> None:
    rates = Rates(rate=2.0, burst=3, most=4)
    assert [rates.allow("a", 0.0) for _ in range(4)] == [True, True, True, False]
    assert [rates.allow("a", 0.5) for _ in range(2)] == [True, False]
    assert [rates.allow("a", 100.0) for _ in range(4)] == [True, True, True, False]


def test_a_clock_that_runs_back_brings_no_tokens() -> None:
    rates = Rates(rate=2.0, burst=1, most=4)
    assert rates.allow("a", 10.0)
    assert not rates.allow("a", 5.0)
    assert not rates.allow("a", 10.4)
    assert rates.allow("a", 10.5)


def test_a_clock_that_runs_back_takes_no_tokens_away() -> None:
    rates = Rates(rate=2.0, burst=3, most=4)
    assert [rates.allow("a", now) for now in (10.0, 5.0, 9.0, 9.0)] == [True, True, True, False]


def test_the_peer_that_was_silent_longest_gives_way_at_the_bound() -> None:
    rates = Rates(rate=1.0, burst=1, most=2)
    assert rates.allow("a", 0.0)
    assert rates.allow("b", 0.0)
    assert not rates.allow("a", 0.1)  # and now b was silent longest
    assert rates.allow("c", 0.2)
    assert len(rates) == 2
    assert not rates.allow("a", 0.3)


def test_a_budget_can_be_taken_whole_and_given_back() -> None:
    budget = Budget()
    assert budget.take(60, most=100)
    assert budget.take(41, most=100) is False
    assert budget.take(40, most=100)
    budget.give_back(60)
    assert budget.taken == 40


def test_counters_count_and_sum() -> None:
    counters = Counters()
    counters.count(Reason.RATE)
    counters.count(Reason.ECHO, 3)
    counters.count(Reason.ECHO)
    assert (counters[Reason.ECHO], counters.total, counters.mapping()["rate"]) == (4, 5, 1)


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ({"transfer": 600, "datagram": 601, "incomplete": 600}, "transfer must be at least"),
        ({"transfer": 2000, "incomplete": 1999}, "incomplete must be at least transfer (2000"),
        ({"members": 5, "view": 6}, "view must be at most members (5)"),
        ({"rate": "fast"}, "limit rate='fast' does not do: expected"),
    ],
)
def test_limits_that_contradict_each_other_get_a_sentence(
    settings: dict[str, object], sentence: str
) -> None:
    with pytest.raises(BadInput) as caught:
        Limits.parse(settings)
    assert sentence in str(caught.value)
    assert "`" not in str(caught.value)


def test_limits_at_their_edges_and_what_follows_from_others() -> None:
    assert Limits.parse({"transfer": 600, "datagram": 600, "incomplete": 600}).transfer == 600
    assert Limits.parse({"members": 5, "view": 5}).view == 5
    assert Limits.parse({"members": 5}).view == 5
    assert Limits.parse({"members": 10_000}).view == 4096
    assert Limits.parse({"transfer": 2000}).incomplete == 8 * 1024 * 1024
    assert Limits.parse({"transfer": 16 * 1024 * 1024}).incomplete == 16 * 1024 * 1024
    assert Limits.parse({"incomplete": 4 * 1024 * 1024}).incomplete == 4 * 1024 * 1024
    assert Limits.parse({"view": 7}).view == 7


# Frames on streams


def test_a_stream_tells_how_many_bytes_it_misses() -> None:
    stream = StreamDecoder(most=1000)
    assert stream.missing == PREFIX
    stream.feed(b"\0\0")
    assert (stream.missing, stream.waiting) == (PREFIX - 2, 2)
    stream.feed((100).to_bytes(4, "big")[2:])
    assert (stream.missing, stream.head) == (HEAD, None)
    stream.feed(bytes(HEAD - 1))
    assert (stream.missing, stream.head) == (1, None)
    stream.feed(b"x")
    assert (stream.missing, stream.head) == (100 - HEAD, bytes(HEAD - 1) + b"x")
    whole = stream.feed(bytes(100 - HEAD))
    assert whole == [bytes(HEAD - 1) + b"x" + bytes(100 - HEAD)]
    assert (stream.waiting, stream.missing) == (0, PREFIX)


def test_the_head_is_there_only_while_no_more_is() -> None:
    stream = StreamDecoder(most=1000)
    stream.feed(on_stream(bytes(100))[: PREFIX + HEAD + 1])
    assert stream.head is None
    assert stream.missing == 99 - HEAD


def test_half_of_a_length_tells_nothing_of_the_frame() -> None:
    stream = StreamDecoder(most=1 << 20)
    stream.feed(b"\0\1")
    assert stream.missing == PREFIX - 2


def test_a_frame_shorter_than_a_head_is_waited_for_whole() -> None:
    stream = StreamDecoder(most=1000)
    stream.feed(on_stream(b"abc")[:PREFIX])
    assert stream.missing == 3


def test_a_frame_as_long_as_allowed_is_taken_and_one_byte_more_breaks_the_stream() -> None:
    stream = StreamDecoder(most=3)
    assert stream.feed(on_stream(b"abc") + on_stream(b"d")) == [b"abc", b"d"]
    assert stream.feed(on_stream(b"ok") + on_stream(b"abcd") + on_stream(b"e")) == [b"ok"]
    assert (stream.broken, stream.waiting) == (Reason.TOO_LARGE, 0)
    assert stream.feed(on_stream(b"f")) == []
    assert stream.end() is None, "it was said already"


def test_a_frame_of_no_length_is_none() -> None:
    stream = StreamDecoder(most=3)
    assert stream.feed(bytes(PREFIX)) == []
    assert stream.broken is Reason.NOT_A_FRAME


def test_a_stream_that_ends_within_a_frame_was_cut_short() -> None:
    stream = StreamDecoder(most=3)
    assert stream.end() is None
    stream.feed(b"\0")
    assert stream.end() is Reason.TRUNCATED
    assert (stream.broken, stream.waiting) == (Reason.TRUNCATED, 0)


def test_what_is_dropped_is_forgotten() -> None:
    stream = StreamDecoder(most=9)
    stream.feed(on_stream(b"abc")[:-1])
    stream.drop()
    assert stream.waiting == 0
    assert stream.feed(on_stream(b"d")) == [b"d"]


TAG = group_tag(GROUP)


@pytest.mark.parametrize(
    "head, clear, sealed",
    [
        (b"G\x01\x00" + TAG, Reason.NOT_A_FRAME, Reason.NOT_A_FRAME),
        (b"H\x01\x00" + TAG, Reason.UNKNOWN_VERSION, Reason.UNKNOWN_VERSION),
        (b"H\x03\x03" + TAG, Reason.UNKNOWN_MODE, Reason.UNKNOWN_MODE),
        (b"H\x03\x00" + group_tag("x"), Reason.OTHER_GROUP, Reason.OTHER_GROUP),
        (bytes((72, VERSION, CLEAR)) + TAG, None, Reason.NOT_SEALED),
        (bytes((72, VERSION, SEALED)) + TAG + KEY.mark, Reason.SEALED, None),
        (bytes((72, VERSION, SIGNED)) + TAG + KEY.mark, Reason.SEALED, None),
        (bytes((72, VERSION, SEALED)) + TAG + OTHER_KEY.mark, Reason.SEALED, Reason.UNKNOWN_KEY),
    ],
)
def test_the_first_bytes_tell_what_they_can(
    head: bytes, clear: Reason | None, sealed: Reason | None
) -> None:
    whole = head + bytes(HEAD - len(head))
    assert refusal_of(whole, wire(2)) is clear
    assert refusal_of(whole, wire(2, KEY)) is sealed


def test_whose_a_frame_is_is_read_from_a_whole_header_only() -> None:
    header = b"H\x03\x00" + TAG
    assert tag_of(header) == TAG
    assert tag_of(header + b"more") == TAG
    assert tag_of(header[:-1]) is None
    assert tag_of(b"G" + header[1:]) is None
