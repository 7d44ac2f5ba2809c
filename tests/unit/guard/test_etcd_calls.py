"""Logins, single questions, addresses and papers of an etcd cluster's nodes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aetcd import rpc

from hustings.core.errors import BadInput
from hustings.guard import Grant, Guard, Holder, Holding, Unreachable, make_guard
from hustings.guard.etcd_nodes import EtcdLine, EtcdNode
from tests.net.kit.virtual import virtually
from tests.unit.guard.fakes_etcd import Channel, Etcd, failure

ADA = Holder("ada", 1)
CODE = rpc.StatusCode


async def ask(line: EtcdLine) -> int:
    answer = await line.call(line.kv.Range, rpc.RangeRequest(key=b"x"))
    return int(answer.header.revision)


# --- logins --------------------------------------------------------------------------------------


def with_password() -> Guard:
    return make_guard("etcd://ada:pw@h", "jobs")


def test_one_login_serves_all_questions(etcd: Etcd) -> None:
    async def story() -> None:
        etcd.accounts = {"ada": "pw"}
        async with with_password() as guard:
            grant = await guard.acquire(ADA, 5.0)
            assert isinstance(grant, Grant)
            await guard.renew(grant, 5.0)
            async with guard.observe() as states:
                assert await anext(states) == Holding("ada", grant.token)
            login, *others = etcd.asked
            assert (login.method, login.metadata) == ("Authenticate", ())
            assert (login.request.name, login.request.password) == ("ada", "pw")
            assert login.timeout == pytest.approx(2.0)
            assert {("token", "login-1") in each.metadata for each in others} == {True}

    virtually(story())


def test_a_login_that_has_ended_is_made_anew(etcd: Etcd) -> None:
    async def story() -> None:
        etcd.accounts = {"ada": "pw"}
        async with with_password() as guard:
            grant = await guard.acquire(ADA, 5.0)
            assert isinstance(grant, Grant)
            etcd.logins = {"another"}
            assert (await guard.renew(grant, 5.0)).token == grant.token
            assert etcd.methods().count("Authenticate") == 2

    virtually(story())


def test_a_wrong_password_is_told_when_it_is_opened(etcd: Etcd) -> None:
    async def story() -> None:
        etcd.accounts = {"ada": "other"}
        with pytest.raises(BadInput, match="authentication failed"):
            await with_password().open()
        etcd.accounts = {}
        with pytest.raises(BadInput, match="authentication is not enabled"):
            await with_password().open()

    virtually(story())


def test_a_first_login_that_is_refused_is_not_repeated(etcd: Etcd) -> None:
    async def story() -> None:
        etcd.down = {"h:2379": failure(CODE.UNAUTHENTICATED, "who?")}
        with pytest.raises(BadInput, match=r"another name or password: who\?"):
            await with_password().open()
        assert etcd.methods() == ["Authenticate"]

    virtually(story())


# --- single questions ----------------------------------------------------------------------------


def test_a_renewal_that_ends_without_an_answer_is_told(etcd: Etcd) -> None:
    async def story() -> None:
        async with make_guard("etcd://h", "jobs") as guard:
            grant = await guard.acquire(ADA, 5.0)
            assert isinstance(grant, Grant)
            etcd.mute_renewals = True
            with pytest.raises(Unreachable, match="ended the renewal of a lease without an answer"):
                await guard.renew(grant, 5.0)

    virtually(story())


def test_a_renewal_is_asked_for_by_name_too(etcd: Etcd) -> None:
    async def story() -> None:
        etcd.accounts = {"ada": "pw"}
        etcd.grant(7, 5)
        line = EtcdLine(EtcdNode(Channel(etcd, "a:1"), ("ada", "pw")), until=4.0)
        assert await line.keep_alive(7) == 5
        assert await line.keep_alive(8) == 0
        assert [each.timeout for each in etcd.asked] == [4.0, 4.0, 4.0]

    virtually(story())


def test_a_question_after_the_end_has_a_little_time_left(etcd: Etcd) -> None:
    async def story() -> None:
        await asyncio.sleep(5.0)
        line = EtcdLine(EtcdNode(Channel(etcd, "a:1"), None), until=4.0)
        await ask(line)
        timeout = etcd.asked[0].timeout
        assert timeout is not None
        assert 0.0 < timeout < 0.01

    virtually(story())


# --- addresses and papers ------------------------------------------------------------------------


def test_addresses_have_the_usual_port_and_brackets_where_needed(etcd: Etcd) -> None:
    async def story() -> None:
        async with make_guard("etcd://[::1],h:77", "jobs"):
            assert [each.target for each in etcd.channels] == ["[::1]:2379", "h:77"]
            assert {each.tls for each in etcd.channels} == {None}

    virtually(story())


def test_papers_come_from_files(
    etcd: Etcd, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given: list[tuple[Any, ...]] = []

    def credentials(*files: Any) -> str:
        given.append(files)
        return "TLS"

    monkeypatch.setattr("grpc.ssl_channel_credentials", credentials)
    for each in ("ca", "cert", "key"):
        (tmp_path / each).write_text(f"my {each}")
    files = "&".join(f"{each}={tmp_path}/{each}" for each in ("ca", "cert", "key"))

    async def story() -> None:
        async with make_guard(f"etcds://h?{files}", "jobs"):
            assert given == [(b"my ca", b"my key", b"my cert")]
        async with make_guard("etcds://h", "jobs"):
            assert given[1:] == [(None, None, None)]
        assert [each.tls for each in etcd.channels] == ["TLS", "TLS"]

    virtually(story())
