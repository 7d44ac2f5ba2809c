"""Elections in rounds, message by message: how a run is judged, and what is refused."""

from __future__ import annotations

import pytest

from hustings.core.errors import BadInput
from hustings.lab.byzantine.experiment import ByRounds, by_rounds
from hustings.lab.byzantine.messages import MOST_IN_ONE, check, elected, play
from hustings.protocols.bully import Bully, BullyConfig
from hustings.protocols.committee.election import CommitteeResult
from hustings.protocols.registry import find
from hustings.sim.checkers import Verdict
from hustings.sim.experiment import Experiment
from hustings.sim.play import RunResult
from hustings.sim.trace import Tracer
from hustings.sim.world import Ended

SMALL = {"c0": 4, "layers": "2:2:1", "path": 4, "r_end": 4}


def experiment(name: str, members: int, **settings: object) -> ByRounds:
    kind = find(name)
    made = Experiment(kind, members, kind.Settings.parse(settings), seed=1)
    return by_rounds(made, limited=False)


def verdict(result: RunResult, name: str) -> Verdict:
    return result.verdicts[name][0]


def standing(chosen: int | None, *, in_root: bool = True) -> CommitteeResult:
    return CommitteeResult(chosen, False, in_root, chosen, 0, ())


# Whom the root elected


@pytest.mark.parametrize(
    "seen, winner",
    [
        ([], None),
        ([5], 5),
        ([5, 5, 7], 5),
        ([5, 7], None),
        ([5, 5, 7, 7], None),
        ([None, None, 5], None),
        ([None, 5, 5], 5),
        ([3, 4, 5], None),
    ],
)
def test_elected_is_whom_more_than_half_of_the_root_saw(
    seen: list[int | None], winner: int | None
) -> None:
    assert elected(standing(each) for each in seen) == winner
    assert elected(standing(each) for each in reversed(seen)) == winner


def test_only_who_took_part_at_the_root_is_asked() -> None:
    outside = [standing(9, in_root=False)] * 5
    assert elected([*outside, standing(4)]) == 4
    assert elected(outside) is None


# The election by committees


def test_all_good_members_make_a_good_leader_that_all_know() -> None:
    found = play(experiment("committee", 24, **SMALL), 0)
    assert found.ended is Ended.QUIESCENT
    wanted = {"good_leader": 1.0, "confirmed": 1.0, "informed": 1.0, "false_leaders": 0.0}
    assert {name: found.metrics[name] for name in wanted} == wanted
    assert found.metrics["root_bad"] == found.metrics["broken"] == 0.0
    assert verdict(found, "uniqueness") is Verdict.HOLDS
    size = found.metrics["root_size"]
    assert size is not None
    assert 0 < size < 24


def test_costs_are_of_good_members_and_the_most_is_no_less_than_the_mean() -> None:
    found = play(experiment("committee", 24, b=0.1, **SMALL), 0).metrics
    for name in ("bits", "wire"):
        mean, most = found[f"{name}_mean"], found[f"{name}_max"]
        assert mean is not None
        assert most is not None
        assert 0 < mean <= most
    bits, wire = found["bits_mean"], found["wire_mean"]
    assert bits is not None
    assert wire is not None
    assert wire > bits, "what is sent has an envelope"


def test_the_last_step_as_printed_makes_false_leaders() -> None:
    """Everybody asks one member; whoever asks a bad one is told that it leads."""
    settings = {**SMALL, "b": 0.25, "poll": 1, "adversary": "random+flood"}
    printed = play(experiment("committee", 24, final="printed", **settings), 0)
    false = printed.metrics["false_leaders"]
    assert false is not None
    assert false >= 2
    assert verdict(printed, "uniqueness") is Verdict.VIOLATED
    assert "each take themselves for the leader" in printed.verdicts["uniqueness"][1]
    mended = play(experiment("committee", 24, **settings), 0)
    assert mended.metrics["false_leaders"] == 0.0
    assert verdict(mended, "uniqueness") is Verdict.HOLDS


def test_a_bad_leader_is_no_good_leader() -> None:
    """With every second member bad, who behave, some leaders are bad: all know them all the same"""
    settings = {**SMALL, "b": 0.5, "experiment": True, "adversary": "random+honest"}
    found = [play(experiment("committee", 24, **settings), run).metrics for run in range(12)]
    good = [each["good_leader"] for each in found]
    assert 0.0 in good
    assert 1.0 in good
    assert all(each["informed"] == 1.0 for each in found)
    for each in found:
        assert each["confirmed"] == each["good_leader"], "a bad one is not asked what it believes"


def test_broken_counts_electorates_of_which_a_third_is_bad() -> None:
    """Six of 24 bad, of three electorates of eight: three bad break one, as many as can be paid."""
    settings = {**SMALL, "b": 0.25, "adversary": "greedy"}
    assert play(experiment("committee", 24, **settings), 0).metrics["broken"] == pytest.approx(
        2 / 3
    )
    none = play(experiment("committee", 24, **{**settings, "b": 0.05}), 0)
    assert none.metrics["broken"] == 0.0


def test_a_public_committee_has_no_first_layer_that_could_break() -> None:
    found = play(experiment("committee", 20, profile="single", size=5, path=4), 0).metrics
    assert found["broken"] is None
    assert found["root_size"] == 5


def test_runs_differ_and_repeat() -> None:
    one = experiment("committee", 24, b=0.1, **SMALL)
    first, again, other = play(one, 0), play(one, 0), play(one, 1)
    assert first == again
    assert first.metrics != other.metrics


def test_a_tracer_closes_with_a_digest() -> None:
    one = experiment("agreement", 7)
    assert play(one, 0).digest is None
    digest = play(one, 0, Tracer(one.header(0))).digest
    assert digest is not None
    assert digest != play(one, 1, Tracer(one.header(1))).digest


# Agreement


@pytest.mark.parametrize("protocol", ["king", "recursive"])
@pytest.mark.parametrize("adversary", ["split", "minority", "edge", "noise", "silent", "first"])
def test_none_is_violated_up_to_t(protocol: str, adversary: str) -> None:
    one = experiment("agreement", 10, protocol=protocol, t=3, adversary=adversary, instances=4)
    for run in range(4):
        found = play(one, run)
        assert found.metrics["bad"] == 3.0
        assert found.metrics["violated"] == 0.0
        assert found.metrics["camps"] == 1.0
        assert verdict(found, "agreement") is verdict(found, "validity") is Verdict.HOLDS


@pytest.mark.parametrize("protocol", ["king", "recursive"])
def test_some_are_violated_beyond_t(protocol: str) -> None:
    one = experiment(
        "agreement", 10, protocol=protocol, bad=5, adversary="first+split", instances=8
    )
    found = [play(one, run) for run in range(6)]
    assert any(each.metrics["violated"] for each in found)
    for each in found:
        broken = [name for name in each.verdicts if verdict(each, name) is Verdict.VIOLATED]
        assert each.metrics["violated"] == float(bool(broken))
        camps = each.metrics["camps"]
        assert camps is not None
        assert ("agreement" in broken) == (camps > 1)


def test_no_adversary_no_bad_members() -> None:
    assert play(experiment("agreement", 10), 0).metrics["bad"] == 0.0
    assert play(experiment("agreement", 10, adversary="split"), 0).metrics["bad"] == 3.0


# Lightest bin


def test_bins_elect_a_part_and_name_its_bad_share() -> None:
    found = play(experiment("lightest-bin", 16, adversary="pack", halvings=2), 0).metrics
    assert found["bad"] == 5.0
    assert found["violated"] == 0.0
    size, share = found["elected"], found["elected_bad"]
    assert size is not None
    assert share is not None
    assert 1 <= size <= 16 / 4
    assert share * size == pytest.approx(round(share * size))


def test_packing_brings_more_bad_ones_in_than_behaving() -> None:
    means = []
    for adversary in ("pack", "honest"):
        one = experiment("lightest-bin", 16, adversary=f"random+{adversary}")
        shares = [play(one, run).metrics["elected_bad"] for run in range(8)]
        means.append(sum(share for share in shares if share is not None))
    assert means[0] > means[1]


def test_bins_violated_beyond_a_third_elect_nobody() -> None:
    one = experiment("lightest-bin", 10, bad=5, adversary="random+noise")
    found = [play(one, run) for run in range(8)]
    broken = [each for each in found if each.metrics["violated"]]
    assert broken
    for each in broken:
        assert each.metrics["elected"] is None
        assert each.metrics["good_leader"] == 0.0
        assert verdict(each, "agreement") is Verdict.VIOLATED


# What is refused


def test_other_elections_are_refused() -> None:
    with pytest.raises(BadInput, match="bully is no election in synchronous rounds"):
        play(Experiment(Bully, 5, BullyConfig()), 0)


@pytest.mark.parametrize(
    "one, words",
    [
        (experiment("agreement", MOST_IN_ONE + 1), "too large to agree message by message"),
        (experiment("agreement", 9, t=3), "t = 3 needs more than 9 members, and there are 9"),
        (experiment("lightest-bin", 9, bad=10), "bad = 10 is more than the group of 9 has"),
        (experiment("agreement", 9, adversary="splt"), "did you mean 'split'?"),
        (experiment("committee", 2000), "2000 members are too many"),
        (experiment("committee", 500, profile="high-b"), "is too large to agree"),
        (experiment("committee", 40, model="signed"), "model=signed is for the large-scale engine"),
        (experiment("committee", 128, endgame="full", path=4096), "million messages are too many"),
    ],
)
def test_what_cannot_be_played(one: ByRounds, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        check(one)
    assert words in str(caught.value)


@pytest.mark.parametrize("name, members", [("agreement", 9), ("committee", 24)])
def test_what_can_be_played(name: str, members: int) -> None:
    check(experiment(name, members))
