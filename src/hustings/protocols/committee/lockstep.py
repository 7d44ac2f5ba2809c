"""Synchronous rounds: all members send, all receive, and the next round begins.

Model      All members start at one instant, and a message arrives within delta. A round lasts two
           delta. Good members send at its beginning. A bad one may wait until it has seen these
           messages (delta/2 later), and its words still arrive in time (by 3/2 delta).
Idea       A protocol is a generator. It yields what it sends in a round, and gets what it received
           in that round. So a program of rounds reads from top to bottom, as in the paper.
Invariant  All scripts of one channel are in the same round at the same instant: how many rounds
           they take depends on public numbers only.
Cost       That of the script. `bits` counts what formulas count, `wire` the encoded messages.
Guarantee  None of its own. No message raises. A message is ignored if no script waits on its
           channel, if it is a second message of one sender in one round, or if its text is invalid.
           Only the script knows whether a sender should have sent, and how much: it looks up those
           that it expects, and reads carefully.
Paper      Scalable Leader Election, section 1.1 (the point-to-point full information model).

How the parts fit together: a `Script` sends on one channel. `together` makes a `Program` of several
scripts on several channels, and programs follow each other by `yield from`. `Lockstep.script` gives
a member's whole program; `conclude` declares what it returned. A script may use the context it was
made with only until its first `yield`, because a context ends with the handler call. So it must
read the id, the ids of the view and the stream at once.
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

Outbox = Mapping[MemberId, Bits]  # receiver and word
Inbox = Mapping[MemberId, Bits]  # sender and word, in the order of ids


@dataclass(frozen=True, slots=True)
class Stage:
    """The part of the protocol that a round belongs to: public, so the adversary may use it.

    A vector message has `count` values of `width` bits, as planes (see `bits`); `options` says how
    many values have a meaning. Of a "propose", 0 is "nothing" and a+1 stands for value a.
    """

    kind: str  # "vote", "propose", "king", "result", "bin", "pick", ...
    place: int = 0  # the place in the network: a node, or another number of a protocol
    step: int = 0  # which one of several
    width: int = 0
    count: int = 0
    options: int = 0
    members: tuple[MemberId, ...] = ()  # the members that take part, in their public order
    about: tuple[MemberId, ...] = ()  # the members that the instances of a vector are about, if any
    bears: int = 0  # how many bad members the thresholds of an agreement tolerate
    detail: object = None  # further public data, such as the position in a game; hashable


@dataclass(frozen=True, slots=True)
class Spoken:
    """What one member sends in one round on one channel."""

    stage: Stage
    outbox: Outbox
    channel: int = 0  # set for the adversary, which is asked channel by channel


Script = Generator[Spoken, Inbox, T]
Program = Generator[Mapping[int, Spoken], Mapping[int, Inbox], T]

SILENCE = Spoken(Stage("silence"), {})


def silent(rounds: int, stage: Stage | None = None) -> Script[None]:
    """Wait some rounds, perhaps those of a known stage."""
    spoken = SILENCE if stage is None else Spoken(stage, {})
    for _ in range(rounds):
        yield spoken


def to_all(receivers: Sequence[MemberId], me: MemberId, bits: Bits) -> Outbox:
    """Send the same to all other members."""
    outbox = dict.fromkeys(receivers, bits)
    outbox.pop(me, None)
    return outbox


def together(scripts: Mapping[int, Script[T]], rounds: int = 0) -> Program[dict[int, T]]:
    """Run several channels in lock step, until the last has ended: the results by channel.

    It takes at least `rounds` rounds, so that members that take part in less, or in nothing, stay
    in step with the others.
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
        self._group: frozenset[MemberId] = frozenset()  # for membership tests only
        self._heard: dict[int, dict[MemberId, Bits]] = {}  # received in this round, by channel
        self.spoken: Mapping[int, Spoken] = {}  # in this round, by channel
        self.mute = False  # another object sends for this member: see misbehaving.Traitor
        self.rounds = 0  # begun so far
        self.bits = 0  # sent so far, as formulas count
        self.wire = 0  # sent so far, as encoded
        self.said = 0  # messages sent so far

    # Methods of a subclass

    def script(self, ctx: Context) -> Program[object]:
        """Return this member's program; the context is valid until its first `yield`."""
        raise NotImplementedError

    def conclude(self, ctx: Context, result: object) -> None:
        """Declare the program's result after its end."""
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

    # Sending and receiving

    def say(self, ctx: Context, channel: int, outbox: Outbox) -> None:
        """Send to members of the group only: a bad member may have invented the receivers."""
        me, group = ctx.me.id, self._group
        last: Bits | None = None
        message = SlateMsg(0, b"")
        size = 0
        for to, bits in outbox.items():
            if to not in group or to == me:
                continue
            if bits is not last:  # nearly always all get the same
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
