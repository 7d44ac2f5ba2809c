"""A host among others, on a virtual clock: what it carries, counts, refuses and tells."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from math import inf
from typing import Any

import pytest

from hustings.core.errors import ProtocolBug
from hustings.core.messages import Message
from hustings.layers.gossip.messages import LeaveMsg
from hustings.layers.multicast.messages import CoordinatorCast
from hustings.net.control_messages import (
    ConfigMsg,
    HelloMsg,
    ProbeMsg,
    ProbeReplyMsg,
    ProcessEndedMsg,
)
from hustings.net.filter import FrameFilter
from hustings.net.limits import STALE, Reason
from hustings.net.node import MemberNode
from hustings.net.storage import NotPersisted
from hustings.net.transport import Endpoint
from hustings.net.wire import Direction, Received, Wire, WireCodec
from hustings.protocols.announce.le_s import LeS
from hustings.protocols.bully import Bully, CoordinatorMsg
from hustings.testing import Group

UDP = Direction.DATAGRAM
STRANGER: Endpoint = ("127.0.0.1", 9)


@contextmanager
def pair(**options: Any) -> Iterator[tuple[Group, MemberNode, MemberNode]]:
    """Two members that know each other; the first follows, the second leads."""
    with Group(seed=2, **{"protocol": "bully", **options}) as group:
        group.join("a")
        group.join("b")
        leader = group.settle(within=60.0)
        group.advance(2.0)
        other = next(name for name in "ab" if name != leader)
        yield group, group.member(other).node, group.member(leader).node


def on_loop(group: Group, act: Callable[[], object]) -> None:
    """Do something at the group's clock."""

    async def acted() -> None:
        act()

    group.run(acted())


def answer(group: Group, host: MemberNode, *members: int) -> None:
    """Let strangers answer a question, so that they are heard."""

    def act() -> None:
        for member in members:
            nonce = host.address_validation._nonce(member, STRANGER, host._clock.time())
            host.datagram(said(host, ProbeReplyMsg(nonce), me=member), STRANGER)

    on_loop(group, act)


def drops(host: MemberNode, reason: Reason) -> int:
    return host.filter.counters[reason]


def said(
    like: MemberNode,
    message: Message,
    me: int = 666,
    *,
    life: int = 1,
    after: int = 0,
    label: str | None = None,
) -> bytes:
    wire, dialect = like.filter.wire, like.filter.wire.codec
    if label is not None:
        dialect = WireCodec(label, dialect.kinds)
    forged = Wire(wire.group, me, life, dialect, wire.ring, wire.limits)
    forged._number = after
    frame = forged.write(message)
    assert not isinstance(frame, Reason)
    return frame.data


def read(like: MemberNode, data: bytes, to: int) -> Message:
    """What a member finds in a datagram."""
    wire = like.filter.wire
    got = Wire(wire.group, to, 99, wire.codec, wire.ring, wire.limits).read(data, UDP)
    assert isinstance(got, Received), got
    return got.message


class Taps:
    """Writes down what goes out at a port."""

    def __init__(self, host: MemberNode, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[tuple[Endpoint, bytes]] = []
        self.streamed: list[tuple[Endpoint, bytes, bytes]] = []
        monkeypatch.setattr(host.transport, "send", lambda to, data: self.sent.append((to, data)))
        monkeypatch.setattr(
            host.transport,
            "stream",
            lambda to, data, hello=b"": self.streamed.append((to, data, hello)),
        )


# Out


def test_what_goes_out_is_counted_by_kind_packets_and_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pair() as (_, a, b):
        taps = Taps(a, monkeypatch)
        before = (a.traffic.frames_out, a.traffic.bytes_out, a.traffic.sent["PROBE"])
        a.transmit(b.runner.me.id, ProbeMsg(1))
        a.transmit(None, ProbeMsg(1))
        a.introduce(STRANGER, ProbeMsg(1), 5)
        assert [to for to, _ in taps.sent] == [b.transport.endpoint, b.transport.endpoint, STRANGER]
        size = sum(len(data) for _, data in taps.sent)
        after = (a.traffic.frames_out, a.traffic.bytes_out, a.traffic.sent["PROBE"])
        assert after == (before[0] + 3, before[1] + size, before[2] + 3)
        a.transmit(4711, ProbeMsg(1))
        assert drops(a, Reason.UNKNOWN_ADDRESS) == 1
        assert len(taps.sent) == 3


def test_what_no_datagram_holds_goes_by_stream_and_what_nothing_holds_not_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pair() as (_, a, b):
        taps = Taps(a, monkeypatch)
        a.put(STRANGER, b"x" * 2000, True, 7)
        ((to, data, hello),) = taps.streamed
        assert (to, data) == (STRANGER, b"x" * 2000)
        got = Wire(a.filter.wire.group, 7, 1, a.filter.wire.codec, a.filter.wire.ring).read(
            hello, Direction.QUESTION
        )
        assert isinstance(got, tuple)
        assert isinstance(got.message, HelloMsg)
        assert taps.sent == []
        huge = ConfigMsg(1, True, True, 1, True, (("x", "y" * 2_000_000, True),))
        before = a.traffic.sent["CONFIG"]
        a.transmit(b.runner.me.id, huge)
        a.introduce(STRANGER, huge)
        assert drops(a, Reason.UNSENDABLE) == 2
        assert (taps.sent, len(taps.streamed)) == ([], 1)
        assert a.traffic.sent["CONFIG"] == before


def test_a_network_that_reaches_all_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pair() as (_, a, _b):
        sent: list[bytes] = []
        monkeypatch.setattr(type(a.transport), "reaches_all", True)
        monkeypatch.setattr(a.transport, "send_all", sent.append, raising=False)
        taps = Taps(a, monkeypatch)
        packets = a.traffic.frames_out
        a.transmit(None, ProbeMsg(1))
        assert len(sent) == 1
        assert taps.sent == []
        assert a.traffic.frames_out == packets + 1


# In


def test_a_probe_is_answered_where_it_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    with pair() as (group, a, _b):
        taps = Taps(a, monkeypatch)
        packets, size = a.traffic.frames_in, a.traffic.bytes_in
        data = said(a, ProbeMsg(77))
        on_loop(group, lambda: a.datagram(data, STRANGER))
        assert (a.traffic.frames_in, a.traffic.bytes_in) == (packets + 1, size + len(data))
        assert a.traffic.received["PROBE"] >= 1
        (to, answer), (there, question) = taps.sent
        assert to == there == STRANGER
        assert read(a, answer, 666) == ProbeReplyMsg(77)
        assert isinstance(read(a, question, 666), ProbeMsg), "it has to answer, too"


def test_frames_on_streams_are_accepted_or_not_and_their_heads_judged() -> None:
    with pair() as (_, a, _b):
        wire = a.filter.wire
        forged = Wire(wire.group, 666, 1, wire.codec, wire.ring, wire.limits)
        frame = forged.write(HelloMsg(), a.runner.me.id, Direction.QUESTION)
        assert not isinstance(frame, Reason)
        assert a.frame(frame.data, STRANGER, Direction.QUESTION) is True
        assert a.frame(frame.data, STRANGER, Direction.QUESTION) is False, "it came before"
        assert drops(a, Reason.REPLAYED) == 1
        assert a.frame(b"nonsense", STRANGER, Direction.QUESTION) is False
        assert a.head(frame.data[:64], STRANGER) is True
        assert a.head(b"GET / HTTP/1.1\r\nHost: somewhere.example\r\n\r\n" * 3, STRANGER) is False
        assert drops(a, Reason.NOT_A_FRAME) >= 2
        notes = a.listener.notes  # type: ignore[attr-defined]  # of the double
        assert any("it is no frame of hustings" in note for note in notes)


def test_where_a_stream_comes_from_is_not_where_its_member_is() -> None:
    with pair() as (group, a, _b):
        on_loop(group, lambda: a.datagram(said(a, ProbeMsg(1), me=667), STRANGER))
        assert a.address_book.endpoint(667) == STRANGER
        wire = a.filter.wire
        forged = Wire(wire.group, 668, 1, wire.codec, wire.ring, wire.limits)
        frame = forged.write(HelloMsg(), None, Direction.QUESTION)
        assert not isinstance(frame, Reason)
        a.frame(frame.data, STRANGER, Direction.QUESTION)
        assert a.address_book.endpoint(668) is None


def test_who_has_stopped_hears_nothing() -> None:
    with pair() as (_, a, b):
        a.stop()
        assert a.closed
        packets = a.traffic.frames_in
        a.datagram(said(b, ProbeMsg(1)), STRANGER)
        assert a.frame(said(b, ProbeMsg(1)), STRANGER, UDP) is False
        assert a.traffic.frames_in == packets
        a.refused(b.transport.endpoint)
        a.stop()


def test_who_has_stopped_watches_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    with pair() as (group, a, _b):
        watched: list[Endpoint] = []
        monkeypatch.setattr(a.transport, "watch", lambda to, *_: watched.append(to))
        a.stop()
        on_loop(group, lambda: a.stand_as(a.runner.me))
        group.advance(1.0)
        assert watched == []


def test_who_ends_before_it_is_in_the_group_looks_on_for_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hosts: list[MemberNode] = []
    start = MemberNode.start

    def started(host: MemberNode) -> None:
        hosts.append(host)
        start(host)

    monkeypatch.setattr(MemberNode, "start", started)
    with Group(seed=4, protocol="bully") as group:

        async def cut_short() -> None:
            joining = asyncio.create_task(group.inside.join("a", seeds=["127.0.0.1:9"]))
            await asyncio.sleep(0.5)
            joining.cancel()
            await asyncio.wait([joining])

        group.run(cut_short())
        (host,) = hosts
        assert host.closed
        packets = host.traffic.frames_out
        assert packets > 0
        group.advance(10.0)
        assert host.traffic.frames_out == packets
        notes = host.listener.notes  # type: ignore[attr-defined]  # of the double
        assert not any("no seed answers" in note for note in notes)


def test_who_ends_as_it_begins_looks_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemberNode, "ran", MemberNode.stop)
    with Group(seed=4, protocol="bully") as group:
        host = group.join("a", seeds=["127.0.0.1:9"]).node
        assert host.closed
        group.advance(10.0)
        assert host.traffic.frames_out == 0


def test_a_message_while_nothing_can_be_written_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pair() as (group, a, b):

        def full(fields: object) -> None:
            raise NotPersisted("full")

        monkeypatch.setattr(a.runner._storage, "persist", full)
        a.runner.run(lambda ctx: ctx.persist(x=1))
        group.advance(0.5)
        before = drops(a, Reason.INBOX)
        leave = LeaveMsg(b.filter.wire.incarnation)
        answer(group, a, 669, 670)
        on_loop(group, lambda: a.datagram(said(a, leave, me=669, after=1), STRANGER))
        assert drops(a, Reason.INBOX) == before + 1
        monkeypatch.undo()
        group.advance(2.0)
        before = drops(a, Reason.INBOX)
        on_loop(group, lambda: a.datagram(said(a, leave, me=670, after=1), STRANGER))
        assert drops(a, Reason.INBOX) == before


def test_its_own_words_that_come_back_from_elsewhere_are_noted() -> None:
    with pair() as (_, a, _b):
        own = a.filter.outgoing(ProbeMsg(1))
        assert own is not None
        notes = a.listener.notes  # type: ignore[attr-defined]  # of the double
        a.datagram(own.data, a.transport.endpoint)
        assert not any("plays" in note for note in notes), "multicast brings them back"
        a.datagram(own.data, STRANGER)
        assert any("a message of this member's own" in note for note in notes)
        assert drops(a, Reason.ECHO) == 2


def test_a_sender_that_was_refused_again_and_again_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pair() as (group, a, b):
        there = b.runner.me.id
        data = said(a, HelloMsg(), me=there, life=b.filter.wire.incarnation)
        taps = Taps(a, monkeypatch)
        for _ in range(6):
            on_loop(group, lambda: a.datagram(data, STRANGER))
        assert sum(drops(a, reason) for reason in STALE) >= 4
        asked = [read(a, each, there) for to, each in taps.sent if to == b.transport.endpoint]
        assert any(isinstance(each, ProbeMsg) for each in asked)
        group.advance(0.1)


def test_who_says_that_it_leaves_is_asked_whether_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    with pair() as (group, a, b):
        there, taps = b.runner.me.id, Taps(a, monkeypatch)
        real = b.filter.wire
        life = real.incarnation
        data = said(a, LeaveMsg(life), me=there, life=life, after=real._number + 1)
        on_loop(group, lambda: a.datagram(data, STRANGER))
        asked = [read(a, each, there) for to, each in taps.sent if to == b.transport.endpoint]
        assert any(isinstance(each, ProbeMsg) for each in asked)
        group.advance(0.1)


def test_an_end_that_others_tell_of_is_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    with pair() as (group, a, b):
        knocks: list[Endpoint] = []
        monkeypatch.setattr(a.transport, "knock", lambda to, refused: knocks.append(to))
        data = said(a, ProcessEndedMsg(b.runner.me.id, b.filter.wire.incarnation))
        on_loop(group, lambda: a.datagram(data, STRANGER))
        group.advance(0.2)
        assert knocks == [b.transport.endpoint]


def test_a_namesake_is_answered_and_who_bears_another_label_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pair() as (group, a, _b):
        taps, mine = Taps(a, monkeypatch), a.runner.me.id
        on_loop(group, lambda: a.datagram(b"nonsense", STRANGER))
        assert taps.sent == [], "nobody is to be asked there"
        data = said(a, ProbeMsg(5), me=mine, life=a.filter.wire.incarnation + 1)
        on_loop(group, lambda: a.datagram(data, STRANGER))
        ((to, answer),) = taps.sent
        assert to == STRANGER
        assert drops(a, Reason.DUPLICATE_NAME) == 1
        wire = a.filter.wire
        namesake = Wire(wire.group, mine, wire.incarnation + 1, wire.codec, wire.ring)
        assert namesake.read(answer, UDP) is Reason.DUPLICATE_NAME
        assert namesake.duplicate is not None
        assert namesake.duplicate.message == ProbeReplyMsg(5)
        taps.sent.clear()
        other: Endpoint = ("127.0.0.1", 10)
        labelled = said(a, ProbeMsg(5), label="bully#other")
        on_loop(group, lambda: a.datagram(labelled, other))
        ((to, question),) = taps.sent
        assert to == other
        assert drops(a, Reason.OTHER_PROTOCOL) == 1
        asked = read(a, question, 666)
        assert isinstance(asked, ConfigMsg)
        assert not asked.answer


def test_a_number_that_nobody_can_have_is_not_believed_inside_a_multicast_either() -> None:
    with pair(multicast="bimodal") as (group, a, _b):
        term = group.member(group.leaders[0]).state.term
        answer(group, a, 667, 668)
        for sender, value in ((667, 2**62), (668, 0)):
            body = a.stack.codec.encode(CoordinatorMsg(value))
            cast = said(a, CoordinatorCast(1, 1, body), me=sender, after=1)
            on_loop(group, partial(a.datagram, cast, STRANGER))
            assert drops(a, Reason.IMPLAUSIBLE_NUMBER) == 1, "the first, and not the second"
        group.advance(1.0)
        assert group.member(group.settle()).state.term < term + 1000


def test_a_full_group_counts_who_does_not_fit() -> None:
    with Group(seed=3, protocol="bully", limits={"members": 2, "view": 2}) as group:
        for name in "abc":
            group.join(name)
        group.advance(5.0)
        assert sum(drops(group.member(name).node, Reason.MEMBERS) for name in group.up) > 0
    with pair(limits={"members": 2, "view": 2}) as (group, a, b):
        assert drops(a, Reason.MEMBERS) == drops(b, Reason.MEMBERS) == 0


# What a host knows of itself


def test_a_member_without_a_guard_has_none_to_ask_and_no_bound() -> None:
    with pair() as (_, a, _b):
        assert a.stale_bound == inf
        with pytest.raises(ProtocolBug, match="no guard to ask"):
            a.acquire(1.0, 1)
        a.engage()
        a.disengage()
        assert a.health() >= 1.0


def test_with_a_guard_lease_requests_go_to_its_client_and_what_runs_is_counted() -> None:
    with pair(guard="memory://host", ttl=2.0) as (group, _a, b):
        assert 0.0 < b.stale_bound <= 2.0
        asked: list[Any] = []

        class Client:
            def acquire(self, ttl: float, request: int) -> None:
                asked.append((ttl, request))

            def release(self, request: int) -> None:
                asked.append(request)

            def inherited(self) -> AbstractContextManager[tuple[int, ...]]:
                return nullcontext((3,))

        real, b.lease_client = b.lease_client, Client()
        b.acquire(1.5, 4)
        b.release(5)
        assert asked == [(1.5, 4), 5]
        b.lease_client = real
        assert b.lease_layer is not None
        before = b.lease_layer.engaged
        b.engage()
        assert b.lease_layer.engaged == before + 1
        b.disengage()
        assert b.lease_layer.engaged == before
        group.advance(5.0)
        assert group.leaders


def test_how_long_others_wait_for_the_next_leader_is_the_detectors() -> None:
    with pair() as (_, a, _b):
        detector = a._detector
        assert detector is not None
        assert a.deference == detector.config.successor_head_start
        assert a.health() == detector.health
    with pair(protocol="le-s") as (_, a, _b):
        assert a._detector is None
        assert a.deference == 0.0
        assert a.health() == 1.0


def test_a_newcomer_whose_seeds_are_silent_says_so_and_is_alone() -> None:
    with Group(seed=4, protocol="bully") as group:
        alone = group.join("a", seeds=[])
        assert not any("no seed answers" in note for note in alone.notes)
        before = group.now
        lone = group.join("b", seeds=["127.0.0.1:9"], alone=True)
        assert group.now - before == pytest.approx(lone.node._join_wait)
        (note,) = [note for note in lone.notes if "no seed answers yet (127.0.0.1:9)" in note]
        assert note.endswith(": alone for now, and looking on")
        assert lone.node.lets_in(("127.0.0.1", 9))
        assert not lone.node.lets_in(("127.0.0.1", 10))
        assert not alone.node.lets_in(("127.0.0.1", 9))
        group.settle(["b"])


def test_whoever_is_heard_lets_a_newcomer_in_where_the_network_reaches_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Group(seed=4, protocol="bully") as group:
        alone = group.join("a", seeds=[]).node
        lone = group.join("b", seeds=["127.0.0.1:9"]).node
        monkeypatch.setattr(type(alone.transport), "reaches_all", True)
        assert alone.lets_in(STRANGER) is True
        assert lone.lets_in(("127.0.0.1", 10)) is False


def test_attributes_that_change_are_told_and_the_leader_stays() -> None:
    with pair() as (group, a, b):
        name = next(each for each in group.up if group.member(each).node is b)
        group.advance(5.0)
        group.run(group.member(name).update({"weight": 3.0}))
        group.advance(5.0)
        assert dict(b.runner.me.attributes)["weight"] == 3.0
        assert [key for key, _ in b.runner.me.attributes] == ["weight"]
        entry = a.stack.membership.circle.entry(b.runner.me.id)
        assert entry is not None
        assert dict(entry.who.attributes)["weight"] == 3.0
        assert group.leaders == [name], "and nobody lost an office by it"


def test_an_old_socket_is_emptied_only_by_who_is_in_the_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pair() as (_, a, _b):
        emptied: list[int] = []
        monkeypatch.setattr(a.transport, "discard", lambda: emptied.append(1))
        a.overslept()
        assert emptied == [1]
        a.settled.clear()
        a.overslept()
        assert emptied == [1]
        a.settled.set()


# Inside


def test_the_part_that_elects_is_found_under_its_roofs() -> None:
    with pair() as (_, a, _b):
        assert type(a.election) is Bully
    with pair(protocol="le-s") as (_, a, _b):
        assert type(a.election) is LeS


def test_a_message_that_cannot_be_handled_is_told_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pair() as (group, a, _):
        told: list[str] = []
        monkeypatch.setattr(
            type(a.rejections), "say", lambda _, what, sentence, now, label: told.append(sentence)
        )
        error = ValueError("seven\n" + 1000 * "x")
        on_loop(group, lambda: a.baffled(5, ProbeMsg(1), error))
        (sentence,) = told
        assert "could not handle a PROBE of member 5" in sentence
        assert "(ValueError: seven\\nxx" in sentence
        assert len(sentence) < 400
        on_loop(group, lambda: a.baffled(5, ProbeMsg(1), ValueError("seven")))
        assert "(ValueError: seven):" in told[1]
        assert drops(a, Reason.UNHANDLED) == 2


def test_another_label_is_refused_also_before_configurations_are_compared() -> None:
    with pair() as (group, a, b):
        a.config_check = None
        frame = said(b, ProbeMsg(1), label="other#0123456789")
        on_loop(group, lambda: a.datagram(frame, STRANGER))
        assert drops(a, Reason.OTHER_PROTOCOL) == 1


def test_a_wire_knows_the_label_of_the_frame_that_it_read_last() -> None:
    with pair() as (_, a, b):
        wire = a.filter.wire
        fresh = Wire(wire.group, 7, 1, wire.codec, wire.ring, wire.limits)
        assert fresh.label == ""
        fresh.read(said(b, ProbeMsg(1), label="other#0123456789"), UDP)
        assert fresh.label == "other#0123456789"
        fresh.read(b"nothing", UDP)
        assert fresh.label == "other#0123456789"


def test_a_gate_takes_no_message_to_imply_a_term_until_it_is_told() -> None:
    with pair() as (_, a, _b):
        assert FrameFilter(a.filter.wire).implies(ProbeMsg(1)) == 0
