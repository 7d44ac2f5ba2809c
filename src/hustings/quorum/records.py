"""How a voter's state lies on its disk: plain values under names that begin with "quorum-"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from hustings.core.context import Context
from hustings.core.errors import BadInput

T = TypeVar("T")

PREFIX = "quorum-"


def keep(ctx: Context, **fields: object) -> None:
    """Store fields durably before anything that this handler sends afterwards leaves."""
    ctx.persist(**{PREFIX + name: msgspec.to_builtins(value) for name, value in fields.items()})


def kept(stored: Mapping[str, object], name: str, kind: type[T]) -> T | None:
    """What an earlier incarnation stored, if it did.

    A voter that cannot read its own promises must not vote, and does not start.
    """
    value = stored.get(PREFIX + name)
    if value is None:
        return None
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise BadInput(
            f"what this voter stored as {PREFIX}{name} is not readable: {error}"
        ) from None
