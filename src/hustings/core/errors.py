"""The error tree: whose mistake was it?

`BadInput` is the user's mistake: one sentence that names the field and the rule, no traceback, exit
code 2. `ProtocolBug` is ours: code in this repository broke an invariant of the context. `BadPeer`
comes from outside: something arrived that could not be accepted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

_MANY = 60  # names that a sentence can list


def printable(text: str) -> str:
    """The same text on one line, without signs that act on a terminal or forge a line of a log.

    Parts of a sentence may come from outside: an engine's answer, a file, another member.

    >>> printable("no\\nsuch \\x1b[2Jkey"), printable("caf\\u00e9 \\u202e")
    ('no such \\\\x1b[2Jkey', 'café \\\\u202e')
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else " " if char.isspace() else ascii(char)[1:-1]
        for char in text
    )


class HustingsError(Exception):
    """Base of all errors that hustings raises on purpose: a sentence that can be shown anywhere."""

    def __str__(self) -> str:
        return printable(super().__str__())


class BadInput(HustingsError):
    """A user's mistake, told in one sentence before anything has started."""

    exit_code: ClassVar[int] = 2  # of a command


class Unavailable(BadInput):
    """Something outside is not there yet, as an engine that starts late: a later try may succeed.

    Its exit code is that of a temporary failure (EX_TEMPFAIL of sysexits.h). So a service manager
    can tell it from a mistake, and start the command again.
    """

    exit_code = 75


class UnknownName(BadInput):
    """A name that is not in a table, with the nearest name that is.

    >>> str(UnknownName("protocol", "buly", ["bully", "ring"]))
    "unknown protocol 'buly': did you mean 'bully'? (known: bully, ring)"
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        from difflib import get_close_matches  # noqa: PLC0415 (memory: only mistakes need it)

        names = list(known)
        near = get_close_matches(name, names, n=1, cutoff=0.5) if len(names) <= _MANY else []
        hint = f": did you mean {near[0]!r}?" if near else ""
        shown = names if len(names) <= _MANY else [*names[:3], "...", names[-1]]
        listed = ", ".join(shown) if names else "none"
        super().__init__(f"unknown {kind} {name!r}{hint} (known: {listed})")
        self.kind = kind
        self.name = name
        self.known = tuple(names)

    def __reduce__(self) -> tuple[type[UnknownName], tuple[str, str, tuple[str, ...]]]:
        """Support pickling: the error may have to return from a worker process."""
        return type(self), (self.kind, self.name, self.known)


class ProtocolBug(HustingsError):
    """Our own code broke a rule between election and world."""


class StaleContext(ProtocolBug):
    """A context was kept and used after its handler had returned."""


class BadPeer(HustingsError):
    """Something from outside could not be accepted as a message."""
