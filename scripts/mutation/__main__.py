"""`python -m scripts.mutation [PART ...] [--share 0.2] [--again]`: see `make mutants`.

Every part has files of its own: `results/PART.json`, and `reasons/PART.toml` for its survivors.
"""

from __future__ import annotations

import argparse
import ast
import glob
import hashlib
import json
import os
import sys
import tomllib
from collections.abc import Collection
from multiprocessing import get_context
from pathlib import Path

import pytest

from scripts.mutation.operators import Mutant, mutants_of
from scripts.mutation.report import Part, page
from scripts.mutation.trial import ENDLESS, KILLED, TIMEOUT, Trial

HERE = Path(__file__).parent
RESULTS = HERE / "results"
REASONS = HERE / "reasons"
PAGE = Path("tests/MUTANTS.md")
HANGS = 30  # seconds after which a test counts as failed
FEWEST = 8  # mutants of a module that are tried at least


def main() -> int:
    """Try the mutants of some parts, or of all; write the results and the page."""
    plan = tomllib.loads((HERE / "plan.toml").read_text())
    asked = _asked(plan)
    for name in () if asked.page else asked.parts or plan:
        # One process for each: modules that one part has loaded must not be loaded for the next.
        work = get_context("fork").Process(target=_one, args=(name, plan[name], asked))
        work.start()
        work.join()
        if work.exitcode:
            return 1
    parts = {name: result for name in plan if (result := _result(name)) is not None}
    older = {name for name, part in parts.items() if part.sources != _digest(plan[name])}
    PAGE.write_text(page(parts, _reasons(), older))
    return 0


def _one(name: str, plan: dict[str, list[str]], asked: argparse.Namespace) -> None:
    for each in plan.get("environment", ()):
        variable, _, value = each.partition("=")
        os.environ[variable] = value
    found = _part(name, plan, asked, _result(name))
    if found is None:
        sys.exit(1)
    text = json.dumps(found.to_json(), indent=1, sort_keys=True)
    (RESULTS / f"{name}.json").write_text(text + "\n")
    print(f"{name}: {found.score:.1%} of {found.tried} mutants killed, of {found.all} there are")


def _result(part: str) -> Part | None:
    path = RESULTS / f"{part}.json"
    return Part.from_json(json.loads(path.read_text())) if path.exists() else None


def _reasons() -> dict[str, str]:
    """Return why each surviving mutant may stay, by its key."""
    found: dict[str, str] = {}
    for path in sorted(REASONS.glob("*.toml")):
        found |= tomllib.loads(path.read_text())
    return found


def _asked(plan: Collection[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m scripts.mutation", description=main.__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(plan))
    parser.add_argument("--share", type=float, default=1.0, help="Of all mutants, drawn by lot.")
    parser.add_argument("--seed", type=int, default=1, help="Of the lot.")
    parser.add_argument(
        "--again", action="store_true", help="Only those that survived; the others were killed."
    )
    parser.add_argument(
        "--page", action="store_true", help="Try nothing; write the page of what is known."
    )
    parser.add_argument("--jobs", type=int, default=2, help="Mutants tried side by side.")
    asked = parser.parse_args()
    unknown = [part for part in asked.parts if part not in plan]
    if unknown:
        parser.error(f"unknown part {unknown[0]!r} (known: {', '.join(plan)})")
    if not 0 < asked.share <= 1 or asked.jobs < 1:
        parser.error("--share lies above 0 and at most at 1, --jobs is at least 1")
    return asked


def _part(
    name: str, plan: dict[str, list[str]], asked: argparse.Namespace, before: Part | None
) -> Part | None:
    paths = sorted(path for pattern in plan["modules"] for path in glob.glob(pattern))
    sources = {path: Path(path).read_text() for path in paths}
    there = {path: mutants_of(path, source) for path, source in sources.items()}
    share, seed = asked.share, asked.seed
    digest = _digest(plan)
    if asked.again:
        if before is None or before.sources != digest:
            print(f"{name} has changed since it was tried last: try all of it", file=sys.stderr)
            return None
        share, seed = before.share, before.seed
    chosen = [each for path in paths for each in _drawn(there[path], share, seed)]
    wanted = before.survivors if asked.again and before else {each.key for each in chosen}
    tried = [each for each in chosen if each.key in wanted]
    trial = Trial(
        tried, asked.jobs, dict(each.split(maxsplit=1) for each in plan.get("scripts", ()))
    )
    arguments = [*plan["tests"], "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    arguments += [f"--timeout={HANGS}"]
    arguments += [f"--deselect={each}" for each in plan.get("but", ())]
    arguments += [f"-W{each}" for each in plan.get("warnings", ())]
    pytest.main([*arguments, "--hypothesis-profile=ci", "--no-header"], plugins=[trial])
    if trial.failed or len(trial.verdicts) != len(tried):
        for test in trial.failed:
            print(f"fails without any mutant: {test}", file=sys.stderr)
        return None
    survivors = {
        mutant.key: trial.verdicts[mutant.key]
        for mutant in tried
        if trial.verdicts[mutant.key] not in (KILLED, TIMEOUT, ENDLESS)
    }
    return Part(
        all=sum(map(len, there.values())),
        tried=len(chosen),
        killed=len(chosen) - len(survivors),
        slow=sum(verdict in (TIMEOUT, ENDLESS) for verdict in trial.verdicts.values())
        + (before.slow if asked.again and before else 0),
        share=share,
        seed=seed,
        sources=digest,
        survivors=survivors,
    )


def _drawn(there: list[Mutant], share: float, seed: int) -> list[Mutant]:
    """Draw mutants by their keys, so that most of a sample stays when the code changes."""
    count = min(len(there), max(FEWEST, round(share * len(there))))
    lots = sorted(there, key=lambda each: hashlib.sha256(f"{seed} {each.key}".encode()).digest())
    chosen = {each.key for each in lots[:count]}
    return [each for each in there if each.key in chosen]


def _digest(plan: dict[str, list[str]]) -> str:
    """Digest the code: comments, docstrings and message texts may change meanwhile."""
    paths = sorted(path for pattern in plan["modules"] for path in glob.glob(pattern))
    text = "".join(_wordless(Path(path).read_text()) for path in paths)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _wordless(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


if __name__ == "__main__":
    sys.exit(main())
