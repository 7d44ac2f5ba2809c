"""Names of members and of attributes: one rule for names given here and for names that arrive.

A name that breaks the rule never reaches a log, a terminal or a page. Line ends and escapes could
write any text there, and two names that look the same could be two members.
"""

from __future__ import annotations

import re

from hustings.core.digests import blake2b

LONGEST_NAME = 64  # characters
PROJECT = "~"  # attributes with this prefix are the project's own

_MEMBER = re.compile(r"[A-Za-z0-9._-]{1,64}")


def is_member_name(text: str) -> bool:
    """Whether a member may have this name.

    >>> is_member_name("web-1"), is_member_name("web 1"), is_member_name("web-1\\n")
    (True, False, False)
    """
    return _MEMBER.fullmatch(text) is not None


def is_attribute_name(text: str) -> bool:
    """Whether an attribute may be called so: printable text, written in one way only.

    Control characters, line ends of all kinds and marks that turn the direction of writing are not
    printable. Where an accent can be a character of its own or a part of one, it is a part (NFC).

    >>> [is_attribute_name(text) for text in ("cpu load", "cpu\\x1b[2J", "\\u202ecpu")]
    [True, False, False]
    >>> is_attribute_name("dur\\u00e9e"), is_attribute_name("dure\\u0301e")
    (True, False)
    """
    if not 0 < len(text) <= LONGEST_NAME or not text.isprintable() or text != text.strip():
        return False
    if text.isascii():
        return True
    from unicodedata import is_normalized  # noqa: PLC0415 (memory: a megabyte that few need)

    return is_normalized("NFC", text)


def member_id(name: str) -> int:
    """The number that stands for a member's name.

    >>> member_id("web-1") == member_id("web-1") != member_id("web-2")
    True
    """
    digest = blake2b(name.encode(), digest_size=8, person=b"hustings member").digest()
    return int.from_bytes(digest, "big") >> 2
