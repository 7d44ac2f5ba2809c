"""Gupta, van Renesse, Birman 2000, section 3: what its sentences say of whole groups."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product

import pytest

from hustings.core.choice import Candidate, HighestId, MemberId
from hustings.core.messages import Message
from hustings.core.outcome import Elected, NoLeader, Outcome
from hustings.protocols.probabilistic import messages
from hustings.protocols.probabilistic.election import NONE_NAMED, Probabilistic
from hustings.protocols.probabilistic.messages import FinalMsg, InitMsg, PreferMsg
from hustings.protocols.probabilistic.settings import ProbabilisticConfig
from hustings.sim.delay import Delay, Fixed, Uniform
from hustings.sim.faults import Alive, Call, Crash, Heal, Partition, Suspect, schedule
from hustings.sim.member import SimContext
from hustings.sim.network import Network
from hustings.sim.world import Ended, World

Views = dict[MemberId, list[MemberId]]


def inside(world: World, member: MemberId) -> Probabilistic:
    """A member's election."""
    election = world.members[member].election
    assert isinstance(election, Probabilistic)
    return election


class Ear:
    """Writes down what is sent and what is declared, and when."""

    def __init__(self) -> None:
        self.said: list[tuple[float, MemberId, Message]] = []
        self.declarations: list[tuple[float, MemberId, Outcome]] = []

    def sent(self, world: World, member: SimContext, to: MemberId | None, message: Message) -> None:
        self.said.append((world.now, member.id, message))

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        self.declarations.append((world.now, member.id, outcome))

    def changed(self, world: World, member: SimContext) -> None:
        """Who comes and goes is known."""

    def inits(self, number: int) -> list[tuple[float, MemberId]]:
        return [
            (at, who) for at, who, it in self.said if isinstance(it, InitMsg) and it.round == number
        ]

    def finals(self, number: int = 1) -> dict[MemberId, MemberId]:
        return {
            who: it.best.id
            for _, who, it in self.said
            if isinstance(it, FinalMsg) and it.round == number
        }


def group(
    n: int,
    *,
    delay: Delay | None = None,
    views: Views | None = None,
    seed: int = 0,
    **settings: object,
) -> tuple[World, Ear]:
    config = ProbabilisticConfig.parse({"N": n, **settings})
    world = World(
        lambda: Probabilistic(config, HighestId()),
        [Candidate(each) for each in range(1, n + 1)],
        seed=seed,
        network=Network(delay=delay or Fixed(1.0)),
        views=views,
        debug=True,
    )
    ear = Ear()
    world.listen_in(ear)
    world.watch(ear)
    world.start()
    return world, ear


def held(world: World) -> Counter[str]:
    return Counter(str(member.outcome) for member in world.live())


def called(world: World, *callers: MemberId) -> World:
    for caller in callers:
        world.tell(world.members[caller], "call")
    assert world.run(max_events=500_000) is Ended.QUIESCENT
    return world


# Components of the relay graph


def components(views: Views) -> list[list[MemberId]]:
    """Members that hang together if who knows another one is linked with it."""
    label = {each: each for each in views}
    for _ in views:
        for one, other in combinations(views, 2):
            if other in views[one] or one in views[other]:
                label[one] = label[other] = min(label[one], label[other])
    return [[each for each in views if label[each] == name] for name in sorted(set(label.values()))]


def settle(views: Views, seed: int) -> None:
    """All are relay members, and each names the best that anybody of its component knows."""
    world, ear = group(len(views), views=views, seed=seed, K=4 * len(views), max_rounds=1)
    called(world, 1 + seed % len(views))
    expected = {
        each: max(other for mate in component for other in views[mate])
        for component in components(views)
        for each in component
    }
    assert ear.finals() == expected
    leaders = set(expected.values())
    for member in world.live():
        assert isinstance(member.outcome, Elected) is (len(leaders) == 1)


def some_views(n: int, bits: tuple[int, ...]) -> Views:
    links = iter(bits)
    ids = range(1, n + 1)
    return {me: [other for other in ids if other == me or next(links)] for me in ids}


def test_each_component_elects_exactly_one_leader_in_all_groups_of_three() -> None:
    for seed, bits in enumerate(product((0, 1), repeat=6)):
        settle(some_views(3, bits), seed)


def test_each_component_elects_exactly_one_leader_in_many_groups_of_five() -> None:
    """Sparse views in an order that steps through all of them."""
    for seed in range(200):
        place = seed * 5243 % 2**20
        bits = tuple((place >> bit) & 1 and (place >> (bit * 7 + 3) % 20) & 1 for bit in range(20))
        settle(some_views(5, bits), seed)


# Time-outs


@pytest.mark.parametrize("delay", [Fixed(1.0), Uniform(0.0, 1.0), Uniform(0.9, 1.0), Fixed(0.0)])
def test_e14_nobody_decides_before_the_last_final_is_there(delay: Delay) -> None:
    """Though members begin up to T_3 apart; and all is over when the round is said to be."""
    for seed in range(25):
        world, ear = group(12, delay=delay, seed=seed, K=4, max_rounds=1, strategy="doubling")
        called(world, 1 + seed % 12)
        if ear.finals():
            assert held(world) == {str(Elected(12, 1)): 12}
        last = max(at for at, _, _ in ear.declarations)
        opening = InitMsg(messages.Call(1, 1, 1), 1, 1.0)
        pause, lasts = inside(world, 1).span(opening, 12)
        assert last <= lasts
        assert pause == 0.0


def test_e14_with_the_printed_time_out_some_do() -> None:
    """T_1 = T_2 + T_3: a final may take T_3 from one that began T_3 later."""
    early = 0
    for seed in range(60):
        world, ear = group(12, delay=Uniform(0.0, 1.0), seed=seed, K=1, T_1=2.5, max_rounds=1)
        called(world, 1)
        early += bool(ear.finals()) and any(
            outcome != Elected(12, 1) for _, _, outcome in ear.declarations
        )
    assert early > 0


# Asking again

NOBODY_RELAYS = "0.000001,N"


def test_d20_all_who_notice_may_ask() -> None:
    world, ear = group(40, strategy=NOBODY_RELAYS, thinning="all")
    called(world, 1)
    assert len(ear.inits(2)) == 40
    assert held(world) == {str(Elected(40, 2)): 40}


def test_d20_a_random_wait_leaves_it_to_a_few() -> None:
    asked = []
    for seed in range(10):
        world, ear = group(40, strategy=NOBODY_RELAYS, seed=seed)
        called(world, 1)
        assert held(world) == {str(Elected(40, 2)): 40}
        asked.append(len(ear.inits(2)))
    assert min(asked) >= 1
    assert sum(asked) / 10 < 6


def test_d20_after_the_wait_all_begin_at_once() -> None:
    """Whichever of several copies they have heard; the initiator's clock was T_3 late."""
    world, ear = group(40, strategy=NOBODY_RELAYS, seed=3)
    called(world, 1)
    begun = {at for at, _, it in ear.said if isinstance(it, PreferMsg) and it.round == 2}
    assert max(begun) - min(begun) <= 1.0


def test_d21_whom_the_hash_excludes_holds_nobody_and_asks_nobody() -> None:
    world, ear = group(40, strategy=NOBODY_RELAYS, thinning="hash")
    called(world, 1)
    assert ear.inits(2) == []
    assert held(world) == {str(NoLeader(NONE_NAMED)): 40}


# Several at once, and who is cut off


def test_d9_all_call_at_once_and_there_is_one_election() -> None:
    for delay in (Fixed(1.0), Uniform(0.0, 1.0)):
        world, ear = group(15, delay=delay)
        called(world, *range(1, 16))
        assert held(world) == {str(Elected(15, 1)): 15}
        assert len(ear.inits(1)) == 15


def test_d2_who_hears_nothing_knows_of_nothing() -> None:
    world, _ = group(6)
    schedule(world, [Partition(sides=((6,), (1, 2, 3, 4, 5)))])
    called(world, 1)
    assert held(world) == {str(Elected(6, 1)): 5, "None": 1}


def test_in_a_partition_each_side_has_a_leader_and_a_new_call_ends_it() -> None:
    world, _ = group(6)
    schedule(
        world,
        [
            Partition(sides=((4, 5, 6), (1, 2, 3))),
            Suspect(member=1, about=6),
            Suspect(member=1, about=5),
            Suspect(member=1, about=4),
            Call(member=1, at=1.0),
            Call(member=5, at=1.0),
            Heal(at=100.0),
            *(Alive(member=1, about=other, at=100.0) for other in (4, 5, 6)),
        ],
    )
    assert world.run() is Ended.QUIESCENT
    assert held(world) == {str(Elected(3, 1)): 3, str(Elected(6, 1)): 3}
    called(world, 5)
    assert held(world) == {str(Elected(6, 6)): 6}


def test_who_was_away_for_long_is_told_what_holds() -> None:
    world, ear = group(6)
    schedule(world, [Partition(sides=((2,), (1, 3, 4, 5, 6)))])
    for _ in range(3):
        called(world, 1)
    schedule(world, [Heal(at=world.now)])
    called(world)
    called(world, 2)
    assert held(world) == {str(Elected(6, 11)): 6}
    assert len(ear.inits(1)) == 4


# Failures


def test_e10_a_crashed_leader_is_replaced_by_the_next_best_and_not_by_itself() -> None:
    world, _ = group(8)
    called(world, 3)
    schedule(world, [Crash(member=8, at=world.now)])
    for member in (1, 5):
        schedule(world, [Suspect(member=member, about=8, at=world.now + 2.0)])
    called(world)
    assert held(world) == {str(Elected(7, 6)): 7}


def test_d15_a_leader_that_crashes_unnoticed_is_still_held() -> None:
    world, _ = group(8)
    called(world, 3)
    schedule(world, [Crash(member=8, at=world.now)])
    called(world)
    assert held(world) == {str(Elected(8, 1)): 7}


def test_d14_the_dead_are_elected_if_nobody_suspects_them() -> None:
    world, _ = group(8)
    schedule(world, [Crash(member=8)])
    called(world, 3)
    assert held(world) == {str(Elected(8, 1)): 7}


# What a world is told of rounds


def test_a_round_is_opened_by_its_inits_alone() -> None:
    world, ear = group(9, strategy=NOBODY_RELAYS)
    called(world, 4)
    election = inside(world, 1)
    keys = [election.opens(it) for _, _, it in ear.said]
    opened = [key for key in keys if key is not None]
    assert {key[-1] for key in opened} == {1, 2}
    assert opened == sorted(opened)
    assert len(opened) == len(ear.inits(1)) + len(ear.inits(2))


def test_tallies_count_the_relay_members() -> None:
    world, ear = group(30, K=5, seed=2)
    called(world, 4)
    tallies = [inside(world, member.id).tallies() for member in world.live()]
    assert sum(each["relay_members"] for each in tallies) == len(ear.finals()) > 0
    assert sum(each["relayed"] for each in tallies) == len(ear.finals()) + len(ear.finals(2))
