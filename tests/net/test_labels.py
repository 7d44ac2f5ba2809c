"""Labels: who is of this group, who may be of any, and the one message that all understand."""

from __future__ import annotations

import pytest

from hustings.core.messages import Message
from hustings.layers.gossip.messages import WelcomeMsg
from hustings.net.agreed_config import ENOUGH, CompetingGroups, CompetingMember, ObserverLabel
from hustings.net.control_messages import CONTROL_MESSAGES, ConfigMsg, ProbeMsg
from hustings.net.limits import Reason
from hustings.net.wire import Direction, Received, Wire, WireCodec
from tests.net.kit.crowd import Crowd, endpoint
from tests.net.kit.loops import run, until
from tests.net.kit.stranger import datagrams, frame
from tests.net.parts import PING, PingMsg, wire

UDP = Direction.DATAGRAM


@pytest.mark.parametrize(
    "own, theirs, understood, then",
    [
        ("bully#1", "bully#1", True, "bully#1"),
        ("bully#1", "bully#2", False, "bully#1"),
        ("bully#1", "ring#1", False, "bully#1"),
        ("bully#1", "bully#*", True, "bully#1"),
        ("bully#1", "ring#*", False, "bully#1"),
        ("bully#*", "bully#2", True, "bully#2"),
        ("bully#*", "ring#2", False, "bully#*"),
        ("bully#*", "bully#*", True, "bully#*"),
        ("bully", "bully#1", False, "bully"),
        ("a#*", "b#*", False, "a#*"),
    ],
)
def test_who_may_be_of_any_group_understands_all_and_is_of_the_one_it_takes_up(
    own: str, theirs: str, understood: bool, then: str
) -> None:
    dialect = WireCodec(own, (PingMsg,))
    assert dialect.understands(theirs) is understood
    assert dialect.protocol == own, "to hear somebody does not bind it"
    dialect.take_up(theirs)
    assert dialect.protocol == then
    if own.endswith("#*") and then != own:
        assert not dialect.understands("bully#3")
        dialect.give_up()
        assert dialect.protocol == own


def test_an_observer_takes_up_the_label_of_who_lets_it_in_as_long_as_it_is_heard() -> None:
    here = wire(1, dialect=WireCodec("a#*", (PingMsg,)))
    labels, welcome = ObserverLabel(here, 0.0), WelcomeMsg((), 1, (), None)
    for message, invited in ((PingMsg(1), True), (welcome, False)):
        here.label = "a#1"
        labels.heard(message, invited, 1.0)
        assert here.codec.undecided
    labels.heard(welcome, True, 1.0)
    assert here.codec.protocol == "a#1"
    labels.heard(PingMsg(1), False, 4.0)
    assert not labels.refused(8.0)
    assert labels.refused(9.5)
    assert here.codec.undecided


def test_a_members_label_never_changes() -> None:
    here = wire(1, dialect=WireCodec("a#1", (PingMsg,)))
    labels = ObserverLabel(here, 0.0)
    here.label = "a#*"
    labels.heard(WelcomeMsg((), 1, (), None), True, 1.0)
    assert not labels.refused(1000.0)
    assert here.codec.protocol == "a#1"


@pytest.mark.parametrize("kind", ["probe", "welcome"])
@pytest.mark.parametrize("known", [False, True], ids=["before it knows anybody", "afterwards"])
def test_no_frame_with_another_label_makes_an_observer_deaf(known: bool, kind: str) -> None:
    async def story() -> None:
        async with Crowd(protocol="le-s", insecure=True) as crowd:
            await crowd.add_all(["a", "b"])
            await crowd.agreed()
            seeds = [each.address for each in crowd.open()] if known else []
            observer = await crowd.add("o", observer=True, seeds=seeds)
            if known:
                await until(lambda: observer.leader is not None, "it knows the leader")
            real = crowd.named("a").node.filter.wire
            evil = WireCodec("le-s#evil", real.codec.kinds)
            forged = Wire(real.group, 12345, real.incarnation, evil, None, real.limits)
            lie = ProbeMsg(1) if kind == "probe" else WelcomeMsg((), 1, (), None)
            with datagrams() as stranger:
                stranger.sendto(frame(forged, lie), endpoint(observer))
                await until(lambda: observer.node.traffic.frames_in > 0, "it was heard")
            for each in crowd.open():
                each.node.search.approach(endpoint(observer))
            await until(lambda: observer.leader is not None, "the observer knows the leader", 20.0)

    run(story())


def test_of_those_with_another_label_only_the_configuration_is_heard() -> None:
    kinds: tuple[type[Message], ...] = (PingMsg, *CONTROL_MESSAGES)
    here, there = wire(1, dialect=WireCodec("a#1", kinds)), wire(2, dialect=WireCodec("a#2", kinds))
    config = ConfigMsg(7, True, True, 1, True, ())
    for message in (PingMsg(1), config):
        frame = there.write(message)
        assert not isinstance(frame, Reason)
        got = here.read(frame.data, UDP)
        if message is config:
            assert isinstance(got, Received)
            assert got.message == config
        else:
            assert got is Reason.OTHER_PROTOCOL


def test_what_is_not_for_this_member_is_refused_before_it_is_read() -> None:
    """Whatever is in it, and though it could be read."""
    sender, reader = wire(2), wire(1)
    frame = sender.write(PingMsg(1), to=3)
    assert not isinstance(frame, Reason)
    assert reader.read(frame.data, UDP) is Reason.MISDIRECTED
    for_all = sender.write(PingMsg(1))
    assert not isinstance(for_all, Reason)
    assert isinstance(reader.read(for_all.data, UDP), Received)
    assert PING.protocol == "ping"


def test_a_group_is_led_and_as_large_as_any_of_its_members_says() -> None:
    rivals = CompetingGroups()
    for number in range(ENOUGH):
        said = CompetingMember(number, "other", 100 if number == 3 else 5, led=number == 4)
        rivals.answered(("127.0.0.1", number), said, now=0.0)
    assert rivals.outweigh(100, led=True, now=0.0)
    assert not rivals.outweigh(101, led=False, now=0.0)
    few = CompetingGroups()
    for number in range(2):
        report = CompetingMember(number, "x", 2, led=number == 1)
        few.answered(("127.0.0.1", number), report, now=0.0)
    assert few.outweigh(2, led=True, now=0.0)
    assert not few.outweigh(3, led=False, now=0.0)


def test_at_the_bound_claims_count_on_both_sides() -> None:
    rivals = CompetingGroups()
    for number in range(ENOUGH):
        report = CompetingMember(number, "x", ENOUGH - 1, True)
        rivals.answered(("127.0.0.1", number), report, now=0.0)
    assert not rivals.outweigh(ENOUGH, led=False, now=0.0), "it says itself that it is smaller"
    assert rivals.outweigh(ENOUGH - 1, led=True, now=0.0)
