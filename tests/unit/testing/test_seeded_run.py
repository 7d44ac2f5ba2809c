"""Runs and faults: what a seed draws, its text, and what is smaller."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hustings.core.errors import BadInput
from hustings.testing import Fault, Group, draw_faults, parse_fault
from hustings.testing.faults import KINDS, LEADER, LONGEST, SHORTEST, SPAN
from hustings.testing.seeded_run import Allowed, SeededRun, names_of, parse_run

SEEDS = st.integers(0, 2**63)


@given(SEEDS, st.integers(1, 26), st.integers(0, 20))
def test_a_drawn_trial_is_what_its_text_says(seed: int, members: int, faults: int) -> None:
    drawn = Allowed((1, members), faults).draw(seed)
    assert parse_run(str(drawn)) == drawn
    assert 1 <= len(drawn.names) <= members
    assert len(drawn.faults) <= faults


@given(SEEDS)
def test_faults_lie_within_their_bounds(seed: int) -> None:
    faults = draw_faults(seed, "abc", most=9)
    assert [fault.at for fault in faults] == sorted(fault.at for fault in faults)
    for fault in faults:
        assert fault.kind in KINDS
        assert fault.member in (*"abc", LEADER)
        assert 0 <= fault.at <= SPAN
        assert SHORTEST <= fault.lasts <= LONGEST
        assert parse_fault(str(fault)) == fault


def test_all_kinds_and_targets_are_drawn() -> None:
    drawn = [fault for seed in range(50) for fault in draw_faults(seed, "abc", most=5)]
    assert {(fault.kind, fault.member) for fault in drawn} == {
        (kind, member) for kind in KINDS for member in (*"abc", LEADER)
    }


def weight(drawn: SeededRun) -> tuple[int, int, bool, float]:
    times = sum(fault.at + fault.lasts for fault in drawn.faults)
    return len(drawn.names), len(drawn.faults), not drawn.calm, times


@given(SEEDS, st.booleans())
def test_smaller_is_smaller_so_shrinking_ends(seed: int, rough: bool) -> None:
    drawn = Allowed((2, 5), 6).draw(seed)
    for smaller in drawn.smaller(2, rough):
        assert weight(smaller) < weight(drawn)
        assert len(smaller.names) >= 2
        assert rough or not smaller.calm
        assert all(fault.member in (*smaller.names, LEADER) for fault in smaller.faults)


@pytest.mark.parametrize(
    "text", ["", "kill", "kill:a", "kill:a@3", "kill:a@x+1", "burn:a@1+1", "kill:a@-1+1", "k@nan+1"]
)
def test_what_is_no_fault_gets_a_sentence(text: str) -> None:
    with pytest.raises(BadInput, match="fault"):
        parse_fault(text)


@pytest.mark.parametrize("members", [(0, 3), (4, 3), (1, 27)])
def test_an_impossible_number_of_members_gets_a_sentence(members: tuple[int, int]) -> None:
    with pytest.raises(BadInput, match="members must be"):
        Allowed(members)


def test_faults_happen_and_are_put_right() -> None:
    with Group(seed=3) as group:
        group.start(names_of(3))
        first = group.settle(steady=1.0)
        began = group.now
        group.inject([Fault("isolate", LEADER, 0.0, 5.0), Fault("pause", "b", 1.0, 1.0)])
        assert group.now == began + 5.0
        assert group.inside.paused == []
        later = group.settle(steady=2.0)
        followed = {state.leader.name for at, _, state in group.log if at > began and state.leader}
        assert followed - {first}, "the others have had another leader"
        group.inject([Fault("kill", later, 0.0, 1.0), Fault("kill", later, 0.5, 1.0)])
        assert group.up == list(names_of(3)), "the second one finds nobody to kill"
        group.settle(steady=1.0)
        assert group.network.is_cut(*[("127.0.0.1", port) for port in (7401, 7402)]) is False


def test_a_program_runs_again_after_a_restart() -> None:
    runs: list[str] = []

    async def program(member: object) -> None:
        runs.append(type(member).__name__)

    with Group(seed=3) as group:
        group.start(["a"], program)
        group.advance(0.1)
        group.restart("a")
        group.advance(0.1)
    assert runs == ["Member", "Member"]


def test_isolated_members_are_reconnected_alone() -> None:
    with Group(seed=3) as group:
        group.start(names_of(3))
        group.settle()
        group.cut("b", "c")
        group.isolate("a")
        group.reconnect("a")
        assert group.network.is_cut(("127.0.0.1", 7402), ("127.0.0.1", 7403))
        assert not group.network.is_cut(("127.0.0.1", 7401), ("127.0.0.1", 7402))
