"""What goes wrong on purpose: a switch that demonstrations and tests turn, without any privilege.

It works at one member's own port, on what leaves it and on what reaches it. Nothing of it is ever
on by itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from hustings.core.streams import Stream


class Faults:
    """Cuts, loss, copies and delays of one port.

    >>> faults = Faults(seed=1)
    >>> faults.cut([("127.0.0.1", 7400)])
    >>> faults.departures(("127.0.0.1", 7400)), faults.departures(("127.0.0.1", 7401))
    ((), (0.0,))
    >>> faults.heal(); faults.departures(("127.0.0.1", 7400))
    (0.0,)
    """

    __slots__ = ("_deaf_to", "_rng", "_silent_to", "copies", "delay", "jitter", "loss")

    def __init__(self, seed: int = 0) -> None:
        self._rng = Stream(seed)
        self._silent_to: set[tuple[str, int]] = set()  # only asked, never walked through
        self._deaf_to: set[tuple[str, int]] = set()
        self.loss = 0.0  # probability, of each datagram that leaves
        self.copies = 0.0  # probability that it leaves twice
        self.delay = 0.0  # seconds before it leaves
        self.jitter = 0.0  # seconds more, at random: overtaking follows

    @property
    def active(self) -> bool:
        """Whether anything goes wrong now."""
        return bool(
            self._silent_to or self._deaf_to or self.loss or self.copies or self.delay + self.jitter
        )

    def cut(self, others: Iterable[tuple[str, int]], *, to: bool = True, by: bool = True) -> None:
        """Nothing goes to these endpoints any more, nothing from them is heard, or both."""
        endpoints = list(others)
        if to:
            self._silent_to.update(endpoints)
        if by:
            self._deaf_to.update(endpoints)

    def heal(self) -> None:
        """Undo all cuts; loss, copies and delays stay as they are."""
        self._silent_to.clear()
        self._deaf_to.clear()

    def departures(self, to: tuple[str, int]) -> tuple[float, ...]:
        """After how many seconds a datagram leaves: not at all, once, or twice."""
        if to in self._silent_to:
            return ()
        rng = self._rng
        if self.loss and rng.random() < self.loss:
            return ()
        times = 2 if self.copies and rng.random() < self.copies else 1
        return tuple(
            self.delay + (self.jitter * rng.random() if self.jitter else 0.0) for _ in range(times)
        )

    def reaches(self, to: tuple[str, int]) -> bool:
        """Whether a stream to this endpoint works, in both directions."""
        return to not in self._silent_to and to not in self._deaf_to

    def hears(self, source: tuple[str, int]) -> bool:
        """Whether anything from this endpoint is let in."""
        return source not in self._deaf_to
