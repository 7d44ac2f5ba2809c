"""The two elections of one committee: settings, what they declare, what they cost in a world."""

from __future__ import annotations

from functools import partial

import pytest

from hustings.core.choice import HighestId, MemberId
from hustings.core.errors import BadInput
from hustings.core.outcome import Elected
from hustings.protocols.committee.agreement import agreement_rounds, broadcast_rounds
from hustings.protocols.committee.misbehaving import Edge, Honest, Pack, Silent, Split, Voice
from hustings.protocols.committee.single import (
    Agreement,
    AgreementConfig,
    LightestBin,
    LightestBinConfig,
)
from tests.unit.protocols.committee_kit import worldly


def agreement(**settings: object) -> Agreement:
    return Agreement(AgreementConfig.parse(settings), HighestId())


def bins(**settings: object) -> LightestBin:
    return LightestBin(LightestBinConfig.parse(settings), HighestId())


@pytest.mark.parametrize("protocol", ["king", "recursive"])
@pytest.mark.parametrize("wanted", ["random", "same", "split"])
@pytest.mark.parametrize("liar", [Split, Edge], ids=lambda kind: kind.name)
def test_all_good_members_declare_the_same(protocol: str, wanted: str, liar: type[Voice]) -> None:
    n, bad = 19, (1, 2, 3, 4, 5, 6)
    world, scene = worldly(lambda: agreement(protocol=protocol, input=wanted), n, bad, liar())
    good = [each for each in scene.members if each not in bad]
    decided = set()
    for each in good:
        it = scene.members[each]
        assert isinstance(it, Agreement)
        result = it.result()
        assert result is not None
        decided.add(result)
        assert world.members[each].outcome == Elected((1, n)[result[0]], 1)
        assert it.rounds == agreement_rounds(n, "king" if protocol == "king" else "recursive")
    assert len(decided) == 1
    if wanted == "same":
        assert decided == {(1,)}
    assert world.now == 2 * scene.members[1].rounds


def test_inputs_are_what_was_asked_for() -> None:
    for wanted, expected in (("same", [1] * 5), ("split", [0, 0, 0, 1, 1])):
        _, scene = worldly(partial(agreement, input=wanted, instances=2), 5)
        inputs = [it.inputs for it in scene.members.values() if isinstance(it, Agreement)]
        assert inputs == [(each, each) for each in expected]
    drawn = set()
    for seed in range(4):
        _, scene = worldly(lambda: agreement(instances=6), 5, seed=seed)
        drawn |= {it.inputs for it in scene.members.values() if isinstance(it, Agreement)}
    assert len(drawn) > 15


def test_bits_and_messages_of_a_member() -> None:
    """Six members bear one liar: two phases; members 1 and 2 are kings."""
    _, scene = worldly(lambda: agreement(instances=4), 6)
    kings = [scene.members[each] for each in (1, 2)]
    others = [scene.members[each] for each in (3, 4, 5, 6)]
    assert {it.said for it in others} == {2 * 2 * 5}
    assert {it.said for it in kings} == {2 * 2 * 5 + 5}
    assert {it.bits for it in others} == {2 * 5 * (1 + 2) * 4}
    assert {it.bits for it in kings} == {2 * 5 * (1 + 2) * 4 + 5 * 4}
    # payloads of one byte with the mark, and of two: 8 bits of 4 proposals and the mark
    sizes = {it.wire for it in others}
    assert len(sizes) == 1
    overhead = (sizes.pop() - 2 * 5 * 8 * (1 + 2)) / (2 * 2 * 5)
    assert overhead == 8 * 10  # an array of tag, channel and bytes: 1 + 6 + 1 + 2


def test_more_liars_than_it_is_made_for_break_it() -> None:
    """Ready for one of ten, and three lie: the thresholds are those of t, not of the size."""
    divided = 0
    for seed in range(6):
        make = partial(agreement, t=1, protocol="king", instances=8)
        _, scene = worldly(make, 10, (1, 2, 3), Split(), seed=seed)
        good = [it for each, it in scene.members.items() if each > 3]
        divided += len({it.result() for it in good if isinstance(it, Agreement)}) > 1
        assert good[0].rounds == 6
    assert divided >= 3


def test_too_many_liars_to_be_ready_for_is_refused_in_a_sentence() -> None:
    with pytest.raises(BadInput, match="t = 3 needs more than 9 members, and there are 9"):
        worldly(lambda: agreement(t=3), 9)
    worldly(lambda: agreement(t=3), 10)
    with pytest.raises(BadInput, match="protocol must be one of king, recursive"):
        AgreementConfig.parse({"protocol": "queen"})
    with pytest.raises(BadInput, match="unknown setting 'halving'"):
        LightestBinConfig.parse({"halving": 2})


def test_how_many_are_bad() -> None:
    assert AgreementConfig().liars(31) == 10
    assert AgreementConfig(t=4).liars(31) == 4
    assert AgreementConfig(t=4, bad=6).liars(31) == 6


def chosen(scene_member: object) -> tuple[MemberId, ...]:
    assert isinstance(scene_member, LightestBin)
    result = scene_member.result()
    assert result is not None
    return result


@pytest.mark.parametrize("liar", [Pack, Split, Silent], ids=lambda kind: kind.name)
def test_a_part_of_the_group_is_elected(liar: type[Voice]) -> None:
    n, bad = 16, (2, 3, 5, 7, 11)
    for settings, most in (({"halvings": 2}, 4), ({"bins": 4}, 4), ({"halvings": 0}, 16)):
        world, scene = worldly(partial(bins, **settings), n, bad, liar(), seed=2)
        results = {chosen(scene.members[each]) for each in scene.members if each not in bad}
        assert len(results) == 1
        (result,) = results
        assert 1 <= len(result) <= most
        assert world.members[1].outcome == Elected(min(result), 1)


@pytest.mark.parametrize("style", ["full", "small", "baton", "feige"])
def test_an_endgame_makes_one_leader(style: str) -> None:
    n, bad = 13, (1, 2, 3)
    world, scene = worldly(
        lambda: bins(halvings=1, style=style, depth=5, r_end=4), n, bad, Pack(), seed=4
    )
    leaders = {world.members[each].outcome for each in range(4, n + 1)}
    assert len(leaders) == 1
    (leader,) = leaders
    assert isinstance(leader, Elected)
    assert leader.leader in chosen(scene.members[5])
    if style == "full":
        assert scene.members[5].rounds == 6 * broadcast_rounds(n)


def test_printed_padding_fills_up_with_the_lowest_ids() -> None:
    _, plain = worldly(lambda: bins(halvings=2), 12, seed=8)
    _, scene = worldly(lambda: bins(halvings=2, pad=6), 12, seed=8)
    without, result = chosen(plain.members[1]), chosen(scene.members[1])
    assert len(without) <= 3
    assert result[: len(without)] == without
    rest = [each for each in range(1, 13) if each not in without]
    assert list(result[len(without) :]) == rest[: 6 - len(without)]


def test_packing_pays() -> None:
    """Over some runs, the elected have more bad ones among them if these pack."""
    shares: list[float] = []
    for liar in (Pack(), Honest()):
        bad = (1, 5, 9, 13)
        found = []
        for seed in range(8):
            _, scene = worldly(lambda: bins(halvings=1), 16, bad, liar, seed=seed)
            result = chosen(scene.members[2])
            found.append(sum(each in bad for each in result) / len(result))
        shares.append(sum(found) / len(found))
    assert shares[0] > shares[1] + 0.08, shares
