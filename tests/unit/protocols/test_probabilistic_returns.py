"""The probabilistic election after something went wrong: false alarms, returns, strange finals."""

from __future__ import annotations

import msgspec
import pytest

from hustings.core.choice import Candidate, HighestId, candidate
from hustings.core.outcome import Elected
from hustings.protocols.probabilistic.election import Probabilistic
from hustings.protocols.probabilistic.messages import (
    Call,
    FinalMsg,
    PreferMsg,
)
from hustings.protocols.probabilistic.settings import ProbabilisticConfig
from hustings.sim.faults import Crash, Restart, schedule
from hustings.sim.world import Ended, World
from hustings.testing import RecordedMember, view_of
from tests.paper.relaying import (
    armed,
    call_of,
    declared,
    elected,
    final,
    finals,
    init,
    inits,
    inside,
    maker,
    member,
    prefer,
)

CALL = call_of((2, 3))


def world_of(n: int) -> World:
    config = ProbabilisticConfig.parse({"N": n})
    world = World(
        lambda: Probabilistic(config, HighestId()),
        [Candidate(each) for each in range(1, n + 1)],
        debug=True,
    )
    world.start()
    return world


def test_members_that_suspect_different_ones_come_to_rest() -> None:
    """Each leader is suspected by somebody, until one is elected whom nobody suspects."""
    world = world_of(4)
    world.tell(world.members[1], "suspect", 4)
    world.tell(world.members[2], "suspect", 3)
    world.tell(world.members[1], "call")
    assert world.run(max_events=20_000) is Ended.QUIESCENT
    assert {each.election.leader for each in world.live()} == {2}


def test_the_one_ruled_out_does_not_rule_itself_out() -> None:
    call = call_of((2, 3), sequence=2, without=(5,))
    driven = elected(member(5, K=2), call, 4)
    (opened,) = inits(driven.suspect(4))
    assert opened.call.without == (4,)


@pytest.mark.parametrize("decoded", [False, True])
def test_a_late_final_does_not_bring_back_a_leader_that_was_suspected(decoded: bool) -> None:
    """Whether it is the very object, as in a simulation, or one made of bytes, as on a network."""
    driven = elected(member(1, K=2), CALL, 4)
    driven.suspect(4)
    call = msgspec.structs.replace(CALL) if decoded else CALL
    assert driven.deliver(5, final(call, 4)) == []
    assert driven.election.leader is None


def test_a_call_by_the_owner_starts_afresh() -> None:
    call = call_of((2, 3), sequence=2, without=(5,))
    driven = elected(member(1, K=2), call, 4)
    (opened,) = inits(driven.call())
    assert opened.call.without == ()


def test_members_that_all_suspect_each_other_come_to_rest() -> None:
    world = world_of(4)
    for one in range(1, 5):
        world.tell(world.members[one], "suspect", 1 + one % 4)
    world.tell(world.members[1], "call")
    assert world.run(max_events=20_000) is Ended.QUIESCENT


def test_a_leader_that_an_earlier_call_ruled_out_stays_out() -> None:
    call = call_of((2, 3), sequence=2, without=(5,))
    driven = elected(member(1, K=2), call, 4)
    (opened,) = inits(driven.suspect(4))
    assert sorted(opened.call.without) == [4, 5]


def test_one_ruled_out_stays_out_until_it_turns_out_to_be_alive() -> None:
    call = call_of((2, 3), sequence=2, without=(5,))
    driven = elected(member(1, K=2), call, 4)
    driven.alive(5)
    (opened,) = inits(driven.suspect(4))
    assert opened.call.without == (4,)


def test_one_ruled_out_is_back_when_it_calls() -> None:
    call = call_of((2, 3), sequence=2, without=(5,))
    driven = elected(member(1, K=2), call, 4)
    driven.deliver(5, init(call_of((2, 3), sequence=1)))
    (opened,) = inits(driven.suspect(4))
    assert opened.call.without == (4,)


def test_its_farewell_does_not_bring_it_back() -> None:
    call = call_of((2, 3), sequence=2, without=(5,))
    driven = elected(member(1, K=2), call, 4)
    driven.deliver(5, init(call_of((2, 3), sequence=1, without=(5,))))
    (opened,) = inits(driven.suspect(4))
    assert sorted(opened.call.without) == [4, 5]


def test_a_call_does_not_rule_everybody_out() -> None:
    call = call_of((1, 2), sequence=2, without=(1,))
    driven = elected(member(2, (1, 2), K=2), call, 2)
    (opened,) = inits(driven.leave())
    assert opened.call.without == (2,)


@pytest.mark.parametrize("best", [Candidate(9), Candidate(9, (("cpu", float("nan")),))])
def test_a_final_with_a_name_that_cannot_be_ranked_is_not_heard(best: Candidate) -> None:
    group = [candidate(each, cpu=each) for each in (1, 2, 3)]
    driven = RecordedMember(maker("highest:cpu", N=3, K=0.001), group[0], view_of(group), seed=1)
    driven.start()
    driven.deliver(2, init(CALL))
    driven.deliver(2, FinalMsg(CALL, 1, best))
    driven.deliver(2, FinalMsg(CALL, 1, group[2]))
    assert declared(driven.fire("T_1")) == [Elected(3, 1)]


def test_a_final_that_names_one_ruled_out_is_not_heard() -> None:
    call = call_of((2, 3), without=(5,))
    driven = member(1, K=2)
    assert driven.deliver(2, final(call, 5)) == []
    driven.deliver(1, init(call))
    assert driven.deliver(2, final(call, 5)) == []
    driven.deliver(3, final(call, 4))
    assert declared(driven.fire("T_1")) == [Elected(4, 1)]


def test_a_final_of_no_round_elects_nobody() -> None:
    driven = member(1)
    assert driven.deliver(2, FinalMsg(Call(0, 0, 0), 0, Candidate(9))) == []
    driven = elected(member(1), Call(7, 2, 1), 5)
    driven.restart()
    driven.deliver(2, FinalMsg(Call(7, 0, 0), 0, Candidate(9)))
    assert driven.election.leader is None


def test_terms_grow_across_a_restart_after_an_assumed_leader() -> None:
    driven = member(1, (1, 2, 3))
    driven.assume_leader(3, 4)
    opened = inits(driven.restart()) + inits(driven.call())
    assert opened[0].call.sequence == 2


def test_a_leader_that_returns_unnoticed_leads_again_or_is_replaced() -> None:
    world = world_of(5)
    world.tell(world.members[1], "call")
    world.run()
    schedule(
        world,
        [Crash(member=5, at=world.now + 1.0), Restart(member=5, at=world.now + 2.0)],
    )
    assert world.run() is Ended.QUIESCENT
    leaders = {each.election.leader for each in world.live()}
    assert len(leaders) == 1
    assert leaders != {None}


def test_an_empty_view_or_a_tiny_estimate_does_no_harm() -> None:
    for estimate in (None, 0.0, 0.25, -3.0):
        driven = RecordedMember(maker(), Candidate(1), view_of([]), seed=1)
        driven.view.estimate = estimate
        driven.start()
        driven.deliver(2, init(CALL))
        assert len(driven.timers) == 1


def test_an_expected_larger_call_is_not_replaced_by_ones_own() -> None:
    """Of the same sequence: it comes to an end, and then one sees who leads."""
    driven = member(1, K=2)
    driven.deliver(1, init(CALL))
    driven.suspect(5)
    larger = Call(2, 4, 0)
    driven.deliver(4, init(larger, 2, wait=5.0))
    driven.deliver(2, final(CALL, 5))
    driven.fire("T_1")
    assert inside(driven).expected == (larger, 2)


def test_who_is_contacted_early_waits_as_long_as_the_others() -> None:
    """T_2 + 2 T_3 from when the first began, at least."""
    driven = member(2, K=2)
    (opened,) = inits(driven.call())
    relays = driven.deliver(3, prefer(opened.call, 3, 5, left=3.0))
    if "T_1" in armed(relays):
        assert armed(relays)["T_1"] >= 5.0
    else:
        driven.fire("T_2")
        assert driven.timers["T_1"].deadline >= 5.0


def test_the_view_knows_better_than_hearsay() -> None:
    group = [candidate(each, cpu=each) for each in (1, 2)]
    driven = RecordedMember(maker("highest:cpu", N=3), group[0], view_of(group), seed=1)
    driven.start()
    driven.deliver(2, init(Call(1, 2, 0)))
    driven.deliver(3, PreferMsg(Call(1, 2, 0), 1, candidate(3, cpu=9), candidate(3, cpu=9), 3.0))
    driven.view = view_of([*group, candidate(3, cpu=0)])
    driven.deliver(2, init(Call(2, 2, 0)))
    assert finals(driven.fire("T_2")) == [2]


def test_a_stranger_is_known_by_what_it_says_last() -> None:
    group = [candidate(each, cpu=each) for each in (1, 2)]
    driven = RecordedMember(maker("highest:cpu", N=3), group[0], view_of(group), seed=1)
    driven.start()
    for sequence, cpu in ((1, 9), (2, 0)):
        call = Call(sequence, 2, 0)
        driven.deliver(2, init(call))
        me = candidate(3, cpu=cpu)
        driven.deliver(3, PreferMsg(call, 1, me, group[1], 3.0))
    driven.deliver(2, init(Call(3, 2, 0)))
    assert finals(driven.fire("T_2")) == [2]
