"""The release script refuses what is not ready; the wheel works in an empty environment.

The environment has the wheel and what the wheel declares, copied from the environment of the tests,
so nothing is fetched; whatever else hustings needs would be missing there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts.release import ROOT, NotReady, build, main, problems, version, wheel_problems

# --- what is not ready ---------------------------------------------------------------------------

URLS = '[project]\nname = "hustings"\n[project.urls]\nSource = "https://example.org/hustings"\n'
CHANGES = "# Changelog\n\n## [1.2.3] - 2026-01-31\n\n## [1.2.2] - 2025-12-01\n"


def git(tree: Path, *words: str) -> None:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *words], cwd=tree, check=True, capture_output=True)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small tree that is ready."""
    (tmp_path / "src/hustings").mkdir(parents=True)
    (tmp_path / "src/hustings/_version.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGES)
    (tmp_path / "pyproject.toml").write_text(URLS)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "begin")
    return tmp_path


def change(tree: Path, name: str, old: str, new: str) -> None:
    path = tree / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    git(tree, "commit", "-qam", "change")


def test_a_tree_that_is_ready_has_no_problems(tree: Path) -> None:
    assert problems(tree) == []


def test_what_is_not_committed_is_a_problem(tree: Path) -> None:
    (tree / "new").touch()
    assert problems(tree) == ["1 files are not committed: commit or remove them"]


def test_a_tag_is_used_once(tree: Path) -> None:
    git(tree, "tag", "v1.2.3")
    assert [each.partition(":")[0] for each in problems(tree)] == ["the tag v1.2.3 exists"]


@pytest.mark.parametrize(
    "old, new, problem",
    [
        ("## [1.2.3]", "## [1.2.4]", "does not begin with a section [1.2.3]"),
        ("2026-01-31", "unreleased", "has no date: it says 'unreleased'"),
        ("## [", "## ", "does not begin with a section [1.2.3]"),
    ],
)
def test_the_changelog_tells_of_this_version(tree: Path, old: str, new: str, problem: str) -> None:
    change(tree, "CHANGELOG.md", old, new)
    (found,) = problems(tree)
    assert problem in found


def test_the_source_has_an_address(tree: Path) -> None:
    change(tree, "pyproject.toml", "Source", "Sauce")
    (found,) = problems(tree)
    assert found.startswith("pyproject.toml has no [project.urls] with Source")


def test_a_version_that_is_none_is_refused(tree: Path) -> None:
    change(tree, "src/hustings/_version.py", "1.2.3", "1.2")
    with pytest.raises(NotReady, match="states no version like"):
        problems(tree)


def test_a_build_that_fails_says_so(tree: Path) -> None:
    with pytest.raises(NotReady, match="the build failed"):
        build(tree / "dist", tree)


def test_the_script_never_uploads() -> None:
    text = (ROOT / "scripts/release.py").read_text(encoding="utf-8")
    assert not re.search(r"twine|[\"']upload[\"']|http", text)


# --- the files -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    assert main(["--build", "--out", str(folder)]) == 0
    return folder / f"hustings-{version()}-py3-none-any.whl"


def test_the_wheel_has_every_file_of_the_package(wheel: Path, tmp_path: Path) -> None:
    assert wheel_problems(wheel) == []
    (tmp_path / "src/hustings").mkdir(parents=True)
    (tmp_path / "src/hustings/new.py").touch()
    found = wheel_problems(wheel, tmp_path)
    assert "the wheel lacks hustings/new.py" in found
    assert "the wheel has hustings/py.typed, which is not in src" in found


def declared(wheel_requires: list[str], extra: str) -> list[Distribution]:
    """What the wheel asks for, and what that asks for: from the environment of the tests."""
    found: dict[str, Distribution] = {}
    asked: set[str] = set()
    waiting = [(Requirement(line), extra) for line in wheel_requires]
    while waiting:
        wanted, part = waiting.pop()
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": part}):
            continue
        name = canonicalize_name(wanted.name)
        if name == "hustings":
            for word in sorted(wanted.extras - asked):
                asked.add(word)
                waiting += [(Requirement(line), word) for line in wheel_requires]
            continue
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            raise AssertionError(f"the tests' environment lacks {wanted}") from None
        for line in found[name].requires or ():
            waiting += [(Requirement(line), each) for each in ("", *wanted.extras)]
    return list(found.values())


def copied(found: Distribution, target: Path) -> None:
    """One distribution into another environment's site-packages."""
    for file in found.files or ():
        source = Path(str(found.locate_file(file)))
        if ".." in file.parts or "__pycache__" in file.parts or not source.is_file():
            continue
        (target / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target / file)


def environment(folder: Path, wheel: Path, extra: str) -> Path:
    """An environment with the wheel and what it declares; returns its Python."""
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    install = ["install", "--quiet", "--no-index", "--no-deps", "--no-compile", str(wheel)]
    subprocess.run([*pip, *install], check=True, capture_output=True)
    (site,) = (folder / "lib").glob("python*/site-packages")
    (installed,) = site.glob("hustings-*.dist-info")
    for each in declared(Distribution.at(installed).requires or [], extra):
        copied(each, site)
    return python


def tried(python: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [str(python), *words],
        cwd=python.parent,
        env={**environ, "PATH": f"{python.parent}:{environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


STORY = """
import asyncio, hustings, hustings.blocking
from hustings.testing import Group

with Group(seed=7) as group:
    group.start("abc")
    first = group.settle()
    group.kill(first)
    assert group.settle() != first

async def real():
    async with hustings.join("wheel", name="a", protocol="bully") as member:
        async with member.campaign() as term:
            return hustings.__file__, term.number

print(*asyncio.run(real()))
"""


def test_the_library_needs_what_the_wheel_declares(wheel: Path, tmp_path: Path) -> None:
    python = environment(tmp_path / "e", wheel, "")
    story = tried(python, "-W", "error", "-c", STORY)
    assert story.returncode == 0, story.stderr
    place, term = story.stdout.split()
    assert place.startswith(str(tmp_path))
    assert int(term) >= 1
    command = tried(python, "-m", "hustings", "--version")
    assert command.returncode == 2
    assert f"pip install '{wheel}[cli]'" in command.stderr


def test_the_command_needs_what_the_extra_agent_declares(wheel: Path, tmp_path: Path) -> None:
    python = environment(tmp_path / "e", wheel, "agent")
    said = tried(python, str(python.parent / "hustings"), "--version")
    assert (said.returncode, said.stderr) == (0, "")
    assert version() in said.stdout
    played = tried(python, str(python.parent / "hustings"), "sim", "bully", "-n", "5", "--json")
    assert played.returncode == 0, played.stderr
    ran = tried(python, str(python.parent / "hustings"), "agent", "--help")
    assert ran.returncode == 0, ran.stderr


def test_pytest_finds_the_plugin(wheel: Path, tmp_path: Path) -> None:
    python = environment(tmp_path / "e", wheel, "")
    code = (
        "from importlib.metadata import entry_points\n"
        "for each in entry_points(group='pytest11'): print(each.name, each.value)"
    )
    assert tried(python, "-c", code).stdout == "hustings hustings.testing.plugin\n"
