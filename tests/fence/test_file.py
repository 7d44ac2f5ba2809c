"""Files that only the newest leader may replace: threads, processes, crashes, damage."""

from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from hustings.core.errors import BadInput
from hustings.fence import FenceBroken, FileFence, StaleToken
from tests.fence.judging import Try, complaints, falls
from tests.fence.writers import ROOT, attempt, content, end, go, hear, start, token_of


def test_equal_and_larger_replace_and_smaller_do_not(tmp_path: Path) -> None:
    path = tmp_path / "report"
    fence = FileFence(path)
    assert fence.highest == 0
    fence.write(5, b"five")
    fence.write(5, b"five again")
    fence.write(7, b"seven")
    with pytest.raises(StaleToken) as caught, fence.writing(6):
        raise AssertionError("a stale writer got in")
    assert (caught.value.token, caught.value.highest) == (6, 7)
    assert path.read_bytes() == b"seven"
    assert FileFence(path).highest == 7
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "report",
        "report.token",
        "report.token.lock",
    ]


def test_a_larger_token_comes_in_the_middle(tmp_path: Path) -> None:
    path = tmp_path / "report"
    old, new = FileFence(path), FileFence(path)

    def write() -> None:
        with old.writing(5) as stream:
            stream.write(b"old")
            with new.writing(6) as other:
                other.write(b"new")
            stream.write(b" and stale")

    with pytest.raises(StaleToken):
        write()
    assert path.read_bytes() == b"new"


def test_a_larger_token_that_only_began_counts(tmp_path: Path) -> None:
    path = tmp_path / "report"
    fence = FileFence(path)
    fence.write(5, b"five")

    def fail() -> None:
        with fence.writing(6) as stream:
            stream.write(b"six")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert path.read_bytes() == b"five"
    with pytest.raises(StaleToken):
        fence.write(5, b"five again")
    assert not list(tmp_path.glob(".*"))


def test_who_closes_the_stream_has_written(tmp_path: Path) -> None:
    path = tmp_path / "report"
    with FileFence(path).writing(1) as stream:
        stream.write(b"closed early")
        stream.close()
    assert path.read_bytes() == b"closed early"


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    path, link = tmp_path / "report", tmp_path / "link"
    path.write_bytes(b"before the fence")
    path.chmod(0o640)
    link.symlink_to(path)
    FileFence(link).write(1, b"through the link")
    assert path.read_bytes() == b"through the link"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert link.is_symlink()
    FileFence(link).write(2, b"the same fence")
    with pytest.raises(StaleToken):
        FileFence(path).write(1, b"")


def test_sentences(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="folder does not exist; create it first"):
        FileFence(tmp_path / "nowhere" / "report")
    with pytest.raises(BadInput, match="it is a folder"):
        FileFence(tmp_path)
    with pytest.raises(BadInput, match="cannot fence"):
        FileFence("nul\0")
    fence = FileFence(tmp_path / "report")
    with pytest.raises(BadInput, match="token"):
        fence.write(0, b"")
    (tmp_path / "report.token").write_bytes(b"7")
    with pytest.raises(FenceBroken, match="damaged"):
        fence.write(8, b"")
    assert not (tmp_path / "report").exists()


def test_threads(tmp_path: Path) -> None:
    path, tries = tmp_path / "report", list[Try]()
    path.write_bytes(content(1))

    def work(seed: int) -> None:
        fence, rng = FileFence(path, patience=30.0), random.Random(seed)
        for step in range(40):
            token = max(1, step + rng.randrange(-8, 8))
            tries.append(attempt(token, partial(fence.write, token, content(token))))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for each in threads:
        each.start()
    seen = []
    while any(each.is_alive() for each in threads):
        seen.append(token_of(path.read_bytes()))
    for each in threads:
        each.join()
    judge(tries, seen, path)


def judge(tries: list[Try], seen: list[int], path: Path) -> None:
    accepted = [each.token for each in tries if each.accepted]
    assert 0 < len(accepted) < len(tries)
    assert not complaints(tries)
    assert not falls(seen)
    assert token_of(path.read_bytes()) == max(accepted)


def test_processes(tmp_path: Path) -> None:
    path = tmp_path / "report"
    path.write_bytes(content(1))
    count = 60
    writers = [start("file_tries", path, seed, count) for seed in range(3)]
    seen = list[int]()
    try:
        go(writers)
        tries = hear(writers, lambda: seen.append(token_of(path.read_bytes())))
    finally:
        end(writers)
    assert len(tries) == count * len(writers)
    judge(tries, seen, path)


def test_killed_again_and_again(tmp_path: Path) -> None:
    """A writer that is killed early leaves the content of the writer before it."""
    path, rng, token, found = tmp_path / "report", random.Random(6), 1, 0
    for _ in range(12):
        writer = start("endless", path, token)
        try:
            assert writer.stdout is not None
            said = [writer.stdout.readline() for _ in range(rng.randrange(1, 20))]
            # From here it is somewhere within the next steps: no two machines agree where.
            os.kill(writer.pid, signal.SIGKILL)
            writer.wait()
            said += [line for line in writer.stdout if line.endswith("\n")]
        finally:
            end([writer])
        begun = max(int(line.split()[1]) for line in said)
        done = max(
            (int(line.split()[1]) for line in said if line.startswith("done")), default=found
        )
        found = token_of(path.read_bytes()) if path.exists() else 0
        assert found in (done, begun)
        fence = FileFence(path)
        assert found <= fence.highest <= begun
        token = fence.highest + 1
    assert len(list(tmp_path.glob(".*.part"))) <= 1


def test_killed_at_every_step(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fence.crashing", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, later = map(int, done.stdout.split())
    assert first > later > 15


def test_a_stopped_writer_holds_up_nobody(tmp_path: Path) -> None:
    path = tmp_path / "report"
    writer = start("half_way", path, 5)
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "half\n"
        os.waitid(os.P_PID, writer.pid, os.WSTOPPED)
        FileFence(path).write(6, content(6))
        os.kill(writer.pid, signal.SIGCONT)
        assert writer.wait(30) == 1  # by StaleToken
    finally:
        end([writer])
    assert token_of(path.read_bytes()) == 6
    assert not list(tmp_path.glob(".*"))
