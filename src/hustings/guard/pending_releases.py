"""Releases that may still be under way. The lease must not be acquired before they are over.

A release that was sent and not confirmed may arrive late. If its sender asked for the lease again
meanwhile, the engine would say that the sender still holds it. The sender would lead on with the
old token. Then its own late release would end the lease without its knowledge, and another member
would be granted the next lease. So after such a release a member gets it confirmed before it asks
again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hustings.guard.base import Holder


class PendingReleases:
    """The releases of one guard that the engine has not confirmed."""

    def __init__(self) -> None:
        self._open: dict[Holder, int] = {}

    def sent(self, holder: Holder, token: int) -> None:
        """Note a release that is about to be sent."""
        self._open[holder] = max(token, self._open.get(holder, 0))

    def confirmed(self, holder: Holder, token: int) -> None:
        """Note that the engine has answered: `holder` no longer has this token."""
        if self._open.get(holder) == token:
            del self._open[holder]

    async def settle(
        self, holder: Holder, release: Callable[[Holder, int, str | None], Awaitable[None]]
    ) -> bool:
        """Before `holder` asks, repeat a release in doubt. Return whether there was one."""
        token = self._open.get(holder)
        if token is None:
            return False
        await release(holder, token, None)
        return True
