"""`hustings.django`: which jobs are found, what command and check say, what a run leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts.measure_apps import wait_until

SETTINGS = """
SECRET_KEY = "only-a-test"
INSTALLED_APPS = ["hustings.django", {apps}]
DATABASES = {{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": "data"}}}}
"""

JOB = """
import hustings

@hustings.once("{group}", every="10ms")
def {name}(term):
    with open("{name}", "a") as file:
        print(term.number, file=file)
"""


@dataclass(frozen=True)
class Project:
    """A Django project in a folder, one process after the other."""

    folder: Path

    def write(self, **jobs: str) -> None:
        """Make the project, with one application for each text of its module `jobs`."""
        for name, text in jobs.items():
            (self.folder / name).mkdir()
            (self.folder / name / "__init__.py").touch()
            (self.folder / name / "jobs.py").write_text(textwrap.dedent(text), "utf-8")
        apps = ", ".join(f'"{name}"' for name in jobs)
        (self.folder / "settings.py").write_text(SETTINGS.format(apps=apps), "utf-8")

    def start(self, *words: str) -> subprocess.Popen[str]:
        kept = {name: text for name, text in os.environ.items() if not name.startswith("HUSTINGS_")}
        places = {
            "HUSTINGS_LOCAL_DIR": str(self.folder / "members"),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "DJANGO_SETTINGS_MODULE": "settings",
            "PYTHONPATH": str(self.folder),
        }
        return subprocess.Popen(
            [sys.executable, "-m", "django", *words],
            cwd=self.folder,
            env={**kept, **places},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str) -> tuple[int, str, str]:
        process = self.start(*words)
        out, errors = process.communicate(timeout=60)
        return process.returncode, out, errors

    def lines(self, name: str) -> int:
        file = self.folder / name
        return len(file.read_text("ascii").splitlines()) if file.exists() else 0


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_the_command_runs_the_jobs_of_all_applications(project: Project) -> None:
    project.write(
        billing=JOB.format(group="bills", name="bills"), post=JOB.format(group="mail", name="mail")
    )
    process = project.start("hustings_jobs")
    try:
        wait_until(lambda: project.lines("bills") and project.lines("mail"), "both jobs")
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 128 + signal.SIGTERM, errors
    assert "leads in term" in errors
    assert errors.count("this member le") == 2  # leaves, or left
    assert "Traceback" not in errors
    assert out == ""


def test_the_command_runs_one_group_and_ends_when_its_job_has_finished(project: Project) -> None:
    once = """
        import hustings

        @hustings.once("bills")
        def bills(term):
            open("bills", "w").write("1")
    """
    project.write(billing=once, post=JOB.format(group="mail", name="mail"))
    code, out, errors = project.run("hustings_jobs", "bills", "--verbosity=0")
    assert (code, out, errors) == (0, "", "")
    assert project.lines("bills") == 1
    assert project.lines("mail") == 0


def test_the_command_lists_the_jobs_and_starts_nothing(project: Project) -> None:
    """A job that one application imports from another is one job."""
    project.write(billing=JOB.format(group="bills", name="send"), post="from billing.jobs import *")
    assert project.run("hustings_jobs", "--list") == (0, "bills  billing.jobs.send\n", "")
    assert not (project.folder / "members").exists()
    assert not (project.folder / "state").exists()


def test_a_job_that_fails_ends_the_command_with_its_error(project: Project) -> None:
    failing = """
        import hustings

        @hustings.once("bills", restart="never")
        async def bills(term):
            raise ValueError("no paper")
    """
    project.write(billing=failing)
    code, _, errors = project.run("hustings_jobs")
    assert code == 1
    assert "CommandError: a job is over: ValueError: no paper" in errors


@pytest.mark.parametrize(
    "jobs, words, said",
    [
        ({}, [], "no installed application has a job"),
        ({"a": "import os"}, [], "no installed application has a job"),
        ({"a": JOB.format(group="x", name="x")}, ["y"], "no job has the group 'y': the groups are"),
        (
            {"a": JOB.format(group="x", name="x"), "b": JOB.format(group="x", name="y")},
            [],
            "x and y are two jobs of group 'x'",
        ),
        ({"a": JOB.format(group="x", name="x").replace("10ms", "5 apples")}, [], "5 apples"),
        (
            {"a": JOB.format(group="x", name="x").replace('"10ms"', '"1s", seeds=["no address"]')},
            [],
            "no address",
        ),
    ],
)
def test_what_cannot_run_gets_one_sentence(
    project: Project, jobs: dict[str, str], words: list[str], said: str
) -> None:
    project.write(**jobs)
    code, out, errors = project.run("hustings_jobs", *words)
    assert (code, out) == (2, "")
    assert said in errors
    assert errors.startswith("CommandError: ")
    assert len(errors.splitlines()) == 1
    assert not (project.folder / "members").exists()


def test_the_check_tells_of_jobs_that_cannot_run(project: Project) -> None:
    project.write(a=JOB.format(group="x", name="x"), b=JOB.format(group="x", name="y"))
    code, _, errors = project.run("check")
    assert code == 1
    assert "(hustings.E001) x and y are two jobs of group 'x'" in errors
    (project.folder / "b" / "jobs.py").unlink()
    assert project.run("check") == (0, "System check identified no issues (0 silenced).\n", "")
    (project.folder / "a" / "jobs.py").write_text("import os", "utf-8")
    code, _, errors = project.run("check")
    assert code == 0
    assert "(hustings.W001) no installed application has a job" in errors
    assert not (project.folder / "members").exists()
    assert not (project.folder / "state").exists()


@pytest.mark.parametrize(
    "options, said",
    [
        ('seeds=["no address"]', "x: seed 'no address' names no host"),
        ('guard="no-such-engine://127.0.0.1"', "x: unknown guard 'no-such-engine'"),
        ('key="gone.key"', "x: cannot read key file gone.key"),
    ],
)
def test_the_check_tells_of_wrong_options_and_makes_nothing(
    project: Project, options: str, said: str
) -> None:
    wrong = JOB.format(group="x", name="x").replace('"10ms"', f'"10ms", {options}')
    guarded = JOB.format(group="y", name="y").replace('"10ms"', '"10ms", guard="redis://127.0.0.1"')
    project.write(a=wrong, b=guarded)
    before = set(project.folder.rglob("*"))
    code, _, errors = project.run("check")
    assert code == 1
    assert f"(hustings.E002) {said}" in errors
    assert "identified 1 issue" in errors
    made = {path for path in project.folder.rglob("*") if "__pycache__" not in path.parts}
    assert made == before


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_no_run_keeps_a_database_connection(project: Project, kind: str) -> None:
    """Each run has a fresh one, since the project keeps connections for no time."""
    looked = "seen()" if kind == "def" else "await sync_to_async(seen)()"
    project.write(
        billing=f"""
        import hustings
        from asgiref.sync import sync_to_async
        from django.db import connection

        kept = []

        def seen():
            connection.cursor()
            kept.append(connection.connection)  # so that no two have one place in memory
            assert len(set(map(id, kept))) == len(kept), "a connection of an earlier run"
            with open("runs", "a") as file:
                print("run", file=file)

        @hustings.once("bills", every="10ms", restart="never")
        {kind} bills(term):
            {looked}
        """
    )
    process = project.start("hustings_jobs")
    try:
        wait_until(lambda: project.lines("runs") > 3 or process.poll() is not None, "runs")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert "an earlier run" not in errors
    assert project.lines("runs") > 3, errors
