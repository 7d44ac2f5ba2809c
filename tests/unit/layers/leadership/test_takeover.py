"""Every election lets itself be told who leads, also in the middle of a run of its own."""

from __future__ import annotations

import pytest

from hustings.core.choice import Candidate
from hustings.core.election import Election
from hustings.core.outcome import Elected
from hustings.layers.leadership.layer import JOIN
from hustings.layers.leadership.messages import HandOverMsg
from hustings.protocols.probabilistic.election import Probabilistic
from hustings.protocols.probabilistic.messages import Call, FinalMsg
from hustings.protocols.registry import COMPARED, LARGE, classes
from hustings.protocols.ring import ElectedMsg, Ring, RingConfig
from hustings.testing.effects import Declare
from hustings.testing.recorded import RecordedMember, view_of
from tests.unit.layers.leadership.members import LeadingMember, order, people, told

MARK = pytest.mark.parametrize(
    "kind", [*classes(COMPARED), *classes(LARGE)], ids=lambda kind: kind.about.name
)


def electing(kind: type[Election]) -> RecordedMember:
    """Member 1 of three, with a run under way."""
    member = RecordedMember(
        lambda: kind(kind.Settings(), order()), Candidate(1), view_of(people([1, 2, 3]))
    )
    member.start()
    member.assume_leader(3, 1)
    member.suspect(3)
    assert member.timers, "it waits for something"
    return member


@MARK
def test_a_run_ends_where_a_leader_is_assumed(kind: type[Election]) -> None:
    member = electing(kind)
    member.assume_leader(2, 9)
    for _ in range(10):
        for key in list(member.timers):
            assert not [e for e in member.fire(key) if isinstance(e, Declare)]
    assert (member.election.leader, member.election.term) == (2, 9)


@MARK
def test_whom_it_suspected_may_be_assumed_again(kind: type[Election]) -> None:
    member = electing(kind)
    member.assume_leader(3, 9)
    assert member.election.leader == 3
    effects = member.suspect(3)  # and missed anew
    assert [e for e in effects if not isinstance(e, Declare)]
    assert member.election.leader != 3 or member.timers


@MARK
def test_one_may_assume_itself(kind: type[Election]) -> None:
    member = electing(kind)
    member.assume_leader(1, 9)
    for _ in range(10):
        for key in list(member.timers):
            member.fire(key)
    assert member.election.leader == 1
    assert member.election.term >= 9


def test_a_result_that_comes_too_late_does_not_count() -> None:
    ring = RecordedMember(
        lambda: Ring(RingConfig(), order()), Candidate(1), view_of(people([1, 2, 3]))
    )
    ring.start()
    ring.assume_leader(2, 9)
    assert ring.deliver(3, ElectedMsg((8, 3), Candidate(3))) == []
    assert ring.election.leader == 2


def test_a_final_of_the_call_that_was_overtaken_does_not_count() -> None:
    member = RecordedMember(
        lambda: Probabilistic(Probabilistic.Settings(), order()),
        Candidate(1),
        view_of(people([1, 2, 3])),
    )
    member.start()
    call = Call(1, 3, 77)
    member.deliver(3, FinalMsg(call, 1, Candidate(3)))
    member.fire("T_1")
    assert member.outcome == Elected(3, 1)
    member.assume_leader(2, 2)
    assert member.deliver(2, FinalMsg(call, 1, Candidate(3))) == []
    assert (member.election.leader, member.election.term) == (2, 2)


@MARK
def test_a_stored_term_counts_before_the_election_has_begun(kind: type[Election]) -> None:
    member = LeadingMember(1, people([2, 3]), elect=lambda: kind(kind.Settings(), order()))
    member.start()
    assert told(member.deliver(2, HandOverMsg(1, 7))) == [Elected(1, 7)]
    member.restart()
    assert not told(member.deliver(2, HandOverMsg(3, 6)))
    assert told(member.deliver(2, HandOverMsg(3, 8))) == [Elected(3, 8)]


@MARK
def test_a_term_that_the_election_declares_is_stored(kind: type[Election]) -> None:
    member = LeadingMember(1, [], elect=lambda: kind(kind.Settings(), order()))
    member.start()
    member.fire(JOIN)
    while not isinstance(member.outcome, Elected):
        member.fire(next(iter(member.timers)))
    assert member.stored["term"] == member.outcome.term
