"""The kit for tests of programs that use a group, and for tests of elections.

`Group` is for programs: real members on a virtual clock and a network in memory.

>>> from hustings.testing import Group
>>> with Group(seed=7) as group:
...     for name in ("a", "b", "c"):
...         member = group.join(name)
...     leader = group.settle()
...     group.kill(leader)
...     group.settle() == leader
False

The rest is for elections: effects as values, a member or a group driven by hand, golden scripts.

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

from hustings.testing.async_group import AsyncGroup, Logged, NotSettled
from hustings.testing.clock import NotVirtual, RanTooLong, Stuck, VirtualLoop
from hustings.testing.effects import (
    Acquire,
    CancelTimer,
    Declare,
    Effect,
    Multicast,
    Persist,
    Release,
    Send,
    SetTimer,
    persist,
)
from hustings.testing.group import Group
from hustings.testing.memory_network import Conditions, MemoryNetwork, MemoryTransport
from hustings.testing.recording import RecordedMember, RecordingContext, recording, view_of
from hustings.testing.script import BadScript, play
from hustings.testing.scripted_group import ScriptedGroup, ScriptedStatus, ScriptedStep

__all__ = [
    "Acquire",
    "AsyncGroup",
    "BadScript",
    "CancelTimer",
    "Conditions",
    "Declare",
    "Effect",
    "Group",
    "Logged",
    "MemoryNetwork",
    "MemoryTransport",
    "Multicast",
    "NotSettled",
    "NotVirtual",
    "Persist",
    "RanTooLong",
    "RecordedMember",
    "RecordingContext",
    "Release",
    "ScriptedGroup",
    "ScriptedStatus",
    "ScriptedStep",
    "Send",
    "SetTimer",
    "Stuck",
    "VirtualLoop",
    "persist",
    "play",
    "recording",
    "view_of",
]
