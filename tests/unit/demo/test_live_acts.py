"""The acts, with processes that are none: what is done, measured, and said of what is missed."""

from __future__ import annotations

from itertools import pairwise

import pytest

from hustings.core.errors import BadInput, UnknownName
from hustings.demo.live import acts
from hustings.demo.live.acts import CALM, REST, play_with
from hustings.demo.live.channel import Failed, FollowingReport
from hustings.demo.live.scene import NAMES, LivePlan, LiveScene
from tests.unit.demo.troupe import SOON, Clock, Notebook, Obedient, Reluctant, Stubborn

PLAN = LivePlan(members=6, protocol="bully", seconds=20.0, seed=1)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(acts, "time", clock)
    return clock


def run(troupe: Obedient, plan: LivePlan = PLAN) -> tuple[LiveScene, Notebook]:
    notebook = Notebook()
    return play_with(troupe, plan, notebook), notebook


def test_all_acts_are_played_in_order_and_measured(clock: Clock) -> None:
    troupe = Obedient(clock)
    scene, _ = run(troupe)
    assert [act.name for act in scene.acts] == list(NAMES)
    assert scene.fine
    assert scene.failure == ""
    assert troupe.dismissed
    for act in scene.acts[1:]:
        assert act.agreed == pytest.approx(SOON), act.name
        assert act.noticed == pytest.approx(SOON), act.name
        assert not act.failure


def test_the_leader_is_what_is_hurt(clock: Clock) -> None:
    troupe = Obedient(clock)
    scene, _ = run(troupe)
    by = {act.name: act for act in scene.acts}
    assert troupe.deeds[6:] == [
        "kill m1",
        "start m1",
        "pause m6",
        "resume m6",
        f"hand over from m6 to {by['transfer'].after[0]}",
    ]
    assert (by["kill"].before, by["kill"].after, by["kill"].members) == (("m1",), ("m6",), 5)
    assert (by["restart"].after, by["restart"].members) == (("m6",), 6)
    assert (by["pause"].after, by["pause"].members) == (("m5",), 5)
    assert by["resume"].after == ("m5",)
    assert len(by["cut"].after) == 2
    assert by["heal"].before == by["cut"].after
    assert by["heal"].after == ("m6",)


def test_a_new_process_is_given_addresses_of_those_that_run(clock: Clock) -> None:
    troupe = Obedient(clock)
    run(troupe)
    assert troupe.parts["m1"][0].seeds == ()
    assert troupe.parts["m2"][0].seeds == ("127.0.0.1:7000",)
    again = troupe.parts["m1"][1]
    assert len(again.seeds) == 3
    assert "127.0.0.1:7000" not in again.seeds  # where it was itself, before it was killed
    assert again.rank == 1


def test_both_sides_of_a_cut_are_told_of_all_on_the_other(clock: Clock) -> None:
    class Curious(Obedient):
        def cut(self) -> None:
            self.seen = {name: set(cut.endpoints) for name, cut in self.away.items()}
            super().cut()

    troupe = Curious(clock)
    run(troupe)
    everybody = {troupe.endpoint(name) for name in troupe.running}
    for name, away in troupe.seen.items():
        mine = everybody - away
        assert troupe.endpoint(name) in mine
        assert all(
            troupe.seen[other] == away for other in troupe.seen if troupe.endpoint(other) in mine
        )
        assert 2 <= len(away) <= 4


def test_acts_are_spread_over_the_time_that_was_asked_for(clock: Clock) -> None:
    scene, _ = run(Obedient(clock))
    slot = PLAN.seconds / len(NAMES)
    for place, act in enumerate(scene.acts):
        assert act.began == pytest.approx(place * slot, abs=0.06)
    assert scene.elapsed == pytest.approx(PLAN.seconds, abs=0.1)


def test_with_too_little_time_acts_follow_each_other_closely(clock: Clock) -> None:
    scene, _ = run(Obedient(clock), LivePlan(6, "bully", 0.1, 1))
    assert scene.fine
    assert scene.elapsed == pytest.approx(len(NAMES) * (CALM + REST + SOON), rel=0.1)
    assert scene.quiet_rate is None  # no rest was long enough to count in


def test_messages_at_rest_are_counted_for_one_member(clock: Clock) -> None:
    scene, _ = run(Obedient(clock))
    assert scene.quiet_rate == pytest.approx(8.0, abs=0.5)


def test_what_does_not_come_in_time_is_told_and_fails(clock: Clock) -> None:
    scene, notebook = run(Stubborn(clock))
    by = {act.name: act for act in scene.acts}
    assert len(by) == len(NAMES)  # the show goes on
    assert by["kill"].agreed is None
    assert by["kill"].failure == "no agreement within 15.6 s"
    assert "No agreement within 15.6 s: nobody leads." in notebook.lines
    assert not scene.fine


def test_a_refusal_ends_the_wait_at_once(clock: Clock) -> None:
    scene, notebook = run(Reluctant(clock))
    last = scene.acts[-1]
    assert last.agreed is None
    assert "only observes and cannot lead" in last.failure
    assert scene.elapsed < PLAN.seconds + 1.0
    assert any("refused: " in line for line in notebook.lines)
    assert not scene.fine


def test_agreement_that_does_not_last_does_not_count(clock: Clock) -> None:
    """They agree after 10 ms, think otherwise after 300 ms and come back 200 ms later."""

    class Fickle(Obedient):
        def lose(self) -> None:
            super().lose()
            at = self.clock.now
            waverer = min(self.running)
            self.report(waverer, FollowingReport(at + 0.3, "", self.term), 0.3)
            self.report(waverer, FollowingReport(at + 0.5, self.leader, self.term), 0.5)

    scene, _ = run(Fickle(clock))
    assert scene.acts[1].agreed == pytest.approx(0.5)
    assert scene.acts[1].noticed == pytest.approx(SOON)


def test_a_report_that_comes_late_still_tells_the_true_time(clock: Clock) -> None:
    class Slow(Obedient):
        def lose(self) -> None:
            super().lose()
            at = self.clock.now
            self._due = [
                (due + 0.4 if name == "m2" and due > at else due, count, name, report)
                for due, count, name, report in self._due
            ]
            self._due.sort()

    scene, _ = run(Slow(clock))
    assert scene.acts[1].agreed == pytest.approx(SOON)


def test_a_change_that_nobody_asked_for_is_told(clock: Clock) -> None:
    class Restless(Obedient):
        def lose(self) -> None:
            super().lose()
            if self.term == 2:  # after the kill; then, during the rest, another election
                for name in self.running:
                    self.report(name, FollowingReport(self.clock.now + 1.0, "m3", 3), 1.0)
                self.leader, self.term = "m3", 3

    scene, notebook = run(Restless(clock))
    assert scene.unasked == 1
    assert scene.fine
    [line] = [line for line in notebook.lines if line.startswith("Meanwhile")]
    assert "from m6 to m3" in line


def test_a_group_that_does_not_come_together_ends_the_show(clock: Clock) -> None:
    class Mute(Obedient):
        def report(self, name: str, report: object, later: float = 0.0) -> None:
            pass

    scene, _ = run(Mute(clock))
    assert "has not come together: the first member did not open in time" in scene.failure
    assert len(scene.acts) == 1
    assert not scene.fine


def test_a_process_that_ends_by_itself_ends_the_show(clock: Clock) -> None:
    class Frail(Obedient):
        def lose(self) -> None:
            super().lose()
            self.report("m4", Failed("no space left"), 0.1)

    scene, _ = run(Frail(clock))
    assert scene.failure == "member m4 ended: no space left"
    assert not scene.fine


def test_members_that_never_hear_of_each_other_are_a_failure(clock: Clock) -> None:
    class Loners(Obedient):
        def tick(self) -> None:
            pass

    scene, notebook = run(Loners(clock))
    assert "not all members know of each other" in scene.failure
    assert any("not all members know" in line for line in notebook.lines)
    assert not scene.fine


def test_members_that_fall_out_again_are_a_failure(clock: Clock) -> None:
    """Agreement lasts through the act, and is gone in the rest that follows."""

    class VolatileStorage(Obedient):
        def lose(self) -> None:
            super().lose()
            if len(self.running) == 5:
                at = self.clock.now + CALM + 0.2
                self.report("m2", FollowingReport(at, "", self.term), CALM + 0.2)

    scene, _ = run(VolatileStorage(clock))
    assert scene.acts[1].agreed == pytest.approx(SOON)
    assert scene.failure == "after 15.6 s not all members agree"
    assert not scene.fine


def test_the_audience_may_look_often(clock: Clock) -> None:
    looked: list[float] = []
    notebook = Notebook()
    notebook.each = lambda scene: looked.append(scene.elapsed)
    play_with(Obedient(clock), PLAN, notebook)
    gaps = [later - sooner for sooner, later in pairwise(looked)]
    assert max(gaps) <= 0.051


@pytest.mark.parametrize("members", [0, 1, 2, 101, 10_000])
def test_too_few_or_too_many_get_a_sentence(members: int) -> None:
    with pytest.raises(BadInput) as caught:
        LivePlan(members, "bully", 20.0, 1)
    assert str(caught.value) == f"members must lie between 3 and 100, not {members}"


def test_a_protocol_must_be_one_that_runs_here() -> None:
    with pytest.raises(UnknownName, match="did you mean 'bully'"):
        LivePlan(5, "buly", 20.0, 1)
    with pytest.raises(BadInput, match="is for study"):
        LivePlan(5, "le-s-printed", 20.0, 1)
