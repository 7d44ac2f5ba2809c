"""Who may import whom, and that nothing lies about unused.

The contracts stand in pyproject.toml. Here they are tried first on small trees that break them,
then on the source; and every module of the source must be reached from one of its public doors.
"""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from hustings.guard.registry import ENGINES
from hustings.protocols.registry import PROTOCOLS

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = ROOT / "pyproject.toml"

# --- contracts -----------------------------------------------------------------------------------

LINT = "import sys, importlinter.cli as c; sys.exit(c.lint_imports(sys.argv[1], no_cache=True))"


def lint(source: Path) -> tuple[bool, str]:
    """Whether the tree under `source` keeps every contract, and the report.

    A process of its own: the linter imports the package it judges, which need not be ours.
    """
    done = subprocess.run(
        [sys.executable, "-c", LINT, str(SETTINGS)],
        cwd=source,
        env={**os.environ, "PYTHONPATH": str(source), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode == 0, done.stdout + done.stderr


def contracts() -> list[dict[str, str | list[str]]]:
    found = tomllib.loads(SETTINGS.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    assert isinstance(found, list)
    return found


def packages_under_contract() -> list[str]:
    return sorted(set(re.findall(r"\bhustings\.(\w+(?:\.\w+)*)", str(contracts()))))


@pytest.fixture
def small_tree(tmp_path: Path) -> Path:
    """A tree with every package that a contract names, all of them empty."""
    for package in packages_under_contract():
        folder = tmp_path.joinpath("hustings", *package.split("."))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").touch()
    (tmp_path / "hustings" / "__init__.py").touch()
    return tmp_path


# In the order of pyproject.toml; a contract added there needs a name and a violation here.
ONE_WAY, LAB, PURE, WORLD, WITNESS, KERNELS, SWEEPS, PRINTING = (
    str(c["name"]) for c in contracts()
)

VIOLATIONS = [
    ("core", "hustings.protocols", ONE_WAY),
    ("core", "hustings.sim", ONE_WAY),
    ("net", "hustings.lab", ONE_WAY),
    ("protocols", "hustings.quorum", ONE_WAY),
    ("quorum", "time", PURE),
    ("lab.kernels", "hustings.lab.closed_forms", LAB),
    ("layers", "hustings.protocols", ONE_WAY),
    ("protocols", "hustings.sim", ONE_WAY),
    ("protocols", "hustings.testing", ONE_WAY),
    ("sim", "hustings.testing", ONE_WAY),
    ("sim", "hustings.cli", ONE_WAY),
    ("net", "hustings.sim", ONE_WAY),
    ("sim", "hustings.net", ONE_WAY),
    ("core", "random", PURE),
    ("protocols", "time", PURE),
    ("layers", "asyncio.events", PURE),
    ("sim", "hustings.protocols", WORLD),
    ("net", "hustings.protocols", WORLD),
    ("testing.recorded", "hustings.protocols", WORLD),
    ("net", "hustings.joining", ONE_WAY),
    ("joining", "hustings.testing", ONE_WAY),
    ("net", "hustings.guard", ONE_WAY),
    ("guard", "hustings.joining", ONE_WAY),
    ("fence", "hustings.guard", ONE_WAY),
    ("explore", "hustings.sim", ONE_WAY),
    ("explore", "hustings.protocols", WORLD),
    ("guard", "rich", PRINTING),
    ("testing", "hustings.agent", ONE_WAY),
    ("lab.closed_forms", "hustings.protocols", WITNESS),
    ("lab.closed_forms", "hustings.sim", WITNESS),
    ("lab.kernels", "hustings.lab.closed_forms", KERNELS),
    ("lab.kernels", "hustings.layers", KERNELS),
    ("lab.kernels", "hustings.sim", KERNELS),
    ("lab.figures", "hustings.lab.sweeps", LAB),
    ("lab.runs", "hustings.lab.figures", LAB),
    ("lab.byzantine", "hustings.lab.runs", LAB),
    ("lab.runs", "hustings.net", SWEEPS),
    ("lab.sweeps", "hustings.cli", ONE_WAY),
    ("lab.sweeps", "hustings.net", SWEEPS),
    ("lab.sweeps", "click", PRINTING),
    ("sim", "rich.table", PRINTING),
    ("net", "click", PRINTING),
]


@pytest.mark.parametrize("package, imported, contract", VIOLATIONS)
def test_a_contract_catches(small_tree: Path, package: str, imported: str, contract: str) -> None:
    sample = small_tree.joinpath("hustings", *package.split("."), "sample.py")
    sample.write_text(f"def late():\n    import {imported}\n", encoding="utf-8")
    kept, report = lint(small_tree)
    assert not kept
    assert f"{contract} BROKEN" in report


def test_a_tree_without_imports_keeps_all_contracts(small_tree: Path) -> None:
    kept, report = lint(small_tree)
    assert kept, report


def test_the_source_keeps_all_contracts() -> None:
    kept, report = lint(ROOT / "src")
    assert kept, report


# --- reach ---------------------------------------------------------------------------------------

# What users import or start. Everything else must be needed by one of these.
DOORS = (
    "hustings",
    "hustings.__main__",
    "hustings.asgi",
    "hustings.blocking",
    "hustings.celery_beat",
    "hustings.cli",
    "hustings.django",
    "hustings.django.apps",  # Django finds these two by their names
    "hustings.django.management.commands.hustings_jobs",
    "hustings.fence",
    "hustings.testing",
    "hustings.testing.plugin",  # an entry point
)


def modules_under(source: Path) -> dict[str, str]:
    """Dotted name to text. A package is listed as its __init__, under that name."""
    return {
        ".".join(path.relative_to(source).with_suffix("").parts): path.read_text(encoding="utf-8")
        for path in sorted(source.rglob("*.py"))
    }


def names_used(module: str, text: str) -> Iterator[str]:
    """Dotted names that a module imports, or spells out whole for a late import."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=base, names=names, level=level):
                parts = module.split(".")[:-level] if level else []
                start = ".".join([*parts, *([base] if base else [])])
                yield from (f"{start}.{alias.name}" for alias in names)
            case ast.Constant(value=str(value)) if re.fullmatch(r"hustings(\.\w+)+(:\w+)?", value):
                yield value.split(":")[0]


def unreached(modules: dict[str, str], doors: tuple[str, ...]) -> list[str]:
    reached: set[str] = set()
    waiting = list(doors)
    while waiting:
        # Importing a.b.c imports a and a.b too; the last part may be no module but a name in one.
        parts = waiting.pop().split(".")
        prefixes = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
        for module in (m for p in prefixes for m in (p, f"{p}.__init__")):
            if module in modules and module not in reached:
                reached.add(module)
                waiting += names_used(module, modules[module])
    return sorted(modules.keys() - reached)


@pytest.mark.parametrize(
    "text",
    [
        "import a.b.c",
        "from a.b import c",
        "from a.b.c import name",
        "from .b import c",
        "from .b.c import name",
        "def late():\n    from a.b import c",
    ],
)
def test_reach_follows(text: str) -> None:
    modules = {"a.__init__": text, "a.b.__init__": "", "a.b.c": "", "a.dead": "import a.b.c"}
    assert unreached(modules, ("a",)) == ["a.dead"]


def test_reach_follows_relative_imports_upwards() -> None:
    modules = {"a.__init__": "import a.b.c", "a.b.__init__": "", "a.b.c": "from ..d import x"}
    assert unreached({**modules, "a.d": ""}, ("a",)) == []


def test_reach_follows_names_spelt_out() -> None:
    modules = {"hustings.__init__": "LATE = ['hustings.x:X', 'hustings.y']"}
    late = {"hustings.x": "", "hustings.y": "", "hustings.z": ""}
    assert unreached({**modules, **late}, ("hustings",)) == ["hustings.z"]


def test_every_module_is_reached() -> None:
    modules = modules_under(ROOT / "src")
    assert modules
    # The registries name modules of elections and guards, and load the one that is asked for.
    named = [f"hustings.{entry.module}" for entry in PROTOCOLS.values()]
    named += [f"hustings.guard.{entry.name}" for entry in ENGINES]
    dead = unreached(modules, (*DOORS, *named))
    assert not dead, "nothing imports " + ", ".join(dead)
