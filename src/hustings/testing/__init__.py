"""The kit for tests of elections: effects as values, a member driven by hand, golden scripts.

>>> from hustings.core.choice import Candidate, HighestId
>>> from hustings.core.config import Config
>>> from hustings.core.election import Election
>>> from hustings.testing import RecordedMember, Declare, view_of
>>> class Proud(Election):
...     def call(self, ctx):
...         self.elect(ctx, ctx.me.id, self.term + 1)
>>> me = Candidate(1)
>>> member = RecordedMember(lambda: Proud(Config(), HighestId()), me, view_of([me]))
>>> member.start()
[]
>>> member.call()
[Declare(outcome=Elected(leader=1, term=1))]
"""

from hustings.testing.effects import (
    CancelTimer,
    Declare,
    Effect,
    Multicast,
    Persist,
    Propose,
    Relinquish,
    Send,
    SetTimer,
    persist,
)
from hustings.testing.group import Group, Standing, Step
from hustings.testing.recording import RecordedMember, RecordingContext, recording, view_of
from hustings.testing.script import BadScript, play

__all__ = [
    "BadScript",
    "CancelTimer",
    "Declare",
    "Effect",
    "Group",
    "Multicast",
    "Persist",
    "Propose",
    "RecordedMember",
    "RecordingContext",
    "Relinquish",
    "Send",
    "SetTimer",
    "Standing",
    "Step",
    "persist",
    "play",
    "recording",
    "view_of",
]
