"""A protocol of your own: a roll call. All members speak, then each picks the best it heard."""

from typing import ClassVar

from hustings.core.choice import Candidate, Choice, HighestId, MemberId, candidate
from hustings.core.config import Config
from hustings.core.context import Context, TimerKey
from hustings.core.election import About, Election, upon
from hustings.core.messages import Message, Role
from hustings.core.outcome import ELECTING, Guarantee
from hustings.sim.faults import Call, Crash, schedule
from hustings.sim.world import World

SILENCE = "silence"


class HereMsg(Message, frozen=True, tag="HERE"):
    """I am here, and these are my attributes."""

    role: ClassVar[Role] = Role.ELECTION
    term: int
    me: Candidate


class RollCall(Election):
    """One multicast of each member; a member that hears of a new roll call speaks, too."""

    about = About(
        name="roll-call",
        family="broadcast",
        paper="none",
        idea="every member speaks, and each picks the best that it has heard",
        model="synchronous, complete",
        guarantee=Guarantee.ADVISORY,
        cost="one multicast of each live member",
        promises="one leader, the best alive, if no member crashes during the roll call",
    )
    messages = (HereMsg,)

    def __init__(self, config: Config, choice: Choice) -> None:
        super().__init__(config, choice)
        self.best: Candidate | None = None  # heard so far in the roll call of this term

    def call(self, ctx: Context) -> None:
        self.speak(ctx, self.term + 1)

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        if member == self.leader:
            self.call(ctx)

    def speak(self, ctx: Context, term: int) -> None:
        self.term = term
        self.best = ctx.me
        self.disown(ctx, ELECTING)
        ctx.multicast(HereMsg(term, ctx.me))
        ctx.set_timer(SILENCE, 3 * self.config.delta)

    @upon(HereMsg)
    def on_here(self, ctx: Context, sender: MemberId, message: HereMsg) -> None:
        if message.term > self.term:
            self.speak(ctx, message.term)
        if message.term == self.term and self.best is not None:
            if self.choice.better(message.me, self.best):
                self.best = message.me

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if self.best is not None:
            self.elect(ctx, self.best.id, self.term)


world = World(lambda: RollCall(Config(), HighestId()), [candidate(n) for n in (3, 8, 15, 21)])
world.start()
schedule(world, [Call(member=3), Crash(member=21, at=5), Call(member=8, at=10)])

for until in (5, 20):
    world.run(until)
    print(f"at {world.now:g}:")
    for member in world.live():
        print(f"  member {member.id}: {member.outcome}")
print(f"{sum(world.sent.values())} multicasts in two roll calls")
