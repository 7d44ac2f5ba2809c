"""From `etcd://127.0.0.1:2379/billing` to a guard: which module serves which scheme.

Third parties add schemes with the entry point group `hustings.guards`. The name is the scheme. The
object is called with a `GuardUrl` and a group's name, and returns a `Guard`.
"""

from __future__ import annotations

import math
import ssl
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from hustings.core.errors import BadInput, UnknownName
from hustings.extras import install_command
from hustings.guard.base import Guard
from hustings.guard.passwords import PASSWORD_OPTIONS, WITHOUT_PASSWORD, with_password
from hustings.guard.registry import BY_SCHEME, VOTERS

GROUP = "hustings.guards"

Maker = Callable[["GuardUrl", str], Guard]


class GuardUrl(NamedTuple):
    """A guard's address, parsed."""

    text: str  # as given; may contain a password, so it is never shown
    scheme: str
    hosts: tuple[tuple[str, int | None], ...]
    user: str | None
    password: str | None
    path: str  # without the first slash
    options: Mapping[str, str]
    identity: str = ""  # the engine's identity, where members use different addresses

    def __repr__(self) -> str:
        return f"GuardUrl({self.shown!r})"  # no password, also in logs and tracebacks

    @property
    def shown(self) -> str:
        """The address without its password, for messages."""
        hosts = ",".join(_host(*each) for each in self.hosts)
        user = "" if self.user is None else f"{self.user}@"
        return f"{self.scheme}://{user}{hosts}" + (f"/{self.path}" if self.path else "")

    def addresses(self, port: int) -> list[tuple[str, int]]:
        """Hosts and ports. `port` is the default port, and this machine the default host."""
        hosts = self.hosts or (("127.0.0.1", None),)
        return [(host, port if given is None else given) for host, given in hosts]

    def only(self, *known: str) -> None:
        """Refuse options that this guard does not know."""
        more = () if self.scheme in WITHOUT_PASSWORD else PASSWORD_OPTIONS
        for name in self.options:
            if name not in known:
                raise UnknownName(f"option of {self.scheme}", name, (*known, *more))

    def number(self, name: str, default: float) -> float:
        """An option that is a number."""
        text = self.options.get(name)
        if text is None:
            return default
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and value >= 0):
            raise BadInput(f"option {name} of {self.scheme} must be a number, not {text!r}")
        return value


class NotInstalled(BadInput):
    """An engine's client is missing; the sentence says how to get it."""


def _host(name: str, port: int | None) -> str:
    shown = f"[{name}]" if ":" in name else name
    return shown if port is None else f"{shown}:{port}"


def parse_url(text: str) -> GuardUrl:
    """Parse an address: `scheme://user:password@host:port,host:port/path?option=value`.

    A password need not stand in it: see `passwords`.

    >>> parse_url("etcd://a:1,b/x?ttl=2").hosts
    (('a', 1), ('b', None))
    """
    scheme, colon, rest = text.partition("://")
    if not colon or not scheme:
        raise BadInput(
            "a guard is given by its address, as etcd://127.0.0.1:2379 or quorum://a,b,c"
        )
    if any(c.isspace() or not c.isprintable() for c in text):
        raise BadInput("a guard's address has no spaces or control characters")
    try:
        parts = urlsplit(f"//{rest}", allow_fragments=False)
        account, at, places = parts.netloc.rpartition("@")
        user, given, password = account.partition(":")
        hosts = tuple(_place(each) for each in places.split(",") if each)
        if "@" in parts.path or "@" in parts.query:
            raise ValueError("an @ stands after the hosts (in a password / is %2F, ? %3F, @ %40)")
        options = _options(parts.query)
    except ValueError as error:
        raise BadInput(f"guard address with scheme {scheme!r} is not understood: {error}") from None
    return GuardUrl(
        text=text,
        scheme=scheme.lower(),
        hosts=hosts,
        user=unquote(user) if at and user else None,
        password=unquote(password) if given else None,
        path=unquote(parts.path.lstrip("/")),
        identity=options.pop("identity", ""),
        options=options,
    )


def _options(query: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(query, strict_parsing=True, keep_blank_values=True)) if query else {}
    except ValueError:
        raise ValueError("what follows the ? must be name=value, with & between") from None


def _place(text: str) -> tuple[str, int | None]:
    """Split host and port. An error shows no part of the text, which may contain a password."""
    if text.startswith("["):
        host, bracket, tail = text[1:].partition("]")
        if not bracket or (tail and not tail.startswith(":")):
            raise ValueError("a host in brackets does not end as one")
        port = tail[1:]
    else:
        host, _, port = text.partition(":")
    if not host:
        raise ValueError("a host has no name (a password with / or @ in it is written as %2F, %40)")
    if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"the port of {host} is not a number from 1 to 65535")
    return host, int(port) if port else None


def make_guard(text: str, group: str) -> Guard:
    """The guard at this address, for one group; not opened yet."""
    url = with_password(parse_url(text))
    if not group:
        raise BadInput("a guard needs the name of a group, which is not empty")
    guard = _maker(url.scheme)(url, group)
    guard.group = group
    return guard


def schemes() -> list[str]:
    """All schemes that can be used here, built in and installed."""
    return sorted({*BY_SCHEME, *(each.name for each in entry_points(group=GROUP))})


def _maker(scheme: str) -> Maker:
    known = BY_SCHEME.get(scheme)
    if known is None:
        for each in entry_points(group=GROUP):
            if each.name == scheme:
                loaded: Maker = each.load()
                return loaded
        raise UnknownName("guard", scheme, [*schemes(), VOTERS.name])
    try:
        made: Maker = import_module(f"hustings.guard.{known.name}").make
    except ImportError as error:
        raise NotInstalled(
            f"guard {scheme} needs a client that is not installed ({error.name}): "
            f"{install_command(known.extra)}"
        ) from None
    return made


# Address options that several engines have

TIMEOUT_S = 2.0  # for one question and its answer, connecting included
NET_S = 5.0  # the longest time between two looks of an observer

SHORTEST_TTL_S = 0.01
LONGEST_TTL_S = 86400.0


def seconds(url: GuardUrl, name: str, default: float) -> float:
    """An option that is a positive time."""
    value = url.number(name, default)
    if not (math.isfinite(value) and value > 0):
        raise BadInput(f"option {name} of {url.scheme} must be a positive time, not {value:g}")
    return value


def one_of(url: GuardUrl, name: str, *known: str) -> str:
    """An option with fixed words; the first word is the default."""
    value = url.options.get(name, known[0])
    if value not in known:
        raise BadInput(
            f"option {name} of {url.scheme} must be one of {', '.join(known)}, not {value!r}"
        )
    return value


def check_bounds(ttl: float, engine: str) -> None:
    """Refuse a lease time that these engines cannot keep, or that is too long to wait for."""
    if not SHORTEST_TTL_S <= ttl <= LONGEST_TTL_S:
        raise BadInput(
            f"ttl of a lease in {engine} must lie between {SHORTEST_TTL_S:g} and "
            f"{LONGEST_TTL_S:g} seconds, not {ttl:g}"
        )


# TLS from options: `tls=yes`, and the files `ca`, `cert` and `key`

TLS_OPTIONS = ("tls", "ca", "cert", "key")


def client_tls(url: GuardUrl) -> ssl.SSLContext | None:
    """The TLS context for a server, or None for plain text. Certificates are always verified."""
    ca, cert, key = (url.options.get(each) for each in ("ca", "cert", "key"))
    if one_of(url, "tls", "no", "yes") == "no":
        if ca or cert or key:
            raise BadInput(f"options ca, cert and key of {url.scheme} need tls=yes")
        return None
    if key and not cert:
        raise BadInput(f"option key of {url.scheme} needs cert")
    try:
        context = ssl.create_default_context(cafile=ca)
        if cert is not None:
            context.load_cert_chain(cert, key)
    except OSError as error:
        raise BadInput(f"options ca, cert and key of {url.scheme}: {error}") from None
    return context
