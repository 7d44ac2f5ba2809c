"""`plan`: which settings to choose, with the evidence."""

from __future__ import annotations

import shlex
from concurrent.futures import Executor
from dataclasses import replace
from importlib import import_module

from hustings.core.config import parse_settings
from hustings.core.errors import UnknownName
from hustings.lab.byzantine.adversaries import load
from hustings.lab.options import Options
from hustings.lab.options import Settings as Given
from hustings.lab.plans.committee import (
    EFFORTS,
    MOST_MEMBERS,
    PLANNED,
    CommitteePlan,
    attacks_of,
    make_plan,
)
from hustings.lab.runs.playing import Tell
from hustings.lab.simulation import check_jobs, check_whole
from hustings.protocols.committee.adversary import known


def plan(
    election: str,
    *,
    members: int,
    settings: Given = (),
    bits: float | None = None,
    effort: str = "usual",
    seed: int = 0,
    jobs: int = 1,
    on: str | Executor | None = None,
    tell: Tell | None = None,
) -> CommitteePlan:
    """Propose settings for an election in a group, with the evidence: as `hustings plan`.

    `settings` are fixed settings; the adversary `aware` stands for the worst of all corruptions.

    >>> plan("committee", members=60, settings={"b": 0.05, "c0": 16}, effort="quick").members
    60
    """
    if election not in PLANNED:
        raise UnknownName("election to plan", election, PLANNED)
    if effort not in EFFORTS:
        raise UnknownName("effort", effort, EFFORTS)
    check_whole("members", members, 2, MOST_MEMBERS)
    check_jobs(jobs, on)
    import_module("hustings.lab.kernels.compiling")  # its sentence says which extra is missing
    load()
    words = Options.of(settings=settings).settings
    given: dict[str, object] = {**parse_settings(words)}
    adversary = str(given.pop("adversary", "random"))
    for word in adversary.split("+"):
        if word.strip() not in (*known(), "aware"):
            raise UnknownName("adversary", word.strip(), [*known(), "aware"])
    found = make_plan(
        given,
        members,
        attacks_of(adversary),
        seed=seed,
        effort=effort,
        most_bits=bits,
        jobs=jobs,
        on=on,
        tell=tell,
    )
    options = ["-n", str(members), *(f"--set={word}" for word in words)]
    options += [] if bits is None else [f"--bits={bits}"]
    options += [f"--effort={effort}", f"--seed={seed}"]
    return replace(found, command=shlex.join(["hustings", "plan", election, *options]))
