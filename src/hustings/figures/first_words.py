"""When the last member spoke for the first time: the first round of Figure 5.12, without repeats.

The metrics of a run tell of its whole length; this observer sees each member's first message.
"""

from __future__ import annotations

from hustings.core.choice import MemberId
from hustings.core.messages import Message, Role
from hustings.sim.experiment import Experiment, prepare
from hustings.sim.member import SimContext
from hustings.sim.world import Ended, World


class FirstWords:
    """Notes who has spoken, and when somebody last did so for the first time."""

    def __init__(self) -> None:
        self._spoken: dict[MemberId, None] = {}
        self._last: float | None = None

    def sent(self, world: World, member: SimContext, to: MemberId | None, message: Message) -> None:
        """A message leaves."""
        if message.role is Role.COORDINATOR and member.id not in self._spoken:
            self._spoken[member.id] = None
            self._last = world.now

    def metrics(self) -> dict[str, float | None]:
        """At the end of a run."""
        return {"first_round": float(len(self._spoken)), "first_round_time": self._last}


def play_first_round(experiment: Experiment, run: int) -> tuple[dict[str, float | None], Ended]:
    """One run to its end, watched for its first round."""
    world = prepare(experiment, run)
    words = FirstWords()
    world.listen_in(words)
    ended = world.run(experiment.horizon, experiment.max_events)
    return words.metrics(), ended
