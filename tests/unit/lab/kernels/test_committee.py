"""The large-scale committee election: what must hold of every run, and the line it must keep."""

from __future__ import annotations

from math import comb, sqrt
from typing import Any

import msgspec
import numpy as np
import pytest

from hustings.core.errors import BadInput, UnknownName
from hustings.lab.kernels.committee.bins import bad_share_after
from hustings.lab.kernels.committee.corruption import corrupt, sitting
from hustings.lab.kernels.committee.costs import load, most_rounds
from hustings.lab.kernels.committee.endgame import path_value
from hustings.lab.kernels.committee.network import build, grown
from hustings.lab.kernels.committee.play import (
    METRICS,
    CommitteeParameters,
    corrupted,
    memory,
    play,
    seating,
)
from hustings.lab.kernels.counter import root

SMALL = CommitteeParameters(members=1000, c0=16, layers=((16, 16, 1),), poll=64)
ROBUST = msgspec.structs.replace(SMALL, d0=4, layers=((16, 16, 2),))
TWO_LAYERS = CommitteeParameters(members=4096, c0=16, layers=((8, 8, 2), (4, 8, 2)), monitors=6)
KINDS = ("random", "greedy", "cluster", "leaf", "mixed")


def changed(assembly: CommitteeParameters, **fields: Any) -> CommitteeParameters:
    return msgspec.structs.replace(assembly, **fields)


@pytest.mark.parametrize("assembly", [SMALL, ROBUST, TWO_LAYERS, changed(SMALL, single=64)])
@pytest.mark.parametrize("endgame", ["full", "small", "baton", "feige"])
def test_without_bad_members_all_know_a_good_leader(
    assembly: CommitteeParameters, endgame: str
) -> None:
    found = play(changed(assembly, endgame=endgame), 1, 0, 3).metrics
    for name, value in {
        "good_leader": 1.0,
        "informed": 1.0,
        "p_good": 1.0,
        "root_bad": 0.0,
        "broken": 0.0,
        "false_leaders": 0.0,
        "confirmed": 1.0,
    }.items():
        assert found[name] == pytest.approx(value), name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("assembly", [SMALL, ROBUST, TWO_LAYERS])
def test_how_the_work_is_cut_up_does_not_matter(assembly: CommitteeParameters, kind: str) -> None:
    one = changed(assembly, b=0.15, corruption=kind)
    whole = play(one, 5, 0, 6).metrics
    pieces = [play(one, 5, *ends).metrics for ends in ((0, 1), (1, 4), (4, 6))]
    for name in METRICS:
        assert np.array_equal(whole[name], np.concatenate([each[name] for each in pieces])), name
    assert not np.array_equal(whole["bits_mean"], play(one, 6, 0, 6).metrics["bits_mean"])


def test_one_network_or_one_for_each_run() -> None:
    """With a fixed network and given bad members only coins are left to differ."""
    fixed = changed(SMALL, b=0.1, network_seed=7)
    key = grown(root(7), 0)
    one, two = build(fixed, key), build(fixed, key)
    assert np.array_equal(one.seats, two.seats)
    given = changed(fixed, corruption="given")
    bad = np.arange(100)
    broken = play(given, 1, 0, 4, bad).metrics["broken"]
    assert len(np.unique(broken)) == 1


def test_an_adversary_of_ones_own_sees_the_network_that_is_played() -> None:
    """A third of the first node is bad, or one less: one node is broken, or none."""
    one = changed(SMALL, corruption="given", b=0.2)
    leaves, groups = seating(one, 3, 2)
    node = np.concatenate([leaves[leaf] for leaf in groups[0]]).astype(np.int64)
    need = -(-len(node) // 3)
    assert play(one, 3, 2, 3, node[:need]).metrics["broken"][0] == 1 / len(groups)
    assert play(one, 3, 2, 3, node[: need - 1]).metrics["broken"][0] == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_exactly_the_budget_is_corrupted(kind: str) -> None:
    for assembly in (SMALL, ROBUST, TWO_LAYERS):
        one = changed(assembly, b=0.17, corruption=kind)
        state = corrupt(one, build(one, root(3)), root(4))
        assert int(state.sum()) == one.budget == int(0.17 * one.members)


@pytest.mark.parametrize("d0", [1, 4])
def test_everybody_sits_in_d0_leaves_and_nodes_cover_all(d0: int) -> None:
    one = changed(SMALL, d0=d0)
    network = build(one, root(9))
    assert (np.bincount(network.seats, minlength=1000) == d0).all()
    assert set(np.diff(network.cuts).tolist()) <= {16, 17}
    assert sorted(network.layers[0].below.tolist()) == list(range(network.leaves))
    seats = sitting(network, 1000)
    for node in range(network.layers[0].nodes):
        mine = seats.members[seats.start[node] : seats.start[node + 1]]
        leaves = network.layers[0].below[slice(*network.layers[0].start[node : node + 2])]
        apart = [network.seats[network.cuts[leaf] : network.cuts[leaf + 1]] for leaf in leaves]
        assert sorted(mine.tolist()) == sorted(set(np.concatenate(apart).tolist()))


def test_with_signatures_whole_leaves_report() -> None:
    """Three members mislead a monitor too often where three in ten lie; three leaves do not."""
    one = CommitteeParameters(members=10_000, b=0.3, signed=True)
    found = play(one, 5, 0, 3).metrics
    assert (found["informed"] > 0.99).all()
    assert 0.3 < found["root_bad"].mean() < 0.45
    quiet, told = (play(changed(one, b=0.0, signed=signed), 5, 0, 1) for signed in (False, True))
    assert told.metrics["bits_mean"][0] > 1.1 * quiet.metrics["bits_mean"][0]


def test_signatures_hear_no_more_members_than_monitor() -> None:
    """A leaf may be nearly all there is: the reports are then everybody's."""
    few = CommitteeParameters(members=64, c0=16, layers=((2, 2, 1),), fan=9, signed=True)
    more = changed(few, fan=60)
    assert play(few, 1, 0, 2).metrics["bits_mean"][0] == play(more, 1, 0, 2).metrics["bits_mean"][0]


def test_greedy_owns_what_its_budget_can_pay_for() -> None:
    """One leaf each: a node costs a third of its members, and nothing is shared."""
    one = CommitteeParameters(members=10_000, b=0.1, corruption="greedy")
    found = play(one, 1, 0, 3).metrics
    assert (found["broken"] == 6 / 20).all()


@pytest.mark.parametrize("b", [0.05, 0.1])
@pytest.mark.parametrize("members, layers", [(10_000, (16, 16, 2)), (40_000, (32, 32, 3))])
def test_mixed_does_no_less_harm_than_greedy(
    members: int, layers: tuple[int, int, int], b: float
) -> None:
    """With few electorates to own it is greedy; with many it finds something worse."""
    one = CommitteeParameters(members=members, b=b, layers=(layers,))
    greedy, mixed = (
        play(changed(one, corruption=kind), 5, 0, 8).metrics["p_good"]
        for kind in ("greedy", "mixed")
    )
    assert mixed.mean() <= greedy.mean() + 3 * greedy.std() / sqrt(len(greedy))


def test_greedy_gains_by_members_who_sit_in_several_nodes() -> None:
    """Four leaves each: more than the .075 of nodes that the budget owns one by one (b = .1)."""
    one = CommitteeParameters(members=10_000, b=0.1, d0=4, corruption="greedy")
    assert 0.14 <= play(one, 1, 0, 2).metrics["broken"].mean() <= 0.18


def test_aware_corruption_is_worse_than_chance() -> None:
    for assembly in (SMALL, ROBUST):
        chance = play(changed(assembly, b=0.1), 1, 0, 10).metrics["p_good"].mean()
        aware = play(changed(assembly, b=0.1, corruption="greedy"), 1, 0, 10).metrics["p_good"]
        assert aware.mean() < chance - 0.2


def test_more_bad_members_never_help() -> None:
    values = [play(changed(SMALL, b=b), 1, 0, 40).metrics for b in (0.0, 0.05, 0.1, 0.2, 0.3)]
    means = [each["p_good"].mean() for each in values]
    assert means == sorted(means, reverse=True)
    shares = [each["root_bad"].mean() for each in values]
    assert shares == sorted(shares)


def test_a_third_of_the_root_is_too_much() -> None:
    """One committee of 30: with 9 bad the path decides, with 10 nothing good comes of it."""
    one = CommitteeParameters(members=100, single=30, corruption="given", b=0.5)
    nine, ten = (play(one, 1, 0, 2, np.arange(bad)).metrics for bad in (9, 10))
    assert nine["p_good"] == pytest.approx(path_value(9, 30, 128))
    assert nine["informed"] == pytest.approx(1.0)
    for name in ("p_good", "good_leader", "informed"):
        assert (ten[name] == 0.0).all(), name
    signed = changed(one, signed=True)
    assert (play(signed, 1, 0, 2, np.arange(10)).metrics["p_good"] > 0.15).all()


def test_an_owned_node_cannot_name_more_members_than_there_are() -> None:
    """Four leaves each, halved once: nearly all are elected somewhere, so few names are left."""
    one = CommitteeParameters(members=10_000, b=0.1, d0=4, layers=((8, 8, 1),), corruption="greedy")
    found = play(one, 1, 0, 2).metrics
    assert (found["root_size"] <= 10_000).all()
    assert (found["root_bad"] < 0.25).all()


def test_a_leader_is_drawn_with_the_chance_given() -> None:
    runs = 2000
    found = play(CommitteeParameters(members=300, b=0.1, single=100), 3, 0, runs).metrics
    gap = found["good_leader"].mean() - found["p_good"].mean()
    assert abs(gap) < 4 * sqrt(0.25 / runs)


def test_false_leaders_of_the_printed_last_step() -> None:
    """Everybody asks 48, of whom the bad answer: some find more than half bad. By belief, none."""
    one = CommitteeParameters(members=1000, b=0.3, poll=48, single=1000, final="printed")
    printed = play(one, 1, 0, 400).metrics["false_leaders"]
    tail = sum(comb(48, k) * 0.3**k * 0.7 ** (48 - k) for k in range(25, 49))
    assert abs(printed.mean() - 700 * tail) < 4 * printed.std() / sqrt(400)
    mended = play(changed(one, final="conjunction"), 1, 0, 50).metrics["false_leaders"]
    assert (mended == 0.0).all()


def test_where_the_root_falls_misled_members_back_false_leaders() -> None:
    """Each of 60 good ones may find enough of the 40 bad; and some back others, in small camps."""
    one = CommitteeParameters(members=100, single=100, b=0.4, poll=31)
    found = play(one, 1, 0, 200).metrics["false_leaders"]
    tail = sum(comb(31, k) * 0.4**k * 0.6 ** (31 - k) for k in range(16, 32))
    assert 60 * tail + 1.0 < found.mean() < 60 * tail + 3.0
    alone = play(changed(one, floods=False), 1, 0, 200).metrics["false_leaders"]
    assert 0.5 < alone.mean() < 2.0
    fine = play(changed(one, b=0.2), 1, 0, 40).metrics["false_leaders"]
    assert (fine == 0.0).all()


def test_seventy_five_in_a_hundred_of_the_root_fall_silent() -> None:
    """Twelve seats each on average and silence above 8, in a network of small electorates."""
    many = CommitteeParameters(members=1000, c0=16, d0=48, layers=((16, 16, 2),), corruption="none")
    silent = play(changed(many, tau=8), 1, 0, 4).metrics
    assert silent["root_bad"].mean() == pytest.approx(0.75, abs=0.02)
    assert (silent["p_good"] == 0.0).all()
    assert (silent["false_leaders"] == 0.0).all(), "nobody lies"
    assert (play(changed(many, tau=64), 1, 0, 2).metrics["p_good"] > 1 - 1e-9).all()


@pytest.mark.parametrize("depth, low, high", [(8, 0.0, 0.01), (128, 0.835, 0.845)])
def test_who_searches_the_tree_of_a_path_among_all(depth: int, low: float, high: float) -> None:
    """A short path is lost; below 16 levels in sight a long one is worth the same everywhere."""
    one = CommitteeParameters(members=1000, single=1000, b=0.1, depth=depth, corruption="tree")
    found = play(one, 1, 0, 2).metrics["p_good"]
    assert (found >= low).all()
    assert (found <= high).all()
    assert corrupted(changed(one, single=0, layers=((8, 8, 1),)), 1, 0).sum() == 100


def test_a_second_layer_falls_to_one_in_twenty() -> None:
    """An adversary that aims at the second layer; one that aims at the first does much less."""
    two = CommitteeParameters(
        members=100_000, b=0.05, layers=((16, 16, 1), (16, 16, 3)), monitors=16, lists="marks"
    )
    found = {
        kind: play(changed(two, corruption=kind), 1, 0, 1).metrics["p_good"][0]
        for kind in ("random", "greedy", "second")
    }
    assert found["second"] == 0.0
    assert found["greedy"] > 0.3


def test_printed_silence_rule_leaves_nobody_to_elect() -> None:
    """Twelve seats each on average, all above 8 silent: no leader. Four times the mean: fine."""
    many = CommitteeParameters(
        members=1000, c0=40, d0=12, layers=((5, 5, 0), (4, 4, 1)), corruption="none"
    )
    silent = play(changed(many, tau=8), 1, 0, 3).metrics
    assert (silent["p_good"] == 0.0).all()
    assert (silent["root_bad"] > 0.5).all()
    assert play(many, 1, 0, 3).metrics["p_good"] == pytest.approx(1.0)


def test_lies_reach_whom_all_leaves_lie_to() -> None:
    """Know = 1 - (2/3) beta / (1 - b) with one leaf each, but for those who sat in the root."""
    found = play(CommitteeParameters(members=10_000, b=0.05, corruption="greedy"), 1, 0, 4).metrics
    told = 1 - (2 / 3) * found["broken"] / 0.95
    assert np.abs(found["informed"] - told).max() < 0.02
    honest = play(CommitteeParameters(members=10_000, b=0.05, lies=False), 1, 0, 2).metrics
    assert (honest["informed"] == 1.0).all()


def test_coordinated_packing_brings_more_distinct_bad_members() -> None:
    one = changed(ROBUST, b=0.1)
    alone = play(one, 1, 0, 20).metrics["root_bad"].mean()
    assert play(changed(one, coordinates=True), 1, 0, 20).metrics["root_bad"].mean() > alone


def test_costs_of_an_agreement() -> None:
    """C(k) and R(k) of the recursive phase king, from their recursion written out."""
    for k, bits, rounds in ((128, 1822.625, 186), (1024, 14345.625, 1530)):
        assert load(k).bits() == pytest.approx(bits)
        assert load(k).rounds == rounds
    assert load(4).bits() == 2 * 3 * 3 + 2 * 3 / 4  # two phases: votes, proposals, a king's share
    assert load(32).bits() == 7 * 31 + load(16).bits()
    assert most_rounds(128) == 187


def test_one_public_committee_costs_what_its_path_costs() -> None:
    found = play(CommitteeParameters(members=128, single=128, corruption="none"), 1, 0, 1).metrics
    path = 128 * (load(128).bits() + 127 / 128)
    assert found["bits_mean"][0] == pytest.approx(path)  # and nobody is left to be told
    assert found["rounds"][0] == 128 * 187 + 1 + 2


@pytest.mark.parametrize("members", [10**4, 10**6])
def test_memory_is_reckoned_before(members: int) -> None:
    lean = CommitteeParameters(members=members, layers=((64, 64, 4),))
    robust = changed(lean, d0=4)
    assert memory(lean) < memory(robust) < 8 * 10**9
    assert memory(robust) > 40 * 4 * members


# The line: means of a known simulator, given to two or three digits, with so many runs of it.
@pytest.mark.parametrize(
    "assembly, b, runs, root_bad, full",
    [
        (SMALL, 0.05, 200, 0.082, 0.88),
        (SMALL, 0.1, 200, 0.140, 0.75),
        (SMALL, 0.2, 200, 0.241, 0.46),
        (ROBUST, 0.1, 100, 0.140, 0.75),
        (CommitteeParameters(members=10_000), 0.05, 40, 0.116, 0.81),
        (CommitteeParameters(members=10_000), 0.1, 40, 0.173, 0.66),
        (CommitteeParameters(members=10_000), 0.2, 40, 0.271, 0.36),
        (CommitteeParameters(members=10_000, d0=4), 0.1, 16, 0.134, 0.77),
    ],
)
def test_the_line(
    assembly: CommitteeParameters, b: float, runs: int, root_bad: float, full: float
) -> None:
    """Within 4 standard errors of both means together and half a digit; eight cells, two each."""
    found = play(changed(assembly, b=b), 11, 0, runs).metrics
    for name, value, digit in (("root_bad", root_bad, 0.001), ("p_good", full, 0.01)):
        error = sqrt(2) * found[name].std() / sqrt(runs)
        assert abs(found[name].mean() - value) <= 4 * error + digit, name
    assert (found["informed"] == 1.0).all()


def test_thin_packing_is_what_mixed_corruption_lives_on() -> None:
    """A hundredth of the participants, packed, is a twelfth of the elected and more."""
    shares = [bad_share_after(2048, 25, 4, False, grown(root(1), i)) for i in range(100)]
    assert np.mean(shares) > 1 / 12


def test_mixed_corruption_beats_greedy_where_committees_are_large() -> None:
    one = CommitteeParameters(members=100_000, b=0.05, layers=((32, 32, 3),))
    greedy, mixed = (
        play(changed(one, corruption=kind), 1, 0, 3).metrics["root_bad"].mean()
        for kind in ("greedy", "mixed")
    )
    assert mixed > greedy


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"members": 0}, "members must lie between 1 and"),
        ({"b": 1.5}, "b must lie in [0, 1]"),
        ({"c0": 0}, "c0 must be at least 1"),
        ({"fan": 0}, "fan must be at least 1"),
        ({"tau": -1}, "tau must be at least 0"),
        ({"layers": ((4, 3, 1),)}, "in-degree s >= q"),
        ({"layers": ()}, "without layers there is no network"),
        ({"single": 2000}, "single must lie between 0 and the 1,000 members"),
        ({"c0": 2000}, "a leaf of 2000 is larger than the group of 1000"),
    ],
)
def test_what_is_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput) as caught:
        CommitteeParameters(**{"members": 1000, **wrong})
    assert words in str(caught.value)


@pytest.mark.parametrize("field", ["corruption", "endgame", "bins", "final", "sampler", "lists"])
def test_unknown_names(field: str) -> None:
    wrong: dict[str, Any] = {"members": 1000, field: "nonsense"}
    with pytest.raises(UnknownName):
        CommitteeParameters(**wrong)


def test_runs_and_ids_out_of_range() -> None:
    for first, last in ((0, 0), (-1, 5), (0, 10**8)):
        with pytest.raises(BadInput):
            play(SMALL, 1, first, last)
    with pytest.raises(BadInput, match="belong to corruption 'given'"):
        play(SMALL, 1, 0, 1, np.arange(3))
    with pytest.raises(BadInput, match="belong to corruption 'given'"):
        play(changed(SMALL, corruption="given"), 1, 0, 1)
    with pytest.raises(BadInput, match="between 0 and 999"):
        play(changed(SMALL, corruption="given"), 1, 0, 1, np.array([1000]))
