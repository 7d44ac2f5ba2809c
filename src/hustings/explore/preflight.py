"""Whether an election can be explored: what cannot is refused with a sentence before the search.

A search judges groups that are at rest: nothing is left to happen, and all hold one leader that is
up. So an election has to come to rest, and to promise that for every schedule, not only for most.
"""

from __future__ import annotations

from collections.abc import Callable

from hustings.core.choice import Candidate
from hustings.core.election import Election
from hustings.core.errors import BadInput
from hustings.core.rounds import RoundBased
from hustings.core.streams import Stream
from hustings.explore.locals import ForkContext, Group, LocalState

MOST_TIMERS = 100  # of a member that is alone; whoever has fired so many never rests


class NotExplorable(BadInput):
    """No schedule of this election can be judged; the sentence says why."""


def check_explorable(kind: type[Election], make: Callable[[], Election]) -> None:
    """Refuse an election that a search could say nothing about."""
    name = kind.about.name
    if issubclass(kind, RoundBased):
        raise NotExplorable(
            f"{name} cannot be explored: it elects one leader with some probability, so schedules "
            f"without one are no defect; hustings sim {name} shows how often that is"
        )
    if not comes_to_rest(make):
        raise NotExplorable(
            f"{name} cannot be explored: its members announce themselves for ever, and a schedule "
            "is judged when nothing is left to happen; "
            f"hustings swarm --protocol {name} draws schedules"
        )


def comes_to_rest(make: Callable[[], Election]) -> bool:
    """Whether a member that is alone falls silent: found by trying, whatever election it is."""
    me = Candidate(1)
    group = Group({1: make}, {1: me})
    election = make()
    state = LocalState(1, True, 1, election, {}, {}, None, Stream(0))
    election.start(ForkContext(group, state, 0.0))
    election.call(ForkContext(group, state, 0.0))
    for _ in range(MOST_TIMERS):
        if not state.timers:
            return True
        key = min(state.timers, key=lambda each: (state.timers[each][0], str(each)))
        due, _ = state.timers.pop(key)
        election.on_timer(ForkContext(group, state, due), key)
    return False
