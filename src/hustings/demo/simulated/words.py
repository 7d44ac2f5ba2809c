"""Helpers for the story's sentences."""

from __future__ import annotations

from collections.abc import Sequence

from hustings.core.choice import MemberId


def listed(members: Sequence[MemberId], most: int = 12) -> str:
    """Ids in a row; runs of three or more are joined, and a long list is cut.

    >>> listed([1, 2, 3, 4, 7, 9])
    '1-4 7 9'
    """
    runs: list[list[MemberId]] = []
    for member in members:
        if runs and member == runs[-1][-1] + 1:
            runs[-1].append(member)
        else:
            runs.append([member])
    parts: list[str] = []
    for run in runs:
        parts += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(member) for member in run]
    return " ".join(parts if len(parts) <= most else [*parts[:most], "..."])


def both(members: Sequence[MemberId]) -> str:
    """Members in a sentence.

    >>> both([7]), both([7, 4]), both([7, 4, 2])
    ('7', '7 and 4', '7, 4 and 2')
    """
    texts = [str(member) for member in members]
    return texts[0] if len(texts) == 1 else ", ".join(texts[:-1]) + " and " + texts[-1]


def when(time: float) -> str:
    """A simulated time.

    >>> when(12.34375), when(4.0)
    ('12.3', '4.0')
    """
    return f"{time:.1f}"


def number(count: int, what: str) -> str:
    """A count with its noun.

    >>> number(1, "member"), number(3, "member")
    ('1 member', '3 members')
    """
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
