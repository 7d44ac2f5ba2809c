"""Redis' client: how it is made, what its errors mean, and a subscription that falls silent."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from redis import exceptions as refused

from hustings.core.errors import BadInput, UnknownName
from hustings.guard import Unreachable, make_guard, parse_url
from hustings.guard import redis as guards
from hustings.guard import redis_wire as module
from hustings.guard.redis import RedisGuard
from hustings.guard.redis_wire import Ear, RedisWire
from tests.net.kit.virtual import now, virtually
from tests.unit.guard.redis_model import Client, PubSub, Server

URL = "redis://cache:7000"


def wire_to(server: Server, url: str = URL, timeout: float = 2.0) -> RedisWire:
    wire = RedisWire(parse_url(url), timeout)
    wire._client = Client(server)
    return wire


# How the client is made


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What clients are made with."""
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(module, "Redis", lambda **given: seen.append(given))
    return seen


def test_an_address_becomes_a_client_that_repeats_nothing(made: list[dict[str, Any]]) -> None:
    RedisWire(parse_url("redis://ada:secret@cache:7000/3"), 1.5)
    (given,) = made
    retry = given.pop("retry")
    assert retry.get_retries() == 0
    assert given == {
        "host": "cache",
        "port": 7000,
        "db": 3,
        "username": "ada",
        "password": "secret",
        "socket_timeout": None,
        "socket_connect_timeout": 1.5,
        "decode_responses": True,
        "protocol": 2,
    }


def test_what_an_address_leaves_out(made: list[dict[str, Any]]) -> None:
    RedisWire(parse_url("redis://"), 1.5)
    (given,) = made
    assert (given["host"], given["port"], given["db"]) == ("127.0.0.1", 6379, 0)
    assert (given["username"], given["password"]) == (None, None)
    assert "ssl" not in given


def test_certificates_go_with_tls(made: list[dict[str, Any]]) -> None:
    RedisWire(parse_url("rediss://cache?ca=a.pem&cert=c.pem&key=k.pem"), 1.5)
    (given,) = made
    assert given["ssl"] is True
    assert (given["ssl_ca_certs"], given["ssl_certfile"]) == ("a.pem", "c.pem")
    assert given["ssl_keyfile"] == "k.pem"


# Addresses


def redis_guard(url: str, group: str = "jobs") -> RedisGuard:
    guard = make_guard(url, group)
    assert isinstance(guard, RedisGuard)
    return guard


def test_options_reach_the_guard() -> None:
    plain = redis_guard("redis://cache")
    assert (plain._poll, plain._wire.timeout) == (5.0, 2.0)
    assert not plain.guarantees.monotone
    other = redis_guard("valkey://cache/7?timeout=0.5&poll=9&persistence=always")
    assert (other._poll, other._wire.timeout) == (9.0, 0.5)
    assert other.guarantees.monotone


def test_no_group_is_another_ones_key() -> None:
    keys = {redis_guard(URL, group)._key for group in ("a", "a:b", "a}", "{a}", "a/b", "ä")}
    assert len(keys) == 6
    assert all(re.fullmatch(r"hustings:\{[\w%.]+\}:guard", key) for key in keys)


@pytest.mark.parametrize(
    "url, sentence",
    [
        ("redis://a,b", "a guard in redis is one server, and 2 are given"),
        ("redis://a/one", "the number of a database, not 'one'"),
        ("redis://a/%C2%B2", "the number of a database"),
        ("redis://a?persistence=never", "must be one of unknown, always, not 'never'"),
        ("rediss://a?ca=/nowhere/x", "option ca of rediss: there is no file '/nowhere/x'"),
        ("rediss://a?key=/nowhere/y", "option key of rediss: there is no file '/nowhere/y'"),
        ("redis://a?poll=0", "poll of redis must be a positive time"),
    ],
)
def test_wrong_addresses_get_a_sentence(url: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=re.escape(sentence)):
        make_guard(url, "jobs")


def test_certificates_are_files_and_belong_to_tls(tmp_path: Path) -> None:
    there = tmp_path / "ca.pem"
    there.write_text("")
    redis_guard(f"rediss://a?ca={there}")
    with pytest.raises(UnknownName, match="option of redis"):
        make_guard(f"redis://a?ca={there}", "jobs")
    assert guards.make(parse_url("rediss://a"), "jobs").guarantees is guards.VOLATILE


# What errors mean


def secretly(reason: str) -> Exception:
    """An error of the client that TLS has caused."""
    error = refused.ConnectionError("Error 1 connecting")
    cause = ssl.SSLError(1, f"[SSL] {reason}")
    cause.reason = reason
    error.__context__ = cause
    return error


CURED_BY_NOBODY = [
    (refused.AuthenticationError("no"), "refuses access: no"),
    (refused.AuthorizationError("no"), "refuses access: no"),
    (refused.NoPermissionError("no"), "refuses access: no"),
    (refused.AuthenticationWrongNumberOfArgsError("no"), "refuses access: no"),
    (refused.MovedError("1 10.0.0.1:1"), "is a node of a cluster: a guard needs one server"),
    (refused.ResponseError("ERR DB index is out of range"), ": ERR DB index is out of range"),
]
MAY_PASS = [
    (TimeoutError(), "did not answer within 2 s"),
    (refused.TimeoutError("late"), "did not answer within 2 s"),
    (refused.ConnectionError("refused"), "cannot be reached: refused"),
    (refused.BusyLoadingError("loading"), "cannot be reached: loading"),
    (refused.ResponseError("OOM"), "cannot answer: OOM"),
    (refused.ReadOnlyError("a replica"), "cannot answer: a replica"),
    (refused.InvalidResponse("what?"), "cannot be asked: what?"),
    (OSError("broken"), "cannot be asked: broken"),
]


@contextmanager
def said(kind: type[Exception], sentence: str) -> Iterator[None]:
    with pytest.raises(kind) as caught:
        yield
    assert str(caught.value) == sentence
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("error, sentence", CURED_BY_NOBODY, ids=lambda each: str(each)[:20])
def test_what_waiting_does_not_cure(error: Exception, sentence: str) -> None:
    async def story() -> None:
        between = "" if sentence.startswith(":") else " "
        with said(BadInput, f"{URL}{between}{sentence}"):
            async with wire_to(Server()).understood():
                raise error

    virtually(story())


@pytest.mark.parametrize("error, sentence", MAY_PASS, ids=lambda each: str(each)[:20])
def test_what_may_pass(error: Exception, sentence: str) -> None:
    async def story() -> None:
        with said(Unreachable, f"{URL} {sentence}"):
            async with wire_to(Server()).understood():
                raise error

    virtually(story())


def test_no_tls_is_a_mistake() -> None:
    async def story() -> None:
        with said(BadInput, "no TLS with rediss://cache:7000: WRONG_VERSION_NUMBER"):
            async with wire_to(Server(), "rediss://cache:7000").understood():
                raise secretly("WRONG_VERSION_NUMBER")

    virtually(story())


@pytest.mark.parametrize(
    "url, sentence",
    [
        (URL, f"{URL} did not answer within 0.25 s"),
        (
            "rediss://cache:7000",
            "rediss://cache:7000 did not answer within 0.25 s: does it speak TLS?",
        ),
    ],
)
def test_a_question_takes_no_longer_than_its_time(url: str, sentence: str) -> None:
    async def story() -> None:
        wire = wire_to(Server(), url, timeout=0.25)
        with said(Unreachable, sentence):
            async with wire.understood():
                await asyncio.sleep(0.26)
        assert now() == 0.25
        async with wire.understood():
            await asyncio.sleep(0.24)

    virtually(story())


def test_settings_are_texts_or_not_to_be_known() -> None:
    async def story() -> None:
        server = Server()
        server.settings = {"maxmemory": 0}  # type: ignore[dict-item]  # some clients read numbers
        wire = wire_to(server)
        assert await wire.setting("maxmemory") == "0"
        assert await wire.setting("appendonly") is None
        server.forbidden = refused.ResponseError("unknown command CONFIG")
        assert await wire.setting("maxmemory") is None

    virtually(story())


# Subscriptions


def test_a_subscription_begins_with_the_servers_consent_and_ends_with_its_block() -> None:
    async def story() -> None:
        wire = wire_to(Server())
        async with wire.listening("news"):
            (hearing,) = wire._client.pubsubs
            assert hearing.channels == ["news"]
            assert hearing.calls == [("subscribe", None), ("hear", 2.0)]
            assert hearing.closed == 0
        assert hearing.closed == 1

    virtually(story())


def test_a_subscription_that_fails_is_closed_and_explained() -> None:
    async def story() -> None:
        wire = wire_to(Server())
        broken = PubSub(Server())
        broken.fails = refused.NoPermissionError("no channels for you")
        entered = []
        wire._client.pubsub = lambda: broken
        with said(BadInput, f"{URL} refuses access: no channels for you"):
            async with wire.listening("news"):
                entered.append(broken)
        assert (entered, broken.closed) == ([], 1)

    virtually(story())


def ear_on(hearing: PubSub) -> Ear:
    return Ear(hearing, URL, 2.0)


def test_who_hears_something_waits_no_longer() -> None:
    async def story() -> None:
        hearing = PubSub(Server())
        asyncio.get_running_loop().call_later(1.0, hearing.heard.put_nowait, {})
        await ear_on(hearing).wait(60.0)
        assert now() == 1.0
        assert hearing.calls == [("hear", 60.0)], "nothing more is asked"

    virtually(story())


def test_who_hears_nothing_asks_whether_anybody_is_there() -> None:
    async def story() -> None:
        hearing = PubSub(Server())
        await ear_on(hearing).wait(60.0)
        assert now() == 60.0
        assert hearing.calls == [("hear", 60.0), ("ping", None), ("hear", None)]
        assert hearing.heard.empty(), "the answer is not taken for news later"

    virtually(story())


def test_an_answer_to_that_may_take_the_time_of_a_question_and_no_longer() -> None:
    async def story() -> None:
        slow = PubSub(Server())
        slow.answers_pings = False
        asyncio.get_running_loop().call_later(61.9, slow.heard.put_nowait, {})
        await ear_on(slow).wait(60.0)
        assert now() == pytest.approx(61.9)
        dead = PubSub(Server())
        dead.answers_pings = False
        with said(Unreachable, f"{URL} has fallen silent"):
            await ear_on(dead).wait(10.0)
        assert now() == pytest.approx(61.9 + 12.0)

    virtually(story())


class Early(PubSub):
    """A client that finds out sooner that nothing was said."""

    async def get_message(self, timeout: float | None) -> Any:
        if timeout is None:
            return await super().get_message(None)
        self.calls.append(("hear", timeout))
        await asyncio.sleep(1.0)
        return None


def test_the_time_of_that_question_counts_from_when_it_is_asked() -> None:
    async def story() -> None:
        hearing = Early(Server())
        hearing.answers_pings = False
        with said(Unreachable, f"{URL} has fallen silent"):
            await ear_on(hearing).wait(60.0)
        assert now() == 3.0

    virtually(story())


class Stuck(PubSub):
    """A client that connects again by itself and waits for a greeting without end."""

    async def get_message(self, timeout: float | None) -> Any:
        await asyncio.get_running_loop().create_future()


def test_a_client_that_never_comes_back_is_given_up() -> None:
    async def story() -> None:
        with said(Unreachable, f"{URL} has fallen silent"):
            await ear_on(Stuck(Server())).wait(5.0)
        assert now() == 7.0

    virtually(story())


@pytest.mark.parametrize("error", [OSError("cut"), refused.ConnectionError("cut")])
def test_a_broken_subscription_is_explained(error: Exception) -> None:
    async def story() -> None:
        hearing = PubSub(Server())
        hearing.fails = error
        with said(Unreachable, f"{URL} is not heard any more: cut"):
            await ear_on(hearing).wait(5.0)

    virtually(story())
