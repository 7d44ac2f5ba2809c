"""The file of highest tokens: what is on disk when, who shares it, and what damages it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hustings.core.errors import BadInput
from hustings.fence import FenceBroken, FenceBusy, Ledger, StaleToken
from hustings.fence import ledger as module
from tests.fence.judging import complaints
from tests.fence.writers import end, go, hear, start

folder_stays = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_names_have_tokens_of_their_own(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "tokens")
    ledger.admit("a", 5)
    ledger.admit("b", 3)
    ledger.admit("a", 5)
    with pytest.raises(StaleToken):
        ledger.admit("a", 3)
    again = Ledger(tmp_path / "tokens")
    assert [again.highest(name) for name in ("a", "b", "c")] == [5, 3, 0]


def test_a_larger_token_is_on_disk_before_it_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(tmp_path / "tokens")
    steps = watched(monkeypatch)
    ledger.admit("x", 5)
    assert steps == ["fsync tokens.new", "replace tokens", f"fsync {tmp_path.name}"]
    steps.clear()
    ledger.admit("x", 5)
    assert steps == []  # known to be there


def test_what_others_raised_is_on_disk_before_it_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, other = Ledger(tmp_path / "tokens"), Ledger(tmp_path / "tokens")
    other.admit("x", 5)
    steps = watched(monkeypatch)
    assert not ledger.passes("x", 5)
    ledger.admit("x", 5)  # the other may have died after its rename
    assert steps == [f"fsync {tmp_path.name}"]
    assert ledger.passes("x", 5)


def watched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What reaches the disk from now on, in order."""
    steps = list[str]()
    real_sync, real_replace = os.fsync, os.replace

    def fsync(descriptor: int) -> None:
        steps.append("fsync " + Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        real_sync(descriptor)

    def replace(old: Any, new: Any) -> None:
        steps.append("replace " + Path(new).name)
        real_replace(old, new)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    return steps


def test_a_disk_that_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(tmp_path / "tokens")
    ledger.admit("x", 5)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(FenceBroken, match="No space left"):
            ledger.admit("x", 6)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["tokens", "tokens.lock"]
    assert ledger.highest("x") == 5
    ledger.admit("x", 6)


def test_processes(tmp_path: Path) -> None:
    askers = [start("ledger_tries", tmp_path / "tokens", seed, 120) for seed in range(3)]
    try:
        go(askers)
        tries = hear(askers, lambda: time.sleep(0.01))
    finally:
        end(askers)
    assert len(tries) == 360
    accepted = [each.token for each in tries if each.accepted]
    assert 0 < len(accepted) < len(tries)
    assert not complaints(tries)
    assert Ledger(tmp_path / "tokens").highest("x") == max(accepted)


def test_a_stopped_process_holds_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    ledger = Ledger(path, patience=0.05)
    ledger.admit("x", 5)
    holder = start("lock_and_stop", path)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        ledger.admit("x", 5)  # needs no lock
        with pytest.raises(FenceBusy, match="locked by another process"):
            ledger.admit("x", 6)
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        ledger.admit("x", 6)
    finally:
        end([holder])


def spoil(path: Path, data: bytes) -> None:
    """Refused when it is opened and while it is open, and left as it is."""
    ledger = Ledger(path)
    good = path.read_bytes()
    path.write_bytes(data)
    for use in (lambda: Ledger(path), lambda: ledger.admit("x", 9), lambda: ledger.highest("x")):
        with pytest.raises(FenceBroken) as caught:
            use()
        assert "\n" not in str(caught.value)
    assert path.read_bytes() == data
    path.write_bytes(good)
    ledger.admit("x", 7)


@folder_stays
@given(st.binary(max_size=200))
def test_no_file_of_ours(tmp_path: Path, data: bytes) -> None:
    Ledger(tmp_path / "tokens").admit("x", 7)
    spoil(tmp_path / "tokens", data)


@folder_stays
@given(st.data())
def test_any_byte_changed_or_cut(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "tokens"
    Ledger(path).admit("x", 7)
    good = path.read_bytes()
    at = data.draw(st.integers(0, len(good) - 1))
    if data.draw(st.booleans()):
        spoil(path, good[:at])
    else:
        byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != good[at]))
        spoil(path, good[:at] + bytes([byte]) + good[at + 1 :])


@pytest.mark.parametrize(
    "body", [b'{"x":0}', b'{"x":-1}', b'{"x":9223372036854775808}', b'{"x":"7"}', b"[7]", b"7", b""]
)
def test_well_sealed_nonsense(tmp_path: Path, body: bytes) -> None:
    Ledger(tmp_path / "tokens").admit("x", 7)
    head = b"hustings-tokens 1 %s %d\n" % (module._check(body), len(body))
    spoil(tmp_path / "tokens", head + body)


def test_a_newer_format_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    Ledger(path).admit("x", 7)
    path.write_bytes(path.read_bytes().replace(b" 1 ", b" 2 ", 1))
    with pytest.raises(FenceBroken, match="newer hustings"):
        Ledger(path)


def test_a_lost_file_is_not_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    ledger = Ledger(path)
    ledger.admit("x", 7)
    path.unlink()
    for use in (lambda: ledger.admit("x", 8), lambda: Ledger(path)):
        with pytest.raises(FenceBroken, match="it is gone"):
            use()
    assert not path.exists()
    (tmp_path / "tokens.lock").unlink()
    Ledger(path).admit("x", 8)  # both deleted: somebody meant it


def test_not_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "large").write_bytes(b" " * (module.LARGEST + 1))
    for name, why in (
        ("pipe", "regular file"),
        ("folder", "Is a directory"),
        ("large", "more than"),
    ):
        with pytest.raises(BadInput, match=why):
            Ledger(tmp_path / name)
    with pytest.raises(BadInput, match="folder does not exist"):
        Ledger(tmp_path / "none" / "tokens")
    with pytest.raises(BadInput, match="cannot open"):
        Ledger("nul\0")


def test_names_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_NAMES", 3)
    ledger = Ledger(tmp_path / "tokens")
    for name in ("a", "b", "\N{SNOWMAN}" * module.LONGEST_NAME):
        ledger.admit(name, 1)
    with pytest.raises(FenceBroken, match="room for 3"):
        ledger.admit("d", 1)
    ledger.admit("a", 2)
    with pytest.raises(BadInput, match="at most"):
        ledger.admit("x" * (module.LONGEST_NAME + 1), 1)
