"""Every failure detector by name: for members that join, and for the simulator.

`join(detector=...)`, `hustings run --detector` and `hustings sim --detection` all come here, so a
detector that is found on a network is found in a simulation. A detector is named by the class of
its settings, whose `monitor()` makes the detector's rule. Each of these names one:

    accrual                        one of ours, or of an installed package
    mine.detectors:Patient         a class in a module that can be imported
    patient.py:Patient             a class in a file
    Patient                        the class itself (in Python)

A package installs detectors through entry points of the group `hustings.detectors`. The name of an
entry point is the name that the class gives itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

from hustings.core.errors import BadInput
from hustings.layers.detector.accrual import AccrualConfig
from hustings.layers.detector.heartbeat import HeartbeatConfig

DetectorKind: TypeAlias = str | type[HeartbeatConfig]

DETECTORS: Mapping[str, type[HeartbeatConfig]] = {
    kind.name: kind for kind in (AccrualConfig, HeartbeatConfig)
}


def find_detector(detector: DetectorKind, others: Collection[str] = ()) -> type[HeartbeatConfig]:
    """The settings of a detector, by its name or as the class itself.

    `others` are further words that the caller takes; an error sentence lists them, too.

    >>> find_detector("accrual").name
    'accrual'
    """
    if isinstance(detector, str):
        if detector in DETECTORS:
            return DETECTORS[detector]
        return _checked(_loaded(detector, [*others, *DETECTORS]), detector)
    return _checked(detector, getattr(detector, "__qualname__", repr(detector)))


def _loaded(detector: str, ours: Collection[str]) -> object:
    from hustings.core.plugins import Plugins  # noqa: PLC0415 (memory: most members take ours)

    plugins = Plugins(
        group="hustings.detectors",
        noun="detector",
        base=HeartbeatConfig,
        name_of=lambda kind: vars(kind).get("name") if isinstance(kind, type) else None,
    )
    return plugins.load(detector, ours)


def _checked(found: object, named: str) -> type[HeartbeatConfig]:
    if not (isinstance(found, type) and issubclass(found, HeartbeatConfig)):
        raise BadInput(f"{named} is no detector: a detector is a subclass of HeartbeatConfig")
    if not isinstance(vars(found).get("name"), str):
        raise BadInput(f"{named} is not complete: a detector says its `name`")
    return found
