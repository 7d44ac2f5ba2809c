"""Gossip membership in worlds: who is known, who is missed, who comes, who goes."""

from functools import lru_cache

import pytest

from hustings.core.choice import Candidate, MemberId, candidate
from hustings.core.errors import BadInput
from hustings.layers.gossip.layer import GossipConfig, warm_up
from hustings.layers.gossip.messages import (
    GossipMsg,
    JoinMsg,
    LeaveMsg,
    WelcomeMsg,
    longest_gossip,
)
from hustings.sim.delay import Uniform
from hustings.sim.faults import (
    Crash,
    Heal,
    Join,
    Leave,
    OneWay,
    Partition,
    Pause,
    Restart,
    Resume,
    Update,
    schedule,
)
from hustings.sim.member import partial_views
from hustings.sim.network import Network
from tests.unit.layers.gossip.rumours import Scales, Town


def ids(n: int, *but: MemberId) -> list[MemberId]:
    return [member for member in range(1, n + 1) if member not in but]


def settled(
    n: int, config: GossipConfig | None = None, *, seed: int = 0, loss: float = 0.0
) -> Town:
    """A town after its warm-up."""
    town = Town(n, config, seed=seed, loss=loss)
    town.run(until=warm_up(town.config, n))
    return town


def noticed_by(config: GossipConfig, n: int) -> float:
    """When all should have noticed a crash: the last news take their time, and then T_fail.

    Members go by their estimate of the size, which is taken to err by four times its error.
    """
    most = n * (1 + 4 * config.error)
    return config.reach_time(n, 1e-9) + config.fail_time(most) + config.period


@lru_cache(maxsize=4)
def calm_town(n: int) -> Town:
    """A town to look at, not to be changed."""
    return settled(n)


# A quiet group

SIZES = pytest.mark.parametrize("n", [2, 10, 50, 200])


@SIZES
def test_after_the_warm_up_everybody_knows_everybody(n: int) -> None:
    town = calm_town(n)
    assert town.all_know(ids(n))
    assert all(one.joined for one in town.memberships())


@SIZES
def test_all_have_the_same_estimate_and_it_errs_as_stated(n: int) -> None:
    town = calm_town(n)
    estimates = town.estimates()
    assert len(set(estimates)) == 1
    assert abs(estimates[0] / n - 1) < 4 * town.config.error


@SIZES
def test_nobody_is_suspected_without_cause(n: int) -> None:
    assert calm_town(n).journal == []


def test_a_member_begins_with_a_few_seeds() -> None:
    town = Town(30)
    assert all(one.view.ids == [who] for who, one in zip(ids(30), town.memberships(), strict=True))
    assert town.sent[JoinMsg] == 3 * 30
    town.run(until=2.0)
    assert all(len(one.view) < 30 for one in town.memberships())


@pytest.mark.parametrize("probability", [0.5, 0.02])
def test_contacts_may_be_a_part_of_a_large_group(probability: float) -> None:
    contacts = partial_views(ids(120), probability, seed=8)
    town = Town(120, views=contacts)
    asked = {who: town.members[who].view for who in ids(120)}
    assert town.sent[JoinMsg] <= 3 * 120
    assert town.sent[JoinMsg] >= sum(min(3, len(view) - 1) for view in asked.values())
    town.run(until=warm_up(town.config, 120))
    assert town.all_know(ids(120))


def test_one_member_alone_knows_itself_and_asks_only_so_often() -> None:
    town = Town(1)
    town.run(until=90.0)
    assert town.all_know([1])
    assert town.sent[JoinMsg] == town.config.join_attempts
    town.run(until=1000.0)  # later on, once in an epoch or a little less, it says that it is there
    assert town.config.join_attempts + 4 <= town.sent[JoinMsg] <= town.config.join_attempts + 9
    assert town.estimates()[0] == pytest.approx(1.0, abs=4 * town.config.error)


def test_each_period_costs_one_message_a_member() -> None:
    town = settled(20)
    before = town.sent[GossipMsg]
    start = town.now
    town.run(until=start + 30.0)
    assert town.sent[GossipMsg] - before == 20 * 30


def test_losses_within_what_was_assumed_make_no_suspects() -> None:
    town = settled(30, GossipConfig(loss=0.3), loss=0.3)
    town.run(until=town.now + 3 * town.config.fail_time(30))
    assert town.all_know(ids(30))
    assert town.journal == []


def test_patience_that_is_too_short_errs_and_takes_it_back() -> None:
    town = Town(20, GossipConfig(T_fail=4.0), seed=1)
    town.run(until=100.0)
    assert town.notes("suspect")
    assert len(town.notes("alive")) >= len(town.notes("suspect")) - 60
    balance: dict[tuple[MemberId, MemberId], int] = {}
    for note in town.journal:
        pair = (note.who, note.about)
        balance[pair] = balance.get(pair, 0) + (1 if note.what == "suspect" else -1)
        assert balance[pair] in (0, 1)


@pytest.mark.parametrize("n", [10, 500])
def test_messages_are_bounded_at_any_size_of_the_group(n: int) -> None:
    town, scales = Town(n, start=False), Scales()
    town.listen_in(scales)
    town.start()
    town.run(until=12.0)
    assert max(scales.heaviest.values()) <= longest_gossip(town.config)
    if n == 500:  # and the bound is not far off: a full message of ids and counters in real use
        assert max(scales.heaviest.values()) > longest_gossip(town.config) / 4
        assert max(len(one.view) for one in town.memberships()) > town.config.entries


def test_attributes_are_within_the_bound_too() -> None:
    people = [candidate(member, cpu=member, load=0.5) for member in ids(40)]
    town, scales = Town(40, candidates=people, start=False), Scales()
    town.listen_in(scales)
    town.start()
    town.run(until=10.0)
    assert max(scales.heaviest.values()) <= longest_gossip(town.config, attributes=2 * 20)


# Crashes


@pytest.mark.parametrize("n", [2, 10, 50])
def test_a_crash_is_noticed_by_all_in_time(n: int) -> None:
    town = settled(n)
    at = town.now
    schedule(town, [Crash(at=at, member=1)])
    town.run(until=at + noticed_by(town.config, n))
    notes = town.notes("suspect")
    assert sorted(note.who for note in notes) == ids(n, 1)
    assert {note.about for note in notes} == {1}
    assert min(note.at for note in notes) > at
    assert town.all_know(ids(n, 1))


def test_the_dead_are_forgotten_and_stay_so() -> None:
    town = settled(10)
    schedule(town, [Crash(at=town.now, member=1)])
    town.run(until=town.now + noticed_by(town.config, 10) + town.config.cleanup_time(15))
    assert {one.circle.known for one in town.memberships()} == {9}
    town.run(until=town.now + 100.0)
    assert len(town.notes("suspect")) == 9
    assert town.all_know(ids(10, 1))


def test_many_crash_at_once() -> None:
    town = settled(30)
    schedule(town, [Crash(at=town.now, member=member) for member in ids(15)])
    town.run(until=town.now + noticed_by(town.config, 30))
    assert town.all_know(list(range(16, 31)))
    assert len(town.notes("suspect")) == 15 * 15


def test_a_restart_before_anybody_noticed_is_not_reported() -> None:
    town = settled(10)
    at = town.now
    schedule(town, [Crash(at=at, member=3), Restart(at=at + 3.0, member=3)])
    town.run(until=at + 60.0)
    assert town.journal == []
    assert town.all_know(ids(10))
    assert {one.circle.own.incarnation for one in town.memberships()} == {1, 2}


def test_a_restart_after_it_was_noticed_is_reported() -> None:
    town = settled(10)
    at = town.now
    back = at + noticed_by(town.config, 10)
    schedule(town, [Crash(at=at, member=3), Restart(at=back, member=3)])
    town.run(until=back + 30.0)
    assert sorted(note.who for note in town.notes("alive")) == ids(10, 3)
    assert town.all_know(ids(10))


def test_a_paused_member_is_suspected_and_comes_back() -> None:
    town = settled(10)
    at = town.now
    back = at + noticed_by(town.config, 10)
    schedule(town, [Pause(at=at, member=3), Resume(at=back, member=3)])
    town.run(until=back + 60.0)
    assert {note.who for note in town.notes("suspect") if note.about == 3} == set(ids(10, 3))
    assert town.all_know(ids(10))


# Coming and going


@pytest.mark.parametrize("seeds", [0, 3])
def test_a_new_member_gets_a_state_transfer(seeds: int) -> None:
    n = 20
    town = Town(n, GossipConfig(seeds=seeds), start=False)
    for member in ids(n - 1):
        town.start(member)
    town.run(until=warm_up(town.config, n))
    before = town.sent[WelcomeMsg]
    at = town.now
    schedule(town, [Join(at=at, member=n)])
    town.run(until=at + 2.0)
    newcomer = town.stack(n).membership
    assert newcomer.joined
    assert newcomer.view.ids == ids(n)  # within one round trip
    answers = town.sent[WelcomeMsg] - before
    assert answers == 3 if seeds else 1 <= answers <= 12
    town.run(until=at + 15.0)
    assert town.all_know(ids(n))
    assert newcomer.view.estimate == pytest.approx(n, rel=4 * town.config.error)


def test_seeds_that_are_dead_make_it_ask_everybody() -> None:
    n = 12
    town = Town(n, GossipConfig(seeds=1), start=False)
    for member in ids(n - 1):
        town.start(member)
    town.run(until=30.0)
    # Whatever it sends to one member gets lost, so nobody answers but to a multicast.
    asked = town.sent[JoinMsg]
    schedule(town, [OneWay(at=30.0, senders=(n,), to=tuple(ids(n - 1))), Join(at=30.0, member=n)])
    schedule(town, [Heal(at=32.0, name="one-way")])
    town.run(until=40.0)
    assert town.stack(n).membership.joined
    assert town.sent[JoinMsg] >= asked + 2


def test_who_leaves_is_gone_at_once_and_comes_back_as_another() -> None:
    town = settled(10)
    at = town.now
    schedule(town, [Leave(at=at, member=3)])
    town.run(until=at + 1.0)
    assert town.all_know(ids(10, 3))
    assert town.sent[LeaveMsg] == 1
    assert sorted(note.who for note in town.notes("suspect")) == ids(10, 3)
    town.run(until=at + 50.0)
    assert town.all_know(ids(10, 3))
    schedule(town, [Restart(at=town.now, member=3)])
    town.run(until=town.now + 20.0)
    assert town.all_know(ids(10))
    assert sorted(note.who for note in town.notes("alive")) == ids(10, 3)


def test_the_estimate_follows_shrinkage_and_growth() -> None:
    n = 60
    config = GossipConfig(epoch=40)
    town = settled(n, config)
    at = town.now
    schedule(town, [Crash(at=at, member=member) for member in ids(40)])
    town.run(until=at + 3 * config.epoch_time)
    assert all(abs(size / 20 - 1) < 4 * config.error for size in town.estimates())
    at = town.now
    schedule(town, [Restart(at=at, member=member) for member in ids(40)])
    town.run(until=at + 3 * config.epoch_time)
    assert all(abs(size / 60 - 1) < 4 * config.error for size in town.estimates())


def test_sides_of_a_partition_find_each_other_again() -> None:
    config = GossipConfig(epoch=20)
    town = settled(8, config, seed=2)
    town.be_careful()
    at = town.now
    apart = at + noticed_by(config, 8) + config.cleanup_time(12)
    sides = ((1, 2, 3, 4), (5, 6, 7, 8))
    schedule(town, [Partition(at=at, sides=sides), Heal(at=apart)])
    town.run(until=apart)
    assert town.stack(1).membership.view.ids == [1, 2, 3, 4]
    assert town.stack(8).membership.circle.known == 4
    town.run(until=apart + 8 * config.epoch_time)
    assert town.all_know(ids(8))


def test_new_attributes_reach_all() -> None:
    town = settled(10)
    schedule(town, [Update(at=town.now, member=4, candidate=candidate(4, cpu=9))])
    town.run(until=town.now + 15.0)
    assert {one.view.candidate(4) for one in town.memberships()} == {candidate(4, cpu=9)}


def test_a_member_that_no_message_can_hold_is_refused_at_the_start() -> None:
    crowded = Candidate(1, tuple((f"a{place:02}", 1.0) for place in range(17)))
    with pytest.raises(BadInput, match="at most 16 attributes"):
        Town(1, candidates=[crowded])


# Partial views


def test_partial_views_are_full_and_differ_and_nobody_is_suspected() -> None:
    n, size = 80, 12
    config = GossipConfig(view_size=size)
    town = settled(n, config, seed=4)
    town.run(until=town.now + config.fail_time(n))
    views = [tuple(one.view.ids) for one in town.memberships()]
    assert {len(view) for view in views} == {size + 1}
    assert len(set(views)) == n
    assert town.journal == []
    assert len(set(town.estimates())) == 1
    # Chosen without bias: how often each is chosen varies as in a draw.
    chosen = [sum(member in view for view in views) - 1 for member in ids(n)]
    p = size / (n - 1)
    spread = sum((count - size) ** 2 for count in chosen) / n
    assert 0.5 < spread / ((n - 1) * p * (1 - p)) < 1.7


def test_a_crash_is_noticed_in_partial_views_by_those_who_knew() -> None:
    n = 60
    config = GossipConfig(view_size=12)
    town = settled(n, config)
    knew = [who for who in ids(n, 7) if 7 in town.stack(who).membership.view]
    at = town.now
    schedule(town, [Crash(at=at, member=7)])
    town.run(until=at + noticed_by(config, n))
    noticed = [note.who for note in town.notes("suspect")]
    assert {note.about for note in town.notes("suspect")} == {7}
    assert len(noticed) == len(set(noticed)) >= len(knew) - 2  # one may have made room for another
    assert set(noticed) <= set(knew)
    assert not any(7 in one.view for one in town.memberships())


# The rest


def test_delays_may_vary() -> None:
    town = Town(20, network=Network(delay=Uniform(0.1, 1.0)), debug=True)
    town.run(until=warm_up(town.config, 20) + 30.0)
    assert town.all_know(ids(20))
    assert town.journal == []


def test_one_seed_makes_one_run() -> None:
    def facts(seed: int) -> list[object]:
        town = Town(15, seed=seed, loss=0.2)
        schedule(town, [Crash(at=20.0, member=2)])
        town.run(until=90.0)
        return [
            dict(town.sent),
            town.journal,
            town.estimates(),
            [one.circle.some() for one in town.memberships()],
        ]

    assert facts(1) == facts(1)
    assert facts(1) != facts(2)
