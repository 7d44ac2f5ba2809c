"""Compilation: one decorator for all kernels.

A compiled kernel is kept on disk and read from there the next time. Kernels call functions of other
files, which numba does not check when it decides whether a stored kernel is stale. So the folder is
named after all sources of this package, and a change to any of them gives an empty folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from hustings.core.errors import BadInput
from hustings.extras import install_command

try:
    import numba
    from numba.extending import intrinsic
except ModuleNotFoundError as missing:
    if missing.name is None or missing.name.partition(".")[0] not in ("numba", "llvmlite", "numpy"):
        raise
    raise BadInput(f"the fast engine needs numba: {install_command('fast')}") from None

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function at its first call; it holds no lock while it runs."""
    return _made(function, forceinline=False)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that becomes part of its callers.

    A call with tables counts references to each of them, which often costs more than the body.
    """
    return _made(function, forceinline=True)


def _made(function: Callable[P, R], *, forceinline: bool) -> Callable[P, R]:
    config: Any = numba.config  # its names are made when it is imported
    before = config.CACHE_DIR  # read when a function is decorated; ours until then
    config.CACHE_DIR = str(_folder())
    try:
        made = numba.njit(cache=True, nogil=True, forceinline=forceinline)(function)
    finally:
        config.CACHE_DIR = before
    return cast("Callable[P, R]", made)


@intrinsic
def _borrowed(_typing: Any, array: Any) -> Any:
    """Return the same table without its owner, for as long as the caller keeps it.

    References to it are not counted then, neither here nor in what is inlined.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table = context.make_array(signature.args[0])(context, builder, arguments[0])
        table.meminfo = table.meminfo.type(None)
        return table._getvalue()

    return array(array), generate


def _as_it_is(table: A) -> A:
    return table


# Under NUMBA_DISABLE_JIT kernels are plain Python, for a debugger and for `make mutants`.
PLAIN = bool(cast("Any", numba.config).DISABLE_JIT)
borrowed = _as_it_is if PLAIN else cast("Callable[[A], A]", _borrowed)


@cache
def _folder() -> Path:
    """Return a folder beside the sources, or in the user's own folder if that is read-only."""
    home = Path(__file__).parent
    digest = blake2b(digest_size=8)
    for source in sorted(home.rglob("*.py")):
        digest.update(f"{source.relative_to(home)}\n".encode() + source.read_bytes())
    place = home / "__pycache__"
    if not os.access(place if place.is_dir() else home, os.W_OK):
        place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hustings"
    return place / f"kernels-{digest.hexdigest()}"
