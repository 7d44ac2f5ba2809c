"""`hustings guards`: the catalogue, a look at an engine, and what it says when it cannot."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from hustings.cli.app import hustings
from hustings.core.errors import BadInput
from hustings.guard.catalogue import CATALOGUE
from hustings.guard.seam import Grant, Holder
from hustings.guard.urls import BUILT_IN, make_guard
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
    same = {"etcds": "etcd", "postgresql": "postgres", "rediss": "redis", "valkey": "redis"}
    assert {row["name"] for row in rows} == {"quorum", *(same.get(it, it) for it in BUILT_IN)}
    assert all(row["installed"] for row in rows)
    by_name = {row["name"]: row for row in rows}
    advisory = {name for name, row in by_name.items() if row["guarantee"] != "leased"}
    assert advisory == {"redis"}, "a failover may forget a lease, unless somebody vouches for it"
    assert (by_name["redis"]["monotone"], by_name["etcd"]["monotone"]) == (False, True)
    assert "written conversations" in by_name["consul"]["evidence"]
    assert "tokens grow" in told()
    assert len(CATALOGUE) == len(rows)


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


def test_the_schema_is_installed_where_it_is_missing() -> None:
    with started("postgres") as engine:
        address = engine.url("installed")
        assert "held by: nobody" in told(address, "--group", "installed", "--install")
        assert "held by: nobody" in told(address, "--group", "installed")
