"""The environment of a group: what its network, machines and clocks do, in seconds.

An environment file says it in TOML:

    members = 40                 # or [sites] with their numbers of members
    [delay]
    within = "lognormal:300us,0.4"
    between."a,b" = "40ms"       # "a>b" is one direction
    [loss]
    rate = "1%"
    burst = 5                    # mean length in messages; without it losses have no memory
    [pauses]
    rate = "6/h"                 # of each member
    length = "exponential:80ms"
    longest = "800ms"

The same value is meant for every world in which time is in seconds: the simulator, members on a
virtual clock, and the planner. `to_toml` writes a file that is read as the same value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from math import inf
from pathlib import Path
from typing import Any, TypeVar

from hustings.core.documents import (
    LARGEST,
    Document,
    DocumentReader,
    Found,
    Section,
    decoded,
    quoted,
)
from hustings.core.errors import BadInput
from hustings.core.plugins import place_of
from hustings.core.quantities import (
    parse_rate,
    parse_share,
    write_duration,
    write_rate,
    write_share,
)
from hustings.sim.delay import Delay, Fixed, parse_law, write_law
from hustings.sim.files import reason, shown
from hustings.sim.loss import LOSSES, Burst, Coins, Loss, NoLoss, Uncorrelated, find_loss
from hustings.sim.network import Network
from hustings.sim.pauses import Pauses
from hustings.sim.sites import SITE, Pair, SiteDelay, SiteLoss, Sites, parse_pair

FORMAT = 1  # of environment files that this version reads and writes
MOST_MEMBERS = 10_000_000
MOST_SITES = 1000
MOST_RATE = 1000.0  # pauses, crashes or outages per second, of one member or site
HEADERS = {4: 28, 6: 48}  # bytes of IP and UDP for each datagram, by IP version
CUT, CRASH = "cut", "crash"
KINDS = (CUT, CRASH)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Crashes:
    """How often a member crashes, and how long it is down."""

    rate: float  # crashes of one member per second in which it runs
    back: Delay  # the time until it runs again

    def __post_init__(self) -> None:
        _check_rate("crashes", self.rate)


@dataclass(frozen=True, slots=True)
class Outages:
    """How often a whole site fails, and for how long.

    With `cut`, its members run on, and no message enters or leaves the site. This is the harder
    case: a leader there does not know that it is alone. With `crash`, all its members crash at
    once, and run again when the outage ends.
    """

    rate: float  # outages of one site per second
    lasts: Delay
    kind: str = CUT

    def __post_init__(self) -> None:
        _check_rate("outages", self.rate)
        if self.kind not in KINDS:
            raise BadInput(f"an outage must be one of {', '.join(KINDS)}, not {self.kind!r}")


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a group lives. All times are in seconds, all rates per second."""

    network: Network
    members: int | None = None  # None: any number; with sites, theirs
    sites: Sites | None = None
    pauses: Pauses | None = None
    crashes: Crashes | None = None
    outages: Outages | None = None
    drift: float = 0.0  # the largest relative error of a member's clock
    header: int = HEADERS[4]  # bytes of IP and UDP for each datagram

    def __post_init__(self) -> None:
        delay, loss = self.network.delay, self.network.loss
        if self.network.multicast_loss is not None:
            raise BadInput("an environment has one loss, for messages to one member and to all")
        if self.sites is not None:
            if self.members not in (None, self.sites.members):
                raise BadInput(
                    f"there are {self.members} members, but the sites hold {self.sites.members}: "
                    "say one of them"
                )
            object.__setattr__(self, "members", self.sites.members)
        if (delay.sites if isinstance(delay, SiteDelay) else None) != self.sites:
            raise BadInput("sites need a delay between each two of them, and this needs sites")
        if isinstance(loss, SiteLoss) and loss.sites != self.sites:
            raise BadInput("loss between sites needs these sites")
        if self.members is not None and not 1 <= self.members <= MOST_MEMBERS:
            raise BadInput(f"members must be from 1 to {MOST_MEMBERS}, not {self.members}")
        if self.outages is not None and self.sites is None:
            raise BadInput("outages are those of sites: say which sites there are")
        if self.pauses is not None:
            _check_rate("pauses", self.pauses.rate)
        if not 0.0 <= self.drift < 1.0:
            raise BadInput(f"clock drift must lie in [0, 1), not {self.drift:g}")
        if self.header not in HEADERS.values():
            known = " or ".join(f"{size} (IPv{ip})" for ip, size in HEADERS.items())
            raise BadInput(f"the headers of a datagram take {known} bytes, not {self.header}")

    def calm(self) -> Environment:
        """The same without losses, pauses, crashes and outages: delays and clocks stay.

        >>> rough = parse_environment("[delay]\\nwithin = '2ms'\\n[loss]\\nrate = '1%'")
        >>> rough.network.loss.p, rough.calm().network.loss.p
        (0.01, 0.0)
        """
        network = Network(delay=self.network.delay, fifo=self.network.fifo)
        return replace(self, network=network, pauses=None, crashes=None, outages=None)

    def to_toml(self) -> str:
        """A file's text, which is read as this environment."""
        tables: list[tuple[str, dict[str, str]]] = [("", {"format": str(FORMAT)})]
        if self.sites is not None:
            sizes = zip(self.sites.names, self.sites.sizes, strict=True)
            tables.append(("sites", {_key(name): str(size) for name, size in sizes}))
        elif self.members is not None:
            tables[0][1]["members"] = str(self.members)
        tables += _written_delay(self)
        tables += _written_loss(self)
        if self.pauses is not None:
            tables.append(("pauses", _written_pauses(self.pauses)))
        if self.crashes is not None:
            crashes = {"rate": write_rate(self.crashes.rate), "back": write_law(self.crashes.back)}
            tables.append(("crashes", _texts(crashes)))
        if self.outages is not None:
            rate, lasts = write_rate(self.outages.rate), write_law(self.outages.lasts)
            outages = {"rate": rate, "lasts": lasts, "kind": self.outages.kind}
            tables.append(("outages", _texts(outages)))
        if self.drift:
            tables.append(("clocks", {"drift": _quoted(write_share(self.drift, "ppm"))}))
        ip = next(ip for ip, size in HEADERS.items() if size == self.header)
        tables.append(("wire", {"ip": str(ip)}))
        return "\n".join(_table(name, lines) for name, lines in tables)


def read_environment(path: str | Path) -> Environment:
    """The environment in a file. All errors are one sentence, with line and key."""
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot read {shown(path)}: {reason(error)}") from None
    return _read(decoded(shown(path), data))


def parse_environment(text: str, name: str = "environment") -> Environment:
    """The environment that a file's text says; `name` is the file's in sentences.

    >>> parse_environment("[delay]\\nwithin = '2ms'").network.delay
    Fixed(delay=0.002)
    """
    return _read(decoded(name, text.encode()))


def environment_of(given: str | Path | Environment) -> Environment:
    """An environment: itself, the file of this name, or what several lines of text say.

    >>> environment_of("[delay]\\nwithin = '2ms'").network.delay.bound
    0.002
    """
    if isinstance(given, Environment):
        return given
    if isinstance(given, str) and "\n" in given:
        return parse_environment(given)
    return read_environment(given)


# Reading


def _read(document: Document) -> Environment:
    reading = DocumentReader(document)
    _check_format(document)
    top = reading.section(())
    top.knows("format")
    members = top.count("members", 0, 1, MOST_MEMBERS) or None
    sites = _sites(reading)
    delay, held = _delay(reading, sites)
    loss, duplicate = _loss(reading, sites)
    pauses = _read_table(reading, "pauses", _pauses)
    crashes = _read_table(reading, "crashes", _crashes)
    outages = _read_table(reading, "outages", _outages)
    drift = _read_table(reading, "clocks", lambda t: t.parsed("drift", parse_share, 0.0))
    ip = _read_table(reading, "wire", _ip)
    for table in ("sites", "delay", "loss", "pauses", "crashes", "outages", "clocks", "wire"):
        top.knows(table)
    top.end()
    reading.judge()
    assert delay is not None
    assert loss is not None
    try:
        return Environment(
            network=Network(delay=delay, loss=loss, duplicate=duplicate, **held),
            members=members,
            sites=sites,
            pauses=pauses,
            crashes=crashes,
            outages=outages,
            drift=drift or 0.0,
            header=HEADERS[ip or 4],
        )
    except BadInput as error:
        raise BadInput(f"{document.where}: {error}") from None


def _check_format(document: Document) -> None:
    """Refuse a file of a later version at once: its keys may mean something else."""
    given = document.data.get("format", FORMAT)
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        rule = f"must be a whole number, at most {FORMAT}"
        raise BadInput(f"{document.place(('format',))} {rule}, not {quoted(given)}")
    if given > FORMAT:
        raise BadInput(
            f"{document.place(('format',))} is {given}, and this version of hustings reads "
            f"environments up to format {FORMAT}: upgrade hustings"
        )


def _read_table(reading: DocumentReader, name: str, read: Callable[[Section], T]) -> T | None:
    """The value of a table, or None if there is no such table."""
    assert reading.document is not None
    if name not in reading.document.data:
        return None
    table = reading.section((name,))
    before = len(reading.wrong)
    value = None
    try:
        value = read(table)
    except BadInput as error:
        if len(reading.wrong) == before:  # otherwise it is about a value that stands for another
            reading.complain((name,), str(error), ": ")
    table.end()
    return value


def _sites(reading: DocumentReader) -> Sites | None:
    table = reading.section(("sites",))
    if not table.names:
        return None
    if len(table.names) > MOST_SITES:
        reading.complain(("sites",), f"has {len(table.names)} sites, at most {MOST_SITES} may be")
        return None
    before = len(reading.wrong)
    for name in table.names:
        if re.fullmatch(SITE, name) is None:
            reading.complain(("sites", name), "is no name: write a letter, then letters and digits")
    sizes = tuple(table.count(name, 1, 1, MOST_MEMBERS) for name in table.names)
    if len(reading.wrong) > before:
        return None
    try:
        return Sites(table.names, sizes)
    except BadInput as error:
        reading.complain(("sites",), str(error), ": ")
        return None


def _delay(reading: DocumentReader, sites: Sites | None) -> tuple[Delay | None, dict[str, Any]]:
    """The law of delays, and how messages overtake each other."""
    table = reading.section(("delay",))
    within = table.parsed("within", parse_law, None)
    if "within" not in table.names:
        reading.complain(
            ("delay", "within"), 'is missing: write how long a message takes, as "2ms"'
        )
    between = _between(reading, table, "delay", sites, parse_law)
    held: dict[str, Any] = {
        "reorder": table.parsed("reorder", parse_share, 0.0),
        "hold_back": table.duration("hold-back", 0.0) or 0.0,
        "fifo": table.flag("fifo"),
    }
    table.end()
    if within is None or sites is None:
        return within, held
    pairs = [(a, b) for a in range(len(sites.names)) for b in range(len(sites.names)) if a != b]
    missing = [pair for pair in pairs if pair not in between]
    if not missing:
        return SiteDelay(sites, within, between), held
    if not reading.wrong:  # otherwise it may be misspelt, and that has been said
        one, other = (sites.names[site] for site in missing[0])
        reading.complain(
            ("delay", "between", f"{one}>{other}"), "is missing: each pair needs a law"
        )
    return None, held


def _loss(reading: DocumentReader, sites: Sites | None) -> tuple[Loss | None, float]:
    """The model of loss, and the share of messages that arrive twice."""
    before = len(reading.wrong)
    table = reading.section(("loss",))
    duplicate = table.parsed("duplicate", parse_share, 0.0)
    loss: Loss | None = None
    try:
        loss = _model(table)
    except BadInput as error:
        reading.complain(("loss",), str(error), ": ")
    given = loss or NoLoss()
    between = _between(
        reading, table, "loss", sites, lambda value: _link_loss(reading, given, value)
    )
    table.end()
    if loss is None or sites is None or not between or len(reading.wrong) > before:
        return loss, duplicate
    try:
        return SiteLoss.of(sites, loss, between), duplicate
    except BadInput as error:
        reading.complain(("loss",), str(error), ": ")
        return None, duplicate


def _model(table: Section) -> Loss:
    rate = table.parsed("rate", parse_share, 0.0)
    collision = table.parsed("collision", parse_share, 0.0)
    model = table.text("model")
    settings = {key: str(value) for key, value in table.plain("settings").items()}
    burst = table.parsed("burst", _burst_length, None)
    bad = table.parsed("bad", parse_share, 1.0)
    if burst is not None:
        if model is not None or settings or collision:
            raise BadInput("burst goes with no model, settings or collision: drop one of them")
        return Burst(rate, burst, bad)
    if "bad" in table.names:
        raise BadInput("bad goes with burst")
    if model is not None:
        return find_loss(model).parse(rate, collision, settings)
    if settings:
        raise BadInput("settings are those of a model: say which")
    return Uncorrelated(rate, collision) if rate or collision else NoLoss()


def _link_loss(reading: DocumentReader, within: Loss, value: object) -> Loss:
    """A loss between two sites: a share by the model within sites, or a table of its own."""
    if not isinstance(value, dict):
        return within.with_p(parse_share(value))
    inner = DocumentReader(None)
    table = Section(inner, (), value)
    loss = _model(table)
    table.end()
    inner.judge()
    return loss


def _burst_length(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1.0 <= value < inf:
        raise BadInput(f"{quoted(value)} is no mean length of a burst: write messages, as 5")
    return float(value)


def _between(
    reading: DocumentReader,
    table: Section,
    name: str,
    sites: Sites | None,
    parse: Callable[[object], T],
) -> dict[Pair, T]:
    """A value for each pair of sites."""
    found: dict[Pair, T] = {}
    entries: Mapping[str, Found] = table.entries("between") if "between" in table.names else {}
    table.knows("between")
    if entries and sites is None:
        if "sites" not in reading.section(()).names:
            reading.complain((name, "between"), "goes with sites, and there are none")
        return found
    for key, (place, value, _) in entries.items():
        assert sites is not None
        try:
            parsed = parse(value)
            pairs = parse_pair(sites, key)
        except BadInput as error:
            reading.complain(place, str(error), ": ")
            continue
        for pair in pairs:
            if pair in found:
                reading.complain(place, "says again what another key says")
            found[pair] = parsed
    return found


def _pauses(table: Section) -> Pauses:
    rate, length = _rate_and_law(table, "length")
    longest = table.duration("longest", inf)
    return Pauses(rate, length, inf if longest is None else longest)


def _crashes(table: Section) -> Crashes:
    return Crashes(*_rate_and_law(table, "back"))


def _outages(table: Section) -> Outages:
    kind = table.one_of("kind", KINDS, CUT)
    return Outages(*_rate_and_law(table, "lasts"), kind)


def _rate_and_law(table: Section, key: str) -> tuple[float, Delay]:
    """How often something happens, and how long it takes; both must be there."""
    rate = table.parsed("rate", parse_rate, 1.0)
    otherwise: Delay = Fixed()
    law = table.parsed(key, parse_law, otherwise)
    for needed, example in (("rate", "1/day"), (key, "30s")):
        if needed not in table.names:
            raise BadInput(f'{needed} is missing: write {needed} = "{example}"')
    return rate, law


def _ip(table: Section) -> int:
    ip = table.count("ip", 4, 4, 6)
    if ip not in HEADERS:
        raise BadInput("ip must be 4 or 6")
    return ip


def _check_rate(what: str, rate: float) -> None:
    """Refuse a rate at which time would hardly advance between two of them."""
    if not 0.0 < rate <= MOST_RATE:
        raise BadInput(
            f"the rate of {what} must be > 0 and at most {MOST_RATE:g}/s, not {rate:g}/s"
        )


# Writing

Tables = list[tuple[str, dict[str, str]]]


def _written_delay(environment: Environment) -> Tables:
    network = environment.network
    delay = network.delay
    lines = {"within": _quoted(write_law(_within(delay)))}
    if network.reorder:
        lines["reorder"] = _quoted(write_share(network.reorder))
        lines["hold-back"] = _quoted(write_duration(network.hold_back))
    if network.fifo:
        lines["fifo"] = "true"
    tables = [("delay", lines)]
    if isinstance(delay, SiteDelay):
        laws = {pair: _quoted(write_law(law)) for pair, law in delay.between.items()}
        tables.append(("delay.between", _written_pairs(delay.sites, laws)))
    return tables


def _within(delay: Delay) -> Delay:
    return delay.within if isinstance(delay, SiteDelay) else delay


def _written_loss(environment: Environment) -> Tables:
    loss = environment.network.loss
    within = loss.within if isinstance(loss, SiteLoss) else loss
    lines = _written_model(within)
    if environment.network.duplicate:
        lines["duplicate"] = _quoted(write_share(environment.network.duplicate))
    tables = [("loss", lines)] if lines else []
    if isinstance(loss, SiteLoss):
        texts = {pair: _written_link_loss(within, each) for pair, each in loss.between.items()}
        tables.append(("loss.between", _written_pairs(loss.sites, texts)))
    return tables


def _written_model(loss: Loss) -> dict[str, str]:
    """The keys that say which loss this is."""
    if isinstance(loss, NoLoss):
        return {}
    lines = {"rate": _quoted(write_share(loss.p))}
    if isinstance(loss, Burst):
        lines["burst"] = repr(loss.length)
        return lines if loss.bad == 1.0 else {**lines, "bad": _quoted(write_share(loss.bad))}
    if isinstance(loss, Coins) and loss.collision:
        lines["collision"] = _quoted(write_share(loss.collision))
    if not isinstance(loss, Uncorrelated) or not (loss.p or loss.collision):
        lines["model"] = _quoted(
            loss.name if type(loss) in LOSSES.values() else place_of(type(loss))
        )
    own = [each.name for each in fields(loss) if each.name not in ("p", "collision")]
    if own:
        settings = ", ".join(f"{name} = {getattr(loss, name)!r}" for name in own)
        lines["settings"] = f"{{ {settings} }}"
    return lines


def _written_link_loss(within: Loss, loss: Loss) -> str:
    with suppress(BadInput):  # bursts of this length may not lose as much
        if within.with_p(loss.p) == loss:
            return _quoted(write_share(loss.p))
    keys = _written_model(loss)
    return "{ " + ", ".join(f"{key} = {value}" for key, value in keys.items()) + " }"


def _written_pauses(pauses: Pauses) -> dict[str, str]:
    lines = {"rate": write_rate(pauses.rate), "length": write_law(pauses.length)}
    if pauses.longest < inf:
        lines["longest"] = write_duration(pauses.longest)
    return _texts(lines)


def _written_pairs(sites: Sites, texts: Mapping[Pair, str]) -> dict[str, str]:
    """One line for both directions where they are alike."""
    lines: dict[str, str] = {}
    for (one, other), text in texts.items():
        a, b = sites.names[one], sites.names[other]
        if texts.get((other, one)) != text:
            lines[_quoted(f"{a}>{b}")] = text
        elif one <= other:
            lines[_quoted(f"{a},{b}")] = text
    return lines


def _texts(lines: Mapping[str, str]) -> dict[str, str]:
    return {key: _quoted(text) for key, text in lines.items()}


def _quoted(text: str) -> str:
    """A text as TOML has it: as in JSON, but without halves of characters."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    """A key as TOML has it: quoted, where it is more than ASCII letters."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _table(name: str, lines: Mapping[str, str]) -> str:
    head = f"[{name}]\n" if name else ""
    return head + "".join(f"{key} = {value}\n" for key, value in lines.items())
