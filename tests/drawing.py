"""How many examples a property draws."""

from __future__ import annotations

from hypothesis import settings


def share(part: float) -> int:
    """A part of what the profile draws, for a property whose examples are long.

    A number would be the same in every profile, and `make soak` would draw no more.
    """
    return max(1, round(part * settings().max_examples))
