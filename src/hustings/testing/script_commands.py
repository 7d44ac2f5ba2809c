"""The commands of golden scripts, one small function each, and how their arguments are read.

A command takes the session and the words behind its name, lets something happen, and returns the
lines to print. A mistake in an argument gets a sentence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from hustings.core.choice import Candidate, Choice, MemberId, parse_choice
from hustings.core.config import Config
from hustings.core.election import Election
from hustings.core.errors import BadInput, UnknownName
from hustings.core.guard import Granted, Held, Verdict
from hustings.core.messages import Message, kind_of
from hustings.layers.lease import LeaseConfig, LeaseHeldMsg, with_lease
from hustings.testing.script_text import timer_text
from hustings.testing.scripted_group import (
    ScriptedGroup,
    ScriptedMessage,
    ScriptedStatus,
    ScriptedStep,
)

_LINK = re.compile(r"(\d+|\*)->(\d+|\*)")


def number(text: str, what: str) -> int:
    """A whole number, not negative."""
    if not re.fullmatch(r"[0-9]+", text):
        raise BadInput(f"{what} must be a whole number, not {text!r}")
    return int(text)


def decimal(text: str, what: str) -> float:
    """A number; `nan` is refused, because it has no order."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise BadInput(f"{what} must be a number, not {text!r}")
    return value


def numbers(text: str) -> list[MemberId]:
    """Ids separated by commas.

    >>> numbers("1,3")
    [1, 3]
    """
    return [number(part, "a member id") for part in text.split(",")]


def members(words: Sequence[str], group: ScriptedGroup) -> list[MemberId]:
    """Ids of the group, separated by blanks or commas; `*` for all members that are up."""
    found: list[MemberId] = []
    for word in words:
        found += group.up() if word == "*" else numbers(word)
    for member in found:
        group.member(member)
    return found


@dataclass(frozen=True, slots=True)
class Selection:
    """Which of the messages under way a command names."""

    sender: MemberId | None = None
    to: MemberId | None = None
    kind: str | None = None
    first: bool = False

    def of(self, envelopes: Sequence[ScriptedMessage]) -> list[ScriptedMessage]:
        """The named messages, in order."""
        found = [
            envelope
            for envelope in envelopes
            if self.sender in (None, envelope.sender)
            and self.to in (None, envelope.to)
            and self.kind in (None, kind_of(envelope.message))
        ]
        return found[:1] if self.first else found


def selection(words: Sequence[str], group: ScriptedGroup, kinds: Sequence[str]) -> Selection:
    """`all`, or any of `first`, a link `FROM->TO` (either may be `*`) and a kind of message."""
    if list(words) == ["all"]:
        return Selection()
    if not words:
        raise BadInput("which messages? `all`, or any of: first, FROM->TO, a kind of message")
    sender = to = kind = None
    first = False
    for word in words:
        link = _LINK.fullmatch(word)
        if word == "first" and not first:
            first = True
        elif link is not None and sender is None and to is None:
            sender, to = (None if end == "*" else int(end) for end in link.groups())
            for end in (sender, to):
                if end is not None:
                    group.member(end)
        elif kind is None and word in kinds:
            kind = word
        elif link is not None or word in ("first", "all") or word in kinds:
            raise BadInput(f"{word!r} does not go together with {' '.join(words)!r}")
        else:
            raise UnknownName("kind of message", word, kinds)
    return Selection(sender, to, kind, first)


Resolver = Callable[[str], type[Election]]
SETTLE_LIMIT = 1_000
GROUP_LIMIT = 1_000


class ScriptSession:
    """The state of a script: how to find a protocol, and the group once it is made."""

    def __init__(self, resolve: Resolver) -> None:
        self.resolve = resolve
        self._group: ScriptedGroup | None = None
        self.kinds: list[str] = []

    @property
    def group(self) -> ScriptedGroup:
        if self._group is None:
            raise BadInput("there is no group yet: begin with `nodes`")
        return self._group

    def build(self, group: ScriptedGroup, messages: Sequence[type[Message]]) -> None:
        """Make a group for the session, in place of the one before."""
        self._group = group
        self.kinds = [kind_of(message) for message in messages]

    def chosen(self, words: Sequence[str]) -> list[ScriptedMessage]:
        """The messages under way that the words select."""
        return selection(words, self.group, self.kinds).of(self.group.flight)


Run = Callable[[ScriptSession, Sequence[str]], list[str]]


@dataclass(frozen=True, slots=True)
class ScriptCommand:
    """A command: how it is written, and what it does."""

    usage: str
    run: Run


COMMANDS: dict[str, ScriptCommand] = {}


def command(usage: str) -> Callable[[Run], Run]:
    """Register a function under the first word of its usage."""

    def enter(run: Run) -> Run:
        COMMANDS[usage.split(maxsplit=1)[0]] = ScriptCommand(usage, run)
        return run

    return enter


def _told(steps: Sequence[ScriptedStep]) -> list[str]:
    return [line for step in steps for line in step.lines()]


def _no_more(words: Sequence[str]) -> None:
    if words:
        raise BadInput(f"{words[0]!r} is one word too many")


def _listed(session: ScriptSession, words: Sequence[str]) -> list[MemberId]:
    found = members(words, session.group)
    if not found:
        raise BadInput("which members?")
    return found


# The group


@command(
    "nodes N PROTOCOL [choice=C] [leader=M] [down=M,M] [seed=S] [set.NAME=VALUE] "
    "[attr.NAME=V,V,V] [guard.NAME=VALUE]"
)
def nodes(session: ScriptSession, words: Sequence[str]) -> list[str]:
    """A new group of members 1..N, none started yet. A setting of the guard brings one."""
    if len(words) < 2:
        raise BadInput("nodes needs a number of members and a protocol")
    n = number(words[0], "the number of members")
    if not 1 <= n <= GROUP_LIMIT:
        raise BadInput(f"the number of members must lie between 1 and {GROUP_LIMIT}, not {n}")
    kind = session.resolve(words[1])
    options, settings, attributes, lease = _options(words[2:])
    config = kind.Settings.parse(settings)
    choice = parse_choice(options.get("choice", "highest-id"))
    candidates = _candidates(n, attributes)
    for candidate in candidates:
        choice.key(candidate)  # a missing attribute is an error of the script, not of the protocol
    leader = number(options["leader"], "leader") if "leader" in options else None
    elect, messages = _election(kind, config, choice, lease)
    group = ScriptedGroup(
        elect,
        candidates,
        seed=number(options.get("seed", "0"), "seed"),
        leader=leader,
        down=numbers(options["down"]) if "down" in options else [],
    )
    if leader is not None:
        group.member(leader)
    session.build(group, messages)
    told = f"{'1' if n == 1 else f'1..{n}'}: {kind.about.name}, {choice.name}"
    if leader is not None:
        told += f", leader {leader}"
    if lease:
        told += ", with a guard"
    down = [member for member, how in group.standing.items() if how is ScriptedStatus.DOWN]
    if down:
        told += f", down {','.join(map(str, down))}"
    return [told, *(f"warning: {text}" for text in config.warnings())]


def _election(
    kind: type[Election], config: Config, choice: Choice, lease: dict[str, object]
) -> tuple[Callable[[], Election], Sequence[type[Message]]]:
    """The factory of a member's election, and the kinds of its messages."""
    if not lease:
        return lambda: kind(config, choice), kind.messages
    guard = LeaseConfig.parse({"delta": config.delta, **lease})
    return with_lease(lambda: kind(config, choice), guard), (*kind.messages, LeaseHeldMsg)


_Texts = dict[str, str]
_Values = dict[str, object]


def _options(words: Sequence[str]) -> tuple[_Texts, _Values, _Texts, _Values]:
    options: dict[str, str] = {}
    settings: dict[str, object] = {}
    attributes: dict[str, str] = {}
    lease: dict[str, object] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not value:
            raise BadInput(f"{word!r} is not of the form NAME=VALUE")
        if name.startswith("set."):
            settings[name.removeprefix("set.")] = value
        elif name.startswith("attr."):
            attributes[name.removeprefix("attr.")] = value
        elif name.startswith("guard."):
            lease[name.removeprefix("guard.")] = value
        elif name in ("choice", "leader", "down", "seed"):
            options[name] = value
        else:
            raise BadInput(
                f"unknown option {name!r}: use choice, leader, down, seed, set.NAME, attr.NAME "
                "or guard.NAME"
            )
    return options, settings, attributes, lease


def _candidates(n: int, attributes: dict[str, str]) -> list[Candidate]:
    columns: list[list[tuple[str, float]]] = []
    for name, text in sorted(attributes.items()):
        values = [(name, decimal(part, f"attribute {name}")) for part in text.split(",")]
        if len(values) != n:
            raise BadInput(f"attribute {name} needs {n} values, one for each member")
        columns.append(values)
    return [Candidate(i + 1, tuple(column[i] for column in columns)) for i in range(n)]


@command("start [MEMBERS]")
def start(session: ScriptSession, words: Sequence[str]) -> list[str]:
    """Members join: those named, or all that have not yet."""
    group = session.group
    waiting = [member for member, how in group.standing.items() if how is ScriptedStatus.OUT]
    chosen = members(words, group) if words else waiting
    if not chosen:
        raise BadInput("all members have been started")
    lines: list[str] = []
    for quiet, steps in groupby(group.start(chosen), key=lambda step: not step.effects):
        if quiet:
            lines.append(" ".join([*(step.title.split()[0] for step in steps), "start"]))
        else:
            lines += _told(list(steps))
    return lines


@command("crash MEMBERS")
def crash(session: ScriptSession, words: Sequence[str]) -> list[str]:
    """Members stop for good, or until they restart."""
    return _told([session.group.crash(member) for member in _listed(session, words)])


@command("restart MEMBERS")
def restart(session: ScriptSession, words: Sequence[str]) -> list[str]:
    """Members come back as new incarnations."""
    return _told([session.group.restart(member) for member in _listed(session, words)])


@command("leave MEMBERS")
def leave(session: ScriptSession, words: Sequence[str]) -> list[str]:
    """Members depart in good order."""
    return _told([session.group.leave(member) for member in _listed(session, words)])


# From outside


@command("call MEMBERS")
def call(session: ScriptSession, words: Sequence[str]) -> list[str]:
    """Members call an election, before any message of these calls arrives."""
    return _told([session.group.call(member) for member in _listed(session, words)])


def _pair(session: ScriptSession, words: Sequence[str]) -> tuple[list[MemberId], MemberId]:
    if len(words) != 2:
        raise BadInput("whose detector, and about whom? two words, the first may be a list")
    about = number(words[1], "a member id")
    detectors = [member for member in members(words[:1], session.group) if member != about]
    if not detectors:
        raise BadInput("only the member itself is meant")
    return detectors, about


@command("suspect MEMBERS M")
def suspect(session: ScriptSession, words: Sequence[str]) -> list[str]:
    """The detectors of some members suspect M, rightly or not."""
    detectors, about = _pair(session, words)
    return _told([session.group.suspect(member, about) for member in detectors])


@command("alive MEMBERS M")
def alive(session: ScriptSession, words: Sequence[str]) -> list[str]:
    """The detectors of some members trust M again."""
    detectors, about = _pair(session, words)
    return _told([session.group.alive(member, about) for member in detectors])


# The guard: it answers what a member asked last, or repeats an answer to an older request


def _request(session: ScriptSession, member: MemberId, given: Sequence[str]) -> tuple[int, float]:
    """The number of the request, and the time it asked for."""
    asked = session.group.member(member).asked
    if asked is None:
        raise BadInput(f"member {member} has asked the guard for nothing")
    return number(given[0], "the request") if given else asked.request, asked.ttl


@command("grant M TOKEN [REQUEST]")
def grant(session: ScriptSession, words: Sequence[str]) -> list[str]:
    """The guard confirms a member, for the time it asked for."""
    if len(words) < 2:
        raise BadInput("to whom, and which token?")
    _no_more(words[3:])
    member, token = number(words[0], "a member id"), number(words[1], "the token")
    request, ttl = _request(session, member, words[2:])
    verdict: Verdict = Granted(request, token, ttl)
    return _told([session.group.answer(member, verdict)])


@command("refuse M HOLDER TOKEN REMAINING [REQUEST]")
def refuse(session: ScriptSession, words: Sequence[str]) -> list[str]:
    """The guard tells a member that another one holds the token."""
    if len(words) < 4:
        raise BadInput("whom, who holds which token, and for how long?")
    _no_more(words[5:])
    member, holder = number(words[0], "a member id"), number(words[1], "a member id")
    request, _ = _request(session, member, words[4:])
    token, remaining = number(words[2], "the token"), decimal(words[3], "the remaining time")
    return _told([session.group.answer(member, Held(request, holder, token, remaining))])


# Messages and timers


@command("deliver all | [first] [FROM->TO] [KIND]")
def deliver(session: ScriptSession, words: Sequence[str]) -> list[str]:
    """Messages now under way arrive; what they cause is sent, but not yet delivered."""
    chosen = session.chosen(words)
    return _told([session.group.deliver(it) for it in chosen]) or ["no such message"]


@command("drop all | [first] [FROM->TO] [KIND]")
def drop(session: ScriptSession, words: Sequence[str]) -> list[str]:
    """Messages are lost."""
    chosen = session.chosen(words)
    return _told([session.group.drop(it) for it in chosen]) or ["no such message"]


@command("duplicate all | [first] [FROM->TO] [KIND]")
def duplicate(session: ScriptSession, words: Sequence[str]) -> list[str]:
    """The network copies messages."""
    chosen = session.chosen(words)
    return _told([session.group.duplicate(it) for it in chosen]) or ["no such message"]


@command("fire M [TIMER]")
def fire(session: ScriptSession, words: Sequence[str]) -> list[str]:
    """A timer expires: the one named, or the member's next."""
    if not words:
        raise BadInput("whose timer?")
    group = session.group
    member = number(words[0], "a member id")
    _no_more(words[2:])
    armed = [timer for timer in group.timers() if timer.member == member]
    if len(words) == 2:
        armed = [timer for timer in armed if timer_text(timer.key) == words[1]]
    group.member(member)
    if not armed:
        return ["no such timer"]
    return _told([group.fire(member, armed[0].key)])


@command("settle [LIMIT]")
def settle(session: ScriptSession, words: Sequence[str]) -> list[str]:
    """Deliver everything and fire all timers, in order, until nothing is left."""
    _no_more(words[1:])
    limit = number(words[0], "the limit") if words else SETTLE_LIMIT
    steps, ended = session.group.settle(limit)
    if ended:
        return [*_told(steps), f"settled at {session.group.now:g}"]
    return [*_told(steps), f"not settled: stopped by the limit of {limit} steps"]


# Showing


@command("pending")
def pending(session: ScriptSession, words: Sequence[str]) -> list[str]:
    """Messages under way in the order of sending, and armed timers in the order of firing."""
    _no_more(words)
    lines = [*map(str, session.group.flight), *map(str, session.group.timers())]
    return lines or ["nothing"]


@command("state [MEMBERS]")
def state(session: ScriptSession, words: Sequence[str]) -> list[str]:
    """What members believe, in their election's own words."""
    group = session.group
    lines = []
    for member in members(words, group) if words else group.members:
        standing = group.standing[member]
        driven = group.members[member]
        told = driven.election.state() if standing is ScriptedStatus.UP else standing.value
        lines.append(f"{member} {told}")
    return lines


@command("counts")
def counts(session: ScriptSession, words: Sequence[str]) -> list[str]:
    """Messages sent so far, by kind; a multicast counts as one."""
    _no_more(words)
    sent = session.group.sent
    kinds = [f"{kind} {sent[kind]}" for kind in session.kinds]
    return [f"{', '.join(kinds)}, in all {sent.total()}"]
