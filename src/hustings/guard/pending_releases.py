"""Releases that may still be under way: the lease must not be acquired again before they are over.

A release that was sent and not confirmed may arrive late. If its sender asked again meanwhile, the
engine would say that it still holds. It would lead on with the old token, and its own late release
would end that lease while it does not know, and another member is granted the next one. So after
such a release a member gets it confirmed before it asks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hustings.guard.base import Holder


class PendingReleases:
    """The releases of one guard that the engine has not confirmed."""

    def __init__(self) -> None:
        self._open: dict[Holder, int] = {}

    def sent(self, holder: Holder, token: int) -> None:
        """A release is about to leave."""
        self._open[holder] = max(token, self._open.get(holder, 0))

    def confirmed(self, holder: Holder, token: int) -> None:
        """The engine has answered: `holder` has this token no more."""
        if self._open.get(holder) == token:
            del self._open[holder]

    async def settle(
        self, holder: Holder, release: Callable[[Holder, int, str | None], Awaitable[None]]
    ) -> bool:
        """Before `holder` asks: repeat a release in doubt; whether there was one."""
        token = self._open.get(holder)
        if token is None:
            return False
        await release(holder, token, None)
        return True
