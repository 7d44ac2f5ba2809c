"""When members agree, by what they reported."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hustings.demo.live.channel import FiguresReport, FollowingReport, Opened
from hustings.demo.live.measuring import Board, ProcessState

NAMES = ("m1", "m2", "m3", "m4")


def board(*leaders: str) -> Board:
    """Members that follow these leaders, each since the second of its place."""
    made = Board()
    for place, leader in enumerate(leaders, 1):
        made.start(f"m{place}", pid=place)
        made.hear(f"m{place}", Opened(0.5, ("127.0.0.1", place)))
        if leader:
            made.hear(f"m{place}", FollowingReport(float(place), leader, place))
    return made


def test_all_follow_one_that_runs() -> None:
    group = board("m2", "m2", "m2", "m2")
    assert group.leaders() == group.leading() == ("m2",)
    assert group.agreed_at() == 4.0
    assert group.term(group.leaders()) == 2


def test_one_that_follows_nobody_or_another_is_enough() -> None:
    assert board("m2", "m2", "m2", "").leaders() == ()
    assert board("m2", "m2", "m1", "m2").leaders() == ()


def test_a_leader_that_does_not_lead_is_none() -> None:
    assert board("m2", "m1", "m2", "m2").leaders() == ()
    assert board("m9", "m9", "m9").leaders() == ()


def test_one_that_has_just_started_has_to_agree_too() -> None:
    group = board("m2", "m2", "m2")
    group.start("m4", pid=4)
    assert group.leaders() == ()
    group.hear("m4", FollowingReport(9.0, "m2", 5))
    assert group.leaders() == ("m2",)


def test_the_killed_and_the_paused_do_not_count_and_do_not_lead() -> None:
    for standing in (ProcessState.KILLED, ProcessState.PAUSED):
        group = board("m2", "m2", "m2", "m2")
        group.put("m3", standing)
        assert group.leaders() == ("m2",)
        group.put("m2", standing)
        assert group.leaders() == ()
        assert group.leading() == ()
        assert [sight.name for sight in group.up()] == ["m1", "m4"]


def test_last_words_of_the_killed_change_nothing() -> None:
    group = board("m2", "m2", "m2")
    group.put("m2", ProcessState.KILLED)
    group.hear("m2", FollowingReport(7.0, "m3", 9))
    group.hear("m2", Opened(7.0, ("127.0.0.1", 9)))
    assert group.members["m2"].leader == "m2"
    assert group.members["m2"].standing is ProcessState.KILLED


def test_one_that_starts_again_is_new() -> None:
    group = board("m2", "m2", "m2")
    group.hear("m3", FiguresReport(1.0, 5, 3))
    group.start("m3", pid=77)
    fresh = group.members["m3"]
    assert (fresh.leader, fresh.term, fresh.knows, len(fresh.samples)) == ("", 0, 0, 0)


def test_each_side_has_to_agree_on_one_of_its_own() -> None:
    group = board("m2", "m2", "m2", "m2")
    group.sides = (("m1", "m2"), ("m3", "m4"))
    assert group.leaders() == ()
    group.hear("m3", FollowingReport(7.0, "m4", 5))
    group.hear("m4", FollowingReport(8.0, "m4", 5))
    assert group.leaders() == ("m2", "m4")
    assert group.agreed_at() == 8.0
    group.sides = ()
    assert group.leaders() == ()
    assert group.leading() == ("m2", "m4")


def test_a_new_term_of_the_same_leader_is_no_change() -> None:
    group = board("m2", "m2", "m2")
    group.hear("m3", FollowingReport(9.0, "m2", 8))
    assert group.agreed_at() == 3.0
    assert group.members["m3"].term == 8


def test_the_first_to_notice_is_the_earliest_after_the_beginning() -> None:
    group = board("m2", "m2", "m2", "m2")
    group.begin(5.0)
    group.hear("m4", FollowingReport(5.4, "", 0))
    group.hear("m3", FollowingReport(5.2, "", 0))
    group.hear("m3", FollowingReport(5.9, "m4", 3))
    group.hear("m1", FollowingReport(4.9, "m4", 3))  # was on its way when it began
    assert group.noticed == 5.2


def test_nobody_has_noticed_what_has_just_begun() -> None:
    group = board("m2", "m2")
    group.begin(1.5)
    group.hear("m1", FollowingReport(1.4, "m1", 2))
    assert group.noticed is None
    group.hear("m1", FollowingReport(1.6, "m2", 2))
    group.begin(6.0)
    assert group.noticed is None


def test_a_rate_is_what_was_sent_over_the_time_it_took() -> None:
    group = board("m2", "m2")
    assert group.rate() == 0.0
    for place in range(9):  # only the newest count
        group.hear("m1", FiguresReport(place / 4, place * place, 2))
    assert group.members["m1"].rate == 8 * 8 - 4 * 4
    group.hear("m2", FiguresReport(1.0, 3, 2))
    group.hear("m2", FiguresReport(1.0, 5, 2))  # no time has passed
    assert group.members["m2"].rate == 0.0
    assert group.rate() == 48.0
    assert group.rate_each() == 24.0
    group.put("m1", ProcessState.PAUSED)
    assert group.rate() == 0.0


def test_members_know_of_each_other_on_their_side() -> None:
    group = board("m2", "m2", "m2")
    for name, knows in (("m1", 3), ("m2", 3), ("m3", 1)):
        group.hear(name, FiguresReport(1.0, 5, knows))
    assert not group.acquainted()
    group.sides = (("m1", "m2"), ("m3",))
    assert group.acquainted()


@given(st.lists(st.sampled_from(("", *NAMES)), min_size=4, max_size=4))
def test_as_a_simple_mind_would_say(followed: list[str]) -> None:
    group = board(*followed)
    simple = len(set(followed)) == 1 and followed[0] != ""
    assert bool(group.leaders()) == simple
    assert group.leading() == tuple(
        name for name, leader in zip(NAMES, followed, strict=True) if name == leader
    )
