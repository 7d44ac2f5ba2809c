"""Whom a member follows: the k best, and whom a newcomer must beat."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hustings.core.choice import Candidate, HighestId
from hustings.protocols.announce.following import Following, rankable

ME = Candidate(0)


@given(k=st.integers(1, 5), heard=st.lists(st.integers(1, 30), unique=True))
def test_the_k_best_are_followed(k: int, heard: list[int]) -> None:
    """As the machine does it: one is added if it beats the bar."""
    following = Following(HighestId(), k)
    for member in heard:
        if member > following.bar(ME).id:
            following.add(Candidate(member))
    best = sorted(heard, reverse=True)[:k]
    assert [leader.id for leader in following.leaders] == best
    assert following.full == (len(heard) >= k)
    assert following.bar(ME).id == (best[-1] if len(best) == k else ME.id)
    timers = [leader.timer for leader in following.leaders]
    assert len(set(timers)) == len(timers)
    for leader in following.leaders:
        assert following.of(leader.id) is leader
        assert following.timed_by(leader.timer) is leader
    assert all(following.of(member) is None for member in heard if member not in best)


def test_one_leader_has_the_papers_timer_and_several_have_one_each() -> None:
    assert Following(HighestId(), 1).add(Candidate(3)).timer == "T_L"
    several = Following(HighestId(), 2)
    assert [several.add(Candidate(i)).timer for i in (3, 4)] == [("T_L", 1), ("T_L", 2)]
    first = several.of(3)
    assert first is not None
    several.remove(first)
    assert several.add(Candidate(5)).timer == ("T_L", 1)


def test_an_aged_leader_holds_nobody_back_and_goes_first() -> None:
    following = Following(HighestId(), 2)
    best, other = following.add(Candidate(9)), following.add(Candidate(7))
    assert following.bar(ME).id == 7
    best.age = 1
    assert following.bar(ME) is ME
    following.add(Candidate(2))
    assert [leader.id for leader in following.leaders] == [7, 2]
    assert following.of(7) is other


def test_what_cannot_be_ranked() -> None:
    assert rankable((1, -2.5, 10**400))
    assert not rankable((1, float("nan")))
    assert not rankable((float("-inf"), 3))
