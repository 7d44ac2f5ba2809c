"""Addresses of guards: taken apart, shown without secrets, and found by scheme."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint

import pytest

from hustings.core.errors import BadInput, UnknownName
from hustings.extras import install_command
from hustings.guard import Guard, make_guard, parse_url, schemes, urls
from hustings.guard.memory import MemoryGuard, register_of
from hustings.guard.registry import BY_SCHEME
from hustings.guard.urls import GuardUrl


def test_all_parts() -> None:
    url = parse_url("ETCD://ada:p%40ss%2Fword@a:1,b,[::1]:3/some/path%20x?ttl=2&name=x%26y")
    assert url.scheme == "etcd"
    assert url.hosts == (("a", 1), ("b", None), ("::1", 3))
    assert (url.user, url.password) == ("ada", "p@ss/word")
    assert url.path == "some/path x"
    assert url.options == {"ttl": "2", "name": "x&y"}
    assert url.shown == "etcd://ada@a:1,b,[::1]:3/some/path x"
    assert url.addresses(9) == [("a", 1), ("b", 9), ("::1", 3)]


def test_as_little_as_possible() -> None:
    url = parse_url("memory://")
    assert url == GuardUrl("memory://", "memory", (), None, None, "", {})
    assert url.shown == "memory://"
    assert url.addresses(9) == [("127.0.0.1", 9)]


@pytest.mark.parametrize(
    "text, user, password",
    [
        ("x://a", None, None),
        ("x://ada@a", "ada", None),
        ("x://ada:@a", "ada", ""),
        ("x://:secret@a", None, "secret"),
        ("x://ada:se:cret@a", "ada", "se:cret"),
        ("x://ada@corp:secret@a", "ada@corp", "secret"),
    ],
)
def test_accounts(text: str, user: str | None, password: str | None) -> None:
    url = parse_url(text)
    assert (url.user, url.password, url.hosts) == (user, password, (("a", None),))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "etcd",
        "etcd:a",
        "://a",
        "etcd://a:b",
        "etcd://a:0",
        "etcd://a:65536",
        "etcd://a:1:2",
        "etcd://:1",
        "etcd://[::1]x",
        "etcd://a b",
        "etcd://a\n",
        "etcd://a?x",
        "etcd://a:²",
        "etcd://[::1",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="guard"):
        parse_url(text)


@pytest.mark.parametrize(
    "text",
    [
        "postgres://ada:hush",
        "redis://:hush/word@host",
        "x://[hush",
        "redis://u:1?hush@a",
        "redis://u:1/hush@a",
        "x://a?hush",
    ],
)
def test_a_password_at_the_wrong_place_is_not_shown_either(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_url(text)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "x"])
def test_numbers_are_numbers(text: str) -> None:
    with pytest.raises(BadInput, match="must be a number"):
        parse_url(f"x://a?wait={text}").number("wait", 1.0)


def test_the_password_is_not_shown() -> None:
    url = parse_url("redis://ada:hush@a:1?timeout=x")
    assert "hush" not in url.shown
    with pytest.raises(BadInput) as number:
        url.number("timeout", 1.0)
    with pytest.raises(BadInput) as option:
        url.only("colour")
    assert "hush" not in f"{number.value}{option.value}"


def test_options() -> None:
    url = parse_url("etcd://a?timeout=2.5&colour=red")
    assert url.number("timeout", 1.0) == 2.5
    assert url.number("other", 1.0) == 1.0
    url.only("timeout", "colour")
    with pytest.raises(UnknownName, match=r"option of etcd 'colour': did you mean 'color'"):
        url.only("timeout", "color")
    with pytest.raises(BadInput, match="colour of etcd must be a number"):
        url.number("colour", 1.0)


def test_a_scheme_finds_its_guard() -> None:
    guard = make_guard("memory://space", "group")
    assert isinstance(guard, MemoryGuard)
    assert guard.register is register_of("space", "group")


def test_an_unknown_scheme_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'postgres'"):
        make_guard("postgress://a", "group")


def test_a_client_that_is_not_installed_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(name: str) -> None:
        raise ModuleNotFoundError("No module named 'asyncpg'", name="asyncpg")

    monkeypatch.setattr(urls, "import_module", fail)
    with pytest.raises(BadInput, match=r"asyncpg.*" + re.escape(install_command("postgres"))):
        make_guard("postgres://a", "group")


def make_foreign(url: GuardUrl, group: str) -> Guard:
    return MemoryGuard(register_of("foreign", f"{url.path}/{group}"))


def test_third_parties_add_schemes(monkeypatch: pytest.MonkeyPatch) -> None:
    here = EntryPoint("foreign", f"{__name__}:make_foreign", urls.GROUP)
    monkeypatch.setattr(EntryPoint, "load", lambda self: make_foreign)
    monkeypatch.setattr(urls, "entry_points", lambda group: [here] if group == urls.GROUP else [])
    assert schemes() == sorted([*BY_SCHEME, "foreign"])
    guard = make_guard("foreign://a/path", "group")
    assert isinstance(guard, MemoryGuard)
    assert guard.register is register_of("foreign", "path/group")


def test_a_password_is_not_in_what_python_shows_of_an_address() -> None:
    assert repr(parse_url("etcd://ada:secret@a:1/x")) == "GuardUrl('etcd://ada@a:1/x')"


def test_a_guard_without_a_groups_name_is_refused() -> None:
    with pytest.raises(BadInput, match="name of a group"):
        make_guard("memory://", "")
