"""Who holds whom over time, from scripted declarations."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import pytest

from hustings.core.choice import MemberId
from hustings.core.context import Context
from hustings.core.outcome import Elected, NoLeader, Outcome
from hustings.sim.consistency import Accord, Lapses, Leaders, held_by, most_held
from hustings.sim.faults import Crash, Happening, Join, Leave, Pause, Restart, Resume
from hustings.sim.world import World
from tests.unit.sim.worlds import Stage, arm

Say = tuple[float, MemberId, MemberId | None]  # when, who, whom it holds from then on


def stage_of(says: list[Say], *happenings: Happening, n: int = 3, holding: int | None = 3) -> Stage:
    """Members hold `holding` at first and then say what they hold."""
    stage = Stage(n)
    for member in stage.members.values():
        member.outcome = None if holding is None else Elected(holding, 1)
    for at, who, whom in says:
        outcome = NoLeader() if whom is None else Elected(whom, 1)
        stage.let(at, who, partial(_declare, outcome))
    stage.plan(*happenings)
    return stage


def _declare(outcome: Outcome, ctx: Context) -> None:
    ctx.declare(outcome)


@dataclass
class Moments:
    """Notes every accord."""

    accord: Accord
    seen: list[tuple[float, MemberId | None]] = field(default_factory=list)

    def upon(self, world: World) -> None:
        self.seen.append((world.now, self.accord.leader))


def watched(stage: Stage, until: float) -> tuple[Accord, list[tuple[float, MemberId | None]]]:
    accord = Accord()
    moments = Moments(accord)
    accord.upon = moments.upon
    accord.begin(stage)
    stage.let(until, 1, arm("end", 0.0))  # so that the run lasts until then
    stage.run(until)
    return accord, moments.seen


def test_all_hold_one_leader_or_they_do_not() -> None:
    stage = stage_of([(1.0, 1, 2), (2.0, 1, 3), (5.0, 2, None), (5.5, 2, 3)])
    accord, seen = watched(stage, 10.0)
    assert seen == [(0.0, 3), (2.0, 3), (5.5, 3)]
    assert accord.metrics(stage) == {
        "inconsistent_fraction": pytest.approx(0.15),
        "inconsistencies": 2.0,
        "inconsistency_duration": pytest.approx(0.75),
    }


def test_an_accord_that_lasts_no_time_is_noticed_but_ends_no_discord() -> None:
    stage = stage_of([(1.0, 1, None), (2.0, 1, 3), (2.0, 2, None), (3.0, 2, 3)])
    accord, seen = watched(stage, 4.0)
    assert seen == [(0.0, 3), (2.0, 3), (3.0, 3)]
    found = accord.metrics(stage)
    assert found["inconsistencies"] == 1
    assert found["inconsistency_duration"] == 2.0
    assert found["inconsistent_fraction"] == 0.5


def test_a_discord_that_lasts_no_time_is_none() -> None:
    stage = stage_of([(1.0, 1, None), (1.0, 1, 3)])
    accord, _ = watched(stage, 4.0)
    assert accord.metrics(stage)["inconsistencies"] == 0
    assert accord.metrics(stage)["inconsistent_fraction"] == 0.0
    assert accord.metrics(stage)["inconsistency_duration"] is None


def test_discords_at_either_end_count_with_their_time_only() -> None:
    stage = stage_of([(1.0, 2, 3), (1.0, 3, 3), (7.0, 1, 2)], holding=None)
    stage.members[1].outcome = Elected(3, 1)
    accord, seen = watched(stage, 8.0)
    assert seen == [(1.0, 3)]
    assert accord.metrics(stage) == {
        "inconsistent_fraction": 0.25,
        "inconsistencies": 0.0,
        "inconsistency_duration": None,
    }


def test_a_new_term_of_the_same_leader_is_no_discord() -> None:
    stage = stage_of([])
    stage.let(1.0, 1, lambda ctx: ctx.declare(Elected(3, 2)))
    _, seen = watched(stage, 4.0)
    assert seen == [(0.0, 3)]


def test_a_dead_leader_is_no_leader_whoever_holds_it() -> None:
    says: list[Say] = [(2.0, 1, 2), (3.0, 2, 2)]
    accord, seen = watched(stage_of(says, Crash(member=3, at=1.0)), 4.0)
    assert seen == [(0.0, 3), (3.0, 2)]
    assert (accord.leader, accord.since) == (2, 3.0)


def test_if_only_the_leader_itself_held_it_the_rest_agrees_at_once() -> None:
    stage = stage_of([(0.5, 1, 2), (0.6, 2, 2)], Crash(member=3, at=1.0))
    assert watched(stage, 4.0)[1] == [(0.0, 3), (1.0, 2)]


def test_who_comes_has_to_agree_too() -> None:
    stage = Stage(3, up=[2, 3])
    for member in (2, 3):
        stage.members[member].outcome = Elected(3, 1)
    stage.plan(Join(member=1, at=1.0))
    stage.let(3.0, 1, lambda ctx: ctx.declare(Elected(3, 1)))
    accord, seen = watched(stage, 4.0)
    assert seen == [(0.0, 3), (3.0, 3)]
    assert accord.metrics(stage)["inconsistent_fraction"] == 0.5


def test_a_restarted_member_holds_nobody() -> None:
    stage = stage_of([], Crash(member=1, at=1.0), Restart(member=1, at=2.0))
    accord, seen = watched(stage, 4.0)
    assert seen == [(0.0, 3)]
    assert accord.leader is None
    assert accord.metrics(stage)["inconsistent_fraction"] == 0.5


def test_who_is_about_to_leave_has_no_say() -> None:
    stage = stage_of([(2.0, 1, 2), (3.0, 2, 2), (3.5, 3, 1)], Leave(member=3, linger=5.0, at=1.0))
    accord = Accord()
    stage.at(1.0, lambda: accord.excuse(stage, stage.members[3]))
    accord.begin(stage)
    stage.run(4.0)
    assert stage.members[3].up
    assert (accord.leader, accord.since) == (2, 3.0)


def test_the_last_one_gone_nobody_agrees() -> None:
    stage = stage_of([], *(Crash(member=one, at=1.0) for one in (1, 2, 3)))
    accord, _ = watched(stage, 2.0)
    assert accord.leader is None


def test_what_never_began_has_no_values() -> None:
    stage = Stage(2)
    for observer in (Accord(), Leaders(), Lapses()):
        found = observer.metrics(stage)
        assert found
        assert set(found.values()) == {None}


def test_what_began_just_now_has_lasted_no_time() -> None:
    stage = stage_of([])
    accord, leaders, lapses = Accord(), Leaders(), Lapses()
    accord.begin(stage)
    leaders.begin(stage)
    lapses.begin(stage, 3)
    assert accord.metrics(stage)["inconsistent_fraction"] is None
    assert leaders.metrics(stage)["simultaneous_leaders"] == 1.0
    assert lapses.metrics(stage)["false_departure_fraction"] is None


# Who leads by its own word


def led(stage: Stage, until: float) -> dict[str, float | None]:
    leaders = Leaders()
    leaders.begin(stage)
    stage.let(until, 1, arm("end", 0.0))
    stage.run(until)
    return leaders.metrics(stage)


def test_leaders_are_counted_over_time() -> None:
    says: list[Say] = [(1.0, 1, 1), (2.0, 2, 2), (3.0, 1, 3), (4.0, 2, None)]
    assert led(stage_of(says), 8.0) == {
        "simultaneous_leaders": (8.0 + 2.0 + 2.0) / 8.0,
        "simultaneous_leaders_max": 3.0,
    }


def test_a_leader_that_is_gone_or_asleep_does_not_count() -> None:
    stage = stage_of([(1.0, 1, 1)], Crash(member=3, at=2.0))
    assert led(stage, 4.0)["simultaneous_leaders"] == (2.0 + 3.0) / 4.0
    asleep = stage_of([], Pause(member=3, at=1.0), Resume(member=3, at=3.0))
    assert led(asleep, 4.0)["simultaneous_leaders"] == 0.5


def test_a_claim_repeated_is_one_claim() -> None:
    assert led(stage_of([(1.0, 3, 3), (2.0, 3, 3)]), 4.0)["simultaneous_leaders"] == 1.0


# False departures


def astray(stage: Stage, until: float) -> dict[str, float | None]:
    lapses = Lapses()
    lapses.begin(stage, 3)
    stage.let(until, 1, arm("end", 0.0))
    stage.run(until)
    return lapses.metrics(stage)


def test_each_listener_goes_astray_on_its_own() -> None:
    says: list[Say] = [(1.0, 1, None), (2.0, 1, 2), (3.0, 2, None), (4.0, 1, 3), (5.0, 2, 3)]
    assert astray(stage_of(says), 10.0) == {
        "false_departures": 2.0,
        "false_departure_duration": 2.5,
        "false_departure_fraction": 0.25,
    }


def test_lapses_at_either_end_count_with_their_time_only() -> None:
    stage = stage_of([(2.0, 1, 3), (9.0, 2, None)])
    stage.members[1].outcome = NoLeader()
    found = astray(stage, 10.0)
    assert found == {
        "false_departures": 1.0,
        "false_departure_duration": None,
        "false_departure_fraction": pytest.approx(0.15),
    }


def test_the_leader_itself_is_no_listener() -> None:
    assert astray(stage_of([(1.0, 3, None), (2.0, 3, 3)]), 4.0)["false_departures"] == 0.0


# Who leads, from outside


def test_the_leader_whom_most_hold_must_be_alive() -> None:
    stage = stage_of([])
    assert most_held(stage) == 3
    stage.members[1].outcome = Elected(2, 1)
    assert most_held(stage) == 3
    assert [held_by(member) for member in stage.live()] == [2, 3, 3]
    stage.plan(Crash(member=3))
    stage.run()
    assert most_held(stage) == 2
    assert most_held(Stage(2)) is None
