"""Bad members: they speak last, know all, stay in step, and change nobody's words but their own."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hustings.core.choice import HighestId, MemberId, candidate
from hustings.core.streams import Stream
from hustings.protocols.committee.agreement import Seat, agree_on, broadcast
from hustings.protocols.committee.bits import Bits, SlateMsg, planes_of_bits, values_of
from hustings.protocols.committee.lockstep import Lockstep, Outbox, Spoken, Stage
from hustings.protocols.committee.misbehaving import (
    BEHAVIOURS,
    AdversaryScene,
    Edge,
    Honest,
    Minority,
    Noise,
    Pack,
    Silent,
    Split,
    Traitor,
    Voice,
    infiltrated,
)
from hustings.protocols.committee.single import Agreement, AgreementConfig
from hustings.sim.delay import Fixed, Uniform
from hustings.sim.member import SimContext
from hustings.sim.network import Network
from hustings.sim.world import Ended, World
from tests.unit.protocols.committee_kit import sit, worldly

BAD = (1, 4, 7)


def ids(members: int) -> tuple[MemberId, ...]:
    return tuple(range(1, members + 1))


def ten(**settings: object) -> Agreement:
    return Agreement(AgreementConfig.parse(settings), HighestId())


def agreement(scene: AdversaryScene, member: MemberId) -> Agreement:
    it = scene.members[member]
    assert isinstance(it, Agreement)
    return it


# Traitors


class Witness:
    """Behaves, and writes down when it was asked what, and what the good ones had said by then."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, MemberId, str, int]] = []

    def speak(self, scene: AdversaryScene, member: MemberId, mine: Spoken) -> Outbox:
        words = [spoken for spoken in scene.good(mine).values() if spoken.outbox]
        self.asked.append((scene.round, member, mine.stage.kind, len(words)))
        return mine.outbox


def test_bad_members_speak_when_all_good_ones_have_spoken() -> None:
    witness = Witness()
    worldly(ten, 10, BAD, witness)
    rounds = 3 * 4
    assert [entry[:2] for entry in witness.asked] == [
        (number, member) for number in range(1, rounds + 1) for member in BAD
    ]
    for _, _, kind, words in witness.asked:
        assert words == (7 if kind != "king" else words)
    kings = [words for _, member, kind, words in witness.asked if kind == "king" and member == 1]
    assert kings == [0, 1, 1, 0]  # members 1, 2, 3, 4 in turn, of whom 1 and 4 are bad


def test_they_rush_and_still_come_in_time() -> None:
    """Half a delta after the good ones, and nothing they say is lost."""
    scene = AdversaryScene(BAD, Stream(0))
    people = [candidate(each) for each in ids(10)]
    world = World(lambda: Traitor(ten(), Honest(), scene), people)
    world.start()
    moments: dict[float, set[MemberId]] = {}
    plain = SlateMsg.__name__

    class Ear:
        def sent(self, world: World, member: SimContext, to: MemberId | None, what: object) -> None:
            assert type(what).__name__ == plain
            moments.setdefault(world.now, set()).add(member.id)

    world.listen_in(Ear())
    assert world.run() is Ended.QUIESCENT
    assert moments[0.5] == set(BAD)
    assert moments[2.0] == set(ids(10)) - set(BAD)
    assert moments[2.5] == set(BAD)
    bare = World(ten, people)
    bare.start()
    bare.run()
    for each in ids(10):
        it = bare.members[each].election
        assert isinstance(it, Agreement)
        assert agreement(scene, each).result() == it.result()
        assert agreement(scene, each).bits == it.bits


@pytest.mark.parametrize("network", [Network(delay=Fixed(0.25)), Network(delay=Uniform(0.1, 1.0))])
def test_faster_networks_change_nothing(network: Network) -> None:
    people = [candidate(each) for each in ids(10)]
    results = []
    for each in (Network(), network):
        scene = AdversaryScene(BAD, Stream(0))
        world = World(infiltrated(ten, Split(), scene), people, network=each)
        world.start()
        assert world.run() is Ended.QUIESCENT
        results.append([agreement(scene, member).result() for member in ids(10)])
    assert results[0] == results[1]


@pytest.mark.parametrize("liar", [Split, Minority, Edge, Silent], ids=lambda kind: kind.name)
def test_a_committee_in_memory_is_one_in_a_world(liar: type[Voice]) -> None:
    for debug in (False, True):
        _, scene = worldly(lambda: ten(instances=4), 10, BAD, liar(), seed=5, debug=debug)
        members = ids(10)
        scripts = {
            each: agree_on(Seat(each, members), agreement(scene, each).inputs, 2)
            for each in members
        }
        sat = sit(scripts, BAD, liar(), seed=5)
        assert len({agreement(scene, each).inputs for each in members}) > 5
        for each in members:
            assert agreement(scene, each).result() == tuple(sat.results[each])
            assert agreement(scene, each).bits == sat.bits[each]


def test_the_same_seed_makes_the_same_run() -> None:
    def run(seed: int) -> list[object]:
        _, scene = worldly(lambda: ten(instances=3), 10, BAD, Noise(), seed=seed)
        members = [agreement(scene, each) for each in ids(10)]
        return [(it.inputs, it.result(), it.bits, it.wire) for it in members]

    assert run(3) == run(3)
    assert run(3) != run(4)


class Anything:
    """Words of any length to anybody, members or not."""

    def __init__(self, words: Sequence[tuple[MemberId, int, int]]) -> None:
        self.words = words

    def speak(self, scene: AdversaryScene, member: MemberId, mine: Spoken) -> Outbox:
        return {to: Bits(value % (1 << length), length) for to, value, length in self.words}


@given(st.lists(st.tuples(st.integers(-3, 12), st.integers(0, 1 << 70), st.integers(0, 70))))
@settings(max_examples=15, deadline=None)
def test_a_world_survives_anything_that_bad_members_say(
    words: list[tuple[MemberId, int, int]],
) -> None:
    _, scene = worldly(lambda: ten(instances=2), 7, (2, 5), Anything(words))
    good = [agreement(scene, each) for each in ids(7) if each not in (2, 5)]
    assert len({it.result() for it in good}) == 1


# Scenes and behaviours


def puppets(
    bad: Sequence[MemberId], said: dict[MemberId, int], stage: Stage
) -> tuple[AdversaryScene, Spoken]:
    """A scene in which good members say this, and what a bad one would say: zeros."""
    scene = AdversaryScene(bad, Stream(1))
    length = stage.width * stage.count
    for member in stage.members:
        it = Lockstep(AgreementConfig(), HighestId())
        it.spoken = {
            3: Spoken(
                stage,
                {to: Bits(said.get(member, 0), length) for to in stage.members if to != member},
            )
        }
        scene.members[member] = it
    outbox = {to: Bits(0, length) for to in stage.members if to not in bad[:1]}
    return scene, Spoken(stage, outbox, 3)


VOTE = Stage("vote", width=1, count=1, options=2, members=ids(7), bears=2)
PROPOSE = Stage("propose", width=2, count=1, options=3, members=ids(7), bears=2)


def said(voice: Voice, scene: AdversaryScene, mine: Spoken) -> list[int]:
    """What member 7 tells members 1 to 5."""
    outbox = voice.speak(scene, 7, mine)
    return [outbox[to].value for to in range(1, 6)]


def test_split_tells_each_camp_something_else() -> None:
    scene, mine = puppets((7, 6), {1: 1, 2: 1, 3: 1}, VOTE)
    assert said(Split(), scene, mine) == [1, 0, 1, 0, 1]
    assert said(Minority(), scene, mine) == [0] * 5


@pytest.mark.parametrize("ones, lifted", [(2, 0), (3, 1), (4, 1), (5, 0)])
def test_edge_lifts_where_two_votes_make_the_difference(ones: int, lifted: int) -> None:
    """k - t = 5: with three or four good votes the two bad ones decide who sees five."""
    votes = {member: int(member <= ones) for member in range(1, 6)}
    if ones == 2:  # now 0 leads with three, and can be lifted
        votes = {1: 0, 2: 0, 3: 0, 4: 1, 5: 1}
        scene, mine = puppets((7, 6), votes, VOTE)
        assert said(Edge(), scene, mine) == [0, 1, 0, 1, 0]
        return
    scene, mine = puppets((7, 6), votes, VOTE)
    assert said(Edge(), scene, mine) == ([1, 0, 1, 0, 1] if lifted else [0] * 5)


@pytest.mark.parametrize(
    "number, lifted", [(0, False), (1, True), (2, True), (3, True), (5, False)]
)
def test_edge_knows_both_thresholds_of_proposals(number: int, lifted: bool) -> None:
    """More than t = 2 to adopt, k - t = 5 to be sure."""
    scene, mine = puppets((7, 6), {member: 2 * (member <= number) for member in ids(5)}, PROPOSE)
    words = said(Edge(), scene, mine)
    if lifted:
        assert words == [2, 0, 2, 0, 2]
    else:
        assert words[1] == words[3] == 0
        assert 2 not in words or number == 0


def test_who_is_no_king_says_nothing() -> None:
    """A behaviour replaces words; it invents none where the honest script is silent."""
    stage = Stage("king", width=1, count=1, options=2, members=ids(7), bears=2)
    for kind in BEHAVIOURS:
        scene, _ = puppets((7, 6), {}, stage)
        assert kind().speak(scene, 7, Spoken(stage, {}, 3)) == {}


def test_other_stages_are_left_alone() -> None:
    stage = Stage("report", width=3, count=2, options=8, members=ids(7))
    scene, mine = puppets((7, 6), {}, stage)
    for kind in (Honest, Split, Minority, Edge, Pack):
        assert kind().speak(scene, 7, mine) == mine.outbox
    assert Silent().speak(scene, 7, mine) == {}
    noise = Noise().speak(scene, 7, mine)
    assert {to: bits.length for to, bits in noise.items()} == dict.fromkeys(mine.outbox, 6)
    assert len({bits.value for bits in noise.values()}) > 1


def test_pack_sees_the_bins_of_all_good_ones() -> None:
    stage = Stage("bin", width=1, count=1, options=2, members=ids(9), about=ids(9))
    scene, mine = puppets((7, 8, 9), {1: 1, 2: 1, 3: 1, 4: 1, 5: 0, 6: 0}, stage)
    moves = [Pack().speak(scene, member, mine)[1].value for member in (7, 8, 9)]
    assert moves == [0, 0, 1]  # two to four: with two more bin 0 is as light as bin 1, and first
    stage = Stage("bin", width=1, count=1, options=2, members=ids(9), about=ids(6))
    scene, mine = puppets((7,), {}, stage)
    assert Pack().speak(scene, 7, mine) == mine.outbox  # not a candidate


def test_plans_are_made_once_a_round() -> None:
    scene, mine = puppets((7, 6), {}, VOTE)
    made = []

    def plan() -> int:
        made.append(1)
        return len(made)

    assert [scene.once("x", mine, plan) for _ in range(3)] == [1, 1, 1]
    scene.turn(1)
    assert scene.once("x", mine, plan) == 2
    assert scene.once("y", mine, plan) == 3


def test_only_the_good_of_the_same_stage_are_seen() -> None:
    scene, mine = puppets((7, 6), {}, VOTE)
    assert list(scene.good(mine)) == [1, 2, 3, 4, 5]
    scene.members[2].spoken = {3: Spoken(PROPOSE, {})}
    scene.members[3].spoken = {4: mine}
    assert list(scene.good(mine)) == [1, 4, 5]


def test_noise_reaches_every_bit() -> None:
    stage = Stage("vote", width=1, count=100, options=2, members=ids(7))
    scene, mine = puppets((7,), {}, stage)
    ones = 0
    for _ in range(20):
        for bits in Noise().speak(scene, 7, mine).values():
            assert bits.value < 1 << 100
            ones |= bits.value
    assert ones == (1 << 100) - 1


def test_split_tells_two_stories_in_a_broadcast() -> None:
    told: dict[MemberId, list[int]] = {}

    class Spy(Split):
        def speak(self, scene: AdversaryScene, member: MemberId, mine: Spoken) -> Outbox:
            outbox = super().speak(scene, member, mine)
            if mine.stage.kind == "send":
                words = [planes_of_bits(bits, 2, 1) for bits in outbox.values()]
                told[member] = [values_of(each or (), 1)[0] for each in words]
            return outbox

    scripts = {each: broadcast(Seat(each, ids(7)), (2, 3), 2, 3) for each in ids(7)}
    sat = sit(scripts, (3, 5), Spy())
    assert sorted(set(told[3])) == [0, 1]
    assert told[5] == []  # not a sender
    assert sat.agreed
    assert sat.good[0][0] == 2
