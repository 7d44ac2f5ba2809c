"""The edges of the fences of PostgreSQL and Redis that need no server: what is asked of drivers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hustings.core.errors import BadInput
from hustings.fence import FenceBroken, PostgresFence, RedisFence
from hustings.fence.postgres import stale_token

IDLE, BUSY = 0, 2  # transaction_status, in libpq's numbers


class Driver:
    """A connection of psycopg, of either kind, that writes down what it is asked for."""

    def __init__(
        self, status: int = IDLE, *, autocommit: bool = False, fails: bool = False
    ) -> None:
        self.autocommit = autocommit
        self.log: list[Any] = []
        self.fails = fails
        self.info = type("Info", (), {"transaction_status": status})

    def cursor(self) -> Any:
        driver = self

        class Cursor:
            def execute(self, sql: str, values: Any = ()) -> None:
                driver.log.append((sql, values))
                if driver.fails:
                    raise ZeroDivisionError

            def close(self) -> None:
                driver.log.append("closed")

        return Cursor()

    async def execute(self, sql: str, values: Any = ()) -> None:
        self.log.append((sql, values))

    def commit(self) -> None:
        self.log.append("commit")

    def rollback(self) -> None:
        self.log.append("rollback")


CHECK = ("SELECT public.hustings_fence_within(%s, %s, %s, %s)", ("jobs", 7, 5000, 5000))


def test_an_asynchronous_psycopg_connection_is_checked_within_a_transaction() -> None:
    fence = PostgresFence("jobs")
    for driver in (Driver(), Driver(BUSY), Driver(BUSY, autocommit=True)):
        asyncio.run(fence.check(driver, 7))
        assert driver.log == [CHECK]
    by_itself = Driver(autocommit=True)
    with pytest.raises(BadInput, match="needs a transaction"):
        asyncio.run(fence.check(by_itself, 7))
    assert by_itself.log == []


def test_to_raise_a_token_does_not_touch_an_open_transaction() -> None:
    """A rollback would lose what the caller has written, without a word."""
    driver = Driver(BUSY)
    with pytest.raises(BadInput, match="a transaction of its own"):
        PostgresFence("jobs").raise_token_sync(driver, 7)
    assert driver.log == []


def test_to_raise_a_token_takes_a_transaction_that_fails_as_a_whole() -> None:
    fence = PostgresFence("jobs")
    driver = Driver()
    fence.raise_token_sync(driver, 7)
    level = ("SET TRANSACTION ISOLATION LEVEL READ COMMITTED", ())
    assert driver.log == [level, "closed", CHECK, "closed", "commit"]
    failing = Driver(fails=True)
    with pytest.raises(ZeroDivisionError):
        fence.raise_token_sync(failing, 7)
    assert failing.log == [level, "closed", "rollback"]


@pytest.mark.parametrize("wrong", [0, -1, 1 << 63, True])
def test_what_is_no_token_reaches_no_driver(wrong: int) -> None:
    driver, fence = Driver(), PostgresFence("jobs")
    for call in (fence.check_sync, fence.raise_token_sync):
        with pytest.raises(BadInput, match="token"):
            call(driver, wrong)
    for asked in (fence.check, fence.raise_token):
        with pytest.raises(BadInput, match="token"):
            asyncio.run(asked(driver, wrong))
    assert driver.log == []


def test_bounds_of_names_and_times() -> None:
    assert PostgresFence("j").resource == "j"
    assert PostgresFence("j" * 255).resource == "j" * 255
    for name in ("", "j" * 256, "a\0b"):
        with pytest.raises(BadInput, match="name"):
            PostgresFence(name)
    PostgresFence("j", wait=0.001, idle=86_400)
    for seconds in (0.0, 0.0009, 86_401, float("nan")):
        with pytest.raises(BadInput, match="seconds"):
            PostgresFence("j", wait=seconds)
        with pytest.raises(BadInput, match="seconds"):
            PostgresFence("j", idle=seconds)


class Refused(Exception):
    """An error of psycopg2, which has both names for a state, and one of them empty."""

    sqlstate = None
    pgcode = "LE001"
    detail: str | None = "highest=9"


def test_a_driver_may_name_the_state_in_its_own_way() -> None:
    stale = stale_token(Refused("token 7 of jobs is stale: 9 was here"))
    assert stale is not None
    assert (stale.token, stale.highest) == (7, 9)
    assert stale_token(ZeroDivisionError()) is None


def test_a_refusal_that_says_no_more_is_not_taken_for_another() -> None:
    silent = Refused("token 7 of jobs is stale")
    silent.detail = None
    for error in (silent, Refused("no")):
        with pytest.raises(FenceBroken, match="without saying more"):
            stale_token(error)


class Client:
    """A client of Redis that answers as it is told, and writes down what it is asked for."""

    def __init__(self, answer: Any = ("done", 1), fails: Exception | None = None) -> None:
        self.answer, self.fails = answer, fails
        self.log: list[Any] = []

    def evalsha(self, digest: str, count: int, *words: Any) -> Any:
        self.log.append(("evalsha", count, words))
        if self.fails is not None:
            raise self.fails
        return self.answer

    def eval(self, text: str, count: int, *words: Any) -> Any:
        self.log.append(("eval", count, words))
        return self.answer


class NoScriptError(Exception):
    pass


FENCE = RedisFence("jobs")
KEY = "hustings:fence:{jobs}"


@pytest.mark.parametrize("answer", [None, [], (), "QUEUED", object(), 7, b"done"])
def test_a_client_that_does_not_answer_at_once_is_refused(answer: Any) -> None:
    """A pipeline gives back itself, and an asynchronous client something to wait for."""
    with pytest.raises(BadInput, match="does not answer at once"):
        FENCE.call(Client(answer), 7, "SET", "a", "b")


@pytest.mark.parametrize("answer", [["refused", "9"], [b"refused", b"9"], ("refused", 9)])
def test_a_refusal_names_the_highest_in_whatever_form(answer: Any) -> None:
    with pytest.raises(Exception, match="9 was here"):
        FENCE.call(Client(answer), 7, "SET", "a", "b")
    with pytest.raises(FenceBroken, match="does not hold a token"):
        FENCE.call(Client(["refused", "damaged"]), 7, "SET", "a", "b")


def test_only_an_unknown_script_is_sent_again() -> None:
    """What became of a command whose connection broke is not known: it is not run twice."""
    broken = Client(fails=ConnectionError("gone"))
    with pytest.raises(ConnectionError):
        FENCE.call(broken, 7, "SET", "a", "b")
    assert [name for name, *_ in broken.log] == ["evalsha"]
    for error in (NoScriptError(), Exception("NOSCRIPT No matching script")):
        fresh = Client(fails=error)
        assert FENCE.call(fresh, 7, "SET", "a", "b") == 1
        assert [name for name, *_ in fresh.log] == ["evalsha", "eval"]
        assert fresh.log[0][1:] == fresh.log[1][1:]


def test_keys_are_the_word_after_the_command_unless_given() -> None:
    client = Client()
    FENCE.call(client, 7, "PING")
    FENCE.call(client, 7, "INCR", "a")
    FENCE.call(client, 7, "SET", "a", "b")
    FENCE.call(client, 7, "WAIT", 1, 2)
    FENCE.call(client, 7, "MSET", "a", 1, "b", 2, keys=["a", "b"])
    assert [(count, words) for _, count, words in client.log] == [
        (1, (KEY, "7", "PING")),
        (2, (KEY, "a", "7", "INCR", "a")),
        (2, (KEY, "a", "7", "SET", "a", "b")),
        (1, (KEY, "7", "WAIT", 1, 2)),
        (3, (KEY, "a", "b", "7", "MSET", "a", 1, "b", 2)),
    ]
