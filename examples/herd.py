"""The load of a guard, with an election in front of it and without: the thundering herd.

Three of the members vote. A group starts, elects, loses its leader, and elects another one. The
program counts the questions that reach voters until then. Without an election every member asks.
"""

from collections.abc import Callable

from hustings.core.choice import HighestId, candidate
from hustings.core.config import Config
from hustings.core.context import Context
from hustings.core.election import Election
from hustings.core.messages import kind_of
from hustings.core.outcome import Elected
from hustings.layers.lease import LeaseConfig, with_lease
from hustings.protocols.bully import Bully, BullyConfig
from hustings.quorum import QuorumConfig, with_quorum
from hustings.sim.faults import Call, Crash, Suspect, schedule
from hustings.sim.world import World

TTL = 30.0
QUESTIONS = ("Q-PREPARE", "Q-ACCEPT", "Q-RELEASE")


class Everybody(Election):
    """No election at all: each member believes that it leads, and asks."""

    def start(self, ctx: Context) -> None:
        self.elect(ctx, ctx.me.id, 1)


def asked(n: int, elect: Callable[[], Election]) -> int:
    """Questions to voters until a second leader is confirmed."""
    lease = LeaseConfig(ttl=TTL)
    make = with_quorum(with_lease(elect, lease), QuorumConfig(voters=(1, 2, 3)))
    world = World(make, [candidate(number) for number in range(1, n + 1)], seed=1)
    world.start()
    schedule(world, [Call(member=1)])
    first = leader_within(world, 200.0)
    others = [number for number in range(1, n + 1) if number != first]
    noticed = [Suspect(member=each, about=first, at=world.now) for each in others]
    schedule(world, [Crash(member=first, at=world.now), *noticed])
    leader_within(world, 400.0, but=first)
    return sum(count for kind, count in world.sent.items() if kind_of(kind) in QUESTIONS)


def leader_within(world: World, time: float, but: int | None = None) -> int:
    end = world.now + time
    while world.now < end:
        world.run(until=world.now + 1.0)
        for member in world.live():
            said = member.outcome
            if isinstance(said, Elected) and said.leader == member.id != but:
                return member.id
    raise SystemExit("no member was confirmed in time")


def bully() -> Election:
    return Bully(BullyConfig(), HighestId())


def everybody() -> Election:
    return Everybody(Config(), HighestId())


def main() -> None:
    print("members   with a bully in front   every member asks")
    for n in (5, 50, 500):
        print(f"{n:7}   {asked(n, bully):21}   {asked(n, everybody):17}")


if __name__ == "__main__":
    main()
