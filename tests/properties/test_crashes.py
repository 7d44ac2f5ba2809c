"""Crashes at any moment: what is promised while the model holds, and how runs end when it does not.

The model: messages arrive within delta, and a detector tells of every crash after 2 delta.
"""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings

from hustings.core.choice import LowestId
from hustings.core.election import Election
from hustings.core.outcome import ELECTING, NoLeader
from hustings.protocols.bully import Bully
from hustings.protocols.ring import Ring
from hustings.sim.delay import Fixed
from hustings.sim.faults import Crash, Suspect
from hustings.sim.network import Network
from hustings.sim.play import play, prepare
from hustings.sim.scenarios import Scenario
from hustings.sim.world import Ended
from tests.properties.groups import Story, complaints, experiment, misled, stories, troubled

PROMISED = ("termination", "agreement", "validity", "uniqueness")
BOTH = pytest.mark.parametrize("kind", [Ring, Bully], ids=lambda kind: kind.about.name)


def check_promises(kind: type[Election], story: Story) -> None:
    result = play(experiment(kind, story), 0)
    assert result.ended is Ended.QUIESCENT
    assert complaints(result, *PROMISED) == []


def check_rest(kind: type[Election], story: Story, network: Network | None = None) -> list[int]:
    """The run comes to rest by itself; who is then still in the middle of an election?"""
    plan = experiment(kind, story, network)
    world = prepare(plan, 0)
    assert world.run(plan.until, plan.max_events) is Ended.QUIESCENT
    return [member.id for member in world.live() if member.outcome == NoLeader(ELECTING)]


@BOTH
@settings(max_examples=180)
@given(story=stories())
def test_the_best_alive_leads_whoever_crashes_whenever(kind: type[Election], story: Story) -> None:
    check_promises(kind, story)


SKIPPED = Story(
    # Member 3 wrongly skips the best one; 4, who would not, dies: a name goes round without end.
    members=4,
    delay=Fixed(0.25),
    scenario=Scenario(
        "start", initiators=(1,), extra=(Crash(member=4, at=1.0), Suspect(member=3, about=1))
    ),
    choice=LowestId(),
    seed=0,
)


@BOTH
@settings(max_examples=180)
@given(story=misled())
@example(story=SKIPPED)
def test_nobody_hangs_because_its_detector_errs(kind: type[Election], story: Story) -> None:
    assert check_rest(kind, story) == []


@BOTH
@settings(max_examples=120)
@given(world=troubled())
def test_whatever_happens_a_run_comes_to_rest(
    kind: type[Election], world: tuple[Story, Network]
) -> None:
    check_rest(kind, *world)


@pytest.mark.soak
@BOTH
@settings(max_examples=20_000)
@given(story=stories())
def test_the_best_alive_leads_in_very_many_stories(kind: type[Election], story: Story) -> None:
    check_promises(kind, story)


@pytest.mark.soak
@BOTH
@settings(max_examples=20_000)
@given(story=misled())
def test_nobody_hangs_in_very_many_stories(kind: type[Election], story: Story) -> None:
    assert check_rest(kind, story) == []
