"""The answering side of surveys: whom a member answers, how much, and what hostile input does.

Members in memory, on a virtual clock. What an attacker says is handed straight to a member's node,
as if it had come through every check of the frame.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from hustings.core.messages import Message
from hustings.net.control_messages import (
    CONTROL_MESSAGES,
    MOST_PROBES,
    MOST_TRIPS,
    LinkReport,
    SurveyEchoMsg,
    SurveyMsg,
    SurveyProbeMsg,
    SurveyReplyMsg,
    WayCounts,
)
from hustings.net.limits import LARGEST_DATAGRAM, Limits, Reason
from hustings.net.member import Member
from hustings.net.survey import MeasuredLink
from hustings.net.wire import Direction, Received, Wire, WireCodec
from hustings.testing import Group

NAMES = ("a", "b", "c")
SURVEYS = (SurveyMsg, SurveyReplyMsg, SurveyProbeMsg, SurveyEchoMsg)
EDGES = (0, 1, 2, 61, 62, 63, 1 << 20, (1 << 53) - 1, 1 << 53, (1 << 63) - 1)


@pytest.fixture
def group() -> Iterator[Group]:
    with Group(seed=3) as made:
        for name in NAMES:
            made.join(name)
        made.settle()
        made.advance(2.0)
        yield made


def hear(
    group: Group, message: Message, sender: int | None = None, source: tuple[str, int] | None = None
) -> None:
    """Member a gets a message that says to be from b, unless told otherwise."""
    a, b = group.member("a"), group.member("b")
    endpoint = a.node.address_book.endpoint(b.id)
    assert endpoint is not None
    who = b.id if sender is None else sender
    incarnation = a.node.filter.incarnation(b.id)
    got = Received(who, incarnation, 1, to_all=False, message=message)
    a.node.survey.heard(got, endpoint if source is None else source)


def sent(member: Member) -> dict[str, int]:
    return {kind: n for kind, n in member.metrics().messages_sent.items() if "SURVEY" in kind}


def test_a_question_causes_one_train_and_one_answer(group: Group) -> None:
    a, c = group.member("a"), group.member("c")
    hear(group, SurveyMsg(7, 1, c.id, 4))
    assert sent(a) == {"SURVEY-PROBE": 4, "SURVEY-REPLY": 1}
    group.advance(1.0)
    assert sent(c) == {"SURVEY-ECHO": 4}
    assert sent(group.member("b")) == {}


def test_who_is_no_member_gets_nothing(group: Group) -> None:
    a, c = group.member("a"), group.member("c")
    for _ in range(100):
        hear(group, SurveyMsg(7, 1, c.id, 4), sender=12345)
        hear(group, SurveyProbeMsg(7, 1), sender=12345)
    group.advance(1.0)
    assert sent(a) == {}


def test_another_address_than_the_proven_one_gets_nothing(group: Group) -> None:
    """So nobody can be made to send to a third party."""
    a, c = group.member("a"), group.member("c")
    for number in range(100):
        hear(group, SurveyMsg(7, number, c.id, 4), source=("127.0.0.9", 9))
        hear(group, SurveyProbeMsg(7, number), source=("127.0.0.9", 9))
    group.advance(1.0)
    assert sent(a) == {}


def test_probes_and_echoes_have_a_rate_whatever_is_asked(group: Group) -> None:
    a, c = group.member("a"), group.member("c")
    for turn in range(1000):  # in a second
        hear(group, SurveyMsg(turn, turn, c.id, MOST_PROBES))
        hear(group, SurveyProbeMsg(7, turn))
        group.advance(0.001)
    assert sent(a)["SURVEY-PROBE"] <= 201
    assert sent(a)["SURVEY-ECHO"] <= 801


def test_nobody_is_made_to_probe_itself_or_a_stranger(group: Group) -> None:
    a = group.member("a")
    hear(group, SurveyMsg(7, 1, a.id, 4))
    hear(group, SurveyMsg(7, 2, 999, 4))
    hear(group, SurveyMsg(7, 3, None, 4))
    assert sent(a) == {"SURVEY-REPLY": 3}


def test_the_largest_answer_fits_a_datagram(group: Group) -> None:
    a = group.member("a")
    largest = SurveyReplyMsg(
        series=(1 << 53) - 1,
        number=(1 << 53) - 1,
        clock=1e9 / 3,
        watched=1e6 / 3,
        stalls=tuple(((1 << 40) + n, 1e5 / 3, 1e3 / 3) for n in range(16)),
        stall_count=1 << 40,
        longest=1e6 / 3,
        link=LinkReport(
            target=(1 << 62) - 1,
            out=WayCounts(*[1 << 40] * 4),
            back=WayCounts(*[1 << 40] * 4),
            unsettled=1 << 40,
            trips=(1 / 3,) * MOST_TRIPS,
            trip_count=1 << 40,
        ),
    )
    frame = a.node.filter.wire.write(largest, a.id)
    assert not isinstance(frame, Reason)
    assert frame.direction is Direction.DATAGRAM
    assert len(frame.data) < LARGEST_DATAGRAM - 100  # the group's name may be longer, and the seal


def noise(rng: random.Random, kind: type[Message]) -> Message:
    """A message with fields that the wire would let through, at their edges and between."""

    def whole() -> int:
        return rng.choice(EDGES) if rng.random() < 0.5 else rng.randrange(100)

    def seconds() -> float:
        return rng.choice((0.0, 1e-300, 0.5, 1e6, 1.7e308))

    def counts() -> WayCounts:
        return WayCounts(*(whole() for _ in range(4)))

    if kind is SurveyMsg:
        return SurveyMsg(whole(), whole(), rng.choice((None, 1, whole())), rng.randrange(9))
    if kind is SurveyProbeMsg:
        return SurveyProbeMsg(whole(), whole())
    if kind is SurveyEchoMsg:
        return SurveyEchoMsg(whole(), whole(), whole(), whole())
    stalls = tuple((whole(), seconds(), seconds()) for _ in range(rng.randrange(17)))
    trips = tuple(seconds() for _ in range(rng.randrange(17)))
    link = LinkReport(whole(), counts(), counts(), whole(), trips, whole())
    return SurveyReplyMsg(whole(), whole(), seconds(), seconds(), stalls, whole(), seconds(), link)


def test_absurd_numbers_harm_nobody_and_fill_no_memory(group: Group) -> None:
    rng = random.Random(5)
    a = group.member("a")
    leader = group.settle()
    for turn in range(6000):
        message = noise(rng, rng.choice(SURVEYS))
        if isinstance(message, SurveyMsg) and rng.random() < 0.5:
            message = SurveyMsg(message.series, turn, group.member("c").id, message.probes)
        hear(group, message, sender=rng.choice((None, None, group.member("c").id, 77)))
        if not turn % 50:
            group.advance(0.05)
    answers = a.node.survey
    assert len(answers._links) <= 64
    assert len(answers._heard) <= 1024
    assert all(len(link.trains) <= 100 for link in answers._links.values())
    group.advance(20.0)
    assert group.settle() == leader
    assert not a.notes


@pytest.mark.parametrize("kind", SURVEYS)
def test_what_is_out_of_bounds_is_refused_at_the_wire(kind: type[Message]) -> None:
    """Longer lists, negative numbers, and numbers without an end never reach a member."""
    codec = WireCodec("any", CONTROL_MESSAGES)
    rng = random.Random(1)
    read = codec.reader(Limits().view)
    for _ in range(300):
        message = noise(rng, kind)
        assert read(codec.write(message)) == message
    broken: list[Message] = [
        SurveyMsg(1, 1, 2, MOST_PROBES + 1),
        SurveyMsg(1, 1, 2, -1),
        SurveyProbeMsg(1, -1),
        SurveyEchoMsg(1, 1, -1, 0),
        SurveyReplyMsg(1, 1, float("nan"), 0.0, (), 0, 0.0),
        SurveyReplyMsg(1, 1, 0.0, -1.0, (), 0, 0.0),
        SurveyReplyMsg(1, 1, 0.0, 0.0, ((1, 0.0, 0.0),) * 17, 17, 0.0),
        SurveyReplyMsg(
            1, 1, 0.0, 0.0, (), 0, 0.0, LinkReport(1, WayCounts(), WayCounts(), 0, (0.1,) * 17, 17)
        ),
        SurveyReplyMsg(
            1, 1, 0.0, 0.0, (), 0, 0.0, LinkReport(1, WayCounts(-1), WayCounts(), 0, (), 0)
        ),
    ]
    for message in broken:
        if isinstance(message, kind):
            assert isinstance(read(codec.write(message)), Reason), message


def echo(number: int, heard: int, stalls: int = 0) -> SurveyEchoMsg:
    return SurveyEchoMsg(7, number, heard, stalls)


def followed(
    link: MeasuredLink, heard: int, at: float, stalls: int = 0, life: int = 5, own: int = 0
) -> None:
    """A later train, whose first probe and echo come."""
    number = link.train(at, 4)[0]
    link.echoed(echo(number, heard << 1 | 1, stalls), life, own, at + 0.01)


def test_lost_probes_and_lost_echoes_are_told_apart() -> None:
    link = MeasuredLink(2)
    assert link.train(0.0, 4) == [0, 1, 2, 3]
    link.echoed(echo(0, 0b1), 5, 0, 0.01)
    link.echoed(echo(3, 0b1011), 5, 0, 0.02)  # 3, 2 and 0 have come, 1 has not; no echo of 2
    link.settle(2.5)
    assert link.out.sent == 0, "probe 1 may only be late"
    followed(link, 0b1011, 2.6)
    link.settle(2.7)
    assert link.out == WayCounts(4, 1, 1, 0)
    assert (link.back.sent, link.back.lost) == (3, 1)
    assert (list(link.trips), link.trip_count) == ([0.01], 1)


def test_an_echo_may_be_on_its_way() -> None:
    link = MeasuredLink(2)
    link.train(0.0, 4)
    followed(link, 0b1111, 0.5)
    link.settle(1.0)
    assert link.out.sent == 0
    link.echoed(echo(2, 0b111), 5, 0, 1.5)
    link.settle(2.0)
    assert (link.out.lost, link.back.lost) == (0, 3)


def test_an_overtaken_probe_is_not_lost() -> None:
    link = MeasuredLink(2)
    link.train(0.0, 4)
    link.echoed(echo(1, 0b1), 5, 0, 0.01)  # before probe 0
    link.echoed(echo(3, 0b101), 5, 0, 0.02)  # before probe 2, too; the echoes of 0 and 2 are lost
    followed(link, 0b1111, 0.5)
    link.settle(3.0)
    assert (link.out.lost, link.back.lost) == (0, 2)


@pytest.mark.parametrize("change", ["target", "own", "restart"])
def test_trains_under_way_at_a_stall_are_not_counted(change: str) -> None:
    link = MeasuredLink(2)
    link.train(0.0, 4)
    for number in range(4):
        link.echoed(echo(number, 1), 5, 0, 0.01)
    theirs, mine, life = int(change == "target"), int(change == "own"), 5 + (change == "restart")
    followed(link, 0b1111, 1.0, theirs, life, mine)
    link.settle(9.0)
    assert link.out == WayCounts()
    for number in link.train(10.0, 4):
        link.echoed(echo(number, (1 << number - 7) - 1, theirs), life, mine, 10.1)
    followed(link, 0b1111, 11.0, theirs, life, mine)
    link.settle(13.0)
    assert (link.out.sent, link.out.lost) == (4, 0)


def test_without_any_echo_nothing_is_claimed() -> None:
    """The other one may be gone: that is no loss of the network."""
    link = MeasuredLink(2)
    for turn in range(5):
        link.train(turn * 0.5, 4)
    link.settle(5.0)
    assert link.unsettled == 0
    link.settle(30.0)
    assert (link.out, link.unsettled) == (WayCounts(), 20)


def test_members_of_a_release_without_surveys_count_a_rejection() -> None:
    """What they do with a question: nothing, and one more unknown kind."""
    old = WireCodec("le-s", tuple(each for each in CONTROL_MESSAGES if each not in SURVEYS))
    new = WireCodec("le-s", CONTROL_MESSAGES)
    frame = Wire("g", 1, 1, new).write(SurveyMsg(7, 1, 2, 4), 2)
    assert not isinstance(frame, Reason)
    assert Wire("g", 2, 1, old).read(frame.data, frame.direction) is Reason.UNKNOWN_KIND
