"""A first election: five members, no leader yet, and member 2 calls an election."""

from hustings.core.choice import HighestId, candidate
from hustings.protocols.bully import Bully, BullyConfig
from hustings.sim.faults import Call, schedule
from hustings.sim.world import World

group = [candidate(number) for number in range(1, 6)]
world = World(lambda: Bully(BullyConfig(), HighestId()), group)
world.start()
schedule(world, [Call(member=2)])
ended = world.run()

print(f"{sum(world.sent.values())} messages, the last arrived at {world.last_arrival:g}")
for member in world.live():
    print(f"member {member.id}: {member.outcome}")
print(f"the run ended because nothing was left to happen: {ended.value}")
