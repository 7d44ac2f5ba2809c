"""Agreement of the whole group by an elected set, and a coin that the leader throws."""

from __future__ import annotations

from typing import Any

import pytest

from hustings.core.errors import BadInput
from hustings.core.outcome import Elected, GaveUp
from hustings.protocols.committee.election import Committee
from hustings.protocols.committee.extensions import (
    CommonCoin,
    GroupAgreement,
    GroupAgreementConfig,
)
from tests.unit.protocols.committee_groups import Babble, Played, play


def decided(played: Played) -> set[int | None]:
    """What good members take to be decided."""
    found = set()
    for member, election in played.elections.items():
        assert isinstance(election, GroupAgreement)
        if not played.scene.is_bad(member):
            found.add(election.verdict().decided)
    return found


def coins(played: Played) -> set[int | None]:
    found = set()
    for member, election in played.elections.items():
        assert isinstance(election, CommonCoin)
        if not played.scene.is_bad(member):
            found.add(election.coin)
    return found


@pytest.mark.parametrize("given", [{}, {"deciders": 4}, {"profile": "single", "size": 9}])
def test_all_decide_what_all_wanted(given: dict[str, Any]) -> None:
    played = play(24, 1, GroupAgreement, input="same", **given)
    assert decided(played) == {1}
    assert {member.outcome for member in played.world.live()} == {Elected(24, 1)}
    assert len({election.rounds for election in played.elections.values()}) == 1


def test_all_decide_the_same_where_they_differ() -> None:
    seen = set()
    for seed in range(6):
        played = play(24, seed, GroupAgreement, input="random", deciders=5)
        (bit,) = decided(played)
        seen.add(bit)
        wanted = {
            election.verdict().wanted
            for election in played.elections.values()
            if isinstance(election, GroupAgreement) and election.in_set
        }
        assert bit in wanted
    assert seen == {0, 1}


def test_split_wishes() -> None:
    played = play(24, 1, GroupAgreement, input="split", deciders=6)
    wishes = {}
    for member, election in played.elections.items():
        assert isinstance(election, GroupAgreement)
        wishes[member] = election.wanted
    assert [member for member, wish in wishes.items() if wish] == list(range(13, 25))
    assert len(decided(played)) == 1


def test_a_set_that_is_two_thirds_good_decides_for_all_in_spite_of_liars() -> None:
    good = 0
    for seed in range(5):
        played = play(
            48,
            seed,
            GroupAgreement,
            input="same",
            b=0.1,
            adversary="random+split+lie",
            c0=8,
            layers="3:3:1",
        )
        bad = [
            sum(played.scene.is_bad(each) for each in voters) * 3 >= len(voters)
            for voters in played.network.roster.electorates
        ]
        if not any(bad):
            good += 1
            assert decided(played) == {1}
    assert good >= 4


def test_a_coin_that_all_see() -> None:
    seen = []
    for seed in range(12):
        played = play(16, seed, CommonCoin, path=3)
        assert played.leading == [played.leader]
        assert played.informed == 1.0
        (coin,) = coins(played)
        assert coin is not None
        seen.append(coin)
    assert 2 <= sum(seen) <= 10  # 12 fair coins: outside with probability 0.0064


def test_a_coin_among_liars() -> None:
    alike = 0
    for seed in range(5):
        played = play(
            40, seed, CommonCoin, path=3, b=0.1, adversary="random+split+lie", c0=10, layers="2:2:1"
        )
        if played.informed == 1.0:
            alike += 1
            assert len(coins(played)) == 1
    assert alike >= 3


@pytest.mark.parametrize("kind", [GroupAgreement, CommonCoin])
def test_they_bear_babble(kind: type[Committee]) -> None:
    played = play(24, 1, kind, b=0.4, experiment=True, voice=Babble(), path=3)
    for member in played.world.live():
        assert isinstance(member.outcome, Elected | GaveUp)


def test_settings_of_their_own() -> None:
    assert GroupAgreementConfig.parse({"deciders": 7}).deciders == 7
    with pytest.raises(BadInput, match="deciders must be a whole number >= 1"):
        GroupAgreementConfig.parse({"deciders": 0})
    with pytest.raises(BadInput, match="input must be one of random, same, split"):
        GroupAgreementConfig.parse({"input": "mine"})
