"""The election by committees, message by message, against the large-scale engine, in distribution.

Both play the same knobs, every run on a network of its own. Of each pair of means the two-sample z
is judged; all comparisons of a test together reject two engines that agree with probability LEVEL
(Bonferroni). Rounds, and whatever never varies in either, must be equal.

Agreement by its outcome is exact while the bad are fewer than a third of every committee: there the
chance of a good leader must be the same. Elsewhere it is pessimistic: the engine may show fewer
good leaders and fewer informed members, more bad ones at the root and more false leaders, never the
reverse. Ties among those who pass word down count as lies in the engine, so that in a tree with
liars `informed` is compared in that one direction.

The most that one member sends is a rough number: the engine shares the costs of kings evenly among
participants. Its mean may be off by ROUGHLY.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from math import sqrt
from statistics import NormalDist

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from hustings.core.streams import Stream
from hustings.lab.byzantine.engines import TASKS
from hustings.lab.byzantine.experiment import by_rounds
from hustings.lab.byzantine.large import play_large
from hustings.lab.byzantine.messages import play
from hustings.lab.kernels.committee.play import CommitteeParameters, corrupted, seating
from hustings.protocols.committee.corruption import CORRUPTIONS
from hustings.protocols.committee.election import Committee
from hustings.protocols.committee.extensions import CommonCoin, GroupAgreement
from hustings.protocols.committee.network import throws_of
from hustings.protocols.committee.roster import Roster
from hustings.protocols.committee.settings import CommitteeConfig
from hustings.sim.experiment import Experiment

LEVEL = 1e-3
ROUGHLY = 0.15
LARGE_RUNS = 400
TINY = 1e-9  # of a mean: what rounding does to a number that never varies

COUNTS = ("root_size", "bits_mean", "messages_mean", "wire_mean")
MOST = ("bits_max", "wire_max")

Sample = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Cell:
    """One group and its knobs, and how many runs message by message."""

    members: int
    settings: tuple[tuple[str, object], ...]
    runs: int
    kind: type[Committee] = Committee

    def config(self, run: int) -> CommitteeConfig:
        given = {"N": self.members, "network_seed": run, **dict(self.settings)}
        config = self.kind.Settings.parse(given)
        assert isinstance(config, CommitteeConfig)
        return config

    def but(self, runs: int | None = None, **settings: object) -> Cell:
        merged = {**dict(self.settings), **settings}
        return replace(self, settings=tuple(merged.items()), runs=runs or self.runs)


def cell(members: int, runs: int, **settings: object) -> Cell:
    return Cell(members, tuple(settings.items()), runs)


# Six leaves of four, three committees of about four, a root of about nine.
TREE = cell(24, 24, c0=4, layers="2:2:1", path=8, r_end=8)
PATH = TREE.but(endgame="full")
ONE_BAD = PATH.but(30, b=0.05)  # one of 24: everywhere fewer than a third
TWO_HONEST = TREE.but(20, b=0.1, adversary="random+honest")
PUBLIC = cell(30, 40, profile="single", size=8, path=8, endgame="full", b=0.07)
TWICE_SEATED = TREE.but(12, d0=2, layers="2:3:1", b=0.1)
MANY_BAD = TREE.but(20, b=0.25)
PAID_FOR = TREE.but(14, b=0.2, adversary="greedy")


@cache
def by_messages(of: Cell) -> Sample:
    rows = []
    for run in range(of.runs):
        experiment = Experiment(of.kind, of.members, of.config(run), seed=7)
        rows.append(play(by_rounds(experiment, limited=False), run).metrics)
    return {
        name: np.array([np.nan if row[name] is None else row[name] for row in rows], np.float64)
        for name in rows[0]
    }


@cache
def by_outcomes(of: Cell) -> Sample:
    found = [
        play_large(of.config(run), of.members, 11, run, run + 1, TASKS[of.kind]).metrics
        for run in range(max(LARGE_RUNS, 2 * of.runs))
    ]
    return {name: np.concatenate([each[name] for each in found]) for name in found[0]}


def z_of(one: NDArray[np.float64], two: NDArray[np.float64]) -> float:
    """How far the first mean lies above the second, in standard errors of the difference."""
    gap = float(one.mean() - two.mean())
    error = sqrt(one.var(ddof=1) / len(one) + two.var(ddof=1) / len(two))
    if abs(gap) < TINY * max(1.0, abs(float(one.mean()))):
        return 0.0
    return gap / error if error else float(np.copysign(np.inf, gap))


def gaps(messages: Sample, outcomes: Sample, names: tuple[str, ...]) -> dict[str, float]:
    return {name: z_of(messages[name], outcomes[name]) for name in names}


def bound(comparisons: int, sides: int = 2) -> float:
    """The |z| that all comparisons together exceed by chance with probability LEVEL."""
    return NormalDist().inv_cdf(1 - LEVEL / (sides * comparisons))


def same(of: Cell, names: tuple[str, ...]) -> dict[str, float]:
    """Those of the metrics in which the engines differ, with their z; rounds must be equal."""
    messages, outcomes = by_messages(of), by_outcomes(of)
    assert set(messages["rounds"]) == set(outcomes["rounds"])
    found = gaps(messages, outcomes, names)
    return {name: z for name, z in found.items() if abs(z) > bound(len(names))}


def roughly_the_same(of: Cell) -> None:
    for name in MOST:
        ratio = by_outcomes(of)[name].mean() / by_messages(of)[name].mean()
        assert 1 - ROUGHLY <= ratio <= 1 + ROUGHLY, f"{name}: {ratio:.3f}"


def never_too_good(of: Cell) -> None:
    """Leaders, informed members and bad ones at the root: the engine errs on one side only."""
    messages, outcomes = by_messages(of), by_outcomes(of)
    assert set(messages["rounds"]) == set(outcomes["rounds"])
    limit = bound(5, sides=1)
    for name in ("good_leader", "informed", "confirmed"):
        assert z_of(messages[name], outcomes[name]) >= -limit, name
    for name in ("root_bad", "false_leaders"):
        assert z_of(messages[name], outcomes[name]) <= limit, name


def test_all_good() -> None:
    assert same(PATH, COUNTS) == {}
    for sample in (by_messages(PATH), by_outcomes(PATH)):
        for name, value in (
            ("good_leader", 1.0),
            ("informed", 1.0),
            ("confirmed", 1.0),
            ("root_bad", 0.0),
            ("broken", 0.0),
            ("false_leaders", 0.0),
        ):
            assert (sample[name] == value).all(), name
    roughly_the_same(PATH)


def test_one_bad_member_that_does_its_worst() -> None:
    """Fewer than a third of every committee, so agreement by its outcome is exact."""
    names = (*COUNTS, "root_bad", "broken", "good_leader")
    assert by_outcomes(ONE_BAD)["root_size"].min() > 3
    assert by_messages(ONE_BAD)["root_size"].min() > 3
    assert same(ONE_BAD, names) == {}
    assert 0.5 < by_messages(ONE_BAD)["good_leader"].mean() < 0.98, "chance is at work"
    never_too_good(ONE_BAD)
    roughly_the_same(ONE_BAD)


def test_bad_members_that_behave() -> None:
    """Whatever agreement might do with them, they say what good ones say."""
    assert same(TWO_HONEST, (*COUNTS, "root_bad", "broken")) == {}
    assert by_messages(TWO_HONEST)["root_bad"].mean() > 0.04
    assert (by_messages(TWO_HONEST)["informed"] == 1.0).all()
    never_too_good(TWO_HONEST)


@pytest.mark.parametrize("endgame", ["feige", "small"])
def test_one_that_behaves_is_one_of_many_in_every_endgame(endgame: str) -> None:
    """Whoever packs wins more often than its share, in both; whoever behaves does not."""
    behaves = ONE_BAD.but(36, endgame=endgame, adversary="random+honest")
    assert same(behaves, (*COUNTS, "good_leader")) == {}
    packed = by_outcomes(behaves.but(adversary="random"))["p_good"]
    assert z_of(by_outcomes(behaves)["p_good"], packed) > 10


def test_one_public_committee() -> None:
    """Two of 30 are bad, fewer than a third of the eight even if both sit there: exact."""
    messages, outcomes = by_messages(PUBLIC), by_outcomes(PUBLIC)
    names = ("root_bad", "bits_mean", "messages_mean", "wire_mean", "good_leader", "informed")
    assert same(PUBLIC, names) == {}
    assert (messages["root_size"] == 8).all()
    assert (outcomes["root_size"] == 8).all()
    never_too_good(PUBLIC)
    roughly_the_same(PUBLIC)


def test_members_with_several_seats_and_neighbours_beyond_the_children() -> None:
    assert same(TWICE_SEATED, (*COUNTS, "root_bad", "broken")) == {}
    never_too_good(TWICE_SEATED)
    roughly_the_same(TWICE_SEATED)


def test_two_elected_layers_keep_one_schedule() -> None:
    """Rounds follow from public numbers, whoever is elected into the upper layer."""
    of = cell(40, 4, c0=4, layers="2:2:1,2:2:1", path=4, r_end=4, b=0.1)
    assert len(set(by_outcomes(of)["rounds"])) == 1
    never_too_good(of)


@pytest.mark.parametrize("of", [MANY_BAD, PAID_FOR], ids=["random", "greedy"])
def test_where_committees_fall_the_engine_is_never_too_good(of: Cell) -> None:
    assert by_messages(of)["broken"].mean() > 0.1
    assert abs(z_of(by_messages(of)["broken"], by_outcomes(of)["broken"])) < bound(1)
    never_too_good(of)


def test_false_leaders_where_the_root_falls() -> None:
    """Four of ten and all told lies: good members come to believe that they lead, in both."""
    of = cell(10, 36, profile="single", size=10, path=4, endgame="full", b=0.4, experiment=True)
    assert by_messages(of)["good_leader"].mean() < 0.5
    never_too_good(of)
    assert by_outcomes(of)["false_leaders"].mean() > by_messages(of)["false_leaders"].mean()


# What else the same committees do.

SPENT = ("bits_mean", "messages_mean", "wire_mean")
BIT = replace(TREE.but(24, deciders=6, input="random"), kind=GroupAgreement)
BIT_ONE_BAD = BIT.but(36, b=0.05)
COIN = replace(PATH, kind=CommonCoin)
COIN_ONE_BAD = COIN.but(36, b=0.05)


def deciding_is_never_too_good(of: Cell) -> None:
    messages, outcomes = by_messages(of), by_outcomes(of)
    assert set(messages["rounds"]) == set(outcomes["rounds"])
    for name in ("agreeing", "valid"):
        assert z_of(messages[name], outcomes[name]) >= -bound(3, sides=1), name
    assert z_of(messages["set_bad"], outcomes["set_bad"]) <= bound(3, sides=1)


def coin_is_never_too_good(of: Cell) -> None:
    """And where the adversary throws it, the engine has it throw 1."""
    never_too_good(of)
    messages, outcomes = by_messages(of), by_outcomes(of)
    assert z_of(messages["seen"], outcomes["seen"]) >= -bound(2, sides=1)
    assert z_of(messages["coin"], outcomes["coin"]) <= bound(2, sides=1)


@pytest.mark.parametrize("deciders", [6, 32, 1])
def test_a_group_of_good_members_decides(deciders: int) -> None:
    of = BIT.but(deciders=deciders)
    assert same(of, (*SPENT, "set_size")) == {}
    for sample in (by_messages(of), by_outcomes(of)):
        for name, value in (("agreeing", 1.0), ("undecided", 0.0), ("valid", 1.0)):
            assert (sample[name] == value).all(), name
        assert (sample["set_bad"] == 0.0).all()


@pytest.mark.parametrize("adversary", ["random", "random+honest"])
def test_one_bad_member_in_a_group_that_decides(adversary: str) -> None:
    """It packs its way into the set, as often in both; whoever behaves is there by its share."""
    of = BIT_ONE_BAD.but(adversary=adversary)
    assert same(of, (*SPENT, "set_size", "set_bad", "broken")) == {}
    deciding_is_never_too_good(of)
    packing = z_of(by_outcomes(BIT_ONE_BAD)["set_bad"], by_outcomes(of)["set_bad"])
    assert (packing > 5) == (adversary != "random")


@pytest.mark.parametrize("settings", [{"input": "same"}, {"adversary": "greedy"}], ids=str)
def test_where_sets_fall_a_decision_is_never_too_good(settings: dict[str, object]) -> None:
    of = BIT.but(20, b=0.25, **settings)
    assert by_outcomes(of)["agreeing"].mean() < 0.9
    deciding_is_never_too_good(of)


def test_a_public_committee_decides_and_throws() -> None:
    deciding = replace(PUBLIC.but(deciders=4), kind=GroupAgreement)
    assert same(deciding, (*SPENT, "set_size", "set_bad")) == {}
    deciding_is_never_too_good(deciding)
    throwing = replace(PUBLIC, kind=CommonCoin)
    assert same(throwing, (*SPENT, "good_leader", "seen")) == {}
    coin_is_never_too_good(throwing)


def test_the_coin_of_good_members_is_fair_and_seen() -> None:
    assert same(COIN, (*COUNTS, "coin")) == {}
    for sample in (by_messages(COIN), by_outcomes(COIN)):
        assert (sample["seen"] == 1.0).all()
    roughly_the_same(COIN)


def test_the_coin_with_one_bad_member() -> None:
    assert same(COIN_ONE_BAD, (*COUNTS, "root_bad", "good_leader")) == {}
    coin_is_never_too_good(COIN_ONE_BAD)
    fair = COIN_ONE_BAD.but(adversary="random+honest")
    assert abs(z_of(by_messages(fair)["coin"], by_outcomes(fair)["coin"])) < bound(1)
    assert by_outcomes(COIN_ONE_BAD)["coin"].mean() > by_outcomes(fair)["coin"].mean() + 0.05


@pytest.mark.parametrize("kind", [GroupAgreement, CommonCoin])
def test_two_layers_keep_one_schedule_whatever_they_do(kind: type[Committee]) -> None:
    of = replace(cell(40, 3, c0=4, layers="2:2:1,2:2:1", path=4, r_end=4, b=0.1), kind=kind)
    assert set(by_messages(of)["rounds"]) == set(by_outcomes(of)["rounds"])


# Whom each engine's adversary corrupts, given the same seats.

SEATS = {
    "small": CommitteeParameters(members=24, c0=4, layers=((2, 2, 1),), b=0.2),
    "twice": CommitteeParameters(members=60, c0=4, d0=2, layers=((3, 3, 1),), b=0.25),
    "many": CommitteeParameters(members=1200, c0=8, layers=((8, 8, 3),), b=0.05),
    "shot": CommitteeParameters(members=1200, c0=8, layers=((8, 8, 2),), b=0.05, bins="oneshot"),
    "high": CommitteeParameters(members=600, c0=4, layers=((4, 4, 1), (4, 4, 1)), b=0.1),
}


@pytest.mark.parametrize("kind", ["greedy", "mixed", "second"])
@pytest.mark.parametrize("name", SEATS)
def test_both_adversaries_own_as_many_of_the_same_electorates(name: str, kind: str) -> None:
    """And leave as many seats to the bad in those that they do not own."""
    assembly = msgspec.structs.replace(SEATS[name], corruption=kind)
    counts = np.array([both_corrupt(assembly, run) for run in range(12)], np.float64)
    nodes = assembly.nodes[0]
    slack = 0.05 * nodes if kind == "mixed" else 0.0  # which tries packing out, by chance
    owned = counts[:, :, 0].mean(axis=0)
    assert abs(owned[0] - owned[1]) <= slack + 0.02 * nodes, owned
    upper = counts[:, :, 1].mean(axis=0)
    assert abs(upper[0] - upper[1]) <= slack + 0.02 * nodes, upper


def both_corrupt(assembly: CommitteeParameters, run: int) -> list[tuple[int, int]]:
    """For messages and for outcomes: electorates owned, and nodes of the last layer below which
    a third of the neighbours are."""
    leaves, *layers = seating(assembly, 3, run)
    groups = [tuple(tuple(group.tolist()) for group in layer) for layer in layers]
    throws = tuple(throws_of(h, assembly.bins) for _, _, h in assembly.layers)
    everybody = tuple(range(assembly.members))
    seats = tuple(tuple(leaf.tolist()) for leaf in leaves)
    roster = Roster(everybody, seats, groups[0], tuple(groups[1:]), throws)
    state = np.zeros(assembly.members, np.bool_)
    chosen, _ = CORRUPTIONS[assembly.corruption]
    state[list(chosen(roster, assembly.budget, Stream(run)))] = True
    return [fallen(roster, state), fallen(roster, corrupted(assembly, 3, run))]


def fallen(roster: Roster, bad: NDArray[np.bool_]) -> tuple[int, int]:
    owned = [3 * int(bad[list(row)].sum()) >= len(row) for row in roster.electorates]
    last = roster.above[-1] if roster.above else ()
    upper = [3 * sum(owned[node] for node in group) >= len(group) for group in last]
    return sum(owned), sum(upper)


@pytest.mark.parametrize(
    "other, telling",
    [
        (PATH.but(layers="2:2:2"), "root_size"),
        (PATH.but(path=4), "wire_mean"),
        (PATH.but(b=0.05), "root_bad"),
    ],
    ids=["halvings", "path", "bad"],
)
def test_other_knobs_are_told_apart(other: Cell, telling: str) -> None:
    """The same samples and bound as above: what they let pass they could have rejected."""
    messages, outcomes = by_messages(PATH), by_outcomes(other)
    found = gaps(messages, outcomes, (*COUNTS, "root_bad"))
    assert abs(found[telling]) > bound(len(found)), found


def test_another_fan_is_told_apart() -> None:
    """Who hears from more guards makes more of them report."""
    messages, outcomes = by_messages(TWICE_SEATED), by_outcomes(TWICE_SEATED.but(fan=12))
    assert abs(gaps(messages, outcomes, COUNTS)["messages_mean"]) > bound(len(COUNTS))


def test_an_engine_that_is_too_good_is_told_apart() -> None:
    """The one-sided judgement can fail, too."""
    messages, outcomes = by_messages(MANY_BAD), by_outcomes(MANY_BAD.but(b=0.0))
    for name in ("good_leader", "informed"):
        assert z_of(messages[name], outcomes[name]) < -bound(5, sides=1), name


# Larger samples and groups, the other endgames and bins.

LONG = 400


@pytest.mark.soak
@pytest.mark.parametrize(
    "of",
    [
        PATH.but(LONG),
        ONE_BAD.but(LONG),
        PUBLIC.but(LONG),
        ONE_BAD.but(LONG, adversary="random+pack"),
        ONE_BAD.but(LONG, endgame="baton", r_end=32),
        ONE_BAD.but(LONG, endgame="baton", adversary="random+honest"),
        ONE_BAD.but(LONG, endgame="full", adversary="random+honest"),
        cell(48, 100, c0=4, layers="4:4:1", path=8, endgame="full", b=0.05),
        cell(48, 100, c0=8, layers="2:2:1", path=8, endgame="full", b=0.05),
    ],
    ids=["good", "one", "public", "pack", "baton", "honest", "honest path", "48", "pairs"],
)
def test_exact_cells_with_many_runs(of: Cell) -> None:
    assert same(of, (*COUNTS, "root_bad", "good_leader")) == {}
    never_too_good(of)
    roughly_the_same(of)


@pytest.mark.soak
@pytest.mark.parametrize("adversary", ["random", "greedy", "cluster", "leaf", "mixed"])
@pytest.mark.parametrize("b", [0.1, 0.2, 0.3])
@pytest.mark.parametrize("knobs", [{}, {"endgame": "baton"}, {"endgame": "full"}, {"d0": 2}])
def test_never_too_good_with_many_runs(adversary: str, b: float, knobs: dict[str, object]) -> None:
    never_too_good(TREE.but(100, adversary=adversary, b=b, **knobs))
