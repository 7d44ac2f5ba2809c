"""The choice function ranks by load: in a large group the least loaded member leads.

"A good choice function can account for load", says section 3.1 of the probabilistic paper. Every
member knows half of the others and their loads, one message in ten is lost, and about seven of 300
settle the leader. Leading costs load, and after each term the group elects again. By load the work
goes round; by id one member does all of it.
"""

from hustings.core.choice import Choice, HighestId, parse_choice
from hustings.core.streams import Stream, derive
from hustings.protocols.probabilistic.election import Probabilistic
from hustings.protocols.probabilistic.settings import ProbabilisticConfig
from hustings.sim.experiment import Experiment
from hustings.sim.play import play

MEMBERS, TERMS, COST = 300, 8, 0.3
CONFIG = ProbabilisticConfig(N=MEMBERS, view_prob=0.5, p_ucastl=0.1, p_mcastl=0.1)


def elected(loads: list[float], choice: Choice, term: int) -> int | None:
    """The leader with these loads, or None if the group does not agree."""
    told = (("load", tuple(loads)),)
    experiment = Experiment(Probabilistic, MEMBERS, CONFIG, choice, attributes=told, seed=7)
    leader = play(experiment, term).metrics["leader"]
    return None if leader is None else int(leader)


def serve(choice: Choice) -> None:
    """Play the terms; the leader of each has more load after it."""
    stream = Stream(derive(7, "loads"))
    loads = [round(stream.random(), 3) for _ in range(MEMBERS)]
    print(f"{choice.name}:")
    for term in range(TERMS):
        leader = elected(loads, choice, term)
        if leader is None:
            print(f"  term {term + 1}: no agreement")
            continue
        load = loads[leader - 1]
        lighter = sum(other < load for other in loads)
        print(f"  term {term + 1}: {leader:3}, load {load:.3f}, {lighter} of {MEMBERS} have less")
        loads[leader - 1] += COST


serve(parse_choice("lowest:load"))
serve(HighestId())
