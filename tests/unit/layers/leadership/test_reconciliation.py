"""Members that differ about the leader, or have none, as one of them sees it."""

from __future__ import annotations

import pytest

from hustings.core.choice import Candidate
from hustings.core.outcome import ELECTING, Elected, NoLeader
from hustings.layers.detector.detector import Detector
from hustings.layers.detector.heartbeat import HeartbeatConfig
from hustings.layers.detector.layer import DetectorLayer
from hustings.layers.leadership.inquiry import ANSWERS
from hustings.layers.leadership.layer import JOIN, TICK, LeadershipConfig
from hustings.layers.leadership.messages import HandOverMsg, LeaderInfoMsg, LeaderQueryMsg
from hustings.layers.leadership.standing import IN_OFFICE, LAST_RESORT, with_standing
from hustings.protocols.announce.le_s import LeS
from hustings.protocols.bully import CoordinatorMsg, ElectionMsg
from hustings.testing.effects import Multicast, Send
from tests.unit.layers.leadership.members import (
    LeadingMember,
    bully,
    following,
    in_office,
    observer,
    order,
    people,
    sent,
    told,
)


def insisted(leader: int, term: int) -> Multicast:
    return Multicast(HandOverMsg(leader, term))


# Two leaders


def test_who_follows_a_later_leader_says_so() -> None:
    member = following(1, 3, people([2, 3]), term=5)
    assert member.deliver(2, LeaderInfoMsg((2,), 4)) == [Send(2, LeaderInfoMsg((3,), 5))]


def test_who_hears_of_a_later_leader_follows_and_lets_it_know() -> None:
    member = following(1, 3, people([2, 3, 4]), term=5)
    effects = member.deliver(4, LeaderInfoMsg((2,), 6))
    assert told(effects) == [Elected(2, 6)]
    assert sent(effects, LeaderInfoMsg) == [(2, LeaderInfoMsg((2,), 6))]
    assert sent(member.deliver(2, LeaderInfoMsg((2,), 7)), LeaderInfoMsg) == []
    assert member.outcome == Elected(2, 7)


def test_a_leader_that_hears_of_a_later_one_gives_way() -> None:
    leader = in_office(3, people([1, 2]), term=5)
    assert told(leader.deliver(1, LeaderInfoMsg((2,), 6))) == [Elected(2, 6)]


def test_of_two_leaders_in_one_term_the_better_insists() -> None:
    leader = in_office(3, people([1, 2]), term=5)
    effects = leader.deliver(2, LeaderInfoMsg((2,), 5))
    assert insisted(3, 6) in effects
    assert told(effects) == [Elected(3, 6)]


def test_of_two_leaders_in_one_term_the_worse_tells_the_better() -> None:
    leader = in_office(2, people([1, 3]), term=5)
    note = LeaderInfoMsg((2,), 5)
    assert leader.deliver(1, LeaderInfoMsg((3,), 5)) == [Send(3, note)]
    assert leader.deliver(3, LeaderInfoMsg((3,), 5)) == []  # not at once again
    leader.clock += 1.0
    assert leader.deliver(3, LeaderInfoMsg((3,), 5)) == [Send(3, note)]


def test_members_that_take_each_other_for_the_leader_find_out() -> None:
    """Each has followed the other one in one term, and neither leads."""
    better = following(3, 2, people([1, 2]), term=5)
    assert insisted(3, 6) in better.deliver(1, LeaderInfoMsg((3,), 5))
    worse = following(2, 3, people([1, 3]), term=5)
    effects = worse.deliver(1, LeaderInfoMsg((2,), 5))
    assert effects == [Send(3, LeaderInfoMsg((3,), 5))]
    assert not told(effects)


def test_a_follower_tells_one_leader_of_the_other() -> None:
    member = following(1, 3, people([2, 3]), term=5)
    assert member.deliver(2, LeaderInfoMsg((2,), 5)) == [Send(2, LeaderInfoMsg((3,), 5))]


def test_a_leader_does_not_insist_all_the_time() -> None:
    leader = in_office(3, people([1, 2]), term=5)
    leader.deliver(2, LeaderInfoMsg((2,), 5))
    leader.clock += 1.5
    assert not told(leader.deliver(2, LeaderInfoMsg((2,), 6)))
    leader.clock += 1.0
    assert told(leader.deliver(2, LeaderInfoMsg((2,), 6))) == [Elected(3, 7)]


def test_a_leader_whose_followers_know_a_later_term_takes_one_above_it() -> None:
    leader = in_office(3, people([1, 2]), term=5)
    assert told(leader.deliver(1, LeaderInfoMsg((3,), 9))) == [Elected(3, 10)]


def test_a_member_takes_the_later_term_of_its_leader() -> None:
    member = following(1, 3, people([2, 3]), term=5)
    assert told(member.deliver(3, LeaderInfoMsg((3,), 6))) == [Elected(3, 6)]


def test_a_successor_that_never_heard_of_it_is_told_by_its_followers() -> None:
    member = following(2, 3, people([1, 3]), term=5)
    effects = member.deliver(1, LeaderInfoMsg((2,), 6))
    assert told(effects) == [Elected(2, 7)]
    assert insisted(2, 7) in effects
    assert member.leadership.incumbency.in_office


def test_nobody_follows_a_leader_that_is_not_in_view() -> None:
    member = following(1, 3, [*people([2, 3]), observer(8)], term=5)
    for leader in (99, 8):
        assert not told(member.deliver(2, LeaderInfoMsg((leader,), 6)))
        assert not told(member.deliver(2, HandOverMsg(leader, 6)))


def test_nobody_follows_whom_its_detector_suspects_unless_it_speaks_itself() -> None:
    member = LeadingMember(
        1, people([2, 3]), elect=lambda: DetectorLayer(bully(), Detector(HeartbeatConfig()))
    )
    member.start()
    member.assume_leader(3, 5)
    member.suspect(2)
    assert not told(member.deliver(3, LeaderInfoMsg((2,), 6)))
    assert told(member.deliver(2, LeaderInfoMsg((2,), 6)))[-1] == Elected(2, 6)


def test_who_announces_settles_all_but_the_term_by_itself() -> None:
    leader = LeadingMember(
        3,
        people([1, 2]),
        elect=lambda: LeS(LeS.Settings.parse({"T_A": 2.0, "T_L": 9.0}), order()),
    )
    leader.start()
    leader.assume_leader(3, 5)
    assert leader.deliver(2, LeaderInfoMsg((2,), 6)) == []
    assert leader.deliver(2, LeaderInfoMsg((2,), 5)) == []
    assert told(leader.deliver(2, LeaderInfoMsg((3,), 6))) == [Elected(3, 7)]


# No leader


def bereft(settings: LeadershipConfig | None = None) -> LeadingMember:
    """A member whose leader is gone and whose election has come to nothing."""
    member = following(1, 3, people([2, 3]), settings or LeadershipConfig(), term=5)
    member.ask(lambda leadership, ctx: leadership.inner.disown(leadership.within(ctx), ELECTING))
    member.fire(TICK)
    return member


def test_who_has_no_leader_for_long_asks_and_then_calls() -> None:
    member = bereft()
    since = member.clock
    while not sent(effects := member.fire(TICK), LeaderQueryMsg):
        assert member.clock < since + 30.0
    assert member.clock >= since + 20.0
    assert sorted(to for to, _ in sent(effects, LeaderQueryMsg) if to) == [2, 3]
    assert len(sent(member.fire(ANSWERS), ElectionMsg)) == 2


def test_where_views_are_partial_it_asks_on_until_its_turn_to_call() -> None:
    """Turns are long there, and answers are lost: one of them costs everybody an election."""
    member = LeadingMember(1, people([2, 3]), LeadershipConfig(partial=True, call_spread=20.0))
    member.start()
    assert len(sent(member.fire(JOIN), LeaderQueryMsg)) == 2
    assert len(sent(member.fire(TICK), LeaderQueryMsg)) == 1
    assert len(sent(member.fire(TICK), LeaderQueryMsg)) == 1
    assert told(member.deliver(3, LeaderInfoMsg((2,), 4))) == [Elected(2, 4)]
    assert sent(member.fire(TICK), LeaderQueryMsg) == []


def test_who_is_told_of_a_leader_meanwhile_follows() -> None:
    member = bereft()
    assert not told(member.deliver(2, LeaderInfoMsg((3,), 5)))  # an election may be under way
    while not sent(member.fire(TICK), LeaderQueryMsg):
        pass
    assert told(member.deliver(2, LeaderInfoMsg((3,), 5))) == [Elected(3, 5)]
    assert not sent(member.fire(ANSWERS), ElectionMsg)


def test_calls_in_vain_become_rarer() -> None:
    member = bereft()
    gaps, last = [], member.clock
    for _ in range(200):
        if sent(member.fire(TICK), LeaderQueryMsg):
            gaps.append(member.clock - last)
            last = member.clock
            member.fire(ANSWERS)
            member.leadership.inner.leader = None
    assert gaps[0] < gaps[1] < gaps[2] <= 8 * 20.0 + 5.0
    assert max(gaps) <= 8 * 20.0 + 5.0


def test_who_cannot_follow_into_an_earlier_term_says_so() -> None:
    member = LeadingMember(1, people([2, 3]))
    member.start()
    member.assume_leader(3, 9)
    member.restart()
    member.fire(JOIN)
    effects = member.deliver(2, LeaderInfoMsg((3,), 4))
    assert not told(effects)
    assert sent(effects, LeaderQueryMsg) == [(3, LeaderQueryMsg(9))]
    assert told(member.deliver(3, HandOverMsg(3, 10))) == [Elected(3, 10)]


def test_a_leader_that_is_asked_from_a_later_term_takes_one_above_it() -> None:
    leader = in_office(3, people([1, 2]), term=5)
    assert leader.deliver(1, LeaderQueryMsg(5)) == [Send(1, LeaderInfoMsg((3,), 5))]
    effects = leader.deliver(1, LeaderQueryMsg(9))
    assert insisted(3, 10) in effects
    assert sent(effects, LeaderInfoMsg) == [(1, LeaderInfoMsg((3,), 10))]


def test_who_has_no_leader_has_no_answer() -> None:
    member = bereft()
    assert member.deliver(2, LeaderQueryMsg(0)) == []


def test_a_leader_that_comes_into_view_late_is_waited_for() -> None:
    member = LeadingMember(1, people([2]))
    member.start()
    member.fire(JOIN)
    member.deliver(2, LeaderInfoMsg((3,), 4))
    effects = member.fire(ANSWERS)
    assert sent(effects, LeaderQueryMsg)
    assert not sent(effects, ElectionMsg)
    member.meet(Candidate(3))
    assert told(member.deliver(2, LeaderInfoMsg((3,), 4))) == [Elected(3, 4)]


def test_a_leader_that_never_comes_into_view_is_not_waited_for_for_ever() -> None:
    member = LeadingMember(1, people([2]))
    member.start()
    member.fire(JOIN)
    for _ in range(3):
        member.deliver(2, LeaderInfoMsg((3,), 4))
        effects = member.fire(ANSWERS)
    assert sent(effects, ElectionMsg)


def test_a_leader_that_is_out_of_view_for_long_is_given_up() -> None:
    member = following(1, 3, people([2, 3]))
    member.lose(3)
    since = member.clock
    while not told(effects := member.fire(TICK)):
        assert member.clock < since + 40.0
    assert told(effects) == [NoLeader(ELECTING)]
    assert member.clock >= since + 20.0


def test_in_a_group_too_large_to_know_a_leader_may_be_out_of_view() -> None:
    member = following(1, 3, people([2, 3]))
    member.lose(3)
    member.view.estimate = 1000.0
    for _ in range(20):
        assert not told(member.fire(TICK))


# What the election inside is told


def test_the_election_is_told_of_new_electors_but_not_of_observers() -> None:
    leader = in_office(3, people([1]))
    leader.meet(observer(8), Candidate(2))
    effects = leader.deliver(1, LeaderQueryMsg(0))
    assert sent(effects, CoordinatorMsg) == [(2, CoordinatorMsg(1))]
    assert not sent(leader.deliver(1, LeaderQueryMsg(0)), CoordinatorMsg)


def test_one_that_is_back_is_told_of_once() -> None:
    leader = in_office(3, people([1, 2]))
    leader.lose(2)
    leader.suspect(2)
    leader.meet(Candidate(2))
    assert sent(leader.alive(2), CoordinatorMsg) == [(2, CoordinatorMsg(1))]


def test_an_elector_that_becomes_an_observer_is_as_good_as_gone() -> None:
    member = following(1, 3, people([2, 3]))
    member.meet(observer(3))
    assert told(member.fire(TICK)) == [NoLeader(ELECTING)]
    other = following(1, 3, [*people([2, 3]), observer(8)])
    assert other.suspect(8) == []


# At rest


def test_a_leader_tells_one_elector_each_period() -> None:
    leader = in_office(3, people([1, 2, 4, 5]))
    heard = [to for _ in range(60) for to, _ in sent(leader.fire(TICK), LeaderInfoMsg)]
    assert len(heard) == 60
    assert set(heard) == {1, 2, 4, 5}


def test_about_one_follower_asks_its_leader_each_period() -> None:
    member = following(1, 3, people(range(2, 11)))
    notes = [note for _ in range(400) for note in sent(member.fire(TICK), LeaderInfoMsg)]
    assert {to for to, _ in notes} == {3}
    assert 20 <= len(notes) <= 60  # 40 expected, standard deviation 6


@pytest.mark.parametrize("standing", [LAST_RESORT, IN_OFFICE])
def test_own_standing_counts_at_once(standing: float) -> None:
    leader = in_office(3, people([1, 2]))
    leader.me = with_standing(leader.me, standing)  # a world that is wrong about it
    leader.fire(TICK)
    assert leader.leadership.electors.standing(3) == leader.leadership.incumbency.standing == 0.0
