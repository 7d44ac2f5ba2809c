"""A choice function of your own: the best leader is not the member with the highest number.

A choice function ranks candidates by their attributes, in the same way at all members. It ends with
the id, so that no two candidates are equal. Every protocol takes any choice function.
"""

from functools import partial

from hustings.core.choice import Candidate, Choice, candidate
from hustings.protocols.registry import COMPARED, classes
from hustings.sim.faults import Call, schedule
from hustings.sim.world import World


class MainsFirst(Choice):
    """Members with mains power before members on battery; then the most free memory."""

    @property
    def name(self) -> str:
        return "mains-first"

    def key(self, candidate: Candidate) -> tuple[float, ...]:
        return candidate.attribute("mains"), candidate.attribute("free_gb"), candidate.id


GROUP = [
    candidate(1, mains=1, free_gb=4),
    candidate(2, mains=1, free_gb=12),
    candidate(3, mains=0, free_gb=64),
    candidate(4, mains=1, free_gb=12),
    candidate(5, mains=0, free_gb=32),
]
CHOICE = MainsFirst()

ranking = sorted(GROUP, key=CHOICE.key, reverse=True)
print("best to worst:", [one.id for one in ranking])

for kind in classes(COMPARED):
    world = World(partial(kind, kind.Settings(), CHOICE), GROUP)
    world.start()
    schedule(world, [Call(member=3)])
    world.run()
    held = {member.id: member.election.leader for member in world.live()}
    print(f"{kind.about.name:16} {held}")
