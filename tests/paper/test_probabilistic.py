"""Gupta, van Renesse, Birman 2000, section 3: what each sentence asks of one member.

Members are driven by hand. A call is picked so that the wanted members pass the filter.
"""

from __future__ import annotations

from math import sqrt

import pytest

from hustings.core.choice import Candidate
from hustings.core.outcome import Elected, GaveUp, NoLeader
from hustings.protocols.probabilistic.election import NONE_NAMED, TWO_NAMED
from hustings.protocols.probabilistic.messages import Call
from hustings.testing import RecordedMember, view_of
from tests.paper.relaying import (
    FIVE,
    armed,
    call_of,
    declared,
    elected,
    final,
    finals,
    hash_of,
    init,
    inits,
    inside,
    maker,
    member,
    prefer,
    told,
)

# 3.1, filter phase


@pytest.mark.parametrize("number", range(40))
def test_a_member_takes_part_in_the_relay_phase_iff_its_filter_value_is_below_k(
    number: int,
) -> None:
    call = Call(1, 1, number)
    relays = []
    for me in FIVE:
        driven = member(me, K=2)
        driven.deliver(1, init(call))
        if inside(driven).phase == "relaying":
            relays.append(me)
        else:
            assert inside(driven).phase == "waiting"
    assert relays == [me for me in FIVE if hash_of(me, call) * 5 < 2]


@pytest.mark.parametrize("number", range(20))
def test_each_can_tell_who_else_of_its_view_passes(number: int) -> None:
    """The set is the same at all members that know the same."""
    call = Call(3, 2, number)
    passed = {me for me in FIVE if hash_of(me, call) * 5 < 3}
    for me in sorted(passed):
        effects = member(me, K=3).deliver(2, init(call))
        assert set(told(effects)) == passed - {me}


def test_about_k_members_pass_whatever_the_size_of_the_group() -> None:
    """Two-sided at 4 standard errors: family-wise level below 2e-4."""
    calls = 60
    for size in (100, 1000):
        passed = sum(
            hash_of(me, Call(1, 1, nonce)) * size < 7
            for nonce in range(calls)
            for me in range(1, size + 1)
        )
        assert abs(passed / calls - 7) < 4 * sqrt(7 / calls)


def test_n_i_may_be_the_size_of_the_own_view() -> None:
    """A view of two out of five: twice and a half as many pass."""
    for nonce in range(40):
        driven = member(1, (1, 2), estimate="view", N=5, K=1)
        driven.deliver(2, init(Call(1, 2, nonce)))
        assert (inside(driven).phase == "relaying") is (hash_of(1, Call(1, 2, nonce)) * 2 < 1)


def test_n_i_may_be_gossiped() -> None:
    for nonce in range(40):
        driven = RecordedMember(
            maker(K=2), Candidate(1), view_of([Candidate(1), Candidate(2)]), seed=1
        )
        driven.view.estimate = 8.0
        driven.start()
        driven.deliver(2, init(Call(1, 2, nonce)))
        assert (inside(driven).phase == "relaying") is (hash_of(1, Call(1, 2, nonce)) * 8 < 2)


# 3.1, relay phase


def test_it_first_sends_the_best_of_its_view_to_those_that_pass() -> None:
    call = call_of((2, 3, 4))
    assert told(member(3, (1, 2, 3, 4), N=5, K=2).deliver(1, init(call))) == {2: 4, 4: 4}


def test_whoever_is_not_in_the_view_is_not_contacted() -> None:
    call = call_of((2, 3, 4))
    assert told(member(3, (1, 2, 3), N=5, K=2).deliver(1, init(call))) == {2: 3}


def test_a_better_choice_is_relayed_to_all_and_replaces_the_own_one() -> None:
    call = call_of((2, 3, 4))
    driven = member(3, (1, 2, 3, 4), N=5, K=2)
    driven.deliver(1, init(call))
    assert told(driven.deliver(2, prefer(call, 2, 5))) == {2: 5, 4: 5}
    assert finals(driven.fire("T_2")) == [5]


def test_a_worse_choice_is_answered_with_the_own_one() -> None:
    call = call_of((2, 3, 4))
    driven = member(3, (1, 2, 3, 4), N=5, K=2)
    driven.deliver(1, init(call))
    assert told(driven.deliver(2, prefer(call, 2, 1))) == {2: 4}
    assert finals(driven.fire("T_2")) == [4]


def test_whoever_contacts_a_member_joins_its_set_and_its_view() -> None:
    call = call_of((2, 3, 4))
    driven = member(2, (1, 2, 3), N=5, K=2)
    assert told(driven.deliver(1, init(call))) == {3: 3}
    driven.deliver(4, prefer(call, 4, 3))
    assert told(driven.deliver(3, prefer(call, 3, 5))) == {3: 5, 4: 5}
    later = call_of((2, 4), sequence=2)
    assert told(driven.deliver(1, init(later))) == {4: 4}


def test_the_choice_function_is_any_that_all_share() -> None:
    call = call_of((2, 3, 4))
    driven = member(3, K=2, choice="lowest-id")
    assert told(driven.deliver(1, init(call))) == {2: 1, 4: 1}
    assert told(driven.deliver(2, prefer(call, 2, 2))) == {2: 1}


def test_at_the_end_of_the_relay_phase_each_relay_member_multicasts_its_choice() -> None:
    call = call_of((2, 3, 4))
    for me in (2, 3, 4):
        driven = member(me, K=2)
        driven.deliver(1, init(call))
        assert finals(driven.fire("T_2")) == [5]
    waiting = member(5, K=2)
    waiting.deliver(1, init(call))
    assert list(waiting.timers) == ["T_1"]
    assert finals(waiting.fire("T_1")) == []


def test_what_comes_after_the_relay_phase_changes_no_choice() -> None:
    call = call_of((2, 3, 4))
    driven = member(3, (1, 2, 3, 4), N=5, K=2)
    driven.deliver(1, init(call))
    driven.fire("T_2")
    assert driven.deliver(2, prefer(call, 2, 5)) == []


def test_preferences_of_another_round_are_not_those_of_this_one() -> None:
    call = call_of((2, 3, 4))
    driven = member(3, (1, 2, 3, 4), N=5, K=2)
    driven.deliver(1, init(call))
    assert driven.deliver(2, prefer(call, 2, 5, number=2)) == []
    assert driven.deliver(2, prefer(Call(1, 1, call.nonce + 1), 2, 5)) == []
    assert finals(driven.fire("T_2")) == [4]


# 3.1, failure detection phase


def test_one_leader_is_declared() -> None:
    call = call_of((2, 3))
    driven = member(1, K=2)
    driven.deliver(1, init(call))
    assert declared(driven.deliver(2, final(call, 5))) == []
    assert declared(driven.deliver(3, final(call, 5))) == []
    assert declared(driven.fire("T_1")) == [Elected(5, 1)]


def test_two_leaders_are_an_inconsistency_that_is_answered_with_the_next_round() -> None:
    call = call_of((2, 3))
    driven = member(1, K=2, thinning="all")
    driven.deliver(1, init(call))
    driven.deliver(2, final(call, 5))
    driven.deliver(3, final(call, 4))
    effects = driven.fire("T_1")
    assert declared(effects) == [NoLeader(TWO_NAMED)]
    assert [(each.call, each.round) for each in inits(effects)] == [(call, 2)]


def test_no_leader_at_all_is_an_inconsistency_too() -> None:
    call = call_of((2, 3))
    driven = member(1, K=2, thinning="all")
    driven.deliver(1, init(call))
    effects = driven.fire("T_1")
    assert declared(effects) == [NoLeader(NONE_NAMED)]
    assert [each.round for each in inits(effects)] == [2]


def test_a_relay_member_hears_its_own_final() -> None:
    call = call_of((3,))
    driven = member(3, K=2)
    driven.deliver(1, init(call))
    driven.fire("T_2")
    assert declared(driven.fire("T_1")) == [Elected(5, 1)]


def test_a_relay_member_that_hears_another_name_detects_it() -> None:
    call = call_of((2, 3))
    driven = member(3, K=2)
    driven.deliver(1, init(call))
    driven.deliver(2, final(call, 4))  # its relay phase ended earlier
    driven.fire("T_2")
    assert declared(driven.fire("T_1")) == [NoLeader(TWO_NAMED)]


def test_an_elected_leader_is_known_from_then_on() -> None:
    driven = elected(member(1, (1, 2), N=5, K=2), call_of((2, 3)), 5)
    later = call_of((1, 2), sequence=2)
    assert told(driven.deliver(2, init(later))) == {2: 5}


# 3.2


def test_k_is_known_from_the_number_of_the_round() -> None:
    """With K = 0.1, 0.2, 0.4, 0.8 and N: who takes part in which round follows from the hash."""
    seen = set()
    for nonce in range(60):
        call = Call(1, 2, nonce)
        for number, K in enumerate((0.1, 0.2, 0.4, 0.8, 5), 1):
            driven = member(1, K=0.1)
            driven.deliver(2, init(call, number))
            relays = inside(driven).phase == "relaying"
            assert relays is (hash_of(1, call, number) * 5 < K)
            seen.add((number, relays))
    assert {(4, False), (4, True), (5, True)} <= seen
    assert (5, False) not in seen


def test_after_the_last_round_the_election_is_aborted() -> None:
    driven = member(1, K=0.001, max_rounds=3, strategy="doubling", thinning="all")
    driven.call()
    outcomes = []
    for _ in range(3):
        driven.fire("begin")
        outcomes += declared(driven.fire("T_1"))
    assert outcomes[:2] == [NoLeader(NONE_NAMED)] * 2
    assert isinstance(outcomes[2], GaveUp)
    assert driven.timers == {}


def test_an_election_that_was_aborted_may_be_called_again() -> None:
    driven = member(1, (1,), K=0.001, max_rounds=1)
    for sequence in (1, 2):
        assert [each.call.sequence for each in inits(driven.call())] == [sequence]
        driven.fire("begin")
        driven.fire("T_1")
        assert isinstance(driven.outcome, GaveUp)


# 3.3


def test_time_outs_follow_from_k_and_the_longest_delays() -> None:
    call = call_of((2, 3))
    relay, other = (member(me, K=2, delta=0.5, T_3=4.0) for me in (2, 1))
    assert armed(relay.deliver(1, init(call, wait=4.0))) == {"T_2": 1.5 * 2 * 0.5}
    assert armed(relay.fire("T_2")) == {"T_1": 2 * 4.0}
    assert armed(other.deliver(1, init(call, wait=4.0))) == {"T_1": 1.5 + 2 * 4.0}


def test_time_out_2_grows_with_k() -> None:
    driven = member(1, (1,), K=2, N=1)
    lengths = []
    for number in (1, 2, 3):
        lengths.append(armed(driven.deliver(2, init(Call(1, 2, 3), number)))["T_2"])
    assert lengths == [3.0, 6.0, 12.0]


def test_each_election_has_a_new_sequence_number() -> None:
    driven = elected(member(3, K=2), Call(6, 2, 1), 5)
    (opened,) = inits(driven.call())
    assert (opened.call.sequence, opened.call.initiator, opened.round) == (7, 3, 1)


def test_the_number_survives_a_restart() -> None:
    driven = elected(member(3, K=2), Call(6, 2, 1), 5)
    opened = inits(driven.restart()) + inits(driven.call())  # coming back may be a call in itself
    assert [each.call.sequence for each in opened] == [7]


def test_what_was_opened_by_oneself_is_heard_by_oneself() -> None:
    driven = member(5, K=9)
    driven.call()
    assert driven.timers["begin"].deadline == 1.0
    assert set(told(driven.fire("begin"))) == {1, 2, 3, 4}


def test_nobody_calls_twice_at_once() -> None:
    driven = member(5, K=9)
    assert len(inits(driven.call())) == 1
    assert driven.call() == []
    driven.fire("begin")
    assert driven.call() == []
