"""The pages of frameworks: their console blocks are played, and their decorators are taken.

The commands of a page run side by side in one folder, with the files that the page tells to save.
A line of output is there when a line like it comes, after those before it and maybe among others:
its numbers and the process in the name of a member may be others. `kill -9 4711` kills the process
of the member whose name is shown with that number.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

import hustings
from hustings.net.keys import new_key, write_key
from hustings.scheduled import ScheduledJob
from scripts.measure_apps import PATIENCE_S, free_port, wait_until
from tests import test_examples
from tests.guard.engines import started
from tests.test_examples import ANY, shown_in

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "guide" / "frameworks").glob("*.md"))
WITHOUT_BLOCKS = {"services"}  # it is about what no test here can start
SAVED = re.compile(r"Save this as `([\w./]+)`:\n\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PYTHON = re.compile(r"^( *)```python\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
MEMBER = re.compile(r"web1-(\d+)-[0-9a-f]{4}")
BROKER = "redis://127.0.0.1:6379/0"
SOONER = {
    'every="5s"': 'every="100ms"',
    "seconds=5": "seconds=0.2",
    '"schedule": 5.0': '"schedule": 0.2',
}


class Played:
    """What the commands of one page have started, and what they print."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[subprocess.Popen[bytes]] = []
        self._shown: dict[str, re.Pattern[str]] = {}  # by the process in a shown name: its line
        self._killed: list[int] = []
        self._read = 0  # so much of the log has been compared
        kept = {name: text for name, text in os.environ.items() if not name.startswith("HUSTINGS_")}
        self._environment = {
            **kept,
            "HUSTINGS_LOCAL_DIR": str(folder / "members"),
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / "state"),
            "PYTHONUNBUFFERED": "1",
        }

    @property
    def log(self) -> str:
        """What all of them printed."""
        return (self._folder / "log").read_text("utf-8", "replace")

    def command(self, line: str) -> None:
        """Do what a line of a terminal does."""
        words = shlex.split(line.removesuffix("&"))
        if words[0] != "kill":
            self._start(words)
            return
        self._read = len(self.log)
        number, process = words[1:]
        self._killed.append(self._process(process))
        os.kill(self._killed[-1], int(number.removeprefix("-")))

    def _start(self, words: list[str]) -> None:
        program, *given = words
        if program != "python":
            given = ["-m", program, *given]
        given = [str(free_port()) if re.fullmatch(r"80\d\d", each) else each for each in given]
        if program == "uvicorn":
            given += ["--port", str(free_port())]
        if program == "gunicorn":
            given += ["--bind", f"127.0.0.1:{free_port()}"]
        with open(self._folder / "log", "ab") as log:
            self._started.append(
                subprocess.Popen(
                    [sys.executable, *given],
                    cwd=self._folder,
                    env=self._environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )

    def _process(self, shown: str) -> int:
        """The process behind a number of the page; another one may have led for a moment."""
        return int(self._shown[shown].findall(self.log)[-1])

    def prints(self, line: str) -> None:
        """Wait until a line like this one comes."""
        pattern = self._like(line)
        try:
            wait_until(lambda: pattern.search(self.log, self._read), repr(line))
        except TimeoutError as error:
            raise AssertionError(f"{error}, in\n{self.log[self._read :]}") from None
        found = pattern.search(self.log, self._read)
        assert found is not None
        self._read = found.end()
        if (named := MEMBER.search(line)) is not None:
            assert int(found[1]) not in self._killed, f"{line!r} is of a process that was killed"
            self._shown[named[1]] = pattern

    def _like(self, line: str) -> re.Pattern[str]:
        """All lines like this one; the group is the process of the member, if there is one."""
        parts = [
            re.sub(r"\d+", r"\\d+", re.escape(part)) for part in re.split(MEMBER.pattern, line)[::2]
        ]
        return re.compile("^" + r"[\w-]+-(\d+)-[0-9a-f]{4}".join(parts) + "$", re.MULTILINE)

    def end(self) -> None:
        """End all in good order."""
        living = [each for each in self._started if each.poll() is None]
        for process in living:
            process.send_signal(signal.SIGTERM)
        for process in living:
            process.wait(PATIENCE_S)

    def kill(self) -> None:
        """Leave nothing behind."""
        for process in self._started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(PATIENCE_S)


def sooner(program: str) -> str:
    """The same with shorter periods."""
    for slow, fast in SOONER.items():
        program = program.replace(slow, fast)
    return program


def django_project(text: str, folder: Path) -> None:
    """Make the project that the page begins with, by its commands."""
    for command in ("django-admin startproject shop .", "python manage.py startapp billing"):
        assert command in " ".join(text.split())
        words = command.replace("django-admin", "-m django").removeprefix("python ").split()
        subprocess.run([sys.executable, *words], cwd=folder, check=True)
    added = text.partition("INSTALLED_APPS = [\n")[2].partition("]")[0]
    settings = folder / "shop" / "settings.py"
    program = settings.read_text("utf-8")
    assert "INSTALLED_APPS = [\n" in program
    settings.write_text(
        program.replace("INSTALLED_APPS = [\n", f"INSTALLED_APPS = [\n{added}"), "utf-8"
    )


@pytest.mark.parametrize(
    "page",
    [each for each in PAGES if each.stem not in WITHOUT_BLOCKS],
    ids=lambda page: page.stem,
)
def test_what_a_page_shows_is_seen(page: Path, tmp_path: Path) -> None:
    text = page.read_text("utf-8")
    with ExitStack() as stack:
        if BROKER in text:
            engine = stack.enter_context(started("valkey"))
            url = engine.url().replace("valkey://", "redis://").partition("?")[0]
            text = text.replace(BROKER, url)
        if page.stem == "django":
            django_project(text, tmp_path)
        for name, program in SAVED.findall(text):
            (tmp_path / name).write_text(sooner(program), "utf-8")
        played = Played(tmp_path)
        stack.callback(played.kill)
        for shown in shown_in(text):
            played.command(shown.command)
            for line in shown.output:
                if line and line != ANY:
                    played.prints(line)
        assert any("leads in term" in line for shown in shown_in(text) for line in shown.output)
        played.end()
        assert "Traceback" not in played.log, played.log


def test_every_console_block_is_played() -> None:
    """By `tests/test_examples.py`, or here."""
    pages = [*ROOT.glob("*.md")]
    pages += [
        page for name in ("docs", "examples", "bench") for page in (ROOT / name).rglob("*.md")
    ]
    shown = {page for page in pages if "```console" in page.read_text("utf-8")}
    here = {page for page in PAGES if page.stem not in WITHOUT_BLOCKS}
    assert here <= shown
    assert shown <= here | set(test_examples.PAGES)


# Decorators

OTHERS = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
ADDRESS = "postgres://shop@db.example.com/shop"  # where a page names what has one


def programs(text: str) -> Iterator[ast.Module]:
    for _, block in PYTHON.findall(text):
        yield ast.parse(textwrap.dedent(block))


def decorated(text: str) -> Iterator[ScheduledJob[Any, Any]]:
    """The jobs of a page, each with a function of the kind that it has there."""
    for program in programs(text):
        for node in ast.walk(program):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for call in node.decorator_list:
                    if isinstance(call, ast.Call) and ast.unparse(call.func) == "hustings.once":
                        (group,) = map(written, call.args)
                        options = {str(each.arg): written(each.value) for each in call.keywords}
                        function = awaited if isinstance(node, ast.AsyncFunctionDef) else plain
                        yield hustings.once(group, **options)(function)


def written(node: ast.expr) -> Any:
    """The value of an argument."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ADDRESS


async def awaited(term: Any) -> None: ...


def plain(term: Any) -> None: ...


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: page.stem)
def test_the_decorators_of_a_page_are_taken(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_key("shop.key", new_key())
    found = list(decorated(page.read_text("utf-8")))
    for job in found:
        job.check(make_key=False)
    assert found or page not in PAGES or page.stem == "celery"
