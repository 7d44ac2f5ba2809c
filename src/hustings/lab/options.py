"""From plain words to an experiment: one way for the command line, sweeps and Python."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import msgspec

from hustings.core.choice import Choice, MemberId
from hustings.core.config import finite_number, parse_settings, parse_whole
from hustings.core.election import Election
from hustings.core.errors import BadInput, UnknownName
from hustings.layers.lease import LeaseLayer
from hustings.protocols.registry import Protocol, is_ours
from hustings.sim import experiment as sim_experiment
from hustings.sim.delay import parse_delay
from hustings.sim.environment import Environment, environment_of
from hustings.sim.experiment import Composed, Description, Experiment, ToVoting
from hustings.sim.faults import parse_faults, parse_members
from hustings.sim.loss import parse_loss
from hustings.sim.member import Clocks
from hustings.sim.mobility import Mobility, parse_mobility
from hustings.sim.network import Network
from hustings.sim.pauses import Pauses, parse_pauses
from hustings.sim.scenarios import JOINING, Order, Rates, Scenario, parse_order
from hustings.sim.sites import parse_sites, site_delay, site_loss
from hustings.sim.traffic import ToFrameSize

if TYPE_CHECKING:
    from hustings.quorum import QuorumConfig

MEMBERS = 8  # the default
GUARDS = ("none", "memory", "quorum")
VOTERS = 3

Settings = Mapping[str, object] | Iterable[str]
Ids = int | str | Iterable[int]
Number = int | float

# Options whose flag differs from the field's name.
FLAGS = {
    "attributes": "attribute",
    "detection_settings": "detection-set",
    "detectors": "detector",
    "faults": "fault",
    "guard_settings": "guard-set",
    "initiators": "initiator",
    "leadership_settings": "leadership-set",
    "links": "link",
    "loss_settings": "loss-set",
    "measure": "measure-set",
    "mobility_settings": "mobility-set",
    "pause_settings": "pause-set",
    "settings": "set",
    "gossip_settings": "gossip-set",
}


class World(TypedDict, total=False):
    """The options of an experiment as Python gives them; `hustings sim --help` explains each."""

    members: int
    scenario: str
    detectors: Ids
    initiators: Ids
    crashed: Ids
    settings: Settings
    delay: Number | str
    choice: str | Choice
    attributes: Mapping[str, Iterable[Number] | str] | Iterable[str]
    seed: int
    loss: Number
    loss_model: str
    loss_settings: Settings
    collision: Number
    links: Mapping[tuple[MemberId, MemberId], Number] | Iterable[str]
    sites: Mapping[str, int] | str
    between: Mapping[tuple[str, str], Number | str] | Iterable[str]
    between_loss: Mapping[tuple[str, str], Number] | Iterable[str]
    duplicate: Number
    reorder: Number
    hold_back: Number
    fifo: bool
    faults: str | Iterable[str]
    view: Number
    drift: Number
    offset: Number
    pause: Number
    pause_settings: Settings
    detection: str
    detection_settings: Settings
    guard: str
    guard_settings: Settings
    composed: bool
    leadership_settings: Settings
    measure: Settings
    membership: str
    gossip_settings: Settings
    arrivals: Number
    departures: Number
    orderly: bool
    linger: Number
    mobility: str
    mobility_settings: Settings
    until: Number
    max_events: int
    time_series: Number
    consensus: bool
    debug: bool
    order: str | Iterable[int]
    environment: str | Path | Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """An experiment in plain words, as a user types them after `hustings sim`.

    The same words make the same experiment, whether a command line, the file of a sweep, or Python
    (through `Options.of`) gives them.
    """

    members: int | None = None
    scenario: str = "start"
    detectors: tuple[str, ...] = ()
    initiators: tuple[str, ...] = ()
    crashed: str = ""
    settings: tuple[str, ...] = ()
    delay: str = "1"
    choice: str = "highest-id"
    attributes: tuple[str, ...] = ()
    seed: int = 1
    loss: float = 0.0
    loss_model: str | None = None
    loss_settings: tuple[str, ...] = ()
    collision: float = 0.0
    links: tuple[str, ...] = ()
    sites: str | None = None
    between: tuple[str, ...] = ()
    between_loss: tuple[str, ...] = ()
    duplicate: float = 0.0
    reorder: float = 0.0
    hold_back: float = 0.0
    fifo: bool = False
    faults: tuple[str, ...] = ()
    view: float | None = None
    drift: float = 0.0
    offset: float = 0.0
    pause: float | None = None
    pause_settings: tuple[str, ...] = ()
    detection: str = "scripted"
    detection_settings: tuple[str, ...] = ()
    guard: str = "none"
    guard_settings: tuple[str, ...] = ()
    composed: bool = False
    leadership_settings: tuple[str, ...] = ()
    measure: tuple[str, ...] = ()
    membership: str = "ideal"
    gossip_settings: tuple[str, ...] = ()
    arrivals: float | None = None
    departures: float | None = None
    orderly: bool = False
    linger: float = 0.0
    mobility: str | None = None
    mobility_settings: tuple[str, ...] = ()
    until: float | None = None
    max_events: int | None = None
    time_series: float | None = None
    consensus: bool = False
    debug: bool = False
    order: str | None = None
    environment: str | None = None  # a file, or several lines: the text of one

    @property
    def clockwise(self) -> Order | None:
        """The order of ids round the ring, if the user gave one."""
        return None if self.order is None else parse_order(self.order)

    @property
    def size(self) -> int:
        """How many members there are, before any joins."""
        if self.members is not None:
            return self.members
        if self.sites is not None:
            return parse_sites(self.sites).members
        if self.environment is not None and (fixed := environment_of(self.environment).members):
            return fixed
        order = self.clockwise
        if order is None or isinstance(order, str):
            return MEMBERS
        return max(1, len(order) - (self.scenario in JOINING))

    @classmethod
    def of(cls, **given: Unpack[World]) -> Options:
        """The words for Python values.

        >>> Options.of(members=8, crashed=[6, 7], settings={"T_A": 0.5}, delay=0.1).words()
        ['--members=8', '--crashed=6,7', '--set=T_A=0.5', '--delay=0.1']
        """
        known = {each.name: each.type for each in fields(cls)}
        words: dict[str, Any] = {}
        for name, value in given.items():
            if name not in known:
                raise UnknownName("option", name, known)
            words[name] = _WORDS.get(name, _plain)(name, value)
        return cls(**words)

    def words(self, only: Collection[str] | None = None) -> list[str]:
        """What a user would type: fields that differ from their defaults, or those in `only`."""
        words: list[str] = []
        for each in fields(self):
            value = getattr(self, each.name)
            option = f"--{FLAGS.get(each.name, each.name.replace('_', '-'))}"
            if value == each.default if only is None else each.name not in only:
                continue
            if isinstance(value, bool):
                words += [option] if value else []
            else:
                words += [
                    f"{option}={one}" for one in (value if isinstance(value, tuple) else [value])
                ]
        return words

    def with_seed(self, seed: int) -> Options:
        """The same experiment with another seed."""
        return replace(self, seed=seed)


def parse_attributes(texts: Iterable[str]) -> tuple[tuple[str, tuple[float, ...] | None], ...]:
    """The values of each attribute; an attribute given twice is an error."""
    table: dict[str, tuple[float, ...] | None] = {}
    for text in texts:
        name, values = _attribute(text)
        if name in table:
            raise BadInput(f"--attribute {name} is given twice")
        table[name] = values
    return tuple(table.items())


def _attribute(text: str) -> tuple[str, tuple[float, ...] | None]:
    """`cpu=3,1,2` lists values by member; `cpu=random` draws them from the seed."""
    name, equals, values = text.partition("=")
    if not equals or not name.strip():
        raise BadInput(f"--attribute {text!r} is not understood: write NAME=1,2,3 or NAME=random")
    if values.strip() == "random":
        return name.strip(), None
    return name.strip(), tuple(
        finite_number(value, f"attribute {name}") for value in values.split(",")
    )


def build(kind: type[Election], typed: Options, *, digest: bool = False) -> Experiment:
    """An experiment from plain words.

    This function turns texts into values; `sim.experiment` derives what follows from them.
    """
    environment = _environment(typed)
    return sim_experiment.build(
        Description(
            kind=kind,
            members=typed.size,
            settings=parse_settings(typed.settings),
            scenario=_scenario(typed),
            network=_network(typed),
            choice=typed.choice,
            attributes=parse_attributes(typed.attributes),
            order=typed.clockwise,
            seed=typed.seed,
            view=typed.view,
            clocks=Clocks(typed.drift, typed.offset),
            pauses=_pauses(typed),
            environment=environment,
            frames=None if environment is None else _frames(kind, environment),
            detection=typed.detection,
            detection_settings=parse_settings(typed.detection_settings),
            guard=lease(typed.guard, typed.guard_settings),
            voting=voting(typed.guard, typed.guard_settings, typed.size),
            composer=_composer() if typed.composed else None,
            leadership_settings=parse_settings(typed.leadership_settings),
            measure=parse_settings(typed.measure),
            membership=typed.membership,
            gossip_settings=parse_settings(typed.gossip_settings),
            until=typed.until,
            max_events=typed.max_events,
            time_series=typed.time_series,
            consensus=typed.consensus,
            debug=typed.debug,
            digest=digest,
        )
    )


def _composer() -> Callable[[Description, Mapping[str, object]], Composed]:
    from hustings.testing.composed import compose_members  # noqa: PLC0415 (loads the network)

    return compose_members


# What an environment says, so that no other option may.
_IN_ENVIRONMENT = (
    *("delay", "links", "loss", "loss_model", "loss_settings", "collision", "sites", "between"),
    *("between_loss", "duplicate", "reorder", "hold_back", "fifo", "drift", "offset", "pause"),
    *("pause_settings", "mobility", "mobility_settings"),
)


def _environment(typed: Options) -> Environment | None:
    if typed.environment is None:
        return None
    said = [name for name in _IN_ENVIRONMENT if getattr(typed, name) != _DEFAULTS[name]]
    if said:
        options = [f"--{FLAGS.get(name, name.replace('_', '-'))}" for name in said]
        raise BadInput(
            f"--environment does not go with {' and '.join(options)}: the environment says that"
        )
    environment = environment_of(typed.environment)
    fixed = None if environment.sites is None else environment.members
    if typed.members not in (None, fixed) and fixed is not None:
        raise BadInput(
            f"--members {typed.members} does not go with this --environment: its sites hold "
            f"{fixed} members"
        )
    return environment


def _frames(kind: type[Election], environment: Environment) -> ToFrameSize:
    """What counts the bytes of an election's messages."""
    from hustings.testing.composed import FrameSizes  # noqa: PLC0415 (loads the network)

    return FrameSizes(kind.about.name, environment.header)


def _network(typed: Options) -> Network:
    delay = parse_delay(typed.delay, typed.links)
    settings = parse_settings(typed.loss_settings)
    loss = parse_loss(typed.loss_model, typed.loss, typed.collision, settings)
    if typed.sites is None:
        if typed.between or typed.between_loss:
            raise BadInput("--between and --between-loss go with --sites")
    else:
        if typed.links:
            raise BadInput("--link does not go with --sites: --between gives delays")
        sites = parse_sites(typed.sites)
        delay = site_delay(sites, delay, typed.between)
        loss = site_loss(sites, loss, typed.between_loss)
    return Network(
        delay=delay,
        loss=loss,
        duplicate=typed.duplicate,
        reorder=typed.reorder,
        hold_back=typed.hold_back,
        fifo=typed.fifo,
    )


def _pauses(typed: Options) -> Pauses | None:
    settings = parse_settings(typed.pause_settings)
    if typed.pause is not None:
        return parse_pauses(typed.pause, settings)
    if settings:
        raise BadInput("--pause-set goes with --pause")
    return None


def _scenario(typed: Options) -> Scenario:
    return Scenario(
        name=typed.scenario,
        crashed=parse_members(typed.crashed, "--crashed") if typed.crashed.strip() else (),
        detectors=_ids(typed.detectors, "--detector"),
        initiators=_ids(typed.initiators, "--initiator"),
        extra=parse_faults(typed.faults),
        rates=Rates(typed.arrivals, typed.departures, typed.orderly),
        linger=typed.linger,
        mobility=_mobility(typed),
    )


def _mobility(typed: Options) -> Mobility | None:
    settings = parse_settings(typed.mobility_settings)
    if typed.mobility is not None:
        return parse_mobility(typed.mobility, settings)
    if settings:
        raise BadInput("--mobility-set goes with --mobility")
    return None


def _ids(texts: tuple[str, ...], what: str) -> tuple[MemberId, ...]:
    return tuple(member for text in texts for member in parse_members(text, what))


# A guard


def lease(guard: str, typed: tuple[str, ...]) -> dict[str, str] | None:
    """The lease that members ask the guard for, if there is a guard."""
    if guard not in GUARDS:
        raise UnknownName("guard", guard, GUARDS)
    given = parse_settings(typed)
    if guard == "none":
        if given:
            raise BadInput("--guard-set goes with --guard memory or --guard quorum")
        return None
    if guard == "quorum":
        given.pop("voters", None)
    return given


def voting(guard: str, typed: tuple[str, ...], members: int) -> ToVoting | None:
    """The first members as voters, if they form the guard."""
    if guard != "quorum":
        return None
    text = str(parse_settings(typed).get("voters", VOTERS))
    try:
        count = parse_whole(text)
    except ValueError:
        raise BadInput(f"voters must be a whole number, not {text!r}") from None
    if count > members:
        raise BadInput(f"{count} voters need as many members, and there are {members}")
    return partial(electorate, count)


@dataclass(frozen=True, slots=True)
class Voters:
    """Puts a quorum layer round a member's election."""

    config: QuorumConfig

    def __call__(self, confirmed: LeaseLayer, present: tuple[MemberId, ...] = ()) -> Election:
        from hustings.quorum import QuorumLeaseLayer  # noqa: PLC0415 (few have voters)

        return QuorumLeaseLayer(
            confirmed, msgspec.structs.replace(self.config, voters=self.among(present))
        )

    def among(self, present: tuple[MemberId, ...]) -> tuple[MemberId, ...]:
        """The first of the members that are present from the beginning, if they are enough."""
        voters = self.config.voters
        return present[: len(voters)] if len(present) >= len(voters) else voters


def electorate(voters: int, delta: float) -> Voters:
    """Members 1 to `voters` as the guard; messages take `delta` at most."""
    from hustings.quorum import QuorumConfig  # noqa: PLC0415 (few have voters)

    return Voters(QuorumConfig.parse({"delta": delta, "voters": tuple(range(1, voters + 1))}))


def named(protocol: Protocol, kind: type[Election]) -> str | None:
    """The name; None for a class that only this process knows."""
    if is_ours(kind):
        return kind.about.name
    if isinstance(protocol, str):
        return protocol
    if "." in kind.__qualname__ or kind.__module__ == "__main__":
        return None
    return f"{kind.__module__}:{kind.__qualname__}"


# Values as words


def _text(name: str, value: object) -> str:
    """A value as a user types it; a float is written so that it reads back exactly."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise BadInput(f"{name} is to be a text or a number, not {type(value).__name__}")


_SIMPLE: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "bool": (bool, "True or False"),
    "int": (int, "a whole number"),
    "float": ((int, float), "a number"),
    "str": (str, "a text"),
}


def _plain(name: str, value: object) -> object:
    """A value of the field's type; None stands for the default."""
    word = str(Options.__dataclass_fields__[name].type)
    kind = word.removesuffix(" | None")
    wanted, told = _SIMPLE[kind]
    if value is None and kind != word:
        return None
    if not isinstance(value, wanted) or (isinstance(value, bool) and kind != "bool"):
        raise BadInput(f"{name} is to be {told}, not {value!r}")
    return value


def _pairs(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, Mapping):
        return tuple(f"{key}={_text(f'{name} {key}', each)}" for key, each in value.items())
    return _several(name, value)


def _several(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str | int):
        return (str(value),)
    if not isinstance(value, Iterable):
        raise BadInput(f"{name} is to be a list, not {type(value).__name__}")
    return tuple(_text(name, each) for each in value)


def _listed(name: str, value: object) -> str | None:
    return None if value is None else ",".join(_several(name, value))


def _attribute_words(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, Mapping):
        return _several(name, value)
    return tuple(f"{key}={_listed(f'{name} {key}', each)}" for key, each in value.items())


def _link_words(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, Mapping):
        return _several(name, value)
    return tuple(f"{one}>{other}={_text(name, each)}" for (one, other), each in value.items())


def _site_words(name: str, value: object) -> str | None:
    if not isinstance(value, Mapping):
        return _listed(name, value)
    return ",".join(f"{site}={_text(f'{name} {site}', each)}" for site, each in value.items())


def _between_words(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, Mapping):
        return _several(name, value)
    return tuple(f"{one},{other}={_text(name, each)}" for (one, other), each in value.items())


def _choice_word(name: str, value: object) -> str:
    return value.name if isinstance(value, Choice) else _text(name, value)


# Options whose values are settings: KEY=VALUE, any number of them.
TABLES = (
    *("settings", "detection_settings", "gossip_settings", "guard_settings"),
    *("leadership_settings", "loss_settings", "measure", "mobility_settings", "pause_settings"),
)


def environment_word(value: object) -> str:
    """What a user types for an environment: the file's name, or the text of one."""
    if isinstance(value, str | Path):
        return str(value)
    if isinstance(value, Environment):
        return value.to_toml()
    raise BadInput(f"environment is to be a file or an Environment, not {type(value).__name__}")


def _environment_word(name: str, value: object) -> str | None:
    return None if value is None else environment_word(value)


_DEFAULTS = {each.name: each.default for each in fields(Options)}
_WORDS: Mapping[str, Callable[[str, object], object]] = {
    **dict.fromkeys(TABLES, _pairs),
    **dict.fromkeys(("detectors", "initiators", "faults"), _several),
    **dict.fromkeys(("crashed", "order"), _listed),
    "attributes": _attribute_words,
    "links": _link_words,
    "sites": _site_words,
    "between": _between_words,
    "between_loss": _between_words,
    "choice": _choice_word,
    "delay": _text,
    "environment": _environment_word,
}
