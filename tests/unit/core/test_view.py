"""Views: sorted, ranked by a choice function, and a version that grows with every change."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hustings.core.choice import Candidate, HighestId, LowestId, candidate, parse_choice
from hustings.core.view import View

IDS = st.lists(st.integers(1, 30), unique=True, min_size=1, max_size=12)


def view_of(ids: list[int], **loads: float) -> View:
    directory = {i: candidate(i, load=loads.get(f"m{i}", 0.0)) for i in range(1, 31)}
    return View(directory, sorted(ids))


@given(ids=IDS)
def test_ranking_goes_from_best_to_worst(ids: list[int]) -> None:
    view = view_of(ids)
    assert view.ranking(HighestId()).ids == tuple(sorted(ids, reverse=True))
    assert view.ranking(LowestId()).ids == tuple(sorted(ids))


@given(ids=IDS, loads=st.lists(st.integers(0, 2), min_size=30, max_size=30))
def test_better_than_and_worse_than_split_the_ranking_best_first(
    ids: list[int], loads: list[int]
) -> None:
    choice = parse_choice("lowest:load")
    directory = {i: candidate(i, load=loads[i - 1]) for i in range(1, 31)}
    view = View(directory, sorted(ids))
    ranking = view.ranking(choice)
    for member in ids:
        better, worse = ranking.better_than(member), ranking.worse_than(member)
        assert (*better, member, *worse) == ranking.ids
        assert all(choice.better(directory[other], directory[member]) for other in better)
        assert all(choice.better(directory[member], directory[other]) for other in worse)
    assert all(choice.better(directory[a], directory[b]) for a, b in pairwise(ranking.ids))


@given(ids=IDS, member=st.integers(1, 30), dead=st.lists(st.integers(1, 30)))
def test_successor_is_the_next_id_clockwise_that_is_not_skipped(
    ids: list[int], member: int, dead: list[int]
) -> None:
    # The dumb twin walks round the clock one id at a time.
    left = [i for i in ids if i not in dead and i != member]
    clockwise = [(member + step - 1) % 30 + 1 for step in range(1, 30)]
    expected = next((i for i in clockwise if i in left), None)
    assert view_of(ids).successor(member, dead) == expected


def test_successor_wraps_and_knows_when_nobody_is_left() -> None:
    view = view_of([2, 5, 9])
    assert view.successor(5) == 9
    assert view.successor(9) == 2
    assert view.successor(9, {2}) == 5
    assert view.successor(9, {2, 5}) is None
    assert view.successor(7) == 9  # also for somebody who is not in the view
    assert view_of([4]).successor(4) is None


@given(ids=IDS, changes=st.lists(st.tuples(st.booleans(), st.integers(1, 30))))
def test_a_view_stays_sorted_and_its_version_grows_with_every_change(
    ids: list[int], changes: list[tuple[bool, int]]
) -> None:
    view, known = view_of(ids), set(ids)
    for add, member in changes:
        before = view.version
        changes_something = add or member in known
        if add:
            view.add(member)
            known.add(member)
        else:
            view.remove(member)
            known.discard(member)
        assert list(view) == view.ids == sorted(known)
        assert len(view) == len(known)
        assert all((i in view) == (i in known) for i in range(32))
        assert (view.version > before) == changes_something


def test_a_ranking_is_kept_until_view_or_choice_changes() -> None:
    view = view_of([1, 2, 3])
    first = view.ranking(HighestId())
    assert view.ranking(HighestId()) is first
    assert view.ranking(LowestId()).ids == (1, 2, 3)
    assert view.ranking(HighestId()).ids == (3, 2, 1)
    view.add(4)
    assert view.ranking(HighestId()).ids == (4, 3, 2, 1)
    view.remove(3)
    assert view.ranking(HighestId()).ids == (4, 2, 1)


def test_new_attributes_show_after_the_member_was_added_again() -> None:
    choice = parse_choice("highest:load")
    directory: dict[int, Candidate] = {1: candidate(1, load=1), 2: candidate(2, load=2)}
    view = View(directory, [1, 2])
    assert view.ranking(choice).ids == (2, 1)
    directory[1] = candidate(1, load=3)
    view.add(1)
    assert view.ids == [1, 2]
    assert view.candidate(1).attribute("load") == 3
    assert view.ranking(choice).ids == (1, 2)


def test_only_ids_are_members() -> None:
    view = view_of([1, 2])
    assert 1 in view
    assert 3 not in view
    assert "1" not in view
    assert None not in view


@given(ids=IDS, places=st.lists(st.integers(0, 5), min_size=30, max_size=30), dead=IDS)
def test_successor_by_place_goes_round_the_seats(
    ids: list[int], places: list[int], dead: list[int]
) -> None:
    directory = {i: candidate(i, place=places[i - 1]) for i in range(1, 31)}
    view = View(directory, sorted(ids))
    seated = sorted(ids, key=lambda i: (places[i - 1], i))
    for start, member in enumerate(seated):
        others = [*seated[start + 1 :], *seated[:start]]
        expected = next((other for other in others if other not in dead), None)
        assert view.successor_by("place", directory[member], dead) == expected


def test_successor_by_place_follows_what_becomes_known() -> None:
    directory = {1: candidate(1, place=3), 2: candidate(2, place=1), 3: candidate(3, place=2)}
    view = View(directory, [1, 2, 3])
    assert view.successor_by("place", directory[1]) == 2
    directory[2] = candidate(2, place=5)
    view.add(2)
    assert view.successor_by("place", directory[1]) == 2
    assert view.successor_by("place", directory[2]) == 3
    view.remove(3)
    assert view.successor_by("place", directory[2]) == 1


def test_who_has_no_place_stands_last() -> None:
    strange = float("nan")
    directory = {1: Candidate(1), 2: candidate(2, place=1), 3: Candidate(3, (("place", strange),))}
    view = View(directory, [1, 2, 3])
    assert [view.successor_by("place", directory[i]) for i in (2, 1, 3)] == [1, 3, 2]
