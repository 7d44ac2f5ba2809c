"""Run the tests nearest to a change, for the inner loop.

    python -m scripts.quick              # since the branch left main
    python -m scripts.quick HEAD~3       # since another commit

`make quick` runs this after ruff and mypy. What is uncommitted or new counts as changed. A changed
test runs, and for a changed module those tests that mirror its room: `tests/unit/sim` for
`src/hustings/sim/world.py`. For `src/hustings/lab/options.py` these are the files of
`tests/unit/lab`, without the folders of the rooms in it. A room without such a folder has tests in
`tests/<room>`; of these run the ones that have the module's name in theirs. `make test` runs
everything.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
HOUSE = ("tests/test_house_rules.py", "tests/test_import_rules.py", "tests/test_docs.py")


def changed(base: str, root: Path = ROOT) -> list[str]:
    """List files that differ from where this branch left `base`, new ones included."""

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=root, capture_output=True, encoding="utf-8", check=False
        )
        if done.returncode:
            sys.exit(f"quick: git {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    since = git("merge-base", base, "HEAD").strip()
    told = git("diff", "--name-only", since) + git("ls-files", "--others", "--exclude-standard")
    return sorted(set(told.splitlines()))


def nearest(paths: Iterable[str], root: Path = ROOT) -> list[str]:
    """Return existing folders and files of tests for these changes."""
    found: set[str] = set()
    for path in map(PurePosixPath, paths):
        if path.suffix != ".py":
            continue
        match path.parts:
            case ("tests", *_):
                found.update(_of_test(path, root))
            case ("src", "hustings", *rooms, _):
                found.update(_of_module(rooms, path.stem, root))
    inside = {each for each in found if any(str(up) in found for up in PurePosixPath(each).parents)}
    return sorted(found - inside)


def _of_test(path: PurePosixPath, root: Path) -> list[str]:
    """A test runs by itself; a file that tests share runs its whole folder, if that is quick."""
    if path.name.startswith("test_"):
        return [str(path)] * (root / path).is_file()
    return [str(path.parent)] * (path.parts[1] == "unit" and (root / path.parent).is_dir())


def _of_module(rooms: list[str], stem: str, root: Path) -> list[str]:
    for depth in range(len(rooms), 0, -1):
        mirror = root.joinpath("tests", "unit", *rooms[:depth])
        if mirror.is_dir():
            source = root.joinpath("src", "hustings", *rooms[:depth])
            inner = {each.name for each in source.glob("[a-z]*/")}
            # A large room has rooms of its own, whose tests are nearer to their modules.
            if any((mirror / name).is_dir() for name in inner):
                near = [*mirror.glob("test_*.py"), *mirror.glob("[a-z]*/")]
                return [str(each.relative_to(root)) for each in near if each.name not in inner]
            return [str(mirror.relative_to(root))]
    if not rooms:
        return [f"tests/unit/test_{stem}.py"] * (root / f"tests/unit/test_{stem}.py").is_file()
    beside = root / "tests" / rooms[0]
    return [str(each.relative_to(root)) for each in sorted(beside.glob(f"test_*{stem}*.py"))]


def main(arguments: Sequence[str]) -> int:
    """Run the nearest tests, and the house rules, which any change can break."""
    chosen = [*HOUSE, *nearest(changed(arguments[0] if arguments else "main"))]
    print("==", *chosen, flush=True)
    words = ("-q", "-x", "-n", "2", "--dist=worksteal", "--hypothesis-profile=ci")
    return subprocess.call([sys.executable, "-m", "pytest", *words, *chosen], cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
