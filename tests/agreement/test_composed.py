"""A simulated member that is composed as `join` does it, beside real members on a virtual clock."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from hustings.core.choice import HighestId
from hustings.core.errors import BadInput
from hustings.core.outcome import Elected, NoLeader, Outcome
from hustings.lab.options import electorate
from hustings.net.composition import Design, configure
from hustings.protocols.registry import find
from hustings.sim.checkers import Verdict
from hustings.sim.delay import Fixed
from hustings.sim.experiment import Description, Experiment, build
from hustings.sim.faults import Crash, Happening, Pause, Restart, Resume
from hustings.sim.member import SimContext
from hustings.sim.network import Network
from hustings.sim.play import RunResult, play, prepare
from hustings.sim.scenarios import Scenario
from hustings.sim.world import Ended, World
from hustings.testing import Group
from hustings.testing.composed import compose_members
from tests.unit.cli.commands import in_process

DELTA = 0.05  # seconds: the default of join
AT = 20.0  # when the leader is paused
SETTINGS: dict[str, dict[str, object]] = {
    "le-s": {"T_L": 3.0},
    "le-m": {"T_L": 3.0},
    "bully": {},
    "stable": {},
}
PATIENT: dict[str, object] = {"T": 1.0, "D": 4.0}  # detectors that do not miss a leader so soon


def described(protocol: str, *faults: Happening, **given: Any) -> Experiment:
    return build(
        Description(
            kind=find(protocol),
            network=Network(delay=Fixed(DELTA)),
            scenario=Scenario(extra=faults),
            composer=compose_members,
            **{"members": 3, **given},
        )
    )


class Log:
    """Who came to which opinion, and when."""

    def __init__(self) -> None:
        self.said: list[tuple[float, int, Outcome]] = []

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        self.said.append((world.now, member.id, outcome))

    def changed(self, world: World, member: SimContext) -> None:
        pass


def leads(member: SimContext) -> bool:
    return isinstance(member.outcome, Elected) and member.outcome.leader == member.id


def simulated(protocol: str, pause: float, **given: Any) -> tuple[bool, bool]:
    """Whether the paused leader stepped down by itself, and whether it leads in the end."""
    if not find(protocol).assumptions.announces:
        given["detection_settings"] = {**PATIENT}
    experiment = described(protocol, settings=SETTINGS[protocol], **given)
    world, log = prepare(replace(experiment, calm=None), 0), Log()
    world.watch(log)
    world.run(AT)
    (leader,) = [member for member in world.live() if leads(member)]
    Pause(member=leader.id).happen(world)
    world.run(AT + pause)
    Resume(member=leader.id).happen(world)
    world.run(AT + pause + 5.0)
    ceased = any(
        at >= AT and who == leader.id and isinstance(said, NoLeader) for at, who, said in log.said
    )
    return ceased, leads(leader)


def real(protocol: str, pause: float, **given: Any) -> tuple[bool, bool]:
    """The same of real members."""
    if not find(protocol).assumptions.announces:
        given["detector_settings"] = {**PATIENT}
    options = {"settings": SETTINGS[protocol], **given}
    with Group(seed=3, protocol=protocol, delay=0.04, **options) as group:
        for name in ("a", "b", "c"):
            group.join(name)
        leader = group.settle(steady=AT - 5.0)
        group.pause(leader)
        group.advance(pause)
        now = group.now
        group.resume(leader)
        group.advance(5.0)
        said = [each.state for each in group.log if each.time >= now and each.member == leader]
        ceased = any(state.leader is None for state in said)
        return ceased, group.member(leader).is_leader


@pytest.mark.parametrize("pause", [0.1, 0.2, 0.8, 1.2])
@pytest.mark.parametrize("protocol", SETTINGS)
def test_a_pause_does_to_a_simulated_leader_what_it_does_to_a_real_one(
    protocol: str, pause: float
) -> None:
    """Longer than the stall bound: it does not lead while it asks, and then leads again."""
    given = {"leadership_settings": {"stall_bound": 0.3}}
    expected = (pause > 0.3, True)
    assert real(protocol, pause, **given) == expected
    assert simulated(protocol, pause, **given) == expected


@pytest.mark.parametrize("bound, ceases", [(0.1, True), (0.5, True), (1.0, False), (60.0, False)])
def test_the_stall_bound_is_a_setting(bound: float, ceases: bool) -> None:
    assert real("le-s", 0.8, stall_bound=bound) == (ceases, True)
    assert simulated("le-s", 0.8, leadership_settings={"stall_bound": bound}) == (ceases, True)


def test_a_long_pause_costs_the_office_in_both_worlds() -> None:
    assert real("le-s", 6.0)[0]
    assert simulated("le-s", 6.0)[0]


def test_an_election_by_itself_does_not_notice_a_pause() -> None:
    """The simulated election without what stands round it leads on: that is what differed."""
    alone = build(
        Description(
            kind=find("le-s"),
            members=3,
            network=Network(delay=Fixed(DELTA)),
            settings={"T_L": 3.0},
            scenario=Scenario(extra=(Pause(member=3, at=AT), Resume(member=3, at=AT + 0.8))),
        )
    )
    world, log = prepare(alone, 0), Log()
    world.watch(log)
    world.run(AT + 2.0)
    assert not [said for at, who, said in log.said if at >= AT and who == 3]


@pytest.mark.parametrize("protocol", ["le-s", "bully", "ring", "probabilistic"])
def test_settings_are_those_that_join_derives(protocol: str) -> None:
    kind = find(protocol)
    joined = configure(Design(kind, HighestId()))
    experiment = described(protocol)
    assert experiment.config == joined.election
    assert experiment.composition is not None
    assert experiment.composition.stall_bound == joined.pause == 0.25


@pytest.mark.parametrize("guard", ["none", "memory", "quorum"])
@pytest.mark.parametrize("protocol", ["le-s", "le-a", "bully", "ring", "stable", "bully-map"])
def test_composed_members_elect_another_leader_after_a_crash(protocol: str, guard: str) -> None:
    given: dict[str, Any] = {} if guard == "none" else {"guard": {}}
    if guard == "quorum":
        given["voting"] = lambda delta: electorate(3, delta)
    result = play(described(protocol, Crash(member=3, at=40.0), max_events=200_000, **given), 0)
    assert result.ended is Ended.STOPPED
    assert result.metrics["leader"] in (1.0, 2.0)
    assert not [name for name, (one, _) in result.verdicts.items() if one.value == "violated"]


LOSES_OFFICE = (Pause(member=5, at=60.0), Resume(member=5, at=60.8))
RETURNS = (Crash(member=5, at=20.0), Restart(member=5, at=40.0))


def judged(protocol: str, *faults: Happening, **given: Any) -> RunResult:
    if given.pop("quorum", False):
        given |= {"guard": {}, "voting": partial(electorate, 3)}
    result = play(described(protocol, *faults, members=5, max_events=200_000, **given), 0)
    assert result.ended is Ended.STOPPED
    return result


@pytest.mark.parametrize("quorum", [False, True])
@pytest.mark.parametrize("faults", [LOSES_OFFICE, RETURNS])
@pytest.mark.parametrize("protocol", ["ring", "bully", "stable", "le-s"])
def test_a_member_that_comes_back_does_not_displace_a_living_leader(
    protocol: str, faults: tuple[Happening, ...], quorum: bool
) -> None:
    """Nor is the other leader a violation, though the election by itself would displace it."""
    result = judged(protocol, *faults, quorum=quorum)
    assert result.metrics["leader"] is not None
    assert result.verdicts["validity"][0] is Verdict.HOLDS, result.verdicts


@pytest.mark.parametrize("after", [0.0, 3.0, 30.0])
@pytest.mark.parametrize("protocol", ["ring", "bully", "stable"])
def test_where_it_is_to_take_over_the_run_goes_on_until_it_has(protocol: str, after: float) -> None:
    result = judged(protocol, *RETURNS, leadership_settings={"preempt_after": after})
    assert result.metrics["leader"] == 5.0
    assert result.verdicts["validity"][0] is Verdict.HOLDS


def test_where_it_is_to_take_over_another_leader_is_a_violation() -> None:
    """Cut off before it can: who is not the best alive is told."""
    settings = {"preempt_after": 30.0}
    experiment = described("ring", *RETURNS, members=5, leadership_settings=settings)
    result = play(replace(experiment, calm=1.0), 0)
    assert result.metrics["leader"] == 4.0
    assert result.verdicts["validity"][0] is Verdict.VIOLATED


def test_runs_of_composed_members_are_reproducible() -> None:
    faults = (Pause(member=3, at=AT), Resume(member=3, at=AT + 0.8))
    digests = [play(described("le-s", *faults, digest=True), run).digest for run in (0, 0, 1)]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(
    "given, complaint",
    [
        ({"scenario": Scenario("leader-crash")}, "take --scenario start"),
        ({"detection": "perfect"}, "a detector of their own"),
        ({"membership": "gossip"}, "drop --membership"),
        ({"view": 0.5}, "drop --view"),
        ({"debug": True}, "--debug needs elections that are not composed"),
        ({"leadership_settings": {"stall_bound": 0.01}}, "stall_bound must be"),
        ({"leadership_settings": {"stall_bound": "inf"}}, "stall_bound must be finite"),
        ({"composer": None, "leadership_settings": {"preempt_after": 1}}, "goes with --composed"),
    ],
)
def test_a_mistake_gets_a_sentence(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        build(Description(**{"kind": find("le-s"), "composer": compose_members, **given}))


def test_the_command_line_shows_the_step_down(capsys: pytest.CaptureFixture[str]) -> None:
    base = "sim le-s -n 3 --delay 0.05 --composed --set T_L=3 --json --fault pause:3@20"
    typed = shlex.split(base)
    hustings = in_process(capsys)

    def step_downs(end: str, *more: str) -> float:
        shown = hustings(*typed, "--fault", f"resume:3@{end}", *more)
        return float(json.loads(shown.out)["metrics"]["step_downs"]["mean"])

    short = step_downs("20.8")
    assert step_downs("22.9") == short + 1
    assert step_downs("20.8", "--leadership-set", "stall_bound=0.5s") == short + 1
