"""One member upon the stack, fed anything in any order: it never raises and stays within bounds."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.choice import Candidate, MemberId, parse_choice
from hustings.core.messages import Message
from hustings.core.streams import Stream
from hustings.layers.gossip.circle import Circle
from hustings.layers.gossip.layer import GossipConfig, GossipLayer, with_gossip
from hustings.layers.gossip.messages import (
    Entry,
    GossipMsg,
    JoinMsg,
    LeaveMsg,
    WelcomeMsg,
    longest_gossip,
)
from hustings.layers.gossip.size import TOP, Sizing, size_of
from hustings.layers.multicast.bimodal import Memory
from hustings.layers.multicast.messages import (
    CASTS,
    CopyMsg,
    DigestMsg,
    SolicitMsg,
    longest_upkeep,
)
from hustings.protocols.bully import Bully, BullyConfig, CoordinatorMsg, ElectionMsg, OkMsg
from hustings.testing.effects import Effect, Multicast, Send, SetTimer
from hustings.testing.recorded import RecordedMember, view_of

CONFIG = GossipConfig.parse(
    {
        "view_size": 4,
        "entries": 4,
        "minima": 4,
        "epoch": 5,
        "rounds": 6,
        "buffer": 3,
        "origins": 3,
        "window": 4,
        "digest": 3,
        "solicits": 2,
        "copies": 2,
        "multicast_bytes": 64,
        "T_fail": 5.0,
    }
)
ATTRIBUTES = 16 * (5 + 4 * 64 + 9)  # bytes: as many as are let in, with names as long

extremes = st.sampled_from([-(2**70), -(2**63), -1, 0, 1, 2**53, 2**53 + 1, 2**63, 2**70])
numbers = st.integers(0, 9) | extremes
ids = st.integers(1, 9) | extremes
floats = st.floats(0, 10) | st.sampled_from([-1.0, float("inf"), float("nan"), 1e300])
attributes = st.lists(
    st.tuples(st.sampled_from(["cpu", "load", "x" * 64, "y" * 65]), floats), max_size=3
).map(tuple) | st.just((("cpu", 1.0),))
candidates = st.builds(Candidate, ids, attributes)
entries = st.builds(Entry, candidates, numbers, numbers)
codes = st.lists(st.integers(0, TOP) | extremes, max_size=5).map(tuple) | st.tuples(
    *[st.integers(0, TOP)] * 4
)
sizes = st.none() | floats
some = st.lists(entries, max_size=7).map(tuple)
mids = st.lists(st.tuples(ids, numbers, numbers), max_size=6).map(tuple)
bodies = st.binary(max_size=80) | st.sampled_from(
    [msgspec.msgpack.encode(CoordinatorMsg(3)), msgspec.msgpack.encode(OkMsg(3))]
)
messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(GossipMsg, some, numbers, codes, sizes, st.booleans()),
    st.builds(WelcomeMsg, some, numbers, codes, sizes),
    st.builds(JoinMsg, entries, st.booleans(), st.booleans()),
    st.builds(LeaveMsg, numbers),
    *[st.builds(kind, numbers, numbers, bodies) for kind in CASTS.values()],
    st.builds(CopyMsg, ids, numbers, numbers, floats, bodies),
    st.builds(DigestMsg, mids),
    st.builds(SolicitMsg, mids),
    st.builds(ElectionMsg, st.integers(0, 5)),
    st.builds(CoordinatorMsg, st.integers(0, 5)),
)

Step = Callable[[RecordedMember], list[Effect]]


def fire(place: int) -> Step:
    def step(member: RecordedMember) -> list[Effect]:
        keys = sorted(member.timers, key=str)
        return member.fire(keys[place % len(keys)]) if keys else []

    return step


def wait(time: float) -> Step:
    def step(member: RecordedMember) -> list[Effect]:
        member.clock += time
        return []

    return step


steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(lambda sender, message: lambda m: m.deliver(sender, message), ids, messages),
    st.builds(fire, st.integers(0, 5)),
    st.builds(fire, st.integers(0, 5)),
    st.builds(wait, st.floats(0, 30)),
    st.builds(lambda about: lambda m: m.suspect(about), ids),
    st.builds(lambda about: lambda m: m.alive(about), ids),
    st.just(lambda m: m.call()),
    st.just(lambda m: m.restart()),
)


def check_bounds(member: RecordedMember) -> None:
    stack = member.election
    assert isinstance(stack, GossipLayer)
    circle, multicast = stack.membership.circle, stack.multicast
    limit = CONFIG.view_size + 1
    assert circle.known <= limit
    assert circle.load <= 7 * limit
    assert circle.view.ids == sorted(set(circle.view.ids))
    assert 1 in circle.view
    assert all(stack.choice.can_rank(circle.view.candidate(known)) for known in circle.view)
    assert 1.0 <= (circle.view.estimate or 0.0) <= 1e15
    assert multicast is not None
    assert multicast.buffered <= CONFIG.buffer
    assert len(multicast.memory) <= CONFIG.origins
    assert multicast.asked <= 2 * CONFIG.solicits


def check_effects(effects: list[Effect]) -> None:
    bound = max(longest_gossip(CONFIG, ATTRIBUTES), longest_upkeep(CONFIG))
    for effect in effects:
        if isinstance(effect, Send | Multicast):
            assert len(msgspec.msgpack.encode(effect.message)) <= bound
        elif isinstance(effect, SetTimer):
            assert effect.delay >= 0
    sent = [effect for effect in effects if isinstance(effect, Send)]
    substrate = [effect for effect in sent if effect.message.role.value == "detector"]
    assert len(substrate) <= max(CONFIG.transfer_messages, CONFIG.digests, CONFIG.copies, 3) + 1


@given(st.lists(steps, max_size=40), st.integers(0, 3))
def test_nothing_that_others_do_raises_or_breaks_a_bound(story: list[Step], seed: int) -> None:
    choice = parse_choice("highest:cpu")
    me = Candidate(1, (("cpu", 2.0),))
    contacts = view_of([me, *(Candidate(other, (("cpu", 1.0),)) for other in (2, 3, 4, 5))])
    elect = with_gossip(lambda: Bully(BullyConfig(), choice), CONFIG)
    member = RecordedMember(elect, me, contacts, seed=seed)
    check_effects(member.start())
    for step in story:
        check_effects(step(member))
        check_bounds(member)


sound = st.builds(
    Entry, st.builds(Candidate, st.integers(2, 12)), st.integers(1, 3), st.integers(0, 9)
)


@given(
    st.lists(sound, max_size=30).flatmap(lambda r: st.tuples(st.just(r), st.permutations(r))),
    st.integers(1, 12),
)
def test_what_is_known_does_not_depend_on_the_order_of_rumours(
    orders: tuple[list[Entry], list[Entry]], view_size: int
) -> None:
    rumours, shuffled = orders

    def heard(entries: list[Entry]) -> tuple[list[MemberId], dict[MemberId, tuple[int, int]]]:
        circle = Circle(GossipConfig(view_size=view_size), lambda _: True)
        circle.begin(Entry(Candidate(1), 1, 0), salt=99)
        for _ in range(2):  # what made room for another meanwhile may have missed something
            circle.hear(entries, 0.0)
        return circle.view.ids, {e.who.id: (e.incarnation, e.counter) for e in circle.some()}

    assert heard(rumours) == heard(shuffled)
    newest: dict[MemberId, tuple[int, int]] = {1: (1, 0)}
    for rumour in rumours:
        stamp = (rumour.incarnation, rumour.counter)
        newest[rumour.who.id] = max(stamp, newest.get(rumour.who.id, stamp))
    view, known = heard(rumours)
    assert len(view) == min(len(newest), view_size + 1)
    assert known == {member: newest[member] for member in view}


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(1, 20)), max_size=60),
    st.integers(1, 5),
    st.integers(1, 8),
)
def test_nothing_is_had_twice_within_its_lifetime(
    story: list[tuple[int, int, int]], origins: int, width: int
) -> None:
    memory = Memory(origins, width, lifetime=10.0)
    had: dict[tuple[int, int, int], float] = {}
    for now, mid in enumerate(story):
        if memory.take(mid, float(now)):
            assert now - had.get(mid, -100.0) > 10.0
            had[mid] = now
        assert not memory.fresh(mid) or len(memory) == origins
        assert len(memory) <= origins


@given(st.lists(st.lists(st.integers(0, TOP), min_size=4, max_size=4), min_size=1, max_size=8))
def test_minima_merge_in_any_order_to_the_same_size(vectors: list[list[int]]) -> None:
    def merged(order: list[list[int]]) -> Sizing:
        sizing, rng = Sizing(4, 100.0), Stream(1)
        sizing.begin(0.0, rng)
        for vector in order:
            sizing.hear(1.0, rng, 1, tuple(vector), None)
        return sizing

    one, other = merged(vectors), merged(vectors[::-1] * 2)
    assert one.codes == other.codes
    assert one.estimate == other.estimate == max(1.0, size_of(one.codes))
