"""A member that leads with a token that nobody believes: it is told, gives back and asks anew."""

from __future__ import annotations

from hustings.core.outcome import Elected, NoLeader
from hustings.layers.lease import ASK, AWAITING, END, LeaseHeldMsg
from hustings.testing import Acquire, CancelTimer, Declare, Release, Send, SetTimer, persist
from tests.unit.layers.puppets import Driven


def test_who_leads_with_a_token_that_nobody_believes_is_told_the_larger_one(
    driven: Driven,
) -> None:
    """A guard that has lost its memory has let in a member that did not know."""
    driven.hear(3, 7)
    assert driven.hear(3, 6) == [Send(3, LeaseHeldMsg(3, 7))], "it came back, and knows nothing"
    assert driven.hear(1, 6) == [], "a former leader, late: there is a newer one"
    assert driven.member.deliver(1, LeaseHeldMsg(3, 6)) == [], "hearsay"
    driven.member.restart()
    assert driven.hear(1, 6) == [Send(1, LeaseHeldMsg(1, 7))]


def test_who_hears_of_a_larger_token_than_its_own_gives_back_and_asks_anew(
    leading: Driven,
) -> None:
    assert leading.at(105.0).member.deliver(3, LeaseHeldMsg(2, 1000)) == [
        persist(token=1000),
        CancelTimer(END),
        Declare(NoLeader(AWAITING)),
        Release(2),
        SetTimer(ASK, 3.0),
    ]
    assert leading.at(108.0).member.fire(ASK)[:1] == [Acquire(30.0, 3)]
    leading.grant(request=3, token=1001)
    assert leading.outcome == Elected(2, 1001)


def test_it_gives_back_only_when_its_work_has_ended(leading: Driven) -> None:
    leading.election.engaged = 1
    told = leading.at(105.0).member.deliver(3, LeaseHeldMsg(2, 1000))
    assert Declare(NoLeader(AWAITING)) in told
    assert Release(2) not in told


def test_a_token_that_was_ones_own_is_nobody_elses(leading: Driven) -> None:
    leading.at(120.0).member.fire(END)
    assert leading.hear(3, 7) == []
    assert leading.election.leader is None
    fresh = Driven()
    assert fresh.hear(3, 1) == [persist(token=1), Declare(Elected(3, 1))], "the very first token"


def test_a_guard_that_says_less_than_is_known_shows_nobody(driven: Driven) -> None:
    """It has lost its memory, or its answer is late."""
    driven.hear(3, 7)
    driven.nominate()
    for holder, token in ((1, 6), (3, 5)):
        said = driven.refuse(holder, token)
        assert not [each for each in said if isinstance(each, Declare)]
        driven.member.fire(ASK)
    assert driven.election.term == 7


def test_what_was_asked_before_a_give_back_is_not_taken_up(driven: Driven) -> None:
    """A guard that forgot grants too little; an answer to an earlier question counts no more."""
    driven.hear(3, 7)
    driven.nominate()
    driven.member.fire(ASK)
    assert driven.grant(token=6, request=2) == [Release(3)]
    assert driven.grant(token=8, request=1) == []
    assert driven.election.until is None
