"""Scenarios: how a run begins. Each is a value that sets up a world and names what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hustings.core.choice import Candidate, Choice, MemberId
from hustings.core.errors import BadInput, UnknownName
from hustings.core.outcome import Elected
from hustings.sim.faults import Call, Happening, Suspect, schedule
from hustings.sim.member import Status
from hustings.sim.world import World


@dataclass(frozen=True, slots=True)
class Scenario:
    """Who is dead, who notices, who calls; `extra` happens on top.

    `crashed` are members that are down from the beginning, besides the old leader of leader-crash.
    """

    name: str = "start"
    crashed: tuple[MemberId, ...] = ()
    detectors: tuple[MemberId, ...] = ()
    initiators: tuple[MemberId, ...] = ()
    extra: tuple[Happening, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Cast:
    """A scenario worked out for one group."""

    leader: MemberId | None  # the old one, down from the beginning
    down: tuple[MemberId, ...]  # all who are
    openers: tuple[MemberId, ...]  # who detects, or who calls


def cast(
    scenario: Scenario, candidates: list[Candidate], choice: Choice, *, scripted: bool = True
) -> Cast:
    """Check a scenario against a group; the worst live member opens it if nobody is named."""
    if scenario.name not in SCENARIOS:
        raise UnknownName("scenario", scenario.name, SCENARIOS)
    ids = {candidate.id: candidate for candidate in candidates}
    for role, members in (
        ("crashed", scenario.crashed),
        ("detector", scenario.detectors),
        ("initiator", scenario.initiators),
    ):
        for member in members:
            if member not in ids:
                raise BadInput(f"{role} {member} is not a member: ids are 1 to {len(ids)}")
    order = sorted(candidates, key=choice.key)
    leader = order[-1].id if scenario.name == "leader-crash" else None
    down = tuple(sorted({*scenario.crashed, *([leader] if leader is not None else [])}))
    if len(down) >= len(ids):
        raise BadInput(f"{len(down)} of {len(ids)} members are crashed: at least one must live")
    openers = _openers(scenario, leader)
    for member in openers:
        if member in down:
            raise BadInput(f"member {member} is crashed and can neither detect nor call")
    if not openers and (scripted or leader is None):  # somebody has to begin
        openers = (next(candidate.id for candidate in order if candidate.id not in down),)
    return Cast(leader, down, openers)


def _openers(scenario: Scenario, leader: MemberId | None) -> tuple[MemberId, ...]:
    if leader is None and scenario.detectors:
        raise BadInput(
            "scenario 'start' has no dead leader to detect: name an --initiator, "
            "or use --scenario leader-crash"
        )
    # In the order of ids: who is named first must not matter.
    return tuple(sorted({*scenario.detectors, *scenario.initiators}))


def begin(world: World, scenario: Scenario, cast: Cast, *, live_view: bool, tell: bool) -> None:
    """Set a world up: the dead are down, the living started, the first event scheduled.

    `live_view`: views hold the living only. `tell`: the openers are told at 0 (a scripted
    detector); otherwise whatever detector the members run must notice by itself.
    """
    for member in cast.down:
        ctx = world.members[member]
        ctx.incarnation = 1  # it lived before this run, so if it comes back it returns
        world.change(ctx, Status.CRASHED)
        if live_view:
            world.everybody_forgets(ctx)
    world.start()
    if cast.leader is not None:
        for ctx in world.live():
            ctx.election.assume_leader(ctx, cast.leader, 1)
            ctx.outcome = Elected(cast.leader, 1)
    SCENARIOS[scenario.name](world, cast, tell)
    schedule(world, list(scenario.extra))


def _start(world: World, cast: Cast, tell: bool) -> None:
    """Nobody leads; the initiators call an election at 0."""
    schedule(world, [Call(member=member) for member in cast.openers])


def _leader_crash(world: World, cast: Cast, tell: bool) -> None:
    """The best member leads and is dead; the detectors notice at 0."""
    if tell and cast.leader is not None:
        leader = cast.leader
        schedule(world, [Suspect(member=member, about=leader) for member in cast.openers])


SCENARIOS: dict[str, Callable[[World, Cast, bool], None]] = {
    "start": _start,
    "leader-crash": _leader_crash,
}
