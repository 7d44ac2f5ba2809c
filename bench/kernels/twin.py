"""le-s in C, built where there is a compiler: the same runs as our kernel's, row for row."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench.kernels.work import GROUP, SEED, Rows
from hustings.lab.kernels.announce.columns import COLUMNS
from hustings.lab.kernels.announce.parameters import TICKS, ticks
from hustings.lab.kernels.counter import limit, root

SOURCE = Path(__file__).with_name("le_s.c")
FLAGS = ("-std=c11", "-O3", "-march=native", "-shared", "-fPIC")
COMPILERS = ("cc", "gcc", "clang")


def compiler() -> str | None:
    """A C compiler of this machine, if it has one."""
    return next((name for name in COMPILERS if shutil.which(name)), None)


def version() -> str:
    """Return the version that the compiler prints."""
    name = compiler()
    if name is None:
        return "no C compiler"
    said = subprocess.run([name, "--version"], capture_output=True, text=True, check=True)
    return said.stdout.partition("\n")[0]


def build() -> Callable[[int], Rows] | None:
    """Play this many runs in C; nothing where there is no compiler."""
    name = compiler()
    if name is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "le_s.so")
        subprocess.run([name, *FLAGS, "-o", str(made), str(SOURCE), "-lm"], check=True)
        function = ctypes.CDLL(str(made)).le_s  # stays loaded when the file is gone
    whole, word, real = ctypes.c_int64, ctypes.c_uint64, ctypes.c_double
    group = (whole, real, whole, whole, word, whole)
    function.argtypes = (word, whole, whole, *group, ctypes.c_void_p)

    def play(runs: int) -> Rows:
        rows = np.zeros((runs, COLUMNS))
        failed = function(
            int(root(SEED)),
            0,
            runs,
            GROUP.members,
            GROUP.T_S * TICKS,
            ticks(GROUP.T_A),
            ticks(GROUP.delay),
            int(limit(GROUP.loss)),
            GROUP.max_rounds,
            rows.ctypes.data,
        )
        if failed:
            raise MemoryError("the C twin found no memory")
        return rows

    return play
