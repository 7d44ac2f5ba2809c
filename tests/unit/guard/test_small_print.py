"""Limits and odd cases of addresses, passwords and marks."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from hustings.core.errors import BadInput, UnknownName
from hustings.guard import Guard, make_guard, parse_url, urls
from hustings.guard.local_expiry import LocalExpiry
from hustings.guard.memory import MemoryGuard, Register
from hustings.guard.passwords import LONGEST, check_passfile, from_file
from hustings.guard.urls import seconds


def test_who_takes_no_password_is_offered_none() -> None:
    with pytest.raises(UnknownName) as caught:
        make_guard("memory://?pasword_file=x", "jobs")
    assert "password" not in str(caught.value)
    with pytest.raises(UnknownName, match="did you mean 'password_file'"):
        make_guard("redis://a?pasword_file=x", "jobs")


def test_of_several_schemes_of_third_parties_the_one_of_this_name_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[str] = []

    def load(self: EntryPoint) -> object:
        def make(url: object, group: str) -> Guard:
            made.append(self.name)
            return MemoryGuard(Register())

        return make

    here = [EntryPoint(name, "x:y", urls.GROUP) for name in ("other", "mine", "more")]
    monkeypatch.setattr(EntryPoint, "load", load)
    monkeypatch.setattr(urls, "entry_points", lambda group: here)
    assert make_guard("mine://a", "jobs").group == "jobs"
    assert made == ["mine"]


def test_a_number_sign_ends_no_address() -> None:
    assert parse_url("redis://h/0#x").path == "0#x"
    assert parse_url("redis://h?timeout=1#x").options == {"timeout": "1#x"}


def test_a_short_time_is_a_time() -> None:
    assert seconds(parse_url("redis://h?timeout=0.5"), "timeout", 2.0) == 0.5


def test_a_password_may_be_so_long_and_no_longer(tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_text("x" * LONGEST)
    path.chmod(0o600)
    assert from_file(str(path), "option") == "x" * LONGEST
    path.write_text("x" * (LONGEST + 1))
    with pytest.raises(BadInput, match="longer than"):
        from_file(str(path), "option")


def test_a_passfile_that_only_its_owner_reads_is_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "pgpass"
    path.write_text("*:*:*:*:secret\n")
    path.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(path))
    check_passfile()
    monkeypatch.setenv("PGPASSFILE", "")
    check_passfile()
    monkeypatch.delenv("PGPASSFILE")
    check_passfile()


def test_who_has_written_nothing_has_promised_nothing() -> None:
    assert LocalExpiry().promised(0.0) == ("", 0.0)
