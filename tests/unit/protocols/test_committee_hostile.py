"""The election by committees with bad members: what they can do, and what is borne."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hustings.core.choice import HighestId, candidate
from hustings.core.outcome import Elected, GaveUp
from hustings.protocols.committee.adversary import BEHAVIOURS
from hustings.protocols.committee.bits import SlateMsg
from hustings.protocols.committee.corruption import CORRUPTIONS
from hustings.protocols.committee.election import Committee
from hustings.protocols.committee.settings import CommitteeConfig
from hustings.sim.world import Ended, World
from tests.unit.protocols.committee_groups import Babble, Played, play


@pytest.mark.parametrize("corruption", CORRUPTIONS)
@pytest.mark.parametrize(
    "n, given",
    [
        (24, {"path": 4}),
        (32, {"c0": 4, "layers": "2:3:1,2:2:1", "d0": 2, "path": 4}),
        (18, {"profile": "single", "size": 7, "path": 4}),
        (16, {"profile": "printed"}),
    ],
)
def test_no_adversary_stops_an_election(corruption: str, n: int, given: dict[str, Any]) -> None:
    """It always ends, in the same round for all, with somebody or nobody."""
    played = play(n, 2, b=0.3, adversary=corruption, **given)
    assert len({election.rounds for election in played.elections.values()}) == 1
    assert len(played.leading) <= n
    for member in played.world.live():
        assert isinstance(member.outcome, Elected | GaveUp)


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_no_behaviour_stops_an_election(behaviour: str) -> None:
    played = play(20, 3, b=0.3, adversary=behaviour, path=4)
    assert all(member.outcome is not None for member in played.world.live())


def test_babble_is_borne() -> None:
    for seed in range(3):
        play(24, seed, b=0.3, voice=Babble(), path=4)
    play(24, 1, b=0.9, experiment=True, voice=Babble(), path=4)
    play(24, 1, b=0.9, experiment=True, c0=3, layers="2:3:1,2:2:1", voice=Babble(), path=4)


@settings(deadline=None, max_examples=10)
@given(data=st.data())
def test_messages_from_nowhere_are_borne(data: st.DataObject) -> None:
    config = CommitteeConfig.parse({"N": 16, "path": 2})
    world = World(
        lambda: Committee(config, HighestId()), [candidate(each) for each in range(1, 17)], seed=1
    )
    world.start()
    for _ in range(30):
        world.run(until=world.now + data.draw(st.integers(0, 4)))
        to = world.member(data.draw(st.integers(1, 16)))
        message = SlateMsg(data.draw(st.integers(0, 40)), data.draw(st.binary(max_size=12)))
        world.receive(to, data.draw(st.integers(-2, 20)), message)
    assert world.run() is Ended.QUIESCENT


def below_a_third(played: Played) -> bool:
    """Whether every committee that agreed had fewer than a third of bad ones."""
    rows = [*played.network.roster.electorates]
    rows.append(tuple(each for each, election in played.elections.items() if election.in_root))
    bad = [sum(played.scene.is_bad(each) for each in row) for row in rows]
    return all(3 * number < len(row) for number, row in zip(bad, rows, strict=True))


@pytest.mark.parametrize("behaviour", ["silent", "noise", "split", "minority", "edge"])
def test_below_a_third_equivocation_does_nothing(behaviour: str) -> None:
    """Good members agree on one leader, and all of them know it, whatever is said in agreement."""
    honest = 0
    for seed in range(4):
        played = play(
            32, seed, b=0.1, adversary=behaviour, c0=8, layers="2:2:1", endgame="full", path=4
        )
        if below_a_third(played):
            honest += 1
            assert played.leader is not None
            assert played.informed == 1.0
            expected = [] if played.scene.is_bad(played.leader) else [played.leader]
            assert played.leading == expected
    assert honest >= 2


def test_a_third_in_every_electorate_ends_agreement() -> None:
    """Split, with just over a third everywhere: good members of the root do not agree."""
    disagreed = 0
    for seed in range(4):
        played = play(
            32,
            seed,
            b=0.45,
            experiment=True,
            adversary="random+split",
            endgame="full",
            path=4,
            network_seed=0,
        )
        disagreed += len(played.chosen) > 1
    assert disagreed >= 3


def test_packing_raises_the_share_of_the_bad() -> None:
    share = {"pack": 0.0, "honest": 0.0}
    for behaviour in share:
        for seed in range(6):
            played = play(64, seed, b=0.2, adversary=behaviour, r_end=2, path=1, network_seed=seed)
            share[behaviour] += played.root_bad / 6
    assert share["honest"] < 0.27
    assert share["pack"] > share["honest"] + 0.05


def test_lies_hit_those_below_broken_nodes_only() -> None:
    """One committee has a lying majority: members under it are misled, all others informed."""
    misled = told = 0
    for seed in range(4):
        first = play(48, seed, c0=4, layers="4:4:1", path=4, network_seed=0)  # whom would it elect?
        committee = next(
            election.book.committee(1, 0)
            for election in first.elections.values()
            if election.book.knows(1, 0)
        )
        bad = committee[: len(committee) // 2 + 1]
        if first.leader in bad:
            continue
        played = play(
            48,
            seed,
            c0=4,
            layers="4:4:1",
            path=4,
            b=0.1,
            adversary="lie",
            bad=bad,
            network_seed=0,
        )
        assert played.leader == first.leader  # lies come after agreement
        under = [
            member
            for leaf in played.network.layers[1][0].leaves
            for member in played.network.roster.leaves[leaf]
        ]
        for member, each in played.good.items():
            right = each.believed == played.leader
            if member in under and not each.in_root:
                misled += not right
            else:
                assert right, member
                told += 1
    assert misled > 10
    assert told > 60


def test_several_leaves_outvote_a_broken_one() -> None:
    """Step 8: with four leaves each, liars over a few leaves mislead hardly anybody."""
    played = play(32, 1, profile="robust", b=0.15, adversary="leaf+lie", path=4)
    assert played.leader is not None
    assert played.informed >= 0.85


def test_flooding_and_claiming_do_nothing() -> None:
    plain = play(24, 1, b=0.2, adversary="honest", path=4)
    for words in ("flood", "claim", "flood+claim"):
        played = play(24, 1, b=0.2, adversary=words, path=4)
        assert played.leader == plain.leader
        assert played.leading == plain.leading
        assert played.informed == plain.informed == 1.0


def test_experiments_beyond_a_third_end() -> None:
    played = play(24, 1, b=0.6, experiment=True, path=4)
    assert played.informed < 1.0
