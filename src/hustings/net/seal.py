"""The seal: ChaCha20-Poly1305 under keys that the members share.

    sealed = key id (4) | nonce (24) | ciphertext | tag (16)

Why no nonce repeats for a key. All members seal with the same key, and no member can ask the others
which nonces are taken. So nonces are drawn at random. The cipher takes 96 bits, which are too few
for random nonces. So the seal makes 192 bits, and keyed blake2b turns them into a key and a nonce
for this one frame. The 192 bits are a keyed digest of 192 random bits and of the frame itself. Two
frames share them only if both inputs are equal. After 2**64 frames, more than a group of thousands
sends in a thousand years, that has happened with probability below 2**-64.

There is no counter that could be lost. So a restart, a restored disk and a fork are safe. A machine
that was restored from a snapshot and draws the same bits again is safe too: another frame has
another nonce, and the same frame sealed twice gives the same bytes.

What the seal promises: a process without a key can neither read nor make nor change a frame. It
also cannot pass a frame off as another group's or another direction's. What the seal does not
promise: members share keys, so a member can speak in another's name. Frames can also be replayed:
`filter` handles that.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from hustings.core.digests import blake2b
from hustings.core.errors import BadInput, UnknownName
from hustings.net.keys import ID, Key
from hustings.net.limits import Reason
from hustings.net.wire import SEALED

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

NONCE = 24
TAG = 16
OVERHEAD = ID + NONCE + TAG
MOST_KEYS = 8
_CIPHER_KEY = 32
_CIPHER_NONCE = 12


class KeyRing:
    """The keys of a member: all of them open frames, and one seals.

    To rotate keys without downtime, do each step at all members before the next: `install` the new
    key, `use` it, `remove` the old one. In between, some members seal with the old key and some
    with the new one, and all members read both.
    """

    __slots__ = ("_keys", "_sealing")
    mode = SEALED

    def __init__(self, keys: Iterable[Key]) -> None:
        self._keys: dict[bytes, Key] = {}
        self._sealing: Key
        self.replace(keys)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all installed keys, in the order of installation."""
        return tuple(key.id for key in self._keys.values())

    @property
    def in_use(self) -> str:
        """The id of the key that seals."""
        return self._sealing.id

    def install(self, key: Key) -> None:
        """Open frames sealed with this key from now on; it may be installed already."""
        known = self._keys.get(key.mark)
        if known is not None and known != key:
            raise BadInput(f"two different keys have the id {key.id}: make another one")
        if known is None and len(self._keys) >= MOST_KEYS:
            raise BadInput(f"{MOST_KEYS} keys are installed: remove one that is not used any more")
        self._keys[key.mark] = key

    def use(self, key_id: str) -> None:
        """Seal with this key from now on."""
        self._sealing = self._find(key_id)

    def remove(self, key_id: str) -> None:
        """Refuse frames sealed with this key from now on."""
        key = self._find(key_id)
        if key == self._sealing:
            raise BadInput(f"key {key_id} is in use: use another one before removing it")
        del self._keys[key.mark]

    def replace(self, keys: Iterable[Key]) -> None:
        """Install exactly these keys, seal with the first; if one is refused, nothing changes."""
        fresh = list(keys)
        if not fresh:
            raise BadInput("a key ring needs at least one key")
        before = dict(self._keys)
        self._keys = {}
        try:
            for key in fresh:
                self.install(key)
        except BadInput:
            self._keys = before
            raise
        self._sealing = fresh[0]

    def seal(self, plain: bytes, bound: bytes) -> bytes:
        """Seal a text, and bind to it what both sides know and the frame does not repeat."""
        key = self._sealing
        nonce = _fresh(key, plain, bound)
        cipher, short = _derive(key, nonce)
        return b"".join((key.mark, nonce, cipher.encrypt(short, plain, bound)))

    def open(self, sealed: bytes, bound: bytes) -> bytes | Reason:
        """The sealed text, or the reason why it cannot be read."""
        if len(sealed) < OVERHEAD:
            return Reason.BAD_SEAL
        key = self._keys.get(sealed[:ID])
        if key is None:
            return Reason.UNKNOWN_KEY
        cipher, short = _derive(key, sealed[ID : ID + NONCE])
        try:
            return cipher.decrypt(short, sealed[ID + NONCE :], bound)
        except _library()[1]:
            return Reason.BAD_SEAL

    def _find(self, key_id: str) -> Key:
        for key in self._keys.values():
            if key.id == key_id:
                return key
        raise UnknownName("key", key_id, self.ids)


@cache
def _library() -> tuple[type[ChaCha20Poly1305], type[Exception]]:
    """Load the library when the first key is used: a member without a key saves its 7 MB."""
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 (late on purpose)
    from cryptography.hazmat.primitives.ciphers import aead  # noqa: PLC0415 (late on purpose)

    return aead.ChaCha20Poly1305, InvalidTag


def _fresh(key: Key, plain: bytes, bound: bytes) -> bytes:
    """A nonce that no other frame has, even if the system's random numbers repeat."""
    drawn = b"".join((os.urandom(NONCE), len(bound).to_bytes(4, "big"), bound, plain))
    return blake2b(drawn, key=key.secret, digest_size=NONCE, person=b"hustings nonce").digest()


def _derive(key: Key, nonce: bytes) -> tuple[ChaCha20Poly1305, bytes]:
    """The cipher and its nonce, for one frame only."""
    size = _CIPHER_KEY + _CIPHER_NONCE
    made = blake2b(nonce, key=key.secret, digest_size=size, person=b"hustings seal").digest()
    return _library()[0](made[:_CIPHER_KEY]), made[_CIPHER_KEY:]
