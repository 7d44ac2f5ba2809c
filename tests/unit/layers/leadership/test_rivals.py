"""Two leaders that took a favour with their office, neither knowing of the other."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hustings.core.choice import Candidate
from hustings.core.outcome import Elected
from hustings.layers.leadership.messages import TidingsMsg
from hustings.layers.leadership.priority import with_favour
from hustings.layers.leadership.state import SECURE
from hustings.protocols.bully import CoordinatorMsg
from tests.unit.layers.leadership.members import Helmsman, following, in_office, people, sent, told

FOUR = people([1, 2, 4])  # beside member 3


def secured(term: int = 5) -> Helmsman:
    leader = in_office(3, FOUR, term=term)
    leader.fire(SECURE)
    assert leader.helm.wanted_favour == 1.0
    return leader


def by_word(leader: Helmsman, favour: float) -> None:
    leader.deliver(4, TidingsMsg((4,), 4, favour))


def by_gossip(leader: Helmsman, favour: float) -> None:
    leader.meet(with_favour(Candidate(4), favour))


@pytest.mark.parametrize("hear", [by_word, by_gossip])
def test_the_worse_of_two_leaders_gives_way(hear: Callable[[Helmsman, float], None]) -> None:
    leader = secured()
    hear(leader, 1.0)
    assert leader.helm.leader == 3
    effects = leader.deliver(4, CoordinatorMsg(6))
    assert told(effects) == [Elected(4, 6)]
    assert not sent(effects, CoordinatorMsg)
    assert leader.helm.wanted_favour == 0.0


def test_the_better_of_two_leaders_stays() -> None:
    leader = in_office(4, people([1, 2, 3]), term=5)
    leader.fire(SECURE)
    leader.deliver(3, TidingsMsg((3,), 4, 1.0))
    effects = leader.deliver(3, CoordinatorMsg(6))
    assert [to for to, _ in sent(effects, CoordinatorMsg)] == [3, 2, 1]
    assert leader.helm.leader == 4


def test_a_claim_without_a_favour_unseats_nobody() -> None:
    leader = secured()
    effects = leader.deliver(4, CoordinatorMsg(6))
    assert [to for to, _ in sent(effects, CoordinatorMsg)] == [4, 2, 1]
    assert leader.helm.leader == 3


def test_a_favour_that_its_member_gave_up_is_over() -> None:
    leader = secured()
    by_word(leader, 1.0)
    leader.meet(with_favour(Candidate(4), 0.0))
    leader.deliver(4, CoordinatorMsg(6))
    assert leader.helm.leader == 3


def test_followers_go_by_whom_they_follow() -> None:
    """What a claim is worth is for the leaders to find out."""
    member = following(2, 3, people([1, 3, 4]), term=5)
    member.deliver(3, TidingsMsg((3,), 5, 1.0))
    member.deliver(4, TidingsMsg((4,), 4, 1.0))
    assert member.helm.electors.favour(3) == 1.0
    assert member.helm.electors.favour(4) == 0.0
