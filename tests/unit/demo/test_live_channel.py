"""The channel: nothing is lost, nobody waits, an end is noticed."""

from __future__ import annotations

import socket

from hustings.demo.live.channel import (
    Channel,
    Cut,
    Failed,
    Figures,
    Following,
    HandOver,
    Heal,
    Leave,
    Opened,
    Order,
    Refused,
    Report,
    pair,
)

ORDERS: list[Order] = [
    Cut((("127.0.0.1", 7400), ("::1", 7401))),
    Heal(),
    HandOver("m2"),
    Leave(),
]
REPORTS: list[Report] = [
    Opened(1.5, ("127.0.0.1", 7400)),
    Following(2.5, "", 3),
    Figures(3.5, 10, 4),
    Refused("no\nnever"),
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
    assert got == [HandOver("m2"), Heal()]
    one.close()
    channel.close()


def test_what_there_is_no_room_for_is_sent_later_and_in_order() -> None:
    demo, member = pair()
    told: list[Report] = [Following(float(place), "m1", place) for place in range(12_000)]
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
    sentence = Refused("x" * 10_000)
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
    demo.say(Leave())  # into the void, and without an error
    demo.close()
