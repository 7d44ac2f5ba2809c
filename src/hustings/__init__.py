"""Leader election for groups of any size.

>>> import hustings
>>> async def work(term):
...     print("I lead in term", term.number)
>>> async def main():
...     async with hustings.join("billing", seeds=["10.0.0.1:7400"]) as member:
...         await member.run(work)
"""

# Nothing is imported here: a command that meets Ctrl-C while this is read could not say so.
TYPE_CHECKING = False  # as a type checker knows it
if TYPE_CHECKING:
    from hustings._version import __version__ as __version__
    from hustings.core.errors import BadInput as BadInput
    from hustings.core.errors import HustingsError as HustingsError
    from hustings.core.errors import Unavailable as Unavailable
    from hustings.joining import Joining as Joining
    from hustings.joining import join as join
    from hustings.net.campaign import Term as Term
    from hustings.net.loss_reason import LossReason as LossReason
    from hustings.net.member import Member as Member
    from hustings.net.member_state import Leadership as Leadership
    from hustings.net.member_state import LeadershipLost as LeadershipLost
    from hustings.net.member_state import Metrics as Metrics
    from hustings.net.member_state import NotLeader as NotLeader
    from hustings.net.member_state import NotTakenOver as NotTakenOver
    from hustings.net.member_state import Peer as Peer
    from hustings.scheduled import once as once

# Found when they are asked for, so that a simulation does not wait for the network's modules.
_WHERE = {
    "BadInput": "hustings.core.errors",
    "HustingsError": "hustings.core.errors",
    "Joining": "hustings.joining",
    "Leadership": "hustings.net.member_state",
    "LeadershipLost": "hustings.net.member_state",
    "LossReason": "hustings.net.loss_reason",
    "Member": "hustings.net.member",
    "Metrics": "hustings.net.member_state",
    "NotLeader": "hustings.net.member_state",
    "NotTakenOver": "hustings.net.member_state",
    "Peer": "hustings.net.member_state",
    "Term": "hustings.net.campaign",
    "Unavailable": "hustings.core.errors",
    "__version__": "hustings._version",
    "join": "hustings.joining",
    "once": "hustings.scheduled",
}

_MODULES = ("asgi", "blocking", "testing")

__all__ = [
    "BadInput",
    "HustingsError",
    "Joining",
    "Leadership",
    "LeadershipLost",
    "LossReason",
    "Member",
    "Metrics",
    "NotLeader",
    "NotTakenOver",
    "Peer",
    "Term",
    "Unavailable",
    "__version__",
    "join",
    "once",
]


def __getattr__(name: str) -> object:
    from importlib import import_module  # noqa: PLC0415 (nothing is imported above)

    if name in _MODULES:
        return import_module(f"hustings.{name}")
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module 'hustings' has no attribute {name!r}")
    return getattr(import_module(where), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
