"""Keys: 32 secret bytes that all members of a group share, and the files that hold them.

A key's id is derived from its secret. So no person assigns ids, and a key cannot have two. A key
file is text and read strictly. It is refused if any user but its owner can read it. It has
these lines:

    hustings-key 1
    id 1a2b3c4d
    secret (64 hexadecimal digits)
    check (16 hexadecimal digits, of the lines above)
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from hustings.core.digests import blake2b
from hustings.core.errors import BadInput
from hustings.net.addresses import Address
from hustings.net.files import create, read_whole, shown, why

if TYPE_CHECKING:
    from pathlib import Path

    from hustings.net.seal import KeyRing

SECRET = 32  # bytes
ID = 4  # bytes
FORMAT = 1
_LONGEST_FILE = 4096

_FORM = re.compile(
    rb"hustings-key 1\nid ([0-9a-f]{8})\nsecret ([0-9a-f]{64})\ncheck ([0-9a-f]{16})\n"
)
_HEAD = re.compile(rb"hustings-key ([0-9]{1,9})\n")


@dataclass(frozen=True)
class Key:
    """One key; its secret is not shown."""

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) != SECRET:
            raise BadInput(f"a key has {SECRET} bytes, not {len(self.secret)}")

    @cached_property
    def mark(self) -> bytes:
        """The id as a frame carries it."""
        return blake2b(self.secret, digest_size=ID, person=b"hustings key id").digest()

    @property
    def id(self) -> str:
        """The id as people see it."""
        return self.mark.hex()

    def text(self) -> str:
        """The content of its file."""
        lines = f"hustings-key {FORMAT}\nid {self.id}\nsecret {self.secret.hex()}\n"
        return f"{lines}check {_check(lines.encode())}\n"


def new_key() -> Key:
    """A key from the system's randomness."""
    return Key(os.urandom(SECRET))


def parse_key(data: bytes, where: str) -> Key:
    """Read the key in a key file's content; an error names `where` it came from.

    >>> key = Key(bytes(32))
    >>> parse_key(key.text().encode(), "example") == key, key.id
    (True, 'adc719f7')
    """
    head = _HEAD.match(data)
    if head is None:
        raise BadInput(f"{where} is not a key file: hustings keygen --out FILE writes one")
    if int(head[1]) != FORMAT:
        raise BadInput(
            f"{where} is a key file of format {int(head[1])} and this hustings reads format "
            f"{FORMAT}: use the release that wrote it, or make a new key with hustings keygen"
        )
    form = _FORM.fullmatch(data)
    if form is None or form[3].decode() != _check(data[: form.start(3) - len("check ")]):
        raise BadInput(f"{where} is damaged: copy the key file again from another member")
    key = Key(bytes.fromhex(form[2].decode()))
    if form[1].decode() != key.id:
        raise BadInput(f"{where} is damaged: copy the key file again from another member")
    return key


def read_key(path: str | Path) -> Key:
    """The key in a file that only its owner can read."""
    where = f"key file {shown(path)}"
    try:
        data, mode = read_whole(path, _LONGEST_FILE)
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot read {where}: {why(error)}") from None
    if mode & 0o077:
        raise BadInput(
            f"{where} can be used by others than its owner (mode {mode:03o}): run chmod 600 "
            f"{shown(path)}, and make a new key if somebody may have read this one"
        )
    return parse_key(data, where)


def write_key(path: str | Path, key: Key) -> None:
    """Write a new key file for its owner only: whole or not at all, and never over another file."""
    try:
        create(path, key.text().encode())
    except FileExistsError:
        raise BadInput(
            f"{shown(path)} exists and a key that is overwritten is lost: choose another name, "
            "or move it away first"
        ) from None
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot write {shown(path)}: {why(error)}") from None


def _check(lines: bytes) -> str:
    return blake2b(lines, digest_size=8, person=b"hustings key").hexdigest()


if TYPE_CHECKING:
    KeyLike = Key | str | Path


def ring_of(
    key: KeyLike | Sequence[KeyLike] | None, bind: Address, insecure: bool
) -> KeyRing | None:
    """The keys of a member that listens there; None for a member without one, or one refused."""
    if keys := _given(key):
        from hustings.net.seal import KeyRing  # noqa: PLC0415 (memory: not all have a key)

        return KeyRing(keys)
    if insecure or not bind.is_loopback:
        return None
    from hustings.net.local_key import LocalRing, local_key  # noqa: PLC0415 (memory: as above)

    return LocalRing([local_key()])


def _given(key: KeyLike | Sequence[KeyLike] | None) -> tuple[Key, ...]:
    if key is None:
        return ()
    given = [key] if isinstance(key, Key | str | os.PathLike) else list(key)
    return tuple(each if isinstance(each, Key) else read_key(each) for each in given)
