"""One leader in each component: from scripted declarations, splits and mergers."""

from __future__ import annotations

from functools import partial

import pytest

from hustings.core.choice import HighestId, MemberId
from hustings.core.context import Context
from hustings.core.outcome import Elected, NoLeader, Outcome
from hustings.sim.checkers import Verdict
from hustings.sim.components import ComponentLeaders, OneLeaderEach
from hustings.sim.consistency import Metrics
from hustings.sim.faults import Crash, Happening, Restart
from hustings.sim.mobility import Component
from hustings.sim.world import Ended
from tests.unit.sim.worlds import Stage, arm

Say = tuple[float, MemberId, MemberId | None]  # when, who, whom it holds from then on
Move = tuple[float, tuple[Component, ...]]  # from when on, who reaches whom

TOGETHER: tuple[Component, ...] = ((1, 2, 3, 4),)
APART: tuple[Component, ...] = ((1, 2), (3, 4))
END = 20.0


def watched(
    says: list[Say], moves: list[Move], *happenings: Happening
) -> tuple[Metrics, ComponentLeaders, Stage]:
    """Four members that hold 4 at first, and what was seen of them until 20."""
    stage = Stage(4)
    leaders = ComponentLeaders(HighestId())
    leaders.begin(stage)
    leaders.regroup(stage, moves[0][1])
    for member in stage.members.values():
        member.declare(Elected(4, 1))
    for at, components in moves[1:]:
        stage.at(at, partial(leaders.regroup, stage, components))
    for at, who, whom in says:
        stage.let(at, who, partial(_declare, NoLeader() if whom is None else Elected(whom, 1)))
    stage.plan(*happenings)
    stage.let(END, 1, arm("end", 0.0))  # so that the run lasts until then
    stage.run(END)
    return leaders.finish(stage), leaders, stage


def _declare(outcome: Outcome, ctx: Context) -> None:
    ctx.declare(outcome)


def test_all_is_well() -> None:
    found, _, _ = watched([], [(0.0, TOGETHER)])
    assert found["components"] == 1.0
    for name in ("one_leader", "one_leader_everywhere", "best_leader", "leaders_per_component"):
        assert found[name] == pytest.approx(1.0), name
    for name in ("no_leader", "several_leaders", "splits", "merges", "relapses", "leader_changes"):
        assert found[name] == 0.0, name
    assert found["split_delay"] is found["merge_delay"] is found["split_unsettled"] is None


def test_a_split_off_part_needs_a_leader_of_its_own() -> None:
    """From 10 on 1 and 2 are away; 2 leads from 13 on, and 1 knows it at 14."""
    found, _, _ = watched([(13.0, 2, 2), (14.0, 1, 2)], [(0.0, TOGETHER), (10.0, APART)])
    assert found["splits"] == 1.0
    assert found["merges"] == 0.0
    assert found["split_delay"] == pytest.approx(4.0)  # the other part kept its leader
    assert found["split_unsettled"] == 0.0
    assert found["one_leader"] == pytest.approx(1 - 2 * 4 / 80)
    assert found["one_leader_everywhere"] == pytest.approx(1 - 4 / 20)
    assert found["no_leader"] == pytest.approx(2 * 3 / 80)
    assert found["components"] == pytest.approx(1.5)
    assert found["leader_changes"] == pytest.approx(2 / 4)


def test_a_merger_has_two_leaders_until_one_gives_way() -> None:
    says: list[Say] = [(0.0, 1, 2), (0.0, 2, 2), (12.0, 2, 4), (15.0, 1, 4)]
    found, _, _ = watched(says, [(0.0, APART), (10.0, TOGETHER)])
    assert (found["splits"], found["merges"]) == (0.0, 1.0)
    assert found["several_leaders"] == pytest.approx(4 * 2 / 80)
    assert found["merge_delay"] == pytest.approx(5.0)
    assert found["one_leader"] == pytest.approx(1 - 4 * 5 / 80)
    assert found["leaders_per_component"] == pytest.approx((2 * 10 + 2 * 2 + 8) / 30)


def test_what_changes_before_it_has_a_leader_is_unsettled() -> None:
    found, _, _ = watched([], [(0.0, TOGETHER), (5.0, APART), (8.0, TOGETHER)])
    assert found["split_delay"] is None
    assert found["split_unsettled"] == 1.0  # 1 and 2; the part of 4 had its leader all the time
    assert (found["splits"], found["merges"]) == (1.0, 1.0)
    assert found["merge_unsettled"] is None  # all held 4 at once


def test_both_at_one_instant() -> None:
    moves: list[Move] = [(0.0, APART), (10.0, ((1, 3), (2, 4)))]
    found, _, _ = watched([], moves)
    assert (found["splits"], found["merges"]) == (2.0, 2.0)


def test_a_leader_that_is_lost_at_rest_is_a_relapse() -> None:
    found, _, _ = watched([(5.0, 1, None), (6.0, 1, 4)], [(0.0, TOGETHER)])
    assert found["relapses"] == 1.0
    assert found["leader_changes"] == 0.0
    assert found["one_leader"] == pytest.approx(1 - 1 / 20)


def test_what_lasts_no_time_is_not_seen() -> None:
    found, leaders, _ = watched([(5.0, 1, None), (5.0, 1, 4)], [(0.0, TOGETHER)])
    assert found["relapses"] == 0.0
    assert leaders.worst[0] == 0.0


def test_not_the_best_is_one_leader_too() -> None:
    says: list[Say] = [(0.0, one, 3) for one in (1, 2, 3, 4)]
    found, _, _ = watched(says, [(0.0, TOGETHER)])
    assert found["one_leader"] == pytest.approx(1.0)
    assert found["best_leader"] == 0.0


def test_the_dead_are_in_no_component() -> None:
    """4 dies at 5 and is back at 15, holding nobody; the others hold 3 from 7 on."""
    says: list[Say] = [(7.0, one, 3) for one in (1, 2, 3)]
    happenings = (Crash(member=4, at=5.0), Restart(member=4, at=15.0))
    found, _, _ = watched(says, [(0.0, TOGETHER)], *happenings)
    whole = 4 * 5 + 3 * 10 + 4 * 5
    assert found["one_leader"] == pytest.approx((4 * 5 + 3 * 8) / whole)
    assert (found["splits"], found["merges"]) == (0.0, 0.0)
    assert found["split_delay"] is found["merge_delay"] is None


def verdict(settle: float, says: list[Say], moves: list[Move]) -> tuple[Verdict, str]:
    _, leaders, stage = watched(says, moves)
    return OneLeaderEach(leaders, settle).judge(stage, Ended.UNTIL)


def test_the_checker_fails_where_a_component_goes_without_a_leader() -> None:
    moves: list[Move] = [(0.0, TOGETHER), (10.0, APART)]
    late: list[Say] = [(13.0, 2, 2), (14.0, 1, 2)]
    assert verdict(4.0, late, moves)[0] is Verdict.HOLDS
    assert verdict(3.9, late, moves) == (
        Verdict.VIOLATED,
        "members 1, 2 stayed together from 10 on, without one leader of their own for 4: longer "
        "than 3.9",
    )
    assert verdict(9.0, [], moves)[0] is Verdict.VIOLATED  # to the end
    alone = verdict(9.0, [], [(0.0, TOGETHER), (10.0, ((1,), (2, 3, 4)))])
    assert alone[1].startswith("member 1 was alone from 10 on")


def test_the_checker_fails_where_two_lead() -> None:
    moves: list[Move] = [(0.0, TOGETHER)]
    assert verdict(5.0, [(10.0, 1, 1)], moves)[0] is Verdict.VIOLATED
    assert verdict(5.0, [(10.0, 1, 1), (15.0, 1, 4)], moves)[0] is Verdict.HOLDS


def test_the_checker_says_nothing_where_nobody_stays() -> None:
    moves: list[Move] = [(float(at), APART if at % 2 else TOGETHER) for at in range(20)]
    assert verdict(2.0, [], moves) == (Verdict.UNDECIDED, "no two members stayed together for 2")
