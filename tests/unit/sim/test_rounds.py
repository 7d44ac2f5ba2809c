"""The study of elections in rounds: what it counts, whom it lets crash, how it sees the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import pytest

from hustings.core.choice import MemberId
from hustings.core.config import Config, Surroundings
from hustings.core.context import Context, TimerKey
from hustings.core.election import About, Assumptions, upon
from hustings.core.errors import BadInput
from hustings.core.messages import Message, Role
from hustings.core.outcome import ELECTING, Guarantee, Outcome
from hustings.core.rounds import RoundBased
from hustings.core.streams import Stream
from hustings.protocols.bully import Bully, BullyConfig
from hustings.sim.experiment import Experiment, has_rounds
from hustings.sim.faults import Crash
from hustings.sim.loss import Correlated, Uncorrelated
from hustings.sim.member import SimContext, Status
from hustings.sim.network import Network
from hustings.sim.play import play, prepare
from hustings.sim.rounds import struck
from hustings.sim.scenarios import Scenario
from hustings.sim.world import World
from tests.unit.sim.laws import believable

LASTS = 10.0


class OpenMsg(Message, frozen=True, tag="OPEN"):
    """A round begins."""

    role: ClassVar[Role] = Role.ELECTION
    round: int


class NameMsg(Message, frozen=True, tag="NAME"):
    """Hold this leader."""

    role: ClassVar[Role] = Role.COORDINATOR
    leader: MemberId
    round: int = 1


class DirectedConfig(Config, frozen=True, kw_only=True):
    """Whom each member is told to hold in each round, and what the world is like."""

    script: tuple[tuple[int, MemberId, MemberId | None], ...] = ()  # round, member, whom to hold
    rounds: int = 1
    p_ucastl: float | None = None
    p_mcastl: float | None = None
    p_fail: float | None = None
    view_prob: float | None = None

    def surroundings(self) -> Surroundings:
        return Surroundings(self.p_ucastl, self.p_mcastl, self.p_fail, self.view_prob)


class Directed(RoundBased):
    """The caller opens `rounds` rounds of `LASTS` each; at their ends members do as scripted."""

    about = About(
        name="directed",
        family="test",
        paper="none",
        idea="does as it is told",
        model="any",
        guarantee=Guarantee.ADVISORY,
        cost="as told",
        promises="nothing",
    )
    assumptions = Assumptions(reliable=False, displaces=False)
    Settings = DirectedConfig
    messages = (OpenMsg, NameMsg)
    config: DirectedConfig

    def call(self, ctx: Context) -> None:
        for number in range(1, self.config.rounds + 1):
            ctx.set_timer(("open", number), LASTS * (number - 1), eager=True)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        assert isinstance(key, tuple)
        what, number = key
        if what == "open":
            ctx.multicast(OpenMsg(number))
            ctx.set_timer(("end", number), LASTS)
            ctx.send(1, NameMsg(0))  # a message more
            return
        for when, who, whom in self.config.script:
            if (when, who) == (number, ctx.me.id):
                if whom is None:
                    self.disown(ctx, "told so")
                else:
                    self.elect(ctx, whom, number)

    @upon(OpenMsg)
    def on_open(self, ctx: Context, sender: MemberId, message: OpenMsg) -> None:
        ctx.set_timer(("end", message.round), LASTS - 1.0)

    @upon(NameMsg)
    def on_name(self, ctx: Context, sender: MemberId, message: NameMsg) -> None:
        pass

    def opens(self, message: Message) -> tuple[int, ...] | None:
        return (7, message.round) if isinstance(message, OpenMsg) else None

    def span(self, message: Message, members: int) -> tuple[float, float]:
        return 0.0, LASTS

    def tallies(self) -> Mapping[str, int]:
        return {"told": len(self.config.script)}


def directed(members: int = 4, scenario: Scenario | None = None, **settings: object) -> Experiment:
    config = DirectedConfig.parse(settings)
    return Experiment(Directed, members, config, scenario=scenario or Scenario(initiators=(2,)))


def all_hold(leader: MemberId, number: int = 1) -> list[tuple[int, MemberId, MemberId | None]]:
    return [(number, member, leader) for member in range(1, 5)]


def test_which_elections_have_rounds() -> None:
    assert has_rounds(Directed)
    assert not has_rounds(Bully)


# What is counted


def test_messages_rounds_and_tallies() -> None:
    found = play(directed(rounds=3, script=tuple(all_hold(3, 3))), 0).metrics
    assert found["rounds"] == 3.0
    assert found["mcasts"] == 3.0
    assert found["ucasts"] == 3.0
    assert found["messages"] == 6.0
    assert found["reinitiations"] == 2.0
    assert found["told"] == 4 * 4.0
    assert found["time"] == 30.0


def test_nothing_called_nothing_counted() -> None:
    found = play(directed(scenario=Scenario(initiators=(2,), extra=(Crash(member=2),))), 0).metrics
    assert found["rounds"] == found["mcasts"] == found["ucasts"] == found["reinitiations"] == 0.0
    assert found["strong"] == 0.0
    assert found["leaderless"] == 1.0


# What comes of it


@pytest.mark.parametrize(
    "script, strong, weak, weak_live, leaderless, two",
    [
        (all_hold(3), 1, 1.0, 1.0, 0.0, 0),
        (all_hold(3)[:3], 0, 0.75, 0.75, 0.25, 0),
        ([*all_hold(3)[:3], (1, 4, 4)], 0, 0.75, 0.75, 0.0, 1),
        ([(1, 1, 3), (1, 2, 4)], 0, 0.25, 0.25, 0.5, 0),
        ([], 0, 0.0, 0.0, 1.0, 0),
    ],
)
def test_who_holds_whom_at_the_end(
    script: list[tuple[int, MemberId, MemberId | None]],
    strong: float,
    weak: float,
    weak_live: float,
    leaderless: float,
    two: float,
) -> None:
    found = play(directed(script=tuple(script)), 0).metrics
    assert found["strong"] == strong
    assert found["weak"] == weak
    assert found["weak_live"] == weak_live
    assert found["leaderless"] == leaderless
    assert found["two_leaders"] == found["two_leaders_ever"] == two


def test_a_dead_leader_is_held_but_not_well() -> None:
    crash = Scenario(initiators=(2,), extra=(Crash(member=3, at=11.0),))
    found = play(directed(script=tuple(all_hold(3)), scenario=crash), 0).metrics
    assert found["strong"] == 0.0
    assert found["weak"] == 1.0
    assert found["weak_live"] == 0.0
    assert found["leaderless"] == 0.0


def test_two_leaders_of_an_earlier_round_are_remembered() -> None:
    script = [(1, 3, 3), (1, 4, 4), *all_hold(3, 2)]
    found = play(directed(rounds=2, script=tuple(script)), 0).metrics
    assert found["two_leaders_ever"] == 1.0
    assert found["two_leaders"] == 0.0
    assert found["strong"] == 1.0


def test_a_round_is_looked_at_when_its_last_timers_have_fired() -> None:
    """The caller leads at 10, the instant of the round's end, and 3 since then too."""
    script = ((1, 3, 3), (1, 2, 2), (2, 3, 2), (2, 2, 2))
    found = play(directed(rounds=2, script=script), 0).metrics
    assert found["two_leaders_ever"] == 1.0
    crash = Scenario(initiators=(2,), extra=(Crash(member=3, at=10.0),))
    found = play(directed(rounds=2, script=script, scenario=crash), 0).metrics
    assert found["two_leaders_ever"] == 0.0


def test_of_the_dead_nothing_is_asked() -> None:
    everybody = tuple(Crash(member=member, at=1.5) for member in range(1, 5))
    found = play(directed(scenario=Scenario(initiators=(2,), extra=everybody)), 0).metrics
    assert found["strong"] == 0.0
    assert found["weak"] is found["weak_live"] is found["leaderless"] is None


def test_who_held_the_old_leader_still_does() -> None:
    scenario = Scenario("leader-crash", detectors=(2,))
    found = play(directed(scenario=scenario), 0).metrics
    assert found["weak"] == 1.0
    assert found["weak_live"] == 0.0


# Crashes


class Deaths:
    """Notes when members go down."""

    def __init__(self) -> None:
        self.at: dict[MemberId, float] = {}

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        pass

    def changed(self, world: World, member: SimContext) -> None:
        if member.status is Status.CRASHED:
            self.at[member.id] = world.now


def deaths_of(experiment: Experiment, run: int) -> dict[MemberId, float]:
    world = prepare(experiment, run)
    deaths = Deaths()
    world.watch(deaths)
    world.run()
    return deaths.at


def test_in_every_round_each_live_member_crashes_with_the_same_probability() -> None:
    experiment = directed(members=400, rounds=1, p_fail=0.05)
    found = [deaths_of(experiment, run) for run in range(40)]
    assert believable(sum(map(len, found)), 400 * 40, 0.05)
    instants = [at for one in found for at in one.values()]
    assert all(0.0 <= at <= LASTS for at in instants)
    assert believable(sum(at < LASTS / 4 for at in instants), len(instants), 0.25)
    assert believable(sum(at < LASTS / 2 for at in instants), len(instants), 0.5)
    who = Counter(member for one in found for member in one)
    assert believable(sum(number for member, number in who.items() if member <= 100), 4000, 0.05)


def test_survivors_are_at_risk_again_in_the_next_round() -> None:
    """Of round r, (1 - p)**(r - 1) are left, as long as the caller lives to open it."""
    experiment = directed(members=300, rounds=3, p_fail=0.2)
    at_risk = struck_down = 0
    for run in range(30):
        deaths = deaths_of(experiment, run)
        if deaths.get(2, 99.0) < 2 * LASTS:
            continue  # the caller is gone
        left = 300
        for number in range(3):
            gone = sum(number * LASTS <= at < (number + 1) * LASTS for at in deaths.values())
            at_risk += left
            struck_down += gone
            left -= gone
    assert at_risk > 10_000
    assert believable(struck_down, at_risk, 0.2)


def test_crashes_are_the_same_in_the_same_run_and_others_in_another() -> None:
    experiment = directed(members=100, p_fail=0.1)
    assert deaths_of(experiment, 3) == deaths_of(experiment, 3)
    assert deaths_of(experiment, 3) != deaths_of(experiment, 4)


def test_who_is_struck() -> None:
    assert struck(5, 0.0, Stream(1)) == []
    assert struck(5, 1.0, Stream(1)) == [0, 1, 2, 3, 4]
    assert struck(0, 0.5, Stream(1)) == []
    assert struck(1000, 5e-324, Stream(1)) == []
    hits = Counter(place for seed in range(4000) for place in struck(6, 0.3, Stream(seed)))
    assert all(believable(hits[place], 4000, 0.3) for place in range(6))
    both = sum({0, 5} <= set(struck(6, 0.3, Stream(seed))) for seed in range(4000))
    assert believable(both, 4000, 0.09)


# The world that the settings are meant for


def test_the_world_is_as_the_settings_take_it_to_be() -> None:
    experiment = directed(p_ucastl=0.1, p_mcastl=0.4, p_fail=0.02, view_prob=0.5)
    effective = experiment.effective
    assert effective.network.loss == Uncorrelated(0.1)
    assert effective.network.multicasts == Uncorrelated(0.4)
    assert effective.view_probability == 0.5
    assert effective.p_fail == 0.02
    world = prepare(experiment, 0)
    assert world.plain_loss == 0.1
    assert world.multicast_loss == 0.4
    assert len({tuple(member.view.ids) for member in world.live()}) > 1


def test_what_the_settings_leave_open_stays_as_given() -> None:
    network = Network(loss=Correlated(0.3, 0.1))
    experiment = replace(directed(p_ucastl=0.2), network=network, view_probability=0.7, p_fail=0.5)
    effective = experiment.effective
    assert effective.network.loss == Correlated(0.2, 0.1)
    assert effective.network.multicasts == network.loss
    assert effective.view_probability == 0.7
    assert effective.p_fail == 0.5
    same = replace(directed(p_ucastl=0.3, p_mcastl=0.3), network=network)
    assert same.effective.network is network


def test_a_group_in_rounds_has_an_estimate_of_its_size() -> None:
    world = prepare(directed(members=50), 0)
    estimates = {member.view.estimate for member in world.live()}
    assert len(estimates) == 1
    (estimate,) = estimates
    assert estimate is not None
    assert 25 < estimate < 100
    assert prepare(directed(members=50), 1).members[1].view.estimate != estimate
    assert prepare(Experiment(Bully, 5, BullyConfig()), 0).members[1].view.estimate is None


@pytest.mark.parametrize("wrong", [-0.1, 1.5, float("nan")])
def test_a_crash_has_a_probability(wrong: float) -> None:
    with pytest.raises(BadInput, match=r"p_fail must lie in \[0, 1\]"):
        replace(directed(), p_fail=wrong)


def test_without_rounds_nobody_crashes_in_one() -> None:
    with pytest.raises(BadInput, match="bully has no rounds"):
        Experiment(Bully, 5, BullyConfig(), p_fail=0.1)


# Verdicts


def test_who_heard_nothing_has_not_hung() -> None:
    verdict, reason = play(directed(script=tuple(all_hold(3)[:3])), 0).verdicts["termination"]
    assert verdict.value == "undecided"
    assert reason == "members 4 heard nothing of the election"


class Stuck(Directed):
    """Says that it elects, and leaves it at that."""

    about = replace(Directed.about, name="stuck")
    messages = (OpenMsg, NameMsg)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        self.disown(ctx, ELECTING)


class Reliable(Directed):
    """Takes for granted that messages arrive."""

    about = replace(Directed.about, name="reliable")
    assumptions = Assumptions(reliable=True)
    messages = (OpenMsg, NameMsg)


def test_who_began_and_never_decided_has() -> None:
    for kind in (Stuck, Reliable):
        experiment = replace(directed(), kind=kind)
        verdict, reason = play(experiment, 0).verdicts["termination"]
        assert verdict.value == "violated"
        assert "never decided and nothing is left" in reason
