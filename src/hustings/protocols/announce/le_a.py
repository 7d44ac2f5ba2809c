"""LE-A: every member announces itself at once; the simplest form of announce and listen.

Model      Multicast with loss and a delay of at most delta; members join, leave and crash
           unnoticed.
Idea       Announce yourself every T_A until you hear a better one; `le-s` without its sleep.
Invariant  As `machine.py`.
Cost       N messages at a simultaneous start without loss, one delay.
Guarantee  Advisory.
Paper      Announce-listen thesis, chapter 5: Program 5.1, Figure 5.1.
"""

from __future__ import annotations

from hustings.core.election import About
from hustings.core.outcome import Guarantee
from hustings.protocols.announce.machine import Machine
from hustings.protocols.announce.settings import LeAConfig


class LeA(Machine):
    """Program 5.1."""

    __slots__ = ()

    about = About(
        name="le-a",
        family="announce",
        paper="Announce-listen thesis, chapter 5, Program 5.1",
        idea="announce yourself until you hear a better one; then listen, and begin anew",
        model="lossy multicast, members join, leave and crash; no detector, no view needed",
        guarantee=Guarantee.ADVISORY,
        cost="N messages to start, 1 delay; then 1 per T_A",
        promises="in the end one leader, the best alive, however many messages are lost; "
        "no exclusivity, and members follow a dead leader for up to T_L",
    )
    Settings = LeAConfig
    config: LeAConfig
