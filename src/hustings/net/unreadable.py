"""Says that others are there and cannot be understood: with another key, or another protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hustings.net.limits import Reason
from hustings.net.port import Endpoint

_SILENCE = 60.0  # seconds between two notes of one kind

_WORDS: Mapping[Reason, str] = {
    Reason.NOT_SEALED: "speaks without a key and this member has one: give all members the key",
    Reason.SEALED: "speaks sealed and this member has no key: give it the group's key",
    Reason.UNKNOWN_KEY: "has a key that this member has not: install the same keys on both",
    Reason.BAD_SEAL: "cannot be read: its key or its group is another one",
    Reason.OTHER_PROTOCOL: "runs another protocol in this group, or has another guard: all members "
    "must have the same",
    Reason.OTHER_PROTOCOL_VERSION: "runs another version of this group's protocol: upgrade one",
    Reason.UNKNOWN_VERSION: "runs a hustings whose frames this one cannot read: upgrade one",
}


class Unreadable:
    """Notes about others, each kind at most once a minute.

    >>> said = []
    >>> unreadable = Unreadable(said.append)
    >>> for at in (0.0, 1.0): unreadable.saw(Reason.SEALED, ("192.0.2.1", 7400), at)
    >>> len(said)
    1
    """

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._said: dict[Reason, float] = {}

    def saw(self, reason: Reason, source: Endpoint, now: float) -> None:
        """Something came from there that was refused."""
        words = _WORDS.get(reason)
        if words is None or now - self._said.get(reason, -_SILENCE) < _SILENCE:
            return
        self._said[reason] = now
        self._note(f"somebody at {source[0]}:{source[1]} is seen but not understood: it {words}")
