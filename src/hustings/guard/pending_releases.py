"""Leases whose return may still be under way: they must not be taken up again.

A release that was sent and not confirmed may arrive late. If its sender asked again meanwhile, it
would be told that it still holds, lead on with the old token, and lose it unawares to its own old
release while somebody else is let in. So whoever asks after such a release first gets it confirmed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hustings.guard.base import Holder


class PendingReleases:
    """What one guard has given back without hearing that it arrived."""

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
