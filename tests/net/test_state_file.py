"""State files: whole after any crash, refused when damaged, one process each."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hustings.core.errors import BadInput, ProtocolBug
from hustings.net.state_file import LARGEST, StateFile
from hustings.net.storage import MAX_INCARNATION, NotPersisted

PATIENCE = 60  # seconds


def opened(path: Path, group: str = "billing", member: int = 7) -> StateFile:
    return StateFile(path, group, member)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state"


# --- what is stored ------------------------------------------------------------------------------


def test_lives_are_counted_and_fields_kept(path: Path) -> None:
    with opened(path) as state:
        assert (state.incarnation, dict(state.stored)) == (1, {})
        state.persist({"term": 3, "vote": (1, 2)})
        state.persist({"term": 4})
        assert dict(state.stored) == {"term": 4, "vote": (1, 2)}
    with opened(path) as state:
        assert (state.incarnation, dict(state.stored)) == (2, {"term": 4, "vote": (1, 2)})
    with opened(path) as state:
        assert state.incarnation == 3
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_new_file_begins_where_it_is_told_and_an_old_one_goes_on(path: Path) -> None:
    with StateFile(path, "g", 1, first=1_000) as state:
        assert state.incarnation == 1_000
    with StateFile(path, "g", 1, first=5_000) as state:
        assert state.incarnation == 1_001


def test_lives_come_to_an_end(path: Path) -> None:
    StateFile(path, "g", 1, first=MAX_INCARNATION).close()
    with pytest.raises(BadInput, match="cannot count another life"):
        StateFile(path, "g", 1)


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), PLAIN, max_size=4))
@settings(max_examples=15)
def test_plain_values_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, fields: dict[str, object]
) -> None:
    path = tmp_path_factory.mktemp("state") / "state"
    with opened(path) as state:
        state.persist(fields)
        assert dict(state.stored) == fields
    with opened(path) as state:
        assert repr(dict(sorted(state.stored.items()))) == repr(dict(sorted(fields.items())))


def nested(depth: int) -> object:
    return (nested(depth - 1),) if depth else 1


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, {1: 2}, 1 << 64, "\ud800", nested(20), b"x" * LARGEST, [object()]]
)
def test_what_is_not_plain_is_our_own_bug_and_changes_nothing(path: Path, value: object) -> None:
    with opened(path) as state:
        state.persist({"term": 1})
        before = path.read_bytes()
        with pytest.raises(ProtocolBug):
            state.persist({"term": 2, "value": value})
        assert dict(state.stored) == {"term": 1}
        assert path.read_bytes() == before


def test_what_is_stored_cannot_be_changed_by_hand(path: Path) -> None:
    with opened(path) as state, pytest.raises(TypeError):
        cast("dict[str, object]", state.stored)["term"] = 9
    with pytest.raises(ProtocolBug, match="after it was closed"):
        state.persist({"term": 1})


# --- refusals ------------------------------------------------------------------------------------


@pytest.fixture
def written(path: Path) -> bytes:
    with opened(path) as state:
        state.persist({"term": 5, "promise": (1, 2, 3)})
    return path.read_bytes()


def refusal(path: Path, data: bytes, group: str = "billing", member: int = 7) -> str:
    """The sentence with which this content is refused; the file stays as it was."""
    path.write_bytes(data)
    with pytest.raises(BadInput) as refused:
        opened(path, group, member)
    assert path.read_bytes() == data
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_every_cut_of_a_file_is_refused(path: Path, written: bytes) -> None:
    for cut in range(len(written)):
        assert "is damaged" in refusal(path, written[:cut]), cut
    assert "(it is empty)" in refusal(path, b"")


def test_every_flip_of_a_bit_is_refused(path: Path, written: bytes) -> None:
    for place in range(len(written)):
        for bit in range(8):
            changed = bytearray(written)
            changed[place] ^= 1 << bit
            sentence = refusal(path, bytes(changed))
            assert "is damaged" in sentence or "newer hustings" in sentence, (place, bit)


def test_the_sentence_says_what_to_do(path: Path, written: bytes) -> None:
    assert refusal(path, written + b"x").startswith(f"state file {path} is damaged (it has ")
    sentence = refusal(path, written[:-1] + b"\x00")
    assert "its checksum does not match" in sentence
    assert "delete it, and start under a member id that the group has not seen" in sentence
    assert refusal(path, b"hustings-state 2 what comes then").endswith(
        "(format 2, and this one reads up to 1): upgrade this hustings, and do not delete the file"
    )
    assert "belongs to group 'billing', not 'other'" in refusal(path, written, group="other")
    assert "belongs to member 7, not 8" in refusal(path, written, member=8)
    assert "is damaged" in refusal(path, bytes(LARGEST + 10))


def test_what_is_refused_was_readable_before(path: Path, written: bytes) -> None:
    refusal(path, written[:-1])
    path.write_bytes(written)
    with opened(path) as state:
        assert state.stored["term"] == 5


def test_a_place_where_no_file_can_be_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="its folder does not exist; create it first"):
        opened(tmp_path / "none" / "state")
    (tmp_path / "folder").mkdir()
    with pytest.raises(BadInput, match="cannot read state file"):
        opened(tmp_path / "folder")
    with pytest.raises(BadInput, match="cannot open state file"):
        opened(Path("a\0b"))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="not a regular file"):
        opened(tmp_path / "pipe")


# --- one process each ----------------------------------------------------------------------------


def test_a_file_is_used_once_at_a_time(path: Path) -> None:
    with opened(path) as state:
        with pytest.raises(BadInput, match=f"in use by process {os.getpid()}: stop that one"):
            opened(path)
        link = path.with_name("link")
        link.symlink_to(path)
        with pytest.raises(BadInput, match="in use"):
            opened(link)
        state.persist({"term": 1})
    with opened(link) as state:
        assert state.stored == {"term": 1}
    assert link.is_symlink()


def test_a_refused_file_is_not_left_locked(path: Path, written: bytes) -> None:
    refusal(path, b"broken")
    path.write_bytes(written)
    opened(path).close()


# --- crashes -------------------------------------------------------------------------------------


class Crashed(BaseException):
    """The machine stopped here: nothing after it runs, not even clearing up."""


STEPS = ("open", "fchmod", "write", "fsync", "close", "replace")


@contextmanager
def calls_through(monkeypatch: pytest.MonkeyPatch, before: Callable[[str], None]) -> Iterator[None]:
    """Tell of every call that changes a disk, before it is done."""
    with monkeypatch.context() as patch:
        for name in STEPS:
            real = getattr(os, name)

            def step(*args: object, name: str = name, real: Callable[..., object] = real) -> object:
                before(name)
                return real(*args)

            patch.setattr(f"hustings.net.files.os.{name}", step)
        yield


def test_bytes_are_synced_before_they_get_the_name(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(path) as state:
        calls: list[str] = []
        with calls_through(monkeypatch, calls.append):
            state.persist({"term": 1})
            done = list(calls)
            state.persist({"term": 1})
            assert calls == done, "what is stored already costs nothing"
            state.persist({"term": True})
            assert calls == done * 2, "equal is not the same"
    order = ["open", "fchmod", "write", "fsync", "close", "replace", "open", "fsync", "close"]
    assert done == order


def crash_at(number: int) -> Callable[[str], None]:
    left = [number]

    def before(_: str) -> None:
        if left[0] == 0:
            raise Crashed
        left[0] -= 1

    return before


@pytest.mark.parametrize("number", range(9))
def test_a_crash_between_any_two_steps_leaves_old_or_new(
    path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    state = opened(path)
    state.persist({"term": 1})
    with calls_through(monkeypatch, crash_at(number)), pytest.raises(Crashed):
        state.persist({"term": 2})
    state.close()
    with opened(path) as after:
        renamed = number > 5  # the first of the folder's steps comes after the rename
        assert dict(after.stored) == {"term": 2 if renamed else 1}
        assert after.incarnation == 2
        after.persist({"term": 3})
    with opened(path) as after:
        assert dict(after.stored) == {"term": 3}


def test_a_crash_in_the_middle_of_the_bytes_leaves_the_old(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever part of the new content has reached the disk, under its own name or none."""
    with opened(path) as state:
        state.persist({"term": 1})
    old = path.read_bytes()
    part = path.with_name(path.name + ".new")
    for cut in range(len(old) + 1):
        part.write_bytes(old.replace(b"term", b"TERM")[:cut])
        path.write_bytes(old)
        with opened(path) as state:
            assert dict(state.stored) == {"term": 1}
        assert not part.exists()


def test_a_write_in_small_pieces_is_written_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    monkeypatch.setattr("hustings.net.files.os.write", lambda fd, data: real(fd, data[:3]))
    with opened(path) as state:
        state.persist({"text": "x" * 100})
    monkeypatch.undo()
    with opened(path) as state:
        assert state.stored == {"text": "x" * 100}


def full(name: str) -> Callable[[str], None]:
    """The first such step fails."""
    left = [name]

    def before(step: str) -> None:
        if step in left:
            left.clear()
            raise OSError(errno.ENOSPC, "No space left on device")

    return before


@pytest.mark.parametrize("name", STEPS)
def test_a_disk_that_refuses_is_told_and_nothing_is_lost(
    path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with opened(path) as state:
        state.persist({"term": 1})
        with calls_through(monkeypatch, full(name)), pytest.raises(NotPersisted, match="No space"):
            state.persist({"term": 2})
        assert dict(state.stored) == {"term": 1}
        assert not path.with_name("state.new").exists()
        state.persist({"term": 2})
    with opened(path) as state:
        assert dict(state.stored) == {"term": 2}
    with calls_through(monkeypatch, full(name)), pytest.raises(BadInput, match="No space"):
        opened(path)
    opened(path).close()


def test_a_write_that_failed_half_way_is_made_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the rename nobody knows what a crash would leave: the same fields are written anew."""
    with opened(path) as state:
        state.persist({"term": 1})
        with calls_through(monkeypatch, crash_at(7)), pytest.raises(Crashed):
            state.persist({"term": 2})
        calls: list[str] = []
        with calls_through(monkeypatch, calls.append):
            state.persist({"term": 1})
        assert "replace" in calls
    with opened(path) as state:
        assert dict(state.stored) == {"term": 1}


WRITER = """
import sys
from hustings.net.state_file import StateFile
with StateFile(sys.argv[1], "billing", 7) as state:
    number = state.stored.get("number", 0)
    print("life", state.incarnation, flush=True)
    while True:
        number += 1
        state.persist({"number": number, "filler": "x" * (number * 37 % 2000)})
        print(number, flush=True)
"""


def test_a_process_killed_while_it_writes_breaks_no_promise(path: Path) -> None:
    """What it said it had stored is stored, in every life."""
    rng = random.Random(5)
    stored = 0
    for life in range(1, 16):
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        )
        with child:
            assert child.stdout is not None
            assert child.stdout.readline() == f"life {life}\n"
            for _ in range(rng.randint(1, 20)):
                stored = int(child.stdout.readline())
            with pytest.raises(BadInput, match=f"in use by process {child.pid}"):
                opened(path)
            child.send_signal(signal.SIGKILL)
            # It may have said more before the signal reached it.
            said = [int(line) for line in child.stdout.read().splitlines()]
            child.wait(PATIENCE)
        stored = max([stored, *said])
        # Looked at without opening, which would begin another life.
        assert _number(path) in (stored, stored + 1)


def _number(path: Path) -> int:
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    with opened(copy) as state:
        number = state.stored["number"]
    assert isinstance(number, int)
    return number
