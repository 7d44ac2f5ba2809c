"""A guard behind an election, one member driven by hand: who asks, when a window opens and ends."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hustings.core.choice import Candidate, HighestId
from hustings.core.context import Context
from hustings.core.election import Election
from hustings.core.errors import BadInput, ProtocolBug
from hustings.core.outcome import ELECTING, Elected, GaveUp, NoLeader, Outcome
from hustings.core.rounds import RoundBased
from hustings.layers.layer import unwrapped
from hustings.layers.lease import (
    ASK,
    AWAITING,
    END,
    GIVEN_BACK,
    LAPSED,
    LeaseHeldMsg,
    LeaseLayer,
    with_lease,
)
from hustings.protocols.probabilistic.messages import Call, InitMsg
from hustings.protocols.registry import CATALOGUE, CONSENSUS, classes, find
from hustings.testing import (
    Acquire,
    CancelTimer,
    Declare,
    Effect,
    Multicast,
    RecordedMember,
    Release,
    Send,
    SetTimer,
    persist,
    view_of,
)
from tests.unit.layers.puppets import GROUP, LEASE, ME, WINDOW, Driven, Puppet

# From nomination to lead


def test_whom_the_election_names_asks_and_leads_only_when_granted(driven: Driven) -> None:
    assert driven.at(100.0).nominate() == [
        Declare(NoLeader(AWAITING)),
        Acquire(30.0, 1),
        SetTimer(ASK, 3.0),
    ]
    assert driven.at(102.0).grant() == [
        persist(token=7),
        SetTimer(END, 18.0, eager=True),
        SetTimer(ASK, 8.0),
        Multicast(LeaseHeldMsg(2, 7)),
        Declare(Elected(2, 7)),
    ]
    assert (driven.election.leader, driven.election.term) == (2, 7)


def test_a_guard_that_is_silent_is_so_since_the_first_question_without_an_answer(
    driven: Driven,
) -> None:
    election = driven.at(90.0).election
    assert election.silence(90.0) == 0.0, "it was not asked"
    driven.at(100.0).nominate()
    driven.at(103.0).member.fire(ASK)
    assert election.silence(105.0) == 5.0
    driven.at(106.0).refuse(3, 5)
    assert election.silence(200.0) == 0.0
    driven.at(210.0).member.fire(ASK)
    assert election.silence(211.0) == 1.0
    driven.at(211.0).say(Elected(3, 9))
    assert election.silence(300.0) == 0.0, "it wants nothing any more"


def test_the_window_counts_from_the_question_and_leaves_room_for_drift(leading: Driven) -> None:
    assert leading.election.until == 100.0 + WINDOW
    assert leading.member.timers[END].deadline == 100.0 + WINDOW


def test_an_answer_counts_from_its_own_question_not_from_a_later_one(driven: Driven) -> None:
    driven.at(100.0).nominate()
    driven.member.fire(ASK)
    assert driven.election.request == 2
    driven.at(105.0).grant(request=1)
    assert driven.election.until == 100.0 + WINDOW
    driven.at(106.0).grant(request=2)
    assert driven.election.until == 103.0 + WINDOW


def test_answers_that_overtake_each_other_do_not_shorten_the_window(driven: Driven) -> None:
    driven.at(100.0).nominate()
    driven.member.fire(ASK)
    driven.at(104.0).grant(request=2)
    driven.at(105.0).grant(request=1)
    assert driven.election.until == 103.0 + WINDOW


def test_an_answer_that_took_longer_than_it_grants_is_worthless(driven: Driven) -> None:
    driven.at(100.0).nominate()
    assert driven.at(100.0 + WINDOW).grant() == []
    assert driven.outcome == NoLeader(AWAITING)
    assert ASK in driven.member.timers


def test_an_answer_counts_once(leading: Driven) -> None:
    assert leading.grant(request=1) == []
    assert leading.grant(request=99) == []


def test_a_shorter_grant_than_asked_for_makes_a_shorter_window(driven: Driven) -> None:
    driven.at(100.0).nominate()
    driven.at(101.0).grant(ttl=15.0)
    assert driven.election.until == 110.0


def test_others_take_an_unconfirmed_result_for_a_hint(driven: Driven) -> None:
    assert driven.say(Elected(3, 1)) == [Declare(NoLeader(AWAITING))]
    assert driven.election.leader is None
    assert driven.hear(3, 7) == [persist(token=7), Declare(Elected(3, 7))]


def test_the_election_cannot_turn_to_the_guard_itself() -> None:
    inner = LeaseLayer(Puppet(), LEASE)
    nested = RecordedMember(lambda: LeaseLayer(Wild(), LEASE), ME, view_of(GROUP))
    nested.start()
    with pytest.raises(ProtocolBug, match="does not ask the guard itself"):
        nested.call()
    with pytest.raises(ProtocolBug, match="does not give back"):
        nested.leave()
    with pytest.raises(BadInput, match="has a guard already"):
        LeaseLayer(inner, LEASE)


class Wild(Puppet):
    """Goes behind its back."""

    def call(self, ctx: Context) -> None:
        ctx.acquire(1.0, 1)

    def leave(self, ctx: Context) -> None:
        ctx.release(1)


# Renewal and the end of the window


def test_it_renews_in_time_and_says_so_again(leading: Driven) -> None:
    assert leading.member.fire(ASK) == [Acquire(30.0, 2), SetTimer(ASK, 3.0)]
    assert leading.member.clock == 110.0
    assert leading.at(112.0).grant() == [
        SetTimer(END, 18.0, eager=True),
        SetTimer(ASK, 8.0),
        Multicast(LeaseHeldMsg(2, 7)),
    ]
    assert leading.election.until == 110.0 + WINDOW


def test_a_renewal_without_an_answer_is_asked_for_again_until_the_end(leading: Driven) -> None:
    for instant in (110.0, 113.0, 116.0, 119.0):
        leading.member.fire(ASK)
        assert leading.member.clock == instant
        assert leading.outcome == Elected(2, 7)
    assert leading.member.fire(END) == [CancelTimer(END), Declare(NoLeader(LAPSED))]
    assert leading.member.clock == 120.0
    assert leading.election.leader is None
    assert ASK in leading.member.timers  # the election still names it


def test_one_leadership_has_one_token_and_its_token_no_other(leading: Driven) -> None:
    leading.member.fire(ASK)
    leading.at(120.0).member.fire(END)
    effects = leading.at(121.0).grant(request=2)
    assert effects == [Release(3), SetTimer(ASK, LEASE.patience)]
    assert leading.election.until is None
    leading.member.fire(ASK)
    leading.grant(request=4, token=8)
    assert leading.outcome == Elected(2, 8)


def test_what_is_given_back_is_not_taken_up_by_an_answer_on_its_way(leading: Driven) -> None:
    """The guard may have granted a later question before what was given back arrived there."""
    leading.member.fire(ASK)  # question 2, renewed late
    leading.at(120.0).member.fire(END)
    leading.member.fire(ASK)  # question 3
    leading.grant(request=2)  # of the leadership that is over: all is given back
    assert leading.grant(request=3, token=8) == []
    assert leading.election.until is None


def test_nor_is_what_will_be_given_back_when_the_work_has_ended(leading: Driven) -> None:
    leading.member.fire(ASK)
    leading.at(120.0).member.fire(END)
    leading.election.engaged = 1
    leading.member.fire(ASK)
    leading.grant(request=2)
    assert leading.grant(request=3, token=8) == []
    assert leading.election.until is None


def test_what_is_held_is_given_back_when_the_work_has_ended(leading: Driven) -> None:
    leading.election.engaged = 1
    assert Release(2) not in leading.say(Elected(3, 2))
    assert leading.member.alive(1) == [], "it still goes on"
    leading.election.engaged = 0
    assert leading.member.alive(1) == [Release(2)]


def test_who_is_nominated_again_meanwhile_asks_when_it_has_given_back(leading: Driven) -> None:
    leading.election.engaged = 1
    leading.say(Elected(3, 2))
    leading.nominate()
    assert leading.member.fire(ASK) == [SetTimer(ASK, LEASE.patience)]
    leading.election.engaged = 0
    effects = leading.member.fire(ASK)
    assert effects[0] == Release(2)
    assert [each.request for each in effects if isinstance(each, Acquire)] == [3]


def test_who_has_just_come_is_told_at_once(leading: Driven) -> None:
    leading.member.view = view_of([*GROUP, Candidate(9)])
    leading.member.view.version += 1
    told = [each for each in leading.member.alive(9) if isinstance(each, Multicast)]
    assert [each.message for each in told] == [LeaseHeldMsg(2, 7)]
    assert leading.member.alive(9) == []


@pytest.mark.parametrize(
    "what",
    ["message", "timer", "own timer", "call", "suspect", "alive", "leave", "verdict", "confirmed"],
)
def test_after_a_pause_it_looks_at_the_clock_before_anything_else(
    leading: Driven, what: str
) -> None:
    leading.member.fire(ASK)
    leading.member.stored = {}
    leading.at(120.0)
    act: dict[str, Callable[[], list[Effect]]] = {
        "message": lambda: leading.say(Elected(2, 9)),
        "timer": lambda: leading.member.fire(END),
        "own timer": lambda: leading.member.fire(ASK),
        "call": leading.member.call,
        "suspect": lambda: leading.member.suspect(3),
        "alive": lambda: leading.member.alive(3),
        "leave": leading.member.leave,
        "verdict": lambda: leading.grant(request=2),
        "confirmed": lambda: leading.hear(3, 8),
    }
    effects = act[what]()
    assert effects[:2] == [CancelTimer(END), Declare(NoLeader(LAPSED))]


def test_inside_the_window_it_goes_on(leading: Driven) -> None:
    leading.at(119.99)
    assert leading.member.call() == []
    assert leading.outcome == Elected(2, 7)


def test_the_inner_election_still_gets_everything(leading: Driven) -> None:
    leading.member.call()
    leading.member.suspect(3)
    leading.member.alive(3)
    leading.member.timers["T"] = leading.member.timers[ASK]
    leading.member.fire("T")
    leading.member.leave()
    assert leading.heard[1:] == ["call", ("suspect", 3), ("alive", 3), "T", "leave"]


# Refusal


def test_who_is_refused_learns_who_leads_and_asks_again_when_that_may_be_over(
    driven: Driven,
) -> None:
    driven.at(100.0).nominate()
    assert driven.at(102.0).refuse(remaining=1.0) == [
        persist(token=6),
        Declare(Elected(3, 6)),
        SetTimer(ASK, 1.0 * LEASE.slack),  # what a fast clock may make of it
    ]
    assert driven.member.fire(ASK) == [Acquire(30.0, 2), SetTimer(ASK, 6.0)]


def test_pauses_between_questions_grow_up_to_the_time_asked_for(driven: Driven) -> None:
    driven.at(100.0).nominate()
    pauses = []
    for _ in range(6):
        driven.refuse(remaining=1_000.0)
        pauses.append(driven.member.timers[ASK].deadline - driven.member.clock)
        driven.member.fire(ASK)
    assert pauses == [3.0, 6.0, 12.0, 24.0, 30.0, 30.0]


def test_a_guard_is_not_flooded(driven: Driven) -> None:
    driven.nominate()
    effects = driven.refuse(remaining=0.0)
    assert effects[-1] == SetTimer(ASK, 0.3)


def test_a_former_incarnation_of_oneself_is_somebody_else(driven: Driven) -> None:
    driven.nominate()
    assert driven.refuse(holder=2, token=5, remaining=2.0) == [SetTimer(ASK, 2.0 * LEASE.slack)]
    assert driven.outcome == NoLeader(AWAITING)


def test_a_leader_that_is_refused_with_a_newer_token_steps_down(leading: Driven) -> None:
    leading.member.fire(ASK)
    effects = leading.refuse(holder=3, token=8)
    assert effects[:3] == [persist(token=8), CancelTimer(END), Declare(Elected(3, 8))]


def test_a_leader_ignores_a_refusal_of_long_ago(driven: Driven) -> None:
    driven.at(100.0).nominate()
    driven.member.fire(ASK)
    driven.grant(token=7, request=2)
    assert driven.refuse(holder=3, token=6, request=1) == []
    assert driven.outcome == Elected(2, 7)


# Whom the election prefers now


def test_when_another_is_preferred_the_lead_is_given_back_after_stepping_down(
    leading: Driven,
) -> None:
    effects = leading.say(Elected(3, 2))
    assert effects == [
        CancelTimer(END),
        CancelTimer(ASK),
        Declare(NoLeader(AWAITING)),
        Release(2),
    ]
    assert leading.grant(request=1) == []
    assert not leading.election.nominated


def test_a_question_under_way_is_withdrawn(driven: Driven) -> None:
    driven.nominate()
    assert driven.say(Elected(3, 2))[-1] == Release(2)
    assert driven.grant(request=1) == []
    assert driven.outcome == NoLeader(AWAITING)


def test_while_it_elects_again_a_leader_leads_on(leading: Driven) -> None:
    assert leading.say(NoLeader(ELECTING)) == []
    assert leading.say(Elected(2, 2)) == []
    assert leading.outcome == Elected(2, 7)


def test_while_it_elects_again_a_follower_holds_nobody(driven: Driven) -> None:
    driven.hear(3, 7)
    assert driven.say(NoLeader(ELECTING)) == [Declare(NoLeader(ELECTING))]
    assert driven.say(Elected(3, 2)) == [Declare(NoLeader(AWAITING))]
    assert driven.hear(3, 7) == [Declare(Elected(3, 7))]  # the next renewal


@pytest.mark.parametrize("outcome", [GaveUp("tired"), NoLeader("no leader was named")])
def test_an_election_that_names_nobody_takes_the_lead_away(
    leading: Driven, outcome: Outcome
) -> None:
    effects = leading.say(outcome)
    assert effects[-2:] == [Declare(outcome), Release(2)]


def test_a_refused_candidate_that_comes_round_to_the_holder_holds_it(driven: Driven) -> None:
    driven.nominate()
    driven.refuse(holder=3, token=6)
    assert driven.say(Elected(3, 2)) == [CancelTimer(ASK), Release(2)]
    assert driven.outcome == Elected(3, 6)


def test_who_leaves_gives_back(leading: Driven, driven: Driven) -> None:
    assert leading.member.leave()[-2:] == [Declare(NoLeader(GIVEN_BACK)), Release(2)]
    assert driven.member.leave() == []


# Tokens


def test_only_the_highest_token_is_believed(driven: Driven) -> None:
    driven.hear(3, 7)
    assert driven.hear(1, 6) == []
    assert driven.hear(1, 7) == []
    assert driven.hear(1, 8) == [persist(token=8), Declare(Elected(1, 8))]


def test_the_highest_token_survives_a_restart(driven: Driven) -> None:
    driven.hear(3, 7)
    driven.member.restart()
    assert driven.hear(1, 6) == [Send(1, LeaseHeldMsg(1, 7))], "it says so, and believes nothing"
    assert driven.outcome is None
    assert driven.hear(3, 7) == [Declare(Elected(3, 7))]


def test_a_member_that_forgets_its_token_would_go_back() -> None:
    """What the stored token is for."""
    driven = Driven()
    driven.hear(3, 7)
    driven.member.stored = {}
    driven.member.restart()
    assert driven.hear(1, 6) == [persist(token=6), Declare(Elected(1, 6))]


def test_a_leader_that_hears_of_a_newer_token_steps_down(leading: Driven) -> None:
    assert leading.hear(3, 8) == [persist(token=8), CancelTimer(END), Declare(Elected(3, 8))]
    assert leading.election.until is None
    assert ASK in leading.member.timers


def test_nobody_else_leads_with_my_token_and_nobody_tells_me_that_i_lead(leading: Driven) -> None:
    assert leading.hear(3, 7) == []
    assert leading.member.deliver(3, LeaseHeldMsg(2, 7)) == []
    assert leading.member.deliver(3, LeaseHeldMsg(2, 6)) == []
    assert leading.outcome == Elected(2, 7)
    follower = Driven()
    assert follower.member.deliver(3, LeaseHeldMsg(2, 9)) == [persist(token=9)]
    assert follower.outcome is None


@pytest.mark.parametrize("token", [5, 6])
def test_a_token_that_is_not_new_makes_no_leader(driven: Driven, token: int) -> None:
    """A guard that has forgotten: nobody would believe in that token."""
    driven.hear(3, 6)
    driven.nominate()
    assert driven.grant(token=token) == [Release(2)]
    assert driven.outcome == NoLeader(AWAITING)


def test_a_forgetful_guard_does_not_make_a_leader_give_back(leading: Driven) -> None:
    leading.member.fire(ASK)
    assert leading.grant(token=3) == []
    assert leading.outcome == Elected(2, 7)


# Beginning in the middle, and what may be put under a guard


def test_a_leader_taken_for_granted_has_to_ask_like_any_other(driven: Driven) -> None:
    assert Acquire(30.0, 1) in driven.member.assume_leader(2)
    other = Driven()
    assert other.member.assume_leader(3) == []
    assert other.election.leader == 3
    assert other.election.inner.leader == 3


def test_what_a_study_asks_reaches_the_inner_election() -> None:
    kind = find("probabilistic")
    inner = kind(kind.Settings.parse({"N": 3}), HighestId())
    election = LeaseLayer(inner, LEASE)
    assert unwrapped(election, LeaseHeldMsg(1, 1)) == (inner, LeaseHeldMsg(1, 1))
    opening = InitMsg(Call(1, 1, 1), 2, 9.0)
    inside, said = unwrapped(election, opening)
    assert isinstance(inside, RoundBased)
    assert inside.span(said, 3) == (8.0, 1.5 * 14 + 3)
    assert inside.tallies() != {}
    assert inner.state() in election.state()
    assert "token=0" in election.state()


def test_several_seats_cannot_be_confirmed() -> None:
    kind = find("le-s")
    with pytest.raises(BadInput, match="confirms one leader, and 2"):
        LeaseLayer(kind(kind.Settings.parse({"leaders": 2}), HighestId()), LEASE)


# Election by consensus is its own guard.
GUARDED = [kind for kind in classes(CATALOGUE) if kind not in classes(CONSENSUS)]


@pytest.mark.parametrize("kind", GUARDED, ids=lambda kind: kind.about.name)
def test_every_election_goes_under_a_guard(kind: type[Election]) -> None:
    member = RecordedMember(
        with_lease(lambda: kind(kind.Settings(), HighestId()), LEASE), ME, view_of(GROUP)
    )
    member.start()
    effects = member.call()
    assert not any(isinstance(one, Declare) and isinstance(one.outcome, Elected) for one in effects)
    assert set(kind.handlers) | {LeaseHeldMsg} == set(member.election.handlers)
