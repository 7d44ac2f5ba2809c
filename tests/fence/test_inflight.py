"""Who is at work with which token, as files that other processes see."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hustings.fence import FenceBroken, FenceBusy, Ledger, StaleToken
from hustings.fence import inflight as module
from hustings.fence.inflight import InFlight, Presence
from tests.fence.writers import ROOT

HOLDER = """
import os, signal, sys
from pathlib import Path
from hustings.fence.inflight import Presence
Presence(Path(sys.argv[1])).hold("x", 5)
print("held", flush=True)
signal.pause()
"""


def files(folder: Path) -> list[str]:
    return sorted(each.name.split(".")[1] for each in folder.iterdir())


def test_smaller_ones(tmp_path: Path) -> None:
    folder = tmp_path / "inflight"
    one, two = Presence(folder), Presence(folder)
    one.hold("x", 5)
    one.hold("x", 5)
    two.hold("x", 5)
    for each in (one, two):
        assert each.is_smaller("x", 6)
        assert not each.is_smaller("x", 5)
        assert not each.is_smaller("x", 4)
        assert not each.is_smaller("y", 6)
    one.let_go("x", 5)
    two.let_go("x", 5)
    assert two.is_smaller("x", 10)  # by number, not by text
    one.let_go("x", 5)
    assert files(folder) == ["5"]
    assert not two.is_smaller("x", 6)
    assert files(folder) == []
    (folder / "strange").write_text("")
    (folder / f"{module._prefix('x')}.strange").write_text("")
    assert not two.is_smaller("x", 6)
    assert one._held == two._held == {}


def test_a_process_that_dies_is_at_work_no_more(tmp_path: Path) -> None:
    folder = tmp_path / "inflight"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)], cwd=ROOT, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        mine = Presence(folder)
        process.send_signal(signal.SIGSTOP)
        assert mine.is_smaller("x", 6)  # it may go on
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    assert not mine.is_smaller("x", 6)


def test_a_child_does_not_keep_it(tmp_path: Path) -> None:
    mine = Presence(tmp_path / "inflight")
    mine.hold("x", 5)
    twin = os.dup(mine._held[f"{module._prefix('x')}.5"][0])  # as a forked child has
    mine.let_go("x", 5)
    assert not mine.is_smaller("x", 6)
    os.close(twin)


def test_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "inflight"
    mine = Presence(folder)
    folder.rmdir()
    assert not mine.is_smaller("x", 6)
    mine.hold("x", 5)
    assert mine.is_smaller("x", 6)
    mine.let_go("x", 5)
    (tmp_path / "file").write_text("")
    with pytest.raises(FenceBroken, match="cannot use the folder 'file'"):
        Presence(tmp_path / "file")
    other = Presence(tmp_path / "other")
    (tmp_path / "other").rmdir()
    (tmp_path / "other").write_text("")
    with pytest.raises(FenceBroken):
        other.is_smaller("x", 6)
    with pytest.raises(FenceBroken):
        other.hold("x", 6)
    monkeypatch.setattr(module, "TRIES", 2)
    theirs = os.open(folder / f"{module._prefix('x')}.5", os.O_RDWR)
    fcntl.flock(theirs, fcntl.LOCK_EX)
    with pytest.raises(FenceBusy):
        mine.hold("x", 5)
    os.close(theirs)


def test_whoever_enters_compares_afterwards(tmp_path: Path) -> None:
    """A larger token between the wait and the entry is not overlooked; nothing stays behind."""
    ledger, woken = Ledger(tmp_path / "tokens"), list[int]()
    flights = InFlight(ledger, 60.0)
    old = flights.begin("x", 5, lambda: woken.append(5))
    flights.admit(old)
    assert flights.is_clear(old)
    Ledger(tmp_path / "tokens").admit("x", 6)  # in another process
    with pytest.raises(StaleToken) as caught:
        flights.enter(old)
    assert caught.value.highest == 6
    assert not old.entered
    flights.end(old)
    assert not flights._presence._held


def test_the_watcher(tmp_path: Path) -> None:
    """It wakes once whoever another process overtook, and says after the grace that it is gone."""
    ledger, woken = Ledger(tmp_path / "tokens"), threading.Event()
    flights, calls = InFlight(ledger, 0.05), list[int]()

    def wake() -> None:
        calls.append(5)
        woken.set()

    old = flights.begin("x", 5, wake)
    flights.admit(old)
    flights.enter(old)
    Ledger(tmp_path / "tokens").admit("x", 6)
    assert woken.wait(20)
    assert old.overtaken_by == 6
    new = flights.begin("x", 6, wake)
    flights.admit(new)
    for _ in range(2000):
        if not flights._presence._held:
            break
        time.sleep(0.01)
    assert not flights._presence.is_smaller("x", 6)
    assert calls == [5]
    for each in (old, new, old):
        flights.end(each)
    assert not flights._requests


def test_a_file_that_is_removed_before_it_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A larger token took it for a dead one's: it would be held where nobody looks."""
    folder, real, first = tmp_path / "inflight", fcntl.flock, [True]
    mine = Presence(folder)

    def flock(descriptor: int, how: int) -> None:
        if first.pop() if first else False:
            for each in folder.iterdir():
                each.unlink()
        real(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    mine.hold("x", 5)
    assert files(folder) == ["5"]
    assert mine.is_smaller("x", 6)
    mine.let_go("x", 5)


def test_a_token_that_another_fence_has_raised_has_its_turn_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two fences with one ledger: it is on disk, and this one has not seen it before."""
    monkeypatch.setattr(InFlight, "_watch", lambda self: None)  # which would come to know of it
    ledger = Ledger(tmp_path / "tokens")
    ledger.admit("x", 5)
    woken: list[int] = []
    fence = InFlight(ledger, 60.0)
    older = fence.begin("x", 4, lambda: woken.append(4))
    request = fence.begin("x", 5, lambda: woken.append(5))
    assert fence.is_admitted(request)
    assert fence.is_clear(request)
    assert (woken, older.overtaken_by) == ([4], 5)
    with pytest.raises(StaleToken):
        fence.is_admitted(older)
    newer = fence.begin("x", 6, lambda: woken.append(6))
    assert not fence.is_admitted(newer)
    for each in (older, request, newer):
        fence.end(each)


def test_what_is_no_lock_of_ours_lets_nobody_pass(tmp_path: Path) -> None:
    presence = Presence(tmp_path / "inflight")
    (tmp_path / "inflight" / f"{module._prefix('x')}.5").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FenceBroken, match="cannot use the folder"):
        presence.is_smaller("x", 6)
    assert not presence.is_smaller("x", 5)
