"""Adversaries: which members they corrupt, and what those members then send.

An adversary is a small class with `corrupt` and `speak`. Those of the catalogue combine one
corruption and some behaviours, written `greedy+pack+lie`. If no behaviour is named, the bad members
do the worst known in every stage. To write another adversary, subclass `Adversary`, give it a name
and register it. Its name may then stand among the words, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import floor
from typing import ClassVar

from hustings.core.choice import MemberId
from hustings.core.errors import BadInput, UnknownName
from hustings.core.streams import Stream
from hustings.protocols.committee.bits import Bits, pack, width_of
from hustings.protocols.committee.corruption import CORRUPTIONS, at_random
from hustings.protocols.committee.lockstep import Outbox, Spoken
from hustings.protocols.committee.misbehaving import (
    AdversaryScene,
    Edge,
    Honest,
    Minority,
    Noise,
    Pack,
    Silent,
    Split,
    Voice,
)
from hustings.protocols.committee.roster import Roster

MARK = Bits(1, 1)  # the content of a question or a nod
LISTS = ("down", "report", "answer", "decided")  # the stages in which a list is sent


class Adversary:
    """Base of adversaries: corrupts members at random, and lets them behave."""

    name: ClassVar[str] = ""
    idea: ClassVar[str] = ""
    packs = lies = floods = claims = False  # what the large-scale engine has to know of `speak`

    def corrupt(self, roster: Roster, budget: int, rng: Stream) -> tuple[MemberId, ...]:
        """Return the bad members: at most `budget`, chosen before the election begins."""
        return at_random(roster, budget, rng)

    def speak(self, scene: AdversaryScene, member: MemberId, mine: Spoken) -> Outbox:
        """Return what a bad member sends instead of `mine`, the output of its honest script."""
        return mine.outbox


def budget(b: float, members: int) -> int:
    """Return how many members a share of b is; a third of them only if b is.

    >>> budget(0.1, 50), budget(0.3, 10), budget(0.33, 3)
    (5, 3, 0)
    """
    return floor(b * members + 1e-9)


# What bad members do once committees have agreed. The other behaviours are in `misbehaving`.


class Lie:
    """Sends wrong lists and a wrong leader: bad members, as many as a true list has."""

    name: ClassVar[str] = "lie"
    idea: ClassVar[str] = "tells others that its own members were elected"

    def speak(self, scene: AdversaryScene, member: MemberId, mine: Spoken) -> Outbox:
        kind = mine.stage.kind
        if kind == "announce":
            return self._announce(scene, mine)
        roster = scene.roster
        if kind not in LISTS or not isinstance(roster, Roster) or not scene.bad:
            return mine.outbox
        width = width_of(len(roster.members))
        told: dict[Bits, Bits] = {}
        outbox = {}
        for to, bits in mine.outbox.items():
            if bits not in told:
                told[bits] = self._opposite(scene.bad, roster, bits, width)
            outbox[to] = told[bits]
        return outbox

    def _opposite(self, bad: tuple[MemberId, ...], roster: Roster, bits: Bits, width: int) -> Bits:
        """Return bad members instead of a list; for a word that is no list, flip every bit."""
        if 0 < bits.length < width:
            return Bits(bits.value ^ (1 << bits.length) - 1, bits.length)
        chosen = bad[: max(1, bits.length // width)]
        return pack((roster.position[each], width) for each in chosen)

    def _marks(self, scene: AdversaryScene, mine: Spoken) -> Outbox:
        """Return a list by marks, no longer than the true one: else no member would believe it."""
        ours = [each for each in mine.stage.about if scene.is_bad(each)]
        told: dict[int, Bits] = {}
        for bits in mine.outbox.values():
            count = bits.value.bit_count()
            if count not in told:
                chosen = ours[:count]
                told[count] = pack((int(each in chosen), 1) for each in mine.stage.about)
        return {to: told[bits.value.bit_count()] for to, bits in mine.outbox.items()}

    def _announce(self, scene: AdversaryScene, mine: Spoken) -> Outbox:
        about = mine.stage.about
        ours = next((place for place, each in enumerate(about) if scene.is_bad(each)), None)
        if ours is None:
            return mine.outbox
        return dict.fromkeys(mine.outbox, Bits(ours, width_of(len(about))))


class Flood:
    """Asks all members that it may ask, and answers all: good members must bear it."""

    name: ClassVar[str] = "flood"
    idea: ClassVar[str] = "asks all monitors, and answers everybody in the last step"

    def speak(self, scene: AdversaryScene, member: MemberId, mine: Spoken) -> Outbox:
        if mine.stage.kind not in ("ask", "reply"):
            return mine.outbox
        return dict.fromkeys(mine.stage.members, MARK)


class Claim:
    """Asks all members in the last step, as if it had been elected."""

    name: ClassVar[str] = "claim"
    idea: ClassVar[str] = "asks everybody in the last step, as if it had been elected"

    def speak(self, scene: AdversaryScene, member: MemberId, mine: Spoken) -> Outbox:
        if mine.stage.kind != "poll":
            return mine.outbox
        return dict.fromkeys(mine.stage.members, MARK)


BEHAVIOURS: dict[str, type[Voice]] = {
    "honest": Honest,
    "silent": Silent,
    "noise": Noise,
    "split": Split,
    "minority": Minority,
    "edge": Edge,
    "pack": Pack,
    "lie": Lie,
    "flood": Flood,
    "claim": Claim,
}
WORST = ("split", "pack", "lie", "flood", "claim")  # the behaviours if none is named


class Compound(Adversary):
    """One corruption and some behaviours; each behaviour changes the output of the one before."""

    def __init__(
        self, corruption: str, behaviours: Sequence[str], others: Sequence[Adversary] = ()
    ) -> None:
        self._corruption = corruption
        self._others = tuple(others)
        self.corruption = others[0].name if others and not corruption else corruption or "random"
        self.behaviours = tuple(behaviours)
        self._voices: tuple[Voice, ...] = (*(BEHAVIOURS[each]() for each in behaviours), *others)
        self.packs = "pack" in behaviours or any(each.packs for each in others)
        self.lies = "lie" in behaviours or any(each.lies for each in others)
        self.floods = "flood" in behaviours or any(each.floods for each in others)
        self.claims = "claim" in behaviours or any(each.claims for each in others)

    def corrupt(self, roster: Roster, budget: int, rng: Stream) -> tuple[MemberId, ...]:
        if self._others and not self._corruption:
            return self._others[0].corrupt(roster, budget, rng)
        choose, _ = CORRUPTIONS[self._corruption or "random"]
        return choose(roster, budget, rng)

    def speak(self, scene: AdversaryScene, member: MemberId, mine: Spoken) -> Outbox:
        for voice in self._voices:
            mine = replace(mine, outbox=voice.speak(scene, member, mine))
        return mine.outbox


_registered: dict[str, Adversary] = {}


def register(adversary: Adversary) -> None:
    """Register an adversary under its name; the name must be a new word."""
    name = adversary.name
    if not name or "+" in name or name in CORRUPTIONS or name in BEHAVIOURS:
        raise BadInput(f"an adversary cannot be called {name!r}: take a new word without +")
    _registered[name] = adversary


def known() -> list[str]:
    """List all words of which an adversary can be made."""
    return [*CORRUPTIONS, *BEHAVIOURS, *_registered]


def parse_adversary(text: str) -> Adversary:
    """Make an adversary from its words: at most one corruption, any behaviours, joined by +.

    >>> adversary = parse_adversary("greedy+pack")
    >>> adversary.packs, adversary.lies, parse_adversary("leaf").lies
    (True, False, True)
    """
    corruption = ""
    behaviours: list[str] = []
    others: list[Adversary] = []
    for word in (part.strip() for part in text.split("+")):
        if word in CORRUPTIONS:
            if corruption:
                raise BadInput(f"adversary {text!r} names two corruptions: {corruption} and {word}")
            corruption = word
        elif word in BEHAVIOURS:
            behaviours.append(word)
        elif word in _registered:
            others.append(_registered[word])
        else:
            raise UnknownName("adversary", word, known())
    if not behaviours and not others:
        behaviours = list(WORST)
    return Compound(corruption, behaviours, others)


def catalogue() -> Mapping[str, tuple[str, str]]:
    """Return every word, whether it selects bad members or their behaviour, and its idea."""
    found = {name: ("corruption", idea) for name, (_, idea) in CORRUPTIONS.items()}
    for name, voice in BEHAVIOURS.items():
        found[name] = ("behaviour", str(getattr(voice, "idea", "")))
    for name, adversary in _registered.items():
        found[name] = ("adversary", adversary.idea)
    return found


CATALOGUE: tuple[tuple[str, str], ...] = tuple(
    (name, idea) for name, (_, idea) in catalogue().items()
)
