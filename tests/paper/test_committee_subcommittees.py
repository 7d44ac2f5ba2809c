"""Scalable Leader Election (2006), sections 1.1 and 2: the model, broadcast, subcommittees."""

from __future__ import annotations

from statistics import mean

from hustings.core.choice import HighestId, MemberId
from hustings.core.outcome import Elected
from hustings.core.streams import Stream, derive
from hustings.protocols.committee.agreement import Seat, agreement_rounds, broadcast
from hustings.protocols.committee.bins import lightest, loads, one_shot, padded
from hustings.protocols.committee.misbehaving import Edge, Pack, Silent, Split, packing
from hustings.protocols.committee.single import LightestBin, LightestBinConfig
from tests.unit.protocols.committee_kit import sit, worldly

Members = tuple[MemberId, ...]


def ids(members: int) -> Members:
    return tuple(range(1, members + 1))


# Section 1.1, "The model"


def test_a_bad_processor_may_tell_everybody_something_else_and_all_take_the_same_word() -> None:
    """What the harder model adds is equivocation; send-to-all and agreement take it away again."""
    members = ids(10)
    bad = (1, 2, 3)
    for liar in (Split(), Edge(), Silent()):
        scripts = {each: broadcast(Seat(each, members), members, each % 4, 4) for each in members}
        sat = sit(scripts, bad, liar)
        assert sat.agreed
        for sender, word in zip(members, sat.good[0], strict=True):
            assert sender in bad or word == sender % 4


# Section 2, "Subcommittee elections"


def test_agreement_takes_rounds_linear_in_the_committee() -> None:
    """The paper's reference needs O(k) rounds; ours takes at most 1.5 k and 3."""
    for k in (4, 10, 16, 17, 50, 64, 100, 128, 1000, 1024):
        assert agreement_rounds(k) <= 1.5 * k + 3, k
        assert agreement_rounds(k, "king") <= k + 2


def test_every_processor_is_in_the_bin_it_chose_and_the_lightest_is_returned() -> None:
    """Steps 1 to 5 of ELECT-SUBCOMMITTEE, without the padding: all return the same S_B."""
    members = ids(16)
    bad = (1, 6, 11, 16)
    scripts = {each: one_shot(Seat(each, members), 4, Stream(derive(2, each))) for each in members}
    sat = sit(scripts, bad, Pack())
    assert sat.agreed
    chosen = sat.good[0]
    thrown = {each: Stream(derive(2, each)).below(4) for each in members if each not in bad}
    bins = {thrown[each] for each in chosen if each not in bad}
    assert len(bins) <= 1
    assert 1 <= len(chosen) <= 4


def test_padding_arbitrarily_can_undo_the_election() -> None:
    """Step 4 as printed. We deviate: nobody is added, since the adversary may be the one added."""
    rng = Stream(5)
    with_it, without = [], []
    k, bins, bad = 96, 8, 16  # the bad have the lowest ids
    for _ in range(60):
        choices = [rng.below(bins) for _ in range(k - bad)]
        choices = [*packing(loads(choices, bins), bad), *choices]
        won = lightest(choices, bins)
        chosen = tuple(each for each in range(k) if choices[each] == won)
        without.append(mean(each < bad for each in chosen))
        size = 2 * k // bins
        with_it.append(mean(each < bad for each in padded(chosen, range(k), size)))
    assert mean(with_it) > mean(without) + 0.1
    assert mean(with_it) > 1 / 2


def test_heavyweight_elects_one_whom_all_good_processors_know() -> None:
    """Lemma 2.1, as far as it is certain: one leader, the same for all good ones."""
    bad = (1, 4, 7)
    seen = set()
    for seed in range(6):
        world, _ = worldly(
            lambda: LightestBin(LightestBinConfig(halvings=0, style="feige"), HighestId()),
            10,
            bad,
            Pack(),
            seed=seed,
        )
        outcomes = {world.members[each].outcome for each in ids(10) if each not in bad}
        assert len(outcomes) == 1
        (outcome,) = outcomes
        assert isinstance(outcome, Elected)
        seen.add(outcome.leader)
    assert len(seen) > 1
