"""Says what was refused, and why: the first of each kind at once, then how many more there were."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hustings.net.limits import Reason
from hustings.net.port import Endpoint
from hustings.net.wire import VERSION, version_of

_SILENCE = 60.0  # seconds between two notes of one kind

# Others that mean to be understood.
_STRANGERS: Mapping[Reason, str] = {
    Reason.NOT_SEALED: "speaks without a key and this member has one: give all members the key",
    Reason.SEALED: "speaks sealed and this member has no key: give it the group's key",
    Reason.UNKNOWN_KEY: "has a key that this member has not: install the same keys on both",
    Reason.BAD_SEAL: "cannot be read: its key or its group is another one",
    Reason.OTHER_PROTOCOL: "runs another protocol in this group, or has another guard: all members "
    "must have the same",
    Reason.OTHER_PROTOCOL_VERSION: "runs another version of this group's protocol: upgrade one",
}

# What a member would not say, or not now.
_WORDS: Mapping[Reason, str] = {
    Reason.TOO_LARGE: "it is larger than any frame may be",
    Reason.NOT_A_FRAME: "it is no frame of hustings",
    Reason.TRUNCATED: "the stream ended in the middle of a frame",
    Reason.UNKNOWN_MODE: "it is neither sealed nor clear in a way that this hustings knows",
    Reason.OTHER_GROUP: "it is for another group",
    Reason.MALFORMED: "it cannot be read as a message",
    Reason.UNKNOWN_KIND: "this protocol has no such message",
    Reason.BAD_FIELDS: "a field is missing, is one too many, or is out of its bounds",
    Reason.IMPLAUSIBLE_NUMBER: "it holds a number that no member can have reached by now: a term, "
    "a token or a counter. Somebody lies, or its clock is more than a month ahead",
    Reason.FAR_TERM: "its term or token is far above all that this member has heard of. If it is "
    "true, others say so too, or its sender says it again, and then it is believed",
    Reason.FUTURE_INCARNATION: "its sender's incarnation begins more than a month after this "
    "machine's date: set the clocks, or somebody speaks in that member's name",
    Reason.BAD_NAME: "it speaks of a member, an attribute or an address in a way that could not be "
    "given here: somebody lies, or runs another release",
    Reason.ADDRESS_TAKEN: "it puts a new member where another one is",
    Reason.NEWCOMERS: "it brings more members that nobody knew than the limit newcomers allows",
    Reason.TOO_MANY: "it has a list that is longer than a view may be",
    Reason.MISDIRECTED: "it is for another member",
    Reason.ECHO: "it is a message of this member's own, from another address: somebody plays "
    "back what was recorded, or a copy of this machine runs",
    Reason.DUPLICATE_NAME: "it is in this member's own name: another process has the same name, or "
    "says so",
    Reason.UNVERIFIED: "it is said to be of another incarnation of a live member, or its number is "
    "far ahead: that member is asked first",
    Reason.OLD_INCARNATION: "it is of a former incarnation of its sender: late, recorded, or in "
    "its name",
    Reason.REPLAYED: "it has come before: the network doubled it, somebody plays it again, or its "
    "sender was restored from a snapshot. If many are refused, the sender is asked where it is",
    Reason.TOO_LATE: "its number is far behind its sender's latest: late, recorded, or somebody "
    "spoke in its name. If many are refused, the sender is asked where it is",
    Reason.RATE: "its sender says more than the limit rate allows",
}


class Unreadable:
    """Notes about what others send, each kind at most once a minute, and how many were left out.

    >>> said = []
    >>> unreadable = Unreadable(said.append)
    >>> for at in (0.0, 1.0, 61.0): unreadable.saw(Reason.TOO_LATE, ("192.0.2.1", 7400), at)
    >>> len(said), said[1][-24:]
    (2, '(too-late; 1 more since)')
    """

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._kinds: dict[str, tuple[float, float, int]] = {}  # may be said, when, and was not

    def saw(self, reason: Reason, source: Endpoint, now: float, data: bytes = b"") -> None:
        """Something came from there, `data`, that was refused."""
        stranger, words = _STRANGERS.get(reason), _WORDS.get(reason)
        if reason is Reason.UNKNOWN_VERSION:
            stranger = _other_version(data)
        where = f"{source[0]}:{source[1]}"
        if stranger is not None:
            sentence = f"somebody at {where} is seen but not understood: it {stranger}"
        elif words is not None:
            sentence = f"refused a message from {where}: {words}"
        else:
            return
        self.say(reason.value, sentence, now, label=reason.value)

    def say(
        self, kind: str, sentence: str, now: float, at_once: int = 1, *, label: str = ""
    ) -> None:
        """Note something that others can bring about as often as they like; few kinds of it.

        So many of a kind are said `at_once`, and one a minute in the long run.
        """
        left, at, more = self._kinds.get(kind, (float(at_once), now, 0))
        left = min(float(at_once), left + (now - at) / _SILENCE)
        if left < 1.0:
            self._kinds[kind] = (left, now, more + 1)
            return
        self._kinds[kind] = (left - 1.0, now, 0)
        tail = "; ".join(filter(None, (label, f"{more} more since" if more else "")))
        self._note(f"{sentence} ({tail})" if tail else sentence)


def _other_version(data: bytes) -> str:
    """What to do about frames of another release.

    >>> _other_version(b"H\\x01")[:62]
    'speaks wire version 1 and this member speaks only version 2: u'
    """
    theirs = version_of(data)
    older = "upgrade that member" if theirs < VERSION else "upgrade this member"
    return (
        f"speaks wire version {theirs} and this member speaks only version {VERSION}: {older}, "
        "because all members of a group need the same version"
    )
