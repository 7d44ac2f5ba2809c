"""The error tree: whose mistake was it?

`BadInput` is the user's: one sentence that names the field and the rule, no traceback, exit code 2.
`ProtocolBug` is ours: an invariant of the seam was broken by code in this repository.
`BadPeer` is somebody else's: what arrived from outside could not be accepted.
"""

from __future__ import annotations

from collections.abc import Iterable

_MANY = 60  # names that a sentence can list


class HustingsError(Exception):
    """Base of everything hustings raises on purpose."""


class BadInput(HustingsError):
    """A user's mistake, told in one sentence before anything has started."""


class UnknownName(BadInput):
    """A name that is not in a catalogue, with the nearest one that is.

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
        """It may have to travel home from a worker process."""
        return type(self), (self.kind, self.name, self.known)


class ProtocolBug(HustingsError):
    """Our own code broke a rule of the seam."""


class StaleContext(ProtocolBug):
    """A context was kept and used after its handler had returned."""


class BadPeer(HustingsError):
    """Something from outside could not be accepted as a message."""
