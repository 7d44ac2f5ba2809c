"""What can be told of an experiment before it is run: that it cannot end, what is for nothing.

Only what is certain is told: where chance, or a fault, may still make it otherwise, nothing is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hustings.core.choice import MemberId
from hustings.sim import faults
from hustings.sim.delay import Fixed
from hustings.sim.faults import Happening
from hustings.sim.queue import END_OF_TIME
from hustings.sim.scenarios import JOINING

if TYPE_CHECKING:
    from hustings.sim.experiment import Experiment


def endless_wait(experiment: Experiment) -> str | None:
    """Why a run would wait for ever for members to agree; None if it may come about.

    Who announces again and again never rests, so such a run would go on until a limit.
    """
    scenario = experiment.scenario
    waits = experiment.announces and experiment.repeating and not experiment.endless
    deaf, drowned = experiment.network.multicasts.p >= 1.0, _drowned(experiment)
    if not waits or not (deaf or drowned):
        return None
    if experiment.pauses is not None:
        return None  # a member that is not paused agrees with itself
    if any(isinstance(one, faults.Crash | faults.Leave | faults.Pause) for one in scenario.extra):
        return None  # the one who is left agrees with itself
    members = experiment.members - len(set(scenario.crashed))
    if scenario.name in JOINING:
        members += 1
    elif scenario.name != "start":
        members -= 1  # the leader, who goes
    if members < 2:
        return None
    why = "loss" if deaf else "collision"
    return (
        f"with a {why} of 1 nothing is ever heard, so {members} members never agree and no run "
        f"ends: give a smaller --{why}, or a limit (--until, --max-events)"
    )


def _drowned(experiment: Experiment) -> bool:
    """Whether at a start all speak at once, again and again, and any two messages kill each other.

    Who wakes up before the first announcement can be heard announces itself, too; their periods
    are the same, so what overlapped once overlaps for ever.
    """
    network = experiment.network
    if network.multicasts.collision < 1.0 or experiment.scenario.name != "start":
        return False
    sleep: float = getattr(experiment.config, "T_S", 0.0)
    return (
        isinstance(network.delay, Fixed)
        and network.delay.bound > 0
        and sleep < (network.delay.bound)
    )


def idle_faults(experiment: Experiment) -> list[str]:
    """A sentence for each fault that is sure to find nothing to do."""
    told = []
    for one in experiment.scenario.extra:
        what = f"{one.label} at {one.at:g}"
        if one.at > END_OF_TIME:
            continue  # it is refused when the run is set up
        if one.at > experiment.horizon:
            told.append(f"{what} never happens: the time limit is {experiment.horizon:g}")
        elif (why := _idle(experiment, one)) is not None:
            told.append(f"{what} has no effect: {why}")
    return told


def _idle(experiment: Experiment, one: Happening) -> str | None:
    """Why a fault does nothing, if that is sure."""
    earlier = [other for other in experiment.scenario.extra if other.at <= one.at]
    if isinstance(one, faults.Heal):
        cuts = [each.name for each in earlier if isinstance(each, faults.Partition | faults.OneWay)]
        return None if one.name in cuts else f"no {one.name} was there before"
    member = getattr(one, "member", None)
    if member is None or experiment.scenario.name == "churn":
        return None
    if not 1 <= member <= experiment.population():
        return None  # it is refused when the run is set up
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
    """Whether the last thing that is sure to have happened to its member took it away."""
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
        return None  # who is who is drawn in every run
    parts = experiment.cast(experiment.candidates(0), None)
    if member in parts.down:
        return True
    leaves = scenario.name in ("leader-crash", "leader-leave") and member == parts.leader
    return None if leaves or member in parts.later else False
