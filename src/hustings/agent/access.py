"""Who may read from the agent over HTTP, and who may give orders.

Orders need the bearer token. Every client that reaches the port may read. Only this machine reaches
it, unless the agent is told to listen elsewhere; it does so only with a token. Without a token no
client can give orders.

The Host header of a request is checked too. Otherwise a web page whose name resolves to 127.0.0.1
(DNS rebinding) could read the agent's answers through the browser of a user who looks at the page:
to the browser both are one site. Such a request carries the page's name. A number cannot be
rebound, so every IP address is accepted. So are the names of this machine and those that the
configuration lists.
"""

from __future__ import annotations

import hmac
import re
import socket
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

from hustings.core.errors import BadInput
from hustings.net.addresses import Address
from hustings.net.files import read_whole, shown, why

SHORTEST, LONGEST = 16, 1024  # characters
_FORM = re.compile(r"[!-~]+")


class Token:
    """The secret text that orders need; `repr` does not show it.

    >>> token = Token("correct horse battery".replace(" ", "-"))
    >>> token.admits("Bearer correct-horse-battery"), token.admits("Bearer x"), token
    (True, False, Token())
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()

    def __repr__(self) -> str:
        return "Token()"

    def admits(self, authorization: str) -> bool:
        """Whether a header of this content carries the token; the check takes constant time."""
        scheme, _, given = authorization.partition(" ")
        same = hmac.compare_digest(given.strip().encode(), self._secret)
        return same and scheme.lower() == "bearer"


def read_token(file: Path | None, text: str | None, variable: str) -> str | None:
    """The token from a file, or else from the environment; None if there is none."""
    if file is None:
        return None if text is None else _checked(text, variable)
    where = f"token file {shown(file)}"
    try:
        data, mode = read_whole(file, LONGEST + 2)
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot read {where}: {why(error)}") from None
    if mode & 0o007:
        raise BadInput(
            f"{where} can be used by everybody (mode {mode:03o}): run chmod 600 {shown(file)}, "
            "and choose another token if somebody may have read this one"
        )
    return _checked(data.decode("ascii", errors="replace"), where)


def permit_http(bind: Address, token: bool) -> str | None:
    """Refuse with a sentence that HTTP listens there, or allow it, perhaps with a warning."""
    if bind.is_loopback:
        return None
    if not token:
        raise BadInput(
            f"HTTP on {bind} is open to others and there is no token for orders: give one with "
            "--token-file, or listen on 127.0.0.1"
        )
    return (
        f"HTTP on {bind} is open to others and not encrypted: everybody who reaches it can read "
        "who leads, and whoever listens on the way learns the token"
    )


def _checked(text: str, where: str) -> str:
    token = text.strip()
    if not SHORTEST <= len(token) <= LONGEST or _FORM.fullmatch(token) is None:
        raise BadInput(
            f"{where} must hold one word of {SHORTEST} to {LONGEST} printable ASCII characters"
        )
    return token


ANY = "*"
_HOST_FORM = re.compile(r"(\[[0-9a-f:.%a-z]+\]|[^\s:\[\]/@]+)(:[0-9]{0,5})?")
_LONGEST_HOST = 255


class Hosts:
    """The names of this agent.

    >>> hosts = Hosts(["web-1.internal"])
    >>> [hosts.admit(each) for each in ("127.0.0.1:7401", "[::1]", "web-1.internal", "evil.org")]
    [True, True, True, False]
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(_plain(name) for name in names)

    def admit(self, header: str | None) -> bool:
        """Whether a request with this Host header is for us; only HTTP/1.0 may have none."""
        if header is None or ANY in self._names:
            return True
        found = (
            _HOST_FORM.fullmatch(header.strip().lower()) if len(header) <= _LONGEST_HOST else None
        )
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
    """This machine's own names, whole and up to the first dot; no name server is asked."""
    name = socket.gethostname()
    return [name, name.partition(".")[0]]


def _plain(name: str) -> str:
    return name.lower().strip("[]").removesuffix(".")
