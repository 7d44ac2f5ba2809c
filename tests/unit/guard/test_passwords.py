"""Passwords of guards from files, variables and the engines' own conventions; never shown."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

import pytest

from hustings.core.errors import BadInput, UnknownName
from hustings.guard import make_guard, parse_url
from hustings.guard.config import guard_for
from hustings.guard.passwords import CONVENTIONS, LONGEST, with_password
from hustings.guard.postgres_wire import PostgresAddress
from hustings.guard.quorum import VoterOptions
from tests.net.kit.loops import run

SECRET = "pä55 w0rd/@:%"
SCHEMES = ["consul", "etcd", "nats", "postgres", "redis", "rediss", "valkey", "zookeeper"]


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's own variables."""
    for name in ["PGPASSWORD", "PGPASSFILE", *(n for v in CONVENTIONS.values() for n, _ in v)]:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pass word"
    path.write_text(SECRET + "\n")
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_password_comes_from_a_file_or_a_variable(
    scheme: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET", SECRET)
    user = "" if scheme == "consul" else "ada@"
    for option in (f"password_file={quote(str(file))}", "password_env=MY_SECRET"):
        text = f"{scheme}://{user}a:1?timeout=3&{option}"
        url = with_password(parse_url(text))
        assert url.password == SECRET
        assert url.options == {"timeout": "3"}
        assert SECRET not in repr(url) + url.shown
        make_guard(text, "group")
        assert guard_for(text, "group", lambda _: 1).shown == parse_url(text).shown


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_the_end_of_a_line_is_no_part_of_it(file: Path, ending: str) -> None:
    file.write_bytes(f" {SECRET} {ending}".encode())
    url = with_password(parse_url(f"redis://a?password_file={quote(str(file))}"))
    assert url.password == f" {SECRET} "


@pytest.mark.parametrize(
    "content, word",
    [
        (b"", "empty"),
        (b"\n", "empty"),
        (b"s3cret\ns3cret\n", "one line"),
        (b"s3cret\0", "one line"),
        (b"s3cret\xff", "UTF-8"),
        (b"s3cret" * LONGEST, "longer than"),
    ],
)
def test_what_is_in_a_file_is_checked_and_not_told(file: Path, content: bytes, word: str) -> None:
    file.write_bytes(content)
    with pytest.raises(BadInput, match=word) as caught:
        make_guard(f"redis://a?password_file={quote(str(file))}", "group")
    assert "s3cret" not in str(caught.value)
    assert "password_file" in str(caught.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o610])
def test_a_file_that_others_can_read_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(BadInput, match=rf"mode {mode:o}.*chmod 600"):
        make_guard(f"redis://a?password_file={quote(str(file))}", "group")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for path, word in (("none", "No such file"), ("pipe", "regular"), ("", "regular|directory")):
        with pytest.raises(BadInput, match=word):
            make_guard(f"redis://a?password_file={quote(str(tmp_path / path))}", "group")
    with pytest.raises(BadInput, match="empty"):
        make_guard("redis://a?password_file=", "group")


@pytest.mark.parametrize(
    "name, word",
    [("", "name of an env"), ("a-b", "name of an env"), ("NOT_SET_AT_ALL", "no environment")],
)
def test_a_variable_must_be_one(name: str, word: str) -> None:
    with pytest.raises(BadInput, match=word):
        make_guard(f"redis://a?password_env={name}", "group")


def test_a_variable_that_is_empty_or_odd_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, word in (("", "empty"), ("a\nb", "one line")):
        monkeypatch.setenv("MY_SECRET", value)
        with pytest.raises(BadInput, match=word):
            make_guard("redis://a?password_env=MY_SECRET", "group")


@pytest.mark.parametrize(
    "text",
    [
        "redis://:s3cret@a?password_env=X",
        "redis://:@a?password_file=x",
        "redis://a?password_file=x&password_env=X",
    ],
)
def test_a_password_is_given_once(text: str) -> None:
    with pytest.raises(BadInput, match="given once") as caught:
        make_guard(text, "group")
    assert "s3cret" not in str(caught.value)


def test_who_has_no_password_takes_none() -> None:
    with pytest.raises(BadInput, match="takes no password"):
        make_guard("memory://?password_env=X", "group")
    with pytest.raises(UnknownName, match="known: durable"):
        VoterOptions(parse_url("quorum://a,b,c?password_env=X"), lambda _: 1)


def test_a_misspelt_option_is_answered_with_the_right_one() -> None:
    with pytest.raises(UnknownName, match="did you mean 'password_file'"):
        make_guard("redis://a?pasword_file=x", "group")


@pytest.mark.parametrize(
    "text, name",
    [
        ("consul://a", "CONSUL_HTTP_TOKEN"),
        ("etcd://ada@a", "ETCDCTL_PASSWORD"),
        ("etcds://ada@a", "ETCDCTL_PASSWORD"),
        ("nats://ada@a", "NATS_PASSWORD"),
        ("redis://a", "REDISCLI_AUTH"),
        ("rediss://ada@a", "REDISCLI_AUTH"),
        ("valkey://a", "VALKEYCLI_AUTH"),
        ("valkey://a", "REDISCLI_AUTH"),
    ],
)
def test_the_variables_of_the_engines_own_tools_count(
    text: str, name: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "of-the-tool")
    assert with_password(parse_url(text)).password == "of-the-tool"
    nearer = f"{text}?password_file={quote(str(file))}"
    assert with_password(parse_url(nearer)).password == SECRET, "what the address says goes first"
    monkeypatch.setenv(name, "")
    assert with_password(parse_url(text)).password is None
    monkeypatch.setenv(name, "s3cret\n")
    with pytest.raises(BadInput, match=name) as caught:
        with_password(parse_url(text))
    assert "s3cret" not in str(caught.value)


def test_a_password_without_a_user_means_nothing_to_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETCDCTL_PASSWORD", "x")
    make_guard("etcd://a", "group")  # which refuses a password without a user
    assert with_password(parse_url("etcd://a")).password is None


def test_consul_may_name_a_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSUL_HTTP_TOKEN_FILE", str(file))
    assert with_password(parse_url("consul://a")).password == SECRET
    file.chmod(0o644)
    with pytest.raises(BadInput, match=r"CONSUL_HTTP_TOKEN_FILE.*chmod 600"):
        with_password(parse_url("consul://a"))


def test_a_passfile_of_postgres_that_cannot_be_used_is_refused(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = PostgresAddress(parse_url("postgres://ada@127.0.0.1:1/a"))
    monkeypatch.setenv("PGPASSFILE", str(file))
    file.chmod(0o640)
    with pytest.raises(BadInput, match=r"PGPASSFILE.*chmod 600"):
        run(address.dial())
    monkeypatch.setenv("PGPASSFILE", str(file) + ".no")
    with pytest.raises(BadInput, match=r"PGPASSFILE.*No such file"):
        run(address.dial())
