"""Who may give orders: the bearer token, and where HTTP may listen.

Reading is free to whoever reaches the port; only this machine does, unless the agent is told to
listen elsewhere, which it does only with a token. Without a token nobody can give orders.
"""

from __future__ import annotations

import hmac
import re
from pathlib import Path

from hustings.core.errors import BadInput
from hustings.net.addresses import Address
from hustings.net.files import read_whole, shown, why

SHORTEST, LONGEST = 16, 1024  # characters
_FORM = re.compile(r"[!-~]+")


class Token:
    """The word that goes with orders; it is not shown.

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
        """Whether a header of this content carries it; the time to say so tells nothing of it."""
        scheme, _, given = authorization.partition(" ")
        same = hmac.compare_digest(given.strip().encode(), self._secret)
        return same and scheme.lower() == "bearer"


def read_token(file: Path | None, text: str | None, variable: str) -> str | None:
    """The token of a file, or else of the environment; None if there is none."""
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
    """Whether HTTP may listen here: refused with a sentence, allowed, or with a warning."""
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
