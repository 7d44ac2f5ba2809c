"""The election by committees as a whole, message by message in the simulator."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hustings.core.choice import HighestId, MemberId, candidate
from hustings.core.errors import BadInput
from hustings.core.outcome import Elected, GaveUp
from hustings.protocols.committee.agreement import tolerated
from hustings.protocols.committee.bits import SlateMsg
from hustings.protocols.committee.election import Committee
from hustings.protocols.committee.settings import CommitteeConfig
from hustings.sim.world import Ended, World
from tests.unit.protocols.committee_groups import Played, play


def all_is_well(played: Played) -> None:
    """One leader, whom everybody knows, and who alone takes itself for it."""
    leader = played.leader
    assert leader is not None
    assert played.leading == [leader]
    assert played.informed == 1.0
    outcomes = [member.outcome for member in played.world.live()]
    assert outcomes == [Elected(leader, 1)] * len(outcomes)
    assert len({election.rounds for election in played.elections.values()}) == 1


# Where all are good


@pytest.mark.parametrize(
    "n, given",
    [
        (16, {}),
        (17, {"profile": "robust", "path": 8}),
        (24, {"profile": "high-b", "path": 8}),
        (2, {"profile": "single"}),
        (30, {"profile": "single", "size": 7}),
        (4, {"profile": "printed"}),
        (13, {"profile": "printed"}),
        (40, {"profile": "printed", "c0": 5, "d0": 2, "layers": "4:4:1", "tau": 64}),
        (48, {"c0": 4, "layers": "4:4:1", "path": 8}),
        (48, {"c0": 4, "layers": "4:4:1,2:2:1", "path": 8}),
        (40, {"c0": 4, "layers": "2:3:1,2:3:1,2:2:1", "path": 4}),
        (36, {"c0": 4, "layers": "3:5:1", "d0": 2, "monitors": 1, "fan": 1, "path": 4}),
        (30, {"c0": 5, "layers": "none", "path": 4}),
        (24, {"endgame": "baton", "r_end": 6}),
        (24, {"endgame": "feige"}),
        (24, {"endgame": "full", "path": 5}),
        (24, {"endgame": "small", "r_end": 3, "path": 5}),
        (32, {"bins": "oneshot", "layers": "4:4:2", "path": 5}),
        (20, {"final": "printed", "poll": 5, "path": 5}),
    ],
)
def test_without_bad_members_all_goes_well(n: int, given: dict[str, Any]) -> None:
    for seed in (1, 2):
        all_is_well(play(n, seed, **given))


@settings(deadline=None, max_examples=15)
@given(
    n=st.integers(16, 36),
    c0=st.integers(2, 6),
    d0=st.integers(1, 2),
    q=st.integers(2, 3),
    more=st.integers(0, 1),
    h=st.integers(1, 2),
    endgame=st.sampled_from(["full", "small", "baton", "feige"]),
    bins=st.sampled_from(["halving", "oneshot"]),
    seed=st.integers(0, 99),
)
def test_any_knobs_will_do(
    n: int, c0: int, d0: int, q: int, more: int, h: int, endgame: str, bins: str, seed: int
) -> None:
    given: dict[str, Any] = {
        "c0": c0,
        "d0": d0,
        "layers": f"{q}:{q + more}:{h}",
        "endgame": endgame,
        "bins": bins,
        "path": 3,
        "r_end": 5,
        "network_seed": seed,
    }
    try:
        CommitteeConfig.parse({"N": n, **given})
    except BadInput:
        return  # told in a sentence: not such a network
    all_is_well(play(n, seed, **given))


def test_a_group_of_more_than_a_hundred() -> None:
    """The largest ones that are played message by message."""
    all_is_well(play(128, 3, r_end=8, path=4, layers="4:4:3"))


def test_the_same_seed_plays_the_same_election() -> None:
    def traces(seed: int, **given: Any) -> list[object]:
        played = play(24, seed, b=0.2, path=6, **given)
        return [
            (member, election.result(), election.bits, election.said, election.wire)
            for member, election in played.elections.items()
        ]

    assert traces(5) == traces(5)
    assert traces(5) != traces(6)
    assert traces(5) != traces(5, network_seed=1)


def test_contexts_are_not_kept() -> None:
    all_is_well(play(16, 1, debug=True, path=3))


def test_one_who_comes_back_gives_up() -> None:
    config = CommitteeConfig.parse({"N": 16, "path": 3})
    world = World(
        lambda: Committee(config, HighestId()), [candidate(each) for each in range(1, 17)], seed=1
    )
    world.start()
    world.run(until=21.0)
    ctx = world.member(3)
    world.revive(ctx)
    world.invoke(ctx, ctx.election.start)
    assert world.run() is Ended.QUIESCENT
    assert isinstance(ctx.outcome, GaveUp)


def test_what_is_too_large_is_refused_before_anything_is_sent() -> None:
    config = CommitteeConfig.parse({"N": 300})
    world = World(
        lambda: Committee(config, HighestId()), [candidate(each) for each in range(300)], seed=1
    )
    with pytest.raises(BadInput, match="take --engine fast"):
        world.start()
    assert not any(world.sent.values())


# What it costs


def agreement_bits(k: int, instances: int) -> int:
    """All bits of one agreement of k on single bits, worked out from the rules."""
    if k <= 16:
        t = tolerated(k)
        return (t + 1) * (k * (k - 1) * (1 + 2) + (k - 1)) * instances
    total = 0
    for half in (k - k // 2, k // 2):
        total += (k * (k - 1) * (1 + 2) + half * (k - 1)) * instances
        total += agreement_bits(half, instances)
    return total


def test_every_bit_is_accounted_for() -> None:
    """Layer, lists, path, word, question: the sum over all members, to the bit."""
    played = play(40, 4, c0=5, layers="4:4:1", endgame="full", path=3, poll=6)
    network = played.network
    label = 6  # bits that tell 40 members apart
    book = {
        index: committee
        for election in played.elections.values()
        for (layer, index), committee in election.book._known.items()
        if layer == 1
    }
    expected = 0
    for voters in network.roster.electorates:
        k = len(voters)
        expected += k * (k - 1) + agreement_bits(k, k)
    sizes = {index: len(members) for index, members in book.items()}
    # Marks on the list of those who took part: 20 bits, and 10 names would be 60.
    marks = {index: len(network.roster.electorates[index]) for index in sizes}
    for subjects in network.hearings[1].values():
        expected += sum(len(sources) * marks[subject] for subject, sources in subjects.items())
    for index, members in book.items():
        others = sum(size for each, size in marks.items() if each != index)
        for member in members:
            asked = len(network.guards[1][index]) - 1  # of at most 8 leaves: all but itself
            assert member in network.guards[1][index]
            expected += asked * (1 + others)
    k = sum(sizes.values())
    assert k == sum(election.in_root for election in played.elections.values())
    expected += 3 * ((k - 1) + agreement_bits(k, 1))
    for node in network.layers[1]:
        below = [member for leaf in node.leaves for member in network.roster.leaves[leaf]]
        told = sum(member != speaker for speaker in book[node.index] for member in below)
        expected += told * label
    expected += 2 * 6  # questions and answers
    assert sum(election.bits for election in played.elections.values()) == expected


def test_messages_are_counted_where_they_are_sent() -> None:
    played = play(20, 1, path=4)
    said = sum(election.said for election in played.elections.values())
    assert said == sum(played.world.sent.values())
    assert set(played.world.sent) == {SlateMsg}
    for election in played.elections.values():
        assert election.wire >= 8 * 4 * election.said  # a tag, a channel, a payload
        assert election.bits < election.wire


def test_only_the_leader_asks() -> None:
    few = play(20, 1, path=4, poll=10)
    all_ask = play(20, 1, path=4, poll=10, final="printed")
    difference = sum(each.said for each in all_ask.elections.values()) - sum(
        each.said for each in few.elections.values()
    )
    assert difference == 19 * 10  # nobody else is answered
    assert all_ask.leading == few.leading


# What a study reads


def test_what_a_study_reads() -> None:
    played = play(24, 1, b=0.2, adversary="honest", path=4)
    standings = {member: election.result() for member, election in played.elections.items()}
    seats: Counter[MemberId] = Counter()
    for index in range(len(played.network.layers[1])):
        for election in played.elections.values():
            if election.book.knows(1, index):
                seats.update(election.book.committee(1, index))
                break
    for member, each in standings.items():
        assert each.seats == (1, seats[member])
        assert each.in_root == (seats[member] > 0)
        assert (each.chosen is not None) == each.in_root
        assert each.silenced == 0
        assert each.believed == played.leader
    assert len(played.scene.bad) == 4
    assert played.elections[1].state().startswith("leader=")
