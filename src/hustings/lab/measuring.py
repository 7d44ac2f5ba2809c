"""`measure`: an environment file from a live group, by an observer that asks its members.

    from hustings import lab

    found = lab.measure("billing", seconds="5m")
    found.environment, found.missing, found.to_toml()

The observer finds the group as members find each other: on this machine without more, elsewhere by
seeds and a key. It first asks how the group is configured, so that nobody need say it again. It
needs no root. It takes no part in elections.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Any, TypeVar

from hustings.core.durations import parse_duration, show_duration
from hustings.core.errors import BadInput, UnknownName
from hustings.core.names import member_id
from hustings.joining import PORT, PROTOCOL, join
from hustings.lab.surveys.asking import RATE, SiteOf, Survey, SurveyProgress
from hustings.lab.surveys.describing import EnvironmentReport, NothingMeasured, describe
from hustings.lab.tables import Table
from hustings.net.addresses import Address, parse_address, parse_seed, permit
from hustings.net.agreed_config import ConfigQuestion, label_of
from hustings.net.clock import sleep
from hustings.net.control_messages import ConfigMsg
from hustings.net.keys import Key, ring_of
from hustings.net.local_members import LocalMembers, reachable
from hustings.net.member import Member
from hustings.net.storage import incarnation_by_clock
from hustings.net.transport import Endpoint
from hustings.net.udp import open_udp, resolve, source_to
from hustings.net.wire import ANY, Wire, WireCodec, check_label
from hustings.protocols.registry import find
from hustings.sim.environment import Environment

if TYPE_CHECKING:
    from hustings.net.keys import KeyLike
    from hustings.net.seal import KeyRing

T = TypeVar("T")
Network = IPv4Network | IPv6Network

LEAST, MOST = 5.0, 30 * 86_400.0  # seconds of a survey
MOST_RATE = 5.0  # trains a second on each way: an echo tells of the last 62 probes
_FIND = 3.0  # seconds for a member to tell its configuration
_MEET = 3.0  # seconds for members to be in view, at most
_ASKED = 8  # members that are asked for their configuration
_SITE = "site"  # the attribute that says a member's site by number
_INSTANT = 1024  # incarnations in a millisecond


@dataclass(frozen=True, slots=True)
class MeasuredGroup(Table):
    """What a survey has found."""

    group: str
    description: EnvironmentReport
    command: str = ""  # "" where a key is no file that a command line could name

    @property
    def environment(self) -> Environment:
        """The group's environment, as other commands take it."""
        return self.description.environment

    @property
    def missing(self) -> list[str]:
        """What could not be measured, and why."""
        return self.description.missing

    @property
    def stopped(self) -> bool:
        """Whether the survey ended before its time."""
        return self.description.stopped

    def to_toml(self) -> str:
        """The environment file, with a comment at each number."""
        return self.description.to_toml(self.group)

    def rows(self) -> list[dict[str, object]]:
        """One row for each number: what, unit, value, low, high, samples."""
        return self.description.rows

    def to_json(self) -> dict[str, object]:
        """The same for scripts."""
        made = self.description
        return {
            "group": self.group,
            "seconds": made.seconds,
            "stopped": made.stopped,
            "measured": made.rows,
            "missing": made.missing,
            "environment": self.to_toml(),
        }


@dataclass(frozen=True, slots=True)
class SurveyTarget:
    """How the observer finds and joins the group."""

    name: str
    seeds: tuple[Address, ...]
    bind: Address
    ring: KeyRing | None
    protocol: str | None
    joining: Mapping[str, Any]  # arguments of `join`


def measure(
    group: str,
    *,
    seeds: Sequence[str] = (),
    seconds: str | float = "60s",
    sites: Mapping[str, Sequence[str]] | None = None,
    key: KeyLike | Sequence[KeyLike] | None = None,
    insecure: bool = False,
    bind: str | None = None,
    protocol: str | None = None,
    rate: float = RATE,
    tell: Callable[[SurveyProgress], None] = lambda reached: None,
) -> MeasuredGroup:
    """Measure a live group for some time; Ctrl-C ends it early, with what there is by then.

    `sites` gives the networks of each site, as `{"a": ["10.1.0.0/16"]}`. Otherwise a member's
    attribute `site` says its number, if members have one. `rate` is the number of trains of probes
    that each measured way gets in a second. Members without a name of ours for their `protocol`
    need it said. `NothingMeasured` is raised if nobody answers.
    """
    wanted = parse_duration(seconds, "the time to measure")
    if not LEAST <= wanted <= MOST:
        raise BadInput(f"the time to measure must be from {LEAST:g} s to 30 days")
    if not 0.1 <= rate <= MOST_RATE:
        raise BadInput(f"rate must be from 0.1 to {MOST_RATE:g} trains a second, not {rate:g}")
    site_of = sites_by(sites or {})
    found = _group(group, seeds, bind, key, insecure, protocol)
    measured = _running(_measured(found, wanted, rate, site_of, bool(sites), tell))
    words = ["hustings", "measure", *(seeds or (group,)), *(["--group", group] if seeds else [])]
    words += ["--for", show_duration(wanted), *_site_words(sites or {})]
    for option, value in (("--bind", bind), ("--protocol", protocol)):
        words += [] if value is None else [option, value]
    words += ["--insecure"] if insecure else []
    words += [] if rate == RATE else ["--rate", f"{rate:g}"]
    keys = _key_words(key)
    return replace(measured, command="" if keys is None else shlex.join([*words, *keys]))


def _site_words(sites: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for name, networks in sites.items():
        for network in networks:
            yield from ("--site", f"{name}={network}")


def _key_words(key: KeyLike | Sequence[KeyLike] | None) -> list[str] | None:
    """The files of the keys as options; None if a key is given as itself."""
    if key is None:
        return []
    words: list[str] = []
    for each in [key] if isinstance(key, Key | str | os.PathLike) else key:
        if not isinstance(each, str | os.PathLike):
            return None
        words += ["--key", str(each)]
    return words


def _group(
    group: str,
    seeds: Sequence[str],
    bind: str | None,
    key: KeyLike | Sequence[KeyLike] | None,
    insecure: bool,
    protocol: str | None,
) -> SurveyTarget:
    check_label("group", group)
    addresses = tuple(parse_seed(each, PORT) for each in seeds)
    if protocol is not None:
        find(protocol)
    given = f"{_own_host(addresses)}:0" if bind is None else bind
    at = parse_address(given, "bind address", 0)
    ring = ring_of(key, at, insecure)
    permit(at, ring is not None, insecure)
    joining = {"seeds": list(seeds), "bind": given, "key": key, "insecure": insecure}
    return SurveyTarget(group, addresses, at, ring, protocol, joining)


def _own_host(seeds: Sequence[Address]) -> str:
    """The address of this machine from which the seeds are reached."""
    for seed in seeds:
        number = seed.host if seed.ip is not None else _running(_number(seed))
        host = source_to(number) if number else None
        if host is not None:
            return f"[{host}]" if ":" in host else host
    return "127.0.0.1"


async def _number(seed: Address) -> str:
    found = await resolve(seed)
    return found[0][0] if found else ""


def sites_by(networks: Mapping[str, Sequence[str]]) -> SiteOf:
    """The site of a member by its address, or by its attribute if no networks are given.

    >>> sites_by({"a": ["10.1.0.0/16"]})("10.1.2.3:7400", {}), sites_by({})("x", {"site": 2.0})
    ('a', 'site2')
    """
    known: list[tuple[Network, str]] = []
    for name, texts in networks.items():
        for text in texts:
            try:
                known.append((ip_network(text, strict=False), name))
            except ValueError:
                raise BadInput(
                    f"site {name}={text} is not understood: write NAME=ADDRESS/PREFIX, as "
                    "a=10.1.0.0/16"
                ) from None
    known.sort(key=lambda pair: -pair[0].prefixlen)

    def site_of(address: str, attributes: Mapping[str, float]) -> str:
        if not known:
            number = attributes.get(_SITE)
            return "" if number is None else f"site{number:g}".replace(".", "_")
        with suppress(ValueError):
            host = ip_address(address.rpartition(":")[0].strip("[]").partition("%")[0])
            for network, name in known:
                if host in network:
                    return name
        return ""

    return site_of


# On an event loop


def _running(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine, also where a loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(main)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, main).result()


async def _measured(
    group: SurveyTarget,
    seconds: float,
    rate: float,
    site_of: SiteOf,
    placed: bool,
    tell: Callable[[SurveyProgress], None],
) -> MeasuredGroup:
    protocol, guard = await _configured(group)
    opening = join(
        group.name, name=_name(), protocol=protocol, observer=True, expect=1, **group.joining
    )
    if guard:
        opening.observe_guarded(guard)
    async with opening as member:
        await _met(member)
        if placed:
            _check_sites(member, site_of)
        survey = Survey(member, seconds, rate=rate, site_of=site_of, tell=tell)
        with _interruptible(survey):
            return MeasuredGroup(group.name, describe(await survey.run()))


def _name() -> str:
    return f"measure-{os.getpid()}-{os.urandom(2).hex()}"


async def _configured(group: SurveyTarget) -> tuple[str, str]:
    """The group's protocol and the kind of its guard, as a member tells them."""
    local = LocalMembers(group.name, _name(), lambda: () if group.ring is None else group.ring.ids)
    transport = await open_udp(group.bind)
    try:
        codec = WireCodec(label_of("any", "", ANY), (ConfigMsg,))
        me, incarnation = member_id(_name()), incarnation_by_clock(time.time()) * _INSTANT
        question = ConfigQuestion(transport, Wire(group.name, me, incarnation, codec, group.ring))
        seeds = [there for each in group.seeds for there in await resolve(each)]
        if not seeds and not _local(local, group.bind):
            where = "at the seeds" if group.seeds else "of this user on this machine"
            raise NothingMeasured(
                f"no member of group {group.name!r} was found {where}: is it up, and is this the "
                "same user? Members on other machines are found by their addresses"
            )
        fields = await question.answer(lambda: [*seeds, *_local(local, group.bind)][:_ASKED], _FIND)
    finally:
        await transport.close()
        local.close()
    if fields is None:
        key = "no key" if group.ring is None else "this key"
        raise NothingMeasured(
            f"no member of group {group.name!r} answers with {key}: give the group's own name and "
            "key, and the address of a member that is up"
        )
    return _protocol(group, fields.get("protocol", PROTOCOL)), fields.get("guard", "")


def _protocol(group: SurveyTarget, told: str) -> str:
    if group.protocol is not None:
        return group.protocol
    try:
        find(told)
    except UnknownName:
        raise BadInput(
            f"group {group.name!r} runs protocol {ascii(told)[1:-1][:64]}, which is none of ours: "
            "name its class with --protocol file.py:Class"
        ) from None
    return told


def _local(local: LocalMembers, bind: Address) -> list[Endpoint]:
    """The members of the group on this machine that this process reaches."""
    found = [each for each in local.look() if each is not None and local.shares_key(each)]
    return [
        (host, each.port)
        for each in found
        if local.on_this_network(each)
        and not each.observer
        and (host := reachable(bind.host, each.host)) is not None
    ]


async def _met(member: Member) -> None:
    """Wait until somebody is in view, and for a moment after that."""
    waited = 0.0
    while waited < _MEET and not any(not (each.me or each.observer) for each in member.members()):
        await sleep(0.1)
        waited += 0.1
    await sleep(0.5)


def _check_sites(member: Member, site_of: SiteOf) -> None:
    """Refuse sites that leave a member out before anything is measured."""
    for each in member.members():
        if not (each.me or each.observer) and not site_of(each.address, each.attributes):
            raise BadInput(
                f"member {each.name} at {each.address} is at none of the sites: give a network "
                "for it, too"
            )


@contextmanager
def _interruptible(survey: Survey) -> Iterator[None]:
    """Ctrl-C ends the survey early; a second one ends the process as usual."""
    loop = asyncio.get_running_loop()
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def stop() -> None:
        survey.stop.set()
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)

    loop.add_signal_handler(signal.SIGINT, stop)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
