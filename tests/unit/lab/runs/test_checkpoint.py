"""A checkpoint trusts nothing that it reads, and loses nothing that it wrote."""

from __future__ import annotations

import os
import re
from errno import ENOSPC
from importlib.resources import files
from pathlib import Path

import pytest

from hustings.core.errors import BadInput
from hustings.lab.runs import checkpoint as module
from hustings.lab.runs.block import Block, Column
from hustings.lab.runs.checkpoint import Checkpoint, _sources, code_digest

BLOCKS = [
    (0, Block(0, 2, {"tmax": Column.of([0.1, 0.3])}, {"quiescent": 2})),
    (1, Block(0, 1, {"tmax": Column()}, {"until": 1}, 1)),
    (0, Block(2, 3, {"tmax": Column.of([1 / 3])}, {"quiescent": 1})),
]
KNOWN = {0: [BLOCKS[0][1], BLOCKS[2][1]], 1: [BLOCKS[1][1]]}


def at(path: Path, *, code: str = "c", grid: str = "g", points: int = 2) -> Checkpoint:
    return Checkpoint(path, code=code, grid=grid, points=points)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "deep" / "checkpoint"
    with at(path) as kept:
        for point, block in BLOCKS:
            kept.add(point, block)
    return path


def load(path: Path) -> dict[int, list[Block]]:
    with at(path) as kept:
        return {point: list(kept.known(point).values()) for point in range(2)}


def refusal(path: Path, **other: str | int) -> str:
    before = path.read_bytes()
    with pytest.raises(BadInput) as refused, at(path, **other):  # type: ignore[arg-type]  # by name
        pass
    assert path.read_bytes() == before, "what is refused is left as it is"
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_what_was_added_comes_back_to_the_last_bit(path: Path) -> None:
    assert load(path) == KNOWN
    assert load(path) == KNOWN


def test_wherever_a_crash_cuts_it_whole_lines_are_kept(path: Path) -> None:
    whole = path.read_bytes()
    ends = [place + 1 for place, byte in enumerate(whole) if byte == 0x0A]
    near = {end + off for end in ends for off in (-2, -1, 0, 1)}
    for length in (each for each in range(len(whole)) if each % 13 == 0 or each in near):
        path.write_bytes(whole[:length])
        known = load(path)
        lines = sum(end <= length for end in ends)
        assert sum(map(len, known.values())) == max(0, lines - 1), length
        with at(path) as kept:  # and one goes on from there
            for point, block in BLOCKS[max(0, lines - 1) :]:
                kept.add(point, block)
        assert path.read_bytes() == whole, length


def test_no_changed_byte_is_trusted(path: Path) -> None:
    whole = path.read_bytes()
    for place in range(len(whole)):
        bad = bytearray(whole)
        bad[place] ^= 1
        path.write_bytes(bad)
        if place == len(whole) - 1:
            assert load(path) == {**KNOWN, 0: KNOWN[0][:1]}, "a last line without an end"
        else:
            assert refusal(path), place


def test_no_line_may_be_missing_or_elsewhere(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    for order in ([0, 2, 3], [0, 1, 3], [0, 2, 1, 3], [0, 1, 1, 2, 3], [0, 1, 2, 3, 3]):
        path.write_bytes(b"".join(lines[place] for place in order))
        assert re.search(r"is damaged in line \d \(its seal is broken\)", refusal(path))


def test_of_another_version_grid_or_format(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "belongs to another grid (one of 2 points with digest g)" in refusal(path, grid="h")
    assert "belongs to another grid" in refusal(path, points=3)
    told = refusal(path, code="d")
    assert "belongs to another version of hustings (it was written by" in told
    assert "with other code or another Python" in told
    monkeypatch.setattr(module, "__version__", "99.0")
    assert "another version of hustings (it was written by 0" in refusal(path)
    path.write_bytes(path.read_bytes().replace(b"hustings-sweep-1 ", b"hustings-sweep-2 ", 1))
    assert "its format is 2, and this version writes 1" in refusal(path)


@pytest.mark.parametrize("text", [b"dear diary", b"\n", b"{}\n", b"\0" * 50, b"x" * (2 << 20)])
def test_a_file_of_somebody_else_is_left_alone(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(text)
    assert "is no checkpoint of a sweep" in refusal(path)


def test_sealed_nonsense_is_no_block(path: Path) -> None:
    for body in (
        b'{"point":9,"block":{"first":0,"last":1,"metrics":{},"endings":{"a":1}}}',
        b'{"point":0,"block":{"first":0,"last":2,"metrics":{},"endings":{"a":1}}}',
        b'{"point":0,"block":{"first":1,"last":1,"metrics":{},"endings":{}}}',
        b'{"point":0}',
        b"{" * 500_000 + b"}",
    ):
        lines = path.read_bytes().splitlines(keepends=True)[:1]
        seal = module._seal(lines[0].split()[1].decode(), body).encode()
        path.write_bytes(lines[0] + seal + b" " + body + b"\n")
        assert "is damaged in line 2" in refusal(path)


def test_one_sweep_at_a_time(path: Path) -> None:
    with at(path):
        assert "is in use (another sweep writes it)" in refusal(path)
    assert load(path) == KNOWN


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot be opened"), at(tmp_path / "file" / "checkpoint"):
        pass
    with pytest.raises(BadInput, match="cannot be opened"), at(tmp_path):
        pass


def test_a_full_disk_is_told_and_what_was_kept_before_is_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write

    def half(fd: int, data: bytes) -> int:
        if len(data) < 100:
            raise OSError(ENOSPC, "No space left on device")
        return write(fd, data[: len(data) // 2])

    with at(path) as kept:
        monkeypatch.setattr(os, "write", half)
        with pytest.raises(BadInput, match=r"cannot write .*: No space left on device"):
            kept.add(*BLOCKS[0])
    monkeypatch.undo()
    assert load(path) == KNOWN


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "checkpoint")
    with pytest.raises(BadInput, match="is no ordinary file"), at(tmp_path / "checkpoint"):
        pass


def test_the_digest_of_the_code_covers_what_runs_depend_on() -> None:
    home = files("hustings")
    named = [name for name, _ in _sources(home.joinpath("sim"), "sim")]
    assert "sim/world.py" in named
    assert named == sorted(named)
    assert all(name.endswith(".py") for name in named)
    assert len(code_digest()) == 32


def test_another_line_of_code_is_another_digest(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("package")
    for name in ("byzantine", "kernels", "figures", "runs"):
        (home / "lab" / name).mkdir(parents=True)
    for name in ("core", "layers", "protocols", "quorum", "sim"):
        (home / name).mkdir()
    sources = ["lab/byzantine/a.py", "core/a.py", "lab/kernels/a.py", "quorum/a.py", "sim/b.py"]
    sources += ["lab/figures/measurement.py", "lab/runs/block.py", "layers/a.py"]
    for name in (*sources, "sim/c.txt"):
        (home / name).write_text("x = 1\n", encoding="utf-8")
    monkeypatch.setattr(module, "files", lambda _: home)
    seen = set()

    def digest() -> str:
        code_digest.cache_clear()
        return code_digest()

    try:
        seen.add(digest())
        for name in sources:
            (home / name).write_text("x = 2\n", encoding="utf-8")
            seen.add(digest())
        assert len(seen) == 9
        (home / "sim/c.txt").write_text("no code", encoding="utf-8")
        assert digest() in seen
        (home / "core/a.py").rename(home / "core/z.py")
        assert digest() not in seen
    finally:
        monkeypatch.undo()
        code_digest.cache_clear()
