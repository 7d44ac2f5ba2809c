"""Which keys a member has: those it was given, this machine's own, or none.

What they need is loaded only by members that have one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hustings.net.addresses import Address

if TYPE_CHECKING:
    from pathlib import Path

    from hustings.net.keys import Key
    from hustings.net.sealing import KeyRing

    KeyLike = Key | str | Path


def ring_of(
    key: KeyLike | Sequence[KeyLike] | None, bind: Address, insecure: bool
) -> KeyRing | None:
    """The keys of a member that listens there; None for one that has none, or must not listen."""
    if keys := _given(key):
        from hustings.net.sealing import KeyRing  # noqa: PLC0415 (memory: not all have a key)

        return KeyRing(keys)
    if insecure or not bind.is_loopback:
        return None
    from hustings.net.local_key import LocalRing, local_key  # noqa: PLC0415 (memory: as above)

    return LocalRing([local_key()])


def _given(key: KeyLike | Sequence[KeyLike] | None) -> tuple[Key, ...]:
    if key is None:
        return ()
    from hustings.net.keys import Key, read_key  # noqa: PLC0415 (memory: not all have one)

    given = [key] if isinstance(key, Key | str | os.PathLike) else list(key)
    return tuple(each if isinstance(each, Key) else read_key(each) for each in given)
