"""Leaders and their terms: what the checker of terms says, in every story of the classic elections.

Here stands a second judge, which hears of every declaration and knows the rule only: a term has one
leader, in the end leader and followers hold the same term, and nobody's terms ever fall.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hustings.core.choice import HighestId, MemberId
from hustings.core.election import Election
from hustings.core.outcome import Elected, Outcome
from hustings.protocols.registry import COMPARED, classes
from hustings.sim.checkers import Verdict
from hustings.sim.experiment import Experiment
from hustings.sim.faults import Alive, Crash, Restart, Suspect
from hustings.sim.member import SimContext
from hustings.sim.play import prepare
from hustings.sim.scenarios import SCENARIOS, Scenario
from hustings.sim.world import World
from tests.paper.playing import finish

INSTANTS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 8.0, 12.0, 30.0)
by_kind = pytest.mark.parametrize("kind", classes(COMPARED), ids=lambda kind: kind.about.name)


class History:
    """Everybody's leaders and terms."""

    def __init__(self) -> None:
        self.leaders: dict[int, set[MemberId]] = {}
        self.fell: list[MemberId] = []
        self._last: dict[MemberId, int] = {}

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        if isinstance(outcome, Elected):
            self.leaders.setdefault(outcome.term, set()).add(outcome.leader)
            if outcome.term < self._last.get(member.id, 0):
                self.fell.append(member.id)
            self._last[member.id] = outcome.term

    def changed(self, world: World, member: SimContext) -> None:
        """Only words count here."""

    @property
    def shared(self) -> bool:
        return any(len(leaders) > 1 for leaders in self.leaders.values())


def stories(n: int) -> Iterator[tuple[Scenario, float | None]]:
    """A scenario, and how soon a detector that is right notices; None: as the scenario says."""
    for name in SCENARIOS:
        if name != "churn":
            yield Scenario(name), None
    for at in INSTANTS:
        yield Scenario("leader-crash", extra=(Restart(member=n, at=at),)), None
        took_back = (Suspect(member=2, about=n, at=at / 2), Alive(member=1, about=n, at=at))
        yield Scenario("false-departure", detectors=(1,), extra=took_back), None
        for back in ((n,), (n - 1, n), (n - 1,)):
            gone = (Crash(member=n, at=20.0), Crash(member=n - 1, at=24.0))
            again = tuple(Restart(member=member, at=24.0 + at) for member in back)
            yield Scenario("start", initiators=(1,), extra=(*gone, *again)), 1.0


@by_kind
@pytest.mark.parametrize("n", [3, 5, 8])
def test_the_checker_sees_whatever_happens_to_terms(kind: type[Election], n: int) -> None:
    for scenario, oracle in stories(n):
        experiment = Experiment(kind, n, kind.Settings.parse({}), scenario=scenario, oracle=oracle)
        world, history = prepare(experiment, 0), History()
        world.watch(history)
        run = finish(world, HighestId())
        case = (scenario, run.outcomes)
        assert not history.fell, case
        assert (run.verdicts["terms"] is Verdict.VIOLATED) is history.shared, case
        for outcome in run.outcomes.values():
            if isinstance(outcome, Elected) and outcome.leader in run.outcomes:
                own = run.outcomes[outcome.leader]
                if isinstance(own, Elected) and own.leader == outcome.leader:
                    assert own.term == outcome.term, case


@by_kind
def test_a_leader_that_returns_and_its_followers_hold_one_term(kind: type[Election]) -> None:
    """8 is back while the others elect, or after it; only the stable election keeps 7."""
    for at in INSTANTS:
        scenario = Scenario("leader-crash", extra=(Restart(member=8, at=at),))
        experiment = Experiment(kind, 8, kind.Settings.parse({}), scenario=scenario, oracle=1.0)
        run = finish(prepare(experiment, 0), HighestId())
        (outcome,) = set(run.outcomes.values())
        assert isinstance(outcome, Elected), at
        assert outcome.leader in (7, 8), at
