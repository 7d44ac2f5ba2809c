"""A small election that uses everything a context offers, so that the kit can be tried on it."""

from typing import Annotated, ClassVar

from msgspec import Meta

from hustings.core.choice import HighestId, MemberId
from hustings.core.config import Config
from hustings.core.context import Context, TimerKey
from hustings.core.election import About, Assumptions, Election, upon
from hustings.core.errors import UnknownName
from hustings.core.messages import Message, Role
from hustings.core.outcome import Guarantee


class HailMsg(Message, frozen=True, tag="HAIL"):
    """Who is there?"""

    role: ClassVar[Role] = Role.ELECTION


class HereMsg(Message, frozen=True, tag="HERE"):
    """I am, for the so-many-th time."""

    role: ClassVar[Role] = Role.ANSWER
    count: int


class ToyConfig(Config, frozen=True, kw_only=True):
    """How long the toy waits."""

    wait: Annotated[float, Meta(gt=0)] = 3.0

    def warnings(self) -> list[str]:
        return ["that is long"] if self.wait > 100 else []


class Toy(Election):
    """Hails the group, counts the answers, and leads when its timer fires."""

    about = About(
        name="toy",
        family="toys",
        paper="none",
        idea="be loud",
        model="any",
        guarantee=Guarantee.ADVISORY,
        cost="N",
        promises="nothing",
    )
    Settings = ToyConfig
    messages = (HailMsg, HereMsg)
    config: ToyConfig

    def start(self, ctx: Context) -> None:
        if ctx.incarnation > 1:
            ctx.cancel_timer(("wait", ctx.me.id))
            ctx.set_timer("back", 1.0, eager=True)

    def call(self, ctx: Context) -> None:
        ctx.persist(calls=int(str(ctx.stored.get("calls", 0))) + 1, at=ctx.now())
        ctx.multicast(HailMsg())
        ctx.set_timer(("wait", ctx.me.id), self.config.wait)

    @upon(HailMsg)
    def on_hail(self, ctx: Context, sender: MemberId, message: HailMsg) -> None:
        ctx.cancel_timer("back")
        ctx.send(sender, HereMsg(1))

    @upon(HereMsg)
    def on_here(self, ctx: Context, sender: MemberId, message: HereMsg) -> None:
        if message.count < 0:
            raise RuntimeError("a handler broke")

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if key == ("wait", ctx.me.id):
            self.elect(ctx, ctx.me.id, self.term + 1)

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        if member == self.leader:
            self.disown(ctx, f"{member} is gone")

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        ctx.send(member, HereMsg(2))

    def leave(self, ctx: Context) -> None:
        ctx.multicast(HereMsg(0))


class Nag(Toy):
    """A toy that arms its timer again whenever it fires."""

    assumptions = Assumptions(live_view=True)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        ctx.set_timer(key, 1.0)


class Broken(Toy):
    """A toy that breaks when called."""

    def call(self, ctx: Context) -> None:
        raise RuntimeError("a handler broke")


class Keeper(Toy):
    """A toy that keeps a context, which it must not."""

    kept: Context

    def start(self, ctx: Context) -> None:
        self.kept = ctx

    def call(self, ctx: Context) -> None:
        self.kept.multicast(HailMsg())


TOYS: dict[str, type[Toy]] = {"toy": Toy, "nag": Nag, "broken": Broken, "keeper": Keeper}


def find_toy(name: str) -> type[Toy]:
    """A resolver that knows only toys."""
    if name not in TOYS:
        raise UnknownName("protocol", name, TOYS)
    return TOYS[name]


def make_toy() -> Toy:
    """A toy with everything as usual."""
    return Toy(ToyConfig(), HighestId())
