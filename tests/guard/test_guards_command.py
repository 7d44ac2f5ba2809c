"""`hustings guards`: the catalogue, a look at an engine, and what it says when it cannot."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from hustings.cli.app import hustings
from hustings.core.errors import BadInput
from hustings.guard import inspection
from hustings.guard.base import Grant, Holder
from hustings.guard.registry import BY_SCHEME, CATALOGUE
from hustings.guard.urls import make_guard
from tests.guard.engines import started
from tests.guard.engines.base import Engine


@pytest.fixture(scope="module")
def valkey() -> Iterator[Engine]:
    with started("valkey") as engine:
        yield engine


def told(*words: str) -> str:
    result = CliRunner().invoke(hustings, ["guards", *words], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_every_built_in_guard_is_listed_and_keeps_its_word_about_it() -> None:
    rows = json.loads(told("--json"))["guards"]
    assert {row["name"] for row in rows} == {"quorum", *(it.name for it in BY_SCHEME.values())}
    assert all(row["installed"] for row in rows)
    by_name = {row["name"]: row for row in rows}
    advisory = {name for name, row in by_name.items() if row["guarantee"] != "leased"}
    assert advisory == {"redis"}, "a failover may forget a lease, unless somebody vouches for it"
    assert (by_name["redis"]["monotone"], by_name["etcd"]["monotone"]) == (False, True)
    assert "written conversations" in by_name["consul"]["evidence"]
    assert "tokens grow" in told()
    assert len(CATALOGUE) == len(rows)


def test_a_guard_that_cannot_be_used_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its client is there: nothing has to be installed."""
    monkeypatch.setenv("CONSUL_HTTP_TOKEN_FILE", "/nowhere/token")
    monkeypatch.setitem(sys.modules, "hustings.guard.nats", None)  # as if it had no client
    why = "CONSUL_HTTP_TOKEN_FILE: cannot read password file /nowhere/token: "
    rows = {row["name"]: row for row in json.loads(told("--json"))["guards"]}
    assert (rows["consul"]["installed"], rows["nats"]["installed"]) == (True, False)
    assert rows["consul"]["problem"].startswith(why)
    assert "pip install" in rows["nats"]["problem"]
    assert "problem" not in rows["etcd"]
    (consul,) = (line for line in told().splitlines() if line.startswith("! consul: "))
    assert why in consul
    table = told().split("hustings guards URL")[0]
    assert "cannot be used" in table
    assert "not installed" in table


def test_who_holds_is_told(valkey: Engine) -> None:
    url = valkey.url("looked-at")

    async def hold() -> Grant:
        async with make_guard(url, "looked-at") as guard:
            grant = await guard.acquire(Holder("web-1", 1), 30.0)
            assert isinstance(grant, Grant)
            return grant

    nobody = json.loads(told(url, "--group", "looked-at", "--json"))
    assert nobody["holder"] is None
    grant = asyncio.run(hold())
    seen = json.loads(told(url, "--group", "looked-at", "--json"))
    assert (seen["holder"], seen["token"]) == ("web-1", grant.token)
    assert f"web-1, token {grant.token}" in told(url, "--group", "looked-at")


@pytest.mark.parametrize(
    "words, sentence",
    [
        (("redis://127.0.0.1:1",), "does not answer"),
        (("quorum://a,b,c",), "ask one of its members"),
        (("memory://", "--install"), "needs nothing installed"),
        (("--install",), "needs the address"),
        (("eetcd://x",), "did you mean 'etcd'"),
    ],
)
def test_what_it_cannot_do(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        told(*words)


def test_a_program_asks_the_same_as_the_command(valkey: Engine) -> None:
    url = valkey.url("asked")

    async def hold() -> Grant:
        async with make_guard(url, "asked") as guard:
            grant = await guard.acquire(Holder("web-1", 1), 30.0)
            assert isinstance(grant, Grant)
            return grant

    grant = asyncio.run(hold())
    found = asyncio.run(inspection.look(url, "asked"))
    assert (found.holding.holder, found.holding.token) == ("web-1", grant.token)
    assert found.to_json() == json.loads(told(url, "--group", "asked", "--json"))
    made = asyncio.run(inspection.look(lambda group: make_guard(url, group), "asked"))
    assert made == found, "a function that makes the guard, as join takes it"


def test_the_schema_is_installed_where_it_is_missing() -> None:
    with started("postgres") as engine:
        address = engine.url("installed")
        said = told(address, "--group", "installed", "--install")
        assert said.startswith("installed: ")
        assert "held by: nobody" in said
        assert told(address, "--group", "installed").startswith("installed is held by: nobody")
        assert "held by" not in told(address), "nobody has asked about a group"
        assert told(address).startswith("the engine answers; with --group GROUP")


def complains(*words: str) -> str:
    result = CliRunner().invoke(hustings, ["guards", *words])
    assert isinstance(result.exception, BadInput), result.output
    return str(result.exception)


def test_tokens_are_lifted_by_command() -> None:
    whose = ("memory://lifted-by-command", "--group", "jobs")
    told_ = told(*whose, "--recover", "--above", "81733", "--yes")
    assert "all tokens of jobs are larger than 81733 from now on" in told_
    found = json.loads(told(*whose, "--recover", "--above", "9", "--yes", "--json"))
    assert (found["group"], found["above"], found["holder"]) == ("jobs", 9, None)

    async def token() -> int:
        async with make_guard(whose[0], "jobs") as guard:
            grant = await guard.acquire(Holder("a", 1), 5.0)
            assert isinstance(grant, Grant)
            return grant.token

    assert asyncio.run(token()) == 81734


@pytest.mark.parametrize(
    "words, says",
    [
        ("--recover --above 5 --yes", "address"),
        ("memory:// --recover --above 5 --yes", "--group"),
        ("memory:// --group g --recover --yes", "--above"),
        ("memory:// --group g --recover --above 5", "--yes"),
        ("memory:// --group g --recover --above 5 --json", "--yes"),
        ("memory:// --group g --recover --above five --yes", "whole number, not 'five'"),
        ("memory:// --group g --recover --above 1_000 --yes", "whole number"),
        ("memory:// --group g --recover --above -5 --yes", "whole number"),
        ("memory:// --group g --recover --above 0 --yes", "a token is a number from 1"),
        ("memory:// --group g --recover --above 9007199254740992 --yes", "a token is a number"),
        ("quorum://a,b,c --group g --recover --above 5 --yes", "its members"),
        ("memory:// --above 5", "for --recover"),
        ("memory:// --yes", "for --recover"),
    ],
)
def test_what_cannot_be_recovered_is_said(words: str, says: str) -> None:
    assert says in complains(*words.split())


def test_somebody_at_a_terminal_is_asked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    whose = ["guards", "memory://asked", "--group", "jobs", "--recover", "--above", "7"]
    monkeypatch.setattr("hustings.cli.guards.is_terminal", lambda: True)
    for answer, code in (("n\n", 1), ("y\n", 0)):
        result = CliRunner().invoke(hustings, whose, input=answer)
        assert result.exit_code == code
        assert "jobs is held by: nobody" in result.stderr
        assert ("all tokens of jobs" in result.stdout) == (code == 0)
