"""Reading the arguments of a script's commands; a mistake gets a sentence."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from hustings.core.choice import MemberId
from hustings.core.errors import BadInput, UnknownName
from hustings.core.messages import kind_of
from hustings.testing.scripted import Envelope, ScriptedGroup

_LINK = re.compile(r"(\d+|\*)->(\d+|\*)")


def number(text: str, what: str) -> int:
    """A whole number, not negative."""
    if not re.fullmatch(r"[0-9]+", text):
        raise BadInput(f"{what} must be a whole number, not {text!r}")
    return int(text)


def decimal(text: str, what: str) -> float:
    """A number; what is not one would not be ordered."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise BadInput(f"{what} must be a number, not {text!r}")
    return value


def numbers(text: str) -> list[MemberId]:
    """Ids separated by commas.

    >>> numbers("1,3")
    [1, 3]
    """
    return [number(part, "a member id") for part in text.split(",")]


def members(words: Sequence[str], group: ScriptedGroup) -> list[MemberId]:
    """Ids of the group, separated by blanks or commas; `*` for everybody who is up."""
    found: list[MemberId] = []
    for word in words:
        found += group.up() if word == "*" else numbers(word)
    for member in found:
        group.member(member)
    return found


@dataclass(frozen=True, slots=True)
class Selection:
    """Which of the messages under way a command means."""

    sender: MemberId | None = None
    to: MemberId | None = None
    kind: str | None = None
    first: bool = False

    def of(self, envelopes: Sequence[Envelope]) -> list[Envelope]:
        """The envelopes meant, in their order."""
        found = [
            envelope
            for envelope in envelopes
            if self.sender in (None, envelope.sender)
            and self.to in (None, envelope.to)
            and self.kind in (None, kind_of(envelope.message))
        ]
        return found[:1] if self.first else found


def selection(words: Sequence[str], group: ScriptedGroup, kinds: Sequence[str]) -> Selection:
    """`all`, or any of `first`, a link `FROM->TO` (either may be `*`) and a kind of message."""
    if list(words) == ["all"]:
        return Selection()
    if not words:
        raise BadInput("which messages? `all`, or any of: first, FROM->TO, a kind of message")
    sender = to = kind = None
    first = False
    for word in words:
        link = _LINK.fullmatch(word)
        if word == "first" and not first:
            first = True
        elif link is not None and sender is None and to is None:
            sender, to = (None if end == "*" else int(end) for end in link.groups())
            for end in (sender, to):
                if end is not None:
                    group.member(end)
        elif kind is None and word in kinds:
            kind = word
        elif link is not None or word in ("first", "all") or word in kinds:
            raise BadInput(f"{word!r} does not go together with {' '.join(words)!r}")
        else:
            raise UnknownName("kind of message", word, kinds)
    return Selection(sender, to, kind, first)
