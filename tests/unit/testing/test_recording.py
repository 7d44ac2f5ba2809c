"""Effects as values, and the member driven by hand."""

import math

import pytest

from hustings.core.choice import Candidate, HighestId
from hustings.core.errors import BadInput, ProtocolBug, StaleContext, UnknownName
from hustings.core.messages import Message
from hustings.core.outcome import Elected, NoLeader
from hustings.core.streams import Stream, derive
from hustings.testing import (
    CancelTimer,
    Declare,
    Multicast,
    Persist,
    RecordedMember,
    RecordingContext,
    Send,
    SetTimer,
    persist,
    recording,
    view_of,
)
from hustings.testing.recorded import ArmedTimer
from tests.unit.testing.toys import HailMsg, HereMsg, Keeper, ToyConfig, make_toy

GROUP = [Candidate(1), Candidate(2), Candidate(3)]


def member(seed: int = 0) -> RecordedMember:
    return RecordedMember(make_toy, Candidate(2), view_of(GROUP), seed=seed)


def started() -> RecordedMember:
    it = member()
    it.start()
    return it


def test_effects_come_in_order_and_stay_readable_after_the_block() -> None:
    with recording(Candidate(2), view_of(GROUP), now=4.0) as ctx:
        ctx.persist(vote=3, term=1)
        ctx.send(1, HereMsg(5))
        ctx.multicast(HailMsg())
        ctx.set_timer("T", 2.0)
        ctx.set_timer(("T", 1), 0.0, eager=True)
        ctx.cancel_timer("T")
        ctx.declare(NoLeader("why"))
        assert ctx.now() == 4.0
    assert ctx.effects == [
        Persist((("term", 1), ("vote", 3))),
        Send(1, HereMsg(5)),
        Multicast(HailMsg()),
        SetTimer("T", 2.0),
        SetTimer(("T", 1), 0.0, eager=True),
        CancelTimer("T"),
        Declare(NoLeader("why")),
    ]
    with pytest.raises(StaleContext):
        ctx.send(1, HailMsg())


def test_a_context_is_closed_also_when_its_block_fails() -> None:
    with pytest.raises(KeyError), recording(Candidate(1)) as ctx:
        raise KeyError
    with pytest.raises(StaleContext):
        ctx.now()


def test_what_is_stored_can_be_read_at_once() -> None:
    with recording(Candidate(1), stored={"term": 1, "vote": 2}) as ctx:
        ctx.persist(term=5)
        assert ctx.stored == {"term": 5, "vote": 2}


def test_what_was_stored_before_is_not_changed_by_a_recording() -> None:
    before = {"term": 1}
    ctx = RecordingContext(Candidate(1), view_of(GROUP), stored=before)
    ctx.persist(term=5)
    assert before == {"term": 1}


@pytest.mark.parametrize("delay", [-1.0, -math.inf, math.nan])
def test_a_delay_that_is_none_is_a_bug(delay: float) -> None:
    with (
        recording(Candidate(4)) as ctx,
        pytest.raises(ProtocolBug, match="member 4 armed timer 'T'"),
    ):
        ctx.set_timer("T", delay)
    assert ctx.effects == []


def test_without_a_view_a_member_is_alone() -> None:
    with recording(Candidate(4)) as ctx:
        assert ctx.view.ids == [4]
        assert ctx.me == Candidate(4)
        assert ctx.incarnation == 1


def test_every_input_returns_its_effects() -> None:
    it = member()
    assert it.start() == []
    assert it.call() == [
        persist(calls=1, at=0.0),
        Multicast(HailMsg()),
        SetTimer(("wait", 2), 3.0),
    ]
    assert it.deliver(3, HereMsg(1)) == []
    assert it.deliver(3, HailMsg()) == [CancelTimer("back"), Send(3, HereMsg(1))]
    assert it.fire(("wait", 2)) == [Declare(Elected(2, 1))]
    assert it.suspect(2) == [Declare(NoLeader("2 is gone"))]
    assert it.alive(3) == [Send(3, HereMsg(2))]
    assert it.assume_leader(3, 9) == []
    assert (it.election.leader, it.election.term) == (3, 9)
    assert it.leave() == [Multicast(HereMsg(0))]


def test_a_member_keeps_what_a_world_would_keep() -> None:
    it = started()
    it.clock = 5.0
    it.call()
    assert it.stored == {"calls": 1, "at": 5.0}
    assert it.timers == {("wait", 2): ArmedTimer(8.0, 5.0, eager=False)}
    it.fire(("wait", 2))
    assert it.clock == 8.0
    assert it.timers == {}
    assert it.outcome == Elected(2, 1)


def test_a_late_timer_does_not_turn_the_clock_back() -> None:
    it = started()
    it.call()
    it.clock = 10.0
    it.fire(("wait", 2))
    assert it.clock == 10.0


def test_the_same_key_re_arms_and_goes_behind_its_equals() -> None:
    it = started()
    it.timers = {("wait", 2): ArmedTimer(1.0, 0.0, False), "back": ArmedTimer(3.0, 0.0, False)}
    it.call()
    assert list(it.timers) == ["back", ("wait", 2)]
    assert it.timers[("wait", 2)].deadline == 3.0


def test_an_infinite_delay_cancels() -> None:
    it = RecordedMember(
        lambda: type(make_toy())(ToyConfig(wait=math.inf), HighestId()),
        Candidate(2),
        view_of(GROUP),
    )
    it.start()
    it.timers = {("wait", 2): ArmedTimer(1.0, 0.0, False)}
    assert SetTimer(("wait", 2), math.inf) in it.call()
    assert it.timers == {}


def test_a_restart_is_a_new_incarnation_with_the_old_storage() -> None:
    it = started()
    it.call()
    it.fire(("wait", 2))
    first = it.election
    assert it.restart() == [CancelTimer(("wait", 2)), SetTimer("back", 1.0, eager=True)]
    assert it.incarnation == 2
    assert it.election is not first
    assert it.election.leader is None
    assert it.outcome is None
    assert it.stored["calls"] == 1
    assert it.timers == {"back": ArmedTimer(4.0, 3.0, eager=True)}
    assert it.call()[0] == persist(calls=2, at=3.0)


def test_each_incarnation_has_its_own_stream_derived_from_the_seed() -> None:
    it = member(seed=7)
    for incarnation in (1, 2):
        it.start()
        assert it.rng.bits() == Stream(derive(7, "member", 2, incarnation)).bits()


def test_a_timer_that_is_not_armed_cannot_fire() -> None:
    it = started()
    it.call()
    with pytest.raises(UnknownName, match="unknown armed timer 'T1'"):
        it.fire("T1")
    it.leave()
    with pytest.raises(UnknownName, match="known: none"):
        it.fire(("wait", 2))


def test_a_message_of_a_foreign_kind_is_a_bug() -> None:
    class OddMsg(Message, frozen=True, tag="ODD"):
        pass

    with pytest.raises(ProtocolBug, match="Toy received ODD, which it does not handle"):
        started().deliver(1, OddMsg())


def test_a_member_that_was_not_started_takes_no_input() -> None:
    it = member()
    for act in (it.call, it.leave, it.restart, lambda: it.suspect(1), lambda: it.fire("back")):
        with pytest.raises(BadInput, match="member 2 has not been started"):
            act()


def test_a_kept_context_is_noticed() -> None:
    it = RecordedMember(
        lambda: Keeper(ToyConfig(), HighestId()), Candidate(1), view_of([Candidate(1)])
    )
    it.start()
    with pytest.raises(StaleContext):
        it.call()
