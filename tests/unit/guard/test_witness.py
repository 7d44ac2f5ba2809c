"""Which pipes say that a process has ended, and which say nothing."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hustings.core.errors import BadInput
from hustings.guard import Holder
from hustings.guard import witness as module
from hustings.guard.witness import Pipe, Witness, end_of, has_ended, start_of, witness_folder
from tests.net.kit.loops import run

ADA = Holder("ada", 7)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HUSTINGS_LOCAL_DIR", str(tmp_path))
    return tmp_path


def a_pipe(process: int | None = None, start: int | None = None, machine: str = "") -> Pipe:
    """A pipe that no process has open."""
    folder = Path(witness_folder("lease"))
    folder.mkdir(parents=True, exist_ok=True)
    process = os.getpid() if process is None else process
    start = (start_of(process) or 0) if start is None else start
    path = folder / f"ada~7~{process}~{start}~{machine or module.this_machine()}.lease"
    os.mkfifo(path, 0o600)
    found = Pipe.of(str(path))
    assert found is not None
    return found


def gone() -> tuple[int, int]:
    """The number and the start of a process that has ended and is reaped."""
    process = subprocess.Popen(["true"])
    start = start_of(process.pid)
    process.wait()
    assert start is not None
    return process.pid, start


def found(lease: str = "lease") -> list[Pipe]:
    return Witness(lease).holders("ada")


# --- the others ----------------------------------------------------------------------------------


def test_a_pipe_that_nobody_has_open_says_nothing_as_long_as_its_process_lives() -> None:
    assert not has_ended(a_pipe())


def test_a_process_that_has_ended_and_left_its_pipe_has_ended() -> None:
    pipe = a_pipe(*gone())
    assert has_ended(pipe)
    assert run(end_of(pipe)) is True


def test_a_process_that_has_the_number_of_another_one_is_not_that_one() -> None:
    now = start_of(os.getpid())
    assert now is not None
    assert has_ended(a_pipe(start=now - 1)), "this process began after that one"


def test_a_zombie_has_ended() -> None:
    process = subprocess.Popen(["true"])
    try:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert has_ended(a_pipe(process.pid))
    finally:
        process.wait()


def test_a_stopped_process_has_not_ended() -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        process.send_signal(signal.SIGSTOP)
        assert not has_ended(a_pipe(process.pid))
    finally:
        process.kill()
        process.wait()


def test_a_pipe_that_is_open_elsewhere_says_nothing_whatever_its_process_does() -> None:
    pipe = a_pipe(*gone())
    other = os.open(pipe.path, os.O_RDWR | os.O_NONBLOCK)
    try:
        assert not has_ended(pipe)
    finally:
        os.close(other)
    assert has_ended(pipe)


def test_who_waits_is_told_when_the_last_one_has_closed_the_pipe() -> None:
    async def story() -> None:
        pipe = a_pipe(*gone())
        other = os.open(pipe.path, os.O_RDWR | os.O_NONBLOCK)
        waiting = asyncio.create_task(end_of(pipe))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        os.close(other)
        assert await waiting

    run(story())


def test_who_waits_is_told_nothing_when_the_pipe_was_withdrawn_meanwhile() -> None:
    async def story() -> None:
        pipe = a_pipe(*gone())
        other = os.open(pipe.path, os.O_RDWR | os.O_NONBLOCK)
        waiting = asyncio.create_task(end_of(pipe))
        await asyncio.sleep(0.05)
        os.unlink(pipe.path)
        os.close(other)
        assert not await waiting

    run(story())


def test_a_pipe_that_another_one_replaced_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = a_pipe(*gone())
    asked = module._is_abandoned

    def replaced(descriptor: int) -> bool:
        os.unlink(pipe.path)
        os.mkfifo(pipe.path, 0o600)
        return asked(descriptor)

    monkeypatch.setattr(module, "_is_abandoned", replaced)
    assert not has_ended(pipe)


def test_a_pipe_to_which_somebody_writes_says_nothing() -> None:
    async def story() -> None:
        pipe = a_pipe(*gone())
        other = os.open(pipe.path, os.O_RDWR | os.O_NONBLOCK)
        waiting = asyncio.create_task(end_of(pipe))
        await asyncio.sleep(0.05)
        os.write(other, b"xx")
        assert not await waiting
        os.close(other)

    run(story())


@pytest.mark.parametrize("kind", ["file", "link", "folder", "nothing"])
def test_only_a_pipe_says_anything(kind: str, tmp_path: Path) -> None:
    pipe = a_pipe(*gone())
    os.unlink(pipe.path)
    if kind == "file":
        Path(pipe.path).touch()
    elif kind == "link":
        os.mkfifo(tmp_path / "pipe")
        os.symlink(tmp_path / "pipe", pipe.path)
    elif kind == "folder":
        os.mkdir(pipe.path)
    assert not has_ended(pipe)
    assert run(end_of(pipe)) is False


def test_pipes_of_other_machines_and_process_namespaces_are_not_looked_at() -> None:
    here, there = a_pipe(*gone()), a_pipe(*gone(), machine="0" * 16)
    assert [each.path for each in found()] == [here.path]
    assert there.path not in [each.path for each in found()]


def test_a_process_in_another_process_namespace_is_another_machine() -> None:
    script = "from hustings.guard.witness import *; print(this_machine())"
    command = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    try:
        subprocess.run([*command, "true"], check=True, capture_output=True, timeout=30)
    except (FileNotFoundError, subprocess.CalledProcessError):
        command = []  # this system lets nobody make one; the name of the namespace must still count
    done = subprocess.run(
        [*command, sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert (done.stdout.strip() == module.this_machine()) is (command == [])


def test_the_name_of_the_machine_has_its_start_and_its_namespaces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = module.this_machine()
    inside = module._namespace
    for kind in ("pid", "time"):
        with monkeypatch.context() as patched:
            patched.setattr(
                module, "_namespace", lambda each, kind=kind: inside(each) + "x" * (each == kind)
            )
            assert module.this_machine() != ours


@pytest.mark.parametrize(
    "name",
    [
        "ada~7~12~34~0123456789abcdef",
        "ada~7~12~34~0123456789abcdeg.lease",
        "ada~7~12~34~0123456789abcdef0.lease",
        "ada~7~-12~34~0123456789abcdef.lease",
        "ada~7~12~0123456789abcdef.lease",
        "a a~7~12~34~0123456789abcdef.lease",
        f"{'a' * 65}~7~12~34~0123456789abcdef.lease",
        "~7~12~34~0123456789abcdef.lease",
    ],
)
def test_other_names_are_no_pipes(name: str) -> None:
    assert Pipe.of(name) is None


# --- this process --------------------------------------------------------------------------------


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test's process may have children."""
    monkeypatch.setattr(module, "has_children", lambda: False)


@pytest.fixture
def witness(alone: None) -> Witness:
    made = Witness("lease")
    assert made.attest(ADA) == ""
    return made


def test_others_see_the_pipe_and_it_goes_with_the_witness(witness: Witness) -> None:
    (pipe,) = found()
    assert (pipe.holder, pipe.process, pipe.start) == (ADA, os.getpid(), start_of(os.getpid()))
    assert stat.S_IMODE(os.stat(pipe.path).st_mode) == 0o600
    assert not has_ended(pipe)
    witness.close()
    assert not os.path.exists(os.path.dirname(pipe.path))


def test_of_a_lease_that_may_still_be_held_the_pipe_stays(witness: Witness) -> None:
    (pipe,) = found()
    witness.close(keep=True)
    assert found() == [pipe]
    assert not has_ended(pipe), "this process lives"


def by_fork() -> None:
    process = os.fork()
    if process == 0:
        os._exit(0)
    os.waitpid(process, 0)


def by_multiprocessing() -> None:
    process = multiprocessing.get_context("spawn").Process(target=id, args=(0,))
    process.start()
    process.join()


STARTS: dict[str, Callable[[], object]] = {
    "multiprocessing": by_multiprocessing,
    "subprocess": lambda: subprocess.run(["true"], check=True),
    "fork": by_fork,
    "system": lambda: os.system("true"),
    "posix_spawn": lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0),
    "spawn": lambda: os.spawnl(os.P_WAIT, "/bin/true", "true"),
}


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_a_process_that_is_started_makes_it_go_before(
    witness: Witness, start: Callable[[], object]
) -> None:
    (pipe,) = found()
    start()
    assert (witness.is_shown, found()) == (False, [])
    assert not has_ended(pipe)
    with witness.inherited() as kept:
        assert kept == ()
    witness.close()


def test_a_program_that_inherits_it_lets_it_be(witness: Witness) -> None:
    with witness.inherited() as kept:
        subprocess.run(["true"], pass_fds=kept, check=True)
    assert (witness.is_shown, len(found())) == (True, 1)
    subprocess.run(["true"], check=True)
    assert (witness.is_shown, found()) == (False, [])
    witness.close()


def test_a_task_that_began_meanwhile_has_no_leave_afterwards(witness: Witness) -> None:
    async def story() -> None:
        over = asyncio.Event()

        async def late() -> None:
            await over.wait()
            subprocess.run(["true"], check=True)

        with witness.inherited():
            task = asyncio.create_task(late())
            await asyncio.sleep(0)
        over.set()
        await task

    run(story())
    assert not witness.is_shown
    witness.close()


def test_a_program_is_not_started_if_the_pipe_cannot_go(
    witness: Witness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("read-only")

    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", refuse)
        with pytest.raises(OSError, match="read-only"):
            subprocess.run(["true"], check=True)
    assert witness.is_shown
    witness.close()


def test_where_a_child_lives_nothing_is_shown() -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        witness = Witness("lease")
        assert "has started others" in witness.attest(ADA)
        assert (witness.is_shown, found()) == (False, [])
    finally:
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        only = not module.has_children()  # a zombie does not count
        child.wait()
    assert only is not module.has_children()


def test_a_descriptor_that_is_another_file_now_is_not_passed_on(witness: Witness) -> None:
    with witness.inherited() as (descriptor,):
        pass
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, descriptor)
    with witness.inherited() as kept:
        assert kept == ()
    assert (witness.is_shown, found()) == (False, [])
    witness.close()
    os.fstat(descriptor)  # whose it is now, closes it
    os.close(descriptor)
    os.close(null)


def test_without_what_tells_processes_apart_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_supported", lambda: False)
    with pytest.raises(BadInput, match="does not tell when a process has ended"):
        Witness("lease").attest(ADA)


def test_a_folder_that_others_may_use_is_refused(alone: None) -> None:
    folder = Path(witness_folder("lease"))
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    with pytest.raises(BadInput, match="can be used by others than this user: run chmod 700"):
        Witness("lease").attest(ADA)


def test_sweeping_removes_old_pipes_of_ended_processes_alone(witness: Witness) -> None:
    gone_now, old, foreign = a_pipe(*gone()), a_pipe(*gone()), a_pipe(*gone(), machine="0" * 16)
    living = a_pipe(os.getppid())
    for each in (old, living, foreign):
        before = time.time() - 120
        os.utime(each.path, (before, before))
    witness.sweep()
    left = {each for each in (gone_now, old, foreign, living) if os.path.exists(each.path)}
    assert left == {gone_now, foreign, living}
    os.utime(foreign.path, (0, 0))
    witness.sweep()
    assert not os.path.exists(foreign.path)
    witness.close()
