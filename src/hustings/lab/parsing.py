"""From what was typed to values: settings, delays, faults, lists of members."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from hustings.core.choice import MemberId
from hustings.core.config import finite_number
from hustings.core.errors import BadInput, UnknownName
from hustings.sim.faults import (
    Alive,
    Call,
    Crash,
    Happening,
    Heal,
    Leave,
    OneWay,
    Partition,
    Pause,
    Restart,
    Resume,
    Suspect,
)
from hustings.sim.scenarios import Order

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


def settings(pairs: Iterable[str]) -> dict[str, str]:
    """`KEY=VALUE` texts as a table; a key given twice is a mistake."""
    table: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise BadInput(f"--set {pair!r} is not understood: write KEY=VALUE")
        if key.strip() in table:
            raise BadInput(f"--set {key.strip()} is given twice")
        table[key.strip()] = value.strip()
    return table


def members(text: str, what: str) -> tuple[MemberId, ...]:
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


def order(text: str) -> Order:
    """`random`, `decreasing`, or ids in their order clockwise, as `3,32,5,80,6,12`."""
    parts = [part.strip() for part in text.split(",")]
    if not text.strip() or not parts[0][:1].isdecimal():
        return text.strip()
    if any(re.fullmatch(r"[0-9]{1,9}", part) is None for part in parts):
        raise BadInput(f"--order {text!r} is not understood: write ids as 3,32,5,80,6,12")
    return tuple(int(part) for part in parts)


def faults(texts: Iterable[str]) -> tuple[Happening, ...]:
    """All faults of one run: each cut under a name of its own, so that cuts add up.

    A heal ends one cut, as `heal:one-way:3>4`, or all of a kind, as `heal:one-way`.
    """
    found = _named([fault(text) for text in texts])
    cuts = [one for one in found if isinstance(one, Cut)]
    return tuple(
        each for one in found for each in (_heals(one, cuts) if isinstance(one, Heal) else [one])
    )


def _named(found: list[Happening]) -> list[Happening]:
    """The first cut of a kind is called after its kind; the others bear a number, too."""
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
    """What a heal ends, by name; the one that was typed if there is no such cut."""
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


def fault(text: str) -> Happening:
    """One fault with its time, as `crash:7@2.5`; see `hustings sim --help` for all forms."""
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
        sides = tuple(members(side, "a partition's side") for side in who.split("|"))
        if len(sides) < 2:
            raise BadInput(f"--fault {text!r} needs two sides: partition:1,2|3,4@TIME")
        return Partition(sides=sides, at=at)
    left, arrow, right = who.partition(">")
    if not arrow:
        raise BadInput(f"--fault {text!r} needs an arrow: {what}:3>7@TIME")
    if what == "one-way":
        senders, to = members(left, "senders"), members(right, "receivers")
        for member in senders:
            if member in to:
                raise BadInput(f"--fault {text!r} cuts {member} off from itself: name others")
        return OneWay(senders=senders, to=to, at=at)
    kind = Suspect if what == "suspect" else Alive
    return kind(member=_one(left, text), about=_one(right, text), at=at)


def _one(text: str, whole: str) -> MemberId:
    ids = members(text, f"the member in --fault {whole!r}:")
    if len(ids) != 1:
        raise BadInput(f"--fault {whole!r} takes one member")
    return ids[0]


def attributes(texts: Iterable[str]) -> tuple[tuple[str, tuple[float, ...] | None], ...]:
    """What each attribute's values are; one given twice is a mistake."""
    table: dict[str, tuple[float, ...] | None] = {}
    for text in texts:
        name, values = attribute(text)
        if name in table:
            raise BadInput(f"--attribute {name} is given twice")
        table[name] = values
    return tuple(table.items())


def attribute(text: str) -> tuple[str, tuple[float, ...] | None]:
    """`cpu=3,1,2` lists values by member; `cpu=random` leaves them to the seed."""
    name, equals, values = text.partition("=")
    if not equals or not name.strip():
        raise BadInput(f"--attribute {text!r} is not understood: write NAME=1,2,3 or NAME=random")
    if values.strip() == "random":
        return name.strip(), None
    return name.strip(), tuple(
        finite_number(value, f"attribute {name}") for value in values.split(",")
    )
