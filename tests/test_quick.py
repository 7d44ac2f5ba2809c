"""`make quick` runs the tests that stand nearest to a change."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from scripts.quick import HOUSE, ROOT, changed, nearest

FILES = (
    "tests/unit/sim/test_world.py",
    "tests/unit/lab/kernels/test_heap.py",
    "tests/unit/lab/test_options.py",
    "tests/unit/sim/laws.py",
    "tests/net/test_wire.py",
    "tests/net/test_wire_edges.py",
    "tests/net/parts.py",
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in FILES:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "src/hustings/lab/kernels").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize(
    "paths, found",
    [
        (["src/hustings/sim/world.py"], ["tests/unit/sim"]),
        (["src/hustings/sim/models/loss.py"], ["tests/unit/sim"]),
        (["src/hustings/lab/kernels/heap.py"], ["tests/unit/lab/kernels"]),
        (["src/hustings/lab/runs/block.py"], ["tests/unit/lab/test_options.py"]),
        (["src/hustings/lab/options.py"], ["tests/unit/lab/test_options.py"]),
        (["src/hustings/net/wire.py"], ["tests/net/test_wire.py", "tests/net/test_wire_edges.py"]),
        (["src/hustings/net/nowhere.py", "README.md", "src/hustings/joining.py"], []),
        (["tests/net/test_wire.py"], ["tests/net/test_wire.py"]),
        (["tests/net/test_deleted.py"], []),
        (["tests/unit/sim/laws.py"], ["tests/unit/sim"]),
        (["tests/net/parts.py"], []),
        (["src/hustings/sim/world.py", "tests/unit/sim/test_world.py"], ["tests/unit/sim"]),
    ],
)
def test_a_change_runs_the_tests_beside_it(tree: Path, paths: list[str], found: list[str]) -> None:
    assert nearest(paths, tree) == found


def test_what_is_committed_uncommitted_and_new_has_changed(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    for name in ("old.py", "edited.py"):
        (tmp_path / name).write_text("1\n", encoding="utf-8")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    git("switch", "-q", "-c", "branch")
    (tmp_path / "committed.py").write_text("2\n", encoding="utf-8")
    git("add", ".")
    git("commit", "-q", "-m", "second")
    (tmp_path / "edited.py").write_text("3\n", encoding="utf-8")
    (tmp_path / "new.py").write_text("4\n", encoding="utf-8")
    assert changed("main", tmp_path) == ["committed.py", "edited.py", "new.py"]
    with pytest.raises(SystemExit, match="no-such-commit"):
        changed("no-such-commit", tmp_path)


def test_the_rules_of_the_house_are_there() -> None:
    assert all((ROOT / name).is_file() for name in HOUSE)
