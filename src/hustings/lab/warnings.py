"""Warnings on input that works, but has a surprising consequence or no effect: a sentence each."""

from __future__ import annotations

import math

from hustings.core.choice import ByAttributes, MemberId
from hustings.core.config import parse_settings
from hustings.core.election import Election
from hustings.lab.options import Options, Voters
from hustings.lab.runs.engines import Report
from hustings.protocols.announce.settings import AnnounceConfig
from hustings.sim import faults
from hustings.sim.delay import Fixed, PerLink
from hustings.sim.experiment import Experiment, scenario_settings
from hustings.sim.faults import Happening, Leave
from hustings.sim.queue import END_OF_TIME
from hustings.sim.scenarios import renamed
from hustings.sim.time_series import MAX_STEPS, TimeSeries
from hustings.sim.world import Ended


def warnings_on(experiment: Experiment, typed: Options) -> list[str]:
    """Warnings on settings and options."""
    kind, name = experiment.kind, experiment.scenario.name
    warnings = experiment.config.warnings()
    if experiment.detector is not None:
        warnings += experiment.detector.warnings()
    warnings += warnings_on_guard(experiment)
    loss = experiment.network.loss
    if kind.assumptions.reliable and (loss.p or loss.collision):
        warnings.append(
            f"{kind.about.name} assumes that messages arrive; with loss it may end "
            "without a leader, or with two"
        )
    given = parse_settings(typed.settings)
    composed = experiment.composition is not None
    for key, value in ({} if composed else scenario_settings(kind, experiment.scenario)).items():
        if key in given:
            continue
        if getattr(experiment.config, key) == value:
            warnings.append(
                f"scenario {name} sets {key}={_shown(value)}: --set {key}=... changes it"
            )
        else:
            warnings.append(
                f"scenario {name} would set {key}={_shown(value)}, which does not go with the "
                f"other settings: {key} keeps its default"
            )
    if name in ("leader-crash", "leader-leave") and given.get("T_L") == "inf":
        warnings.append("with T_L=inf no member notices that a leader is gone without goodbye")
    return warnings + idle(experiment, typed)


def idle(experiment: Experiment, typed: Options) -> list[str]:
    """Warnings on options that change nothing."""
    leaving = _leaving(experiment)
    given = parse_settings(typed.settings)
    return [
        *experiment.config.unused(given, leaving=leaving),
        *_who(experiment, typed),
        *filter(None, [renamed(typed.clockwise)]),
        *_network(experiment, typed),
        *_stack(experiment),
        *(_silence(experiment) if leaving else []),
        *_idle_faults(experiment),
    ]


def _leaving(experiment: Experiment) -> bool:
    """Whether any member may leave in good order."""
    scenario = experiment.scenario
    faults = any(isinstance(one, Leave) for one in scenario.extra)
    return scenario.name == "leader-leave" or scenario.rates.orderly or faults


def _who(experiment: Experiment, typed: Options) -> list[str]:
    kind, choice = experiment.kind, experiment.choice
    told = []
    start = experiment.scenario.name == "start"
    if typed.initiators and start and experiment.announces:
        told.append(f"--initiator has no effect here: members of {kind.about.name} start unasked")
    criterion = kind.assumptions.ranks_by
    if criterion is not None and start and choice.name != "highest-id":
        told.append(f"--choice has no effect here: {kind.about.name} goes by {criterion}")
    ranked = [key for key, _ in choice.ranks] if isinstance(choice, ByAttributes) else []
    ranked += experiment.config.attributes_needed
    for name, _ in experiment.attributes:
        if name not in ranked:
            told.append(f"--attribute {name} has no effect: --choice {choice.name} does not ask it")
    return told


def _network(experiment: Experiment, typed: Options) -> list[str]:
    told = []
    network = experiment.network
    losing = any(loss.p or loss.collision for loss in (network.loss, network.multicasts))
    if typed.loss_model not in (None, "none") and not losing:
        told.append(f"--loss-model {typed.loss_model} has no effect without --loss")
    around = experiment.config.surroundings()
    if typed.loss and around.p_ucastl is not None and around.p_mcastl is not None:
        if typed.loss not in (around.p_ucastl, around.p_mcastl):
            told.append("--loss has no effect: p_ucastl and p_mcastl say what is lost")
    if network.delay.bound == 0 and network.multicasts.collision:
        told.append("--collision has no effect: without a --delay no two messages ever meet")
    if network.fifo and isinstance(network.delay, Fixed | PerLink):
        told.append("--fifo has no effect: with fixed delays links keep their order anyway")
    return told


def _stack(experiment: Experiment) -> list[str]:
    """Warnings on combinations with gossip membership and bimodal multicast."""
    stack, config = experiment.stack, experiment.config
    if stack is None:
        return []
    told = []
    T_3: float | None = getattr(config, "T_3", None)
    if T_3 is not None and stack.buffering_time > T_3:
        told.append(
            f"T_3 = {T_3:g} is shorter than the buffering time, {stack.buffering_time:g}: finals "
            "may still be on their way when members decide"
        )
    if stack.view_size < 2 * math.log(max(2, experiment.members)):
        told.append(
            f"views of {stack.view_size} members are small for a group of {experiment.members}: "
            "rumours, and with them the estimate of its size, may not reach all members"
        )
    return told


def _silence(experiment: Experiment) -> list[str]:
    """A warning on departures in good order that look like crashes to other members."""
    kind, config = experiment.kind, experiment.config
    if isinstance(config, AnnounceConfig):
        goodbye = config.byes(1) > 0
    else:
        goodbye = kind.leave is not Election.leave
    if goodbye or not experiment.announces:
        return []
    cure = ": --set bye=1, or bye_loss, makes it say one" if hasattr(config, "bye") else ""
    return [f"who leaves says no goodbye, so to the others it is as a crash{cure}"]


def _idle_faults(experiment: Experiment) -> list[str]:
    """A sentence for each fault that is sure to have no effect.

    Only certain cases are reported: if chance may give the fault an effect, there is no warning.
    """
    told = []
    for one in experiment.scenario.extra:
        what = f"{one.label} at {one.at:g}"
        if one.at > END_OF_TIME:
            continue  # such a fault is refused when the run is prepared
        if one.at > experiment.horizon:
            told.append(f"{what} never happens: the time limit is {experiment.horizon:g}")
        elif (why := _idle(experiment, one)) is not None:
            told.append(f"{what} has no effect: {why}")
    return told


def _idle(experiment: Experiment, one: Happening) -> str | None:
    """Why a fault has no effect, if that is certain."""
    earlier = [other for other in experiment.scenario.extra if other.at <= one.at]
    if isinstance(one, faults.Heal):
        cuts = [each.name for each in earlier if isinstance(each, faults.Partition | faults.OneWay)]
        return None if one.name in cuts else f"no {one.name} was there before"
    member = getattr(one, "member", None)
    if member is None or experiment.scenario.name == "churn":
        return None
    if not 1 <= member <= experiment.population():
        return None  # such a fault is refused when the run is prepared
    own = [each for each in earlier if getattr(each, "member", None) == member]
    down = _down(experiment, member)
    if isinstance(one, faults.Restart):
        gone = down is not False or any(
            isinstance(each, faults.Crash | faults.Leave) for each in own
        )
        return None if gone else f"member {member} is alive then"
    if down and not any(isinstance(each, faults.Restart) for each in own):
        return f"member {member} is down"
    if not isinstance(one, faults.Restart) and _has_gone(own, one):
        return f"member {member} is down by then"
    if isinstance(one, faults.Resume) and not any(isinstance(each, faults.Pause) for each in own):
        return f"member {member} was not paused before"
    return None


def _has_gone(own: list[Happening], one: Happening) -> bool:
    """Whether the last certain event of its member took the member away."""
    before = own[: own.index(one)] + [each for each in own[own.index(one) :] if each.at < one.at]
    steps = [
        each
        for each in sorted(before, key=lambda each: each.at)
        if isinstance(each, faults.Crash | faults.Leave | faults.Restart)
        and not getattr(each, "after_sends", None)
        and not getattr(each, "linger", 0.0)
    ]
    return bool(steps) and not isinstance(steps[-1], faults.Restart)


def _down(experiment: Experiment, member: MemberId) -> bool | None:
    """Whether a member is down from the beginning; None if the scenario may take it away."""
    scenario = experiment.scenario
    if member in scenario.crashed:
        return True
    if any(values is None for _, values in experiment.attributes):
        return None  # every run draws the members' roles again
    parts = experiment.cast(experiment.candidates(0), None)
    if member in parts.down:
        return True
    leaves = scenario.name in ("leader-crash", "leader-leave") and member == parts.leader
    return None if leaves or member in parts.later else False


def warnings_on_faults(experiment: Experiment, result: Report) -> list[str]:
    """Faults that were due but did not happen, because a limit ended the run before them."""
    told = []
    for fault, runs in result.unplayed.items():
        if any(fault == f"{one.label} at {one.at:g}" for one in _too_late(experiment)):
            continue  # reported before the run
        where = "" if result.runs == 1 else f" in {runs} of {result.runs} runs"
        told.append(f"{fault} did not happen{where}: the run ended before")
    return told


def _too_late(experiment: Experiment) -> list[Happening]:
    return [one for one in experiment.scenario.extra if one.at > experiment.horizon]


def warnings_on_guard(experiment: Experiment) -> list[str]:
    """What a guard cannot promise in this world."""
    guard, drift = experiment.guard, experiment.clocks.drift
    if guard is None or drift <= guard.drift:
        return []
    return [
        f"clocks drift by up to {drift:g}, and members count on {guard.drift:g}: two may lead at "
        "one time, with different tokens; --guard-set drift=... tells them"
    ]


def warnings_on_outcome(experiment: Experiment, result: Report) -> list[str]:
    """A warning if no member was confirmed, though a guard should have confirmed one."""
    if lost := result.endings.get(Ended.UNCONFIRMABLE.value, 0):
        return [
            f"{lost} of {result.runs} runs were given up: no member could be confirmed, and no "
            "fault was to come that could change it"
        ]
    if experiment.guard is None or result.metrics.get("leader") is not None:
        return []
    told = "no run ended with a confirmed leader that all live members hold"
    if isinstance(experiment.voting, Voters):
        voters = experiment.voting.config.voters
        needed = len(voters) // 2 + 1
        told += (
            f": its voters, {_named(experiment, experiment.voting)}, have to be up when they first "
            f"vote, and {needed} of them from then on"
        )
    return [told]


def _named(experiment: Experiment, voting: Voters) -> str:
    """The voters in words; if attributes are random, voters may differ from run to run."""
    if any(values is None for _, values in experiment.attributes):
        return f"the first {len(voting.config.voters)} members that are there from the beginning"
    plan = experiment.plan(0)
    parts = experiment.cast(experiment.candidates(0, plan), plan)
    voters = voting.among(experiment.present(parts))
    return f"members {', '.join(map(str, voters))}"


def warnings_on_time_series(time_series: TimeSeries | None) -> list[str]:
    """What the time series does not show."""
    if time_series is None or not time_series.cut:
        return []
    return [
        f"the time series ends at {time_series.time[-1]:g}, after {MAX_STEPS:,} steps, and some "
        "runs went on: a longer --time-series STEP shows more"
    ]


def _shown(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
