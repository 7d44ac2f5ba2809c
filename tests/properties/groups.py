"""Random groups in which members crash at any moment, and what is asked of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from hustings.core.choice import Choice, parse_choice
from hustings.core.election import Election
from hustings.sim.checkers import Verdict
from hustings.sim.delay import Delay, Fixed, Uniform
from hustings.sim.experiment import Experiment
from hustings.sim.faults import (
    Alive,
    Call,
    Crash,
    Happening,
    Pause,
    Restart,
    Resume,
    Suspect,
)
from hustings.sim.loss import NoLoss, Uncorrelated
from hustings.sim.network import Network
from hustings.sim.play import RunResult
from hustings.sim.scenarios import Scenario
from hustings.sim.world import World

DELTA = 1.0
LATENCY = 2 * DELTA
MAX_EVENTS = 20_000
INSTANTS = st.integers(0, 100).map(lambda quarter: quarter / 4)


@dataclass(frozen=True)
class Story:
    members: int
    delay: Delay
    scenario: Scenario
    choice: Choice
    seed: int


CHOICES = st.sampled_from(["highest-id", "lowest-id"]).map(parse_choice)
DELAYS = st.sampled_from([Fixed(DELTA), Fixed(DELTA / 4), Uniform(0.0, DELTA)])


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Members crash at an instant or in the middle of sending; anybody calls at any time.

    A first election is called by one who lives on: else it may die with all who know of it.
    """
    n = draw(st.integers(1, 7))
    name = draw(st.sampled_from(["start", "leader-crash"])) if n > 1 else "start"
    choice = draw(CHOICES)
    mortal = draw(st.permutations(range(1, n + 1)))
    if name == "leader-crash":  # the best one is dead already, and somebody must be left
        mortal.remove(max(mortal) if choice.name == "highest-id" else min(mortal))
    doomed = mortal[1:][: draw(st.integers(0, n))]
    crashes = [
        Crash(member=member, at=draw(INSTANTS), after_sends=draw(st.none() | st.integers(1, 12)))
        for member in doomed
    ]
    calls = draw(st.lists(st.builds(_call, st.integers(1, n), INSTANTS), max_size=4))
    return Story(
        members=n,
        delay=draw(DELAYS),
        scenario=Scenario(
            name,
            initiators=(mortal[0],) if name == "start" else (),
            extra=(*crashes, *calls),
        ),
        choice=choice,
        seed=draw(st.integers(0, 1000)),
    )


def _call(member: int, at: float) -> Happening:
    return Call(member=member, at=at)


@dataclass(frozen=True, slots=True, kw_only=True)
class WildSuspect(Suspect):
    """A detector that errs about anybody, itself and the unknown too: elections have to bear it."""

    def prepare(self, world: World) -> None:
        world.member(self.member)


@dataclass(frozen=True, slots=True, kw_only=True)
class WildAlive(Alive):
    """The same of one that takes a suspicion back."""

    def prepare(self, world: World) -> None:
        world.member(self.member)


def suspicions(n: int) -> st.SearchStrategy[Happening]:
    """A detector that errs, about anybody, also somebody unheard of."""
    return st.builds(
        _told,
        st.sampled_from([WildSuspect, WildSuspect, WildAlive]),
        st.integers(1, n),
        st.integers(1, n + 1),
        INSTANTS,
    )


def _told(kind: type[Suspect] | type[Alive], member: int, about: int, at: float) -> Happening:
    return kind(member=member, about=about, at=at)


def _done(kind: type[Restart] | type[Pause] | type[Resume], member: int, at: float) -> Happening:
    return kind(member=member, at=at)


@st.composite
def misled(draw: st.DrawFn) -> Story:
    """As above, and a detector that errs on top of the one that does not."""
    story = draw(stories())
    errors = draw(st.lists(suspicions(story.members), min_size=1, max_size=8))
    extra = (*story.scenario.extra, *errors)
    return replace(story, scenario=replace(story.scenario, extra=extra))


@st.composite
def troubled(draw: st.DrawFn) -> tuple[Story, Network]:
    """Also members that pause and come back, and messages lost, doubled and out of order."""
    story = draw(misled())
    member = st.integers(1, story.members)
    happening = st.builds(_done, st.sampled_from([Restart, Pause, Resume]), member, INSTANTS)
    extra = (*story.scenario.extra, *draw(st.lists(happening, max_size=8)))
    network = Network(
        delay=story.delay,
        loss=draw(st.sampled_from([NoLoss(), Uncorrelated(0.2)])),
        duplicate=draw(st.sampled_from([0.0, 0.3])),
        reorder=0.3,
        hold_back=4.0,
    )
    return replace(story, scenario=replace(story.scenario, extra=extra)), network


def experiment(kind: type[Election], story: Story, network: Network | None = None) -> Experiment:
    return Experiment(
        kind,
        story.members,
        kind.Settings(),
        choice=story.choice,
        network=network or Network(delay=story.delay),
        scenario=story.scenario,
        seed=story.seed,
        oracle=LATENCY,
        until=5_000.0,
        max_events=MAX_EVENTS,
    )


def complaints(result: RunResult, *properties: str) -> list[str]:
    """What does not hold of the properties named."""
    return [
        f"{name}: {reason}"
        for name, (verdict, reason) in result.verdicts.items()
        if name in properties and verdict is not Verdict.HOLDS
    ]
