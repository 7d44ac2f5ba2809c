"""Under which names this agent may be asked: the Host header of a request is checked.

A page of the web whose name resolves to 127.0.0.1 (DNS rebinding) could otherwise read the answers
of an agent through the browser of whoever looks at the page: to the browser both are one site. Such
a request carries the page's name. A number instead of a name cannot be rebound, so every IP address
is taken, and so are the names of this machine and those that the configuration lists.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import ip_address

ANY = "*"
_FORM = re.compile(r"(\[[0-9a-f:.%a-z]+\]|[^\s:\[\]/@]+)(:[0-9]{0,5})?")
_LONGEST = 255


class Hosts:
    """Names that are this agent's.

    >>> hosts = Hosts(["web-1.internal"])
    >>> [hosts.admit(each) for each in ("127.0.0.1:7401", "[::1]", "web-1.internal", "evil.org")]
    [True, True, True, False]
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(_plain(name) for name in names)

    def admit(self, header: str | None) -> bool:
        """Whether a request with this Host header is for us; only HTTP/1.0 may leave it out."""
        if header is None or ANY in self._names:
            return True
        found = _FORM.fullmatch(header.strip().lower()) if len(header) <= _LONGEST else None
        if found is None:
            return False
        name = _plain(found[1])
        if name in self._names or name == "localhost" or name.endswith(".localhost"):
            return True
        with suppress(ValueError):
            ip_address(name)
            return True
        return False


def own_names() -> list[str]:
    """What this machine calls itself, whole and up to the first dot; nobody is asked for it."""
    name = socket.gethostname()
    return [name, name.partition(".")[0]]


def _plain(name: str) -> str:
    return name.lower().strip("[]").removesuffix(".")
