"""An election upon the stack: what it sees, what it sends, and what passes through."""

from collections.abc import Callable, Mapping

import msgspec
import pytest

from hustings.core.choice import Candidate, HighestId, candidate, parse_choice
from hustings.core.context import Context
from hustings.core.election import Election
from hustings.core.errors import ProtocolBug, StaleContext
from hustings.core.guard import Granted, Verdict
from hustings.core.messages import Message, Role
from hustings.core.outcome import Elected
from hustings.core.rounds import RoundBased
from hustings.layers.gossip.layer import (
    GossipConfig,
    GossipContext,
    GossipLayer,
    warm_up,
    with_gossip,
)
from hustings.layers.gossip.messages import Entry, GossipMsg, JoinMsg
from hustings.layers.layer import innermost, unwrapped
from hustings.layers.multicast.messages import (
    CoordinatorCast,
    CopyMsg,
    DigestMsg,
    ElectionCast,
    SolicitMsg,
)
from hustings.protocols.bully import Bully, BullyConfig, CoordinatorMsg, ElectionMsg
from hustings.protocols.probabilistic.election import Probabilistic
from hustings.protocols.probabilistic.messages import FinalMsg, InitMsg
from hustings.protocols.probabilistic.settings import ProbabilisticConfig
from hustings.protocols.ring import Ring, RingConfig
from hustings.sim.faults import Call, Crash, schedule
from hustings.sim.loss import NoLoss, Uncorrelated
from hustings.sim.network import Network
from hustings.sim.trace import Header, Tracer
from hustings.sim.world import World
from hustings.testing.effects import Acquire, Multicast, Release, Send
from hustings.testing.recorded import RecordedMember, recording, view_of
from tests.unit.layers.detector.listeners import people
from tests.unit.layers.gossip.rumours import Gossip, Note, RumourMsg, Town

CONFIG = GossipConfig()


class Full(Gossip, RoundBased):
    """An election with something to say to everything that a world may ask."""

    seen: Verdict | None = None

    @property
    def seats(self) -> int:
        return 3

    @property
    def leaders(self) -> tuple[int, ...]:
        return (7, 8)

    def opens(self, message: Message) -> tuple[int, ...] | None:
        return (message.number, 1) if isinstance(message, RumourMsg) else None

    def span(self, message: Message, members: int) -> tuple[float, float]:
        return (1.0, 10.0 * message.number + members) if isinstance(message, RumourMsg) else (0, 0)

    def tallies(self) -> Mapping[str, int]:
        return {"told": self.told}

    def call(self, ctx: Context) -> None:
        super().call(ctx)
        ctx.acquire(5.0, 1)
        ctx.release(2)

    def on_verdict(self, ctx: Context, verdict: Verdict) -> None:
        self.seen = verdict


def full() -> tuple[RecordedMember, list[Note]]:
    """Member 1 of five, started, upon a stack."""
    journal: list[Note] = []
    member = RecordedMember(
        with_gossip(lambda: Full(journal), CONFIG), Candidate(1), view_of(people(5))
    )
    member.start()
    return member, journal


def stack_of(member: RecordedMember) -> GossipLayer:
    assert isinstance(member.election, GossipLayer)
    return member.election


def news(*entries: Entry) -> GossipMsg:
    return GossipMsg(entries, 1, (), None)


# What passes through


def test_what_a_world_asks_the_inner_election_answers() -> None:
    member, _ = full()
    stack = stack_of(member)
    assert stack.seats == 3
    assert stack.leaders == (7, 8)
    inner, said = unwrapped(stack, RumourMsg(2))
    assert isinstance(inner, Full)
    assert inner.span(said, 5) == (1.0, 25.0)
    assert inner.tallies() == {"told": 0}
    assert "leader=None" in stack.state()
    member.assume_leader(4, 9)
    assert (stack.leader, stack.term) == (4, 9)
    assert (stack.inner.leader, stack.inner.term) == (4, 9)
    stack.leader, stack.term = 5, 10
    assert (stack.inner.leader, stack.inner.term) == (5, 10)


def test_a_carried_message_opens_the_round_that_it_opens_by_itself() -> None:
    member, _ = full()
    stack = stack_of(member)
    (cast,) = [e.message for e in member.call() if isinstance(e, Multicast)]
    assert isinstance(cast, ElectionCast)
    assert stack.unwrap(cast) == RumourMsg(1)
    inner, said = unwrapped(stack, cast)
    assert isinstance(inner, Full)
    assert unwrapped(stack, RumourMsg(1)) == (inner, said) == (stack.inner, RumourMsg(1))
    assert inner.opens(said) == (1, 1)
    assert inner.span(said, 5) == (1.0, 15.0)
    inner, said = unwrapped(stack, DigestMsg(()))
    assert isinstance(inner, Full)
    assert inner.opens(said) is None
    assert stack.unwrap(ElectionCast(1, 1, b"\xff")) == ElectionCast(1, 1, b"\xff")


def test_proposals_and_verdicts_pass_through() -> None:
    member, _ = full()
    effects = member.call()
    assert Acquire(5.0, 1) in effects
    assert Release(2) in effects
    verdict = Granted(1, 1, 5.0)
    member.answer(verdict)
    inner = stack_of(member).inner
    assert isinstance(inner, Full)
    assert inner.seen == verdict


def test_a_context_lasts_for_one_call() -> None:
    member, _ = full()
    with recording(Candidate(1)) as below:
        ctx = GossipContext(below, stack_of(member))
        assert ctx.me == Candidate(1)
        assert ctx.view is stack_of(member).membership.view
        assert ctx.incarnation == 1
        assert ctx.stored == {}
        ctx.persist(x=1)
        ctx.set_timer("t", 1.0)
        ctx.cancel_timer("t")
        ctx.declare(Elected(1, 1))
        assert len(below.effects) == 4
    with pytest.raises(StaleContext):
        ctx.now()


def test_members_of_one_kind_share_one_table_and_one_codec() -> None:
    one, other = stack_of(full()[0]), stack_of(full()[0])
    assert one.handlers is other.handlers
    assert one.codec is other.codec
    assert set(GossipLayer.handlers) == set(GossipLayer.messages), (
        "the class has its own kinds alone"
    )


def test_a_stack_upon_a_stack_is_refused() -> None:
    make = with_gossip(lambda: Gossip([]), CONFIG)
    with pytest.raises(ProtocolBug, match="has a stack already"):
        with_gossip(make, CONFIG)()


# Messages


def test_a_multicast_travels_as_bytes_and_arrives_as_what_it_was() -> None:
    member, journal = full()
    body = msgspec.msgpack.encode(RumourMsg(5))
    member.deliver(3, ElectionCast(1, 1, body))
    member.deliver(4, CopyMsg(3, 1, 1, 2.0, body))
    member.deliver(4, CopyMsg(3, 1, 2, 2.0, body))
    assert [(note.what, note.about, note.number) for note in journal] == [("rumour", 3, 5)] * 2


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff\xff", b"\xc0", msgspec.msgpack.encode(["RUMOUR", "x"]), b"\x91" * 5000],
    ids=["empty", "garbage", "nil", "wrong-type", "deep"],
)
def test_bytes_that_say_nothing_are_dropped(body: bytes) -> None:
    member, journal = full()
    member.deliver(3, ElectionCast(1, 1, body))
    member.deliver(4, CopyMsg(3, 1, 2, 2.0, body))
    assert journal == []


def test_what_goes_to_one_member_goes_straight() -> None:
    member, journal = full()
    member.deliver(3, RumourMsg(8))
    assert journal == [Note(0.0, 1, "rumour", 3, 8)]


def test_what_a_suspect_sends_takes_the_suspicion_back() -> None:
    for message in (RumourMsg(8), ElectionCast(1, 1, msgspec.msgpack.encode(RumourMsg(8)))):
        member, journal = full()
        member.deliver(2, news(Entry(Candidate(3), 1, 1)))
        member.suspect(3)
        assert 3 not in stack_of(member).membership.view
        member.deliver(3, message)
        assert 3 in stack_of(member).membership.view
        assert [note.what for note in journal] == ["suspect", "alive", "rumour"]


def test_detectors_outside_are_listened_to() -> None:
    member, journal = full()
    member.deliver(2, news(Entry(Candidate(3), 1, 1)))
    member.suspect(3)
    member.alive(3)
    member.suspect(99)
    member.alive(99)
    assert stack_of(member).membership.view.ids == [1, 3]
    assert [(note.what, note.about) for note in journal] == [
        ("suspect", 3),
        ("alive", 3),
        ("suspect", 99),
        ("alive", 99),
    ]


def test_candidates_that_the_election_cannot_rank_stay_unknown() -> None:
    choice = parse_choice("highest:cpu")
    member = RecordedMember(
        with_gossip(lambda: Bully(BullyConfig(), choice), CONFIG),
        candidate(1, cpu=2),
        view_of([candidate(1, cpu=2), candidate(2, cpu=3)]),
    )
    member.start()
    member.deliver(2, news(Entry(Candidate(2), 1, 1), Entry(candidate(3, cpu=5), 1, 1)))
    assert stack_of(member).membership.view.ids == [1, 3]
    member.deliver(2, JoinMsg(Entry(Candidate(2), 1, 1), to_all=False, asks=True))
    member.call()
    member.deliver(2, news(Entry(Candidate(3), 1, 2)))
    assert stack_of(member).membership.view.candidate(3) == candidate(3, cpu=5)


def test_leaders_stay_in_the_smallest_view() -> None:
    small = with_gossip(lambda: Full([]), GossipConfig(view_size=2))
    member = RecordedMember(small, Candidate(1), view_of(people(5)))
    member.start()
    for _ in range(2):
        member.deliver(2, news(*(Entry(Candidate(other), 1, 1) for other in range(2, 30))))
    assert stack_of(member).membership.view.ids == [1, 7, 8]
    member = RecordedMember(small, Candidate(1), view_of(people(5)))
    member.start()
    for other in (*range(2, 30), 7, 8):
        join = JoinMsg(Entry(Candidate(other), 1, 1), to_all=True, asks=False)
        member.deliver(other, join)
    assert stack_of(member).membership.view.ids == [1, 7, 8]


def test_who_leaves_says_so_and_is_silent() -> None:
    member, _ = full()
    effects = member.leave()
    assert [type(e.message).__name__ for e in effects if isinstance(e, Multicast)] == ["LeaveMsg"]
    assert member.deliver(2, news(Entry(Candidate(2), 1, 1))) == []


def test_the_view_has_the_estimate() -> None:
    town = Town(20)
    town.run(until=warm_up(town.config, 20))
    view = town.stack(3).membership.view
    assert view.estimate == town.stack(3).membership.sizing.estimate
    assert view.estimate == pytest.approx(20, rel=4 * town.config.error)
    assert not [e for e in full()[0].call() if isinstance(e, Send)]  # and a lone view no targets


# Elections


def bully() -> Election:
    return Bully(BullyConfig(), HighestId())


def ring() -> Election:
    return Ring(RingConfig(), HighestId())


def world_of(elect: Callable[[], Election], n: int) -> World:
    world = World(with_gossip(elect, CONFIG), people(n))
    world.start()
    world.run(until=warm_up(CONFIG, n))
    return world


@pytest.mark.parametrize("elect", [bully, ring])
def test_elections_notice_a_crash_by_gossip_and_elect_another(
    elect: Callable[[], Election],
) -> None:
    world = world_of(elect, 8)
    schedule(world, [Call(at=world.now, member=2)])
    world.run(until=world.now + 40.0)
    assert {member.election.leader for member in world.live()} == {8}
    schedule(world, [Crash(at=world.now, member=8)])
    world.run(until=world.now + 150.0)
    assert {member.election.leader for member in world.live()} == {7}


def test_the_cost_of_an_election_is_counted_as_without_a_stack() -> None:
    plain = World(bully, people(8))
    plain.start()
    schedule(plain, [Call(at=0.0, member=2)])
    plain.run()
    world = world_of(bully, 8)
    before = dict(world.sent)
    schedule(world, [Call(at=world.now, member=2)])
    world.run(until=world.now + 40.0)
    for kind in (ElectionMsg, CoordinatorMsg):
        assert world.sent[kind] - before.get(kind, 0) == plain.sent[kind]


def relays(election: Election) -> int:
    """How often a member was a relay."""
    inside = innermost(election)
    assert isinstance(inside, Probabilistic)
    return inside.tallies()["relay_members"]


def probabilistic(n: int, *, loss: float, seed: int, tracer: Tracer | None = None) -> World:
    stack = GossipConfig(loss=max(loss, 0.1))
    settings = ProbabilisticConfig.parse({"T_3": stack.buffering_time, "estimate": "gossip"})
    fate = Uncorrelated(loss) if loss else NoLoss()
    world = World(
        with_gossip(lambda: Probabilistic(settings, HighestId()), stack),
        people(n),
        seed=seed,
        network=Network(loss=fate),
        tracer=tracer,
    )
    world.start()
    ready = warm_up(stack, n)
    schedule(world, [Call(at=ready, member=2)])
    world.run(until=ready + 6 * stack.buffering_time)
    return world


@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_the_probabilistic_election_runs_upon_the_whole_stack(loss: float) -> None:
    world = probabilistic(40, loss=loss, seed=5)
    assert {member.election.leader for member in world.live()} == {40}
    assert world.sent[ElectionCast] == 1  # one INIT
    tallies = [relays(member.election) for member in world.live()]
    assert world.sent[CoordinatorCast] == sum(tallies) > 0  # and a FINAL of each relay member
    assert world.sent[InitMsg] == world.sent[FinalMsg] == 0
    counted = {kind.__name__ for kind, n in world.sent.items() if n and kind.role != Role.DETECTOR}
    assert counted == {"ElectionCast", "CoordinatorCast", "PreferMsg"}


def test_one_seed_makes_one_trace() -> None:
    def digest(seed: int) -> str:
        tracer = Tracer(Header(protocol="stacked", members=[], seed=seed, settings={}))
        world = probabilistic(12, loss=0.1, seed=seed, tracer=tracer)
        return tracer.close(world.now, "until")

    assert digest(1) == digest(1)
    assert digest(1) != digest(2)


def test_requests_are_answered_by_copies_only_to_who_asked() -> None:
    member, _ = full()
    member.deliver(3, ElectionCast(1, 1, msgspec.msgpack.encode(RumourMsg(5))))
    effects = member.deliver(4, SolicitMsg(((3, 1, 1), (3, 1, 2))))
    (sent,) = [effect for effect in effects if isinstance(effect, Send)]
    assert sent.to == 4
    assert isinstance(sent.message, CopyMsg)
    assert (sent.message.origin, sent.message.number) == (3, 1)
