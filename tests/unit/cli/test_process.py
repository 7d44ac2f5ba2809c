"""Commands as processes: interrupted, cut off by a pipe, on a narrow terminal."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hustings.cli.app import run
from hustings.extras import install_command
from hustings.protocols.registry import names
from tests.unit.cli.commands import COMMAND, PATIENCE

LONG = ("sim", "bully", "-n", "30", "--runs", "100000", "--jobs", "2")


def children_of(process: int) -> list[int]:
    """Processes that it started, its own children's too."""
    listed = subprocess.run(
        ["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    )
    parents = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
    found = [process]
    for known in found:
        found += [child for child, parent in parents if parent == known]
    return found[1:]


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until_gone(processes: list[int]) -> list[int]:
    deadline = time.monotonic() + PATIENCE
    while (left := [one for one in processes if alive(one)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A shell starts what runs in the background deaf to Ctrl-C, and so would be our children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@contextmanager
def started(*arguments: str, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """A command in a session of its own, of which nothing is left afterwards."""
    with subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as command:
        try:
            yield command
        finally:
            with suppress(ProcessLookupError):
                os.killpg(command.pid, signal.SIGKILL)


def workers_of(command: int) -> list[int]:
    """Its processes, once there are as many as it will start: two workers and their tracker."""
    deadline = time.monotonic() + PATIENCE
    while len(found := children_of(command)) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(found) == 3
    return found


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("whole_group", [True, False], ids=["Ctrl-C", "kill -INT"])
@pytest.mark.parametrize("working", [0.0, 1.5], ids=["at once", "at work"])
def test_an_interrupt_ends_everything(whole_group: bool, working: float, tmp_path: Path) -> None:
    """A terminal's Ctrl-C reaches the workers too; `kill` reaches only the command itself."""
    with started(*LONG, "--trace", "run.jsonl", cwd=tmp_path) as command:
        workers = workers_of(command.pid)
        time.sleep(working)
        (os.killpg if whole_group else os.kill)(command.pid, signal.SIGINT)
        out, err = command.communicate(timeout=PATIENCE)
        assert wait_until_gone(workers) == []
    assert (command.returncode, out, err) == (130, "", "hustings: interrupted\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    ["protocols", "protocols --markdown", "sim bully -n 60 --json", "compare -n 64", "--help"],
)
def test_a_reader_that_has_seen_enough_is_no_error(arguments: str) -> None:
    """The pipe is closed before anything is written, so that the first write meets it."""
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen(
        [*COMMAND, *arguments.split()], stdout=writer, stderr=subprocess.PIPE, text=True
    ) as command:
        os.close(writer)
        _, err = command.communicate(timeout=PATIENCE)
    assert (command.returncode, err) == (0, "")


WRITERS = [
    "protocols",
    "sim bully -n 5",
    "sim bully -n 5 --json",
    "compare -n 8",
    "--help",
    "keygen",
]


@pytest.mark.parametrize("arguments", WRITERS)
@pytest.mark.parametrize(
    "where, why", [(">/dev/full", "No space left on device"), (">&-", "it is closed")]
)
def test_output_that_is_lost_is_said_to_be_lost(arguments: str, where: str, why: str) -> None:
    """A script that goes on with an empty file must not be told that all went well."""
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {where}', "sh", *COMMAND, *arguments.split()],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    lost = f"hustings: cannot write to standard output: {why}\n"
    assert (done.returncode, done.stderr) == (2, lost)


@pytest.mark.parametrize("closed", ["2>&-", "<&-", "<&- 2>&-", "2>/dev/full"])
def test_a_command_needs_its_standard_output_only(closed: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND, "sim", "bully", "-n", "5"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0
    assert "election_messages" in done.stdout


def test_a_note_that_nobody_can_read_fails_no_check() -> None:
    """This election gets a note, which a full disk does not take."""
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" 2>/dev/full', "sh", *COMMAND, "sim", "le-s", "--check"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0
    assert "validity" in done.stdout


def test_a_sentence_that_nobody_can_read_leaves_the_exit_code() -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" 2>/dev/full', "sh", *COMMAND, "sim", "nothing-like-it"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 2


def test_what_is_opened_later_does_not_become_standard_output() -> None:
    """With descriptor 1 free, the first file or socket would get it, and our text with it."""
    look = (
        "import sys; from hustings.cli import prepare_streams; prepare_streams(); "
        "sys.exit(0 if open('/dev/null').fileno() > 2 else 1)"
    )
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&- <&-', "sh", sys.executable, "-c", look], check=False
    )
    assert done.returncode == 0


def test_an_exit_code_of_somebody_else_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """`SystemExit` may come from a plug-in; 0 would say that a check has passed."""

    def leave(**options: object) -> None:
        raise SystemExit(3)

    monkeypatch.setattr("hustings.cli.adversaries.adversaries.callback", leave)
    with pytest.raises(SystemExit) as left:
        run(["adversaries"])
    assert left.value.code == 3


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("after", [0.1, 0.2, 0.3, 0.5])
def test_an_interrupt_while_modules_load_is_no_traceback(after: float, tmp_path: Path) -> None:
    """From the first line of `main` on: `site` and the interpreter itself come before that."""
    begin = f"import sys, os; sys.argv = ['hustings', *{LONG!r}]; from hustings.cli import main; "
    with subprocess.Popen(
        [sys.executable, "-c", begin + "os.write(1, b'x'); main()"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        assert command.stdout is not None
        assert command.stdout.read(1) == "x"
        time.sleep(after)
        command.send_signal(signal.SIGINT)
        _, err = command.communicate(timeout=PATIENCE)
    # Once the command has begun, click ends the line that it may have been writing.
    assert (command.returncode, err.removeprefix("\n")) == (130, "hustings: interrupted\n")


INTERRUPTED_AT = """
import os, runpy, signal, sys
class Ctrl_C:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Ctrl_C())
sys.argv = ["hustings", "sim", "bully"]
runpy.run_module("hustings", run_name="__main__")
"""


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(
    "module",
    [
        "hustings._version",
        "hustings.cli",
        "hustings.cli.options",
        "hustings.cli.app",
        "hustings.cli.sim",
        "hustings.sim.scenarios",
    ],
)
def test_an_interrupt_at_any_import_of_ours_is_no_traceback(module: str) -> None:
    """From the first import on: the interpreter's own beginning, and `signal`, come before."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT.format(module=module)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "hustings: interrupted\n")


def on_terminal(columns: int, *arguments: str) -> str:
    """What a terminal of that width is sent."""
    parent, child = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "LINES": "24", "TERM": "dumb"}
    with subprocess.Popen(
        [*COMMAND, *arguments], stdin=child, stdout=child, stderr=child, env=environment
    ) as command:
        os.close(child)
        shown = b""
        while chunk := _read(parent):
            shown += chunk
    os.close(parent)
    assert command.returncode == 0
    return shown.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that nobody writes any more
        return b""


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_a_table_keeps_all_columns_on_any_terminal(columns: int) -> None:
    shown = on_terminal(columns, "sim", "bully", "-n", "5", "--runs", "2")
    for word in ("election_messages", "messages", "leader", "stderr", "p50", "p99", "max"):
        assert word in shown
    shown = on_terminal(columns, "protocols")
    for name in names():
        assert name in shown


def test_where_the_terminal_is_wide_enough_lines_fit() -> None:
    for line in on_terminal(100, "sim", "bully", "-n", "5", "--runs", "2").splitlines():
        assert len(line.rstrip()) <= 100


def test_without_the_packages_it_needs_the_command_says_so(tmp_path: Path) -> None:
    hide = "import sys; sys.modules['click'] = None; from hustings.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", hide], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == f"hustings: the command line needs click: {install_command('cli')}\n"


def test_a_command_says_so_too_when_it_lacks_a_package() -> None:
    hide = "import sys; sys.modules['rich'] = None; from hustings.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", hide, "protocols"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == f"hustings: the command line needs rich: {install_command('cli')}\n"


@pytest.mark.parametrize(
    "arguments, foreign",
    [
        (["--version"], ("asyncio", "msgspec", "rich", "hustings.net", "hustings.sim")),
        (["leader", "--agent", "http://127.0.0.1:9"], ("asyncio", "hustings.lab", "hustings.sim")),
        (["sim", "bully"], ("asyncio", "numpy", "hustings.net", "hustings.explore")),
        (["run", "--help"], ("hustings.lab", "hustings.sim", "hustings.explore")),
    ],
)
def test_a_command_loads_nothing_that_only_others_need(
    arguments: list[str], foreign: tuple[str, ...]
) -> None:
    """Processes start often: a shell's prompt, a health check, each command of a script."""
    code = (
        "import json, sys\nfrom hustings.cli.app import run\n"
        "run(sys.argv[1:])\nprint(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    assert not set(json.loads(done.stdout.splitlines()[-1])) & set(foreign)
