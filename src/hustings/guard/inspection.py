"""What an operator asks of guards: what each guarantees, who holds a lease, and how to go on.

    found = await look("etcd://127.0.0.1:2379", "billing")
    found.guarantees, found.holding.holder, found.holding.token

The address is read as `hustings.join` reads it, by `guard_for`. `hustings guards` calls these
functions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from hustings.core.errors import BadInput
from hustings.core.names import member_id
from hustings.guard.base import Guarantees, Guard, Holding, Unreachable
from hustings.guard.config import GuardLike, guard_for
from hustings.guard.registry import CATALOGUE, GuardEntry

WITHIN_S = 10.0  # for a question with its answer, connecting included

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GuardState:
    """What a guard guarantees, and which member holds a group's lease now."""

    group: str
    guarantees: Guarantees
    holding: Holding

    def to_json(self) -> dict[str, object]:
        """As `hustings guards URL --json` prints it."""
        holding = self.holding
        held_now = {"group": self.group, "holder": holding.holder, "token": holding.token}
        return {**held_now, **self.guarantees.to_json()}


def guarantees_of(entry: GuardEntry) -> Guarantees:
    """What a listed guard guarantees at its example's address; `BadInput` if it cannot be used."""
    return guard_for(entry.example, "group", member_id).guarantees


def all_guarantees() -> list[tuple[GuardEntry, Guarantees | BadInput]]:
    """Each guard and its guarantees, or why it cannot be used here: see `NotInstalled`."""
    found: list[tuple[GuardEntry, Guarantees | BadInput]] = []
    for entry in CATALOGUE:
        try:
            found.append((entry, guarantees_of(entry)))
        except BadInput as error:
            found.append((entry, error))
    return found


async def look(guard: GuardLike, group: str) -> GuardState:
    """What the guard guarantees, and which member holds the group's lease now."""

    async def first(opened: Guard) -> GuardState | None:
        async with opened.observe() as states:
            async for state in states:
                return GuardState(group, opened.guarantees, state)
        return None

    found = await _ask(guard, group, _within(first))
    if found is None:
        raise BadInput(f"this guard has nothing to say about {group!r}")
    return found


async def recover(guard: GuardLike, group: str, above: int) -> None:
    """Let an engine that lost its data continue: its next tokens for the group exceed `above`.

    Wait one lease after the loss, because a leader that the engine has forgotten may act for that
    long.
    """
    await _ask(guard, group, _within(lambda opened: opened.recover(above)))


async def install(guard: GuardLike, group: str = "group") -> None:
    """Create what the engine needs before it can grant leases, such as a table."""
    await _ask(guard, group, lambda made: made.install())


def _within(ask: Callable[[Guard], Awaitable[T]]) -> Callable[[Guard], Awaitable[T]]:
    """The same question to a guard that is opened first, with a limit on the time of both."""

    async def opened(guard: Guard) -> T:
        try:
            async with asyncio.timeout(WITHIN_S), guard:
                return await ask(guard)
        finally:
            with suppress(Exception):
                await guard.close()

    return opened


async def _ask(guard: GuardLike, group: str, ask: Callable[[Guard], Awaitable[T]]) -> T:
    """Make the guard as a member does, and ask it; report a guard that does not answer."""
    found = guard_for(guard, group, member_id)
    if found.made is None:
        raise BadInput("quorum:// is a group's own: ask one of its members, or its agent")
    try:
        return await ask(found.made)
    except (Unreachable, TimeoutError) as error:
        raise BadInput(
            f"guard {found.shown} does not answer ({error}): start it, or correct its address"
        ) from None
