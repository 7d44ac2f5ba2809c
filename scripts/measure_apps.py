"""How long nobody runs the job of a web service when its leading worker goes, and how often two do.

    python -m scripts.measure_apps                              every setup, 5 rounds of each way
    python -m scripts.measure_apps fastapi gunicorn-sync --rounds 10 --ways kill stop
    python -m scripts.measure_apps --store     keep the rows, and write them into the guide

Each setup is an example in examples/apps, started as its page says, as real processes. Its job
writes a line every 10 ms: the time, by the clock that all processes of a machine share, the
process, the term. Celery's beats send a message every 50 ms, which a worker writes down. In each
round the leading worker gets SIGKILL (`kill`) or SIGTERM (`stop`), or the server gets SIGHUP and
exchanges all its workers (`reload`), or the server gets SIGTERM and ends with all its workers
(`end`). Then the lines tell:

gap         from the last line of the old leader to the first line of the new one; of a reload the
            longest silence; of an end how long the job went on after the signal
duplicates  lines of a process that were written after the first line of its successor
starts      how often the job began beyond what was needed, of an end in other workers than the one
            that led: 0 is right
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.guard.engines import started

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples" / "apps"
STORED = ROOT / "docs" / "frameworks.json"
PAGE = ROOT / "docs" / "guide" / "18-frameworks.md"
TABLE = re.compile(
    r"(?<=<!-- python -m scripts.measure_apps --store -->\n).*?(?=<!-- end -->)", re.S
)
PATIENCE_S = 60.0
PERIOD_S = 0.010
SETTLED_S = 0.3  # after the new leader's first line: time for a second start, or a second leader

WAYS = ("kill", "stop", "reload", "end")


@dataclass(frozen=True)
class Setup:
    """An example, and how it is started. A server starts its workers; else there are copies."""

    title: str
    command: tuple[str, ...]
    copies: int = 0  # processes that are started side by side; 0: one server with its workers
    workers: int = 4
    ways: tuple[str, ...] = ("kill", "stop")
    code: int = 0  # with which it exits on SIGTERM
    beside: tuple[str, ...] = ()  # a process that is started once, and never killed
    broker: bool = False  # SHOP_BROKER is a Valkey
    guarded: bool = False  # SHOP_GUARD is the same one
    period_s: float = PERIOD_S
    environment: str = ""  # a folder with another one than that of this process

    def with_workers(self, workers: int) -> Setup:
        """The same with another number of workers: fewer of them start sooner."""
        if self.copies:
            return self
        place = self.command.index("--workers") + 1
        command = (*self.command[:place], str(workers), *self.command[place + 1 :])
        return replace(self, command=command, workers=workers)


_UVICORN = ("-m", "uvicorn", "--host", "127.0.0.1", "--port", "{port}")
_GUNICORN = ("-m", "gunicorn", "--bind", "127.0.0.1:{port}", "--workers", "4")
_BEAT = ("-m", "celery", "-A", "celery_app", "beat", "-l", "INFO")
_WORKER = ("-m", "celery", "-A", "celery_app", "worker", "-P", "solo", "-l", "WARNING")
_ALL = ("kill", "stop", "reload", "end")

SETUPS: dict[str, Setup] = {
    "fastapi": Setup(
        "FastAPI, `uvicorn --workers 4`",
        (*_UVICORN, "fastapi_app:app", "--workers", "4"),
        ways=_ALL,
    ),
    "starlette": Setup(
        "Starlette, `uvicorn --workers 4`",
        (*_UVICORN, "starlette_app:app", "--workers", "4"),
        ways=_ALL,
    ),
    "gunicorn-sync": Setup(
        "Flask, `gunicorn --workers 4`",
        (*_GUNICORN, "-c", "gunicorn_conf.py", "flask_app:app"),
        ways=_ALL,
    ),
    "gunicorn-threads": Setup(
        "Flask, `gunicorn --workers 4 --threads 4`",
        (*_GUNICORN, "--threads", "4", "-c", "gunicorn_conf.py", "flask_app:app"),
        ways=_ALL,
    ),
    "gunicorn-preload": Setup(
        "Flask, `gunicorn --workers 4 --preload`",
        (*_GUNICORN, "--preload", "-c", "gunicorn_conf.py", "flask_app:app"),
        ways=_ALL,
    ),
    "gunicorn-uvicorn": Setup(
        "FastAPI, `gunicorn --workers 4 -k uvicorn_worker.UvicornWorker`",
        (*_GUNICORN, "-k", "uvicorn_worker.UvicornWorker", "fastapi_app:app"),
        ways=_ALL,
    ),
    "django": Setup(
        "Django, `manage.py hustings_jobs`, three times",
        ("manage.py", "hustings_jobs"),
        copies=3,
        code=128 + signal.SIGTERM,
    ),
    "django-gunicorn": Setup(
        "Django, `gunicorn --workers 4`",
        (*_GUNICORN, "django_shop.wsgi:application"),
        ways=_ALL,
    ),
    "django-uvicorn": Setup(
        "Django, `uvicorn --workers 4`",
        (*_UVICORN, "django_shop.asgi:application", "--workers", "4"),
        ways=_ALL,
    ),
    "celery": Setup(
        "Celery, `celery beat` three times",
        _BEAT,
        copies=3,
        beside=_WORKER,
        broker=True,
        period_s=0.050,
    ),
    "celery-guard": Setup(
        "Celery, `celery beat` three times, a Valkey as guard with `ttl` 1 s",
        _BEAT,
        copies=3,
        beside=_WORKER,
        broker=True,
        period_s=0.050,
        guarded=True,
    ),
    "apscheduler": Setup(
        "APScheduler 3, three times",
        ("apscheduler_app.py",),
        copies=3,
        code=128 + signal.SIGTERM,
    ),
    "apscheduler4": Setup(
        "APScheduler 4 (4.0.0a6), three times",
        ("apscheduler4_app.py",),
        copies=3,
        code=128 + signal.SIGTERM,
        environment=".venv-apscheduler4",
    ),
    "flask-threads": Setup(
        "Flask's own server with threads, three times",
        ("flask_app.py", "{port}"),
        copies=3,
        ways=("kill",),
        code=-signal.SIGTERM,  # it does not look at it
    ),
    "asyncio": Setup(
        "an `asyncio` program, three times",
        ("asyncio_app.py",),
        copies=3,
        code=128 + signal.SIGTERM,
    ),
    "threads": Setup("a program with threads, three times", ("threads_app.py",), copies=3),
}


# What is written down


@dataclass(frozen=True)
class Line:
    """One line of the journal."""

    at: float
    process: int
    term: int

    @classmethod
    def read(cls, text: str) -> Line:
        """Read a line that `examples/apps/shop.py` has written."""
        at, process, term, _ = text.split()
        return cls(float(at), int(process), int(term))


@dataclass(frozen=True)
class Round:
    """What happened when the leader went."""

    way: str
    gap_s: float
    duplicates: int
    starts: int  # beyond one


def judged(way: str, lines: Sequence[Line]) -> Round:
    """What the lines of one round say, from the last one of the old leader on.

    >>> lines = [Line(0.0, 1, 1), Line(0.1, 1, 1), Line(0.4, 2, 2), Line(0.45, 1, 1)]
    >>> judged("kill", lines)
    Round(way='kill', gap_s=0.3, duplicates=1, starts=0)
    """
    in_order = sorted(lines, key=lambda line: line.at)
    gap = max(later.at - line.at for line, later in pairwise(in_order))
    runs: dict[tuple[int, int], list[float]] = {}
    for line in in_order:
        runs.setdefault((line.process, line.term), []).append(line.at)
    begun = sorted(runs.values(), key=lambda times: times[0])
    duplicates = sum(
        sum(1 for at in times if at > begun[place + 1][0]) for place, times in enumerate(begun[:-1])
    )
    processes = len({line.process for line in in_order})
    return Round(way, round(gap, 4), duplicates, len(runs) - processes)


# Processes


def free_port() -> int:
    """A port on loopback that is free at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Wait until a condition holds; afterwards it is too late."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {PATIENCE_S:g} s in vain: {what}")
        time.sleep(0.01)


@dataclass
class Running:
    """The processes of a setup, and what they have written."""

    setup: Setup
    folder: Path
    environment: dict[str, str]
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def journal(self) -> Path:
        """Where the jobs write."""
        return self.folder / "journal"

    def lines(self, after: float = 0.0) -> list[Line]:
        """What the jobs wrote after a time."""
        if not self.journal.exists():
            return []
        whole = self.journal.read_text("ascii").rpartition("\n")[0]
        lines = (Line.read(text) for text in whole.splitlines())
        return [line for line in lines if line.at > after]

    def log(self) -> str:
        """What the processes printed."""
        return (self.folder / "log").read_text("utf-8", "replace")

    def start(self) -> None:
        """Start one more process."""
        self.processes.append(self.popen(self.setup.command))

    def popen(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a process that is not one of those."""
        words = [word.format(port=free_port()) for word in command]
        own = self.setup.environment
        python = str(ROOT / own / "bin" / "python") if own else sys.executable
        if not Path(python).exists():
            raise TimeoutError(f"{own} is not there: make venv")
        with open(self.folder / "log", "ab") as log:
            return subprocess.Popen(
                [python, *words],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def members(self) -> set[int]:
        """The processes of the group's members: their files are locked."""
        files = (self.folder / "members").rglob("*.member")
        return {process for file in files if (process := _process_of(file)) is not None}

    def complete(self) -> None:
        """Wait until all workers are there, and one of them runs the job."""
        for process in [each for each in self.processes if each.poll() is not None]:
            self.processes.remove(process)
            self.start()  # in the place of one that is gone
        wanted = self.setup.copies or self.setup.workers
        wait_until(lambda: len(self.members()) == wanted, f"{wanted} members")
        now = time.monotonic()
        wait_until(lambda: self.lines(now), "a line of the job")

    def round(self, way: str) -> Round:
        """Let the leading worker go, and see who comes after it."""
        if way == "end":
            return self._whole_end()
        last = self.lines()[-1]
        old = self.members() if way == "reload" else {last.process}
        if way == "reload":
            self.processes[0].send_signal(signal.SIGHUP)
            wait_until(lambda: not old & self.members(), "new workers")
        else:
            os.kill(last.process, signal.SIGKILL if way == "kill" else signal.SIGTERM)
        wait_until(lambda: self.lines()[-1].process not in old, "a new leader")
        time.sleep(SETTLED_S)
        found = judged(way, self.lines(last.at - self.setup.period_s))
        for process in self.processes:
            if process.pid == last.process:
                process.wait(PATIENCE_S)
        return found

    def _whole_end(self) -> Round:
        """End the server with all its workers, and see which of them runs the job meanwhile."""
        leader, told = self.lines()[-1].process, time.monotonic()
        self.processes[0].send_signal(signal.SIGTERM)
        self.processes[0].wait(PATIENCE_S)
        lines = self.lines(told)
        others = {(line.process, line.term) for line in lines if line.process != leader}
        last = max((line.at for line in lines), default=told)
        return Round("end", round(last - told, 4), 0, len(others))

    def end(self) -> list[int]:
        """End all that run, in good order; their exit codes."""
        ended = [process for process in self.processes if process.poll() is None]
        for process in ended:
            process.send_signal(signal.SIGTERM)
        return [process.wait(PATIENCE_S) for process in ended]


def _process_of(file: Path) -> int | None:
    """The process of a member that lives; None if it is gone."""
    try:
        descriptor = os.open(file, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return int(json.loads(os.read(descriptor, 4096))["process"])
    finally:
        os.close(descriptor)
    return None


@contextmanager
def running(setup: Setup, folder: Path) -> Iterator[Running]:
    """Start an example; nothing of it is left afterwards."""
    for file in EXAMPLES.rglob("*.py"):
        place = folder / file.relative_to(EXAMPLES)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)
    kept = {name: text for name, text in os.environ.items() if not name.startswith("HUSTINGS_")}
    environment = {
        **kept,
        "HUSTINGS_LOCAL_DIR": str(folder / "members"),
        "HOME": str(folder),
        "XDG_STATE_HOME": str(folder / "state"),
        "SHOP_JOURNAL": str(folder / "journal"),
        "SHOP_PERIOD": f"{setup.period_s * 1000:g}ms",
        "PYTHONUNBUFFERED": "1",
    }
    with ExitStack() as stack:
        if setup.broker:
            broker = stack.enter_context(started("valkey"))
            environment["SHOP_BROKER"] = (
                broker.url().replace("valkey://", "redis://").partition("?")[0]
            )
            if setup.guarded:
                environment["SHOP_GUARD"] = broker.url()
        app = Running(setup, folder, environment)
        if setup.beside:
            stack.callback(_kill, app.popen(setup.beside))
        try:
            for _ in range(setup.copies or 1):
                app.start()
            yield app
        finally:
            for process in app.processes:
                _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(PATIENCE_S)


# The table


def measured(setup: Setup, ways: Sequence[str], rounds: int) -> list[Round]:
    """Play the rounds of one setup."""
    with tempfile.TemporaryDirectory() as name, running(setup, Path(name)) as app:
        found = []
        try:
            for way in ways:
                for _ in range(rounds):
                    app.complete()
                    found.append(app.round(way))
                    if found[-1].duplicates or found[-1].starts:
                        print(f"{found[-1]}\n{app.log()[-4000:]}", file=sys.stderr)
        except TimeoutError as error:
            raise SystemExit(f"{setup.title}: {error}\n{app.log()[-4000:]}") from None
        return found


def row(name: str, rounds: Sequence[Round], way: str) -> dict[str, Any]:
    """One row of the table."""
    chosen = [each for each in rounds if each.way == way]
    gaps = [each.gap_s for each in chosen]
    return {
        "setup": name,
        "title": SETUPS[name].title,
        "way": way,
        "rounds": len(chosen),
        "duplicates": sum(each.duplicates for each in chosen),
        "starts": sum(each.starts for each in chosen),
        "gap_median_ms": round(1000 * statistics.median(gaps)),
        "gap_longest_ms": round(1000 * max(gaps)),
    }


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """The table of the guide: one line for each setup, the gap of each way in milliseconds."""
    lines = [
        "| setup | rounds | duplicates | started again | killed | stopped | reloaded | ended |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(row["setup"] for row in rows):
        own = {row["way"]: row for row in rows if row["setup"] == name}
        title = next(iter(own.values()))["title"]
        ended = own.pop("end", None)
        gaps = [
            f"{own[way]['gap_median_ms']} ({own[way]['gap_longest_ms']}) ms" if way in own else ""
            for way in WAYS[:-1]
        ]
        gaps.append("" if ended is None else f"{ended['starts']} of {ended['rounds']}")
        rounds = sum(row["rounds"] for row in own.values())
        double, again = (
            sum(row[what] for row in own.values()) for what in ("duplicates", "starts")
        )
        lines.append(f"| {title} | {rounds} | {double} | {again} | {' | '.join(gaps)} |")
    return "\n".join(lines) + "\n"


def stored() -> list[dict[str, Any]]:
    """The rows that were kept, in the order of the setups."""
    rows = json.loads(STORED.read_text("utf-8"))["rows"] if STORED.exists() else []
    order = list(SETUPS)
    return sorted(
        (row for row in rows if row["setup"] in SETUPS),
        key=lambda row: (order.index(row["setup"]), WAYS.index(row["way"])),
    )


def store(rows: Sequence[dict[str, Any]]) -> None:
    """Keep new rows in the place of old ones, and write the table of the guide."""
    new = {(row["setup"], row["way"]) for row in rows}
    kept = [row for row in stored() if (row["setup"], row["way"]) not in new]
    STORED.write_text(json.dumps({"rows": [*kept, *rows]}, indent=1) + "\n", "utf-8")
    STORED.write_text(json.dumps({"rows": stored()}, indent=1) + "\n", "utf-8")
    text = PAGE.read_text("utf-8")
    PAGE.write_text(TABLE.sub(lambda _: f"\n{markdown(stored())}\n", text), "utf-8")


def main() -> None:
    """Print a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.formatter_class = argparse.RawDescriptionHelpFormatter
    options.add_argument("setups", nargs="*", metavar="SETUP", help=f"of {', '.join(SETUPS)}")
    options.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--json", action="store_true", help="one JSON object on stdout")
    options.add_argument(
        "--store", action="store_true", help=f"in docs/{STORED.name} and the guide"
    )
    asked = options.parse_args()
    unknown = set(asked.setups) - set(SETUPS)
    if unknown:
        options.error(f"no setup {', '.join(sorted(unknown))}: choose from {', '.join(SETUPS)}")
    if asked.rounds < 1:
        options.error(f"--rounds {asked.rounds}: at least 1")
    rows = []
    for name in asked.setups or SETUPS:
        ways = [way for way in SETUPS[name].ways if way in asked.ways]
        print(f"measure_apps: {name}: {asked.rounds} x {' '.join(ways)}", file=sys.stderr)
        rounds = measured(SETUPS[name], ways, asked.rounds)
        rows += [row(name, rounds, way) for way in ways]
    if asked.store:
        store(rows)
    print(json.dumps({"rows": rows}, indent=1) if asked.json else markdown(rows), end="")


if __name__ == "__main__":
    main()
