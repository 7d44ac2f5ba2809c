"""The leadership layer of one member: transfer, resignation, observing, coming back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hustings.core.choice import Candidate
from hustings.core.election import Election
from hustings.core.errors import BadInput
from hustings.core.outcome import ELECTING, PAUSED, Elected, NoLeader
from hustings.layers.leadership.inquiry import ANSWERS
from hustings.layers.leadership.layer import (
    JOIN,
    OFFICE,
    RESIGNED,
    TICK,
    LeadershipConfig,
    with_leadership,
)
from hustings.layers.leadership.messages import HandOverMsg, LeaderInfoMsg, LeaderQueryMsg
from hustings.layers.leadership.observer import UNHEARD
from hustings.layers.leadership.standing import (
    ELIGIBLE,
    LAST_RESORT,
    standing_of,
    with_standing,
)
from hustings.layers.leadership.transfer import PREEMPT, REPEAT
from hustings.protocols.announce.al import Al
from hustings.protocols.announce.le_s import LeS
from hustings.protocols.announce.messages import AnnounceMsg, ByeMsg
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

FOUR = people([1, 2, 4])  # beside member 3


def le_s() -> LeS:
    return LeS(LeS.Settings.parse({"T_A": 2.0, "T_L": 9.0}), order())


# Handing over


def test_a_leader_tells_its_successor_and_follows_it_at_once() -> None:
    leader = in_office(3, FOUR, term=5)
    effects = leader.ask(lambda leadership, ctx: leadership.hand_over(ctx, 2))
    word = HandOverMsg(2, 6)
    # That one tells the others; and 4, who would lead next, must not think that 3 has died.
    assert sent(effects, HandOverMsg) == [(2, word), (4, word)]
    assert told(effects) == [Elected(2, 6)]
    assert (leader.leadership.leader, leader.leadership.term) == (2, 6)
    assert leader.stored["term"] == 6


def test_only_a_leader_hands_over_and_only_to_an_elector() -> None:
    answers: list[bool] = []

    def ask(member: LeadingMember, to: int) -> bool:
        effects = member.ask(lambda leadership, ctx: answers.append(leadership.hand_over(ctx, to)))
        assert answers[-1] or not told(effects)
        return answers[-1]

    leader = in_office(3, [*people([1, 2]), observer(9)])
    assert not ask(leader, 3)
    assert not ask(leader, 9)
    assert not ask(leader, 77)
    assert not ask(following(3, 2, FOUR), 1)
    assert not ask(LeadingMember(observer(3), FOUR), 1)
    assert ask(leader, 1)


def test_who_hears_of_a_hand_over_follows_and_says_so_once() -> None:
    member = following(1, 3, people([2, 3, 4]), term=5)
    word = HandOverMsg(2, 6)
    assert told(member.deliver(3, word)) == [Elected(2, 6)]
    assert told(member.deliver(3, word)) == []
    assert member.leadership.electors.incumbent == 2
    assert member.leadership.electors.view.ranking(member.leadership.order).ids[0] == 2


@pytest.mark.parametrize("term", [4, 5])
def test_a_hand_over_of_the_past_is_not_heeded(term: int) -> None:
    member = following(1, 3, people([2, 3, 4]), term=5)
    assert told(member.deliver(4, HandOverMsg(2, term))) == []
    assert member.leadership.leader == 3
    assert member.leadership.electors.incumbent == 3


def test_copies_out_of_order_do_no_harm() -> None:
    member = following(1, 3, people([2, 3, 4]), term=5)
    later, earlier = HandOverMsg(4, 7), HandOverMsg(2, 6)
    assert told(member.deliver(2, later)) == [Elected(4, 7)]
    assert told(member.deliver(3, earlier)) == []
    assert member.leadership.leader == 4


def test_a_successor_takes_office_and_tells_all() -> None:
    member = following(2, 3, people([1, 3, 4]), term=5)
    word = HandOverMsg(2, 6)
    effects = member.deliver(3, word)
    assert told(effects) == [Elected(2, 6)]
    assert sent(effects, HandOverMsg) == [(None, word)]
    assert sent(effects, LeaderInfoMsg) == [(3, LeaderInfoMsg((2,), 6))]
    assert member.leadership.incumbency.in_office
    assert member.leadership.electors.incumbent == 2
    again = member.deliver(3, word)  # its answer was lost
    assert sent(again, LeaderInfoMsg) == [(3, LeaderInfoMsg((2,), 6))]
    assert not told(again)
    assert not sent(again, HandOverMsg)


def test_a_silent_successor_is_told_again_but_not_for_ever() -> None:
    leader = in_office(3, FOUR)
    leader.ask(lambda leadership, ctx: leadership.hand_over(ctx, 2))
    word = HandOverMsg(2, 2)
    assert sent(leader.fire(REPEAT), HandOverMsg) == [(None, word)]  # with all others
    repeated = 1
    while REPEAT in leader.timers:
        assert sent(leader.fire(REPEAT), HandOverMsg) == [(2, word)]
        repeated += 1
    assert repeated == LeadershipConfig().transfer_retries


def test_a_successor_that_speaks_is_not_told_again() -> None:
    leader = in_office(3, FOUR)
    leader.ask(lambda leadership, ctx: leadership.hand_over(ctx, 2))
    leader.deliver(2, LeaderInfoMsg((2,), 2))
    assert sent(leader.fire(REPEAT), HandOverMsg) == [(None, HandOverMsg(2, 2))]
    assert REPEAT not in leader.timers


def test_the_successor_comes_first_in_place_of_the_old_leader() -> None:
    leader = in_office(3, FOUR)
    assert leader.leadership.electors.incumbent == 3
    effects = leader.ask(lambda leadership, ctx: leadership.hand_over(ctx, 1))
    assert sent(effects, HandOverMsg)[0] == (1, HandOverMsg(1, 2))
    assert leader.leadership.electors.incumbent == 1
    assert leader.leadership.electors.view.ranking(leader.leadership.order).ids == (1, 4, 3, 2)


def test_a_hand_over_in_the_middle_of_an_election_ends_it() -> None:
    member = following(1, 3, people([2, 3, 4]), term=5)
    assert told(member.call()) == [NoLeader(ELECTING)]
    assert "T1" in member.timers
    member.deliver(3, HandOverMsg(2, 6))
    assert "T1" not in member.timers
    assert member.outcome == Elected(2, 6)


def test_an_unsound_word_is_not_heeded() -> None:
    member = following(1, 3, people([2, 3, 4]))
    for word in (
        HandOverMsg(2, 2**62 + 1),
        HandOverMsg(2**63, 6),
        LeaderInfoMsg((), 6),
        LeaderInfoMsg((2,) * 65, 6),
        LeaderQueryMsg(-1),
    ):
        assert member.deliver(3, word) == []


# Standing back


def test_who_resigns_hands_over_to_the_best_other_and_stands_back() -> None:
    leader = in_office(3, FOUR)
    effects = leader.ask(lambda leadership, ctx: leadership.stand_back(ctx))
    assert told(effects) == [Elected(4, 2)]
    assert standing_of(leader.me) == LAST_RESORT
    leader.ask(lambda leadership, ctx: leadership.stand(ctx))
    assert standing_of(leader.me) == ELIGIBLE


def test_who_resigns_does_not_hand_over_to_one_that_stands_back() -> None:
    leader = in_office(3, [Candidate(1), with_standing(Candidate(4), LAST_RESORT)])
    assert told(leader.ask(lambda leadership, ctx: leadership.stand_back(ctx))) == [Elected(1, 2)]


def test_who_resigns_hands_over_to_one_that_it_has_met_if_there_is_one() -> None:
    """A newcomer may tell of a member that has left. So the best one that answered comes first."""
    for met, heir in (({1, 2}, 2), ({1, 2, 4}, 4), (set[int](), 4)):
        leader = in_office(3, FOUR)
        leader.leadership.is_met = met.__contains__
        effects = leader.ask(lambda leadership, ctx: leadership.stand_back(ctx))
        assert told(effects) == [Elected(heir, 2)]


def test_alone_who_resigns_leaves_the_group_without_a_leader_until_it_stands() -> None:
    leader = in_office(3, [])
    assert told(leader.ask(lambda leadership, ctx: leadership.stand_back(ctx))) == [
        NoLeader(RESIGNED)
    ]
    for _ in range(20):
        assert not told(leader.fire(TICK))
    assert told(leader.ask(lambda leadership, ctx: leadership.stand(ctx))) == [Elected(3, 2)]


def test_alone_who_resigned_leads_again_if_an_election_is_called() -> None:
    leader = in_office(3, [])
    leader.ask(lambda leadership, ctx: leadership.stand_back(ctx))
    leader.call()
    assert leader.outcome == Elected(3, 2)
    leader.clock += LeadershipConfig().trial
    leader.fire(TICK)
    assert standing_of(leader.me) == LAST_RESORT
    assert leader.leadership.electors.incumbent is None


def test_who_leads_standing_back_makes_room_for_the_next_one() -> None:
    leader = in_office(3, [])
    leader.ask(lambda leadership, ctx: leadership.stand_back(ctx))
    leader.call()
    leader.meet(Candidate(1))
    assert told(leader.fire(TICK)) == [Elected(1, 3)]


def test_who_announces_and_resigns_alone_falls_silent() -> None:
    leader = LeadingMember(3, [], elect=le_s)
    leader.start()
    leader.assume_leader(3, 1)
    assert told(leader.ask(lambda leadership, ctx: leadership.stand_back(ctx))) == [
        NoLeader(RESIGNED)
    ]
    assert "T_A" not in leader.timers
    leader.ask(lambda leadership, ctx: leadership.stand(ctx))
    leader.fire("T_S")
    assert leader.outcome == Elected(3, 2)


# Staying, and returning to the preferred member


def test_a_leader_comes_first_after_a_while_for_itself_and_for_its_followers() -> None:
    leader = LeadingMember(3, people([1, 2]))
    leader.start()
    leader.call()
    follower = following(2, 4, people([1, 3, 4]))
    follower.suspect(4)
    follower.deliver(3, CoordinatorMsg(2))
    for member in (leader, follower):
        assert member.leadership.leader == 3
        assert member.leadership.electors.incumbent != 3
        member.clock += LeadershipConfig().trial - 0.1
        member.deliver(1, LeaderQueryMsg(0))
        assert member.leadership.electors.incumbent != 3
        member.clock += 0.1
        member.deliver(1, LeaderQueryMsg(0))
        assert member.leadership.electors.incumbent == 3


def test_a_claim_delay_is_a_part_of_the_probation() -> None:
    settings = LeadershipConfig(claim_delay=5.0)
    follower = LeadingMember(2, people([1, 3]), settings, elect=le_s)
    follower.start()
    follower.call()
    follower.deliver(3, AnnounceMsg(1, 1, Candidate(3)))
    leader = LeadingMember(3, people([1, 2]), settings, elect=le_s)
    leader.start()
    leader.call()
    leader.fire("T_S")
    for member in (leader, follower):
        began = member.clock
        while member.leadership.electors.incumbent is None:
            member.clock += 0.5
            if member is leader and OFFICE in member.timers:
                if member.timers[OFFICE].deadline <= member.clock:
                    member.fire(OFFICE)
            member.deliver(1, LeaderQueryMsg(0))
        assert member.clock - began == pytest.approx(5.0, abs=0.6)


def test_a_leader_that_it_was_told_of_comes_first_at_once() -> None:
    member = LeadingMember(9, people([1, 2]))
    member.start()
    member.fire(JOIN)
    member.deliver(1, LeaderInfoMsg((2,), 7))
    assert member.leadership.electors.incumbent == 2


def test_a_leader_stays_first_until_another_one_is() -> None:
    """A member that missed it by mistake must go back to it."""
    member = following(2, 3, people([1, 3, 4]), term=5)
    member.suspect(3)
    member.deliver(4, CoordinatorMsg(6))
    assert member.leadership.leader == 4
    assert member.leadership.electors.incumbent == 3
    member.clock += LeadershipConfig().trial
    member.fire(TICK)
    assert member.leadership.electors.incumbent == 4


def test_a_leader_does_not_stay_first_if_an_election_comes_to_nothing() -> None:
    member = following(1, 3, people([2, 3]))
    member.lose(3)
    member.suspect(3)
    member.ask(lambda layer, ctx: layer.inner.disown(layer.within(ctx), ELECTING))
    member.fire(TICK)
    assert member.leadership.electors.incumbent == 3
    member.clock += LeadershipConfig().leaderless_limit
    member.fire(TICK)
    assert member.leadership.electors.incumbent is None


def test_where_all_announce_themselves_nobody_comes_first() -> None:
    """There no message says which member leads: terms cannot decide."""
    member = LeadingMember(1, people([2, 3]), elect=lambda: Al(Al.Settings(), order()))
    member.start()
    member.deliver(2, HandOverMsg(2, 5))
    assert member.outcome == Elected(2, 5)
    assert member.leadership.electors.incumbent is None


def test_with_preempt_after_0_the_election_has_its_way() -> None:
    settings = LeadershipConfig(preempt_after=0.0)
    leader = in_office(1, people([2]), settings)
    assert leader.leadership.electors.incumbent is None
    leader.meet(Candidate(9))
    assert sent(leader.fire(TICK), ElectionMsg) == [(9, ElectionMsg(1))]


def test_a_leader_that_stays_tells_a_better_newcomer_that_it_leads() -> None:
    leader = in_office(1, people([2]))
    leader.meet(Candidate(9))
    assert sent(leader.fire(TICK), CoordinatorMsg) == [(9, CoordinatorMsg(1))]


def test_incumbency_ends_with_the_office() -> None:
    leader = in_office(1, people([2, 3]))
    leader.deliver(2, HandOverMsg(3, 2))
    assert leader.leadership.electors.incumbent == 3
    leader.restart()
    assert leader.leadership.electors.incumbent is None


def test_the_leader_hands_over_to_a_better_member_that_has_been_up_for_long() -> None:
    leader = in_office(2, people([1]), LeadershipConfig(preempt_after=30.0))
    leader.fire(TICK)
    leader.meet(*people([4, 5]), with_standing(Candidate(6), LAST_RESORT))
    assert not told(leader.fire(TICK))
    came = leader.clock
    for _ in range(5):
        assert not told(leader.fire(TICK))
    assert leader.timers[PREEMPT].deadline == pytest.approx(came + 30.0)
    assert told(leader.fire(PREEMPT)) == [Elected(5, 2)]


def test_a_suspicion_begins_the_time_anew() -> None:
    leader = in_office(2, people([1, 4]), LeadershipConfig(preempt_after=30.0))
    leader.clock = 29.0
    leader.suspect(4)
    leader.clock = 40.0
    leader.alive(4)
    assert not told(leader.fire(TICK))
    leader.clock = 60.0
    assert told(leader.fire(TICK)) == [Elected(4, 2)]


def test_without_preempt_after_nobody_is_handed_anything() -> None:
    leader = in_office(2, people([1, 4]))
    leader.clock = 1e6
    assert not told(leader.fire(TICK))


# Joining


def test_an_election_begins_when_the_membership_had_its_chance() -> None:
    member = LeadingMember(1, people([2, 3]))
    member.start()
    assert member.timers[JOIN].deadline == 4.0
    effects = member.fire(JOIN)
    assert len(sent(effects, LeaderQueryMsg)) == 2
    assert not sent(effects, ElectionMsg)
    assert len(sent(member.fire(ANSWERS), ElectionMsg)) == 2


@pytest.mark.parametrize("elect, asked", [(le_s, 1), (bully, 3)])
def test_in_a_crowd_that_will_hear_announcements_only_one_is_asked(
    elect: Callable[[], Election], asked: int
) -> None:
    member = LeadingMember(1, people([2, 3, 4, 5]), elect=elect)
    member.view.estimate = 100.0
    member.start()
    assert len(sent(member.fire(JOIN), LeaderQueryMsg)) == asked
    alone = LeadingMember(1, people([2, 3, 4, 5]), elect=elect)
    alone.view.estimate = 5.0
    alone.start()
    assert len(sent(alone.fire(JOIN), LeaderQueryMsg)) == 3


def test_a_world_that_knows_need_not_wait() -> None:
    member = LeadingMember(1, people([2, 3]))
    member.start()
    assert sent(member.ask(lambda leadership, ctx: leadership.joined(ctx)), LeaderQueryMsg)
    assert JOIN not in member.timers
    assert not member.ask(lambda leadership, ctx: leadership.joined(ctx))


def test_a_newcomer_follows_the_leader_that_it_is_told_of() -> None:
    member = LeadingMember(9, people([1, 2]))
    member.start()
    member.fire(JOIN)
    effects = member.deliver(1, LeaderInfoMsg((2,), 7))
    assert told(effects) == [Elected(2, 7)]
    assert not sent(member.fire(ANSWERS), ElectionMsg)
    assert member.leadership.electors.view.ranking(member.leadership.order).ids[0] == 2


def test_who_comes_back_to_a_leader_that_stays_calls_no_election() -> None:
    for settings, calls in (
        (LeadershipConfig(membership_wait=0.0), False),
        (LeadershipConfig(preempt_after=0.0), True),
    ):
        member = LeadingMember(1, people([2, 3]), settings)
        member.start()
        effects = member.restart()
        if settings.joining:
            effects = member.fire(JOIN)
        assert bool(sent(effects, ElectionMsg)) == calls


def test_alone_one_leads_at_once() -> None:
    member = LeadingMember(1, [])
    member.start()
    assert told(member.fire(JOIN)) == [Elected(1, 1)]


def test_a_message_of_the_election_starts_it() -> None:
    member = LeadingMember(1, people([2]))
    member.start()
    assert told(member.deliver(2, CoordinatorMsg(4))) == [Elected(2, 4)]


# Observers


def test_an_observer_takes_no_part_in_the_election() -> None:
    member = LeadingMember(observer(5), people([1, 2]))
    assert told(member.start()) == [NoLeader(ELECTING)]
    assert member.deliver(1, ElectionMsg(3)) == []
    assert member.call() == []
    assert member.fire(TICK)
    assert not [e for e in member.fire(TICK) if isinstance(e, Multicast)]


def test_an_observer_hears_of_the_leader_and_of_changes() -> None:
    member = LeadingMember(observer(5), people([1, 2]))
    member.start()
    assert told(member.deliver(2, LeaderInfoMsg((2,), 3))) == [Elected(2, 3)]
    assert told(member.deliver(2, LeaderInfoMsg((2,), 3))) == []
    assert told(member.deliver(1, LeaderInfoMsg((1,), 3))) == []  # two in one term: the first
    assert told(member.deliver(1, LeaderInfoMsg((1,), 2))) == []
    assert told(member.deliver(2, HandOverMsg(1, 4))) == [Elected(1, 4)]
    assert (member.leadership.leader, member.leadership.term, member.leadership.leaders) == (
        1,
        4,
        (1,),
    )
    assert member.stored["term"] == 4


def test_an_observer_does_not_believe_in_a_leader_that_is_gone() -> None:
    member = LeadingMember(observer(5), people([1, 2]))
    member.start()
    member.deliver(2, LeaderInfoMsg((2,), 3))
    member.lose(2)
    assert told(member.suspect(2)) == [NoLeader(ELECTING)]
    assert told(member.deliver(1, LeaderInfoMsg((2,), 3))) == []


def test_an_observer_asks_after_a_while_and_gives_up_after_long() -> None:
    member = LeadingMember(observer(5), people([1, 2]))
    member.start()
    assert len(sent(member.fire(TICK), LeaderQueryMsg)) == 1  # it knows nobody
    member.deliver(2, LeaderInfoMsg((2,), 3))
    heard = member.clock
    assert not sent(member.fire(TICK), LeaderQueryMsg)
    assert sent(member.fire(TICK), LeaderQueryMsg)[0][1] == LeaderQueryMsg(3)
    outcomes = []
    while member.clock <= heard + 20.0:
        outcomes += told(member.fire(TICK))
    assert outcomes == [NoLeader(UNHEARD)]


def test_a_leader_tells_observers_at_a_change_and_from_time_to_time() -> None:
    leader = following(3, 2, [*people([1, 2]), observer(8), observer(9)])
    effects = leader.deliver(2, HandOverMsg(3, 2))
    assert [to for to, _ in sent(effects, HandOverMsg)] == [None]  # observers hear that, too
    leader.fire(TICK)
    effects = leader.fire(TICK)
    assert [to for to, _ in sent(effects, LeaderInfoMsg)][-2:] == [8, 9]
    won = LeadingMember(3, [*people([1]), observer(8)])
    won.start()
    won.fire(JOIN)
    assert (8, LeaderInfoMsg((3,), 1)) in sent(won.fire(ANSWERS), LeaderInfoMsg)


def test_an_elector_answers_an_observer() -> None:
    member = following(1, 2, [*people([2]), observer(8)], term=3)
    assert member.deliver(8, LeaderQueryMsg(1)) == [Send(8, LeaderInfoMsg((2,), 3))]


def test_an_observer_may_be_made_by_its_maker() -> None:
    assert with_leadership(bully, LeadershipConfig(), observer=True)().observer
    assert "observer" in with_leadership(bully, LeadershipConfig(), observer=True)().state()


# Going, and having been away


def test_a_leader_that_leaves_hands_over_first() -> None:
    leader = in_office(3, FOUR)
    effects = leader.leave()
    assert sent(effects, HandOverMsg) == [
        (4, HandOverMsg(4, 2)),
        (None, HandOverMsg(4, 2)),
    ]
    assert leader.deliver(4, LeaderQueryMsg(0)) == []
    follower = following(3, 4, FOUR)
    assert not sent(follower.leave(), HandOverMsg)


SHORT, LONG = 4.0, 30.0  # a leader whose stall was longer than 5 delta does not lead while it asks


@pytest.mark.parametrize("gap, said", [(SHORT, []), (LONG, [NoLeader(PAUSED)])])
def test_a_leader_that_was_away_asks_who_leads(gap: float, said: list[NoLeader]) -> None:
    """How long is too long to ask is the world's to say: it tells of no shorter absence."""
    leader = in_office(3, FOUR, term=4)
    effects = leader.ask(lambda leadership, ctx: leadership.woke(ctx, gap))
    assert told(effects) == said
    assert len(sent(effects, LeaderQueryMsg)) == 3
    assert told(leader.deliver(1, LeaderInfoMsg((2,), 5))) == [Elected(2, 5)]
    assert told(leader.fire(ANSWERS)) == []


@pytest.mark.parametrize("gap", [SHORT, LONG])
@pytest.mark.parametrize("elect", [bully, le_s])
def test_a_leader_that_nobody_missed_leads_on_in_its_term(
    elect: Callable[[], Election], gap: float
) -> None:
    for answer in (LeaderInfoMsg((3,), 4), None):
        leader = LeadingMember(3, FOUR, elect=elect)
        leader.start()
        leader.assume_leader(3, 4)
        leader.ask(lambda leadership, ctx: leadership.woke(ctx, gap))
        effects = leader.fire(ANSWERS) if answer is None else leader.deliver(1, answer)
        assert told(effects) == ([Elected(3, 4)] if gap == LONG else [])
        assert not sent(effects, HandOverMsg)
        assert leader.leadership.resuming is None
        assert leader.election.leader == 3
        assert leader.election.term == 4


def test_an_older_report_is_no_answer() -> None:
    leader = in_office(3, FOUR, term=4)
    leader.ask(lambda leadership, ctx: leadership.woke(ctx, LONG))
    assert told(leader.deliver(1, LeaderInfoMsg((3,), 3))) == []
    assert told(leader.deliver(1, LeaderInfoMsg((2,), 3))) == []
    assert told(leader.deliver(2, LeaderInfoMsg((3,), 4))) == [Elected(3, 4)]


def test_a_leader_that_others_name_and_that_is_not_in_view_is_asked_for_again() -> None:
    leader = in_office(3, FOUR, term=4)
    leader.ask(lambda leadership, ctx: leadership.woke(ctx, LONG))
    leader.deliver(1, LeaderInfoMsg((9,), 5))
    effects = leader.fire(ANSWERS)
    assert told(effects) == []
    assert len(sent(effects, LeaderQueryMsg)) == 3


def test_a_leader_alone_leads_on_at_once() -> None:
    leader = in_office(3, people([]), term=4)
    effects = leader.ask(lambda leadership, ctx: leadership.woke(ctx, LONG))
    assert told(effects) == [NoLeader(PAUSED), Elected(3, 4)]


@pytest.mark.parametrize("elect", [bully, le_s])
@pytest.mark.parametrize("first, second", [(LONG, SHORT), (LONG, LONG), (SHORT, LONG)])
def test_a_leader_that_was_away_twice_asks_twice(
    elect: Callable[[], Election], first: float, second: float
) -> None:
    leader = LeadingMember(3, FOUR, elect=elect)
    leader.start()
    leader.assume_leader(3, 4)
    effects = leader.ask(lambda leadership, ctx: leadership.woke(ctx, first))
    effects += leader.ask(lambda leadership, ctx: leadership.woke(ctx, second))
    assert told(effects) == [NoLeader(PAUSED)]
    assert len(sent(effects, LeaderQueryMsg)) == 6
    assert told(leader.deliver(1, LeaderInfoMsg((2,), 5))) == [Elected(2, 5)]


@pytest.mark.parametrize("elect", [bully, le_s])
def test_a_leader_that_resigns_while_it_asks_leads_no_more(elect: Callable[[], Election]) -> None:
    leader = LeadingMember(3, FOUR, elect=elect)
    leader.start()
    leader.assume_leader(3, 4)
    leader.ask(lambda leadership, ctx: leadership.woke(ctx, LONG))
    effects = leader.ask(lambda leadership, ctx: leadership.stand_back(ctx))
    assert told(effects) == [NoLeader(RESIGNED)]
    for answer in (LeaderInfoMsg((3,), 4), LeaderInfoMsg((2,), 5)):
        assert Elected(3, 4) not in told(leader.deliver(1, answer))
    assert leader.leadership.held == Elected(2, 5)


def test_a_leader_that_leaves_while_it_asks_says_farewell() -> None:
    def with_byes() -> LeS:
        return LeS(LeS.Settings.parse({"T_A": 2.0, "T_L": 9.0, "bye": 1}), order())

    leader = LeadingMember(3, FOUR, elect=with_byes)
    leader.start()
    leader.assume_leader(3, 4)
    leader.ask(lambda leadership, ctx: leadership.woke(ctx, LONG))
    assert len(sent(leader.ask(lambda leadership, ctx: leadership.leave(ctx)), ByeMsg)) == 1


def test_who_announces_and_was_away_is_silent_until_it_knows() -> None:
    leader = LeadingMember(3, FOUR, elect=le_s)
    leader.start()
    leader.assume_leader(3, 4)
    leader.ask(lambda leadership, ctx: leadership.woke(ctx, SHORT))
    assert sent(leader.fire("T_A"), AnnounceMsg) == []
    leader.deliver(1, LeaderInfoMsg((3,), 4))
    assert len(sent(leader.fire("T_A"), AnnounceMsg)) == 1


@pytest.mark.parametrize("gap", [SHORT, LONG])
def test_who_announces_and_was_away_follows_whom_it_hears(gap: float) -> None:
    leader = LeadingMember(3, FOUR, elect=le_s)
    leader.start()
    leader.assume_leader(3, 4)
    leader.ask(lambda leadership, ctx: leadership.woke(ctx, gap))
    assert told(leader.deliver(1, LeaderInfoMsg((2,), 5)))[-1] == Elected(2, 5)
    assert "T_A" not in leader.timers
    assert "T_L" in leader.timers


def test_who_follows_and_was_away_goes_on() -> None:
    member = following(3, 4, FOUR)
    assert member.ask(lambda leadership, ctx: leadership.woke(ctx, 99.0)) == []


def test_settings_are_checked() -> None:
    with pytest.raises(BadInput, match="reconcile_interval must be finite"):
        LeadershipConfig.parse({"reconcile_interval": "inf"})
    assert LeadershipConfig.parse({"leaderless_timeout": 10.0}).warnings()
    assert not LeadershipConfig().warnings()
    assert LeadershipConfig(preempt_after=0.0).sticky is False
