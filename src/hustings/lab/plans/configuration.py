"""A configuration: what every member of a group is told, as `join` and `hustings.toml` have it.

Law: a configuration says nothing that `hustings.join` does not take. What it leaves out has the
default of `join`. Times are in seconds.

Members are numbered from 1 in the order of the sites, and member 7 is named `m7`: in a file, on the
virtual clock and in network namespaces alike. So a voter's number says where it stands.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hustings.agent.command import CommandSpec, lease_for
from hustings.agent.config import GroupConfig, load
from hustings.core.choice import parse_choice
from hustings.core.errors import BadInput, UnknownName
from hustings.core.names import member_id
from hustings.core.outcome import Guarantee
from hustings.core.quantities import write_duration
from hustings.guard.config import GroupGuard, guard_for
from hustings.guard.quorum import SCHEME as QUORUM
from hustings.guard.registry import ENGINES
from hustings.guard.urls import parse_url
from hustings.joining import PROTOCOL
from hustings.net.composition import Configured, Design, configure, multicast_policy
from hustings.net.limits import Limits
from hustings.protocols.registry import find

if TYPE_CHECKING:
    from hustings.guard.config import GuardLike

Plain = str | int | float | bool
Settings = Mapping[str, Plain]
GROUP = "jobs"  # the group's name in what a plan prints, unless another is given
PORT = 7400
_MEMBER = re.compile(r"m([1-9][0-9]{0,7})")
_URLS = {each.name: each.example for each in ENGINES}


def member_name(number: int) -> str:
    """The name of a member.

    >>> member_name(7)
    'm7'
    """
    return f"m{number}"


def member_number(name: str) -> int | None:
    """The number of a member with such a name; None for any other name.

    >>> member_number("m7"), member_number("web-1")
    (7, None)
    """
    found = _MEMBER.fullmatch(name)
    return None if found is None else int(found[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """What all members of a group are told. None, and an empty table: the default of `join`."""

    protocol: str = PROTOCOL
    choice: str = "highest-id"
    settings: Settings = field(default_factory=dict)
    detector: str = "accrual"
    detector_settings: Settings = field(default_factory=dict)
    gossip_settings: Settings = field(default_factory=dict)
    leadership_settings: Settings = field(default_factory=dict)
    limits: Settings = field(default_factory=dict)
    multicast: str = "fan-out"
    preempt: bool = False
    preempt_after: float | None = None
    stall_bound: float | None = None
    measure: str | None = None
    guard: str | None = None  # None, "quorum", or the name of an engine
    guard_url: str = ""  # the engine's address; "": the usual one on this machine
    guard_site: str = ""  # the site where the engine runs; "": the first
    voters: tuple[int, ...] = ()  # with "quorum": the numbers of the members that vote
    durable: bool = True  # whether voters keep their promises in a state directory
    ttl: float | None = None
    guard_settings: Settings = field(default_factory=dict)
    # The time from SIGTERM to SIGKILL for the command of `hustings run`, which is part of a lease.
    # None: the work is done in the member's process, and a tenth of the lease is its margin.
    grace: float | None = None

    def __post_init__(self) -> None:
        if self.guard is not None and self.guard != QUORUM and self.guard not in _URLS:
            raise UnknownName("guard", self.guard, [QUORUM, *_URLS])
        if (self.guard == QUORUM) != bool(self.voters):
            raise BadInput("voters go with the guard quorum, and the guard quorum needs voters")
        if self.guard is None and (self.ttl is not None or self.guard_settings):
            raise BadInput("ttl and guard_settings go with a guard")

    # What is made of it

    @property
    def lease(self) -> dict[str, object]:
        """The settings of the lease, with the time that ending the work may take."""
        given: dict[str, object] = dict(self.guard_settings)
        if self.guard is not None and self.grace is not None:
            spec = CommandSpec(("true",), grace_s=self.grace)
            given = {**given, **lease_for(spec, self.url(), self.ttl)}
        elif self.ttl is not None:
            given["ttl"] = self.ttl
        return given

    @property
    def runs_commands(self) -> bool:
        """Whether `hustings run` can keep it: ending a command takes a part of a lease."""
        return self.guard is None or self.grace is not None

    def url(self, *, durable: bool | None = None) -> str:
        """The address of the guard; "" without one."""
        if self.guard is None:
            return ""
        if self.guard != QUORUM:
            return self.guard_url or _URLS[self.guard]
        kept = self.durable if durable is None else durable
        return (
            f"{QUORUM}://{','.join(map(member_name, self.voters))}{'' if kept else '?durable=no'}"
        )

    def join_options(
        self, guard: GuardLike | None = None, *, durable: bool | None = None
    ) -> dict[str, Any]:
        """Arguments of `hustings.join`.

        `guard` stands for the configuration's engine, for example on a virtual clock. Where members
        have no state directory, voters are not `durable`.
        """
        options: dict[str, Any] = {
            "protocol": self.protocol,
            "choice": self.choice,
            "settings": dict(self.settings),
            "detector": self.detector,
            "detector_settings": dict(self.detector_settings),
            "gossip_settings": dict(self.gossip_settings),
            "leadership_settings": dict(self.leadership_settings),
            "limits": dict(self.limits),
            "multicast": self.multicast,
            "preempt": self.preempt,
            "preempt_after": self.preempt_after,
            "stall_bound": self.stall_bound,
            "measure": self.measure,
        }
        if self.guard is not None:
            options["guard"] = self.url(durable=durable) if guard is None else guard
            options["guard_settings"] = self.lease
        return options

    def group_guard(self) -> GroupGuard | None:
        """The guard, checked; nothing is opened."""
        if self.guard is None:
            return None
        return guard_for(self.url(), GROUP, member_id, None, self.lease)

    def design(self) -> Design:
        """What one member is made of."""
        made = self.group_guard()
        guarded: dict[str, Any] = {}
        if made is not None:
            guarded = {"lease": made.lease, "voting": made.voting, "guard": made.kind}
        leadership: dict[str, object] = dict(self.leadership_settings)
        if self.stall_bound is not None:
            leadership["stall_bound"] = self.stall_bound
        policy, address = multicast_policy(self.multicast)
        return Design(
            kind=find(self.protocol),
            choice=parse_choice(self.choice),
            settings=self.settings,
            detector=self.detector,
            detector_settings=self.detector_settings,
            gossip_settings=self.gossip_settings,
            leadership_settings=leadership,
            multicast=policy,
            reaches_all=address is not None,
            preempt=self.preempt,
            preempt_after=self.preempt_after,
            limits=Limits.parse(dict(self.limits)),
            measure=self.measure,
            **guarded,
        )

    def configured(self) -> Configured:
        """All timers that follow from it; `BadInput` if it contradicts itself."""
        made = configure(self.design())
        guard = self.group_guard()
        if guard is not None:
            guard.check(made.lease, member_name(1), kept=True)
        return made

    @property
    def guarantee(self) -> Guarantee:
        """What the group promises of its leaders."""
        made = self.group_guard()
        if made is None:
            return find(self.protocol).about.guarantee
        return made.guarantees.guarantee

    @property
    def key(self) -> str:
        """A text that two configurations share if and only if they are equal."""
        return self.to_toml("x")

    def but(self, **changes: Any) -> Configuration:
        """The same configuration with some changes."""
        return replace(self, **changes)

    # As text

    def to_toml(self, group: str = GROUP, *, name: int = 1) -> str:
        """A `hustings.toml` that an agent takes, for the member of this number."""
        told: dict[str, object] = {"protocol": self.protocol}
        if self.choice != "highest-id":
            told["choice"] = self.choice
        if self.multicast != "fan-out":
            told["multicast"] = self.multicast
        if self.detector != "accrual":
            told["detector"] = self.detector
        if self.preempt:
            told["preempt"] = True
        if self.preempt_after is not None:
            told["preempt-after"] = write_duration(self.preempt_after)
        if self.stall_bound is not None:
            told["stall-bound"] = write_duration(self.stall_bound)
        if self.measure is not None:
            told["measure"] = self.measure
        if self.guard is not None:
            told["guard"] = self.url()
            ttl = self.lease.get("ttl")
            if isinstance(ttl, float | int):
                told["ttl"] = write_duration(float(ttl))
        head = {"name": member_name(name)}
        if self.guard == QUORUM and self.durable:
            head["state"] = f"{member_name(name)}.state"
        parts = [_table("agent", head), _table(f"groups.{group}", told)]
        settings = dict(self.guard_settings)
        margin = self.lease.get("margin")
        if self.grace is not None and isinstance(margin, float | int):
            settings["margin"] = write_duration(float(margin))
        for table, values in (
            ("settings", self.settings),
            ("detector-settings", self.detector_settings),
            ("gossip-settings", self.gossip_settings),
            ("leadership-settings", self.leadership_settings),
            ("limits", self.limits),
            ("guard-settings", settings),
        ):
            if values:
                parts.append(_table(f"groups.{group}.{table}", values))
        return "\n".join(parts)

    def run_line(self, group: str = GROUP, *, name: int = 1, seeds: tuple[str, ...] = ()) -> str:
        """A line of `hustings run` for the member of this number; its command is yours."""
        words = ["hustings", "run", group, "--name", member_name(name)]
        for seed in seeds:
            words += ["--join", seed]
        words += ["--protocol", self.protocol]
        if self.choice != "highest-id":
            words += ["--choice", self.choice]
        if self.multicast != "fan-out":
            words += ["--multicast", self.multicast]
        if self.detector != "accrual":
            words += ["--detector", self.detector]
        for option, values in (
            ("--set", self.settings),
            ("--detector-set", self.detector_settings),
            ("--gossip-set", self.gossip_settings),
            ("--leadership-set", self.leadership_settings),
            ("--limit", self.limits),
        ):
            for key, value in values.items():
                words += [option, f"{key}={_word(value)}"]
        if self.preempt:
            words.append("--preempt")
        if self.preempt_after is not None:
            words += ["--preempt-after", write_duration(self.preempt_after)]
        if self.stall_bound is not None:
            words += ["--stall-bound", write_duration(self.stall_bound)]
        if self.measure is not None:
            words += ["--measure", self.measure]
        if self.guard is not None:
            words += ["--guard", self.url()]
            if self.guard == QUORUM and self.durable:
                words += ["--state", f"{member_name(name)}.state"]
            if self.ttl is not None:
                words += ["--ttl", write_duration(self.ttl)]
        if self.grace is not None:
            words += ["--grace", write_duration(self.grace)]
        return shlex.join(words)


def read_configuration(path: Path, group: str | None = None) -> tuple[Configuration, list[str]]:
    """The configuration of one group in a `hustings.toml`, and the names of its voters.

    Environment variables do not count: the file alone is judged.
    """
    flags = {} if group is None else {"group": group}
    config = load(path, flags, {})
    if len(config.groups) > 1:
        names = ", ".join(each.group for each in config.groups)
        raise BadInput(f"{path} has {len(config.groups)} groups: choose one with --group ({names})")
    return _of(config.groups[0])


def _of(group: GroupConfig) -> tuple[Configuration, list[str]]:
    """What a group's table says, and the voters that it names."""
    guard, names, durable = None, [], True
    if group.guard is not None:
        url = parse_url(group.guard)
        made = guard_for(group.guard, group.group, member_id, group.ttl, group.guard_settings)
        guard = made.kind
        if made.quorum is not None:
            names, durable = list(made.quorum.names), made.quorum.durable
        elif guard not in _URLS:
            raise BadInput(f"a plan knows nothing of the guard {url.scheme}: it is not one of ours")
    numbers = [member_number(name) for name in names]
    known = [number for number in numbers if number is not None]
    voters = tuple(known) if len(known) == len(names) else tuple(range(1, len(names) + 1))
    given = Configuration(
        protocol=group.protocol or PROTOCOL,
        choice=group.choice or "highest-id",
        settings=dict(group.settings),
        detector=group.detector or "accrual",
        detector_settings=dict(group.detector_settings),
        gossip_settings=dict(group.gossip_settings),
        leadership_settings=dict(group.leadership_settings),
        limits=dict(group.limits),
        multicast=group.multicast or "fan-out",
        preempt=group.preempt,
        preempt_after=group.preempt_after,
        stall_bound=group.stall_bound,
        measure=group.measure,
        guard=guard,
        guard_url="" if guard in (None, QUORUM) else str(group.guard),
        voters=voters,
        durable=durable,
        ttl=group.ttl,
        guard_settings=dict(group.guard_settings),
    )
    try:
        given.configured()
    except BadInput as error:
        raise group.wrong(error) from None
    return given, names


def _table(name: str, values: Mapping[str, object]) -> str:
    """A table of TOML; texts and numbers are written as JSON writes them, which TOML reads."""
    lines = [f"{_key(key)} = {json.dumps(value)}" for key, value in values.items()]
    return "\n".join([f"[{name}]", *lines, ""])


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)


def _word(value: Plain) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
