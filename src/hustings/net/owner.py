"""What a host calls: its member's owner, and the client of its member's guard."""

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


class LeaseRequests(Protocol):
    """The client of a member's guard, as a host sees it. It answers through `Host.hear`."""

    def acquire(self, ttl: float, request: int) -> None:
        """Ask for a lease of `ttl`, or renew the one that is held."""

    def release(self, request: int) -> None:
        """Give the lease back; there is no answer."""
