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

# Found when they are asked for: pytest loads `hustings.testing.plugin` in every project.
TYPE_CHECKING = False  # as a type checker knows it
if TYPE_CHECKING:
    from hustings.testing.async_group import AsyncGroup as AsyncGroup
    from hustings.testing.async_group import Logged as Logged
    from hustings.testing.async_group import MemberChange as MemberChange
    from hustings.testing.async_group import NotSettled as NotSettled
    from hustings.testing.async_group import Program as Program
    from hustings.testing.clock import NotVirtual as NotVirtual
    from hustings.testing.clock import RanTooLong as RanTooLong
    from hustings.testing.clock import Stuck as Stuck
    from hustings.testing.clock import VirtualLoop as VirtualLoop
    from hustings.testing.effects import Acquire as Acquire
    from hustings.testing.effects import CancelTimer as CancelTimer
    from hustings.testing.effects import Declare as Declare
    from hustings.testing.effects import Effect as Effect
    from hustings.testing.effects import Multicast as Multicast
    from hustings.testing.effects import Persist as Persist
    from hustings.testing.effects import Release as Release
    from hustings.testing.effects import Send as Send
    from hustings.testing.effects import SetTimer as SetTimer
    from hustings.testing.effects import persist as persist
    from hustings.testing.faults import Fault as Fault
    from hustings.testing.faults import draw_faults as draw_faults
    from hustings.testing.faults import parse_fault as parse_fault
    from hustings.testing.group import Group as Group
    from hustings.testing.memory_network import Conditions as Conditions
    from hustings.testing.memory_network import MemoryNetwork as MemoryNetwork
    from hustings.testing.memory_network import MemoryTransport as MemoryTransport
    from hustings.testing.quiet import NotQuiet as NotQuiet
    from hustings.testing.recorded import RecordedMember as RecordedMember
    from hustings.testing.recorded import RecordingContext as RecordingContext
    from hustings.testing.recorded import recording as recording
    from hustings.testing.recorded import view_of as view_of
    from hustings.testing.script import BadScript as BadScript
    from hustings.testing.script import play as play
    from hustings.testing.scripted_group import ScriptedGroup as ScriptedGroup
    from hustings.testing.scripted_group import ScriptedStatus as ScriptedStatus
    from hustings.testing.scripted_group import ScriptedStep as ScriptedStep
_WHERE = {
    "Acquire": "effects",
    "AsyncGroup": "async_group",
    "BadScript": "script",
    "CancelTimer": "effects",
    "MemberChange": "async_group",
    "Conditions": "memory_network",
    "Declare": "effects",
    "Effect": "effects",
    "Fault": "faults",
    "Group": "group",
    "Logged": "async_group",
    "MemoryNetwork": "memory_network",
    "MemoryTransport": "memory_network",
    "Multicast": "effects",
    "NotQuiet": "quiet",
    "NotSettled": "async_group",
    "NotVirtual": "clock",
    "Persist": "effects",
    "Program": "async_group",
    "RanTooLong": "clock",
    "RecordedMember": "recorded",
    "RecordingContext": "recorded",
    "Release": "effects",
    "ScriptedGroup": "scripted_group",
    "ScriptedStatus": "scripted_group",
    "ScriptedStep": "scripted_group",
    "Send": "effects",
    "SetTimer": "effects",
    "Stuck": "clock",
    "VirtualLoop": "clock",
    "draw_faults": "faults",
    "parse_fault": "faults",
    "persist": "effects",
    "play": "script",
    "recording": "recorded",
    "view_of": "recorded",
}

__all__ = [
    "Acquire",
    "AsyncGroup",
    "BadScript",
    "CancelTimer",
    "Conditions",
    "Declare",
    "Effect",
    "Fault",
    "Group",
    "Logged",
    "MemberChange",
    "MemoryNetwork",
    "MemoryTransport",
    "Multicast",
    "NotQuiet",
    "NotSettled",
    "NotVirtual",
    "Persist",
    "Program",
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
    "draw_faults",
    "parse_fault",
    "persist",
    "play",
    "recording",
    "view_of",
]


def __getattr__(name: str) -> object:
    from importlib import import_module  # noqa: PLC0415 (nothing is imported above)

    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module 'hustings.testing' has no attribute {name!r}")
    return getattr(import_module(f"hustings.testing.{where}"), name)


def __dir__() -> list[str]:
    return __all__
