"""Each frame of a sender counts once, however often and in whatever order it arrives.

A sender numbers its frames within one life (incarnation). For each sender there is remembered its
newest life, the highest number seen in it, and which of the last `window` numbers came: so many
bits, whatever arrives. A frame of an older life, a number that came already and a number behind the
window are refused.

What this does not do: a member that restarts, or has forgotten a sender because it heard of too
many others, has forgotten the numbers too, and would take an old frame of a sender's present life
once more. To an election that is a message that was late, which every protocol has to bear.
"""

from __future__ import annotations

from hustings.core.choice import MemberId
from hustings.net.limits import Reason


class Replays:
    """What has been seen of every sender.

    >>> replays = Replays(window=64, most=100)
    >>> [replays.check(7, 1, number) for number in (1, 3, 2)]
    [None, None, None]
    >>> replays.check(7, 1, 2).value, replays.check(7, 2, 1), replays.check(7, 1, 4).value
    ('replayed', None, 'old-life')
    """

    __slots__ = ("_mask", "_most", "_seen", "_window", "forgotten")

    def __init__(self, window: int, most: int) -> None:
        self._window = window
        self._mask = (1 << window) - 1
        self._most = most
        # Life, highest number, and a bit for each number from there down; longest silent first.
        self._seen: dict[MemberId, tuple[int, int, int]] = {}
        self.forgotten = 0  # senders that had to make room

    def __len__(self) -> int:
        return len(self._seen)

    def check(self, sender: MemberId, incarnation: int, number: int) -> Reason | None:
        """Why this frame is refused, or None: then it is remembered.

        To be asked last, of frames that are accepted otherwise: what is forged must leave no mark.
        """
        life, highest, bits = self._seen.get(sender, (0, 0, 0))
        if incarnation < life:
            return Reason.OLD_LIFE
        if incarnation > life:
            self._remember(sender, incarnation, number, 1)
            return None
        ahead = number - highest
        if ahead > 0:
            # Beyond the window nothing of the old bits is left; a shift by that much could be huge.
            kept = (bits << ahead) & self._mask if ahead < self._window else 0
            self._remember(sender, incarnation, number, kept | 1)
            return None
        if -ahead >= self._window:
            return Reason.TOO_LATE
        bit = 1 << -ahead
        if bits & bit:
            return Reason.REPLAYED
        self._remember(sender, incarnation, highest, bits | bit)
        return None

    def life(self, sender: MemberId) -> int:
        """The newest life in which a sender was heard; 0 for one that was not."""
        return self._seen.get(sender, (0, 0, 0))[0]

    def forget(self, sender: MemberId) -> None:
        """Its id may be used by somebody else from now on; an unknown one is fine."""
        self._seen.pop(sender, None)

    def _remember(self, sender: MemberId, incarnation: int, highest: int, bits: int) -> None:
        if self._seen.pop(sender, None) is None and len(self._seen) >= self._most:
            del self._seen[next(iter(self._seen))]
            self.forgotten += 1
        self._seen[sender] = (incarnation, highest, bits)
