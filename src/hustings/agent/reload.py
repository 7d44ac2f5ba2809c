"""What SIGHUP can change while members run, and what it cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields

from hustings.agent.access import Token, permit_http, read_token
from hustings.agent.config import AgentConfig, GroupConfig
from hustings.agent.layers import variable
from hustings.net.keys import Key, read_key
from hustings.net.seal import KeyRing

_AGENT = ("groups", "token_file", "token", "notes")  # read again, or compared below
_GROUP = ("attributes", "blame", "keys", "place")


@dataclass(frozen=True)
class Fresh:
    """What was read again, all of it checked."""

    config: AgentConfig
    token: Token | None
    keys: dict[str, tuple[Key, ...]]  # by group: the first seals, all open


def read_again(reread: Callable[[], AgentConfig], running: AgentConfig) -> Fresh:
    """The configuration and the files that it names, as they are now; `BadInput` if they are not
    fit to run with."""
    config = reread()
    text = read_token(config.token_file, config.token, variable("http-token"))
    permit_http(running.http, token=text is not None)
    keys = {}
    for group in config.groups:
        keys[group.group] = tuple(read_key(path) for path in group.keys)
        if group.keys:
            KeyRing(keys[group.group])  # refuses what no member could use
    return Fresh(config, None if text is None else Token(text), keys)


def changes_for_restart(old: AgentConfig, new: AgentConfig) -> Iterator[str]:
    """Sentences about what has changed and takes effect only when the agent starts again."""
    for field in fields(AgentConfig):
        if field.name not in _AGENT and getattr(old, field.name) != getattr(new, field.name):
            yield f"{_key(field.name)} has changed: it takes effect at the next start"
    before = {group.group: group for group in old.groups}
    after = {group.group: group for group in new.groups}
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            yield f"group {name} is gone from the configuration: it is left at the next start"
        elif name not in before:
            yield f"group {name} is new in the configuration: it is joined at the next start"
        else:
            yield from _group_changes(before[name], after[name])


def _group_changes(old: GroupConfig, new: GroupConfig) -> Iterator[str]:
    for field in fields(GroupConfig):
        if field.name not in _GROUP and getattr(old, field.name) != getattr(new, field.name):
            key = _key(field.name)
            yield f"{key} of group {old.group} has changed: it takes effect at the next start"
    for name in sorted(old.attributes.keys() - new.attributes.keys()):
        yield f"attribute {name} of group {old.group} is gone: it stays until the next start"
    if bool(old.keys) != bool(new.keys):
        yield f"whether group {old.group} has a key has changed: it takes effect at the next start"


def _key(name: str) -> str:
    return name.removesuffix("_s").replace("_", "-")
