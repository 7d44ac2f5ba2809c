"""The seal: ChaCha20-Poly1305 under keys that the members share.

    sealed = key id (4) | nonce (24) | ciphertext | tag (16)

Why no nonce repeats for a key: all members seal with the same key and none can ask the others which
nonces are taken, so nonces are drawn at random; and 96 bits, which the cipher takes, are too few
for that. So 192 bits are made, and keyed blake2b turns them into a key and a nonce for this one
frame. They are a keyed digest of 192 random bits and of the frame itself. Two frames share them
only if both are equal: after 2**64 frames, more than a group of thousands sends in a thousand
years, with probability below 2**-64. There is no counter to lose, so a restart, a restored disk and
a fork are safe. So is a machine that was restored from a snapshot and draws the same bits once
more: another frame has another nonce, and the same frame sealed twice is the same bytes.

What the seal promises: who holds no key can neither read nor make nor change a frame, nor pass one
off as another group's or another direction's. What it does not: members share keys, so a member can
speak in another's name; and frames can be replayed, which is `replay`'s business.
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
    """The keys that a member has: all of them open, one seals.

    Rotation without downtime, each step at all members before the next: `install` the new key,
    `use` it, `remove` the old one. In between, some members seal with the old key and some with
    the new one, and everybody reads both.
    """

    __slots__ = ("_keys", "_sealing")
    mode = SEALED

    def __init__(self, keys: Iterable[Key]) -> None:
        self._keys: dict[bytes, Key] = {}
        self._sealing: Key
        self.replace(keys)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all installed keys, in the order in which they came."""
        return tuple(key.id for key in self._keys.values())

    @property
    def in_use(self) -> str:
        """The id of the key that seals."""
        return self._sealing.id

    def install(self, key: Key) -> None:
        """From now on open what is sealed with it; one that is installed already is fine."""
        known = self._keys.get(key.mark)
        if known is not None and known != key:
            raise BadInput(f"two different keys have the id {key.id}: make another one")
        if known is None and len(self._keys) >= MOST_KEYS:
            raise BadInput(f"{MOST_KEYS} keys are installed: remove one that is not used any more")
        self._keys[key.mark] = key

    def use(self, key_id: str) -> None:
        """From now on seal with it."""
        self._sealing = self._find(key_id)

    def remove(self, key_id: str) -> None:
        """From now on refuse what is sealed with it."""
        key = self._find(key_id)
        if key == self._sealing:
            raise BadInput(f"key {key_id} is in use: use another one before removing it")
        del self._keys[key.mark]

    def replace(self, keys: Iterable[Key]) -> None:
        """Have exactly these, and seal with the first; all or, if one is refused, nothing."""
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
        """Sealed, together with what both sides know and the frame need not repeat."""
        key = self._sealing
        nonce = _fresh(key, plain, bound)
        cipher, short = _derive(key, nonce)
        return b"".join((key.mark, nonce, cipher.encrypt(short, plain, bound)))

    def open(self, sealed: bytes, bound: bytes) -> bytes | Reason:
        """What was sealed, or why that cannot be known."""
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
    """Found when the first key is used: a member without one need not carry it, 7 MB."""
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 (late on purpose)
    from cryptography.hazmat.primitives.ciphers import aead  # noqa: PLC0415 (late on purpose)

    return aead.ChaCha20Poly1305, InvalidTag


def _fresh(key: Key, plain: bytes, bound: bytes) -> bytes:
    """A nonce that no other frame has, even if the system's randomness repeats itself."""
    drawn = b"".join((os.urandom(NONCE), len(bound).to_bytes(4, "big"), bound, plain))
    return blake2b(drawn, key=key.secret, digest_size=NONCE, person=b"hustings nonce").digest()


def _derive(key: Key, nonce: bytes) -> tuple[ChaCha20Poly1305, bytes]:
    """The cipher and its nonce, for one frame only."""
    size = _CIPHER_KEY + _CIPHER_NONCE
    made = blake2b(nonce, key=key.secret, digest_size=size, person=b"hustings seal").digest()
    return _library()[0](made[:_CIPHER_KEY]), made[_CIPHER_KEY:]
