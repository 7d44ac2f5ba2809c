"""Where a guard's password comes from, so that no list of processes shows it.

    postgres://app@db/app?password_file=/etc/app/db.password
    redis://cache?password_env=CACHE_PASSWORD

Every address takes `password_file` or `password_env` instead of a password of its own. Without any
of them the conventions of the engine's own tools count: see `CONVENTIONS`. No message and no log
shows a password.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hustings.core.errors import BadInput
from hustings.net.files import read_whole, shown, why

if TYPE_CHECKING:
    from hustings.guard.urls import GuardUrl

PASSWORD_OPTIONS = ("password_file", "password_env")
WITHOUT_PASSWORD = ("memory", "quorum")
LONGEST = 16384  # bytes; some engines have long tokens

# Variables by scheme: (the variable, whether it names a file). The first that is set counts.
# PostgreSQL's client reads PGPASSWORD, PGPASSFILE and ~/.pgpass by itself, for each host.
CONVENTIONS: Mapping[str, tuple[tuple[str, bool], ...]] = {
    "consul": (("CONSUL_HTTP_TOKEN", False), ("CONSUL_HTTP_TOKEN_FILE", True)),
    "etcd": (("ETCDCTL_PASSWORD", False),),
    "etcds": (("ETCDCTL_PASSWORD", False),),
    "nats": (("NATS_PASSWORD", False),),
    "redis": (("REDISCLI_AUTH", False),),
    "rediss": (("REDISCLI_AUTH", False),),
    "valkey": (("VALKEYCLI_AUTH", False), ("REDISCLI_AUTH", False)),
}
NEEDS_USER = ("etcd", "etcds", "nats")  # there a password without a user means nothing


def with_password(url: GuardUrl) -> GuardUrl:
    """The address with its password, and without the options that named the password's place."""
    given = [name for name in PASSWORD_OPTIONS if name in url.options]
    if not given:
        return _by_convention(url)
    if url.scheme in WITHOUT_PASSWORD:
        raise BadInput(f"{url.scheme} takes no password: leave option {given[0]} out")
    if url.password is not None:
        given = ["the address itself", *given]
    if len(given) > 1:
        ways = " and by ".join(given)
        raise BadInput(f"a guard's password is given once, and {url.shown} gives it by {ways}")
    options = {name: value for name, value in url.options.items() if name not in PASSWORD_OPTIONS}
    (name,) = given
    what = f"option {name} of {url.scheme}"
    if name == "password_file":
        secret = from_file(url.options[name], what)
    else:
        secret = from_environment(url.options[name], what)
    return url._replace(password=secret, options=options)


def from_file(path: str, what: str) -> str:
    """The only line of a file that only its owner can read."""
    if not path:
        raise BadInput(f"{what} must be the name of a file, and is empty")
    where = f"password file {shown(path)}"
    try:
        data, mode = read_whole(path, LONGEST)
    except (OSError, ValueError) as error:
        raise BadInput(f"{what}: cannot read {where}: {why(error)}") from None
    if mode & 0o077:
        raise BadInput(
            f"{what}: {where} can be used by others than its owner (mode {mode:03o}): run chmod "
            f"600 {shown(path)}, and change the password if somebody may have read it"
        )
    if len(data) > LONGEST:
        raise BadInput(f"{what}: {where} is longer than {LONGEST} bytes")
    try:
        secret = data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise BadInput(f"{what}: {where} is not text in UTF-8") from None
    return _checked(secret, f"{what}: {where}")


def from_environment(name: str, what: str) -> str:
    """A variable's value."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise BadInput(f"{what} must be the name of an environment variable, not {name!r}")
    secret = os.environ.get(name)
    if secret is None:
        raise BadInput(f"{what}: there is no environment variable {name}")
    return _checked(secret, f"{what}: environment variable {name}")


def check_passfile() -> None:
    """Refuse a PGPASSFILE that the client would ignore with a warning."""
    path = os.environ.get("PGPASSFILE")
    if not path:
        return
    what = f"PGPASSFILE {shown(path)}"
    try:
        _, mode = read_whole(path, 0)
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot read {what}: {why(error)}") from None
    if mode & 0o077:
        raise BadInput(
            f"{what} can be used by others than its owner (mode {mode:03o}): run chmod 600 "
            f"{shown(path)}"
        )


def _by_convention(url: GuardUrl) -> GuardUrl:
    if url.password is not None or (url.user is None and url.scheme in NEEDS_USER):
        return url
    for name, is_file in CONVENTIONS.get(url.scheme, ()):
        value = os.environ.get(name)
        if value:
            secret = from_file(value, name) if is_file else _checked(value, name)
            return url._replace(password=secret)
    return url


def _checked(secret: str, where: str) -> str:
    """Check a secret. The error says what is wrong, and shows no part of the secret."""
    if not secret:
        raise BadInput(f"{where} holds no password: it is empty")
    if not secret.isprintable():
        raise BadInput(f"{where} must hold one line, without control characters")
    return secret
