"""Key files: exact, private, never overwritten; and `hustings keygen`."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from hustings.cli.app import run
from hustings.core.errors import BadInput
from hustings.net.keys import Key, new_key, parse_key, read_key, write_key
from tests.net.parts import KEY


def put(path: Path, data: bytes, mode: int = 0o600) -> Path:
    path.write_bytes(data)
    path.chmod(mode)
    return path


def test_a_key_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "a.key"
    write_key(path, KEY)
    assert read_key(path) == KEY
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["a.key"]


def test_a_key_is_for_its_owner_whatever_the_umask(tmp_path: Path) -> None:
    for umask in (0o000, 0o777):
        before = os.umask(umask)
        try:
            write_key(tmp_path / f"{umask}.key", KEY)
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / f"{umask}.key").stat().st_mode) == 0o600


def test_keys_differ_and_keep_their_secret() -> None:
    keys = [new_key() for _ in range(50)]
    assert len({key.id for key in keys}) == 50
    assert KEY.secret.hex() not in repr(KEY)
    assert repr(KEY.secret) not in repr(KEY)
    with pytest.raises(BadInput, match="32 bytes, not 31"):
        Key(bytes(31))


def test_no_change_of_a_key_file_goes_unnoticed() -> None:
    text = KEY.text().encode()
    for place in range(len(text)):
        for bit in range(8):
            changed = bytearray(text)
            changed[place] ^= 1 << bit
            with pytest.raises(BadInput, match=r"^x is "):
                parse_key(bytes(changed), "x")
    for cut in range(len(text)):
        with pytest.raises(BadInput, match=r"^x is "):
            parse_key(text[:cut], "x")


@pytest.mark.parametrize(
    "data, sentence",
    [
        (b"", "is not a key file: hustings keygen --out FILE writes one"),
        (b"-----BEGIN PRIVATE KEY-----", "is not a key file"),
        (b"hustings-key 2\nwhatever", "is a key file of format 2 and this hustings reads format 1"),
        (KEY.text().encode() + b"\n", "is damaged: copy the key file again"),
        (KEY.text().replace("\n", "\r\n").encode(), "is not a key file"),
        (KEY.text().encode() * 100, "is damaged"),
    ],
)
def test_what_is_wrong_with_a_key_file_is_said(tmp_path: Path, data: bytes, sentence: str) -> None:
    with pytest.raises(BadInput) as refusal:
        read_key(put(tmp_path / "a.key", data))
    assert f"key file {tmp_path / 'a.key'} {sentence}" in str(refusal.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o610, 0o601, 0o644])
def test_a_key_that_others_can_use_is_refused_and_how_to_mend_it_said(
    tmp_path: Path, mode: int
) -> None:
    path = put(tmp_path / "a.key", KEY.text().encode(), mode)
    with pytest.raises(BadInput, match=f"mode {mode:o}.*run chmod 600 {path}"):
        read_key(path)
    path.chmod(0o400)
    assert read_key(path) == KEY


def test_a_file_that_cannot_be_read_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"cannot read key file .*: No such file"):
        read_key(tmp_path / "none")
    with pytest.raises(BadInput, match="cannot read key file"):
        read_key(tmp_path)
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(BadInput, match="not a regular file"):
        read_key(tmp_path / "pipe")
    with pytest.raises(BadInput, match="cannot read key file"):
        read_key("a\0b")


def test_no_file_is_ever_overwritten(tmp_path: Path) -> None:
    path = put(tmp_path / "a.key", b"mine")
    (tmp_path / "link").symlink_to("nowhere")
    for each in (path, tmp_path / "link"):
        with pytest.raises(BadInput, match="exists and a key that is overwritten is lost"):
            write_key(each, KEY)
    assert path.read_bytes() == b"mine"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.key", "link"]


@pytest.mark.parametrize("name", ["missing/a.key", "", "a\0b", "x" * 300])
def test_a_key_that_cannot_be_written_leaves_nothing(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match=r"cannot write|exists"):
        write_key(f"{tmp_path}/{name}", KEY)
    assert list(tmp_path.iterdir()) == []


# --- hustings keygen -----------------------------------------------------------------------------


def test_keygen_writes_a_key_and_does_not_show_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.key"
    assert run(["keygen", "--out", str(path)]) == 0
    shown = capsys.readouterr()
    key = read_key(path)
    assert shown.out == f"wrote {path}: key {key.id}\n"
    assert shown.err == ""
    assert run(["keygen", "--out", str(path)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"hustings: {path} exists")
    assert read_key(path) == key


def test_keygen_speaks_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.key"
    assert run(["keygen", "--json", "--out", str(path)]) == 0
    assert json.loads(capsys.readouterr().out) == {"id": read_key(path).id, "file": str(path)}
    assert run(["keygen", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert parse_key(told["key"].encode(), "stdout").id == told["id"]


def test_keygen_without_a_file_prints_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["keygen"]) == 0
    first = capsys.readouterr().out
    read_key(put(tmp_path / "a.key", first.encode()))
    assert run(["keygen"]) == 0
    assert capsys.readouterr().out != first
