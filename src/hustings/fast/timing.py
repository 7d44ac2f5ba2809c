"""When a round of the collapsed election was over: `time` of the event simulator, in delays.

Whoever comes to the end of a round knowing of it decides there, so that is the time; who has joined
it when it was contacted does so a delay after whoever contacted it. Only where nobody does, because
all who knew have crashed, it is when a message was last there.
"""

from __future__ import annotations

from hustings.fast.collapsed import ALIVE_FOR_GOOD, DECIDED, FALLEN, MEMBERS, Run
from hustings.fast.compiling import compiled
from hustings.fast.draws import binomial, coin
from hustings.fast.terms import Beginning, Terms, relaying


@compiled
def end_of(terms: Terms, round_: Beginning) -> float:
    """From the first Init of a round to its end."""
    return round_.start + relaying(terms, round_.K) + 2.0 * terms.T_3


@compiled
def over(terms: Terms, round_: Beginning, heard: float, none: float, run: Run) -> float:
    """When it was over, after its first Init; 0 if nothing ever came of it.

    Of several Inits the first is taken for the one that was there last.
    """
    late = 0
    for place in range(run.sizes[MEMBERS]):
        if run.members[place].alive:
            late = max(late, run.members[place].late)
    if run.sizes[DECIDED]:
        return float(end_of(terms, round_) + late)
    last = run.last
    finals = end_of(terms, round_) - 1.0
    for place in range(run.sizes[MEMBERS]):
        member = run.members[place]
        if member.crash == ALIVE_FOR_GOOD:
            continue  # dead before, or it has heard nothing
        called = round_.number == 1 and place == 0  # and does not hear itself
        if member.aware and not called and member.crash > 1.0:
            last = max(last, 1.0)
        missed = none
        if member.relays:  # of the others' finals
            missed = none / terms.p_mcastl if terms.p_mcastl > 0.0 else 1.0
        if member.crash > finals and not coin(run.stream, missed):
            last = max(last, finals)
    fallen = run.sizes[FALLEN]
    lived = (round_.length - 1.0) / round_.length
    if binomial(run.stream, fallen, heard * lived):
        last = max(last, 1.0)
    lived = max(0.0, (round_.length - finals) / round_.length)
    if binomial(run.stream, fallen, (1.0 - none) * lived):
        last = max(last, finals)
    return float(last)
