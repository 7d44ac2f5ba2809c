"""Sizes of the package's modules, and the files that a reader of one command meets.

    python -m scripts.measure_house                  # modules, functions, users
    python -m scripts.measure_house --src DIR/src    # the same of another checkout
    python -m scripts.measure_house --walk sim bully             # files that one command enters

A walk lists each file of the package when a function of it is first entered, in that order. Files
that are only imported do not count: a reader does not have to open them to follow the command.
The command runs twice and is followed the second time, when everything is loaded.
"""

from __future__ import annotations

import argparse
import ast
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from types import FrameType

ROOT = Path(__file__).resolve().parents[1]
SMALL = 100  # lines; a shorter module with one user is a candidate for folding


@dataclass(frozen=True)
class Module:
    """One file of the package."""

    name: str
    lines: int
    functions: tuple[int, ...]  # the length of each
    imports: frozenset[str]


def modules(src: Path) -> list[Module]:
    """Every module under `src`."""
    return [_module(path, src) for path in sorted(src.rglob("*.py"))]


def _module(path: Path, src: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    parts = path.relative_to(src).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    found = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    lengths = tuple((node.end_lineno or node.lineno) - node.lineno + 1 for node in found)
    return Module(name, len(text.splitlines()), lengths, frozenset(_imports(tree)))


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def used_once(found: Sequence[Module]) -> list[Module]:
    """Modules that exactly one other module imports."""
    names = {module.name for module in found}
    users = Counter(name for module in found for name in module.imports & names)
    return [module for module in found if users[module.name] == 1]


def statistics(src: Path) -> list[tuple[str, float]]:
    """The rows of the table."""
    found = modules(src)
    functions = [length for module in found for length in module.functions]
    once = used_once(found)
    return [
        ("files", len(found)),
        ("lines", sum(module.lines for module in found)),
        ("lines of a module, median", median(module.lines for module in found)),
        ("lines of a module, largest", max(module.lines for module in found)),
        ("functions", len(functions)),
        ("lines of a function, median", median(functions)),
        ("lines of a function, largest, docstring included", max(functions)),
        ("modules with exactly one user", len(once)),
        (f"of these shorter than {SMALL} lines", sum(m.lines < SMALL for m in once)),
    ]


def walk(words: Sequence[str]) -> list[str]:
    """The package's files in the order in which a command first enters them."""
    import hustings  # noqa: PLC0415  # only a walk needs the package
    from hustings.__main__ import main  # noqa: PLC0415  # the same

    home = str(Path(hustings.__file__).parent)
    entered: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(home) and code.co_name != "<module>":
            entered.setdefault(code.co_filename.removeprefix(home + "/"))

    sys.argv = ["hustings", *words]
    for watch in (None, note):  # the first time loads what the command needs
        sys.setprofile(watch)
        with suppress(SystemExit), _silence():
            main()
    sys.setprofile(None)
    return list(entered)


@contextmanager
def _silence() -> Iterator[None]:
    """Drop what the command prints, whichever stream object it kept."""
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, or a walk."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--src", type=Path, default=ROOT / "src", help="the folder to measure")
    parser.add_argument(
        "--walk", nargs=argparse.REMAINDER, metavar="WORD", help="the command to follow"
    )
    given = parser.parse_args(arguments)
    if given.walk:
        for number, name in enumerate(walk(given.walk), 1):
            print(f"{number:3} {name}")
        return
    for what, value in statistics(given.src):
        print(f"{what:52} {value:10,.0f}")


if __name__ == "__main__":
    main()
