"""Standing, priority and the electors: who is compared by what, and who may be elected."""

from __future__ import annotations

import math

import pytest

from hustings.core.choice import Candidate, HighestId, candidate, parse_choice
from hustings.core.errors import ProtocolBug
from hustings.core.view import View
from hustings.layers.leadership.electors import Electors
from hustings.layers.leadership.layer import LeadershipConfig, LeadershipLayer
from hustings.layers.leadership.standing import (
    ELIGIBLE,
    LAST_RESORT,
    MAX_PRIORITY,
    PRIORITY,
    STANDING,
    ByStanding,
    accepts,
    is_observer,
    priority_of,
    standing_of,
    with_attribute,
    with_priority,
    with_standing,
)
from hustings.protocols.bully import Bully, BullyConfig
from tests.unit.layers.leadership.members import ORDER, observer, people

BY_CPU = ByStanding(parse_choice("highest:cpu"))


def test_priority_comes_before_the_choice() -> None:
    worse, better = candidate(1, cpu=1.0), candidate(2, cpu=8.0)
    assert BY_CPU.better(better, worse)
    preferred = with_priority(worse, 0.5)
    assert BY_CPU.better(preferred, better)
    assert not BY_CPU.better(better, preferred)
    assert BY_CPU.key(preferred) == (0.0, 0.5, 1.0, 1)
    assert BY_CPU.key(better) == (0.0, 0.0, 8.0, 2)


def test_equal_priority_leaves_it_to_the_choice() -> None:
    one, other = (
        with_priority(candidate(1, cpu=8.0), 2.0),
        with_priority(candidate(2, cpu=1.0), 2.0),
    )
    assert BY_CPU.better(one, other)
    assert BY_CPU.name == "standing:highest:cpu"


def test_the_last_resort_comes_after_all_others() -> None:
    worse, better = candidate(1, cpu=1.0), with_standing(candidate(2, cpu=8.0), LAST_RESORT)
    assert BY_CPU.better(worse, better)
    assert not BY_CPU.better(better, worse)
    assert BY_CPU.better(better, with_standing(worse, LAST_RESORT))
    assert BY_CPU.can_rank(better)


@pytest.mark.parametrize("priority", [math.nan, math.inf, -math.inf, 2 * MAX_PRIORITY, -1.0])
def test_a_priority_that_is_no_number_cannot_be_ranked(priority: float) -> None:
    assert not ORDER.can_rank(Candidate(1, ((PRIORITY, priority),)))
    assert ORDER.can_rank(Candidate(1, ((PRIORITY, 1.0),)))
    assert not BY_CPU.can_rank(Candidate(1, ((PRIORITY, 1.0),)))


@pytest.mark.parametrize("standing", [math.nan, math.inf, -math.inf, 0.5, -0.5, 1.0, -3.0, 1e300])
def test_a_standing_that_is_none_of_the_three_is_not_let_in(standing: float) -> None:
    assert not accepts(ORDER)(Candidate(1, ((STANDING, standing),)))
    assert accepts(ORDER)(with_standing(Candidate(1), LAST_RESORT))


def test_observers_are_let_in_without_what_others_are_ranked_by() -> None:
    let_in = accepts(BY_CPU)
    assert let_in(observer(3))
    assert not let_in(Candidate(3))
    assert not BY_CPU.can_rank(observer(3))
    assert not ORDER.can_rank(observer(3))


def test_attributes_stay_sorted_and_what_is_usual_is_not_mentioned() -> None:
    member = candidate(1, cpu=8.0, zone=2.0)
    assert with_attribute(member, "load", 0.5) == candidate(1, cpu=8.0, load=0.5, zone=2.0)
    assert with_attribute(member, "cpu", 4.0) == candidate(1, cpu=4.0, zone=2.0)
    raised = with_priority(member, 3.0)
    assert priority_of(raised) == 3.0
    assert list(raised.attributes) == sorted(raised.attributes)
    assert with_priority(raised, 3.0) is raised
    assert with_priority(raised, 0.0) == member
    back = with_standing(member, LAST_RESORT)
    assert standing_of(back) == LAST_RESORT
    assert with_standing(back, LAST_RESORT) is back
    assert with_standing(back, ELIGIBLE) == member
    assert standing_of(member) == ELIGIBLE
    assert is_observer(observer(1))
    assert not is_observer(back)


def test_an_election_that_ignores_standing_has_no_leadership_layer() -> None:
    with pytest.raises(ProtocolBug, match="standing"):
        LeadershipLayer(Bully(BullyConfig(), HighestId()), LeadershipConfig())


def test_an_election_has_one_leadership_layer() -> None:
    inner = LeadershipLayer(Bully(BullyConfig(), ORDER), LeadershipConfig())
    with pytest.raises(ProtocolBug, match="TRANSFER-LEADER"):
        LeadershipLayer(inner, LeadershipConfig())


# The electors


class Base:
    """A world's view that may be changed."""

    def __init__(self, *members: Candidate) -> None:
        self.directory = {each.id: each for each in members}
        self.view = View(self.directory, sorted(self.directory))

    def put(self, member: Candidate) -> None:
        self.directory[member.id] = member
        self.view.add(member.id)


ME = Candidate(1)


def test_observers_are_not_among_the_electors() -> None:
    base, electors = Base(ME, Candidate(2), observer(3)), Electors()
    changes = electors.refresh(base.view, ME, 0.0)
    assert electors.view.ids == [1, 2]
    assert list(changes.added) == [2]
    assert list(electors.observers) == [3]
    base.put(observer(2))
    changes = electors.refresh(base.view, ME, 1.0)
    assert (list(changes.added), list(changes.lost)) == ([], [2])
    assert electors.view.ids == [1]


def test_the_view_is_the_same_while_nothing_has_changed() -> None:
    base, electors = Base(ME, *people([2, 3])), Electors()
    electors.refresh(base.view, ME, 0.0)
    view, version = electors.view, electors.view.version
    electors.refresh(base.view, ME, 1.0)
    base.put(observer(9))  # of no concern to the electors
    electors.refresh(base.view, ME, 2.0)
    base.put(Candidate(2))  # no news
    electors.refresh(base.view, ME, 3.0)
    assert electors.view is view
    assert view.version == version
    base.put(Candidate(4))
    electors.refresh(base.view, ME, 4.0)
    assert electors.view is view
    assert view.version > version
    assert view.ids == [1, 2, 3, 4]


def test_new_attributes_are_a_new_version_and_a_new_ranking() -> None:
    base, electors = Base(ME, *people([2, 3])), Electors()
    electors.refresh(base.view, ME, 0.0)
    assert electors.view.ranking(ORDER).ids == (3, 2, 1)
    version = electors.view.version
    base.put(with_priority(Candidate(2), 1.0))
    electors.refresh(base.view, ME, 1.0)
    assert electors.view.version > version
    assert electors.view.ranking(ORDER).ids == (2, 3, 1)
    electors.stand(with_priority(ME, 5.0))
    assert electors.view.ranking(ORDER).ids == (1, 2, 3)


def test_a_priority_that_was_told_counts_until_gossip_says_something_else() -> None:
    base, electors = Base(ME, *people([2, 3])), Electors()
    electors.refresh(base.view, ME, 0.0)
    electors.tell(2, 4.0)
    assert electors.priority(2) == 4.0
    base.put(Candidate(2))  # gossip, which knows nothing new
    electors.refresh(base.view, ME, 1.0)
    assert electors.priority(2) == 4.0
    base.put(with_priority(Candidate(2), 1.0))
    electors.refresh(base.view, ME, 2.0)
    assert electors.priority(2) == 1.0


def test_what_was_told_only_adds_and_ends_with_the_office() -> None:
    base, electors = Base(ME, with_priority(Candidate(2), 3.0), Candidate(3)), Electors()
    electors.refresh(base.view, ME, 0.0)
    electors.tell(2, 1.0)
    assert electors.priority(2) == 3.0
    electors.tell(3, 4.0)
    electors.trust(3)
    assert electors.priority(3) == 4.0
    electors.trust(2)
    assert electors.priority(3) == 0.0
    electors.tell(99, 1.0)  # of somebody unknown
    assert 99 not in electors


def test_a_priority_does_not_outlive_its_member() -> None:
    base, electors = Base(ME, *people([2, 3])), Electors()
    electors.refresh(base.view, ME, 0.0)
    electors.tell(2, 4.0)
    base.view.remove(2)
    electors.refresh(base.view, ME, 1.0)
    base.put(Candidate(2))
    changes = electors.refresh(base.view, ME, 2.0)
    assert list(changes.added) == [2]
    assert electors.priority(2) == 0.0
    assert electors.since == {3: 0.0, 2: 2.0}


def test_the_estimate_is_passed_on_less_the_observers() -> None:
    base, electors = Base(ME, *people([2, 3])), Electors()
    base.view.estimate = 3.3
    electors.refresh(base.view, ME, 0.0)
    assert electors.view.estimate == 3.3
    base.view.estimate = 4.0  # changes without a version
    base.put(observer(9))
    electors.refresh(base.view, ME, 0.0)
    assert electors.view.estimate == 3.0
