"""Kernels are kept by their sources, and a missing extra is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import pytest

from hustings.extras import install_command
from hustings.lab.kernels import compiling
from hustings.lab.kernels.announce import play as announce
from hustings.lab.kernels.announce.parameters import AnnounceParameters
from hustings.lab.kernels.counter import mix
from hustings.lab.kernels.probabilistic import play as probabilistic
from hustings.lab.kernels.probabilistic.parameters import ProbabilisticParameters

MISSING = """
import sys
sys.modules["numba"] = None
from hustings.core.errors import BadInput
try:
    import hustings.lab.kernels.announce.play
except BadInput as told:
    print(told)
"""


def test_a_missing_extra_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MISSING], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"the fast engine needs numba: {install_command('fast')}\n"


def test_what_is_kept_lies_under_a_name_made_of_all_sources(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = []
    for text in ("x = 1\n", "x = 2\n"):
        (tmp_path / "one.py").write_text(text, encoding="utf-8")
        monkeypatch.setattr(compiling, "__file__", str(tmp_path / "compiling.py"))
        compiling._folder.cache_clear()
        names.append(compiling._folder())
    monkeypatch.undo()
    compiling._folder.cache_clear()
    assert names[0] != names[1]
    assert {name.parent for name in names} == {tmp_path / "__pycache__"}


def test_others_keep_their_own_folder() -> None:
    config: Any = numba.config
    before = config.CACHE_DIR
    compiling.compiled(lambda x: x)
    assert before == config.CACHE_DIR
    assert hasattr(mix, "py_func"), "it is compiled indeed"


def some_runs() -> str:
    """A few of each kind, to the last bit."""
    found = [
        announce.play(
            AnnounceParameters(
                protocol=name, members=6, T_L=T_L, loss_model="uncorrelated", loss=0.4
            ),
            3,
            0,
            5,
        )
        for name in ("sup", "al", "le-a", "le-s", "le-m")
        for T_L in (float("inf"), 2.0)
    ]
    found.append(
        probabilistic.play(ProbabilisticParameters(members=30, p_ucastl=0.2, p_mcastl=0.2), 3, 0, 5)
    )
    return json.dumps([[each.tolist() for each in one.metrics.values()] for one in found])


def test_as_plain_python_kernels_play_the_same_runs() -> None:
    """Under numba's own switch: for a debugger, and for `make mutants`."""
    done = subprocess.run(
        [
            *(sys.executable, "-W", "ignore", "-c"),
            "from tests.unit.lab.kernels.test_compiling import some_runs; print(some_runs())",
        ],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        cwd=Path(__file__).parents[4],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == some_runs()
