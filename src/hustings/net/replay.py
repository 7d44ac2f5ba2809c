"""Each frame of a sender counts once, however often and in whatever order it arrives.

A sender numbers its frames within one life (incarnation). For each sender there is remembered its
newest life, the highest number seen in it, and which of the last `window` numbers came: so many
bits, whatever arrives. A frame of an older life, a number that came already and a number behind the
window are refused.

A frame that would move all this at once is not taken at its word: another life, or a number that is
further ahead than `LEAP`. Its sender is asked first (`namesakes`), and `confirm` notes the answer.
So is a sender of whom many frames in a row were refused: it may have been restored from a snapshot,
and counts again from there, or somebody else may have spoken in its name.

What this does not do: a member that restarts, or has forgotten a sender because it heard of too
many others, has forgotten the numbers too, and would take an old frame of a sender's present life
once more. To an election that is a message that was late, which every protocol has to bear.
"""

from __future__ import annotations

from hustings.core.choice import MemberId
from hustings.net.limits import Reason

LEAP = 1 << 16  # frames of a sender that may be missed in a row
_REFUSED = 4  # frames of a sender in a row, of which none was new: is it still where it was?


class Replays:
    """What has been seen of every sender.

    >>> replays = Replays(window=64, most=100)
    >>> [replays.check(7, 1, number) for number in (1, 3, 2)]
    [None, None, None]
    >>> replays.check(7, 1, 2).value, replays.check(7, 2, 1), replays.check(7, 1, 4).value
    ('replayed', None, 'old-incarnation')
    """

    __slots__ = ("_mask", "_most", "_refused", "_seen", "_window", "forgotten")

    def __init__(self, window: int, most: int) -> None:
        self._window = window
        self._mask = (1 << window) - 1
        self._most = most
        # Life, highest number, and a bit for each number from there down; longest silent first.
        self._seen: dict[MemberId, tuple[int, int, int]] = {}
        self._refused: dict[MemberId, int] = {}  # in a row
        self.forgotten = 0  # senders that had to make room

    def __len__(self) -> int:
        return len(self._seen)

    def check(self, sender: MemberId, incarnation: int, number: int) -> Reason | None:
        """Why this frame is refused, or None: then it is remembered.

        To be asked last, of frames that are accepted otherwise: what is forged must leave no mark.
        """
        reason = self._check(sender, incarnation, number)
        if reason is not None:
            self._refused[sender] = self._refused.get(sender, 0) + 1
        elif self._refused:
            self._refused.pop(sender, None)
        return reason

    def leaps(self, sender: MemberId, incarnation: int, number: int) -> bool:
        """Whether a frame is of a later life, or far ahead of all that came."""
        known = self._seen.get(sender)
        if known is None:
            return False
        life, highest, _ = known
        return incarnation > life or (incarnation == life and number - highest > LEAP)

    def lost_count(self, sender: MemberId) -> bool:
        """Whether many frames of a sender were refused in a row."""
        return self._refused.get(sender, 0) >= _REFUSED

    def confirm(self, sender: MemberId, incarnation: int, number: int) -> None:
        """Begin anew where the sender says it is; whatever came before counts as seen.

        Where it is what was expected, nothing changes.
        """
        lost = self.lost_count(sender)
        self._refused.pop(sender, None)
        life, highest, _ = self._seen.get(sender, (0, 0, 0))
        if (incarnation, number) > (life, highest):
            self._check(sender, incarnation, number)
        elif lost or incarnation < life:
            self._remember(sender, incarnation, number, self._mask)

    def _check(self, sender: MemberId, incarnation: int, number: int) -> Reason | None:
        life, highest, bits = self._seen.get(sender, (0, 0, 0))
        if incarnation < life:
            return Reason.OLD_INCARNATION
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
        self._refused.pop(sender, None)

    def _remember(self, sender: MemberId, incarnation: int, highest: int, bits: int) -> None:
        if self._seen.pop(sender, None) is None and len(self._seen) >= self._most:
            longest = next(iter(self._seen))
            del self._seen[longest]
            self._refused.pop(longest, None)
            self.forgotten += 1
        self._seen[sender] = (incarnation, highest, bits)
