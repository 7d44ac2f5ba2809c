"""An election for tests that does something at random upon every input, and so tries everything."""

from __future__ import annotations

from math import inf

from hustings.core.choice import MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.election import About, Election, upon
from hustings.core.guard import Granted, Held, Verdict
from hustings.core.messages import Message
from hustings.core.outcome import Guarantee

KEYS: tuple[TimerKey, ...] = ("T1", "T2", ("probe", 1), ("probe", 2))


class NoiseMsg(Message, frozen=True, tag="NOISE"):
    """Some number."""

    number: int


class WhisperMsg(Message, frozen=True, tag="WHISPER"):
    """Some other number, and what the sender's clock said."""

    number: int
    at: float


class Restless(Election):
    """Draws from its stream what to do next; uses all of the context and none of the sense."""

    about = About(
        name="restless",
        family="none",
        paper="none",
        idea="do something, anything",
        model="any",
        guarantee=Guarantee.ADVISORY,
        cost="unbounded",
        promises="nothing",
    )
    messages = (NoiseMsg, WhisperMsg)
    asked = 0  # the guard, so often

    def act(self, ctx: Context) -> None:
        for _ in range(ctx.rng.below(4)):
            self.act_once(ctx)

    def act_once(self, ctx: Context) -> None:
        rng = ctx.rng
        key = rng.choice(KEYS)
        match rng.below(10):
            case 0:
                ctx.send(rng.choice(ctx.view.ids), WhisperMsg(rng.below(100), ctx.now()))
            case 1:
                ctx.multicast(NoiseMsg(ctx.incarnation))
            case 2 | 3:
                delay = rng.choice([0.25, 1.0, 2.5, rng.uniform(0.1, 9.0), inf])
                ctx.set_timer(key, delay, eager=key == "T2")
            case 4:
                ctx.cancel_timer(key)
            case 5:
                # What is stored shows in what is stored next, so a lost field is noticed.
                known = sorted(ctx.stored.items())
                ctx.persist(**{f"field{rng.below(3)}": f"{len(known)} {known}"[:60]}, at=ctx.now())
            case 6:
                self.asked += 1
                ctx.acquire(rng.choice([1.0, 5.0]), self.asked)
            case 7:
                self.asked += 1
                ctx.release(self.asked)
            case 8:
                best = ctx.view.ranking(self.choice).ids[0]
                self.elect(ctx, best, self.term + 1)
            case _:
                self.disown(ctx, f"{len(ctx.view)} known, {ctx.me.id} is tired")

    @upon(NoiseMsg)
    def on_noise(self, ctx: Context, sender: MemberId, message: NoiseMsg) -> None:
        self.act(ctx)

    @upon(WhisperMsg)
    def on_whisper(self, ctx: Context, sender: MemberId, message: WhisperMsg) -> None:
        self.act(ctx)
        ctx.send(sender, NoiseMsg(message.number))

    def start(self, ctx: Context) -> None:
        self.act(ctx)

    def call(self, ctx: Context) -> None:
        ctx.multicast(NoiseMsg(0))
        self.elect(ctx, ctx.me.id, self.term + 1)
        self.act(ctx)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        self.act(ctx)

    def on_suspect(self, ctx: Context, member: MemberId) -> None:
        self.act(ctx)

    def on_alive(self, ctx: Context, member: MemberId) -> None:
        self.act(ctx)

    def on_verdict(self, ctx: Context, verdict: Verdict) -> None:
        asked = verdict.request if isinstance(verdict, Granted | Held) else 0
        ctx.multicast(NoiseMsg(verdict.token + asked))
        self.act(ctx)

    def leave(self, ctx: Context) -> None:
        self.act(ctx)
