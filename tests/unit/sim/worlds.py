"""Worlds full of puppets: members that write down what happens to them and do what a script says.

A journal row is (instant, member, what): `PING 3 from 1`, `timer a`, `start`, `suspect 2`. The
script maps such a text, or (member, text), to what the member then does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

from hustings.core.choice import Candidate, HighestId, MemberId
from hustings.core.config import Config
from hustings.core.context import Context, TimerKey
from hustings.core.election import Election, upon
from hustings.core.messages import Message, Role
from hustings.core.outcome import Outcome
from hustings.sim.delay import Delay, Fixed
from hustings.sim.faults import Happening, schedule
from hustings.sim.loss import Correlated, Uncorrelated
from hustings.sim.member import SimContext
from hustings.sim.network import Network
from hustings.sim.trace import Tracer
from hustings.sim.world import World

Row = tuple[float, MemberId, str]
Action = Callable[[Context], None]
Script = Mapping[str | tuple[MemberId, str], Action]


class Ping(Message, frozen=True, tag="PING"):
    """A message with a number."""

    role: ClassVar[Role] = Role.OTHER
    number: int = 0


class Pong(Message, frozen=True, tag="PONG"):
    """A message of another kind."""

    role: ClassVar[Role] = Role.ANSWER
    number: int = 0


class Puppet(Election):
    """Writes into its stage's journal and follows its script."""

    messages = (Ping, Pong)

    def __init__(self, stage: Stage) -> None:
        super().__init__(Config(), HighestId())
        self.stage = stage

    def note(self, ctx: Context, what: str) -> None:
        stage = self.stage
        me = ctx.me.id
        stage.journal.append((stage.now, me, what))
        action = stage.script.get(what) or stage.script.get((me, what))
        if action is not None:
            action(ctx)

    @upon(Ping)
    def on_ping(self, ctx: Context, sender: MemberId, message: Ping) -> None:
        self.note(ctx, f"PING {message.number} from {sender}")

    @upon(Pong)
    def on_pong(self, ctx: Context, sender: MemberId, message: Pong) -> None:
        self.note(ctx, f"PONG {message.number} from {sender}")

    def start(self, ctx: Context) -> None:
        if self.stage.talkative:
            self.note(ctx, "start")

    def call(self, ctx: Context) -> None:
        self.note(ctx, "call")

    def leave(self, ctx: Context) -> None:
        self.note(ctx, "leave")

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        self.note(ctx, f"timer {key}")

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        self.note(ctx, f"suspect {member}")

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        self.note(ctx, f"alive {member}")


class Stage(World):
    """A world of puppets with ids 1..n, started unless `up` names the first few only."""

    def __init__(
        self,
        n: int,
        script: Script | None = None,
        network: Network | None = None,
        *,
        up: Iterable[MemberId] | None = None,
        seed: int = 0,
        views: Mapping[MemberId, list[MemberId]] | None = None,
        debug: bool = False,
        careful: bool = False,
        talkative: bool = False,
        tracer: Tracer | None = None,
    ) -> None:
        self.journal: list[Row] = []
        self.script: Script = script or {}
        self.talkative = talkative
        super().__init__(
            lambda: Puppet(self),
            people(n),
            seed=seed,
            network=network,
            views=views,
            debug=debug,
            tracer=tracer,
        )
        if careful:
            self.be_careful()
        for member in self.members if up is None else up:
            self.start(member)

    def let(self, at: float, member: MemberId, action: Action) -> None:
        """At an instant a member does something, as if from a handler."""
        ctx = self.member(member)
        self.at(at, lambda: action(ctx))

    def plan(self, *happenings: Happening) -> None:
        schedule(self, list(happenings))

    def played(self) -> list[Row]:
        """Run to the end and give the journal."""
        self.run()
        return self.journal

    def heard(self, member: MemberId) -> list[tuple[float, str]]:
        """What happened to one member so far."""
        return [(at, what) for at, who, what in self.journal if who == member]


class Ear:
    """An observer that writes down declarations and changes."""

    def __init__(self) -> None:
        self.declarations: list[tuple[float, MemberId, Outcome]] = []
        self.changes: list[tuple[float, MemberId, str, int]] = []

    def declared(self, world: World, member: SimContext, outcome: Outcome) -> None:
        self.declarations.append((world.now, member.id, outcome))

    def changed(self, world: World, member: SimContext) -> None:
        self.changes.append((world.now, member.id, member.status.value, member.incarnation))


def people(n: int) -> list[Candidate]:
    return [Candidate(member) for member in range(1, n + 1)]


def ping(number: int, *to: MemberId) -> Action:
    """Send PING to each of some members."""

    def action(ctx: Context) -> None:
        for member in to:
            ctx.send(member, Ping(number))

    return action


def cry(number: int) -> Action:
    """Multicast PING."""
    return lambda ctx: ctx.multicast(Ping(number))


def arm(key: TimerKey, delay: float, *, eager: bool = False) -> Action:
    return lambda ctx: ctx.set_timer(key, delay, eager=eager)


def cancel(key: TimerKey) -> Action:
    return lambda ctx: ctx.cancel_timer(key)


def together(*actions: Action) -> Action:
    def action(ctx: Context) -> None:
        for each in actions:
            each(ctx)

    return action


def lossy(p: float, *, correlated: bool = False, delay: Delay | None = None) -> Network:
    model = Correlated if correlated else Uncorrelated
    return Network(delay=delay or Fixed(), loss=model(p))
