"""LE-S as printed: Program 5.2 taken literally. It exists to show how it fails; use `le-s`.

Model      As `le-s`.
Idea       Line 6 sets the listen timer only if `msg.addr > leader`. So announcements of the leader
           itself never re-arm it, and members give a leader up T_L after its first announcement,
           however often it repeats itself.
Invariant  None of use: listeners dismiss a live leader for ever.
Cost       At rest one false departure per listener and (floor(T_L/T_A) + 1) T_A.
Guarantee  Advisory, and without lasting agreement even where no message is lost.
Paper      Announce-listen thesis, chapter 5, Program 5.2; with T_S = 0 it is Program 5.1.

At loss 0 members disagree for the fraction 1 - T_L/((floor(T_L/T_A) + 1) T_A) of the time. What
cannot be taken literally: the printed indentation puts the timer tests inside the reception, so no
member would ever wake up without a message. Here they stand beside the reception.
"""

from __future__ import annotations

from hustings.core.context import Context
from hustings.core.election import About
from hustings.core.outcome import Guarantee
from hustings.protocols.announce.following import Followed
from hustings.protocols.announce.le_s import LeS
from hustings.protocols.announce.settings import LeSConfig


class LeSPrintedConfig(LeSConfig, frozen=True, kw_only=True):
    """As `le-s`."""

    def warnings(self) -> list[str]:
        return [
            "the program is wrong as printed: it is here to be seen failing",
            *super().warnings(),
        ]


class LeSPrinted(LeS):
    """Program 5.2, except for its indentation."""

    __slots__ = ()

    about = About(
        name="le-s-printed",
        family="announce",
        paper="Announce-listen thesis, chapter 5, Program 5.2 as printed",
        idea="the printed pseudo-code, which shows how it fails",
        model="lossy multicast, members join, leave and crash",
        guarantee=Guarantee.ADVISORY,
        cost="as le-s to start; then false departures for ever",
        promises="nothing that lasts: the leader's own announcements never re-arm the listen "
        "timer, so its listeners give up a live leader every T_L; use le-s",
    )
    Settings = LeSPrintedConfig

    def refresh(self, ctx: Context, leader: Followed, term: int) -> None:
        """Do nothing: in line 6 `msg.addr > leader` is false, and there is no other line."""
