"""blake2b, and a comparison that takes the same time for all values, without OpenSSL.

`hashlib` and `hmac` take both from the same places. But they also load all of OpenSSL's algorithms:
0.7 MB of every member's memory, for digests that hustings never uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    from _blake2 import blake2b
except ImportError:  # an interpreter that has it elsewhere
    from hashlib import blake2b

if TYPE_CHECKING:
    from hmac import compare_digest
else:
    try:
        from _operator import _compare_digest as compare_digest
    except ImportError:
        from hmac import compare_digest

__all__ = ["blake2b", "compare_digest"]
