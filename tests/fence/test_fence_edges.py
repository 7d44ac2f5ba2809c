"""The edges of fences: what they return, what they refuse at once, what they leave behind."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hustings.core.errors import BadInput
from hustings.fence import ledger as ledgers
from hustings.fence.fence import AsyncFence, FenceBroken, FenceBusy, StaleToken, Stamped
from hustings.fence.file import FileFence
from hustings.fence.ledger import Ledger


class Kept:
    """A store of one record in memory."""

    def __init__(self) -> None:
        self.record = Stamped(3, 10, 0)
        self.reads = 0

    async def read(self) -> Stamped[int]:
        self.reads += 1
        return self.record

    async def write(self, token: int, value: int, version: object) -> bool:
        assert isinstance(version, int)
        self.record = Stamped(token, value, version + 1)
        return True


def test_an_update_returns_what_it_wrote_and_refuses_what_is_no_token_unread() -> None:
    store = Kept()
    fence = AsyncFence(store)
    assert asyncio.run(fence.update(4, lambda value: value + 1)) == 11
    assert store.record == (4, 11, 1)
    for wrong in (0, -1, 1 << 63, True):
        with pytest.raises(BadInput, match="token"):
            asyncio.run(fence.update(wrong, lambda value: value))
    assert store.reads == 1


def test_what_dead_writers_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    left = tmp_path / f".report.{'0a' * 8}.part"
    others = [tmp_path / f".other.{'0a' * 8}.part", tmp_path / ".report.mine.part"]
    for each in (left, *others):
        each.write_bytes(b"half")
    FileFence(tmp_path / "report").write(1, b"whole")
    assert not left.exists()
    assert all(each.exists() for each in others)
    assert (tmp_path / "report").read_bytes() == b"whole"


def test_a_new_file_is_no_program(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        FileFence(tmp_path / "report").write(1, b"whole")
    finally:
        os.umask(before)
    assert (tmp_path / "report").stat().st_mode & 0o777 == 0o666


def test_a_smaller_token_does_not_pass_though_nobody_wrote_since(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "tokens")
    ledger.admit("jobs", 7)
    assert ledger.passes("jobs", 7) is True
    assert ledger.passes("jobs", 8) is False
    with pytest.raises(StaleToken):
        ledger.passes("jobs", 6)
    assert ledger.passes("other", 1) is False


def test_an_asynchronous_store_that_never_rests() -> None:
    class Restless(Kept):
        async def write(self, token: int, value: int, version: object) -> bool:
            return False

    store = Restless()
    with pytest.raises(FenceBusy, match="3 times"):
        asyncio.run(AsyncFence(store, tries=3).update(4, lambda value: value))
    assert store.reads == 3


def test_a_link_with_the_name_of_a_dead_writer_s_file_is_left_alone(tmp_path: Path) -> None:
    """It may point anywhere."""
    (tmp_path / "treasure").write_bytes(b"gold")
    link = tmp_path / f".report.{'0a' * 8}.part"
    link.symlink_to(tmp_path / "treasure")
    FileFence(tmp_path / "report").write(1, b"whole")
    assert link.is_symlink()
    assert (tmp_path / "treasure").read_bytes() == b"gold"


def test_nothing_stays_open(tmp_path: Path) -> None:
    fence = FileFence(tmp_path / "report")
    before = sorted(os.listdir("/proc/self/fd"))
    for token in range(1, 20):
        fence.write(token, b"whole")
    assert fence.highest == 19
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_a_name_is_on_disk_before_anybody_acts_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was renamed is safe from a crash only when its folder was written, too."""
    steps: list[str] = []
    real_sync, real_replace = os.fsync, os.replace

    def fsync(descriptor: int) -> None:
        name = Path(os.readlink(f"/proc/self/fd/{descriptor}")).name
        steps.append("sync " + re.sub("[0-9a-f]{16}", "*", name))
        real_sync(descriptor)

    def replace(old: Path, new: Path) -> None:
        steps.append(f"rename to {new.name}")
        real_replace(old, new)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    folder = tmp_path / "folder"
    folder.mkdir()
    fence = FileFence(folder / "report")
    raised = ["sync report.token.new", "rename to report.token", "sync folder"]
    assert steps == [*raised, "sync report.token.lock", "sync folder"]
    steps.clear()
    fence.write(1, b"whole")
    assert steps == [*raised, "sync .report.*.part", "rename to report", "sync folder"]


def test_files_of_tokens_are_their_owner_s(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Ledger(tmp_path / "tokens").admit("jobs", 1)
    finally:
        os.umask(before)
    for name in ("tokens", "tokens.lock"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600


def failing(number: int) -> Any:
    def call(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number), "secret name")

    return call


@pytest.mark.parametrize("broken", ["write", "fsync", "replace"])
def test_a_disk_that_is_full_lets_nobody_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    ledger = Ledger(tmp_path / "tokens")
    ledger.admit("jobs", 5)
    with monkeypatch.context() as patch:
        patch.setattr(os, broken, failing(errno.ENOSPC))
        with pytest.raises(FenceBroken) as told:
            ledger.admit("jobs", 6)
        with pytest.raises(FenceBroken, match="cannot write token file"):
            Ledger(tmp_path / "others")
    sentence = f"cannot write token file {tmp_path / 'tokens'}: No space left on device"
    assert str(told.value) == sentence
    assert not (tmp_path / "tokens.new").exists()
    assert ledger.highest("jobs") == 5


def test_a_beginning_that_is_not_on_disk_is_no_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark in the lock file tells a file that is gone from one that never was."""
    Ledger(tmp_path / "tokens")
    os.truncate(tmp_path / "tokens.lock", 0)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing(errno.EIO))
        with pytest.raises(FenceBroken, match="cannot write token file"):
            Ledger(tmp_path / "tokens")
    Ledger(tmp_path / "tokens")
    (tmp_path / "tokens").unlink()
    with pytest.raises(FenceBroken, match="it is gone"):
        Ledger(tmp_path / "tokens")


def test_a_lock_is_let_go_though_a_child_has_it_too(tmp_path: Path) -> None:
    """What a process starts meanwhile may live long."""
    ledger = Ledger(tmp_path / "tokens", patience=0.2)
    with ledger.closed():
        locks = [
            int(each)
            for each in os.listdir("/proc/self/fd")
            if os.path.islink(f"/proc/self/fd/{each}")
            and os.readlink(f"/proc/self/fd/{each}") == str(tmp_path / "tokens.lock")
        ]
        child = subprocess.Popen(["sleep", "60"], pass_fds=locks)
    try:
        assert len(locks) == 1
        ledger.admit("jobs", 1)
    finally:
        child.kill()
        child.wait()


def test_what_is_damaged_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(tmp_path / "tokens")
    ledger.admit("jobs", 7)
    whole = (tmp_path / "tokens").read_bytes()
    for data, how in (
        (b"", "it is empty"),
        (b"tokens", "it does not begin as one"),
        (whole + b" ", "it is not as long as it was written"),
        (whole[:-1], "it is not as long as it was written"),
        (whole.replace(b"tokens 1 ", b"tokens 0 "), "it is not as long as it was written"),
        (whole.replace(b":7", b":8"), "its checksum does not match"),
    ):
        (tmp_path / "tokens").write_bytes(data)
        with pytest.raises(FenceBroken, match=re.escape(f"is damaged ({how})")):
            ledger.highest("jobs")
    (tmp_path / "tokens").write_bytes(whole)
    monkeypatch.setattr(ledgers, "LARGEST", len(whole))
    ledger.admit("jobs", 8)
    with pytest.raises(FenceBroken, match="is full"):
        ledger.admit("more", 1)
    assert ledger.tokens() == {"jobs": 8}


def test_a_sentence_names_the_file_as_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one line, and without what the system says of its own accord."""
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")
    Path("file").write_bytes(b"")
    for given, shown, why in (
        ("file", "file", "is damaged (it is empty)"),
        ("two\nlines/tokens", repr("two\nlines/tokens"), "its folder does not exist"),
        ("", "''", "Is a directory"),
        ("file/tokens", "file/tokens", "Not a directory"),
        ("nul\0", repr("nul\0"), "null"),
    ):
        with pytest.raises(BadInput) as told:
            Ledger(given)
        assert f"token file {shown}" in str(told.value)
        assert why in str(told.value)
        assert "\n" not in str(told.value)
        assert "Errno" not in str(told.value)
