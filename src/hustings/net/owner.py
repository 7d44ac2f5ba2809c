"""Whom a host works for, and who takes its member's questions to a guard."""

from __future__ import annotations

from typing import Protocol

from hustings.core.outcome import Outcome


class Household(Protocol):
    """Whom a host works for."""

    def told(self, outcome: Outcome) -> None:
        """The election has come to something."""

    def changed(self) -> None:
        """Members have come or gone, or stand otherwise."""

    def note(self, sentence: str) -> None:
        """Something worth a line in a log."""

    def failed(self, error: Exception) -> None:
        """The host cannot go on."""


class Petitions(Protocol):
    """Who takes a member's questions to its guard."""

    def propose(self, ttl: float, request: int) -> None:
        """The member wants to be confirmed, or to stay so; `Host.hear` gets the answer."""

    def relinquish(self, request: int) -> None:
        """The member leads no more."""
