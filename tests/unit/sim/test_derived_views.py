"""Views that follow from a seed: their law, their size, and that they behave as listed ones do."""

from __future__ import annotations

import math
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hustings.core.choice import Candidate, HighestId, LowestId, MemberId, candidate, parse_choice
from hustings.core.view import View
from hustings.protocols.bully import Bully, BullyConfig
from hustings.sim.derived_view import NOW_AND_THEN, Acquaintance, DerivedView
from hustings.sim.faults import Join, Leave, Restart, Update, schedule
from hustings.sim.member import VARIATES, gossiped_size, partial_views
from hustings.sim.world import World
from tests.unit.sim.laws import believable
from tests.unit.sim.worlds import people

CHOICES = [HighestId(), LowestId(), parse_choice("highest:cpu")]


def acquaintance(ids: list[MemberId], probability: float, seed: int = 7) -> Acquaintance:
    made = partial_views(ids, probability, seed)
    assert made is not None
    made.directory = {member: candidate(member, cpu=member * 7 % 5) for member in ids}
    return made


def rows(probability: float, n: int = 80, seed: int = 7) -> dict[MemberId, list[MemberId]]:
    shared = acquaintance(list(range(1, n + 1)), probability, seed)
    return {member: shared.view(member).ids for member in shared.roster}


# The law


def test_without_any_acquaintance_one_knows_oneself() -> None:
    assert rows(0.0, n=3) == {1: [1], 2: [2], 3: [3]}


@pytest.mark.parametrize("p", [0.5, 0.3, 0.25, 1 / 3, 0.001, 0.999, 2.0**-12, 1 - 2.0**-12])
def test_each_knows_each_other_with_the_given_probability_independently(p: float) -> None:
    n = 200
    views = rows(p, n)
    known = sum(len(view) - 1 for view in views.values())
    assert believable(known, n * (n - 1), p)
    found = {member: frozenset(view) for member, view in views.items()}
    mutual = sum(a in found[b] and b in found[a] for a in views for b in views if a < b)
    assert believable(mutual, n * (n - 1) // 2, p * p)
    neighbours = sum(b in found[a] and b + 1 in found[a] for a in views for b in range(1, n))
    pairs = n * (n - 1) - 2 * (n - 1)  # those with oneself are certain
    certain = sum(max(a - 1, 1) in found[a] for a in views) + sum(
        min(a + 1, n) in found[a] for a in views
    )
    ends = 2  # at the ends of the roster one neighbour is oneself, which makes no pair
    assert believable(neighbours - (certain - ends), pairs, p * p)


def test_the_digits_after_the_bulk_count() -> None:
    """A probability that the first digits cannot tell from another gives other rows."""
    p = 0.3
    near = p + 2.0**-11
    low = {a: frozenset(view) for a, view in rows(p, 300).items()}
    high = {a: frozenset(view) for a, view in rows(near, 300).items()}
    assert all(low[a] <= high[a] for a in low)  # the same numbers against a higher bar
    assert any(low[a] < high[a] for a in low)


def test_views_depend_on_the_seed_and_on_nothing_else() -> None:
    assert rows(0.5) == rows(0.5)
    assert rows(0.5) != rows(0.5, seed=8)
    shared = acquaintance([1, 5, 9], 0.5)
    assert shared.row(5) & 0b010
    assert rows(0.5, n=6, seed=1) == {
        1: [1, 5, 6],
        2: [2, 3, 6],
        3: [3, 4, 5, 6],
        4: [1, 3, 4, 5, 6],
        5: [3, 5],
        6: [2, 3, 4, 6],
    }


# The same as a listed view


class Pair:
    """A derived view and a listed one, to which the same happens."""

    def __init__(self, ids: list[MemberId], owner: MemberId, p: float) -> None:
        self.shared = acquaintance(ids, p)
        self.derived = self.shared.view(owner)
        self.listed = View(self.shared.directory, list(self.shared.view(owner).ids))

    def check(self) -> None:
        derived, listed = self.derived, self.listed
        everybody = range(min(self.shared.roster) - 1, max(self.shared.roster) + 2)
        assert [each in derived for each in everybody] == [each in listed for each in everybody]
        assert len(derived) == len(listed)
        assert derived.ids == listed.ids == list(derived)
        some = {each for each in everybody if each % 3 == 0}
        for each in everybody:
            assert derived.successor(each) == listed.successor(each)
            assert derived.successor(each, some) == listed.successor(each, some)
        for choice in CHOICES:
            assert derived.ranking(choice).ids == listed.ranking(choice).ids
            assert derived.ranking(choice).position == listed.ranking(choice).position
            assert derived.best(choice) == listed.best(choice)
            assert derived.best(choice, some) == listed.best(choice, some)
        assert set(listed) <= set(derived.roster)
        for each in listed:
            assert derived.candidate(each) == listed.candidate(each)


@settings(max_examples=36)
@given(st.data())
def test_a_derived_view_behaves_as_a_listed_one(data: st.DataObject) -> None:
    ids = sorted(data.draw(st.sets(st.integers(-20, 40), min_size=1, max_size=25)))
    one = st.sampled_from(ids)
    pair = Pair(ids, data.draw(one), data.draw(st.sampled_from([0.0, 0.2, 0.5, 0.9])))
    for _ in range(data.draw(st.integers(0, 8))):
        version, before = pair.derived.version, list(pair.listed)
        what, who = data.draw(st.sampled_from(["add", "remove", "forget", "look"])), data.draw(one)
        if what == "add":
            pair.derived.add(who)
            pair.listed.add(who)
        elif what == "remove":
            pair.derived.remove(who)
            pair.listed.remove(who)
        elif what == "forget":
            pair.shared.forget(who)
            pair.listed.remove(who)
        else:
            pair.check()
        if pair.listed.ids != before or what == "add":
            assert pair.derived.version > version
    pair.check()


def test_a_stranger_cannot_become_known() -> None:
    view = acquaintance([1, 2, 3], 0.5).view(1)
    with pytest.raises(ValueError, match="member 9 is not on the roster"):
        view.add(9)
    with pytest.raises(AttributeError, match="changed by add and remove"):
        view.ids = [1]
    assert "1" not in view
    assert 9 not in view


# In a world


def world_of(n: int, p: float, choice: str = "highest-id") -> World:
    ids = list(range(1, n + 1))
    return World(
        lambda: Bully(BullyConfig(), parse_choice(choice)),
        [candidate(member, cpu=member) for member in ids],
        views=partial_views(ids, p, 3),
    )


def test_who_leaves_is_forgotten_by_all_and_known_to_itself_again_on_return() -> None:
    world = world_of(30, 0.5)
    world.start()
    knew = [one.id for one in world.live() if 4 in one.view]
    assert len(knew) > 2
    sizes = {one.id: len(one.view) for one in world.live()}
    version = world.members[1].view.version
    schedule(world, [Leave(member=4, at=1.0), Restart(member=4, at=2.0)])
    world.run(until=1.5)
    assert not any(4 in one.view for one in world.members.values())
    assert all(len(one.view) == sizes[one.id] - (one.id in knew) for one in world.live())
    assert world.members[1].view.version > version
    world.run(until=2.5)
    assert [one.id for one in world.live() if 4 in one.view] == [4]
    assert 4 in world.members[4].view.ids


def test_who_joins_later_knows_itself_and_what_it_always_would_have() -> None:
    world = world_of(12, 0.5)
    world.everybody_forgets(world.members[5])
    for member in world.members:
        if member != 5:
            world.start(member)
    schedule(world, [Join(member=5, at=1.0)])
    world.run(until=1.5)
    fresh = world_of(12, 0.5)
    assert world.members[5].view.ids == fresh.members[5].view.ids
    assert 5 in world.members[5].view


def test_new_attributes_are_seen_by_all_who_know_the_member() -> None:
    choice = parse_choice("highest:cpu")
    world = world_of(12, 0.5, "highest:cpu")
    world.start()
    for one in world.live():
        assert one.view.best(choice) == max(one.view.ids)
    schedule(world, [Update(member=3, candidate=candidate(3, cpu=99), at=1.0)])
    world.run(until=1.5)
    for one in world.live():
        assert one.view.best(choice) == (3 if 3 in one.view else max(one.view.ids))
        assert one.view.ranking(choice).ids[0] == one.view.best(choice)


# The estimate


def test_all_members_share_one_estimate_of_the_size() -> None:
    ids = list(range(1, 6))
    for views in (None, partial_views(ids, 0.5, 1), {2: [1, 3]}):
        world = World(lambda: Bully(BullyConfig(), HighestId()), people(5), views=views)
        assert {one.view.estimate for one in world.members.values()} == {None}
        world.knowledge.estimate(4.5)
        assert {one.view.estimate for one in world.members.values()} == {4.5}
    shared = acquaintance([1, 2], 0.5)
    one, other = shared.view(1), shared.view(2)
    one.estimate = 3.0
    assert other.estimate == 3.0


def test_the_gossiped_size_has_the_law_of_extrema_propagation() -> None:
    """Mean N and relative deviation 1 / sqrt(r - 2); both within four standard errors."""
    drawn = [gossiped_size(1000, seed) / 1000 for seed in range(3000)]
    mean = math.fsum(drawn) / len(drawn)
    deviation = 1 / math.sqrt(VARIATES - 2)
    assert abs(mean - 1.0) < 4 * deviation / math.sqrt(len(drawn))
    spread = math.sqrt(math.fsum((x - mean) ** 2 for x in drawn) / len(drawn))
    assert abs(spread - deviation) < 4 * deviation / math.sqrt(2 * len(drawn)) * 1.2
    assert gossiped_size(1000, 5) == gossiped_size(1000, 5)


# Memory


def test_a_view_nobody_has_looked_into_is_small() -> None:
    n = 5_000
    ids = list(range(1, n + 1))
    shared = Acquaintance(ids, 0.5, 1)
    tracemalloc.start()
    try:
        views = [DerivedView(shared, member) for member in ids]
        made = tracemalloc.get_traced_memory()[0] / n
        assert all(0.4 * n < len(view) < 0.6 * n for view in views)
        sized = tracemalloc.get_traced_memory()[0] / n
        shared.directory = {member: Candidate(member) for member in ids}
        assert views[1].best(HighestId()) is not None  # the order of all is there from now on
        before = tracemalloc.get_traced_memory()[0]
        assert views[0].best(HighestId()) is not None
        looked = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert made < 200
    assert sized < 280
    assert n / 8 <= looked < n / 8 + 500


def test_a_few_questions_about_one_member_leave_nothing_behind() -> None:
    n = 80_000
    view = Acquaintance(list(range(1, n + 1)), 0.5, 1).view(1)
    tracemalloc.start()
    try:
        known = [other in view for other in range(2, 2 + NOW_AND_THEN)]
        few = tracemalloc.get_traced_memory()[0]
        assert (2 in view) is known[0]
        more = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert few < 1_000
    assert more > n / 8
    assert known == [other in view for other in range(2, 2 + NOW_AND_THEN)]


@pytest.mark.parametrize("p", [0.0, 0.5, 0.75, 0.3, 0.001])
def test_one_bit_is_that_of_the_row(p: float) -> None:
    shared = acquaintance(list(range(3, 300)), p)
    for owner in (3, 150, 299):
        row = shared.row(owner)
        found = [shared.knows(owner, place) for place in range(len(shared.roster))]
        assert found == [bool(row >> place & 1) for place in range(len(shared.roster))]
