"""A compiled function that does nothing: the time that numba itself takes for a first call."""

from __future__ import annotations

import numba


@numba.njit(cache=True)
def nothing(word: bool) -> bool:
    return word
