"""Make a release, up to the upload, which a person does.

    python -m scripts.release            # all checks, then the files in dist/
    python -m scripts.release --build    # only the files in dist/ (`make dist`)

Checked are: nothing is uncommitted; the version has a section with a date in CHANGELOG.md; no tag
has the version; the project says where its source is. Then the source archive is built, the wheel
from the archive, and the wheel holds every file of the package and nothing else. The script never
uploads and never tags: it prints what remains. docs/releasing.md is the whole list.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION = re.compile(r'^__version__ = "(.*)"$', re.MULTILINE)
PLAIN = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")


class NotReady(Exception):
    """Something must be done before there can be a release."""


def version(root: Path = ROOT) -> str:
    """The version that the package states."""
    found = VERSION.search((root / "src/hustings/_version.py").read_text(encoding="utf-8"))
    if found is None or not PLAIN.fullmatch(found[1]):
        raise NotReady("src/hustings/_version.py states no version like 1.2.3 or 1.2.3rc1")
    return found[1]


def problems(root: Path = ROOT) -> list[str]:
    """What stands against a release of this tree; a sentence each."""
    number = version(root)
    found = [*_of_git(root, number), *_of_changelog(root, number)]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if not project.get("urls", {}).get("Source"):
        found.append("pyproject.toml has no [project.urls] with Source: say where the source is")
    return found


def _of_git(root: Path, number: str) -> Iterable[str]:
    changed = _git(root, "status", "--porcelain")
    if changed:
        yield f"{len(changed.splitlines())} files are not committed: commit or remove them"
    if _git(root, "tag", "--list", f"v{number}"):
        yield f"the tag v{number} exists: raise the version in src/hustings/_version.py"


def _of_changelog(root: Path, number: str) -> Iterable[str]:
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = re.search(r"^## \[(.*)\] - (.*)$", text, re.MULTILINE)
    if heading is None or heading[1] != number:
        yield f"CHANGELOG.md does not begin with a section [{number}]"
    elif not re.fullmatch(r"\d{4}-\d{2}-\d{2}", heading[2]):
        yield f"the section [{number}] of CHANGELOG.md has no date: it says {heading[2]!r}"


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotReady(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def build(folder: Path, root: Path = ROOT) -> tuple[Path, Path]:
    """The source archive, and the wheel that is made from it, without asking an index."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotReady(f"the build failed:\n{done.stdout}{done.stderr}")
    number = version(root)
    archive = folder / f"hustings-{number}.tar.gz"
    wheel = folder / f"hustings-{number}-py3-none-any.whl"
    for file in (archive, wheel):
        if not file.is_file():
            raise NotReady(f"the build made no {file.name}")
    return archive, wheel


def wheel_problems(wheel: Path, root: Path = ROOT) -> list[str]:
    """How the files of a wheel differ from those of the package; a sentence each."""
    source = root / "src"
    wanted = {
        path.relative_to(source).as_posix()
        for path in (source / "hustings").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
    found = {name for name in names if not name.split("/")[0].endswith(".dist-info")}
    notes = {name.split("/", 1)[1] for name in names - found}
    return [
        *(f"the wheel lacks {name}" for name in sorted(wanted - found)),
        *(f"the wheel has {name}, which is not in src" for name in sorted(found - wanted)),
        *(
            f"the wheel lacks {name} in its dist-info"
            for name in ("METADATA", "entry_points.txt", "licenses/LICENSE")
            if name not in notes
        ),
    ]


def main(arguments: list[str] | None = None) -> int:
    """Exit code 0: the files lie in the folder. 1: something must be done first."""
    parser = argparse.ArgumentParser(prog="python -m scripts.release", description=__doc__)
    parser.add_argument("--build", action="store_true", help="build and check the files only")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where the files go")
    asked = parser.parse_args(arguments)
    try:
        found = [] if asked.build else problems()
        if not found:
            archive, wheel = build(asked.out)
            found = wheel_problems(wheel)
    except NotReady as error:
        found = [str(error)]
    if found:
        print("\n".join(f"release: {each}" for each in found), file=sys.stderr)
        return 1
    print(f"{archive}\n{wheel}")
    if not asked.build:
        print(f"ready: now tag v{version()} and upload both files, as docs/releasing.md says")
    return 0


if __name__ == "__main__":
    sys.exit(main())
