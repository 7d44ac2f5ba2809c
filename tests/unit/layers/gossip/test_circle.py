"""Whom one member knows: what counts as news, who is kept, and that it all stays bounded."""

from collections import Counter

import pytest

from hustings.core.choice import Candidate, MemberId, candidate
from hustings.core.streams import Stream
from hustings.layers.detector.detector import Report
from hustings.layers.gossip.circle import Circle
from hustings.layers.gossip.config import GossipConfig
from hustings.layers.gossip.messages import MAX_ID, MAX_NUMBER, Entry

FAIL, CLEANUP = 10.0, 20.0


def circle(salt: int = 0, **settings: int) -> Circle:
    """That of member 1."""
    made = Circle(GossipConfig.parse(settings), lambda who: who.id != 1313)
    made.begin(entry(1), salt)
    return made


def entry(member: MemberId, counter: int = 1, incarnation: int = 1) -> Entry:
    return Entry(Candidate(member), incarnation, counter)


def test_news_keep_a_member_in_view_and_silence_takes_it_out() -> None:
    known = circle()
    known.hear([entry(2), entry(3)], 0.0)
    known.hear([entry(2, 2)], 5.0)
    assert known.look_round(10.0, FAIL, CLEANUP) == []
    assert known.look_round(10.5, FAIL, CLEANUP) == [Report(3, True)]
    assert known.view.ids == [1, 2]
    assert known.suspects == [3]
    assert known.look_round(10.6, FAIL, CLEANUP) == []


def test_what_is_not_newer_is_no_news() -> None:
    known = circle()
    known.hear([entry(2, 5, incarnation=2)], 0.0)
    for old in (entry(2, 5, 2), entry(2, 4, 2), entry(2, 99, 1)):
        known.hear([old], 9.0)
    assert known.look_round(10.5, FAIL, CLEANUP) == [Report(2, True)]


def test_a_new_incarnation_supersedes_any_counter() -> None:
    known = circle()
    known.hear([entry(2, 500)], 0.0)
    assert known.hear([entry(2, 0, incarnation=2)], 9.0) == ()
    assert known.look_round(15.0, FAIL, CLEANUP) == []


def test_news_of_a_suspect_take_the_suspicion_back() -> None:
    known = circle()
    known.hear([entry(2, 3)], 0.0)
    known.look_round(11.0, FAIL, CLEANUP)
    assert known.hear([entry(2, 3)], 12.0) == ()
    assert known.hear([entry(2, 4)], 12.0) == [Report(2, False)]
    assert known.view.ids == [1, 2]


def test_what_was_said_before_an_end_that_was_seen_takes_nothing_back() -> None:
    known = circle()
    known.hear([entry(2, 3)], 0.0)
    known.suspect(2, old_news=5)
    for counter in (4, 8):
        assert known.hear([entry(2, counter)], 1.0, teller=3) == ()
        assert known.suspects == [2]
    assert known.hear([entry(2, 9)], 2.0, teller=3) == [Report(2, False)]
    assert known.view.ids == [1, 2]


def test_an_end_that_was_seen_wrongly_is_taken_back_by_the_member_or_its_next_life() -> None:
    for news, teller in ((entry(2, 4), 2), (entry(2, 0, incarnation=2), 3)):
        known = circle()
        known.hear([entry(2, 3)], 0.0)
        known.suspect(2, old_news=5)
        assert known.hear([news], 1.0, teller=teller) == [Report(2, False)]


def test_after_a_return_the_next_suspicion_is_an_ordinary_one() -> None:
    known = circle()
    known.hear([entry(2, 3)], 0.0)
    known.suspect(2, old_news=50)
    assert known.revive(2, 1.0) == Report(2, False)
    known.look_round(12.0, FAIL, CLEANUP)
    assert known.hear([entry(2, 4)], 13.0, teller=3) == [Report(2, False)]


def test_the_forgotten_come_back_only_with_something_new() -> None:
    known = circle()
    known.hear([entry(2, 3)], 0.0)
    known.look_round(11.0, FAIL, CLEANUP)
    known.look_round(20.5, FAIL, CLEANUP)
    assert known.known == 1
    assert known.hear([entry(2, 3)], 21.0) == ()
    assert known.view.ids == [1]
    assert known.hear([entry(2, 4)], 22.0) == [Report(2, False)]
    assert known.view.ids == [1, 2]


def test_who_left_comes_back_only_as_another_incarnation() -> None:
    known = circle()
    known.hear([entry(2, 3)], 0.0)
    assert known.bid_farewell(2, 1) == Report(2, True)
    assert known.bid_farewell(2, 1) is None
    assert known.hear([entry(2, 1000)], 1.0) == ()
    assert known.hear([entry(2, 0, incarnation=2)], 1.0) == [Report(2, False)]


def test_a_farewell_of_a_later_life_than_is_known_ends_the_known_one_alone() -> None:
    known = circle()
    known.hear([entry(2, 3)], 0.0)
    assert known.bid_farewell(2, 1 << 50) == Report(2, True)
    assert known.departed(2)
    assert known.hear([entry(2, 1000)], 1.0) == ()
    assert known.hear([entry(2, 0, incarnation=2)], 1.0) == [Report(2, False)]
    assert not known.departed(2)


def test_who_proves_that_it_is_there_has_not_left() -> None:
    known = circle()
    known.hear([entry(2, 3)], 0.0)
    known.bid_farewell(2, 1)
    known.recall(2)
    known.recall(3)
    assert not known.departed(2)
    assert known.hear([entry(2, 4)], 1.0) == [Report(2, False)]
    known.look_round(11.5, FAIL, CLEANUP)
    known.look_round(22.0, FAIL, CLEANUP)
    assert not known.departed(2), "it was forgotten"


def test_an_old_farewell_is_not_believed() -> None:
    known = circle()
    known.hear([entry(2, 3, incarnation=2)], 0.0)
    assert known.bid_farewell(2, 1) is None
    assert known.bid_farewell(1, 1) is None  # its own
    assert known.view.ids == [1, 2]


def test_a_suspect_that_leaves_is_not_reported_again() -> None:
    known = circle()
    known.hear([entry(2)], 0.0)
    known.look_round(11.0, FAIL, CLEANUP)
    assert known.bid_farewell(2, 1) is None
    assert known.suspects == []


def test_who_hears_of_an_earlier_life_of_its_own_goes_on_above_it() -> None:
    known = circle()
    known.hear([entry(1, 70)], 0.0)
    known.renew_own(Candidate(1))
    assert known.own == entry(1, 71)
    known.hear([entry(1, 5, incarnation=4)], 0.0)
    assert known.own.incarnation == 5
    assert known.view.ids == [1]


def test_attributes_travel_and_change() -> None:
    known = circle()
    known.hear([Entry(candidate(2, cpu=4), 1, 1)], 0.0)
    version = known.view.version
    known.hear([Entry(candidate(2, cpu=8), 1, 2)], 1.0)
    assert known.view.candidate(2) == candidate(2, cpu=8)
    assert known.view.version > version
    known.renew_own(candidate(1, cpu=1))
    assert known.view.candidate(1) == candidate(1, cpu=1)


@pytest.mark.parametrize(
    "odd",
    [
        entry(2, -1),
        entry(2, MAX_NUMBER + 1),
        entry(2, 1, incarnation=0),
        entry(2, 1, incarnation=MAX_NUMBER + 1),
        entry(MAX_ID),
        entry(-MAX_ID - 1),
        entry(1313),  # whom the election cannot rank
        Entry(Candidate(2, (("x", float("nan")),)), 1, 1),
        Entry(Candidate(2, (("x" * 65, 1.0),)), 1, 1),
        Entry(Candidate(2, tuple((str(place), 1.0) for place in range(17))), 1, 1),
    ],
    ids=lambda odd: f"{odd.who.id}-{odd.incarnation}-{odd.counter}-{len(odd.who.attributes)}",
)
def test_odd_entries_are_passed_over(odd: Entry) -> None:
    known = circle()
    assert known.hear([odd, entry(3)], 0.0) == ()
    assert known.view.ids == [1, 3]
    if odd.who.attributes:  # nor do they change what is known
        known.hear([entry(2)], 0.0)
        known.hear([Entry(odd.who, 1, 2)], 0.0)
        assert known.view.candidate(2) == Candidate(2)


def test_a_counter_beyond_bounds_is_not_news_of_a_member_either() -> None:
    known = circle()
    known.hear([entry(2)], 0.0)
    known.hear([entry(2, MAX_NUMBER + 1), entry(2, 1, MAX_NUMBER + 1)], 1.0)
    known.hear([entry(2, 2)], 9.0)
    assert known.look_round(15.0, FAIL, CLEANUP) == []


def test_a_message_speaks_of_all_in_turn_and_of_itself_always() -> None:
    known = circle(entries=8)
    known.hear([entry(member) for member in range(2, 52)], 0.0)
    spoken: Counter[MemberId] = Counter()
    for _ in range(50):
        some = known.some()
        assert len(some) == 8
        assert some[0] == known.own
        spoken.update(one.who.id for one in some)
    assert spoken[1] == 50
    assert {spoken[member] for member in range(2, 52)} == {7}


def test_suspects_are_not_spoken_of() -> None:
    known = circle()
    known.hear([entry(2), entry(3)], 0.0)
    known.suspect(2)
    assert [one.who.id for one in known.some()] == [1, 3]


def test_a_full_view_is_a_sample_without_bias() -> None:
    # Half of the group is spoken of ten times as often and from the start.
    chosen: Counter[MemberId] = Counter()
    loud, quiet = list(range(2, 32)), list(range(32, 62))
    for salt in range(400):
        known = circle(salt=Stream(salt).bits(), view_size=12)
        for counter in range(1, 11):
            known.hear([entry(member, counter) for member in loud], 0.0)
        known.hear([entry(member) for member in quiet], 0.0)
        assert len(known.view) == 13
        chosen.update(member for member in known.view.ids if member != 1)
    expected = 400 * 12 / 60
    deviation = sum((chosen[member] - expected) ** 2 / expected for member in loud + quiet)
    # Chi-squared with 59 degrees of freedom, shrunk by 1 - 12/60 since a view has no one twice.
    assert deviation / 0.8 < 98.3  # its 0.999 quantile
    share = sum(chosen[member] for member in loud) / (400 * 12)
    assert abs(share - 0.5) < 4 * (0.25 * 0.8 / 4800) ** 0.5


def test_places_that_fall_free_are_filled_again() -> None:
    known = circle(view_size=3)
    group = [entry(member) for member in range(2, 10)]
    known.hear(group, 0.0)
    first = known.view.ids
    lost = next(member for member in first if member != 1)
    known.bid_farewell(lost, 1)
    known.hear(group, 1.0)
    assert len(known.view) == 4
    assert lost not in known.view


def test_a_leader_stays_in_view_and_finds_a_place_there() -> None:
    group = [entry(member) for member in range(2, 40)]
    for leader in (5, 17, 30):
        known = circle(view_size=3)
        known.hear(group, 0.0)
        known.keep = (leader,)
        known.hear(group, 1.0)
        assert leader in known.view
        assert len(known.view) == 4


def test_the_longest_silent_are_asked_in_turn_a_few_times_each() -> None:
    known = circle()
    known.hear([entry(2)], 0.0)
    known.hear([entry(3)], 1.0)
    known.hear([entry(4)], 8.0)
    assert known.longest_silent(5.0, FAIL) is None
    asked = [known.longest_silent(5.5 + step / 4, FAIL) for step in range(18)]
    assert asked[:3] == [2, None, None]
    assert {member: asked.count(member) for member in (2, 3, 4)} == {2: 4, 3: 3, 4: 0}


def test_all_tables_are_bounded() -> None:
    known = circle(view_size=10, entries=8)
    now = 0.0
    for base in range(0, 3000, 50):
        now += 3.0
        known.hear([entry(base + offset) for offset in range(2, 52)], now)
        known.look_round(now, FAIL, CLEANUP)
        known.longest_silent(now, FAIL)
        assert known.known <= 11
        assert known.load <= 7 * 11


def test_targets_are_random_others() -> None:
    known, rng = circle(), Stream(5)
    assert known.targets(rng, 3) == []
    known.hear([entry(member) for member in (0, 2, 3, 4)], 0.0)
    drawn = Counter(target for _ in range(4000) for target in known.targets(rng, 1))
    assert sorted(drawn) == [0, 2, 3, 4]
    assert all(abs(count - 1000) < 4 * (4000 * 0.25 * 0.75) ** 0.5 for count in drawn.values())
    assert sorted(known.targets(rng, 9)) == [0, 2, 3, 4]


def test_a_whole_transfer_leaves_what_its_entries_one_by_one_leave() -> None:
    rng = Stream(5)
    for trial in range(40):
        together, apart = circle(), circle()
        for known in (together, apart):
            known.hear([entry(member) for member in range(2, 2 + trial % 20)], 0.0)
            for _ in range(trial % 7):
                known.some(4)
            if trial % 3 == 0 and trial % 20 > 2:
                known.bid_farewell(3, 1)
        news = [entry(2 + rng.below(90), 1 + rng.below(3)) for _ in range(60)] + [entry(1313)]
        reports = list(together.hear(news, 1.0))
        one_by_one = [each for one in news for each in apart.hear([one], 1.0)]
        assert reports == one_by_one
        assert together.view.ids == apart.view.ids == sorted(together.view.ids)
        assert [together.some(5) for _ in range(30)] == [apart.some(5) for _ in range(30)]
        assert together.load == apart.load


def test_a_transfer_beyond_the_view_is_refused_as_entries_are() -> None:
    together, apart = circle(7, view_size=50), circle(7, view_size=50)
    news = [entry(member) for member in range(2, 200)]
    together.hear(news, 0.0)
    for one in news:
        apart.hear([one], 0.0)
    assert together.view.ids == apart.view.ids
    assert len(together.view) == 51


def test_news_from_a_wire_do_not_make_a_member_look_new() -> None:
    known = circle()
    known.hear([Entry(candidate(2, cpu=1.0), 1, 1, "here")], 0.0)
    before, version = known.view.candidate(2), known.view.version
    known.hear([Entry(candidate(2, cpu=1.0), 1, 2, "here")], 5.0)
    assert known.view.candidate(2) is before
    assert known.view.version == version
    assert known.look_round(10.5, FAIL, CLEANUP) == []
