"""Views that lag behind: who asks for a state transfer, who gives one, and how often."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hustings.core.choice import Candidate, HighestId, MemberId
from hustings.layers.gossip.layer import GossipConfig, GossipLayer
from hustings.layers.gossip.membership import Membership
from hustings.layers.gossip.messages import (
    Entry,
    GossipMsg,
    JoinMsg,
    LeadingMsg,
    PullMsg,
    WelcomeMsg,
)
from hustings.layers.leadership.messages import LeaderInfoMsg
from hustings.layers.leadership.standing import ByStanding
from hustings.testing.effects import Effect, Send
from hustings.testing.recorded import RecordedMember, view_of
from tests.unit.layers.detector.listeners import people
from tests.unit.layers.gossip.rumours import Gossip, Note, RumourMsg, Town

TICK, PULL = ("gossip", 0), ("gossip", 2)
CONFIG = GossipConfig(
    pull=True, whole=True, minima=3, entries=8, transfer_entries=4096, view_size=4095
)
MINIMA = (5, 5, 5)


class Chief(Gossip):
    """Follows whom it is told to; at first it leads."""

    led: tuple[int, ...] = (1,)

    @property
    def leaders(self) -> tuple[int, ...]:
        return self.led


def member(config: GossipConfig = CONFIG) -> RecordedMember:
    """Member 1, which has joined nobody yet and uses the world's multicast."""

    def made() -> GossipLayer:
        inner = Chief(list[Note]())
        return GossipLayer(inner, Membership(config, inner.choice.can_rank), None)

    one = RecordedMember(made, Candidate(1), view_of(people(2)))
    one.start()
    return one


def stack(one: RecordedMember) -> GossipLayer:
    assert isinstance(one.election, GossipLayer)
    return one.election


def entry(member: MemberId) -> Entry:
    return Entry(Candidate(member), 1, 1)


def entries(*members: MemberId) -> tuple[Entry, ...]:
    return tuple(entry(each) for each in members)


def gossip(known: int, *members: MemberId, asks: bool = False) -> GossipMsg:
    return GossipMsg(entries(*members), 1, MINIMA, None, asks, known)


def welcome(known: int, *members: MemberId) -> WelcomeMsg:
    return WelcomeMsg(entries(*members), 1, MINIMA, None, known)


def sent(effects: Sequence[Effect], kind: type[object]) -> list[MemberId]:
    return [e.to for e in effects if isinstance(e, Send) and isinstance(e.message, kind)]


def test_who_knows_far_fewer_asks_for_all_and_only_once_in_a_period() -> None:
    one = member()
    one.fire(TICK)
    assert sent(one.deliver(2, gossip(100, 2, 3)), PullMsg) == [2]
    assert sent(one.deliver(3, gossip(100, 3, 4)), PullMsg) == []
    one.fire(TICK)
    assert sent(one.deliver(3, gossip(100, 3, 5)), PullMsg) == [3]


def test_who_lacks_a_few_waits_and_where_nothing_comes_of_it_waits_longer() -> None:
    one = member(GossipConfig(pull=True, whole=True, minima=3, entries=8, T_fail=1e6))
    pulled = []
    for period in range(1, 400):
        one.fire(TICK)
        if sent(one.deliver(2, gossip(9, 2, 3, 4, 5, 6)), PullMsg):
            pulled.append(period)
    assert pulled == [16, 32, 64, 128, 256]


def test_nobody_asks_one_that_knows_no_more_or_does_not_say() -> None:
    one = member()
    for known in (0, -5, 1, 2):
        one.fire(TICK)
        assert sent(one.deliver(2, gossip(known, 2)), PullMsg) == []


def test_a_claim_to_know_the_whole_world_costs_one_datagram_a_period() -> None:
    one = member()
    asked = 0
    for _ in range(10):
        one.fire(TICK)
        for _ in range(50):
            asked += len(sent(one.deliver(2, gossip(1 << 60, 2)), PullMsg))
    assert asked <= 10
    assert stack(one).membership.size <= CONFIG.view_size + 1


def test_who_knows_far_more_says_so_once_in_a_period() -> None:
    one = member()
    one.deliver(2, welcome(39, *range(2, 41)))
    assert sent(one.deliver(2, gossip(3, 2)), GossipMsg) == [2]
    assert sent(one.deliver(2, gossip(3, 2)), GossipMsg) == []
    one.fire(TICK)
    assert sent(one.deliver(2, gossip(3, 2)), GossipMsg) == [2]
    assert sent(one.deliver(3, gossip(39, 3)), GossipMsg) == []


def test_a_transfer_is_given_once_in_a_period_and_holds_everybody() -> None:
    one = member()
    one.deliver(2, welcome(39, *range(2, 41)))
    pull = PullMsg(entry(77))
    effects = [*one.deliver(77, pull), *one.deliver(77, pull)]
    (given,) = [e.message for e in effects if isinstance(e, Send)]
    assert isinstance(given, WelcomeMsg)
    assert sorted(each.who.id for each in given.entries) == [*range(1, 41), 77]
    assert given.known == len(given.entries)
    one.fire(TICK)
    assert sent(one.deliver(77, pull), WelcomeMsg) == [77]


def test_transfers_in_a_period_are_limited() -> None:
    one = member(GossipConfig(pull=True, whole=True, minima=3, transfers_per_period=5))
    pulls = [one.deliver(who, PullMsg(entry(who))) for who in range(100, 120)]
    assert sum(len(sent(effects, WelcomeMsg)) for effects in pulls) == 5


@pytest.mark.parametrize(
    "bad",
    [
        Entry(Candidate(5), 1, 1),
        Entry(Candidate(77), 0, 1),
        Entry(Candidate(77), 1, 1 << 60),
        Entry(Candidate(77), 1, 1, "x" * 1000),
    ],
)
def test_a_request_that_is_not_its_senders_or_absurd_is_not_heard(bad: Entry) -> None:
    one = member()
    assert one.deliver(77, PullMsg(bad)) == []
    assert stack(one).membership.circle.entry(77) is None


def crowd(one: RecordedMember, first: MemberId, count: int) -> list[WelcomeMsg]:
    """So many newcomers ask to be let in; what they are told."""
    given = []
    for who in range(first, first + count):
        ask = JoinMsg(entry(who), to_all=False, asks=True)
        given += [e.message for e in one.deliver(who, ask) if isinstance(e, Send)]
    assert all(isinstance(each, WelcomeMsg) for each in given)
    return [each for each in given if isinstance(each, WelcomeMsg)]


def test_a_crowd_that_joins_a_large_group_is_told_of_a_few_members_each() -> None:
    one = member()
    one.deliver(2, welcome(99, *range(2, 101)))
    given = crowd(one, 1000, 40)
    whole = [len(each.entries) == each.known for each in given]
    assert whole == [True] * 16 + [False] * 24
    assert {len(each.entries) for each in given[16:]} == {CONFIG.entries}
    one.fire(TICK)
    assert len(crowd(one, 2000, 1)[0].entries) == len(stack(one).membership.view)


def test_a_crowd_in_a_small_group_is_told_of_all() -> None:
    given = crowd(member(), 1000, 40)
    assert all(len(each.entries) == each.known for each in given)


def test_who_asks_to_be_let_in_twice_in_a_period_is_answered_once() -> None:
    one = member()
    assert len(crowd(one, 50, 1) + crowd(one, 50, 1)) == 1
    one.fire(TICK)
    assert len(crowd(one, 50, 1)) == 1


def test_who_only_wants_to_be_known_is_not_answered() -> None:
    one = member()
    assert one.deliver(50, JoinMsg(entry(50), to_all=False, asks=False)) == []
    assert 50 in stack(one).membership.view


def staying(one: RecordedMember) -> RecordedMember:
    """The same member as a leader that shall stay."""
    stack(one).inner.choice = ByStanding(HighestId(), incumbent=one.me.id)
    stack(one).membership.leading = lambda: LeaderInfoMsg((one.me.id,), 4)
    one.fire(TICK)
    return one


def test_a_leader_that_stays_says_so_to_newcomers_before_its_election_speaks_to_them() -> None:
    one = staying(member())
    effects = one.deliver(50, JoinMsg(entry(50), to_all=False, asks=False))
    said = next(effect.message for effect in effects if isinstance(effect, Send))
    assert isinstance(said, LeadingMsg)
    assert said.leading == LeaderInfoMsg((one.me.id,), 4)
    assert said.entries[0].who.id == one.me.id


def test_a_newcomer_hears_of_it_once_in_a_period_and_life() -> None:
    one = staying(member())
    card = JoinMsg(entry(50), to_all=False, asks=False)
    again = JoinMsg(Entry(Candidate(50), 2, 1), to_all=False, asks=False)
    assert sent(one.deliver(50, card), LeadingMsg) == [50]
    assert sent(one.deliver(50, card), LeadingMsg) == []
    assert sent(one.deliver(50, again), LeadingMsg) == [50]
    one.fire(TICK)
    assert sent(one.deliver(50, again), LeadingMsg) == [50]


def test_who_comes_back_in_the_same_period_is_welcomed_again() -> None:
    one = member()
    assert len(crowd(one, 50, 1)) == 1
    back = JoinMsg(Entry(Candidate(50), 2, 1), to_all=False, asks=True)
    assert sent(one.deliver(50, back), WelcomeMsg) == [50]
    assert sent(one.deliver(50, back), WelcomeMsg) == []


def test_in_a_crowd_newcomers_introduce_themselves_to_nobody() -> None:
    eager = GossipConfig(pull=True, whole=True, minima=3, introductions=8)
    one = member(eager)
    assert sent(one.deliver(2, welcome(5, *range(2, 7))), JoinMsg) != []
    other = member(eager)
    assert sent(other.deliver(2, welcome(1000, *range(2, 7))), JoinMsg) == []
    assert stack(other).membership.view.estimate == 1000.0


def test_who_was_told_of_a_few_counts_all_and_pulls_the_rest_later() -> None:
    one = member()
    one.deliver(2, welcome(1000, 2, 3, 4))
    assert stack(one).membership.partial
    assert stack(one).membership.size == 1000
    assert 0.0 < one.timers[PULL].deadline <= 60 * CONFIG.delta
    assert sent(one.fire(PULL), PullMsg) == [2]
    one.deliver(2, welcome(999, *range(2, 1001)))
    assert not stack(one).membership.partial
    assert PULL not in one.timers
    assert len(stack(one).membership.view) == 1000


def test_a_transfer_that_does_not_come_is_asked_for_elsewhere_and_not_for_ever() -> None:
    one = member()
    one.deliver(2, welcome(1000, *range(2, 8)))
    asked = []
    while PULL in one.timers:
        asked += sent(one.fire(PULL), PullMsg)
    assert len(asked) == 5
    assert asked[0] == 2
    assert not stack(one).membership.partial


def rumours(effects: Sequence[Effect]) -> list[MemberId]:
    return sent(effects, RumourMsg)


def test_those_learnt_of_after_a_multicast_get_it_too() -> None:
    one = member()
    one.deliver(2, welcome(30, 2, 3, 4))
    assert sent(one.call(), PullMsg) == [2]
    one.deliver(9, JoinMsg(entry(9), to_all=False, asks=False))
    got = rumours(one.deliver(2, welcome(29, *range(2, 31))))
    assert got == list(range(5, 31)), "those in view had it; who came in between had not"
    assert rumours(one.deliver(2, welcome(30, *range(2, 32)))) == []


def test_what_was_said_as_a_leader_is_not_repeated_by_a_follower() -> None:
    one = member()
    one.deliver(2, welcome(30, 2, 3, 4))
    one.call()
    inner = stack(one).inner
    assert isinstance(inner, Chief)
    inner.led = ()
    assert rumours(one.deliver(2, welcome(29, *range(2, 31)))) == []


def test_what_was_said_long_ago_is_not_repeated() -> None:
    one = member()
    one.deliver(2, welcome(30, 2, 3, 4))
    one.call()
    one.clock += 9 * CONFIG.delta
    assert rumours(one.deliver(2, welcome(29, *range(2, 31)))) == []


def test_a_leader_asks_strangers_who_they_are_and_a_follower_does_not() -> None:
    one = member()
    one.deliver(2, welcome(2, 2))
    asked = [e for e in one.deliver(99, RumourMsg(1)) if isinstance(e, Send)]
    assert [(e.to, e.message.asks) for e in asked if isinstance(e.message, GossipMsg)] == [
        (99, True)
    ]
    assert sent(one.deliver(99, RumourMsg(2)), GossipMsg) == []
    assert sent(one.deliver(2, RumourMsg(3)), GossipMsg) == []
    many = [one.deliver(who, RumourMsg(1)) for who in range(200, 300)]
    assert sum(len(sent(effects, GossipMsg)) for effects in many) == 15
    inner = stack(one).inner
    assert isinstance(inner, Chief)
    inner.led = ()
    one.fire(TICK)
    assert sent(one.deliver(300, RumourMsg(1)), GossipMsg) == []


def test_who_follows_a_stranger_asks_it_who_it_is_with_the_next_gossip() -> None:
    one = member()
    one.deliver(2, welcome(2, 2, 3))
    inner = stack(one).inner
    assert isinstance(inner, Chief)
    inner.led = (99,)
    assert sent(one.deliver(99, RumourMsg(1)), GossipMsg) == []
    assert 99 in sent(one.fire(TICK), GossipMsg)
    one.deliver(99, gossip(4, 99))
    asking = [e for e in one.fire(TICK) if isinstance(e, Send) and isinstance(e.message, GossipMsg)]
    assert not any(e.message.asks for e in asking if isinstance(e.message, GossipMsg))
    assert stack(one).membership.view.candidate(99) == Candidate(99)


def test_who_has_answered_or_asks_gossips_to_nobody_else_in_that_period() -> None:
    one = member(GossipConfig(pull=True, whole=True, minima=3, T_fail=100.0))
    one.deliver(2, welcome(5, *range(2, 7)))
    assert len(sent(one.fire(TICK), GossipMsg)) == 1
    assert sent(one.deliver(3, gossip(6, 3, asks=True)), GossipMsg) == [3]
    assert sent(one.fire(TICK), GossipMsg) == []
    assert len(sent(one.fire(TICK), GossipMsg)) == 1
    asked = []
    for at in (40.0, 69.0, 71.0):
        one.clock = at
        asked += [e.message for e in one.fire(TICK) if isinstance(e, Send)]
    assert [isinstance(each, GossipMsg) and each.asks for each in asked] == [False, False, True]


def test_without_the_setting_nothing_of_this_happens() -> None:
    one = member(GossipConfig(minima=3, entries=8))
    one.fire(TICK)
    assert sent(one.deliver(2, gossip(1000, 2)), PullMsg) == []
    assert sent(one.deliver(99, RumourMsg(1)), GossipMsg) == []
    assert {
        e.message.known
        for e in one.fire(TICK)
        if isinstance(e, Send) and isinstance(e.message, GossipMsg)
    } == {0}


@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_in_a_world_a_crowd_soon_knows_all(loss: float) -> None:
    n = 150
    settings = {"entries": 6, "seeds": 2, "minima": 3, "whole": True, "transfer_entries": 4096}

    def complete(*, pull: bool) -> int:
        config = GossipConfig.parse({**settings, "pull": pull})
        town = Town(n, config, loss=loss, seed=3)
        town.run(until=80.0)
        return sum(len(one.view) == n for one in town.memberships())

    assert complete(pull=True) >= 0.95 * n
    assert complete(pull=False) < n / 2
