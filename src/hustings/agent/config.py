"""The configuration of an agent: one port, HTTP, and the groups whose members it runs.

    [agent]          where its members listen, and what holds for all groups
    [http]           where it answers, and who may give orders
    [groups.NAME]    one table for each group

The file is read strictly. Flags and environment variables override it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hustings.agent.config_file import (
    PREFIX,
    ConfigSection,
    ConfigSources,
    ErrorLocator,
    read_document,
    variable,
)
from hustings.agent.hooks import LEAD, LONGEST_S, LOSE, SHORTEST_S, TIMEOUT_S, Hooks
from hustings.agent.logs import FORMATS, LEVELS
from hustings.core.documents import Plain
from hustings.core.errors import BadInput, Unavailable, UnknownName
from hustings.net.addresses import Address

MEMBER_PORT, HTTP_PORT = 7400, 7401
BIND = Address("127.0.0.1", MEMBER_PORT)
HTTP = Address("127.0.0.1", HTTP_PORT)
GUARD_WAIT_S = 60.0  # for an engine that starts after its agent
SHUTDOWN_S, LONGEST_SHUTDOWN_S = 5.0, 600.0
MOST_STREAMS = 10_000
MOST_EXPECTED = 65_536

# Key of the file -> flag and environment variable: for all groups, and for a single group.
AGENT = {
    key: key
    for key in (
        *("bind", "advertise", "name", "state", "key", "insecure"),
        *("log-format", "log-level", "shutdown-timeout"),
    )
}
WEB = {
    "bind": "http",
    "names": "http-name",
    "token-file": "token-file",
    "event-streams": "event-streams",
}
EACH = {key: key for key in ("name", "state", "key")}
ONE = {
    "seeds": "join",
    "settings": "set",
    "attributes": "attribute",
    **{key: key for key in ("protocol", "choice", "observer", "multicast", "detector")},
    **{key: key for key in ("no-local", "expect", "alone")},
    **{key: key for key in ("preempt", "preempt-after", "stall-bound", "measure")},
    **{key: key for key in ("guard", "ttl", "guard-wait")},
    **{key: key for key in (LEAD, LOSE, "hook-timeout")},
}
SETTINGS = ("config", "group", *AGENT.values(), *WEB.values(), *ONE.values(), "http-token")
# Variables that other commands read, or set for the commands that they run.
OTHERS = (
    *("agent", "term", "token", "member", "timeout", "key-file", "local-dir"),
    *("event", "leader", "reason"),
)

_GROUP = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True)
class GroupConfig:
    """The configuration of one group's member."""

    group: str
    place: str  # where the file has the group, for sentences
    name: str | None
    seeds: tuple[str, ...]
    no_local: bool
    expect: int | None
    alone: bool | float | None
    protocol: str | None
    settings: Mapping[str, Plain]
    choice: str | None
    attributes: Mapping[str, float]
    keys: tuple[Path, ...]
    state: Path | None
    observer: bool
    multicast: str | None
    detector: str | None
    detector_settings: Mapping[str, Plain]
    gossip_settings: Mapping[str, Plain]
    leadership_settings: Mapping[str, Plain]
    limits: Mapping[str, Plain]
    preempt: bool
    preempt_after: float | None
    stall_bound: float | None
    measure: str | None
    guard: str | None = field(repr=False)  # its address may hold a password
    ttl: float | None
    guard_settings: Mapping[str, Plain]
    guard_wait: float | None
    hooks: Hooks
    locate: ErrorLocator = field(repr=False, compare=False)

    def wrong(self, error: Exception) -> BadInput:
        """A member's complaint, with the place in the configuration that it is about."""
        kind = Unavailable if isinstance(error, Unavailable) else BadInput
        return kind(self.locate(self.place, str(error)))


@dataclass(frozen=True)
class AgentConfig:
    """The whole configuration."""

    bind: Address
    advertise: Address | None
    insecure: bool
    http: Address
    http_names: tuple[str, ...]
    token_file: Path | None
    token: str | None = field(repr=False)
    streams: int
    log_format: str
    log_level: str
    shutdown_s: float
    groups: tuple[GroupConfig, ...]
    notes: tuple[str, ...] = ()


def load(
    path: Path | None, flags: Mapping[str, object], environment: Mapping[str, str]
) -> AgentConfig:
    """Read the file, if there is one, under flags and environment; bad input is refused whole."""
    document = None if path is None else read_document(path)
    folder = Path() if path is None else path.absolute().parent
    sources = ConfigSources(document, folder, flags, environment)
    top = sources.config_section((), {})
    agent = sources.config_section(("agent",), AGENT)
    web = sources.config_section(("http",), WEB)
    for table in ("agent", "http", "groups"):
        top.knows(table)
    top.end()
    common = _Common(
        agent.text("name"), agent.path("state"), agent.paths("key") or (), agent.flag("insecure")
    )
    shutdown_s = agent.duration("shutdown-timeout", SHUTDOWN_S, least=0.1, most=LONGEST_SHUTDOWN_S)
    assert shutdown_s is not None
    config = AgentConfig(
        bind=agent.address("bind", BIND, MEMBER_PORT) or BIND,
        advertise=agent.address("advertise", None, MEMBER_PORT),
        insecure=common.insecure,
        http=web.address("bind", HTTP, HTTP_PORT) or HTTP,
        http_names=web.texts("names") or (),
        token_file=web.path("token-file"),
        token=environment.get(variable("http-token")) or None,
        streams=web.count("event-streams", 64, 1, MOST_STREAMS),
        log_format=agent.one_of("log-format", FORMATS, "text"),
        log_level=agent.one_of("log-level", LEVELS, "info"),
        shutdown_s=shutdown_s,
        groups=_groups(sources, common),
        notes=tuple(unknown_variables(environment)),
    )
    agent.end()
    web.end()
    sources.judge()
    return config


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """Sentences about variables of ours that no command reads: they may be typing errors.

    >>> unknown_variables({"HUSTINGS_BNID": "x", "HUSTINGS_BIND": "y", "PATH": "z"})[0][:35]
    'the environment variable HUSTINGS_B'
    """
    known = [variable(setting) for setting in (*SETTINGS, *OTHERS)]
    notes = []
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in known:
            notes.append(f"the environment variable {name} means nothing to hustings agent")
    return notes


@dataclass(frozen=True)
class _Common:
    name: str | None
    state: Path | None
    keys: tuple[Path, ...]
    insecure: bool


def _groups(sources: ConfigSources, common: _Common) -> tuple[GroupConfig, ...]:
    names = sources.config_section(("groups",), {}).names
    chosen = _chosen(sources, names)
    if not chosen:
        sources.judge()  # perhaps the table is there, misspelt
        raise BadInput(
            "there is no group to join: say --group NAME, or write a table [groups.NAME] into "
            "the file that --config names"
        )
    if len(chosen) > 1:
        for setting in ONE.values():
            if (origin := sources.origin(setting)) is not None:
                raise BadInput(
                    f"{origin} is for one group and there are {len(chosen)} "
                    f"({', '.join(chosen)}): write it into the file, or choose with --group"
                )
    return tuple(_group(sources, name, common) for name in chosen)


def _chosen(sources: ConfigSources, names: tuple[str, ...]) -> tuple[str, ...]:
    """The group that flag or environment name, else all groups of the file."""
    origin = sources.origin("group")
    if origin is None:
        return names
    name = str(sources.above("group"))
    if names and name not in names:
        raise UnknownName("group", name, names)
    return (name,)


def _hooks(table: ConfigSection) -> Hooks:
    limit = table.duration("hook-timeout", TIMEOUT_S, least=SHORTEST_S, most=LONGEST_S)
    assert limit is not None
    return Hooks(table.text(LEAD), table.text(LOSE), limit)


def _group(sources: ConfigSources, group: str, common: _Common) -> GroupConfig:
    path = ("groups", group)
    origin = sources.origin("group")
    place = f"{origin} {group}" if origin is not None else sources.place(path)
    if _GROUP.fullmatch(group) is None:
        sources.complain(
            place, "must be letters, digits, dots, dashes and underscores, 64 at most, for a group"
        )
    table = sources.config_section(path, {**EACH, **ONE})
    attributes = table.numbers("attributes")
    for name in attributes:
        if name.startswith("~"):
            sources.complain(
                f"{place}: attribute {name}", "may not begin with ~, which is reserved"
            )
    guard = table.text("guard")
    config = GroupConfig(
        group=group,
        place=place,
        name=table.text("name", common.name),
        seeds=table.texts("seeds") or (),
        no_local=table.flag("no-local"),
        expect=table.count("expect", 0, 1, MOST_EXPECTED) or None,
        alone=table.yes_or_duration("alone"),
        protocol=table.text("protocol"),
        settings=table.plain("settings"),
        choice=table.text("choice"),
        attributes=attributes,
        keys=table.paths("key") or common.keys,
        state=table.path("state") or common.state,
        observer=table.flag("observer"),
        multicast=table.text("multicast"),
        detector=table.text("detector"),
        detector_settings=table.plain("detector-settings"),
        gossip_settings=table.plain("gossip-settings"),
        leadership_settings=table.plain("leadership-settings"),
        limits=table.plain("limits"),
        preempt=table.flag("preempt"),
        preempt_after=table.duration("preempt-after", None),
        stall_bound=table.duration("stall-bound", None),
        measure=table.text("measure"),
        guard=guard,
        ttl=table.duration("ttl", None),
        guard_settings=table.plain("guard-settings"),
        guard_wait=table.duration("guard-wait", None if guard is None else GUARD_WAIT_S),
        hooks=_hooks(table),
        locate=ErrorLocator(sources, path, {**EACH, **ONE}),
    )
    table.end()
    return config
