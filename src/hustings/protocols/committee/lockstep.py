"""Synchronous rounds: everybody speaks, everybody has heard, the next round begins.

Model      All members start at one instant, and a message arrives within delta. A round lasts two
           delta: good members speak at its beginning; a bad one may wait until it has seen what
           they say (delta/2 later) and its words still arrive in time (by 3/2 delta).
Idea       A protocol is a generator. It yields what it says in a round and is handed what it heard
           in it; so a program of rounds reads from top to bottom, as in the paper.
Invariant  All scripts of one channel are in the same round at the same instant: how many rounds
           they take depends on public numbers only.
Cost       Those of the script. `bits` counts what formulas count, `wire` the encoded messages.
Guarantee  None of its own. Nothing that arrives raises: what comes on a channel where nothing is
           awaited, a second message of one sender in one round, and what is no text of ours are
           not heard. Whether a sender should have spoken, and whether it said as much as it
           should, only the script knows: it looks up those it expects, and reads carefully.
Paper      Scalable Leader Election, section 1.1 (the point-to-point full information model).

How it fits together: a `Script` speaks on one channel. `together` makes a `Program` of several
scripts on several channels, and programs follow each other by `yield from`. `Lockstep.script` gives
a member's whole program; `conclude` declares what it returned. A script may use the context it was
made with only until its first `yield` (take the id, the ids of the view and the stream out of it
at once): a context dies with the handler call.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hustings.core.choice import Choice, MemberId
from hustings.core.config import Config
from hustings.core.context import Context, TimerKey
from hustings.core.election import Assumptions, Election, upon
from hustings.protocols.committee.bits import Bits, SlateMsg, bits_of, slate, wire_bits

T = TypeVar("T")

ROUND = "round"

Outbox = Mapping[MemberId, Bits]  # to whom what
Inbox = Mapping[MemberId, Bits]  # from whom what, in the order of ids


@dataclass(frozen=True, slots=True)
class Stage:
    """Which part of the protocol a round is: public, so the adversary may go by it.

    A vector message has `count` values of `width` bits, as planes (see `bits`); `options` says how
    many values have a meaning. Of a "propose", 0 is "nothing" and a+1 stands for value a.
    """

    kind: str  # "vote", "propose", "king", "result", "bin", "pick", ...
    place: int = 0  # where in the network: a node, or whatever else a protocol numbers
    step: int = 0  # which one of several
    width: int = 0
    count: int = 0
    options: int = 0
    members: tuple[MemberId, ...] = ()  # those who take part, in their public order
    about: tuple[MemberId, ...] = ()  # whom the instances of a vector are about, where so
    bears: int = 0  # for how many liars the thresholds of an agreement are made
    detail: object = None  # what else is public, such as the position in a game; hashable


@dataclass(frozen=True, slots=True)
class Spoken:
    """What one member says in one round on one channel."""

    stage: Stage
    outbox: Outbox
    channel: int = 0  # filled in for the adversary, who is asked channel by channel


Script = Generator[Spoken, Inbox, T]
Program = Generator[Mapping[int, Spoken], Mapping[int, Inbox], T]

SILENCE = Spoken(Stage("silence"), {})


def silent(rounds: int, stage: Stage | None = None) -> Script[None]:
    """Sit some rounds out, perhaps those of a known stage."""
    spoken = SILENCE if stage is None else Spoken(stage, {})
    for _ in range(rounds):
        yield spoken


def to_all(receivers: Sequence[MemberId], me: MemberId, bits: Bits) -> Outbox:
    """The same to everybody else."""
    outbox = dict.fromkeys(receivers, bits)
    outbox.pop(me, None)
    return outbox


def together(scripts: Mapping[int, Script[T]], rounds: int = 0) -> Program[dict[int, T]]:
    """Several channels in lock step, until the last has ended: the results by channel.

    It takes `rounds` rounds at least, so that members who take part in less, or in nothing, stay in
    step with the others.
    """
    results: dict[int, T] = {}
    running: dict[int, Script[T]] = {}
    spoken: dict[int, Spoken] = {}
    for channel in sorted(scripts):
        script = scripts[channel]
        try:
            spoken[channel] = next(script)
            running[channel] = script
        except StopIteration as end:
            results[channel] = end.value
    played = 0
    while running or played < rounds:
        heard = yield spoken
        played += 1
        spoken = {}
        for channel, script in list(running.items()):
            try:
                spoken[channel] = script.send(heard[channel])
            except StopIteration as end:
                results[channel] = end.value
                del running[channel]
    return {channel: results[channel] for channel in sorted(results)}


class Lockstep(Election):
    """The base of elections in synchronous rounds."""

    __slots__ = (
        "_group",
        "_heard",
        "_program",
        "bits",
        "mute",
        "rounds",
        "said",
        "spoken",
        "wire",
    )

    assumptions = Assumptions(displaces=False)
    messages = (SlateMsg,)

    def __init__(self, config: Config, choice: Choice) -> None:
        super().__init__(config, choice)
        self._program: Program[object] | None = None
        self._group: frozenset[MemberId] = frozenset()  # to be asked only
        self._heard: dict[int, dict[MemberId, Bits]] = {}  # in this round, by channel
        self.spoken: Mapping[int, Spoken] = {}  # in this round, by channel
        self.mute = False  # somebody else speaks for this member: see misbehaving.Traitor
        self.rounds = 0  # begun so far
        self.bits = 0  # sent so far, as formulas count
        self.wire = 0  # sent so far, as encoded
        self.said = 0  # messages sent so far

    # What a subclass gives

    def script(self, ctx: Context) -> Program[object]:
        """This member's program; the context is good until its first `yield`."""
        raise NotImplementedError

    def conclude(self, ctx: Context, result: object) -> None:
        """The program has ended: declare what came of it."""
        raise NotImplementedError

    # Rounds

    def start(self, ctx: Context) -> None:
        if ctx.incarnation > 1:
            self.give_up(ctx, "came back in the middle: the others are rounds ahead")
            return
        self._group = frozenset(ctx.view.ids)
        self._program = self.script(ctx)
        self._go_on(ctx, None)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if key == ROUND and self._program is not None:
            self._go_on(
                ctx, {each: dict(sorted(self._heard[each].items())) for each in self._heard}
            )

    def _go_on(self, ctx: Context, heard: Mapping[int, Inbox] | None) -> None:
        program = self._program
        assert program is not None
        try:
            self.spoken = next(program) if heard is None else program.send(heard)
        except StopIteration as end:
            self._program = None
            self.spoken, self._heard = {}, {}
            self.conclude(ctx, end.value)
            return
        self.rounds += 1
        self._heard = {channel: {} for channel in self.spoken}
        if not self.mute:
            for channel, spoken in self.spoken.items():
                self.say(ctx, channel, spoken.outbox)
        ctx.set_timer(ROUND, 2 * self.config.delta)

    @property
    def ended(self) -> bool:
        """Whether there is no further round."""
        return self._program is None

    # Speaking and hearing

    def say(self, ctx: Context, channel: int, outbox: Outbox) -> None:
        """Send, to members of the group only: a list of receivers may be somebody's invention."""
        me, group = ctx.me.id, self._group
        last: Bits | None = None
        message = SlateMsg(0, b"")
        size = 0
        for to, bits in outbox.items():
            if to not in group or to == me:
                continue
            if bits is not last:  # nearly always all hear the same
                last = bits
                message = slate(channel, bits)
                size = wire_bits(message)
            ctx.send(to, message)
            self.said += 1
            self.bits += bits.length
            self.wire += size

    @upon(SlateMsg)
    def on_slate(self, ctx: Context, sender: MemberId, message: SlateMsg) -> None:
        heard = self._heard.get(message.channel)
        if heard is not None and sender not in heard and sender in self._group:
            bits = bits_of(message.payload)
            if bits is not None:
                heard[sender] = bits

    def state(self) -> str:
        stages = ",".join(spoken.stage.kind for spoken in self.spoken.values())
        return f"leader={self.leader} round={self.rounds} stage={stages or 'none'}"
