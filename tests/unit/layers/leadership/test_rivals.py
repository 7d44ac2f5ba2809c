"""Two leaders that took a priority with their office, neither knowing of the other."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hustings.core.choice import Candidate
from hustings.core.outcome import Elected
from hustings.layers.leadership.incumbency import SECURE
from hustings.layers.leadership.messages import LeaderInfoMsg
from hustings.layers.leadership.standing import with_priority
from hustings.protocols.bully import CoordinatorMsg
from tests.unit.layers.leadership.members import (
    LeadingMember,
    following,
    in_office,
    people,
    sent,
    told,
)

FOUR = people([1, 2, 4])  # beside member 3


def secured(term: int = 5) -> LeadingMember:
    leader = in_office(3, FOUR, term=term)
    leader.fire(SECURE)
    assert leader.leadership.incumbency.priority == 1.0
    return leader


def by_word(leader: LeadingMember, priority: float) -> None:
    leader.deliver(4, LeaderInfoMsg((4,), 4, priority))


def by_gossip(leader: LeadingMember, priority: float) -> None:
    leader.meet(with_priority(Candidate(4), priority))


@pytest.mark.parametrize("hear", [by_word, by_gossip])
def test_the_worse_of_two_leaders_gives_way(hear: Callable[[LeadingMember, float], None]) -> None:
    leader = secured()
    hear(leader, 1.0)
    assert leader.leadership.leader == 3
    effects = leader.deliver(4, CoordinatorMsg(6))
    assert told(effects) == [Elected(4, 6)]
    assert not sent(effects, CoordinatorMsg)
    assert leader.leadership.incumbency.priority == 0.0


def test_the_better_of_two_leaders_stays() -> None:
    leader = in_office(4, people([1, 2, 3]), term=5)
    leader.fire(SECURE)
    leader.deliver(3, LeaderInfoMsg((3,), 4, 1.0))
    effects = leader.deliver(3, CoordinatorMsg(6))
    assert [to for to, _ in sent(effects, CoordinatorMsg)] == [3, 2, 1]
    assert leader.leadership.leader == 4


def test_a_claim_without_a_priority_unseats_nobody() -> None:
    leader = secured()
    effects = leader.deliver(4, CoordinatorMsg(6))
    assert [to for to, _ in sent(effects, CoordinatorMsg)] == [4, 2, 1]
    assert leader.leadership.leader == 3


def test_a_priority_that_its_member_gave_up_is_over() -> None:
    leader = secured()
    by_word(leader, 1.0)
    leader.meet(with_priority(Candidate(4), 0.0))
    leader.deliver(4, CoordinatorMsg(6))
    assert leader.leadership.leader == 3


def test_followers_go_by_whom_they_follow() -> None:
    """What a claim is worth is for the leaders to find out."""
    member = following(2, 3, people([1, 3, 4]), term=5)
    member.deliver(3, LeaderInfoMsg((3,), 5, 1.0))
    member.deliver(4, LeaderInfoMsg((4,), 4, 1.0))
    assert member.leadership.electors.priority(3) == 1.0
    assert member.leadership.electors.priority(4) == 0.0
