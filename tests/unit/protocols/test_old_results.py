"""A result that is older than what a member knows makes it follow nobody."""

from __future__ import annotations

import pytest

from hustings.core.choice import Candidate, HighestId, MemberId
from hustings.core.outcome import Elected
from hustings.core.view import View
from hustings.protocols.ring import ElectedMsg, Ring, RingConfig
from hustings.protocols.stable import PROPOSER, NackMsg, PrepareMsg, Stable, StableConfig
from hustings.testing import Declare, RecordedMember, Send, SetTimer


def view_of(*members: MemberId) -> View:
    people = {member: Candidate(member) for member in members}
    return View(people, sorted(people))


# Ring: ELECTED of a run before the term that was stored


def ring() -> RecordedMember:
    """Member 2 of four has followed 4 in term 7, and comes back."""
    member = RecordedMember(
        lambda: Ring(RingConfig(), HighestId()), Candidate(2), view_of(1, 2, 3, 4)
    )
    member.start()
    member.deliver(1, ElectedMsg((7, 1), Candidate(4)))
    assert member.outcome == Elected(4, 7)
    member.restart()
    return member


@pytest.mark.parametrize("run", [(1, 1), (6, 4), (7, 1), (7, 4), (8, 1)])
def test_an_older_elected_is_not_accepted_after_a_restart(run: tuple[int, int]) -> None:
    """Older than the run that it begins when it is back, (8, 2)."""
    member = ring()
    assert member.deliver(1, ElectedMsg(run, Candidate(4))) == []
    assert not isinstance(member.outcome, Elected)


@pytest.mark.parametrize("run", [(8, 3), (9, 1)])
def test_a_later_elected_is_accepted_after_a_restart(run: tuple[int, int]) -> None:
    effects = ring().deliver(1, ElectedMsg(run, Candidate(4)))
    assert Declare(Elected(4, run[0])) in effects
    assert Send(3, ElectedMsg(run, Candidate(4))) in effects


@pytest.mark.parametrize("run, accepted", [((3, 1), False), ((4, 4), False), ((5, 1), True)])
def test_a_member_that_knows_a_term_and_no_run_refuses_what_is_older(
    run: tuple[int, int], accepted: bool
) -> None:
    """As one that was told of a leader, or has read its term from its disk."""
    member = ring()
    member.start()
    member.election = Ring(RingConfig(), HighestId())
    member.assume_leader(4, 5)
    effects = member.deliver(1, ElectedMsg(run, Candidate(3)))
    assert (Declare(Elected(3, run[0])) in effects) is accepted
    assert bool(effects) is accepted


# Stable: an objector that names a leader of before what the proposer has committed


def proposer() -> tuple[RecordedMember, tuple[int, MemberId]]:
    """Member 2 of three follows 3 in term 5, and asks whether 3 is dead."""
    member = RecordedMember(
        lambda: Stable(StableConfig(), HighestId()), Candidate(2), view_of(1, 2, 3)
    )
    member.start()
    member.assume_leader(3, 5)
    (asked,) = [each.message for each in member.suspect(3) if isinstance(each, Send)]
    assert isinstance(asked, PrepareMsg)
    return member, asked.round


@pytest.mark.parametrize("behind", [(0, 0), (3, 1), (4, 9)])
def test_an_objector_that_is_behind_is_not_followed(behind: tuple[int, MemberId]) -> None:
    """It believes in the leader of a round that the proposer knows to be over: ask again later."""
    member, number = proposer()
    effects = member.deliver(1, NackMsg(number, False, 1, behind, 5))
    assert not any(isinstance(each, Declare) for each in effects)
    assert any(isinstance(each, SetTimer) and each.key == PROPOSER for each in effects)
    assert not isinstance(member.outcome, Elected)


def test_an_objector_that_is_ahead_is_followed() -> None:
    member, number = proposer()
    effects = member.deliver(1, NackMsg(number, False, 1, (9, 1), 9))
    assert Declare(Elected(1, 9)) in effects
