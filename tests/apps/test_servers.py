"""One of several processes runs the job: killed, stopped, reloaded, on the real servers."""

from __future__ import annotations

import dataclasses
import signal
from pathlib import Path

import pytest

from scripts.measure_apps import SETUPS, wait_until
from tests.apps.played import ends_well, nobody_twice, served

# Every change is tried with what it costs least to start; `make soak` has the rest.
PLAYED = [
    ("starlette", ["kill", "stop", "reload"]),
    ("fastapi", ["kill"]),
    ("gunicorn-sync", ["kill", "stop"]),
    ("gunicorn-preload", ["kill", "reload"]),
    ("gunicorn-uvicorn", ["kill", "stop"]),
    ("django", ["kill", "stop"]),
    ("django-gunicorn", ["kill", "stop"]),
    ("django-uvicorn", ["kill", "reload"]),
    ("celery", ["kill", "stop"]),
    ("celery-guard", ["kill", "stop"]),
    ("apscheduler", ["kill", "stop"]),
    ("apscheduler4", ["kill", "stop"]),
    ("asyncio", ["kill", "stop"]),
    ("threads", ["kill", "stop"]),
    ("flask-threads", ["kill"]),
]
# That no other worker begins while all are told to end is a matter of milliseconds: `test_asgi.py`
# has what makes it so.
SOAKED = [
    (name, sorted(setup.ways * 3, key=lambda way: way != "end")) for name, setup in SETUPS.items()
]


@pytest.mark.parametrize(
    "name, ways",
    [
        *PLAYED,
        *(pytest.param(*each, marks=pytest.mark.soak, id=f"soak-{each[0]}") for each in SOAKED),
    ],
)
def test_one_worker_runs_the_job(name: str, ways: list[str], tmp_path: Path) -> None:
    with served(SETUPS[name].with_workers(2), tmp_path) as app:
        rounds = []
        for way in ways:
            app.complete()
            rounds.append(app.round(way))
        nobody_twice(rounds)
        assert [each for each in rounds if each.way == "end" and each.starts] == []
        ends_well(app)


def test_a_server_that_reloads_its_code_goes_on_with_the_job(tmp_path: Path) -> None:
    setup = SETUPS["starlette"].with_workers(1)
    command = (*setup.command, "--reload")
    with served(dataclasses.replace(setup, command=command), tmp_path) as app:
        app.complete()
        before = app.lines()[-1].process
        source = tmp_path / "starlette_app.py"
        program = source.read_text("utf-8")

        def noticed() -> bool:
            # Once more, until it is noticed: a server that has just started may not look yet.
            source.write_text(program + "\n# changed\n", "utf-8")
            return "detected changes" in app.log()

        wait_until(noticed, "that the change is noticed")
        wait_until(lambda: app.lines()[-1].process != before, "a line of the new process")
        processes = [line.process for line in app.lines()]
        assert processes == sorted(processes, key=lambda process: process != before)
        ends_well(app)


def test_a_job_that_begins_before_the_fork_stays_in_the_master(tmp_path: Path) -> None:
    """With --preload the module runs once: no worker has the master's job, or doubles it."""
    (tmp_path / "loaded_once.py").write_text(
        "from flask_app import app, send_invoices\n\nsend_invoices.start()\n", "utf-8"
    )
    command = ("-m", "gunicorn", "--bind", "127.0.0.1:{port}", "--workers", "2", "--preload")
    setup = dataclasses.replace(
        SETUPS["gunicorn-preload"], command=(*command, "loaded_once:app"), workers=1
    )
    with served(setup, tmp_path) as app:
        app.complete()
        wait_until(lambda: app.log().count("Booting worker") == 2, "two workers")
        app.processes[0].send_signal(signal.SIGHUP)  # new workers are forked, beside the job
        wait_until(lambda: app.log().count("Booting worker") == 4, "two more workers")
        last = app.lines()[-1].at
        wait_until(lambda: app.lines(last), "a further line")
        assert {line.process for line in app.lines()} == {app.processes[0].pid}
        ends_well(app)


def test_the_beats_inside_workers_are_one_group(tmp_path: Path) -> None:
    worker = ("-m", "celery", "-A", "celery_app", "worker", "-B", "-c", "1", "-l", "INFO")
    setup = dataclasses.replace(
        SETUPS["celery"], command=(*worker, "-n", "w{port}@%h"), beside=(), copies=2
    )
    with served(setup, tmp_path) as app:
        app.complete()
        # The worker goes on without its beat. Two workers take messages in no order.
        assert app.round("kill").gap_s < 2.0
        assert set(app.end()) == {0}
