"""Output files are there whole or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hustings.core.errors import BadInput
from hustings.sim.files import AtomicFile, TraceFile, shown, write_atomically
from hustings.sim.trace import Header, Tracer
from hustings.sim.trace_read import read_trace


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("data", ["text with \u00e9\n", b"\x00bytes\xff", "", b"x" * 1_000_000])
def test_writes_text_and_bytes(tmp_path: Path, data: str | bytes) -> None:
    target = tmp_path / "out"
    write_atomically(target, data)
    assert target.read_bytes() == (data.encode() if isinstance(data, str) else data)
    assert names(tmp_path) == ["out"]


def test_replaces_a_file_and_keeps_its_permissions(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.write_text("old")
    target.chmod(0o640)
    write_atomically(str(target), "new")
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").write_text("")
    write_atomically(tmp_path / "out", "new")
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_atomically(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_nothing_appears_before_the_end(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.write_text("old")
    with AtomicFile(target) as out:
        out.write(b"new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert names(tmp_path) == ["out"]


def _stopped(target: Path, error: BaseException) -> None:
    with AtomicFile(target) as out:
        out.write(b"half")
        raise error


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, BadInput])
@pytest.mark.parametrize("before", [None, "old"])
def test_an_exception_leaves_everything_as_it_was(
    tmp_path: Path, error: type[BaseException], before: str | None
) -> None:
    target = tmp_path / "out"
    if before is not None:
        target.write_text(before)
    with pytest.raises(error, match="stop"):
        _stopped(target, error("stop"))
    assert names(tmp_path) == ([] if before is None else ["out"])
    assert before is None or target.read_text() == before


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failing_end_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, step, refuse)
    with pytest.raises(BadInput, match=r"^cannot write .*out: Input/output error$"):
        write_atomically(tmp_path / "out", "new")
    assert names(tmp_path) == []


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    """The kernel stops a process's files at a size of its own choosing."""
    script = (
        "import resource, signal, sys\n"
        "from hustings.core.errors import BadInput\n"
        "from hustings.sim.files import write_atomically\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n"
        "    write_atomically(sys.argv[1], b'x' * 100_000)\n"
        "except BadInput as error:\n"
        "    sys.exit(str(error))\n"
    )
    path = str(tmp_path / "out")
    command = [sys.executable, "-c", script, path]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (1, f"cannot write {path}: File too large\n")
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    "place, why",
    [
        ("missing/out", "No such file or directory"),
        ("file/out", "Not a directory"),
        (".", "it is a directory"),
        ("x" * 300, "File name too long"),
        ("nul\0nul", "embedded null"),
    ],
)
def test_an_unwritable_path_is_one_sentence(tmp_path: Path, place: str, why: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput) as caught:
        write_atomically(tmp_path / place, "new")
    sentence = str(caught.value)
    assert sentence.startswith("cannot write ")
    assert why in sentence
    assert sentence.isprintable()
    assert names(tmp_path) == ["file"]


def test_a_write_protected_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out"
    target.write_text("old")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # also for the superuser
    with pytest.raises(BadInput, match="write-protected"):
        write_atomically(target, "new")
    assert target.read_text() == "old"
    assert names(tmp_path) == ["out"]


def test_a_pipe_is_written_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, "through")
    reader.join(timeout=10)
    assert got == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert names(tmp_path) == ["pipe"]


def test_unfinished_files_of_others_are_left_alone(tmp_path: Path) -> None:
    other = tmp_path / f".hustings-{os.getpid()}-0.part"
    other.write_text("theirs")
    write_atomically(tmp_path / "out", "new")
    assert other.read_text() == "theirs"
    assert (tmp_path / "out").read_text() == "new"


def test_writing_outside_the_block_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not open"):
        AtomicFile(tmp_path / "out").write(b"")


def test_a_tracer_writes_into_a_trace_file(tmp_path: Path) -> None:
    with TraceFile(tmp_path / "run.jsonl") as out:
        digest = Tracer(Header(protocol="p", members=[1], seed=3), out).close(2.0, "until")
    footer = read_trace(tmp_path / "run.jsonl").footer
    assert (footer.digest, footer.t, footer.ended) == (digest, 2.0, "until")


def test_paths_are_shown_on_one_line() -> None:
    assert shown("plain name") == "plain name"
    assert shown("two\nlines") == "'two\\nlines'"
