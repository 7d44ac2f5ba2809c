"""The probabilistic election where the paper is silent or wrong: each decision and each erratum.

D and E with a number are those of the chapter on this protocol; what they say stands in the
docstrings here.
"""

from __future__ import annotations

import pytest

from hustings.core.outcome import Elected, GaveUp, NoLeader
from hustings.protocols.probabilistic.election import NONE_NAMED, TWO_NAMED
from hustings.protocols.probabilistic.hashing import Blake2
from hustings.protocols.probabilistic.messages import Call
from hustings.testing import RecordedMember, Send
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
    member,
    prefer,
    told,
)

CALL = call_of((2, 3))
SECOND = call_of((2, 3), K=4, number=2)  # whose second round has these relay members


def again_below(me: int, call: Call, number: int, K: float) -> bool:
    """Whether a member of five asks again, by the hash; worked out from scratch."""
    text = b".".join(b"%d" % part for part in (*call.order, number))
    return Blake2("").of(me, b"again." + text) * 5 < K


def disappointed(
    me: int = 1,
    call: Call = CALL,
    *,
    thinning: str = "delay",
    window: float | None = None,
    max_rounds: int = 5,
) -> RecordedMember:
    """A member that has begun a first round, and has heard nobody named so far."""
    driven = member(me, K=2, thinning=thinning, W=window, max_rounds=max_rounds)
    driven.deliver(1, init(call))
    return driven


def test_d1_who_missed_the_init_takes_the_final() -> None:
    driven = member(1, K=2)
    assert armed(driven.deliver(2, final(CALL, 5))) == {"T_1": 1.0}
    assert declared(driven.fire("T_1")) == [Elected(5, 1)]


def test_d1_who_missed_the_init_still_waits_for_finals_that_say_otherwise() -> None:
    driven = member(1, K=2)
    driven.deliver(2, final(CALL, 5))
    driven.deliver(3, final(CALL, 4))
    assert declared(driven.fire("T_1")) == [NoLeader(TWO_NAMED)]


def test_d1_the_init_behind_its_final_changes_nothing() -> None:
    driven = member(2, K=2)
    driven.deliver(3, final(CALL, 5))
    assert driven.deliver(1, init(CALL)) == []
    driven.fire("T_1")
    assert driven.deliver(1, init(CALL)) == []
    assert driven.outcome == Elected(5, 1)


def test_d3_an_old_declaration_is_void_when_a_round_names_nobody() -> None:
    driven = elected(member(1, K=2), CALL, 5)
    driven.deliver(2, init(call_of((2, 3), sequence=2)))
    assert declared(driven.fire("T_1")) == [NoLeader(NONE_NAMED)]
    assert driven.election.leader is None


@pytest.mark.parametrize("thinning", ["hash", "delay", "all"])
def test_d4_who_sees_two_leaders_holds_none_of_them(thinning: str) -> None:
    driven = disappointed(thinning=thinning)
    driven.deliver(2, final(CALL, 5))
    driven.deliver(3, final(CALL, 4))
    assert declared(driven.fire("T_1")) == [NoLeader(TWO_NAMED)]
    assert driven.election.leader is None


def test_d5_who_has_declared_takes_part_in_the_next_round() -> None:
    """And holds whom it held until that round has ended."""
    driven = elected(member(2, K=2), SECOND, 5)
    assert declared(driven.deliver(4, init(SECOND, 2))) == []
    assert inside(driven).phase == "relaying"
    assert driven.election.leader == 5
    driven.fire("T_2")
    assert driven.election.leader == 5
    assert declared(driven.fire("T_1")) == [Elected(5, 2)]


def test_d5_the_next_round_voids_a_declaration_if_it_names_two() -> None:
    driven = elected(member(1, K=2), SECOND, 5)
    driven.deliver(4, init(SECOND, 2))
    driven.deliver(2, final(SECOND, 5, 2))
    driven.deliver(3, final(SECOND, 4, 2))
    assert declared(driven.fire("T_1")) == [NoLeader(TWO_NAMED)]


def test_d6_finals_of_a_higher_round_are_adopted_without_its_init() -> None:
    driven = elected(member(1, K=2), SECOND, 4)
    driven.deliver(2, final(SECOND, 5, 2))
    assert driven.election.leader == 4
    assert declared(driven.fire("T_1")) == [Elected(5, 2)]


def test_d6_finals_of_a_lower_round_are_not() -> None:
    driven = member(1, K=2)
    driven.deliver(2, final(SECOND, 5, 2))
    driven.fire("T_1")
    assert driven.deliver(3, final(SECOND, 4, 1)) == []
    assert driven.deliver(3, init(SECOND, 1)) == []
    assert driven.outcome == Elected(5, 2)


def test_d7_who_hears_nothing_of_a_round_keeps_what_it_declared() -> None:
    driven = elected(member(1, K=2), CALL, 5)
    assert driven.timers == {}
    assert driven.outcome == Elected(5, 1)


def test_d8_several_inits_of_one_round_are_one_round() -> None:
    """Whoever sent it, and however often: the text that is hashed is that of the round."""
    driven = member(2, K=2)
    driven.deliver(4, init(SECOND, 2))
    before = dict(driven.timers)
    for sender in (3, 5, 4):
        assert driven.deliver(sender, init(SECOND, 2)) == []
    assert driven.timers == before
    assert inside(driven).tallies() == {"relay_members": 0, "relayed": 1}
    other = member(2, K=2)
    assert told(other.deliver(5, init(SECOND, 2))) == {3: 5}


@pytest.mark.parametrize("larger", [Call(2, 1, 0), Call(1, 3, 0), Call(1, 2, 8)])
def test_d9_the_larger_call_supersedes_the_other(larger: Call) -> None:
    """By sequence, initiator, and what sets two calls of one initiator apart."""
    smaller = Call(1, 2, 7)
    for phase in ("relaying", "waiting"):
        driven = member(1, K=9 if phase == "relaying" else 0.001)
        driven.deliver(2, init(smaller))
        assert inside(driven).phase == phase
        driven.deliver(larger.initiator, init(larger))
        assert (inside(driven).current, inside(driven).phase) == (larger, phase)
        assert driven.deliver(2, init(smaller, 2)) == []
        assert driven.deliver(2, prefer(smaller, 2, 5)) == []
        assert driven.deliver(2, final(smaller, 2)) == []
        if phase == "waiting":
            driven.deliver(3, final(larger, 4))
            driven.fire("T_1")
            assert driven.election.leader == 4


def test_d9_of_ones_own_call_and_anothers_the_larger_one_stays() -> None:
    early = member(3, K=9)
    early.call()
    assert early.deliver(2, init(Call(1, 2, 2**62))) == []
    early.fire("begin")
    assert inside(early).current.initiator == 3
    late = member(3, K=9)
    late.call()
    late.deliver(4, init(Call(1, 4, 0)))
    assert "begin" not in late.timers
    assert inside(late).current.initiator == 4


def test_d11_one_is_in_ones_own_view_and_a_candidate() -> None:
    driven = member(5, K=9)
    assert told(driven.deliver(1, init(CALL))) == dict.fromkeys((1, 2, 3, 4), 5)


def test_d12_what_is_relayed_goes_to_the_member_it_came_from_too() -> None:
    driven = member(2, (1, 2, 3), N=5, K=2)
    driven.deliver(1, init(CALL))
    assert told(driven.deliver(3, prefer(CALL, 3, 5))) == {3: 5}


def test_d13_who_missed_the_init_ignores_who_contacts_it() -> None:
    driven = member(2, K=2)
    assert driven.deliver(3, prefer(CALL, 3, 5)) == []
    assert inside(driven).phase == "idle"


def test_d13_or_joins_for_what_is_left_of_the_relay_phase() -> None:
    driven = member(2, (1, 2, 3, 4), N=5, K=2, join_on_contact=True)
    effects = driven.deliver(3, prefer(CALL, 3, 5, left=2.5))
    assert armed(effects) == {"T_2": 2.5}
    assert [each.to for each in effects if isinstance(each, Send)] == [3, 3]  # 4, then 5
    assert finals(driven.fire("T_2")) == [5]


def test_d13_later_messages_say_how_little_is_left() -> None:
    driven = member(2, (1, 2, 3, 4), N=5, K=2)
    driven.deliver(1, init(CALL))
    driven.clock += 2.0
    (sent,) = [each for each in driven.deliver(3, prefer(CALL, 3, 5)) if isinstance(each, Send)]
    assert getattr(sent.message, "left", None) == 1.0


@pytest.mark.parametrize("left", [1e9, float("inf"), 0.0, -5.0, float("nan")])
def test_d13_nobody_is_made_to_wait_longer_than_a_relay_phase(left: float) -> None:
    driven = member(2, K=2, join_on_contact=True)
    effects = driven.deliver(3, prefer(CALL, 3, 5, left=left))
    assert 0.0 <= armed(effects)["T_2"] <= 3.0


def test_d13_who_does_not_pass_waits_for_the_finals_when_contacted() -> None:
    driven = member(1, K=2, join_on_contact=True)
    assert armed(driven.deliver(3, prefer(CALL, 3, 5, left=3.0))) == {"T_1": 3.0 + 2.0}


def test_d14_the_dead_are_contacted_and_elected_like_anybody() -> None:
    """No detector works inside an election: one tells of a crash, and that is a new call."""
    driven = member(2, K=2)
    driven.suspect(3)
    assert told(driven.deliver(1, init(CALL))) == {3: 5}


def test_d18_a_late_final_that_names_another_is_a_conflict() -> None:
    driven = elected(member(1, K=2, thinning="all"), CALL, 5)
    assert driven.deliver(3, final(CALL, 5)) == []
    effects = driven.deliver(3, final(CALL, 4))
    assert declared(effects) == [NoLeader(TWO_NAMED)]
    assert [each.round for each in inits(effects)] == [2]


def test_d18_a_late_final_is_better_than_none() -> None:
    driven = disappointed()
    driven.fire("T_1")
    assert driven.outcome == NoLeader(NONE_NAMED)
    assert declared(driven.deliver(3, final(CALL, 5))) == [Elected(5, 1)]
    assert driven.timers == {}


def test_d19_in_the_last_round_nobody_asks_again() -> None:
    driven = disappointed(max_rounds=1, thinning="all")
    effects = driven.fire("T_1")
    assert isinstance(declared(effects)[0], GaveUp)
    assert inits(effects) == []
    assert driven.timers == {}


def test_d19_rounds_beyond_the_last_are_not_taken_part_in() -> None:
    driven = member(1, K=2, max_rounds=2)
    for number in (3, 4, 10**9, 0, -1):
        assert driven.deliver(2, init(CALL, number)) == []
        assert driven.deliver(2, final(CALL, 5, number)) == []
        assert driven.deliver(2, prefer(CALL, 2, 5, number)) == []


def test_d20_a_detector_waits_and_asks_if_nobody_has() -> None:
    driven = disappointed(window=8.0)
    effects = driven.fire("T_1")
    assert inits(effects) == []
    assert 0 <= armed(effects)["W"] <= 8.0
    decided = driven.clock
    (opened,) = inits(driven.fire("W"))
    assert (opened.call, opened.round) == (CALL, 2)
    assert opened.wait == pytest.approx(decided + 8.0 + 1.0 - driven.clock)


def test_d20_a_detector_that_hears_of_the_next_round_does_not_ask() -> None:
    driven = disappointed(call=SECOND)
    driven.fire("T_1")
    driven.deliver(4, init(SECOND, 2, wait=5.0))
    assert "W" not in driven.timers
    assert driven.timers["begin"].deadline == driven.clock + 4.0
    driven.fire("begin")
    assert inside(driven).round == 2


def test_d20_whichever_copy_is_heard_the_round_begins_at_one_instant() -> None:
    """All detectors decided at the same time, so all copies count to the end of one window."""
    starts = set()
    for heard_at, wait in ((0.5, 8.5), (3.0, 6.0), (7.0, 2.0)):
        driven = disappointed(call=SECOND, window=8.0)
        driven.fire("T_1")
        decided = driven.clock
        driven.clock = decided + heard_at
        driven.deliver(4, init(SECOND, 2, wait=wait))
        starts.add(driven.timers["begin"].deadline - decided)
    assert starts == {8.0}


def test_d20_finals_of_the_next_round_end_the_wait() -> None:
    driven = disappointed()
    driven.fire("T_1")
    driven.deliver(2, final(CALL, 5, 2))
    assert set(driven.timers) == {"T_1"}
    driven.fire("T_1")
    assert driven.outcome == Elected(5, 2)


def test_d21_the_hash_is_held_against_the_k_of_the_present_round() -> None:
    seen = set()
    for nonce in range(60):
        for number, K in ((1, 1), (2, 2), (3, 4)):
            call = Call(1, 2, nonce)
            driven = member(1, K=1, thinning="hash")
            driven.deliver(2, init(call, number))
            if inside(driven).phase == "relaying":
                driven.fire("T_2")
                driven.deliver(2, final(call, 4, number))
            asks = bool(inits(driven.fire("T_1")))
            assert asks is again_below(1, call, number, K)
            seen.add((number, asks))
    assert len(seen) == 6


def test_e1_equal_choices_are_not_answered() -> None:
    driven = member(2, K=2)
    driven.deliver(1, init(CALL))
    assert driven.deliver(3, prefer(CALL, 3, 5)) == []


def test_e2_relay_members_and_those_that_ask_again_are_drawn_apart() -> None:
    """Under one text, who received nothing could never be one of those who ask."""
    asks = [nonce for nonce in range(200) if again_below(1, Call(1, 2, nonce), 1, 2)]
    relays = [nonce for nonce in range(200) if hash_of(1, Call(1, 2, nonce)) * 5 < 2]
    assert asks != relays
    silent = 0
    for nonce in range(40):
        call = Call(1, 2, nonce)
        if hash_of(1, call) * 5 < 2:
            continue
        driven = disappointed(call=call, thinning="hash")
        silent += not inits(driven.fire("T_1"))
        assert (driven.timers == {}) is not again_below(1, call, 1, 2)
    assert 0 < silent < 40


def test_e2_who_received_none_and_who_received_two_use_the_same_text() -> None:
    for nonce in range(40):
        call = Call(1, 2, nonce)
        if hash_of(1, call) * 5 < 2:
            continue
        none, two = (disappointed(call=call, thinning="hash") for _ in range(2))
        two.deliver(2, final(call, 4))
        two.deliver(3, final(call, 5))
        assert bool(inits(none.fire("T_1"))) is bool(inits(two.fire("T_1")))


def test_e9_a_round_without_relay_members_is_noticed_by_all() -> None:
    call = call_of(())
    for me in FIVE:
        driven = disappointed(me, call)
        assert declared(driven.fire("T_1")) == [NoLeader(NONE_NAMED)]


def test_e10_the_leader_whose_crash_led_to_the_call_is_ruled_out_by_it() -> None:
    driven = elected(member(3, K=2), CALL, 5)
    effects = driven.suspect(5)
    assert isinstance(declared(effects)[0], NoLeader)
    (opened,) = inits(effects)
    assert opened.call.without == (5,)
    call = call_of((2, 3, 4), sequence=2, without=(5,))
    other = elected(member(3, K=2), CALL, 5)
    assert told(other.deliver(1, init(call))) == {2: 4, 4: 4}
    assert other.deliver(2, prefer(call, 2, 5)) == []
    assert finals(other.fire("T_2")) == [4]


def test_e10_so_are_all_that_the_caller_knows_to_be_gone() -> None:
    driven = elected(member(3, K=2), CALL, 5)
    assert driven.suspect(4) == []
    (opened,) = inits(driven.suspect(5))
    assert sorted(opened.call.without) == [4, 5]


def test_e10_one_that_turned_out_to_be_alive_is_not() -> None:
    driven = elected(member(3, K=2), CALL, 5)
    driven.suspect(4)
    driven.alive(4)
    (opened,) = inits(driven.suspect(5))
    assert opened.call.without == (5,)


def test_e10_a_leader_suspected_during_the_election_is_replaced_after_it() -> None:
    driven = member(1, K=2)
    driven.deliver(1, init(CALL))
    assert driven.suspect(5) == []
    driven.deliver(2, final(CALL, 5))
    (opened,) = inits(driven.fire("T_1"))
    assert opened.call.without == (5,)
    assert opened.call.sequence == 2


def test_e10_a_leader_that_leaves_rules_itself_out() -> None:
    driven = elected(member(5, K=2), CALL, 5)
    (opened,) = inits(driven.leave())
    assert opened.call.without == (5,)
    assert inits(elected(member(4, K=2), CALL, 5).leave()) == []


def test_e10_if_everybody_is_ruled_out_nobody_is_named() -> None:
    driven = member(2, (2, 3), K=2, max_rounds=1)
    driven.deliver(3, init(Call(1, 3, 0, (2, 3))))
    assert finals(driven.fire("T_2")) == []
    assert isinstance(declared(driven.fire("T_1"))[0], GaveUp)


def test_e11_a_cap_bounds_the_last_round() -> None:
    """Without one all of a million take part in it, with one a few hundred."""
    for nonce in range(50):
        capped = member(1, N=10**6, K=7, K_max=200)
        capped.deliver(2, init(Call(1, 2, nonce), 5))
        assert inside(capped).phase == "waiting"
    open_ended = member(1, N=10**6, K=7)
    open_ended.deliver(2, init(Call(1, 2, 0), 5))
    assert inside(open_ended).phase == "relaying"


def test_e14_others_wait_for_relay_members_that_began_later() -> None:
    """T_2 + 2 T_3: one began T_3 later, and its final takes T_3."""
    driven = disappointed()
    assert driven.timers["T_1"].deadline == 3.0 + 2.0
