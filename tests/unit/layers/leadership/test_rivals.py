"""Two leaders, each with followers: the later term wins, and in one term the better leader."""

from __future__ import annotations

import pytest

from hustings.core.choice import Candidate
from hustings.core.election import Election
from hustings.core.messages import Message
from hustings.core.outcome import Elected
from hustings.layers.leadership.layer import LeadershipConfig
from hustings.layers.leadership.messages import MAX_TERM, HandOverMsg, LeaderInfoMsg
from hustings.protocols.announce.le_s import LeS
from hustings.protocols.announce.messages import AnnounceMsg
from hustings.protocols.bully import CoordinatorMsg
from hustings.testing.effects import Effect, Multicast, Send
from tests.unit.layers.leadership.members import (
    LeadingMember,
    following,
    in_office,
    order,
    people,
    sent,
    told,
)

FOUR = people([1, 2, 4])  # beside member 3


def le_s() -> Election:
    return LeS(LeS.Settings.parse({"T_A": 2.0, "T_L": 9.0}), order())


def announcing(me: int, leader: int, term: int = 5) -> LeadingMember:
    """A member of an election that announces, and follows or is the leader for long."""
    member = LeadingMember(me, people(each for each in range(1, 5) if each != me), elect=le_s)
    member.start()
    member.assume_leader(leader, term)
    return member


def claim(member: int, term: int, number: int = 1) -> AnnounceMsg:
    return AnnounceMsg(term, number, Candidate(member))


def claims(effects: list[Effect]) -> list[int]:
    """The terms that a member claims."""
    said: list[Message] = [each.message for each in effects if isinstance(each, Send | Multicast)]
    return [each.term for each in said if isinstance(each, AnnounceMsg | CoordinatorMsg)]


@pytest.mark.parametrize("rival", [2, 4])
def test_the_later_term_wins(rival: int) -> None:
    """Whether the rival is better or worse does not matter."""
    leader = announcing(3, 3)
    assert told(leader.deliver(rival, claim(rival, 6, 2))) == [Elected(rival, 6)]
    assert "T_A" not in leader.timers
    leader = in_office(3, FOUR, term=5)
    effects = leader.deliver(rival, CoordinatorMsg(6))
    assert told(effects) == [Elected(rival, 6)]
    assert not claims(effects)


@pytest.mark.parametrize("rival", [2, 4])
def test_a_leader_contradicts_a_first_claim(rival: int) -> None:
    leader = announcing(3, 3)
    effects = leader.deliver(rival, claim(rival, 6))
    assert claims(effects) == [7]
    assert leader.outcome == Elected(3, 7)
    assert told(leader.deliver(rival, claim(rival, 6, 2))) == [], "an older claim"
    assert told(leader.deliver(rival, claim(rival, 8, 3))) == [Elected(rival, 8)]


def test_each_first_claim_is_one() -> None:
    """One member misses its leader now and again: the leader must stay each time."""
    leader = announcing(3, 3)
    for term in (6, 8, 10):
        assert claims(leader.deliver(4, claim(4, term))) == [term + 1]
        leader.clock += LeadershipConfig().delta
    assert leader.leadership.leader == 3


def test_many_first_claims_do_not_make_many_announcements() -> None:
    leader = announcing(3, 3)
    said = [claims(leader.deliver(4, claim(4, 6 + each))) for each in range(100)]
    assert [each for each in said if each] == [[7]]
    assert claims(leader.fire("T_A")) == [106], "the next announcement contradicts them all"


@pytest.mark.parametrize("term", [0, -1, MAX_TERM + 1])
def test_a_claim_in_a_term_that_cannot_be_displaces_nobody(term: int) -> None:
    for leader, word in (
        (announcing(3, 3), claim(4, term, 9)),
        (in_office(3, FOUR, term=5), CoordinatorMsg(term)),
    ):
        leader.deliver(4, word)
        assert leader.leadership.leader == 3
        assert leader.leadership.electors.incumbent == 3


def test_a_member_that_missed_its_leader_goes_back_to_it() -> None:
    member = announcing(4, 3)
    member.fire("T_L")
    assert claims(member.fire("T_S")) == [6]
    effects = member.deliver(3, claim(3, 7, 40))
    assert told(effects) == [Elected(3, 7)]
    assert "T_A" not in member.timers


@pytest.mark.parametrize("elect", [announcing, following])
def test_a_claim_in_an_earlier_term_is_not_heard(elect: object) -> None:
    for term in (3, 4):
        member = announcing(1, 3) if elect is announcing else following(1, 3, people([2, 3, 4]))
        if elect is not announcing:
            member.deliver(3, LeaderInfoMsg((3,), 5))
        word = claim(4, term, 9) if elect is announcing else CoordinatorMsg(term)
        effects = member.deliver(4, word)
        assert not told(effects)
        assert not claims(effects)
        # A leader that announces itself is heard anyway.
        answer = [] if elect is announcing else [(4, LeaderInfoMsg((3,), 5))]
        assert sent(effects, LeaderInfoMsg) == answer


def test_of_two_leaders_in_one_term_the_better_insists() -> None:
    for leader in (announcing(3, 3), in_office(3, FOUR, term=5)):
        announces = leader.leadership.announces
        word = claim(2, 5, 7) if announces else CoordinatorMsg(5)
        effects = leader.deliver(2, word)
        assert Multicast(HandOverMsg(3, 6)) in effects
        assert told(effects) == [Elected(3, 6)]
    worse = announcing(3, 3)
    assert worse.deliver(4, claim(4, 5, 1)) == []
    assert told(worse.deliver(4, claim(4, 5, 2))) == [Elected(4, 5)]
    told_of_it = in_office(3, FOUR, term=5).deliver(4, CoordinatorMsg(5))
    assert told_of_it == [Send(4, LeaderInfoMsg((3,), 5))]


def test_a_follower_goes_with_the_better_of_two_leaders_in_one_term() -> None:
    member = announcing(1, 3)
    assert told(member.deliver(2, claim(2, 5, 2))) == []
    assert told(member.deliver(4, claim(4, 5, 1))) == []
    assert told(member.deliver(4, claim(4, 5, 2))) == [Elected(4, 5)]
    assert told(member.deliver(3, claim(3, 5, 40))) == []


def test_a_leader_of_a_later_term_is_followed_also_before_it_is_in_view() -> None:
    for leader in (1, 3):
        member = announcing(leader, 3)
        assert told(member.deliver(9, claim(9, 5, 2))) == []
        assert told(member.deliver(9, claim(9, 6, 3))) == [Elected(9, 6)]


def test_a_follower_waits_for_its_leader_to_insist() -> None:
    member = announcing(1, 3)
    assert told(member.deliver(4, claim(4, 6))) == []
    assert told(member.deliver(3, claim(3, 7, 40))) == [Elected(3, 7)]
    assert told(member.deliver(4, claim(4, 6, 2))) == []
    assert member.leadership.leader == 3


def test_a_follower_follows_the_leader_of_the_later_term_if_its_own_does_not_insist() -> None:
    member = announcing(1, 3)
    member.deliver(4, claim(4, 6))
    assert told(member.deliver(4, claim(4, 6, 2))) == [Elected(4, 6)]
    assert member.leadership.electors.incumbent == 4
    assert told(member.deliver(3, claim(3, 5, 40))) == []


def test_a_leader_in_its_probation_gives_way_to_the_better_one() -> None:
    leader = LeadingMember(3, FOUR, elect=le_s)
    leader.start()
    leader.call()
    assert claims(leader.fire("T_S")) == [1]
    assert told(leader.deliver(4, claim(4, 1))) == [Elected(4, 1)]


def test_a_stranger_that_is_not_in_view_displaces_nobody() -> None:
    leader = in_office(3, FOUR, term=5)
    assert not told(leader.deliver(99, CoordinatorMsg(4)))
    assert leader.leadership.leader == 3


def test_a_follower_takes_the_later_term_of_its_leader_also_if_it_knew_that_term() -> None:
    member = LeadingMember(1, people([2, 3, 4]), elect=le_s)
    member.start()
    member.call()
    assert told(member.deliver(3, claim(3, 1))) == [Elected(3, 1)]
    assert told(member.deliver(2, claim(2, 4))) == [], "a worse one, in a later term"
    assert told(member.deliver(3, claim(3, 4, 2))) == [Elected(3, 4)]
    assert told(member.deliver(3, claim(3, 4, 3))) == []
