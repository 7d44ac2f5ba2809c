"""Numbers by which members outbid each other: no message makes one that nobody can outbid.

Members run in memory on a virtual clock; whoever speaks in their name has no key to get past.
"""

from __future__ import annotations

import time
import types
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

from hustings.core.choice import Candidate
from hustings.core.messages import TOKEN_PACE, Message, Term, kind_of
from hustings.guard.base import HIGHEST_LIFT, LARGEST_TOKEN
from hustings.layers.gossip.messages import Entry, GossipMsg
from hustings.layers.lease import LeaseHeldMsg
from hustings.net.limits import Reason
from hustings.net.storage import incarnation_by_clock
from hustings.net.validation import MONTH, RELEASED, SHORT_STEP, STEP, NumberBounds, bounds
from hustings.protocols.bully import CoordinatorMsg, ElectionMsg
from hustings.protocols.registry import JOINED
from hustings.quorum.messages import KINDS
from hustings.testing import Group
from tests.net.lies import STRANGER, liar, tell

# Fields that hold a member's id, wherever they stand; every other integer may be a counter.
IDS = {"accused", "assistant", "candidate", "heir", "id", "initiator", "leader", "member", "origin"}
IDS |= {"sender", "to", "holder", "newcomer"}
TIMES = {"ttl", "remaining"}  # longer ones cannot be written

CONFIG: dict[str, int] = {}  # the number of a configuration, where it is to be the right one
PLACES: dict[int, str] = {}  # where members really are: who moves them is another matter


def absurd() -> list[int]:
    """What a liar would try: what can be written, what floats hold, and the bounds themselves."""
    now = time.time()
    jump, end = bounds(now, 1)
    faster = [bounds(now, 1024).end, bounds(now, 1_000_000).end]
    return [2**63 - 1, 2**62, 2**53, *faster, 2**42, end + 1, end, end - 1, jump + 1, jump]


def made(kind: Any, name: str, value: int, who: int) -> Any:
    """A value of a type in which every number that may be a counter is `value`."""
    if kind is int:
        return who if name in IDS else CONFIG.get(name, value)
    if kind is bool:
        return True
    if kind is float:
        return float(min(value, 2**62 if name not in TIMES else 10**12))
    if kind is str:
        return PLACES.get(who, "127.0.0.1:9 nobody")
    if kind is bytes:
        return b""
    if kind is Candidate:
        return Candidate(who, (("~standing", float(value)),))
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return made(parts[0], name, value, who)
    if origin in (Union, types.UnionType):
        return made(parts[0], name, value, who)
    if origin is tuple and ... in parts:
        return (made(parts[0], name, value, who),)
    if origin is tuple:
        names = ["", "id"] if len(parts) == 2 else ["id", "", ""]
        return tuple(made(part, at, value, who) for part, at in zip(parts, names, strict=False))
    hints = get_type_hints(kind, include_extras=True)
    fields = kind.__struct_fields__
    return kind(*(made(hints[field], field, value, who) for field in fields))


# What does more than to name a number: it leaves, or is carried inside another.
OTHERS = ("LEAVE", "CAST", "DIGEST", "SOLICIT")


def has_numbers(kind: type[Message]) -> bool:
    return bool(kind.__struct_fields__) and not kind_of(kind).startswith(OTHERS)


def poison(group: Group, names: tuple[str, ...], value: int) -> None:
    """Everybody hears every kind of message with this number, in everybody's name."""
    for member in map(group.member, names):
        PLACES[member.id] = member.node.stack.membership.circle.own.place
    for at, victim in enumerate(map(group.member, names)):
        other = group.member(names[at - 1])
        for who, wire in ((other.id, liar(other, other.id)), (STRANGER, liar(other, STRANGER))):
            for kind in victim.node.filter.wire.codec.kinds:
                if not has_numbers(kind):
                    continue
                frame = wire.write(made(kind, "", value, who), victim.id)
                if not isinstance(frame, Reason):
                    tell(group, victim, frame.data)


def sane(group: Group, names: tuple[str, ...]) -> None:
    """One leader, hand-over works, restarts work, and terms tell leaderships apart."""
    leader = group.settle(steady=1.0, within=60)
    assert group.leaders == [leader]
    term = group.member(leader).term
    heir = next(name for name in names if name != leader)
    group.run(group.member(leader).transfer(heir))
    assert group.settle(steady=1.0, within=60) == heir
    assert group.member(heir).term > term
    for name in names[:2]:
        group.restart(name)  # with what it has stored
    leader = group.settle(steady=0.5, within=60)
    assert group.leaders == [leader]
    assert group.member(leader).term < bounds(time.time(), 1).end


@pytest.mark.parametrize("protocol", JOINED)
def test_no_number_ends_a_group(protocol: str, tmp_path: Path) -> None:
    names = ("a", "b", "c")
    with Group(seed=3, protocol=protocol) as group:
        for name in names:
            group.join(name, state=tmp_path)
        group.settle(steady=1.0)
        for value in absurd():
            poison(group, names, value)
        drops = group.member("a").metrics().drops
        assert drops["implausible-number"] > 50
        assert drops["far-term"] > 0
        sane(group, names)


@pytest.mark.parametrize("config", [{"config": 0}, {"config": 1}, {}], ids=["now", "next", "any"])
def test_nor_does_one_end_a_quorum(
    config: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.net.test_absurd_numbers.CONFIG", config)
    names = ("a", "b", "c")
    with Group(seed=3, protocol="le-s", guard="quorum://a,b,c", ttl=2.0) as group:
        for name in names:
            group.join(name, state=tmp_path)
        leader = group.settle(steady=1.0)
        token = group.member(leader).state.token
        kinds = group.member(leader).node.filter.wire.codec.kinds
        assert {*KINDS} <= {kind for kind in kinds if has_numbers(kind)}
        for value in absurd():
            poison(group, names, value)
        leader = group.settle(steady=1.0, within=120)
        assert (group.member(leader).state.token or 0) >= (token or 0)
        for name in names:
            group.kill(name)
        for name in names:
            group.restart(name)
        leader = group.settle(steady=1.0, within=120)
        assert group.leaders == [leader]
        assert (group.member(leader).state.token or 0) > (token or 0)
        for member in map(group.member, names):
            assert member.voters is not None
            assert member.voters.number == 0


@pytest.mark.parametrize("multicast", ["bimodal", "gossip"])
def test_nor_does_one_inside_a_multicast(multicast: str, tmp_path: Path) -> None:
    names = ("a", "b", "c")
    with Group(seed=3, protocol="bully", multicast=multicast) as group:
        for name in names:
            group.join(name, state=tmp_path)
        leader = group.settle(steady=1.0)
        victim = group.member(next(name for name in names if name != leader))
        for value in absurd():
            poison(group, names, value)
            wire = liar(group.member(leader), group.member(leader).id)
            for carried in (ElectionMsg(value), CoordinatorMsg(value)):
                body = victim.node.stack.codec.encode(carried)
                cast = next(
                    kind for kind in wire.codec.kinds if kind_of(kind) == "CAST-COORDINATOR"
                )
                frame = wire.write(cast(wire.incarnation, 1000 + value % 1000, body), victim.id)
                assert not isinstance(frame, Reason)
                tell(group, victim, frame.data)
        sane(group, names)


# The rule itself


NOW = RELEASED + 1e7


def judged(plausible: NumberBounds, sender: int, term: int, at: float = 0.0) -> Reason | None:
    return plausible.refuses(sender, ElectionMsg(term), NOW, at)


def test_whoever_knows_of_no_term_believes_the_first_one() -> None:
    plausible = NumberBounds([ElectionMsg])
    assert judged(plausible, 1, 1_000_000) is None
    assert plausible.known() == 1_000_000


def test_a_group_that_was_cut_off_catches_up() -> None:
    plausible = NumberBounds([ElectionMsg])
    plausible.said(ElectionMsg(7))
    assert judged(plausible, 1, 7 + 400) is None
    assert judged(plausible, 1, 407 + STEP) is None
    assert judged(plausible, 1, 407 + 3 * STEP) is Reason.FAR_TERM


def test_a_far_term_counts_when_two_say_it_or_one_goes_on_saying_it() -> None:
    plausible = NumberBounds([ElectionMsg])
    plausible.said(ElectionMsg(7))
    far = 10 * STEP
    assert judged(plausible, 1, far, 0.0) is Reason.FAR_TERM
    assert judged(plausible, 1, far, 1.0) is Reason.FAR_TERM
    assert judged(plausible, 2, far + 1, 1.5) is None
    assert plausible.known() == far + 1
    for at in (2.0, 3.0, 3.9):
        assert judged(plausible, 3, 2 * far, at) is Reason.FAR_TERM
    assert judged(plausible, 3, 2 * far, 4.1) is None


def test_what_is_believed_can_always_be_outbid() -> None:
    """Whoever says the highest term that is let in is outbid by the next one, at every clock."""
    jump, end = bounds(NOW, 1)
    plausible = NumberBounds([ElectionMsg])
    assert judged(plausible, 1, jump) is None
    assert judged(plausible, 2, jump + 1) is None
    assert judged(plausible, 2, jump + 1 + SHORT_STEP) is None
    assert judged(plausible, 2, jump + 2 + 2 * SHORT_STEP) is Reason.FAR_TERM
    behind = NumberBounds([ElectionMsg])  # a clock that is 30 days behind
    assert behind.refuses(1, ElectionMsg(jump - 1), NOW - 30 * 86_400, 0.0) is Reason.FAR_TERM
    assert bounds(NOW - 30 * 86_400, 1).end > jump
    assert judged(plausible, 1, end + 1) is Reason.IMPLAUSIBLE_NUMBER
    assert bounds(NOW + 0.01, 1).end > end


def test_a_clock_that_was_never_set_believes_what_could_be_true_at_the_release() -> None:
    plausible = NumberBounds([ElectionMsg])
    assert plausible.refuses(1, ElectionMsg(10**9), 0.0, 0.0) is None
    assert plausible.refuses(1, ElectionMsg(2**53), 0.0, 0.0) is Reason.IMPLAUSIBLE_NUMBER


def test_terms_below_zero_are_nobodys() -> None:
    assert judged(NumberBounds([ElectionMsg]), 1, -1) is Reason.IMPLAUSIBLE_NUMBER


class VoteMsg(Message, frozen=True, tag="VOTE"):
    """Of a protocol that somebody wrote without a thought of liars."""

    term: int
    candidate: int


class SayMsg(Message, frozen=True, tag="SAY"):
    count: Term
    text: str


def test_a_users_protocol_gets_the_bound_without_doing_anything() -> None:
    plausible = NumberBounds([VoteMsg, SayMsg])
    assert plausible.refuses(1, VoteMsg(2**53, 5), NOW, 0.0) is Reason.IMPLAUSIBLE_NUMBER
    assert plausible.refuses(1, SayMsg(2**53, ""), NOW, 0.0) is Reason.IMPLAUSIBLE_NUMBER
    assert plausible.refuses(1, VoteMsg(3, 2**62), NOW, 0.0) is None


def test_tokens_have_room_for_those_of_every_engine() -> None:
    """A zxid of ZooKeeper's 100,000th epoch is believed, what nobody can lift above is not.

    So nothing that is believed brings an engine to its end, nor will it in 50 years.
    """
    assert bounds(NOW + 50 * 366 * 86_400.0, TOKEN_PACE).end < HIGHEST_LIFT < LARGEST_TOKEN / 1.9
    plausible = NumberBounds([LeaseHeldMsg])
    zxid = 100_000 << 32
    assert plausible.refuses(1, LeaseHeldMsg(3, zxid), NOW, 0.0) is None
    assert (
        plausible.refuses(1, LeaseHeldMsg(3, HIGHEST_LIFT), NOW, 0.0) is Reason.IMPLAUSIBLE_NUMBER
    )
    assert plausible.refuses(1, LeaseHeldMsg(3, 2**63 - 1), NOW, 0.0) is Reason.IMPLAUSIBLE_NUMBER


@pytest.mark.parametrize("behind_s", [0.0, 60.0, 86_400.0])
def test_the_first_token_of_a_quorum_is_believed(behind_s: float) -> None:
    """It begins above a voter's life, which is of today; this clock may be a little behind."""
    life = incarnation_by_clock(NOW) * 1024
    told = LeaseHeldMsg(3, life)
    knowing = NumberBounds([LeaseHeldMsg])
    knowing.said(LeaseHeldMsg(3, 7))
    for plausible in (NumberBounds([LeaseHeldMsg]), knowing):
        assert plausible.refuses(1, told, NOW - behind_s, 0.0) is None


def test_rumours_of_absurd_counters_shut_nobody_out() -> None:
    """What gossip says of a member that counts higher than it ever will: it outbids that."""
    names = ("a", "b", "c")
    with Group(seed=5) as group:
        for name in names:
            group.join(name)
        leader = group.settle(steady=1.0)
        a, b = group.member(leader), group.member(next(n for n in names if n != leader))
        entry = b.node.stack.membership.circle.entry(a.id)
        assert entry is not None
        wire = liar(b, STRANGER)
        for incarnation in (2**53, bounds(time.time(), 1024).end, entry.incarnation):
            for counter in (2**53, bounds(time.time(), 1).end):
                rumour = Entry(entry.who, incarnation, counter, entry.place)
                frame = wire.write(GossipMsg((rumour,), 1, (), None), b.id)
                assert not isinstance(frame, Reason)
                tell(group, b, frame.data)
        group.advance(30.0)
        assert group.settle(steady=1.0) in names
        assert all(len(group.member(name).members()) == 3 for name in names)


def test_the_bounds_are_far_below_what_can_be_written() -> None:
    assert bounds(NOW, 1).end < 2**41
    assert bounds(NOW, 1024).end < 2**53
    assert bounds(NOW, 1_000_000).end < 2**61
    assert bounds(NOW, 1).jump + 2 * int(MONTH * 1000) == bounds(NOW, 1).end
    assert msgspec.msgpack.encode(bounds(NOW, 1_000_000).end)
