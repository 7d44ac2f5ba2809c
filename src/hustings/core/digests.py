"""blake2b without OpenSSL.

`hashlib` finds it in the same place, and asks OpenSSL for all that it can besides: 0.7 MB of every
member's memory, for digests that nobody here takes.
"""

from __future__ import annotations

try:
    from _blake2 import blake2b
except ImportError:  # an interpreter that keeps it elsewhere
    from hashlib import blake2b

__all__ = ["blake2b"]
