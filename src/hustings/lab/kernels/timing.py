"""When a round of the collapsed election was over: `time` of the event simulator, in delays.

Whoever comes to the end of a round knowing of it decides there, so that is the time; who has joined
it when it was contacted does so a delay after whoever contacted it. Only where nobody does, because
all who knew have crashed, it is when a message was last there.
"""

from __future__ import annotations

from hustings.lab.kernels.collapsed import ALIVE_FOR_GOOD, DECIDED, FALLEN, MEMBERS, NOW, RING, Run
from hustings.lab.kernels.compiling import compiled
from hustings.lab.kernels.draws import binomial, coin
from hustings.lab.kernels.terms import DELAY, Beginning, Terms, relaying


@compiled
def end_of(terms: Terms, round_: Beginning) -> float:
    """From the first Init of a round to its end."""
    return round_.start + relaying(terms, round_.K) + 2.0 * terms.T_3


@compiled
def over(terms: Terms, round_: Beginning, heard: float, none: float, run: Run) -> float:
    """When it was over, after its first Init; 0 if nothing ever came of it."""
    late = 0
    for place in range(run.sizes[MEMBERS]):
        if run.members[place].alive:
            late = max(late, run.members[place].late)
    if run.sizes[DECIDED]:
        return float(end_of(terms, round_) + late)
    last = run.last
    if round_.number > 1:
        last = max(last, _last_init(terms, round_, run))
    finals = end_of(terms, round_) - 1.0
    for place in range(run.sizes[MEMBERS]):
        member = run.members[place]
        if member.crash == ALIVE_FOR_GOOD:
            continue  # dead before, or it has heard nothing
        hears = round_.number == 1 and place > 0  # who has called does not hear itself
        if hears and member.aware and member.crash > 1.0:
            last = max(last, 1.0)
        missed = none
        if member.relays:  # of the others' finals
            missed = none / terms.p_mcastl if terms.p_mcastl > 0.0 else 1.0
        if member.crash > finals and not coin(run.stream, missed):
            last = max(last, finals)
    fallen = run.sizes[FALLEN]
    lived = _alive_at(terms, round_, 1.0)
    if round_.number == 1 and binomial(run.stream, fallen, heard * lived):
        last = max(last, 1.0)
    lived = _alive_at(terms, round_, finals)
    if binomial(run.stream, fallen, (1.0 - none) * lived):
        last = max(last, finals)
    return float(last)


@compiled
def _alive_at(terms: Terms, round_: Beginning, when: float) -> float:
    """The chance that one who crashes in this round has not done so yet."""
    gone = (when - (round_.start - terms.T_3)) / round_.length
    return max(0.0, min(1.0, 1.0 - gone))


@compiled
def _last_init(terms: Terms, round_: Beginning, run: Run) -> float:
    """When one of the Inits that asked for this round was last there.

    Whether any but its sender has heard it is drawn anew, and not from who takes part.
    """
    others = _live(run) - 1
    for copy in range(round_.copies - 1, max(0, round_.copies - RING) - 1, -1):
        there = terms.T_3
        if terms.thinning == DELAY:
            there = run.arrivals[copy % RING] - (terms.W + terms.T_3 - round_.start)
        alive = 1.0 - terms.p_fail * (1.0 - _alive_at(terms, round_, there))
        if not coin(run.stream, (1.0 - (1.0 - terms.p_mcastl) * alive) ** others):
            return float(there)
    return 0.0


@compiled
def _live(run: Run) -> int:
    """How many were alive when this round was opened."""
    live = run.sizes[FALLEN]
    for each in range(run.sizes[NOW]):
        live += run.now[each].count
    for place in range(run.sizes[MEMBERS]):
        live += run.members[place].alive or run.members[place].crash < ALIVE_FOR_GOOD
    return int(live)
