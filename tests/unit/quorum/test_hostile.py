"""Whatever arrives: nothing breaks, nothing grows without bound, and strangers decide nothing."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from hustings.core.choice import MemberId
from hustings.core.messages import Message
from hustings.quorum.acceptor import MAX_WAITING
from hustings.quorum.messages import (
    KINDS,
    MOST_VOTERS,
    Change,
    ConfInfoMsg,
    ConfInstalledMsg,
    ConfInstallMsg,
    InvitedMsg,
)
from hustings.quorum.proposer import MAX_SENT
from tests.net.parts import values
from tests.unit.quorum.quorum_kit import THREE, Hall


def near(message: Message) -> Message:
    """The same with small numbers, which are more often those that somebody waits for."""
    return msgspec.convert(_smaller(msgspec.to_builtins(message)), type(message))


def _smaller(value: object) -> object:
    if isinstance(value, list | tuple):
        return [_smaller(each) for each in value]
    if isinstance(value, bool | str) or value is None:
        return value
    assert isinstance(value, int | float)
    return abs(value) % 6


ANY = st.one_of([values(kind) for kind in KINDS])
ANY = st.one_of(ANY, ANY.map(near))
# Only these are believed from members that do not vote: they speak of what voters have decided.
TOLD = (ConfInstallMsg, ConfInfoMsg, ConfInstalledMsg, InvitedMsg)
VOTES = st.one_of([values(kind) for kind in KINDS if kind not in TOLD])
VOTES = st.one_of(VOTES, VOTES.map(near))


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 6), ANY), max_size=20))
@settings(max_examples=48, deadline=None)
def test_nothing_breaks_and_nothing_grows(said: list[tuple[MemberId, MemberId, Message]]) -> None:
    hall = Hall(6)
    hall.call(1)
    for to, sender, message in said:
        hall.group.member(to).deliver(sender, message)
    for member in (1, 2, 3):
        it = hall.of(member)
        assert len(it.acceptor.waiting) <= MAX_WAITING
        assert len(it.acceptor.epochs) <= MOST_VOTERS
        assert len(it.proposer.sent) <= MAX_SENT
        assert len(it.electorate.voters) == 3
        for table in (it.proposer.promises, it.proposer.accepts, it.proposer.refusals):
            assert len(table) <= MOST_VOTERS
        asked = it.recovery
        assert max(len(asked.heard), len(asked.fresh), len(asked.known)) <= MOST_VOTERS
        assert not it.proposer.outbox
        assert not it.proposer.verdicts
        assert not it.reconfiguration.outbox
        assert it.state()


@given(st.lists(st.tuples(st.integers(4, 6), VOTES), max_size=20))
@settings(max_examples=48, deadline=None)
def test_who_does_not_vote_grants_nothing(said: list[tuple[MemberId, Message]]) -> None:
    hall = Hall(6)
    hall.call(1)
    for sender, message in said:
        hall.group.member(1).deliver(sender, message)
        assert hall.leads(1) == 0
    assert hall.of(1).electorate == THREE


def test_other_numbers_of_voters_are_not_believed() -> None:
    hall = Hall(6)
    for voters in ((1,), (1, 2), (1, 2, 2), (1, 2, 3, 4, 5)):
        hall.group.member(1).deliver(4, ConfInfoMsg(3, voters))
        hall.group.member(1).deliver(4, ConfInstallMsg(3, Change(voters, 1, 7), 1, None))
    hall.group.member(1).deliver(4, ConfInstallMsg(3, Change((1, 2, 4), 3, 7), 1, None))
    assert hall.of(1).electorate == THREE
