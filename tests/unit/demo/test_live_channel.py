"""The channel: nothing is lost, nobody waits, an end is noticed."""

from __future__ import annotations

import socket

from hustings.demo.live.channel import (
    Channel,
    CutOrder,
    Failed,
    FiguresReport,
    FollowingReport,
    HandOver,
    HealOrder,
    LeaveOrder,
    Opened,
    Order,
    RefusedReport,
    Report,
    pair,
)

ORDERS: list[Order] = [
    CutOrder((("127.0.0.1", 7400), ("::1", 7401))),
    HealOrder(),
    HandOver("m2"),
    LeaveOrder(),
]
REPORTS: list[Report] = [
    Opened(1.5, ("127.0.0.1", 7400)),
    FollowingReport(2.5, "", 3),
    FiguresReport(3.5, 10, 4),
    RefusedReport("no\nnever"),
    Failed("\N{SNOWMAN}"),
]


def test_everything_arrives_as_it_was_said() -> None:
    demo, member = pair()
    for order in ORDERS:
        demo.say(order)
    for report in REPORTS:
        member.say(report)
    assert member.orders() == ORDERS
    assert demo.reports() == REPORTS
    assert member.orders() == []
    demo.close()
    member.close()


def test_what_comes_in_pieces_is_put_together() -> None:
    one, other = socket.socketpair()
    channel = Channel(other)
    text = b'{"type":"hand over","to":"m2"}\n{"type":"heal"}\n'
    got: list[Order] = []
    for byte in text:
        one.send(bytes([byte]))
        got += channel.orders()
    assert got == [HandOver("m2"), HealOrder()]
    one.close()
    channel.close()


def test_what_there_is_no_room_for_is_sent_later_and_in_order() -> None:
    demo, member = pair()
    told: list[Report] = [FollowingReport(float(place), "m1", place) for place in range(12_000)]
    for report in told:
        member.say(report)  # far more than a socket holds: this would wait for ever
    assert not member.ended
    got: list[Report] = []
    for _ in range(1000):
        got += demo.reports()
        member.flush()
    assert got == told
    demo.close()
    member.close()


def test_who_never_listens_is_given_up() -> None:
    demo, member = pair()
    sentence = RefusedReport("x" * 10_000)
    said = 0
    while not member.ended and said < 1000:
        member.say(sentence)
        said += 1
    assert member.ended
    assert said > 100
    demo.close()
    member.close()


def test_last_words_are_heard_before_the_end() -> None:
    demo, member = pair()
    member.say(Failed("no space left"))
    member.close()
    assert demo.reports() == [Failed("no space left")]
    assert demo.ended
    demo.say(LeaveOrder())  # into the void, and without an error
    demo.close()
