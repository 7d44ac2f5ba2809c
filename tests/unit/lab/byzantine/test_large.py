"""From settings to the compiled engine: what it is given, what it refuses, whom it corrupts."""

from __future__ import annotations

import numpy as np
import pytest

from hustings.core.choice import MemberId
from hustings.core.errors import BadInput
from hustings.core.streams import Stream
from hustings.lab.byzantine import large
from hustings.lab.byzantine.large import check, parameters_of, play_large
from hustings.lab.kernels.committee.play import METRICS, memory
from hustings.protocols.committee import adversary as adversaries
from hustings.protocols.committee.adversary import Adversary, budget, register
from hustings.protocols.committee.roster import Roster
from hustings.protocols.committee.settings import CommitteeConfig, knobs_of


def config(**settings: object) -> CommitteeConfig:
    return CommitteeConfig.parse(settings)


@pytest.fixture(autouse=True)
def forget_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adversaries, "_registered", {})


@pytest.mark.parametrize("profile", ["lean", "robust", "high-b", "single"])
@pytest.mark.parametrize("members", [100, 1000, 100_000])
def test_an_assembly_has_the_knobs_of_its_profile(profile: str, members: int) -> None:
    made = config(profile=profile, b=0.1)
    knobs, found = knobs_of(made, members), parameters_of(made, members)
    assert (found.members, found.b, found.corruption) == (members, 0.1, "random")
    for name in ("c0", "d0", "layers", "fan", "depth", "r_end", "poll", "tau", "endgame", "bins"):
        assert getattr(found, name) == getattr(knobs, name), name
    assert found.single == knobs.single
    assert not found.signed


def test_overrides_and_model_arrive() -> None:
    made = config(c0=8, d0=2, layers="4:6:2", path=9, endgame="baton", r_end=7, model="signed")
    found = parameters_of(made, 1000)
    assert (found.c0, found.d0, found.layers) == (8, 2, ((4, 6, 2),))
    assert (found.depth, found.endgame, found.r_end, found.signed) == (9, "baton", 7, True)


@pytest.mark.parametrize(
    "words, behaviour",
    [
        ("greedy", (True, True, True, True)),
        ("greedy+pack", (True, False, False, False)),
        ("greedy+lie+claim", (False, True, False, True)),
        ("greedy+flood", (False, False, True, False)),
        ("greedy+honest", (False, False, False, False)),
    ],
)
def test_behaviours_arrive(words: str, behaviour: tuple[bool, ...]) -> None:
    found = parameters_of(config(adversary=words, b=0.1), 1000)
    assert found.corruption == "greedy"
    assert (found.packs, found.lies, found.floods, found.claims) == behaviour


def test_the_printed_profile_is_one_committee_of_all() -> None:
    assert parameters_of(config(profile="printed"), 500).single == 500
    with pytest.raises(BadInput, match="does not play: take --engine events"):
        parameters_of(config(profile="printed", layers="4:4:1", c0=10), 500)


def test_memory_is_refused_beyond_the_limit() -> None:
    made = config(b=0.1)
    need = memory(parameters_of(made, 10_000))
    assert check(made, 10_000, most=need) == parameters_of(made, 10_000)
    with pytest.raises(BadInput, match=r"needs about 0\.\d GB of memory, and the limit is 0\.\d"):
        check(made, 10_000, most=need - 1)


def test_a_million_members_fit() -> None:
    for profile in ("lean", "robust"):
        for adversary in ("random", "greedy", "mixed"):
            check(config(profile=profile, b=0.1, adversary=adversary), 1_000_000)


def test_runs_are_numbered_as_everywhere() -> None:
    made = config(b=0.1)
    whole = play_large(made, 300, 4, 0, 5).metrics
    assert list(whole) == list(METRICS)
    for run in range(5):
        alone = play_large(made, 300, 4, run, run + 1).metrics
        assert all(alone[name][0] == whole[name][run] for name in METRICS), run


# An adversary of one's own


class Everybodys(Adversary):
    """Corrupts whom it is told to, by place in the roster."""

    name = "appointed"
    idea = "those who were appointed"
    packs = True

    def __init__(self, places: tuple[int, ...]) -> None:
        self.places = places
        self.asked: list[tuple[int, int]] = []

    def corrupt(self, roster: Roster, budget: int, rng: Stream) -> tuple[MemberId, ...]:
        self.asked.append((len(roster.members), budget))
        return tuple(roster.members[place] for place in self.places)


SINGLE = {"profile": "single", "b": 0.2, "adversary": "appointed"}


def test_whom_it_picks_is_bad() -> None:
    """In a public committee of all, the bad share at the root is that of whom it picked."""
    mine = Everybodys((1, 3, 5, 7, 9))
    register(mine)
    made = config(**SINGLE, size=50)
    found = play_large(made, 50, 1, 2, 5).metrics
    assert mine.asked == [(50, budget(0.2, 50))] * 3
    assert found["root_bad"] == pytest.approx(5 / 50)
    assert len(found["good_leader"]) == 3
    register(Everybodys(()))
    none = play_large(made, 50, 1, 2, 5).metrics
    assert (none["root_bad"] == 0.0).all()
    assert (none["good_leader"] == 1.0).all()


def test_what_it_does_is_what_it_says_it_does() -> None:
    register(Everybodys((1,)))
    found = parameters_of(config(**SINGLE), 300)
    assert (found.corruption, found.packs, found.lies) == ("given", True, False)


def test_it_may_be_given_a_corruption_of_the_catalogue() -> None:
    mine = Everybodys((1,))
    register(mine)
    made = config(b=0.2, adversary="greedy+appointed")
    assert parameters_of(made, 300).corruption == "greedy"
    play_large(made, 300, 1, 0, 1)
    assert mine.asked == []


def test_the_lowest_ids_are_picked_by_hand() -> None:
    """A corruption that only the message level knows is played from its own choice."""
    made = config(profile="single", size=40, b=0.1, adversary="first")
    assert parameters_of(made, 40).corruption == "given"
    assert play_large(made, 40, 1, 0, 2).metrics["root_bad"] == pytest.approx(0.1)


def test_it_picks_among_so_many_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    register(Everybodys((1,)))
    monkeypatch.setattr(large, "MOST_BY_HAND", 999)
    check(config(b=0.1, adversary="appointed"), 999)
    with pytest.raises(BadInput, match="picks among at most 999 members, not 1,000"):
        check(config(b=0.1, adversary="appointed"), 1000)
    check(config(b=0.1), 1000)


class Leafy(Adversary):
    """Owns the first electorate that the roster shows, and nobody else."""

    name = "leafy"
    idea = "the first electorate"

    def corrupt(self, roster: Roster, budget: int, rng: Stream) -> tuple[MemberId, ...]:
        return roster.electorates[0][:budget]


def test_the_roster_that_it_looks_at_is_the_one_that_is_played() -> None:
    """A third of one electorate of the eight is bad, so that one is broken in every run."""
    register(Leafy())
    made = config(c0=8, layers="4:4:1", b=0.1, adversary="leafy")
    found = play_large(made, 256, 1, 0, 4).metrics
    assert (found["broken"] >= 1 / 8).all()
    assert np.allclose(found["broken"], 1 / 8)


@pytest.mark.parametrize(
    "n, random, aware, bits", [(1_000, 0.75, 0.50, 7.2e6), (10_000, 0.77, 0.36, 4.8e7)]
)
def test_robust_is_better_than_the_first_estimate(
    n: int, random: float, aware: float, bits: float
) -> None:
    """At b = .1: more good leaders, whoever is corrupted, for no more bits."""
    for adversary, line in (("random", random), ("greedy", aware), ("mixed", aware)):
        made = config(profile="robust", b=0.1, adversary=adversary)
        found = play_large(made, n, 3, 0, 2).metrics
        assert found["p_good"].min() > line
        assert found["bits_mean"].max() <= bits


def test_robust_holds_a_fifth_of_bad_members_at_random() -> None:
    """Who asks too few learns something wrong there, and the root is lost."""
    found = play_large(config(profile="robust", b=0.2), 100_000, 3, 0, 1).metrics
    assert found["p_good"].min() > 0.5
