"""Standing, incumbency and the electors: who is compared by what, and who may be elected."""

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
    IN_OFFICE,
    LAST_RESORT,
    STANDING,
    ByStanding,
    accepts,
    is_observer,
    standing_of,
    with_attribute,
    with_standing,
)
from hustings.protocols.bully import Bully, BullyConfig
from tests.unit.layers.leadership.members import observer, order, people

BY_CPU = ByStanding(parse_choice("highest:cpu"))


def test_the_incumbent_comes_before_the_choice() -> None:
    by_cpu = ByStanding(parse_choice("highest:cpu"))
    worse, better = candidate(1, cpu=1.0), candidate(2, cpu=8.0)
    assert by_cpu.better(better, worse)
    by_cpu.incumbent = 1
    assert by_cpu.better(worse, better)
    assert not by_cpu.better(better, worse)
    assert not by_cpu.better(worse, worse)
    assert by_cpu.key(worse) == (0.0, 1.0, 1.0, 1)
    assert by_cpu.key(better) == (0.0, 0.0, 8.0, 2)
    assert by_cpu.better(better, candidate(3, cpu=1.0)), "among others the choice decides"
    assert by_cpu.name == "standing:highest:cpu"


def test_an_incumbent_that_stands_back_comes_after_all_others() -> None:
    mine = ByStanding(HighestId(), incumbent=2)
    assert mine.better(Candidate(1), with_standing(Candidate(2), LAST_RESORT))


def test_key_and_better_agree() -> None:
    everybody = [
        with_standing(Candidate(each), standing)
        for each in range(4)
        for standing in (ELIGIBLE, LAST_RESORT, IN_OFFICE)
    ]
    for incumbent in (None, 0, 2):
        mine = ByStanding(HighestId(), incumbent, several=True)
        for one in everybody:
            for other in everybody:
                if one.id != other.id:
                    assert mine.better(one, other) == (mine.key(one) > mine.key(other))


def test_the_last_resort_comes_after_all_others() -> None:
    worse, better = candidate(1, cpu=1.0), with_standing(candidate(2, cpu=8.0), LAST_RESORT)
    assert BY_CPU.better(worse, better)
    assert not BY_CPU.better(better, worse)
    assert BY_CPU.better(better, with_standing(worse, LAST_RESORT))
    assert BY_CPU.can_rank(better)


def test_only_one_of_several_leaders_may_say_that_it_is_in_office() -> None:
    said = with_standing(Candidate(1), IN_OFFICE)
    assert not order().can_rank(said)
    assert not accepts(order())(said)
    assert ByStanding(HighestId(), several=True).can_rank(said)


@pytest.mark.parametrize(
    "standing", [math.nan, math.inf, -math.inf, 0.5, -0.5, 1.0, 2.0, -3.0, 1e300]
)
def test_a_standing_that_is_none_of_the_three_is_not_let_in(standing: float) -> None:
    assert not accepts(order())(Candidate(1, ((STANDING, standing),)))
    assert accepts(order())(with_standing(Candidate(1), LAST_RESORT))


def test_observers_are_let_in_without_what_others_are_ranked_by() -> None:
    let_in = accepts(BY_CPU)
    assert let_in(observer(3))
    assert not let_in(Candidate(3))
    assert not BY_CPU.can_rank(observer(3))
    assert not order().can_rank(observer(3))


def test_attributes_stay_sorted_and_what_is_usual_is_not_mentioned() -> None:
    member = candidate(1, cpu=8.0, zone=2.0)
    assert with_attribute(member, "load", 0.5) == candidate(1, cpu=8.0, load=0.5, zone=2.0)
    assert with_attribute(member, "cpu", 4.0) == candidate(1, cpu=4.0, zone=2.0)
    back = with_standing(member, LAST_RESORT)
    assert standing_of(back) == LAST_RESORT
    assert list(back.attributes) == sorted(back.attributes)
    assert with_standing(back, LAST_RESORT) is back
    assert with_standing(back, ELIGIBLE) == member
    assert standing_of(member) == ELIGIBLE
    assert is_observer(observer(1))
    assert not is_observer(back)


def test_an_election_that_ignores_standing_has_no_leadership_layer() -> None:
    with pytest.raises(ProtocolBug, match="standing"):
        LeadershipLayer(Bully(BullyConfig(), HighestId()), LeadershipConfig())


def test_no_two_members_share_an_order() -> None:
    """Each would take the other's incumbent for its own."""
    shared = order()
    LeadershipLayer(Bully(BullyConfig(), shared), LeadershipConfig())
    with pytest.raises(ProtocolBug, match="of its own"):
        LeadershipLayer(Bully(BullyConfig(), shared), LeadershipConfig())


def test_an_election_has_one_leadership_layer() -> None:
    inner = LeadershipLayer(Bully(BullyConfig(), order()), LeadershipConfig())
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
    base, electors = Base(ME, Candidate(2), observer(3)), Electors(order())
    changes = electors.refresh(base.view, ME, 0.0)
    assert electors.view.ids == [1, 2]
    assert list(changes.added) == [2]
    assert list(electors.observers) == [3]
    base.put(observer(2))
    changes = electors.refresh(base.view, ME, 1.0)
    assert (list(changes.added), list(changes.lost)) == ([], [2])
    assert electors.view.ids == [1]


def test_the_view_is_the_same_while_nothing_has_changed() -> None:
    base, electors = Base(ME, *people([2, 3])), Electors(order())
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
    mine = order()
    base, electors = Base(ME, *people([2, 3])), Electors(mine)
    electors.refresh(base.view, ME, 0.0)
    assert electors.view.ranking(mine).ids == (3, 2, 1)
    version = electors.view.version
    base.put(with_standing(Candidate(3), LAST_RESORT))
    electors.refresh(base.view, ME, 1.0)
    assert electors.view.version > version
    assert electors.view.ranking(mine).ids == (2, 1, 3)
    electors.stand(with_standing(ME, LAST_RESORT))
    assert electors.view.ranking(mine).ids == (2, 3, 1)


def test_a_new_incumbent_is_a_new_version_and_a_new_ranking() -> None:
    mine = order()
    base, electors = Base(ME, *people([2, 3])), Electors(mine)
    electors.refresh(base.view, ME, 0.0)
    assert electors.view.ranking(mine).ids == (3, 2, 1)
    for incumbent, ranked in ((2, (2, 3, 1)), (1, (1, 3, 2)), (None, (3, 2, 1)), (99, (3, 2, 1))):
        version = electors.view.version
        electors.put_first(incumbent)
        assert electors.incumbent == incumbent
        assert electors.view.ranking(mine).ids == ranked
        assert (electors.view.version > version) == (incumbent != 99)
        version = electors.view.version
        electors.put_first(incumbent)
        assert electors.view.version == version, "nothing has changed"


def test_a_member_that_comes_back_begins_anew() -> None:
    base, electors = Base(ME, *people([2, 3])), Electors(order())
    electors.refresh(base.view, ME, 0.0)
    base.view.remove(2)
    electors.refresh(base.view, ME, 1.0)
    base.put(Candidate(2))
    changes = electors.refresh(base.view, ME, 2.0)
    assert list(changes.added) == [2]
    assert electors.since == {3: 0.0, 2: 2.0}


def test_the_estimate_is_passed_on_less_the_observers() -> None:
    base, electors = Base(ME, *people([2, 3])), Electors(order())
    base.view.estimate = 3.3
    electors.refresh(base.view, ME, 0.0)
    assert electors.view.estimate == 3.3
    base.view.estimate = 4.0  # changes without a version
    base.put(observer(9))
    electors.refresh(base.view, ME, 0.0)
    assert electors.view.estimate == 3.0
