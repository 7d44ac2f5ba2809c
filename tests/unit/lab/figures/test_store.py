"""The store trusts nothing that it reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hustings.core.errors import BadInput
from hustings.lab.figures import store as module
from hustings.lab.figures.store import Store
from hustings.lab.runs.block import Block
from tests.unit.lab.figures.samples import bully

Json = dict[str, Any]

CELL = bully(5)
SIZE = CELL.block


@pytest.fixture
def warnings() -> list[str]:
    return []


@pytest.fixture
def store(tmp_path: Path, warnings: list[str]) -> Store:
    return Store(tmp_path / "deep" / "cells", 1, warnings.append)


def blocks(number: int) -> list[Block]:
    return [CELL.play(1, at * SIZE, (at + 1) * SIZE) for at in range(number)]


def test_what_was_saved_comes_back(store: Store, warnings: list[str]) -> None:
    assert store.load(CELL) == []
    saved = blocks(2)
    store.save(CELL, saved)
    assert store.load(CELL) == saved
    assert store.load(bully(6)) == []
    assert warnings == []
    assert [path.name for path in store.path(CELL).parent.iterdir()] == [store.path(CELL).name]


def test_the_same_blocks_are_the_same_bytes(store: Store) -> None:
    store.save(CELL, blocks(1))
    first = store.path(CELL).read_bytes()
    store.save(CELL, blocks(1))
    assert store.path(CELL).read_bytes() == first


def test_another_seed_is_another_file(tmp_path: Path, warnings: list[str]) -> None:
    one, other = (Store(tmp_path, seed, warnings.append) for seed in (1, 2))
    one.save(CELL, blocks(1))
    assert other.load(CELL) == []
    assert one.path(CELL) != other.path(CELL)


def test_results_of_other_code_are_stale(
    store: Store, warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save(CELL, blocks(1))
    monkeypatch.setattr(module, "code_digest", lambda: "0" * 32)
    assert store.load(CELL) == []
    assert warnings == []
    store.save(CELL, blocks(1))
    assert len(store.load(CELL)) == 1


def test_results_that_other_code_wrote_in_another_form_are_stale_too(
    store: Store, warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def otherwise(body: Json) -> None:
        first_block(body).update(metrics={"time": {"count": SIZE, "mean": 1.0, "spread": 0.0}})

    resealed(store, otherwise)
    monkeypatch.setattr(module, "code_digest", lambda: "0" * 32)
    assert store.load(CELL) == []
    assert warnings == []


# Every single byte of a file counts.


def test_no_damaged_byte_is_trusted(store: Store, warnings: list[str]) -> None:
    saved = blocks(1)
    store.save(CELL, saved)
    path = store.path(CELL)
    good = path.read_bytes()
    for place in range(len(good) - 1):  # the last is the end of the line
        bad = bytearray(good)
        bad[place] ^= 1
        path.write_bytes(bad)
        loaded = store.load(CELL)
        assert loaded == [], place
    assert len(warnings) == len(good) - 1
    assert "is not to be trusted" in warnings[0]
    assert "\n" not in "".join(warnings)


@pytest.mark.parametrize("length", [0, 1, 10, 200, -2, -20])
def test_a_file_cut_short_is_not_trusted(store: Store, warnings: list[str], length: int) -> None:
    store.save(CELL, blocks(1))
    path = store.path(CELL)
    path.write_bytes(path.read_bytes()[:length])
    assert store.load(CELL) == []
    assert len(warnings) == 1


def resealed(store: Store, change: Callable[[Json], object]) -> None:
    """A forged file: changed, and sealed again as it should be."""
    store.save(CELL, blocks(2))
    path = store.path(CELL)
    body = json.loads(path.read_text())["body"]
    change(body)
    raw = json.dumps(body).encode()
    seal = blake2b(raw, digest_size=16).hexdigest()
    path.write_bytes(b'{"seal":"%s","body":%s}' % (seal.encode(), raw))


def first_block(body: Json) -> Json:
    block: Json = body["blocks"][0]
    return block


def times(body: Json) -> Json:
    moments: Json = first_block(body)["metrics"]["time"]["moments"]
    return moments


def drop_block(body: Json) -> None:
    del body["blocks"][0]


def cut_elsewhere(body: Json) -> None:
    one, other = body["blocks"]
    one.update(last=SIZE - 1, endings={"quiescent": SIZE - 1}, metrics={}, violated=0)
    other.update(first=SIZE - 1, last=2 * SIZE - 1)


FORGED: list[tuple[str, Callable[[Json], object]]] = [
    ("its format is 1", lambda body: body.update(format=1)),
    ("another cell", lambda body: body.update(seed=2)),
    ("another cell", lambda body: body.update(cell=json.loads(bully(9).text))),
    ("does not parse", lambda body: body.update(blocks="many")),
    ("does not parse", lambda body: body.update(more=1)),
    ("do not follow", drop_block),
    ("do not follow", lambda body: first_block(body).update(last=SIZE + 1)),
    ("do not follow", lambda body: first_block(body).update(last=0)),
    ("wrong places", cut_elsewhere),
    ("endings", lambda body: first_block(body).update(endings={})),
    ("endings", lambda body: first_block(body).update(endings={"a": SIZE + 1, "b": -1})),
    ("verdicts", lambda body: first_block(body).update(violated=SIZE + 1)),
    (
        "impossible",
        lambda body: times(body).update(count=SIZE + 1),
    ),
    (
        "impossible",
        lambda body: times(body).update(spread=-1.0),
    ),
    ("does not parse", lambda body: times(body).update(mean=None)),
    ("does not parse", lambda body: times(body).update(mean="x")),
]


def test_a_forgery_that_changes_nothing_is_no_forgery(store: Store, warnings: list[str]) -> None:
    resealed(store, lambda body: None)
    assert (len(store.load(CELL)), warnings) == (2, [])


@pytest.mark.parametrize("words, change", FORGED, ids=range(len(FORGED)))
def test_a_forged_file_is_not_trusted(
    store: Store, warnings: list[str], words: str, change: Callable[[Json], object]
) -> None:
    resealed(store, change)
    assert store.load(CELL) == []
    assert words in warnings[0]


def test_deep_nesting_is_not_followed(store: Store, warnings: list[str]) -> None:
    store.path(CELL).write_bytes(b"[" * 100_000)
    assert store.load(CELL) == []
    assert "does not parse" in warnings[0]


def test_what_is_no_ordinary_file_is_not_read(store: Store, warnings: list[str]) -> None:
    store.path(CELL).mkdir()
    assert store.load(CELL) == []
    assert "no ordinary file" in warnings[0]
    with pytest.raises(BadInput, match="it is a directory"):
        store.save(CELL, blocks(1))


def test_a_huge_file_is_not_read(
    store: Store, warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save(CELL, blocks(1))
    monkeypatch.setattr(module, "LARGEST_FILE", 100)
    assert store.load(CELL) == []
    assert "larger than" in warnings[0]


def test_a_folder_that_cannot_be_made_gets_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file", encoding="utf-8")
    with pytest.raises(BadInput, match="cannot make the folder"):
        Store(tmp_path / "taken" / "cells", 1, print)


def test_cells_read_back_as_they_were_written() -> None:
    assert msgspec.json.decode(CELL.text.encode(), type=type(CELL)) == CELL
