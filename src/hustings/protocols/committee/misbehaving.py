"""What bad members do: they send last, know everything, and send different words to each member.

Model      The adversary of the paper. It picked its members before the run (static). It sees what
           all good members send in a round before its own members send (rushing). It knows all that
           any member knows (full information) except coins not yet thrown.
Idea       A `Traitor` wraps every member. It leaves a good one alone. For a bad one it runs the
           honest script, so that the member stays in step. At half a delta into each round, when
           all good members have sent, it sends what the adversary wants instead.
Invariant  Nothing here changes what a good member sends or receives: bad members can only send.
Paper      Scalable Leader Election, section 1.1.

A behaviour is a small class with `speak`, which turns the output of the honest script into what is
sent. It returns the honest output at stages that it does not handle, so behaviours can be chained.
`split`, `minority` and `edge` are for agreement: they keep the good members apart as long as they
can. `pack` plays lightest bins and endgames as well as the adversary can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, TypeVar, cast

from hustings.core.choice import MemberId
from hustings.core.context import Context, TimerKey
from hustings.core.election import upon
from hustings.core.streams import Stream
from hustings.protocols.committee.bins import loads
from hustings.protocols.committee.bits import (
    Bits,
    SlateMsg,
    bits_of_planes,
    planes_of,
    planes_of_bits,
    values_of,
)
from hustings.protocols.committee.endgame import Baton, Walk
from hustings.protocols.committee.lockstep import (
    Lockstep,
    Outbox,
    Program,
    Spoken,
)

T = TypeVar("T")

WHISPER = "whisper"

AGREEING = ("vote", "propose", "king", "result")  # the stages of an agreement
TELLING = ("send", "bin", "baton", "path")  # the first round of a broadcast

LOOKAHEAD = 8  # how many steps of a path a bad holder looks ahead


class AdversaryScene:
    """All that the adversary knows: all words of this round, the bad members, the roster."""

    def __init__(self, bad: Iterable[MemberId], rng: Stream, roster: object = None) -> None:
        self.bad = tuple(sorted(bad))
        self._bad = frozenset(self.bad)
        self.rng = rng
        self.roster = roster
        self.members: dict[MemberId, Lockstep] = {}  # all that have started, in that order
        self.round = 0
        self._plans: dict[tuple[object, ...], object] = {}  # of this round
        self.notes: dict[object, object] = {}  # free for behaviours to store data

    def is_bad(self, member: MemberId) -> bool:
        """Whether the adversary owns this member."""
        return member in self._bad

    def turn(self, number: int) -> None:
        """Begin the round whose words are sent now."""
        if number != self.round:
            self.round = number
            self._plans = {}

    def good(self, mine: Spoken) -> dict[MemberId, Spoken]:
        """Return what good members send now on this channel at this stage, by id."""
        heard = {}
        for member in sorted(self.members):
            if member in self._bad:
                continue
            spoken = self.members[member].spoken.get(mine.channel)
            if spoken is not None and spoken.stage == mine.stage:
                heard[member] = spoken
        return heard

    def once(self, name: str, mine: Spoken, make: Callable[[], T]) -> T:
        """Compute something once in a round for all bad members at one stage."""
        key = (name, mine.channel, mine.stage)
        if key not in self._plans:
            self._plans[key] = make()
        return cast("T", self._plans[key])


class Voice(Protocol):
    """The source of what bad members send: an adversary, or one behaviour of it."""

    def speak(self, scene: AdversaryScene, member: MemberId, mine: Spoken) -> Outbox:
        """Return what `member` sends instead of `mine`, the output of its honest script."""


class Traitor(Lockstep):
    """A member in a world with an adversary, which sends in its place if the member is bad."""

    __slots__ = ("inner", "scene", "voice")

    def __init__(self, inner: Lockstep, adversary: Voice, scene: AdversaryScene) -> None:
        super().__init__(inner.config, inner.choice)
        self.inner = inner
        self.voice = adversary
        self.scene = scene

    def start(self, ctx: Context) -> None:
        self.scene.members[ctx.me.id] = self.inner
        self.inner.mute = self.scene.is_bad(ctx.me.id)
        self.inner.start(ctx)
        self._go_along(ctx)

    def on_timer(self, ctx: Context, key: TimerKey) -> None:
        if key == WHISPER:
            self._whisper(ctx)
        else:
            self.inner.on_timer(ctx, key)
            self._go_along(ctx)

    def _go_along(self, ctx: Context) -> None:
        self.leader, self.term = self.inner.leader, self.inner.term
        if self.inner.mute and not self.inner.ended:
            ctx.set_timer(WHISPER, self.config.delta / 2)

    def _whisper(self, ctx: Context) -> None:
        inner, scene = self.inner, self.scene
        scene.turn(inner.rounds)
        for channel, spoken in inner.spoken.items():
            mine = replace(spoken, channel=channel)
            inner.say(ctx, channel, self.voice.speak(scene, ctx.me.id, mine))

    @upon(SlateMsg)
    def on_slate(self, ctx: Context, sender: MemberId, message: SlateMsg) -> None:
        self.inner.on_slate(ctx, sender, message)

    def script(self, ctx: Context) -> Program[object]:
        return self.inner.script(ctx)

    def conclude(self, ctx: Context, result: object) -> None:
        self.inner.conclude(ctx, result)

    def state(self) -> str:
        return self.inner.state()


def infiltrated(
    make: Callable[[], Lockstep], adversary: Voice, scene: AdversaryScene
) -> Callable[[], Lockstep]:
    """Return what makes the members of a world with this adversary."""
    return lambda: Traitor(make(), adversary, scene)


# At any stage


class Honest:
    """Bad members that behave correctly."""

    name: ClassVar[str] = "honest"
    idea: ClassVar[str] = "bad members follow the protocol"

    def speak(self, scene: AdversaryScene, member: MemberId, mine: Spoken) -> Outbox:
        return mine.outbox


class Silent:
    """Bad members that never send."""

    name: ClassVar[str] = "silent"
    idea: ClassVar[str] = "bad members say nothing"

    def speak(self, scene: AdversaryScene, member: MemberId, mine: Spoken) -> Outbox:
        return {}


class Noise:
    """Bad members that send random words of the right length to all."""

    name: ClassVar[str] = "noise"
    idea: ClassVar[str] = "random bits, others for every receiver"

    def speak(self, scene: AdversaryScene, member: MemberId, mine: Spoken) -> Outbox:
        return {to: _random(bits.length, scene.rng) for to, bits in mine.outbox.items()}


def _random(length: int, rng: Stream) -> Bits:
    value = 0
    for _ in range(0, length, 64):
        value = value << 64 | rng.bits()
    return Bits(value & (1 << length) - 1, length)


# In agreement


@dataclass(frozen=True, slots=True)
class Mood:
    """Of each instance: the value most good members are for, a rival value, and their votes."""

    first: tuple[int, ...]
    second: tuple[int, ...]
    votes: tuple[int, ...]  # for `first`


def _mood(scene: AdversaryScene, mine: Spoken) -> Mood:
    """Return what the good members of this committee are for; without new words the last known.

    Only the king sends in its round. The adversary then uses what it saw before.
    """
    stage = mine.stage
    remembered = (mine.channel, stage.members)
    proposing = stage.kind == "propose"
    counts: list[dict[int, int]] = [{} for _ in range(stage.count)]
    for spoken in scene.good(mine).values():
        said = next(iter(spoken.outbox.values()), None)
        planes = planes_of_bits(said, stage.width, stage.count)
        if planes is None:
            continue
        for count, code in zip(counts, values_of(planes, stage.count), strict=True):
            if code or not proposing:
                value = code - proposing
                count[value] = count.get(value, 0) + 1
    last = scene.notes.get(remembered)
    before = last if isinstance(last, Mood) and len(last.first) == stage.count else None
    mood = _ranked(counts, stage.options - proposing, before)
    scene.notes[remembered] = mood
    return mood


def _ranked(counts: Sequence[Mapping[int, int]], options: int, before: Mood | None) -> Mood:
    first, second, votes = [], [], []
    for place, count in enumerate(counts):
        ranked = sorted(count, key=lambda value: (-count[value], value))
        for value in (before.first[place], before.second[place]) if before else ():
            if value not in ranked:
                ranked.append(value)
        one = ranked[0] if ranked else 0
        first.append(one)
        second.append(ranked[1] if len(ranked) > 1 else (one + 1) % options)
        votes.append(count.get(one, 0))
    return Mood(tuple(first), tuple(second), tuple(votes))


def _camps(scene: AdversaryScene, mine: Spoken) -> dict[MemberId, bool]:
    """Split the receivers into two camps that alternate among the good ones."""
    camps = {}
    number = 0
    for to in mine.outbox:
        camps[to] = number % 2 == 0
        number += not scene.is_bad(to)
    return camps


def _words(mine: Spoken, values: Sequence[int | None]) -> Bits:
    """Write these values in the form of this stage; None proposes nothing."""
    stage = mine.stage
    shift = stage.kind == "propose"
    codes = [0 if value is None else value + shift for value in values]
    return bits_of_planes(planes_of(codes, stage.width), stage.count)


class Split:
    """Sends one value to one half of the good members, another to the other half."""

    name: ClassVar[str] = "split"
    idea: ClassVar[str] = "tells each half of the good members that its own value leads"

    def speak(self, scene: AdversaryScene, member: MemberId, mine: Spoken) -> Outbox:
        stage = mine.stage
        if stage.options < 2 or stage.kind not in (*AGREEING, *TELLING):
            return mine.outbox

        def plan() -> tuple[Bits, Bits]:
            if stage.kind in TELLING:
                return _words(mine, (0,)), _words(mine, (1,))
            mood = _mood(scene, mine)
            return _words(mine, mood.first), _words(mine, mood.second)

        one, other = scene.once(self.name, mine, plan)
        return {to: one if camp else other for to, camp in _camps(scene, mine).items()}


class Minority:
    """Sends the value of the weaker side."""

    name: ClassVar[str] = "minority"
    idea: ClassVar[str] = "backs what fewer good members are for, to keep both sides alive"

    def speak(self, scene: AdversaryScene, member: MemberId, mine: Spoken) -> Outbox:
        if mine.stage.options < 2 or mine.stage.kind not in AGREEING:
            return mine.outbox
        words = scene.once(self.name, mine, lambda: _words(mine, _mood(scene, mine).second))
        return dict.fromkeys(mine.outbox, words)


class Edge:
    """Lifts some good members just over a threshold, and not the others."""

    name: ClassVar[str] = "edge"
    idea: ClassVar[str] = "lifts half of the good members over a threshold that the others miss"

    def speak(self, scene: AdversaryScene, member: MemberId, mine: Spoken) -> Outbox:
        if mine.stage.options < 2 or mine.stage.kind not in AGREEING:
            return mine.outbox
        lifted, left = scene.once(self.name, mine, lambda: self._plan(scene, mine))
        return {to: lifted if camp else left for to, camp in _camps(scene, mine).items()}

    def _plan(self, scene: AdversaryScene, mine: Spoken) -> tuple[Bits, Bits]:
        stage = mine.stage
        mood = _mood(scene, mine)
        k, t = len(stage.members), stage.bears
        liars = sum(scene.is_bad(each) for each in stage.members)
        thresholds = {"vote": (k - t,), "propose": (t + 1, k - t)}.get(stage.kind, ())
        lifted: list[int | None] = []
        left: list[int | None] = []
        for first, second, votes in zip(mood.first, mood.second, mood.votes, strict=True):
            if stage.kind in ("king", "result"):
                lifted.append(first)
                left.append(second)
                continue
            swing = any(votes < threshold <= votes + liars for threshold in thresholds)
            lifted.append(first if swing else second)
            left.append(None if stage.kind == "propose" else second)
        return _words(mine, lifted), _words(mine, left)


# In lightest bins and endgames


def packing(good: Sequence[int], bad: int) -> list[int]:
    """Return the bins in which this many bad candidates do best, given the good ones in each.

    Some of them join the bin that is to win, as many as it can take and stay the lightest. The
    others fill up those bins that would be lighter. The bin with the highest share of bad ones is
    chosen.

    >>> packing([2, 4], 2), packing([4, 2], 2)
    ([0, 0], [1, 0])
    >>> packing([1, 3, 3], 4), packing([3, 0, 3], 2)
    ([0, 0, 1, 1], [1, 1])
    """
    best: tuple[float, int, int] = (-1.0, 0, 0)  # the share of bad, the bin, how many join it
    for target, there in enumerate(good):
        for joining in range(bad, -1, -1):
            if sum(_missing(good, target, there + joining)) <= bad - joining:
                share = joining / max(1, there + joining)
                best = max(best, (share, -target, joining))
                break
    _, place, joining = best
    target = -place
    plan = [target] * joining
    missing = _missing(good, target, good[target] + joining)
    for bin_, number in enumerate(missing):
        plan += [bin_] * number
    heaviest = max(range(len(good)), key=lambda each: (each != target, good[each]))
    return plan + [heaviest] * (bad - len(plan))


def _missing(good: Sequence[int], target: int, load: int) -> list[int]:
    """Return how many more each bin needs so that the target, with this load, is the lightest.

    Of equally light ones the first wins; an empty one does not count.
    """
    return [
        0 if bin_ == target or there == 0 else max(0, load + (bin_ < target) - there)
        for bin_, there in enumerate(good)
    ]


def outlook(walk: Walk, scene: AdversaryScene, steps: int) -> float:
    """Return the probability of a good leader from here, as far as `steps` levels show.

    A good holder throws a coin; a bad one takes the worse branch. At the last level the holder
    there stands for the result.
    """
    if steps == 0 or walk.left == 0:
        return 0.0 if scene.is_bad(walk.holder) else 1.0
    one, other = (outlook(walk.step(branch), scene, steps - 1) for branch in (0, 1))
    return min(one, other) if scene.is_bad(walk.holder) else (one + other) / 2


class Pack:
    """Plays the games of an election as well as it can, after the good members have moved."""

    name: ClassVar[str] = "pack"
    idea: ClassVar[str] = "fills the lightest bin with its own, having seen all good choices"

    def speak(self, scene: AdversaryScene, member: MemberId, mine: Spoken) -> Outbox:
        stage = mine.stage
        if member not in stage.about or stage.kind not in TELLING[1:]:
            return mine.outbox
        if stage.kind == "bin":
            plan = scene.once(self.name, mine, lambda: self._bins(scene, mine))
            move = plan[member]
        else:
            move = self.move(scene, stage.detail)
        return dict.fromkeys(mine.outbox, _words(mine, (move,)))

    def _bins(self, scene: AdversaryScene, mine: Spoken) -> dict[MemberId, int]:
        stage = mine.stage
        said = scene.good(mine)
        choices = []
        for candidate in stage.about:
            spoken = said.get(candidate)
            words = next(iter(spoken.outbox.values()), None) if spoken is not None else None
            planes = planes_of_bits(words, stage.width, 1)
            if planes is not None:
                choices.append(values_of(planes, 1)[0])
        ours = [candidate for candidate in stage.about if scene.is_bad(candidate)]
        good = loads(choices, stage.options)
        return dict(zip(ours, packing(good, len(ours)), strict=True))

    def move(self, scene: AdversaryScene, game: object) -> int:
        """Return the move of a bad holder at this position of a path or a baton."""
        if isinstance(game, Walk):
            views = [outlook(game.step(branch), scene, LOOKAHEAD) for branch in (0, 1)]
            return int(views[1] < views[0])
        if isinstance(game, Baton):  # a past holder cannot be the last: pass it to the good members
            places = range(len(game.waiting))
            return next((each for each in places if not scene.is_bad(game.waiting[each])), 0)
        return 0


BEHAVIOURS: tuple[type[Voice], ...] = (Honest, Silent, Noise, Split, Minority, Edge, Pack)
