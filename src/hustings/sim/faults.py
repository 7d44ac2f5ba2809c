"""Faults and other events from outside, as values with a time.

A scenario is a list of these values; `schedule` puts them into a world.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from hustings.core.choice import Candidate, MemberId
from hustings.core.config import finite_number
from hustings.core.errors import BadInput, UnknownName
from hustings.sim.carrier import Carrier
from hustings.sim.crash_points import Trap
from hustings.sim.guarding import GUARD
from hustings.sim.member import Status
from hustings.sim.network import Network, Partitions
from hustings.sim.queue import END_OF_TIME
from hustings.sim.trace import Linked
from hustings.sim.world import World

EMPTY_DISK: Mapping[str, object] = MappingProxyType({})  # one that was lost, not one never used


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening(ABC):
    """Something that happens to the group at an instant."""

    at: float = 0.0

    @abstractmethod
    def happen(self, world: World) -> None:
        """Make it happen now."""

    def prepare(self, world: World) -> None:
        """Check names before the run, and leave the fast path if this event needs that."""

    @property
    def label(self) -> str:
        """A fault as a user types it, without its time: `crash:7`, `heal:one-way`.

        >>> Crash(member=7, at=2.5).label, Crash(member=7, after_sends=3).label, Heal(at=9).label
        ('crash:7', 'crash:7+3', 'heal:partition')
        """
        what = "one-way" if isinstance(self, OneWay) else self.__class__.__name__.lower()
        whom = self.name if isinstance(self, Heal) else getattr(self, "member", "")
        sends = self.after_sends if isinstance(self, Crash) else None
        return f"{what}:{whom}" + (f"+{sends}" if sends else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class _ToMember(Happening):
    member: MemberId

    def prepare(self, world: World) -> None:
        world.member(self.member)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash(_ToMember):
    """Fail-stop; with `after_sends`, after this many more transmissions to single members."""

    after_sends: int | None = None

    def prepare(self, world: World) -> None:
        world.member(self.member)
        if self.after_sends is not None:
            if self.after_sends < 0:
                raise BadInput(f"after_sends must be >= 0, not {self.after_sends}")
            world.be_careful()

    def happen(self, world: World) -> None:
        ctx = world.member(self.member)
        if self.after_sends:
            ctx.fuse = self.after_sends
        elif ctx.status in (Status.UP, Status.PAUSED):
            world.change(ctx, Status.CRASHED)


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashInside(_ToMember):
    """A crash in the middle of a handler, between what it stores and what it sends.

    With `kept`, what the handler stored stays, and `sends` of its messages leave; otherwise nothing
    stays and nothing leaves. With `storing`, the crash is in the next handler that stores
    something, otherwise in the next handler. If there is none before the instant `until`, nothing
    happens.
    """

    kept: bool = True
    sends: int = 0
    storing: bool = True
    until: float = END_OF_TIME

    def prepare(self, world: World) -> None:
        world.member(self.member)
        if self.sends < 0 or (self.sends and not self.kept):
            raise BadInput("messages that leave must be 0 or more, and leave after the storing")
        world.be_careful()

    def happen(self, world: World) -> None:
        ctx = world.member(self.member)
        if ctx.status in (Status.UP, Status.PAUSED) and not isinstance(ctx.election, Trap):
            Trap(
                world,
                ctx,
                kept=self.kept,
                sends=self.sends,
                storing=self.storing,
                until=self.until,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart(_ToMember):
    """A member that is down comes back as a new incarnation, with what it had stored.

    With `wiped` its disk is empty: only its id and the number of its incarnation are left.
    """

    wiped: bool = False

    def happen(self, world: World) -> None:
        ctx = world.member(self.member)
        if ctx.status in (Status.CRASHED, Status.LEFT):
            if self.wiped:
                ctx.stored = EMPTY_DISK
            world.revive(ctx)
            world.everybody_knows(ctx)
            world.invoke(ctx, ctx.election.start)


@dataclass(frozen=True, slots=True, kw_only=True)
class Join(_ToMember):
    """A member that was not in the group yet starts, and all full views learn of it."""

    def happen(self, world: World) -> None:
        world.everybody_knows(world.member(self.member))
        world.start(self.member)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave(_ToMember):
    """A member departs in good order, and all views forget it.

    A member that repeats its goodbye stays up for the time `linger`.
    """

    linger: float = 0.0

    def prepare(self, world: World) -> None:
        world.member(self.member)
        if not 0.0 <= self.linger <= END_OF_TIME:
            raise BadInput(f"linger must be a time >= 0, not {self.linger:g}")

    def happen(self, world: World) -> None:
        ctx = world.member(self.member)
        if ctx.up:
            world.tell(ctx, "leave")
            if self.linger and world.now + self.linger <= END_OF_TIME:
                world.at(world.now + self.linger, partial(self._gone, world, ctx.incarnation))
            else:
                self._gone(world, ctx.incarnation)

    def _gone(self, world: World, incarnation: int) -> None:
        ctx = world.member(self.member)
        if ctx.incarnation == incarnation and ctx.status in (Status.UP, Status.PAUSED):
            world.change(ctx, Status.LEFT)
            world.everybody_forgets(ctx)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause(_ToMember):
    """A member stands still: SIGSTOP, a long collection, a suspended machine."""

    def happen(self, world: World) -> None:
        world.pause(world.member(self.member))


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume(_ToMember):
    """A paused member goes on."""

    def happen(self, world: World) -> None:
        world.resume(world.member(self.member))


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(_ToMember):
    """A member is asked to call an election."""

    def happen(self, world: World) -> None:
        world.tell(world.member(self.member), "call")


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect(_ToMember):
    """A scripted detector makes a member suspect any other member, rightly or not."""

    about: MemberId

    def happen(self, world: World) -> None:
        world.tell(world.member(self.member), "suspect", self.about)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alive(_ToMember):
    """A scripted detector makes a member take a suspicion back."""

    about: MemberId

    def happen(self, world: World) -> None:
        world.tell(world.member(self.member), "alive", self.about)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition(Happening):
    """Members of different sides cannot reach each other; members on no side reach all.

    The guard has the number 0. It is on no side unless it is named, so all sides reach it.
    """

    sides: tuple[tuple[MemberId, ...], ...]
    name: str = "partition"

    def prepare(self, world: World) -> None:
        for side in self.sides:
            for member in side:
                _reachable(world, member)
        Partitions().partition(self.name, self.sides)
        world.be_careful()

    def happen(self, world: World) -> None:
        world.partitions.partition(self.name, self.sides)
        _note(world, "partition", self.name, self.sides)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneWay(Happening):
    """What `senders` send does not reach `to`."""

    senders: tuple[MemberId, ...]
    to: tuple[MemberId, ...]
    name: str = "one-way"

    def prepare(self, world: World) -> None:
        for member in (*self.senders, *self.to):
            _reachable(world, member)
        world.be_careful()

    def happen(self, world: World) -> None:
        world.partitions.one_way(self.name, self.senders, self.to)
        _note(world, "one-way", self.name, (self.senders, self.to))


@dataclass(frozen=True, slots=True, kw_only=True)
class Heal(Happening):
    """A named cut ends."""

    name: str = "partition"

    def happen(self, world: World) -> None:
        world.partitions.heal(self.name)
        _note(world, "heal", self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather(Happening):
    """From now on the network has other conditions; messages in flight keep theirs."""

    network: Network

    def prepare(self, world: World) -> None:
        if world.network.loss.collision or self.network.loss.collision:
            raise BadInput("a network whose loss depends on traffic cannot change in mid-run")
        world.be_careful()

    def happen(self, world: World) -> None:
        world.network = self.network
        world.carrier = Carrier(world, self.network)


@dataclass(frozen=True, slots=True, kw_only=True)
class Update(_ToMember):
    """A member's attributes change, and every view sees it."""

    candidate: Candidate

    def prepare(self, world: World) -> None:
        world.member(self.member)
        if self.candidate.id != self.member:
            raise BadInput(f"member {self.member} cannot become member {self.candidate.id}")

    def happen(self, world: World) -> None:
        ctx = world.member(self.member)
        ctx.me = self.candidate
        if ctx.id in ctx.view:  # else it is gone, and news of its attributes do not bring it back
            world.everybody_knows(ctx)


def schedule(world: World, happenings: list[Happening]) -> None:
    """Check all, then put all into the world: nothing starts if one of them is wrong."""
    for happening in happenings:
        world.check_instant(happening.at)
        happening.prepare(world)
    for happening in happenings:
        world.at(happening.at, partial(happening.happen, world))


def _reachable(world: World, member: MemberId) -> None:
    """Check that a cut may name this member: a member, or the guard if there is one."""
    if member != GUARD or world.guard is None:
        world.member(member)


def _note(world: World, what: str, name: str, sides: tuple[tuple[MemberId, ...], ...] = ()) -> None:
    if world.tracer is not None:  # a trace records members, and the guard is no member
        shown = tuple(tuple(one for one in side if one != GUARD) for side in sides)
        world.tracer.add(Linked(world.now, what, name, shown))


# Faults as a user types them

SIMPLE: dict[str, Callable[..., Happening]] = {
    "crash": Crash,
    "restart": Restart,
    "pause": Pause,
    "resume": Resume,
    "leave": Leave,
    "call": Call,
}
Cut = Partition | OneWay
CUTS: dict[str, type[Cut]] = {"partition": Partition, "one-way": OneWay}  # what `heal` ends
Sides = tuple[tuple[MemberId, ...], ...]
FAULTS = (*SIMPLE, "suspect", "alive", "partition", "one-way", "heal")


def parse_members(text: str, what: str) -> tuple[MemberId, ...]:
    """`60,61,64` or `60-64` as ids."""
    ids: list[MemberId] = []
    for part in text.split(","):
        span = re.fullmatch(r"\s*([0-9]{1,9})(?:\s*-\s*([0-9]{1,9}))?\s*", part)
        if span is None:
            raise BadInput(f"{what} {text!r} is not understood: write ids as 3 or 3,5 or 3-7")
        first, last = int(span[1]), int(span[2] or span[1])
        if last < first:
            raise BadInput(f"{what} {part.strip()!r} runs backwards: write the lower id first")
        if last - first > 1_000_000:
            raise BadInput(f"{what} {part.strip()!r} names more than a million members")
        ids.extend(range(first, last + 1))
    return tuple(dict.fromkeys(ids))


def parse_faults(texts: Iterable[str]) -> tuple[Happening, ...]:
    """All faults of one run: each cut has a name of its own, so that cuts add up.

    A heal ends one cut, for example `heal:one-way:3>4`, or all of a kind, as `heal:one-way` does.
    """
    found = _named([parse_fault(text) for text in texts])
    cuts = [one for one in found if isinstance(one, Cut)]
    return tuple(
        each for one in found for each in (_heals(one, cuts) if isinstance(one, Heal) else [one])
    )


def _named(found: list[Happening]) -> list[Happening]:
    """The first cut of a kind has the name of its kind; the others also have a number."""
    kinds: dict[type[Happening], list[Sides]] = {}
    for place, one in enumerate(found):
        if isinstance(one, Cut):
            known = kinds.setdefault(type(one), [])
            if _sides(one) not in known:
                known.append(_sides(one))
            number = known.index(_sides(one)) + 1
            found[place] = one if number == 1 else replace(one, name=f"{one.name}-{number}")
    return found


def _heals(heal: Heal, cuts: list[Cut]) -> list[Heal]:
    """The names of the cuts that a heal ends; the typed name if there is no such cut."""
    kind, colon, who = heal.name.partition(":")
    typed = _between(kind, who, heal.at, f"heal:{heal.name}") if colon else None
    only = _sides(typed) if isinstance(typed, Cut) else None
    names = dict.fromkeys(
        cut.name
        for cut in cuts
        if cut.at <= heal.at and isinstance(cut, CUTS[kind]) and only in (None, _sides(cut))
    )
    return [replace(heal, name=name) for name in names] or [heal]


def _sides(cut: Cut) -> Sides:
    sides = cut.sides if isinstance(cut, Partition) else (cut.senders, cut.to)
    return tuple(tuple(sorted(side)) for side in sides)


def parse_fault(text: str) -> Happening:
    """One fault with its time, for example `crash:7@2.5`; `hustings sim --help` lists all forms."""
    match = re.fullmatch(r"([a-z-]+):(.*)@([^@]+)", text.strip())
    if match is None:
        raise BadInput(f"--fault {text!r} is not understood: write WHAT:WHO@TIME, as crash:7@2.5")
    what, who, when = match[1], match[2].strip(), match[3]
    if what not in FAULTS:
        raise UnknownName("fault", what, FAULTS)
    at = finite_number(when, f"the time of --fault {text!r}")
    if at < 0:
        raise BadInput(f"the time of --fault {text!r} must be >= 0")
    if what == "crash" and "+" in who:
        one, _, sends = who.partition("+")
        if re.fullmatch(r"\s*[0-9]{1,9}\s*", sends) is None:
            raise BadInput(f"--fault {text!r} needs a number of sends after the +: crash:7+3@TIME")
        after = int(sends)
        return Crash(member=_one(one, text), at=at, after_sends=after)
    if what in SIMPLE:
        return SIMPLE[what](member=_one(who, text), at=at)
    return _between(what, who, at, text)


def _between(what: str, who: str, at: float, text: str) -> Happening:
    if what == "heal":
        name, colon, ends = who.partition(":")
        if who and name not in CUTS:
            raise UnknownName("cut", name, CUTS)
        if colon:
            _between(name, ends, at, text)
        return Heal(name=who or "partition", at=at)
    if what == "partition":
        sides = tuple(parse_members(side, "a partition's side") for side in who.split("|"))
        if len(sides) < 2:
            raise BadInput(f"--fault {text!r} needs two sides: partition:1,2|3,4@TIME")
        return Partition(sides=sides, at=at)
    left, arrow, right = who.partition(">")
    if not arrow:
        raise BadInput(f"--fault {text!r} needs an arrow: {what}:3>7@TIME")
    if what == "one-way":
        senders, to = parse_members(left, "senders"), parse_members(right, "receivers")
        for member in senders:
            if member in to:
                raise BadInput(f"--fault {text!r} cuts {member} off from itself: name others")
        return OneWay(senders=senders, to=to, at=at)
    kind = Suspect if what == "suspect" else Alive
    return kind(member=_one(left, text), about=_one(right, text), at=at)


def _one(text: str, whole: str) -> MemberId:
    ids = parse_members(text, f"the member in --fault {whole!r}:")
    if len(ids) != 1:
        raise BadInput(f"--fault {whole!r} takes one member")
    return ids[0]
