"""The token for orders, and where HTTP may listen."""

from __future__ import annotations

from pathlib import Path

import pytest

from hustings.agent.access import LONGEST, SHORTEST, Token, permit_http, read_token
from hustings.core.errors import BadInput
from hustings.net.addresses import Address

WORD = "0123456789abcdef"


def token_file(folder: Path, data: bytes, mode: int = 0o600) -> Path:
    file = folder / "agent.token"
    file.write_bytes(data)
    file.chmod(mode)
    return file


@pytest.mark.parametrize(
    "header, admitted",
    [
        (f"Bearer {WORD}", True),
        (f"bearer  {WORD} ", True),
        (f"Basic {WORD}", False),
        (f"Bearer {WORD}x", False),
        ("Bearer", False),
        ("", False),
        (WORD, False),
        ("Bearer \xff\xfe", False),
    ],
)
def test_who_is_admitted(header: str, admitted: bool) -> None:
    assert Token(WORD).admits(header) is admitted


def test_the_file_goes_before_the_environment(tmp_path: Path) -> None:
    file = token_file(tmp_path, f" {WORD}\n".encode())
    assert read_token(file, "x" * 20, "TOKEN") == WORD
    assert read_token(None, "x" * 20, "TOKEN") == "x" * 20
    assert read_token(None, None, "TOKEN") is None


@pytest.mark.parametrize(
    "data", [b"", b"short", b"two words and more", b"\xff" * 20, b"x" * (LONGEST + 1)]
)
def test_what_is_no_token(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=f"agent.token must hold one word of {SHORTEST} to"):
        read_token(token_file(tmp_path, data), None, "TOKEN")


def test_a_token_that_everybody_can_read_is_none(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"can be used by everybody \(mode 644\): run chmod 600"):
        read_token(token_file(tmp_path, WORD.encode(), 0o644), None, "TOKEN")
    assert read_token(token_file(tmp_path, WORD.encode(), 0o640), None, "TOKEN") == WORD
    with pytest.raises(BadInput, match=r"cannot read token file .*: No such file"):
        read_token(tmp_path / "none", None, "TOKEN")


def test_where_http_may_listen() -> None:
    assert permit_http(Address("127.0.0.1", 7401), token=False) is None
    assert permit_http(Address("localhost", 7401), token=True) is None
    with pytest.raises(
        BadInput, match=r"HTTP on 0\.0\.0\.0:7401 is open to others and there is no"
    ):
        permit_http(Address("0.0.0.0", 7401), token=False)
    warning = permit_http(Address("0.0.0.0", 7401), token=True)
    assert warning is not None
    assert "not encrypted" in warning
