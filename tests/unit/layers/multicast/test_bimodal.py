"""Bimodal multicast: who gets a message, how often, until when, and at what cost."""

from collections import Counter

import pytest

from hustings.core.choice import Candidate, MemberId
from hustings.core.errors import ProtocolBug
from hustings.core.messages import Role
from hustings.core.streams import Stream
from hustings.layers.gossip.layer import GossipConfig
from hustings.layers.multicast.bimodal import Bimodal, Memory
from hustings.layers.multicast.messages import (
    CASTS,
    CopyMsg,
    DigestMsg,
    ElectionCast,
    SolicitMsg,
    longest_upkeep,
)
from hustings.sim.delay import Uniform
from hustings.sim.faults import Call, Crash, schedule
from hustings.sim.loss import NoLoss, Uncorrelated
from hustings.sim.network import Network
from hustings.testing.effects import Multicast, Send, SetTimer
from hustings.testing.recorded import RecordingContext, recording, view_of
from tests.unit.layers.gossip.rumours import Scales, Town

READY = 20.0  # by then members of these small towns know each other


def got(town: Town, origin: MemberId) -> Counter[MemberId]:
    """How often each member got a rumour of one origin."""
    return Counter(note.who for note in town.notes("rumour") if note.about == origin)


def lossy(multicast: float, unicast: float = 0.0) -> Network:
    return Network(
        loss=Uncorrelated(unicast) if unicast else NoLoss(),
        multicast_loss=Uncorrelated(multicast) if multicast else NoLoss(),
    )


# Delivery


def test_without_losses_everybody_gets_it_once_and_at_once() -> None:
    town = Town(20)
    schedule(town, [Call(at=READY, member=3)])
    town.run(until=READY + 60.0)
    assert got(town, 3) == dict.fromkeys([who for who in range(1, 21) if who != 3], 1)
    assert {note.at for note in town.notes("rumour")} == {READY + 1.0}


def test_what_the_first_phase_misses_anti_entropy_repairs() -> None:
    # A first phase that loses 40 %, over a network that loses 10 % of all else.
    town = Town(60, network=lossy(0.4, 0.1), seed=3)
    schedule(town, [Call(at=READY, member=who) for who in range(1, 11)])
    town.run(until=READY + 1.0)
    first = len(town.notes("rumour"))
    assert 0.5 < first / (10 * 59) < 0.7
    town.run(until=READY + town.config.buffering_time)
    assert len(town.notes("rumour")) == 10 * 59
    assert len({(note.who, note.about) for note in town.notes("rumour")}) == 10 * 59


def test_nearly_all_get_it_even_where_40_percent_of_everything_is_lost() -> None:
    town = Town(60, network=lossy(0.4, 0.4), seed=3)
    schedule(town, [Call(at=40.0, member=who) for who in range(1, 11)])
    town.run(until=40.0 + town.config.buffering_time)
    assert len(town.notes("rumour")) > 0.95 * 10 * 59
    assert max(Counter((note.who, note.about) for note in town.notes("rumour")).values()) == 1


def test_a_first_phase_by_gossip_reaches_nearly_all_and_the_repair_the_rest() -> None:
    n, spread = 60, 4
    config = GossipConfig(spread=spread)
    town = Town(n, config=config, network=lossy(1.0, 0.1), seed=3)
    schedule(town, [Call(at=READY, member=who) for who in range(1, 11)])
    town.run(until=READY + 8.0)  # no multicast of the world's arrives here
    assert len(town.notes("rumour")) > 0.9 * 10 * (n - 1)
    town.run(until=READY + town.config.buffering_time)
    assert len({(note.who, note.about) for note in town.notes("rumour")}) == 10 * (n - 1)
    assert max(Counter((note.who, note.about) for note in town.notes("rumour")).values()) == 1


def test_each_passes_a_rumour_on_once_and_to_so_many() -> None:
    bimodal = Bimodal(GossipConfig(spread=3, delta=1.0), lambda _, count: list(range(2, 2 + count)))
    with recording(Candidate(9), view_of([Candidate(each) for each in range(1, 10)])) as ctx:
        assert bimodal.on_copy(ctx, CopyMsg(1, 1, 1, 2.0, b"x")) == b"x"
        assert bimodal.on_copy(ctx, CopyMsg(1, 1, 1, 2.0, b"x")) is None
    sends = [each for each in ctx.effects if isinstance(each, Send)]
    assert [each.to for each in sends] == [2, 3, 4]
    assert {each.message for each in sends} == {CopyMsg(1, 1, 1, 3.0, b"x")}


def test_almost_all_get_it_or_almost_none() -> None:
    # The sender dies in the middle of the first phase, having reached at most two members.
    n, runs = 24, 50
    shares = []
    for seed in range(runs):
        town = Town(n, network=lossy(0.6), seed=seed)
        schedule(town, [Crash(at=10.0, member=1, after_sends=2), Call(at=10.0, member=1)])
        town.run(until=12.0 + town.config.buffering_time)
        assert not town.members[1].up
        shares.append(len(got(town, 1)) / (n - 1))
    none = sum(share == 0.0 for share in shares)
    nearly_all = sum(share >= 0.9 for share in shares)
    assert none + nearly_all == runs
    # Nobody is reached with probability 0.36: between 0.1 and 0.6 but for one in 10,000.
    assert 0.1 * runs < none < 0.6 * runs


def test_nothing_is_delivered_after_the_buffering_time() -> None:
    config = GossipConfig(rounds=6)
    network = Network(
        delay=Uniform(0.2, 1.0),
        loss=Uncorrelated(0.2),
        multicast_loss=Uncorrelated(0.8),
    )
    ages = []
    for seed in range(6):
        town = Town(30, config, network=network, seed=seed)
        schedule(town, [Call(at=READY, member=who) for who in (1, 2, 3)])
        town.run(until=READY + 40.0)
        ages += [note.at - READY for note in town.notes("rumour")]
        assert all(town.buffered(who) == 0 for who in range(1, 31))
    assert len(ages) < 6 * 3 * 29  # some could have got it later, had it lived longer
    assert 4.0 < max(ages) <= config.buffering_time == 6.0


def test_a_group_with_nothing_to_say_says_nothing() -> None:
    town = Town(10)
    town.run(until=READY)
    assert town.sent[DigestMsg] == 0
    schedule(town, [Call(at=READY, member=3)])
    town.run(until=READY + 2 * town.config.buffering_time)
    digests = town.sent[DigestMsg]
    per_member = town.config.digests * town.config.rounds
    assert 9 * (per_member - 6) < digests <= 10 * per_member
    town.run(until=READY + 200.0)
    assert town.sent[DigestMsg] == digests


def test_a_multicast_counts_as_what_it_is_and_all_else_as_upkeep() -> None:
    town = Town(10, network=lossy(0.5), seed=1)
    schedule(town, [Call(at=READY, member=3), Call(at=READY + 5.0, member=4)])
    town.run(until=READY + 60.0)
    assert town.sent[ElectionCast] == 2
    assert town.sent[CopyMsg] > 0
    counted = [kind for kind, number in town.sent.items() if number and kind.role != Role.DETECTOR]
    assert counted == [ElectionCast]
    assert {role: kind.role for role, kind in CASTS.items()} == {role: role for role in Role}


def test_messages_are_bounded_however_much_is_multicast() -> None:
    config = GossipConfig(digest=10, solicits=4, copies=4, buffer=20)
    town, scales = Town(30, config, network=lossy(0.5), start=False), Scales()
    town.listen_in(scales)
    town.start()
    schedule(town, [Call(at=READY + at / 10, member=1 + at % 30) for at in range(90)])
    while town.now < READY + 30.0:
        town.run(until=town.now + 0.5)
        assert all(town.buffered(who) <= 20 for who in range(1, 31))
    bound = longest_upkeep(config, body=32)
    kinds = (DigestMsg, SolicitMsg, CopyMsg, ElectionCast)
    assert all(0 < scales.heaviest[kind] <= bound for kind in kinds)
    assert max(Counter((n.who, n.about, n.number) for n in town.notes("rumour")).values()) == 1


# One member


class Ear:
    """One member's multicast, driven by hand."""

    def __init__(self, **settings: float) -> None:
        self.config = GossipConfig.parse(settings)
        self.now = 0.0
        self.part = Bimodal(self.config, lambda rng, count: [7, 8, 9][:count])

    def ctx(self) -> RecordingContext:
        return RecordingContext(Candidate(1), view_of([Candidate(1)]), rng=Stream(1), now=self.now)

    def cast(self, sender: MemberId, number: int, incarnation: int = 1) -> bool:
        message = ElectionCast(incarnation, number, b"body")
        return self.part.on_cast(self.ctx(), sender, message) is not None

    def copy(self, origin: MemberId, number: int, age: float, incarnation: int = 1) -> bool:
        message = CopyMsg(origin, incarnation, number, age, b"body")
        return self.part.on_copy(self.ctx(), message) is not None

    def digest(self, *ids: tuple[int, int, int]) -> tuple[tuple[int, int, int], ...]:
        ctx = self.ctx()
        self.part.on_digest(ctx, 7, DigestMsg(ids))
        asked = [effect.message for effect in ctx.effects if isinstance(effect, Send)]
        assert len(asked) <= 1
        return asked[0].ids if asked and isinstance(asked[0], SolicitMsg) else ()

    def solicit(self, *ids: tuple[int, int, int]) -> list[CopyMsg]:
        ctx = self.ctx()
        self.part.on_solicit(ctx, 7, SolicitMsg(ids))
        sent = [effect.message for effect in ctx.effects if isinstance(effect, Send)]
        return [message for message in sent if isinstance(message, CopyMsg)]

    def round(self) -> list[DigestMsg]:
        ctx = self.ctx()
        self.part.on_timer(ctx)
        sent = [effect.message for effect in ctx.effects if isinstance(effect, Send)]
        return [message for message in sent if isinstance(message, DigestMsg)]


def test_a_copy_of_what_was_had_is_not_delivered_again_even_after_it_was_forgotten() -> None:
    ear = Ear()
    assert ear.cast(5, 1)
    assert not ear.cast(5, 1)
    assert not ear.copy(5, 1, age=3.0)
    ear.now = ear.config.buffering_time + 5.0
    assert ear.round() == []
    assert ear.part.buffered == 0
    assert not ear.copy(5, 1, age=3.0)
    assert ear.digest((5, 1, 1)) == ()


def test_ones_own_message_does_not_come_back() -> None:
    ear = Ear()
    ctx = ear.ctx()
    ear.part.multicast(ctx, Role.ELECTION, b"mine")
    assert isinstance(ctx.effects[0], Multicast)
    assert ctx.effects[0].message == ElectionCast(1, 1, b"mine")
    assert isinstance(ctx.effects[1], SetTimer)
    assert not ear.copy(1, 1, age=2.0)
    assert not ear.copy(1, 9, age=2.0)
    assert ear.digest((1, 1, 9)) == ()
    assert [copy.body for copy in ear.solicit((1, 1, 1))] == [b"mine"]


def test_a_copy_carries_its_age_and_one_too_old_is_neither_sent_nor_accepted() -> None:
    ear = Ear(rounds=10)
    assert ear.copy(5, 1, age=4.0)
    ear.now = 3.0
    assert [copy.age for copy in ear.solicit((5, 1, 1))] == [8.0]  # 4, 3 here, 1 under way
    ear.now = 5.5
    assert ear.solicit((5, 1, 1)) == []
    assert not ear.copy(6, 1, age=10.1)
    for age in (-1.0, float("inf"), float("nan")):
        assert not ear.copy(6, 1, age=age)
    assert ear.copy(6, 1, age=10.0)


def test_a_digest_lists_the_latest_first_and_no_more_than_it_may() -> None:
    ear = Ear(digest=3)
    for number, age in enumerate([5.0, 1.0, 9.0, 3.0, 7.0], 1):
        ear.copy(5, number, age)
    digests = ear.round()
    assert len(digests) == ear.config.digests
    assert digests[0].ids == ((5, 1, 2), (5, 1, 4), (5, 1, 1))


def test_only_what_is_lacking_is_asked_for_and_not_twice_within_a_round() -> None:
    ear = Ear(solicits=3)
    ear.cast(5, 1)
    assert ear.digest((5, 1, 1), (5, 1, 2), (6, 1, 1)) == ((5, 1, 2), (6, 1, 1))
    ear.now = 0.9
    assert ear.digest((5, 1, 2), (6, 1, 2)) == ((6, 1, 2),)
    ear.now = 1.0
    assert ear.digest((5, 1, 2)) == ((5, 1, 2),)
    ear.copy(5, 2, age=2.0)
    ear.now = 9.0
    assert ear.digest((5, 1, 2)) == ()


def test_requests_and_copies_have_a_limit_in_each_round() -> None:
    ear = Ear(solicits=3, copies=2)
    ear.now = 1.0
    assert len(ear.digest(*[(5, 1, number) for number in range(1, 9)])) == 3
    assert ear.digest((6, 1, 1)) == ()
    for number in range(1, 5):
        ear.cast(7, number)
    assert len(ear.solicit(*[(7, 1, number) for number in range(1, 4)])) == 2
    assert ear.solicit((7, 1, 4)) == []
    ear.now = 2.0
    assert len(ear.solicit((7, 1, 4))) == 1
    assert ear.digest((6, 1, 1)) == ((6, 1, 1),)


def test_a_full_buffer_gives_up_the_oldest() -> None:
    ear = Ear(buffer=2)
    for number, age in enumerate([5.0, 9.0, 1.0], 1):
        assert ear.copy(5, number, age)
    assert ear.part.buffered == 2
    assert ear.solicit((5, 1, 2)) == []
    assert len(ear.solicit((5, 1, 1), (5, 1, 3))) == 2


def test_bodies_have_a_limit() -> None:
    ear = Ear(multicast_bytes=3)
    assert not ear.cast(5, 1)
    with pytest.raises(ProtocolBug, match="4 bytes, where body allows 3"):
        ear.part.multicast(ear.ctx(), Role.OTHER, b"long")


def test_a_new_incarnation_begins_again_and_an_old_one_is_over() -> None:
    ear = Ear()
    assert ear.cast(5, 8, incarnation=1)
    assert ear.cast(5, 1, incarnation=2)
    assert not ear.cast(5, 9, incarnation=1)
    assert not ear.cast(5, 1, incarnation=2)


# Memory


def test_a_window_remembers_what_a_set_would() -> None:
    rng = Stream(11)
    memory, had, top = Memory(origins=4, width=16, lifetime=1.0), set[int](), 0
    for _ in range(3000):
        number = max(1, top - 24 + rng.below(30))
        expected = number > top - 16 and number not in had
        assert memory.take((5, 1, number), 0.0) == expected
        had.add(number)
        top = max(top, number) if expected else top
        assert not memory.fresh((5, 1, number))


def test_a_window_jumps() -> None:
    memory = Memory(origins=4, width=8, lifetime=1.0)
    for number in (1, 2, 100):
        assert memory.take((5, 1, number), 0.0)
    assert memory.fresh((5, 1, 99))
    assert not memory.fresh((5, 1, 92))
    assert memory.fresh((5, 1, 93))


def test_origins_have_a_limit_that_never_doubles_a_message() -> None:
    memory = Memory(origins=2, width=8, lifetime=10.0)
    assert memory.take((1, 1, 1), 0.0)
    assert memory.take((2, 1, 1), 1.0)
    assert not memory.take((3, 1, 1), 10.0)  # refused: copies of the others may still live
    assert not memory.take((1, 1, 1), 10.0)
    assert memory.take((3, 1, 1), 10.5)
    assert len(memory) == 2
    assert not memory.take((2, 1, 1), 10.5)


@pytest.mark.parametrize(
    "mid", [(1 << 63, 1, 1), (5, 0, 1), (5, 1, 0), (5, 1, -3), (5, 1 << 60, 1), (5, 1, 1 << 60)]
)
def test_odd_ids_are_never_fresh(mid: tuple[int, int, int]) -> None:
    memory = Memory(origins=2, width=8, lifetime=10.0)
    assert not memory.take(mid, 0.0)
    assert memory.take((5, 1, 1), 0.0)
    assert not memory.take(mid, 0.0)
