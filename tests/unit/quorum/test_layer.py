"""Members behind a quorum of their own: leases, hand-over, and voters without memory."""

from __future__ import annotations

import pytest

from hustings.core.choice import HighestId
from hustings.core.errors import BadInput, ProtocolBug
from hustings.core.guard import Granted
from hustings.core.outcome import Elected
from hustings.layers.detector.detector import Detector
from hustings.layers.detector.heartbeat import HeartbeatConfig
from hustings.layers.detector.layer import DetectorLayer
from hustings.layers.gossip.layer import GossipConfig, with_gossip
from hustings.layers.lease import ASK, LeaseConfig, LeaseHeldMsg, LeaseLayer, with_lease
from hustings.protocols.bully import Bully, BullyConfig
from hustings.quorum import QuorumConfig, QuorumLeaseLayer, with_quorum
from hustings.quorum.epochs import epoch_number
from hustings.quorum.messages import (
    KINDS,
    AcceptMsg,
    AvailableMsg,
    PrepareMsg,
    RecoveryMsg,
    ReleaseMsg,
)
from hustings.testing.effects import Persist, Send
from tests.unit.quorum.quorum_kit import LEASE, Hall, eager

# Settings


@pytest.mark.parametrize(
    "voters, why",
    [
        ((), "3, 5 or 7 voters, not 0"),
        ((1,), "3, 5 or 7 voters, not 1"),
        ((1, 2, 3, 4), "not 4"),
        (tuple(range(9)), "not 9"),
        ((1, 2, 2), "named once"),
    ],
)
def test_voters_that_cannot_decide_are_refused(voters: tuple[int, ...], why: str) -> None:
    assert any(why in rule for rule in QuorumConfig(voters=voters).broken_rules())


def test_three_five_or_seven_may_vote() -> None:
    for number in (3, 5, 7):
        assert QuorumConfig(voters=tuple(range(number))).broken_rules() == []


def test_an_endless_lease_is_refused() -> None:
    config = QuorumConfig(voters=(1, 2, 3), max_ttl=float("inf"))
    assert any("finite" in rule for rule in config.broken_rules())


def test_nobody_asks_for_more_than_voters_grant() -> None:
    config = QuorumConfig(voters=(1, 2, 3), max_ttl=10.0)
    with pytest.raises(BadInput, match="max_ttl=10"):
        QuorumLeaseLayer(LeaseLayer(eager(), LEASE), config)


def test_it_goes_under_a_stack_and_above_a_detector() -> None:
    config = QuorumConfig(voters=(1, 2, 3))
    watched = DetectorLayer(Bully(BullyConfig(), HighestId()), Detector(HeartbeatConfig()))
    made = with_gossip(with_quorum(lambda: LeaseLayer(watched, LEASE), config), GossipConfig())()
    assert {*KINDS, LeaseHeldMsg, *Bully.messages} < set(made.handlers)


def test_one_quorum_is_enough() -> None:
    config = QuorumConfig(voters=(1, 2, 3))
    inner = with_quorum(with_lease(eager, LEASE), config)()
    with pytest.raises(BadInput, match="has a guard already"):
        LeaseLayer(inner, LEASE)


def test_no_other_guard_is_asked() -> None:
    hall = Hall()
    with pytest.raises(ProtocolBug, match="no other guard"):
        hall.group.answer(1, Granted(1, 1, 1.0))


# Leases


def test_all_voters_begin_when_all_have_been_heard() -> None:
    hall = Hall()
    assert [hall.of(each).acceptor.votes for each in (1, 2, 3)] == [True] * 3
    rosters = [hall.of(each).acceptor.epochs for each in (1, 2, 3)]
    assert rosters[0] == rosters[1] == rosters[2]
    assert all(epoch_number(epoch) == 1 for epoch in rosters[0].values())


@pytest.mark.parametrize("candidate", [1, 4])
def test_who_is_nominated_leads_voter_or_not(candidate: int) -> None:
    hall = Hall(4)
    hall.call(candidate)
    hall.quiet()
    assert hall.leads(candidate) == 1
    for each in (1, 2, 3, 4):
        assert hall.group.member(each).outcome == Elected(candidate, 1)


def test_one_voter_may_be_gone() -> None:
    hall = Hall()
    hall.group.crash(3)
    hall.call(1)
    hall.quiet()
    assert hall.leads(1) == 1


def test_two_of_three_may_not() -> None:
    hall = Hall()
    hall.group.crash(2)
    hall.group.crash(3)
    hall.call(1)
    hall.quiet()
    assert hall.leads(1) == 0


def test_the_second_one_waits_and_is_told_when_it_may_ask() -> None:
    hall = Hall(5)
    hall.call(4)
    hall.quiet()
    hall.call(5)
    hall.quiet()
    assert hall.leads(5) == 0
    hall.group.leave(4)
    assert hall.deliver(ReleaseMsg) == 3
    assert hall.sent(AvailableMsg, 5)
    hall.quiet()
    assert hall.leads(5) > 1


def test_who_gives_way_names_who_should_be_next() -> None:
    hall = Hall(5)
    hall.call(4)
    hall.quiet()
    hall.group.alive(4, 5)  # its election prefers 5 from now on
    messages = [each.message for each in hall.sent(ReleaseMsg)]
    assert messages == [ReleaseMsg(0, 1, 1, 1, 5)] * 3
    hall.quiet()
    hall.call(3)
    hall.quiet()
    assert hall.leads(3) == 0
    hall.call(5)
    hall.quiet()
    assert hall.leads(5) > 1


def test_another_life_of_the_holder_waits_like_everybody() -> None:
    hall = Hall(4)
    hall.call(4)
    hall.quiet()
    hall.group.crash(4)
    hall.group.restart(4)
    hall.call(4)
    hall.quiet()
    assert hall.leads(4) == 0
    hall.wait(30.0)
    hall.group.fire(4, ASK)
    hall.quiet()
    assert hall.leads(4) > 1


def test_a_window_counts_from_before_the_voters_were_asked() -> None:
    lease = LeaseConfig(ttl=30.0, drift=0.2)
    hall = Hall(4, lease=lease)
    hall.call(4)
    hall.wait(3.0)
    hall.deliver(PrepareMsg)
    hall.wait(4.0)
    hall.quiet()
    assert hall.of(4).inner.until == pytest.approx(30.0 * 0.8 / 1.2)
    assert hall.of(1).acceptor.until == 37.0, "voters wait longer than the holder leads"


def test_without_the_margin_a_slow_clock_leads_too_long() -> None:
    class Careless(LeaseConfig, frozen=True, kw_only=True):
        def window(self, ttl: float) -> float:
            return ttl

    hall = Hall(4, lease=Careless(ttl=30.0, drift=0.2))
    hall.call(4)
    hall.quiet()
    until = hall.of(4).inner.until
    assert until is not None
    assert until / 0.8 > hall.of(1).acceptor.until / 1.2, "by a clock that is right"


def test_what_a_member_votes_for_itself_is_stored_like_any_vote() -> None:
    hall = Hall(3)
    effects = hall.group.member(1).call()
    stored = [name for one in effects if isinstance(one, Persist) for name, _ in one.fields]
    assert stored == ["quorum-promised"]
    assert not any(isinstance(one, Send) and one.to == 1 for one in effects)


def test_whoever_is_no_voter_answers_nothing() -> None:
    hall = Hall(4)
    member = hall.group.member(4)
    assert member.deliver(1, PrepareMsg(0, 1, 1)) == []
    assert member.deliver(1, AcceptMsg(0, 1, 1, 1, 30.0, 1)) == []
    assert member.deliver(1, RecoveryMsg(0, 1, 1)) == []
