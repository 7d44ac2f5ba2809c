"""Patterns: whoever is watched also sends heartbeats to its watcher, and nobody is left out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.choice import MemberId
from hustings.layers.detector.detector import IDLE, PATTERNS, Duties, Pattern, ring
from hustings.testing.recorded import view_of
from tests.unit.layers.detector.listeners import people


def duties_of_all(
    pattern: Pattern, n: int, leader: MemberId | None, dead: set[MemberId]
) -> dict[MemberId, Duties]:
    view = view_of(people(n))
    return {me: pattern(view, me, leader, dead) for me in view if me not in dead}


groups = st.integers(1, 9).flatmap(
    lambda n: st.tuples(
        st.just(n), st.none() | st.integers(1, n), st.sets(st.integers(1, n), max_size=n - 1)
    )
)


@given(pattern=st.sampled_from(sorted(PATTERNS)), group=groups)
def test_who_is_heard_unasked_is_who_beats(
    pattern: str, group: tuple[int, MemberId | None, set[MemberId]]
) -> None:
    duties = duties_of_all(PATTERNS[pattern], *group)
    for me, own in duties.items():
        beating = [other for other in duties if me in duties[other].beats]
        assert [member for member in own.hears if member in duties] == beating


@given(pattern=st.sampled_from(sorted(PATTERNS)), group=groups)
def test_nobody_has_duties_towards_itself_or_a_duty_twice(
    pattern: str, group: tuple[int, MemberId | None, set[MemberId]]
) -> None:
    for me, own in duties_of_all(PATTERNS[pattern], *group).items():
        for members in (own.beats, own.watches, own.hears):
            assert me not in members
            assert len(set(members)) == len(members)


@given(group=groups)
def test_the_live_members_of_a_ring_watch_each_other_in_one_circle(
    group: tuple[int, MemberId | None, set[MemberId]],
) -> None:
    duties = duties_of_all(ring, *group)
    live = sorted(duties)
    watched = [member for me in live for member in duties[me].watches]
    assert watched == (live[1:] + live[:1] if len(live) > 1 else [])


@pytest.mark.parametrize("pattern", sorted(PATTERNS))
def test_one_alone_has_nothing_to_do(pattern: str) -> None:
    view = view_of(people(1))
    assert PATTERNS[pattern](view, 1, 1, ()) == IDLE
    assert PATTERNS[pattern](view, 1, None, ()) == IDLE


def test_the_ring_passes_over_suspects() -> None:
    view = view_of(people(5))
    assert ring(view, 2, None, ()) == Duties(beats=(1,), watches=(3,), hears=(3,))
    assert ring(view, 2, None, {3}) == Duties(beats=(1,), watches=(4,), hears=(3,))
    assert ring(view, 2, None, {3, 4, 5}) == Duties(beats=(1,), watches=(1,), hears=(3,))
    assert ring(view, 2, None, {1, 3, 4, 5}) == Duties(beats=(1,), watches=(), hears=(3,))
    assert ring(view, 1, None, {2}) == Duties(beats=(5,), watches=(3,), hears=(2,))
    assert ring(view, 5, None, ()) == Duties(beats=(4,), watches=(1,), hears=(1,))


def test_leader_patterns_know_whom_they_serve() -> None:
    view = view_of(people(3))
    to_all, to_leader = PATTERNS["leader-to-all"], PATTERNS["to-leader"]
    assert to_all(view, 3, 3, ()) == Duties(beats=(1, 2))
    assert to_all(view, 1, 3, ()) == Duties(watches=(3,), hears=(3,))
    assert to_leader(view, 3, 3, ()) == Duties(watches=(1, 2), hears=(1, 2))
    assert to_leader(view, 1, 3, ()) == Duties(beats=(3,))
    assert to_all(view, 1, 3, {3}) == Duties(watches=(3,))
    assert to_leader(view, 3, 3, {1}) == Duties(watches=(1, 2), hears=(2,))
    for pattern in (to_all, to_leader):
        assert pattern(view, 1, None, ()) == IDLE
        assert pattern(view, 1, 9, ()) == IDLE  # a leader outside the view
