"""Adversaries from other packages: the entry point group `hustings.adversaries`.

The name of an entry point names the adversary; the object is a subclass of `Adversary` or an
instance.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from hustings.core.errors import BadInput
from hustings.protocols.committee.adversary import Adversary, register

GROUP = "hustings.adversaries"


@cache
def load() -> None:
    """Register the installed adversaries by their names, once."""
    for each in entry_points(group=GROUP):
        found = each.load()
        adversary = found() if isinstance(found, type) else found
        if not isinstance(adversary, Adversary):
            raise BadInput(f"entry point {each.name!r} of {GROUP} is no Adversary")
        if adversary.name != each.name:
            raise BadInput(
                f"entry point {each.name!r} of {GROUP} calls itself {adversary.name!r}: "
                "both must be the same word"
            )
        register(adversary)
