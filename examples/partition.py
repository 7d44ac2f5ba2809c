"""A partition, watched by checkers: two leaders while it lasts, one after it has healed.

An election alone cannot prevent this: the smaller side cannot know that the others are alive.
"""

from hustings.core.choice import HighestId
from hustings.layers.detector.heartbeat import HeartbeatConfig
from hustings.protocols.bully import Bully, BullyConfig
from hustings.sim.checkers import all_checkers, beliefs
from hustings.sim.experiment import Experiment
from hustings.sim.faults import Heal, Partition
from hustings.sim.play import prepare
from hustings.sim.scenarios import Scenario

experiment = Experiment(
    kind=Bully,
    members=5,
    config=BullyConfig(),
    detector=HeartbeatConfig(),
    scenario=Scenario(
        initiators=(1,),
        extra=(Partition(sides=((1, 2), (3, 4, 5)), at=50), Heal(at=100)),
    ),
)
world = prepare(experiment, 0)
checkers = all_checkers(HighestId())
for checker in checkers:
    world.watch(checker)

for until, what in ((50, "before"), (100, "cut in two"), (150, "healed")):
    ended = world.run(until)
    print(f"{what}, at {world.now:g}: the leader of each member: {beliefs(world)}")

# Termination stays undecided: heartbeats never rest, so the run had to be cut off.
print()
for checker in checkers:
    verdict, reason = checker.judge(world, ended)
    print(f"{checker.name:12} {verdict.value:10} {reason}")
